# SPDX-License-Identifier: Apache-2.0
"""compact, rm, diff and info: the records stay what they are, and what is said of them is true."""
import json
import os
import pty
import shutil
import struct

import lib_care as c
import lib_stoup as t

AAA, BBB, CCC = (t.name_of(symbol) for symbol in c.SYMBOLS)

# ---- compact: fewer volumes, the same records ----------------------------------------------------------------
store = c.new_store(range(6))
original = c.copy_of(store)
before = c.bytes_of(store)
out = c.stoup("compact", "--dry-run", store).stdout
t.true("6 of 6 volumes would become 1" in out and "room needed" in out, out)
t.equal(c.bytes_of(store), before, "a dry run changes nothing")
out = c.stoup("compact", store).stdout
t.equal(len(c.volumes_of(store)), 1, "volumes")
for word in (f"{AAA}  before         6000", "after         18000  in 3 series", "6 volumes of"):
    t.true(word in out, f"'{word}' in {out}")
t.run([t.STOUP, "verify", store])
c.must_be_same(original, store, "compacted")
expected = [line for line in c.records_of(original, AAA)]
t.equal(c.records_of(store, AAA), expected, "as a daemon serves them")
# The new volume supersedes all, in the order of ingest, and inherits what they superseded.
(volume,) = c.info(store)["volumes"]
t.equal(volume["ingest_seq"], 7, "the next place in the order of ingest")
t.equal(sorted(volume["supersedes"]), sorted(v["id"] for v in c.info(original)["volumes"]), "superseded")
inherited = volume["supersedes"] + [volume["id"]]
# Nothing to be gained.
before = c.bytes_of(store)
t.true("nothing to be gained" in c.stoup("compact", store).stdout, "again")
t.equal(c.bytes_of(store), before, "nothing was changed")
# Other codecs and blocks, several volumes; once more there is nothing to be gained.
for codec, block, way in (("small", "128K", "fields+zstd"), ("none", "64K", "none"), ("zstd", "1M", "zstd"),
                          ("fast", "256K", "fields+lz4")):
    options = ["--codec", codec, "--block", block, "--volume", "256K"]
    c.stoup("compact", "--quiet", *options, store)
    t.run([t.STOUP, "verify", store])
    c.must_be_same(original, store, codec)
    found = c.info(store)
    t.equal({s["codec"] for series in found["series"] for s in series["segments"]}, {way}, "codecs")
    longest = max(s["raw_bytes"] for series in found["series"] for s in series["segments"])
    limit = int(block[:-1]) << (10 if block[-1] == "K" else 20)
    t.true(longest <= limit, f"{block}: {longest}")
    lengths = [v["raw_bytes"] for v in found["volumes"]]
    t.true(max(lengths) <= max(256 << 10, limit), f"{codec}: length of volumes {lengths}")
    t.true(set(inherited) <= set(found["volumes"][0]["supersedes"]), "inherited ids")
    t.true("nothing to be gained" in c.stoup("compact", *options, store).stdout, f"{codec} again")
# --level encodes all anew.
t.true("read back" in c.stoup("compact", "--codec", "small", "--level", "3", store).stdout, "level")
c.must_be_same(original, store, "with a level")
# Full blocks are copied as they are stored, byte for byte.
packed = c.new_store([0, 1], "--codec", "small", count=9_000)
stored = {s["stored_bytes"] for series in c.info(packed)["series"] for s in series["segments"] if s["raw_bytes"] == 65520}
c.stoup("compact", "--quiet", packed)
again = {s["stored_bytes"] for series in c.info(packed)["series"] for s in series["segments"] if s["raw_bytes"] == 65520}
t.true(stored and stored <= again, f"copied blocks: {stored} {again}")
# PATTERN chooses volumes that hold such a series.
apart = c.new_store()
for number in range(4):
    c.ingest_rows(apart, c.rows_of(number, symbols={"AAA": 11}) if number % 2 else c.rows_of(number, symbols={"BBB": 22}),
                  symbols={"AAA": 11} if number % 2 else {"BBB": 22})
