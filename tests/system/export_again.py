# SPDX-License-Identifier: Apache-2.0
"""What `stoup export` wrote comes back as it was; ways of a newcomer: directories of many kinds, one name for two layouts."""
import os
import sys

sys.path.insert(0, os.path.dirname(__file__))
import lib_dbn as d  # noqa: E402
import lib_stoup as t  # noqa: E402

WORK = t.temp_dir()
NAME = "GLBX.MDP3/ESH4/mbo"


def path(*parts):
    return os.path.join(WORK, *parts)


def stoup(*argv, expect=0):
    return t.run([t.STOUP, *argv], expect=expect)


def write(name, data):
    os.makedirs(os.path.dirname(path(name)), exist_ok=True)
    with open(path(name), "wb") as out:
        out.write(data)
    return path(name)


def mbo_store(store, prices):
    records = [t.mbo(17077, t.T0 + n, price, 1 + n, order_id=n) for n, price in enumerate(prices)]
    stoup("ingest", "--quiet", "--store", path(store),
          write(store + ".dbn", d.file(3, 0, [("ESH4", [(20200101, 20300101, 17077)])], records, dataset="GLBX.MDP3")))
    return records


# ---- prices of an exported CSV are decimals, with a point or without -----------------------------------------------------
ES = 1_000_000_000
for store, prices in (("whole", [4799 * ES, 4800 * ES, -3 * ES]),
                      ("whole-first", [4799 * ES, 4798 * ES + 750_000_000, 0, 4800 * ES]),
                      ("point-first", [4798 * ES + 750_000_000, 4799 * ES, 2**63 - 1, -250_000_000]),
                      ("undefined-first", [2**63 - 1, 4799 * ES])):
    records = mbo_store(store, prices)
    stoup("export", path(store) + "/", NAME, "--quiet", "-o", path(store + ".csv"))
    for way, options in (("feed", ()), ("schema", ("--schema", "mbo"))):
        copy = path(f"{store}-{way}")
        stoup("ingest", "--quiet", "--store", copy, "--series", NAME, *options, path(store + ".csv"))
        stoup("diff", path(store), copy)
        stoup("export", copy + "/", NAME, "--quiet", "--format", "dbn", "-o", copy + ".dbn")
        with open(copy + ".dbn", "rb") as file:
            t.true(file.read().endswith(b"".join(records)), f"{store}, {way}: the very records of DBN")

# Databento's own order of columns: a price without a point counts 1e-9, as ever.
HEAD = b"ts_recv,ts_event,rtype,publisher_id,instrument_id,action,side,price,size,channel_id,order_id,flags,ts_in_delta,sequence,symbol\n"
ROW = b"2024-01-02T00:00:00.000000001Z,2024-01-02T00:00:00Z,160,1,7,A,B,%s,1,0,5,128,0,1,ESH4\n"
stoup("ingest", "--quiet", "--store", path("units"), write("units.csv", HEAD + ROW % b"4799"))
t.true(",0.000004799," in stoup("cat", path("units") + "/", "databento/ESH4/mbo").stdout, "counts of 1e-9")
mixed = stoup("ingest", "--store", path("mixed"), write("mixed.csv", HEAD + ROW % b"4799.5" + ROW % b"4799"), expect=1).stderr
t.true('"4799" has no point, and the first row\'s price has one' in mixed, mixed)
# In exported order a count that can be no price of any market is not taken for one.
OWN = b"rtype,publisher_id,instrument_id,ts_event,order_id,price,size,flags,channel_id,action,side,ts_recv,ts_in_delta,sequence\n"
OWN_ROW = b"160,1,7,2024-01-02T00:00:00Z,5,%s,1,128,0,A,B,2024-01-02T00:00:00.000000001Z,0,1\n"
glued = stoup("ingest", "--store", path("glued"), write("glued.csv", OWN + OWN_ROW % b"4799" + OWN_ROW % b"4799000000000"),
              expect=1).stderr
t.true('"4799000000000" has no point' in glued, glued)
stoup("ingest", "--quiet", "--store", path("counts"), "--series", "a/b/mbo", write("counts.csv", OWN + OWN_ROW % b"4799000000000"))
t.true(",4799,1," in stoup("cat", path("counts") + "/", "a/b/mbo").stdout, "counts in the order of old files")

# ---- messages of JSON as lines, which come back --------------------------------------------------------------------------
LINES = b"".join(b'%d {"p":"61800.30","n":%d}\n' % (t.T0 + n, n) for n in range(50))
days = path("days")
stoup("ingest", "--quiet", "--store", path("json"), "--series", "x/y/bipf", write("days/capture.jsonl", LINES))
stoup("export", path("json") + "/", "x/y/bipf", "--quiet", "-o", path("out.lines"))
with open(path("out.lines"), "rb") as file:
    t.equal(file.read(), LINES, "lines as they were")
stoup("export", path("json") + "/", "x/y/bipf", "--quiet", "--format", "lines", "--directory", path("tree"))
t.equal(os.listdir(path("tree", "x", "y")), ["bipf.lines"], "name of the file")
stoup("ingest", "--quiet", "--store", path("json2"), "--series", "x/y/bipf", path("tree"))
stoup("diff", path("json"), path("json2"))
none = stoup("export", path("whole") + "/", NAME, "--format", "lines", expect=1).stderr
t.true("holds no JSON that --format lines could write: its schema is mbo" in none, none)
none = stoup("export", path("whole") + "/", NAME, "-o", path("x.csv.gz"), expect=2).stderr
t.true("gzip is not written: say --compress zstd" in none, none)

# ---- a directory of many kinds: what needs a series takes a call of its own ----------------------------------------------
write("days/sub/es.dbn", open(path("whole.dbn"), "rb").read())
write("days/quotes.csv", b"time,bid,ask\n2023-01-01T00:00:00Z,1.5,1.25\n")
said = stoup("ingest", "--store", path("many"), days, expect=1).stderr
t.true("--series NAME" in said and "--include '*.jsonl*' takes them alone" in said, said)
t.true(not os.path.exists(path("many")), "all or nothing")
stoup("ingest", "--quiet", "--store", path("many"), "--exclude", "*.jsonl,quotes*", days)
stoup("ingest", "--quiet", "--store", path("many"), "--include", "*.jsonl", "--series", "x/y/bipf", days)
stoup("ingest", "--quiet", "--store", path("many"), "--include", "quotes.csv", "--series", "a/b/quotes", days)
t.equal([line.split()[0] for line in stoup("ls", path("many")).stdout.splitlines()[1:]], [NAME, "a/b/quotes", "x/y/bipf"], "series")
again = stoup("ingest", "--store", path("many"), "--include", "sub/*", days)
t.true("the store has it already" in again.stderr, "by path, and what is chosen is no other source: " + again.stderr)
nothing = stoup("ingest", "--store", path("many"), "--include", "nix*", days, expect=1).stderr
t.true("nothing is left of it: 3 files are not asked for (--include, --exclude)" in nothing, nothing)
for bad in ("", "a,,b", "a,"):
    t.true("an empty pattern; names of files or patterns" in
           stoup("ingest", "--store", path("many"), "--exclude", bad, days, expect=2).stderr, f"--exclude '{bad}'")

# A file among others that is not understood: nobody named it, so the way without it is told; one that was named has none.
write("days/own.csv", b"alpha,beta\n1,2\n")
said = stoup("ingest", "--store", path("rest"), "--exclude", "*.jsonl,quotes*", days, expect=1).stderr
t.true("own.csv: line 1: not the columns of a feed that is known" in said and said.endswith("; or leave it out: --exclude 'own.csv'\n"), said)
t.true(not os.path.exists(path("rest")), "all or nothing")
stoup("ingest", "--quiet", "--store", path("rest"), "--exclude", "*.jsonl,quotes*,own.csv", days)
t.true("leave it out" not in stoup("ingest", "--store", path("rest"), path("days", "own.csv"), expect=1).stderr, "alone")
os.unlink(path("days", "own.csv"))

# ---- columns that are anyone's; one name for two layouts is told ---------------------------------------------------------
plain = stoup("ingest", "--store", path("two"), path("days", "quotes.csv"), expect=1).stderr
t.true("taken as quotes" in plain and "--series NAME" in plain, plain)
first = stoup("ingest", "--store", path("two"), "--series", "a/b/quotes", path("days", "quotes.csv")).stderr
t.true("another layout" not in first, first)
second = stoup("ingest", "--store", path("two"), "--series", "a/b/quotes", "--columns", "ts:time,bid:price,ask:price",
               path("days", "quotes.csv")).stderr
t.true("warning: the store has a/b/quotes in another layout as well" in second, second)
t.true("stands for several layouts" in stoup("cat", path("two") + "/", "a/b/quotes", expect=1).stderr, "and cat says why")

# ---- what belongs to a feed, what is not there, wide names ---------------------------------------------------------------
feed = stoup("ingest", "--store", path("no"), "--series", "a/b/c", "--schema", "tardis-trades", path("days", "quotes.csv"), expect=1)
t.true("is that of a feed: its files are read by --format tardis-trades" in feed.stderr, feed.stderr)
t.equal(stoup("ls", path("two"), "nix*").stderr, "stoup ls: no series matches 'nix*'\n", "a pattern of nothing")
t.equal(stoup("verify", "--repair", path("two")).stdout, path("two") + ": no damage; it was not touched\n", "nothing to repair")
agg = b"agg_trade_id,price,quantity,first_trade_id,last_trade_id,transact_time,is_buyer_maker\n1,42500.5,0.25,1,1,1706745600000,true\n"
stoup("ingest", "--quiet", "--store", path("two"), write("BTCUSDT-aggTrades-2024-02-01.csv", agg))
rows = stoup("ls", path("two")).stdout.splitlines()
t.equal(len({row.index("20") if n else row.index("first") for n, row in enumerate(rows)}), 1, "columns stand below each other")

# ---- compact's sums are those of ingest ----------------------------------------------------------------------------------
spot = [b"%d,9.5,%d.25,13.8,%d,True,True\n" % (n, n, 1_704_067_200_000 + n) for n in range(1, 5)]
for n in (0, 2):
    stoup("ingest", "--quiet", "--store", path("sums"), "--symbol", "BTCUSDT", "--format", "binance-trades",
          write(f"spot{n}.csv", b"".join(spot[n:n + 2])))
table = stoup("compact", path("sums")).stdout
t.equal([line.split()[-1] for line in table.splitlines()[1:3]], ["11", "11"], "1.25 + 2.25 + 3.25 + 4.25: " + table)

print("ok", flush=True)