reference = c.copy_of(apart)
c.stoup("compact", "--quiet", apart, "*/AAA/*")
t.equal(sorted(v["ingest_seq"] for v in c.info(apart)["volumes"]), [1, 3, 5], "two of four")
c.must_be_same(reference, apart, "by pattern")
t.true("matches" in c.stoup("compact", apart, "*/ZZZ/*", expect=1).stderr, "no such series")

# Files that the store has are known as before; not once a record of theirs was removed.
known = os.path.join(t.temp_dir(), "store")
files = []
for day, options in ((0, []), (1, ["--volume", "64K"])):
    files.append(os.path.join(os.path.dirname(known), f"{day}.dbn"))
    t.dbn_file(files[-1], c.SYMBOLS, (t.mbo(*row) for row in c.rows_of(day)))
    t.run([t.STOUP, "ingest", "--quiet", "--store", known, *options, files[-1]])
c.stoup("compact", "--quiet", "--volume", "128K", "--block", "64K", "--codec", "small", known)
t.true(len(c.volumes_of(known)) > 1, "a batch of several")
for path in files:
    t.true("has it already" in t.run([t.STOUP, "ingest", "--store", known, path]).stderr, "known after compact")
# Also of a long ingest whose last volume is small, beside small ones that are merged, and where it is written anew.
long = os.path.join(t.temp_dir(), "store")
for path, options in zip(files, (["--volume", "64K"], [])):
    t.run([t.STOUP, "ingest", "--quiet", "--store", long, "--block", "64K", *options, path])
for day in (2, 3):
    c.ingest(long, day, count=300)
count = len(c.volumes_of(long))
for options in ([], ["*/BBB/*", "--block", "128K"], ["--codec", "zstd"]):
    c.stoup("compact", "--quiet", "--volume", "96K", long, *options)
    for path in files:
        done = t.run([t.STOUP, "ingest", "--store", long, path], expect=None)
        t.true("has it already" in done.stderr, f"known after {options}: {done.stderr}")
    t.true(len(c.volumes_of(long)) < count, "small volumes are merged")
c.stoup("rm", "--quiet", "--to", str(t.T0 + 10**6), known, AAA)
t.true("overlaps" in t.run([t.STOUP, "ingest", "--store", known, files[0]], expect=1).stderr, "not known after rm")

# ---- equal keys at the borders of volumes keep their order, whatever is merged ----------------------------------
ties = c.new_store()
K = t.T0 + 10**9
for number, keys in enumerate([[K - 2, K - 1, K], [K, K], [K, K, K + 5], [K + 5], [K + 6]]):
    c.ingest_rows(ties, [(11, key, 10**9 * (number + 1) + at, 1) for at, key in enumerate(keys)], symbols={"AAA": 11})
order = c.records_of(ties, AAA)
t.equal(len(order), 10, "records")
one = c.copy_of(ties)
c.stoup("compact", "--quiet", one)
t.equal(c.records_of(one, AAA), order, "equal keys in one volume")
c.must_be_same(ties, one, "equal keys")
# rm that leaves a single key behind has to take its neighbours along.
cut = c.copy_of(ties)
c.stoup("rm", "--quiet", "--to", str(K), cut, AAA)
t.run([t.STOUP, "verify", cut])
t.equal(c.records_of(cut, AAA), order[2:], "equal keys after rm")

# ---- a series that keeps its order ---------------------------------------------------------------------------------
keeps = c.new_store()
steps = [5, 3, 9, 4, 9, 12, 11, 20]
c.ingest_rows(keeps, [(11, K + key, 10**9 + at, 1) for at, key in enumerate(steps)], "--order", "keep", symbols={"AAA": 11})
c.ingest_rows(keeps, [(11, K + 30 + key, 10**9 + at, 1) for at, key in enumerate(steps)], "--order", "keep",
              symbols={"AAA": 11})
order = c.records_of(keeps, AAA)
one = c.copy_of(keeps)
c.stoup("compact", "--quiet", one)
t.run([t.STOUP, "verify", one])
t.equal(c.records_of(one, AAA), order, "order kept")
t.equal(c.info(one)["series"][0]["keeps_order"], True, "the flag")
c.stoup("rm", "--quiet", "--from", str(K + 9), "--to", str(K + 12), one, AAA)
t.run([t.STOUP, "verify", one])
t.equal(c.records_of(one, AAA), order[:2] + order[5:], "a range by effective keys: 9, 4, 9 are gone")

# ---- overlaps --------------------------------------------------------------------------------------------------------
left, right, other = c.new_store([0, 1]), c.new_store([0]), c.new_store()
c.ingest(other, 0, salt=3)
lapping = c.copy_of(left)
for source in (right, other):
    for name in c.volumes_of(source):
        shutil.copy(os.path.join(source, name), lapping)
stderr = c.stoup("compact", lapping, expect=1).stderr
t.true("overlaps" in stderr and "--overlaps merge" in stderr, stderr)
t.true("overlaps" in c.stoup("rm", lapping, AAA, expect=1).stderr, "rm refuses overlaps")
merged, dedup = c.copy_of(lapping), c.copy_of(lapping)
out = c.stoup("compact", "--overlaps", "merge", merged).stdout
t.true("merged by time" in out, out)
t.equal(c.info(merged, AAA)["series"][0]["records"], 4_000, "all records of all volumes")
t.run([t.STOUP, "verify", merged])
out = c.stoup("compact", "--overlaps", "dedup", dedup).stdout
t.true("1000  of them dropped: equal to one of another volume" in out, out)
t.equal(c.info(dedup, AAA)["series"][0]["records"], 3_000, "without those that are there twice")
t.run([t.STOUP, "verify", dedup])
# Two equal trades of one volume stay two; three volumes that hold them leave two.
twice = [(11, K, 10**9, 1), (11, K, 10**9, 1), (11, K + 1, 10**9, 2)]
copies = [c.new_store() for _ in range(3)]
for copy in copies:
    t.dbn_file(copy + ".dbn", {"AAA": 11}, (t.mbo(*row) for row in twice))
    t.run([t.STOUP, "ingest", "--quiet", "--store", copy, copy + ".dbn"])
for copy in copies[1:]:
    shutil.copy(os.path.join(copy, c.volumes_of(copy)[0]), copies[0])
c.stoup("compact", "--quiet", "--overlaps", "dedup", copies[0])
c.must_be_same(copies[0], copies[1], "as each of the copies")
# A copy that begins in the middle of another one.
first, second = c.new_store(), c.new_store([5])
for store, at in ((first, 0), (second, 5)):
    t.dbn_file(store + ".dbn", {"AAA": 11}, (t.mbo(11, K + at + i, 10**9 * (at + i + 1), 1) for i in range(10)))
    t.run([t.STOUP, "ingest", "--quiet", "--store", store, store + ".dbn"])
for name in c.volumes_of(second):
    shutil.copy(os.path.join(second, name), first)
c.stoup("compact", "--quiet", "--overlaps", "dedup", first)
t.equal(c.info(first, AAA)["series"][0]["records"], 15 + 1000, "without the five of both")
# Two equal ones stay at the border of two volumes of one ingest, whether the store serves it or leaves it out.
FULL = 65536 // 56
border = [(11, K + i - (i >= FULL), 10**9, 1) for i in range(2 * FULL)]
for border_first in (True, False):
    first, second = c.new_store(), c.new_store([5])
    batch = first if border_first else second
    for store in (first, second):
        rows = border if store is batch else [(11, K + i, 2 * 10**9, 1) for i in (5, FULL - 1, FULL + 5)]
        t.dbn_file(store + ".dbn", {"AAA": 11}, (t.mbo(*row) for row in rows))
        t.run([t.STOUP, "ingest", "--quiet", "--store", store, "--block", "64K", "--volume", "64K", store + ".dbn"])
    t.equal(max(v["batch_cnt"] for v in c.info(batch)["volumes"]), 2, "volumes of one ingest")
    for name in c.volumes_of(second):
        shutil.copy(os.path.join(second, name), first)
    c.stoup("compact", "--quiet", "--overlaps", "dedup", first)
    t.equal(c.info(first, AAA)["series"][0]["records"], 2 * FULL + 3 + 1000, "equal records at a border")

# ---- rm ----------------------------------------------------------------------------------------------------------------
store = c.copy_of(original)
stderr = c.stoup("rm", store, AAA, "no/such/series", expect=1).stderr
t.true("no/such/series" in stderr and "nothing was removed" in stderr, stderr)
stderr = c.stoup("rm", store, "*/AAA/*", expect=1).stderr
t.true("--yes" in stderr, stderr)
c.must_be_same(original, store, "nothing was removed")
out = c.stoup("rm", "--dry-run", store, AAA, BBB).stdout
t.true(f"{AAA}: 6000 of 6000 records" in out and "dry-run" in out, out)
out = c.stoup("rm", store, AAA).stdout
t.true(f"{AAA}: 6000 of 6000 records removed, 0 left" in out and "12000 of 2 series" in out, out)
t.run([t.STOUP, "verify", store])
t.equal([s["name"] for s in c.info(store)["series"]], [BBB, CCC], "what is left")
for name in (BBB, CCC):
    c.must_be_same(original, store, name, name)
# A range, ends as said: from is inside, to is not.
rows = [key for ident, key, _, _ in sum((c.rows_of(day) for day in range(6)), []) if ident == 22]
lo, hi = rows[1500], rows[4200]
c.stoup("rm", "--quiet", "--from", str(lo), f"--to={hi}", store, BBB)
t.run([t.STOUP, "verify", store])
t.equal(c.info(store, BBB)["series"][0]["records"], len(rows) - sum(lo <= key < hi for key in rows), "a range")
whole = c.records_of(original, BBB)
t.equal(c.records_of(store, BBB), [line for line, key in zip(whole, rows) if not lo <= key < hi], "what is left of it")
t.true("no records in that range" in c.stoup("rm", "--to", "2001-01-01", store, BBB).stdout, "nothing there")
# Volumes whose contents go wholly are not written anew.
c.stoup("rm", "--quiet", "--yes", store, "*")
t.equal(c.info(store)["series"], [], "nothing is left")
t.equal([v["blocks"] for v in c.info(store)["volumes"]], [0], "one volume that only supersedes")
c.ingest(store, 0)
t.equal(c.info(store, AAA)["series"][0]["records"], 1_000, "records again")

# A pattern is asked about on a terminal.
def at_terminal(answer, *argv):
    """Status and all that the terminal showed."""
    pid, fd = pty.fork()
    if pid == 0:
        os.execv(t.STOUP, [t.STOUP, *argv])
    shown = b""
    while True:
        try:
            read = os.read(fd, 4096)
        except OSError:  # EIO: it has ended
            read = b""
        if not read:
            break
        shown += read
        if b"[y/N] " in shown and answer:
            os.write(fd, answer)
            answer = b""
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), shown.decode()


def has_terminals():
    """A root without /dev/pts has none to give."""
    try:
        for fd in pty.openpty():
            os.close(fd)
    except OSError:
        print("note: no terminal is to be had here: what is asked on one was not tried")
        return False
    return True


if has_terminals():
    store = c.copy_of(original)
    for answer in (b"n\n", b"\n", b"\x04"):
        status, shown = at_terminal(answer, "rm", store, "*/AAA/*")
        t.true(status == 1 and "nothing was removed" in shown and f"{AAA}: 6000 of 6000" in shown, f"{answer}: {status} {shown}")
    c.must_be_same(original, store, "not confirmed")
    status, shown = at_terminal(b"y\n", "rm", store, "*/AAA/*")
    t.true(status == 0 and "6000 records removed" in shown, shown)
    t.equal([s["name"] for s in c.info(store)["series"]], [BBB, CCC], "confirmed")
    # A plain name is not asked about.
    status, shown = at_terminal(b"", "rm", store, BBB)
    t.true(status == 0 and "[y/N]" not in shown, shown)

# ---- diff --------------------------------------------------------------------------------------------------------------
store = c.copy_of(original)
found = json.loads(c.stoup("diff", "--json", original, store).stdout)
t.equal((found["equal"], [s["state"] for s in found["series"]]), (True, ["equal"] * 3), "equal")
c.ingest(store, 2, "--replace", salt=1)
c.stoup("rm", "--quiet", store, CCC)
extra = {"DDD": 44}
c.ingest_rows(store, c.rows_of(0, symbols=extra), symbols=extra)
found = json.loads(c.stoup("diff", "--json", original, store, expect=1).stdout)
states = {s["name"]: s for s in found["series"]}
t.equal({name: s["state"] for name, s in states.items()},
        {AAA: "differs", BBB: "differs", CCC: "only_a", t.name_of("DDD"): "only_b"}, "states")
prices = [price for ident, _, price, _ in c.rows_of(2) if ident == 11]
first = states[AAA]["first_difference"]
t.equal((first["ordinal"], first["field"], states[AAA]["differing"]), (2_000, "price", 1_000), "the first difference")
t.equal((float(first["a"]), float(first["b"])), (prices[0] / 1e9, (prices[0] + 1_000_000) / 1e9), "both values")
out = c.stoup("diff", original, store, expect=1).stdout
t.true(f"{AAA}: 1000 of 2000 records differ; first at record 2000" not in out and "1000 of 6000 records differ" in out, out)
c.stoup("rm", "--quiet", "--from", str(t.T0 + 5 * c.DAY), store, AAA)
out = c.stoup("diff", original, store, AAA, expect=1).stdout
t.true("6000 records in" in out and "5000 in" in out, out)
shorter = c.copy_of(original)
c.stoup("rm", "--quiet", "--from", str(t.T0 + 5 * c.DAY), shorter, AAA)
out = c.stoup("diff", original, shorter, AAA, expect=1).stdout
t.true("equal up to record 5000" in out, out)
t.equal(c.stoup("diff", original, expect=2).returncode, 2, "usage")

# ---- info --------------------------------------------------------------------------------------------------------------
out = c.stoup("info", original).stdout
t.true(out.count("volume 0") == 6 and f"series {AAA}: mbo, 6000 records" in out, out)
found = c.info(original, AAA)
(series,) = found["series"]
t.equal(sum(s["records"] for s in series["segments"]), 6_000, "records of segments")
t.equal([s["ordinal"] for s in series["segments"]][:2], [0, series["segments"][0]["records"]], "ordinals")
keys = [key for ident, key, _, _ in sum((c.rows_of(day) for day in range(6)), []) if ident == 11]
for one in series["segments"]:
    t.equal((one["first_key"], one["last_key"]), (keys[one["ordinal"]], keys[one["ordinal"] + one["records"] - 1]), "keys")
path = os.path.join(original, c.volumes_of(original)[0])
t.equal(c.info(path)["volumes"][0]["id"], found["volumes"][0]["id"], "one file")
with open(path, "rb") as volume:
    head = volume.read(64)
t.equal((found["volumes"][0]["id"], found["volumes"][0]["created_ns"]), (head[16:32].hex(), struct.unpack_from("<q", head, 32)[0]),
        "the header's words")
t.true("matches" in c.stoup("info", original, "none", expect=1).stderr, "no such series")

# ---- wrong usage, stores that are none ---------------------------------------------------------------------------------
empty = t.temp_dir()
for argv in (["compact"], ["compact", "--codec", "best", original], ["compact", "--level", "3", original],
             ["compact", "--block", "1K", original], ["compact", "--overlaps", "drop", original], ["rm", original],
             ["rm", "--from", "tomorrow", original, AAA], ["rm", "--from", "2024-01-02", "--to", "2024-01-01", original, AAA],
             ["diff", original], ["info"], ["verify", "--dry-run", original], ["compact", "--what", original],
             ["verify", "--repair"], ["rm", original, AAA, "--from"]):
    done = c.stoup(*argv, expect=2)
    t.true(done.stderr.count("\n") == 1 and "stoup help" in done.stderr, f"{argv}: {done.stderr}")
for argv in (["compact", empty], ["rm", empty, AAA], ["diff", empty, original], ["info", empty],
             ["verify", "--repair", empty], ["compact", empty + "/none"], ["verify", "--repair", path]):
    done = c.stoup(*argv, expect=1)
    t.true(done.stderr.count("\n") == 1, f"{argv}: {done.stderr}")
t.equal(os.listdir(empty), [], "no store was made")
c.must_be_same(original, c.copy_of(original), "untouched")
# Progress and questions are for terminals: in a pipe there is neither.
t.equal(c.stoup("compact", c.copy_of(original)).stderr, "", "quiet in a pipe")
