# SPDX-License-Identifier: Apache-2.0
"""stoup cat as a query: each option over series of two schemas, bars and documents, some by hand, and at random compared with
what plain Python makes of the rows that went in; columns, paths, bars and arrays."""
import json
import os
import random
import struct

import lib_stoup as t
from lib_query import (ALL, NS, POOL, answer, bars, cat, check, counts, daemon, docs, first, ingest, iso, second, texts, union)

# ---- some by hand, so that the model is not believed alone -------------------------------------------------------------------
two = first.rows[:2]
t.equal(cat([first.name], "--first", "2").stdout,
        "ts,bid,ask,size,venue\n" + "".join(",".join(cells.values()) + "\n" for _, cells in two), "the first two")
t.equal(cat([bars.name], "--select", "high,ts", "--first", "2", "--reverse").stdout,
        "high,ts\n1.51,2023-11-14T22:14:00.000000000Z\n1.5,2023-11-14T22:13:00.000000000Z\n", "the first two, the second first")
t.equal(cat([bars.name], "--asof", "2023-11-14T22:14:59.999999999Z", "--select", "volume").stdout,
        "asof,series,volume\n2023-11-14T22:14:59.999999999Z,A/X/bars,100\n", "a bar is known from its close on")
t.equal(cat([bars.name], "--asof", "2023-11-14T22:15:00Z", "--select", "volume", "--no-header").stdout,
        "2023-11-14T22:15:00.000000000Z,A/X/bars,101\n", "and then it is")
t.equal(cat([bars.name], "--asof", "2023-11-14T22:13:59Z", "--format", "jsonl", "--select", "volume,ts").stdout,
        '{"asof":"2023-11-14T22:13:59.000000000Z","series":"A/X/bars","volume":null,"ts":null}\n', "none was known")
said = os.path.join(t.temp_dir(), "times")
for text, options, expect, told in (
        ("2023-11-14T22:14:59.999999999Z,7,x\n\n2023-11-14T22:15:00Z\r\n1700000100000000000", ["--no-header"], 0,
         "2023-11-14T22:14:59.999999999Z,A/X/bars,100\n2023-11-14T22:15:00.000000000Z,A/X/bars,101\n"
         "2023-11-14T22:15:00.000000000Z,A/X/bars,101\n"),
        ("ts\n", [], 2, "stoup cat: --asof -, line 1: 'ts' "), ("\n\n", [], 2, "standard input has no times"),
        ("", [], 2, "standard input has no times")):
    with open(said, "w", encoding="ascii", newline="") as out:
        out.write(text)
    with open(said, encoding="ascii") as lines:
        done = t.run([t.STOUP, "cat", POOL, bars.name, "--asof", "-", "--select", "volume", *options], expect=expect, stdin=lines)
    t.true(told in done.stderr if expect else done.stdout == told, f"times of standard input {text!r}: {done}")
t.equal(cat([first.name], "--count").stdout, "records\n3000\n", "count")
t.equal(cat([first.name, second.name, "A/*"], "--count", "--format", "jsonl").stdout,
        '{"series":"A/X/quotes","records":3000}\n{"series":"A/Y/quotes","records":800}\n'
        '{"series":"A/X/bars","records":20}\n', "each series once, in the order in which they are said")
t.equal(cat([first.name], "--first", "0", "--format", "json").stdout, "[]\n", "an empty array")
t.equal(cat([first.name], "--at-ordinal", "7", "--no-header").stdout, ",".join(first.rows[7][1].values()) + "\n", "one record")
t.equal(cat([first.name], "--at-ordinal", "2998:", "--no-header").stdout,
        "".join(",".join(cells.values()) + "\n" for _, cells in first.rows[2998:]), "an open end")
t.equal(cat([first.name], "--at-ordinal", ":2", "--count", "--no-header").stdout, "2\n", "an open begin")
empty = next(n for n, (_, cells) in enumerate(first.rows) if not cells["size"])
t.equal(cat([first.name], "--at-ordinal", str(empty), "--select", "size").stdout, 'size\n""\n', "no empty line")
t.equal(cat([first.name], "--backward", "--limit", "1", "--no-header").stdout,
        ",".join(first.rows[-1][1].values()) + "\n", "--backward is --reverse")

# ---- every question, at random --------------------------------------------------------------------------------------------
WHERE = {
    "records": ((("size > 20 and venue = 'B'",), lambda c: c["size"] != "" and int(c["size"]) > 20 and c["venue"] == "B"),
                (("bid >= 1000", "venue != A"), lambda c: float(c["bid"]) >= 1000 and c["venue"] != "A"),
                (("size is null",), lambda c: c["size"] == ""), (("bid > 5000",), lambda c: False)),
    "docs": ((('e = "trade"', "p > 30"), lambda c: json.loads(c["message"])["e"] == "trade" and
              float(json.loads(c["message"])["p"]) > 30), (("deep[0].x = 3",), lambda c: json.loads(c["message"])["deep"][0]["x"] == 3),
             (("n < 0",), lambda c: False)),
}


def near_key(names):
    key = random.choice(random.choice([ALL[name] for name in names]).rows)[0]
    return key + random.choice((0, 0, -1, 1, 60 * NS))


def ask_of(names):
    ask = {}
    kind = random.choice(("range", "range", "range", "ordinals", "asof"))
    if kind == "asof":
        ask["asof"] = [near_key(names) for _ in range(random.randrange(1, 6))]
    elif kind == "ordinals":
        low = random.randrange(3100)
        ask["ordinals"] = (low, low + random.randrange(1, 1700))
    else:
        low, high = sorted((near_key(names), near_key(names)))
        ask |= random.choice(({}, {"from": low}, {"after": low}))
        ask |= random.choice(({}, {"to": high}, {"until": high}))
        if len(names) > 1:
            ask |= random.choice(({}, {"merge": True}))
    if kind != "asof":
        ask |= random.choice(({}, {"first": random.randrange(0, 90)}, {"last": random.randrange(0, 90)},
                              {"limit": random.randrange(0, 2000)}))
        ask |= random.choice(({}, {"reverse": True}))
    if all(name.startswith("A/") for name in names):
        columns = union(names, {})
        ask |= random.choice(({}, {"select": random.sample(columns, random.randrange(1, len(columns) + 1))}))
    kinds = {"records" if "quotes" in name else "docs" if "bipf" in name else None for name in names}
    if len(kinds) == 1 and kinds != {None} and random.random() < 0.5:
        ask["where_text"], ask["where"] = random.choice(WHERE[kinds.pop()])
    return ask


SETS = ([first.name], [second.name], [bars.name], [docs.name], [texts.name], [second.name, first.name],
        [second.name, bars.name], [docs.name, second.name, bars.name, texts.name], list(ALL))
printed = 0
for number in range(60 if os.environ.get("STOUP_SANITIZED") else 180):
    names = random.choice(SETS)
    ask = ask_of(names)
    printed += check(names, ask)
    if "asof" not in ask:
        counts(names, ask)
t.true(printed > 50 * number, f"rows compared: {printed}")
by_name = sorted(ALL)
check([name for name in by_name if "quotes" in name], {"last": 3}, ["A/*/quotes"])
check([bars.name], {"last": 3}, ["*bars"])
check([docs.name, texts.name], {"first": 1, "reverse": True}, ["D/[a]/*"])

# ---- documents cut to paths ------------------------------------------------------------------------------------------------
found = cat([docs.name], "--path", "p", "--path", "deep[0].x", "--where", "n >= 57", "--reverse").stdout
t.equal(found, "key,p,deep[0].x\n" + "".join(
    f"{cells['key']},{json.loads(cells['message'])['p']},{n % 7}\n" for n, (_, cells) in reversed(list(enumerate(docs.rows)))
    if n >= 57), "paths")
t.equal(cat([docs.name], "--asof", str(t.T0 - 1), "--asof", str(t.T0), "--path", "n", "--path", "e").stdout,
        f"asof,series,key,n,e\n{iso(t.T0 - 1)},D/a/bipf,,,\n{iso(t.T0)},D/a/bipf,{iso(t.T0)},1,"
        f"{json.loads(docs.rows[1][1]['message'])['e']}\n", "paths as of times")
t.equal(cat([docs.name], "--format", "lines", "--last", "2", "--where", "n != 59").stdout,
        "".join(f"{key} {cells['message']}\n" for key, cells in docs.rows[57:59]), "lines")

# More series than are looked up with a block of each held: each answers the same.
for n in range(18):
    ingest(f"W/s{n:02}/tick", "".join(f"{(1_700_000_000 + n + at) * NS},{n}.5,{at + 1}\n" for at in (0, 5, 5, 9)), "--columns",
           "ts:time,price:price,size:u32")
t.until(lambda: t.run([t.STOUP, "cat", POOL, "W/*", "--count", "--no-header"]).stdout.count("\n") == 18, "they are there")
for cnt in (3, 18):
    asked = [f"W/s{n:02}/tick" for n in range(cnt)]
    expected = []
    for at in (0, 2, 7, 100):
        for n in range(cnt):
            sizes = [s for s, late in ((1, 0), (6, 5), (6, 5), (10, 9)) if n + late <= at]
            expected.append(f"{iso((1_700_000_000 + at) * NS)},{asked[n]}," + (f"{n}.5,{sizes[-1]}" if sizes else ","))
    times = [part for at in (0, 2, 7, 100) for part in ("--asof", iso((1_700_000_000 + at) * NS))]
    t.equal(cat(asked, *times, "--select", "price,size", "--no-header").stdout.splitlines(), expected, f"{cnt} series at times")

# A share of fewer blocks than series: what is looked up has to give its blocks back.
place = os.path.join(t.temp_dir(), "store")
for n in range(10):
    with open(said, "w", encoding="ascii") as out:
        out.write("".join(f"{(1_700_000_000 + n + at) * NS},{n}.5,{at + 1}\n" for at in range(2000)))
    t.run([t.STOUP, "ingest", "--store", place, "--quiet", "--series", f"W/s{n:02}/tick", "--columns",
           "ts:time,price:price,size:u32", said])
small = t.Daemon(place, options=("--lease-bytes", "4K"))  # raised to what its longest block needs
t.equal(t.run([t.STOUP, "cat", small.pool, "W/*", *times, "--select", "price,size", "--no-header"]).stdout.splitlines(),
        [f"{iso((1_700_000_000 + at) * NS)},W/s{n:02}/tick," + (f"{n}.5,{at - n + 1}" if at >= n else ",")
         for at in (0, 2, 7, 100) for n in range(10)], "ten series at times, in a small share")
t.equal(small.stop(), 0, "it ends well")

# ---- bars, by hand -------------------------------------------------------------------------------------------------------
# Trades at seconds 0, 20, 40 of a minute and at second 10 of the one after the next; T0 is at second 20.
MINUTE = t.T0 // (60 * NS) * 60
lines = [(MINUTE, 10.5, 3), (MINUTE + 20, 11, 1), (MINUTE + 40, 9.5, 2), (MINUTE + 130, 10, 4)]
ingest("B/X/tick", "".join(f"{at * NS},{price},{size}\n" for at, price, size in lines), "--columns",
       "ts:time,price:price,size:u32")
t.until(lambda: "B/X/tick" in t.run([t.STOUP, "cat", POOL, "*", "--count"]).stdout, "the trades are there")
COLUMNS = "ts_open,open,high,low,close,volume,count,partial"
rows = [f"{iso(MINUTE * NS)},10.5,11,9.5,9.5,6,3,0", f"{iso((MINUTE + 120) * NS)},10,10,10,10,4,1,1"]
for options, expected in (
        ([], rows), (["--reverse"], rows[::-1]), (["--first", "1"], rows[:1]), (["--last", "1"], rows[1:]),
        (["--first", "1", "--reverse"], rows[:1]), (["--last", "1", "--reverse"], rows[1:]), (["--limit", "1"], rows[:1]),
        (["--limit", "1", "--reverse"], rows[1:]), (["--limit", "0"], []), (["--last", "9"], rows), (["--at-ordinal", ":3"], [
            rows[0][:-1] + "1"]),
        (["--to", iso((MINUTE + 180) * NS)], [rows[0], rows[1][:-1] + "0"]),  # it is past, so that the bar is whole
        (["--until", iso((MINUTE + 180) * NS - 1)], [rows[0], rows[1][:-1] + "0"]),
        (["--after", iso(MINUTE * NS), "--to", iso((MINUTE + 60) * NS)], [f"{iso(MINUTE * NS)},11,11,9.5,9.5,3,2,0"]),
        (["--from", iso((MINUTE + 500) * NS)], [])):
    t.equal(cat(["B/X/tick"], "--bars", "1m", "--select", COLUMNS, *options).stdout.splitlines(), [COLUMNS, *expected],
            f"bars {options}")
    objects = json.loads(cat(["B/X/tick"], "--bars", "1m", "--select", COLUMNS, "--format", "json", *options).stdout)
    t.equal([",".join(str(part) for part in one.values()) for one in objects], expected, f"bars {options} as JSON")
    if "--reverse" not in options:
        t.equal(cat(["B/X/tick"], "--bars", "1m", "--count", "--no-header", *options).stdout, f"{len(expected)}\n",
                f"bars {options}, counted")
t.equal(cat(["B/X/tick"], "--bars", "1m+30s", "--select", COLUMNS, "--no-header").stdout.splitlines(), [
    f"{iso((MINUTE - 30) * NS)},10.5,11,10.5,11,4,2,0", f"{iso((MINUTE + 30) * NS)},9.5,9.5,9.5,9.5,2,1,0",
    f"{iso((MINUTE + 90) * NS)},10,10,10,10,4,1,1"], "minutes that begin at half a minute")
for cnt in range(6):
    one = [f"{price:g},{size}" for _, price, size in lines]
    for options, expected in ((["--last", cnt], one[-cnt:] if cnt else []), (["--first", cnt], one[:cnt]),
                              (["--last", cnt, "--reverse"], one[::-1][:cnt]), (["--first", cnt, "--reverse"], one[:cnt][::-1]),
                              (["--limit", cnt, "--reverse"], one[::-1][:cnt])):
        t.equal(cat(["B/X/tick"], "--bars", "1t", "--select", "close,volume", "--no-header", *map(str, options)).stdout.splitlines(),
                expected, f"bars of one trade, {options}")
for spec, volumes in (("2t", (4, 6)), ("5v", (6, 4)), ("40n", (42.5, 59)), ("90s", (4, 2, 4))):  # MINUTE is 60 s behind a bound of 90 s
    column = "vwap" if spec == "40n" else "volume"
    found = cat(["B/X/tick"], "--bars", spec, "--select", "volume,vwap", "--no-header").stdout.splitlines()
    if column == "volume":
        t.equal([int(line.split(",")[0]) for line in found], list(volumes), f"bars of {spec}")
    else:  # 10.5 x 3 + 11 = 42.5 of 4; 9.5 x 2 + 10 x 4 = 59 of 6
        t.equal(found, ["4,10.625", "6,9.833333333"], f"bars of {spec}")
t.equal(cat(["B/X/tick", "A/X/quotes"], "--bars", "1m", expect=1).stdout, "", "one of the two has no trades")
t.equal(cat(["B/*"], "--bars", "1m", "--last", "1", "--select", "close").stdout, "series,close\nB/X/tick,10\n", "of a pattern")
data = t.output([t.STOUP, "cat", POOL, "B/X/tick", "--bars", "1m", "--select", "volume,open", "--format", "npy"])
t.equal(struct.unpack("<QqQq", data[-32:]), (6, 10_500_000_000, 4, 10_000_000_000), "an array of bars")

# ---- a series that kept its order: a record stands at the greatest key so far ------------------------------------------------
KEPT = [(10, "a"), (30, "b"), (20, "c"), (20, "d"), (40, "e"), (35, "f"), (50, "g")]  # stand at 10 30 30 30 40 40 50
ingest("K/X/kept", "".join(f"{t.T0 + at},{tag}\n" for at, tag in KEPT), "--columns", "ts:time,tag:char", "--order", "keep")
ingest("K/Y/other", "".join(f"{t.T0 + at},{tag}\n" for at, tag in ((20, "x"), (30, "y"), (40, "z"))), "--columns",
       "ts:time,tag:char")
t.until(lambda: "K/Y/other" in t.run([t.STOUP, "cat", POOL, "*", "--count"]).stdout, "both are there")


def tags(*options, series=("K/X/kept",)):
    printed = cat(series, "--select", "tag", "--no-header", *options).stdout
    return "".join(line.rsplit(",", 1)[-1] for line in printed.splitlines())


for options, expected in (
        ([], "abcdefg"), (["--reverse"], "gfedcba"), (["--from", str(t.T0 + 20)], "bcdefg"), (["--to", str(t.T0 + 30)], "a"),
        (["--until", str(t.T0 + 30)], "abcd"), (["--after", str(t.T0 + 30)], "efg"), (["--last", "3"], "efg"),
        (["--first", "3", "--reverse"], "cba"), (["--at-ordinal", "2:4"], "cd"), (["--asof", str(t.T0 + 20)], "a"),
        (["--asof", str(t.T0 + 30)], "d"), (["--asof", str(t.T0 + 39)], "d"), (["--asof", str(t.T0 + 40)], "f"),
        (["--asof", str(t.T0 + 30), "--where", "tag < 'd'"], "c"), (["--where", "tag in ('b', 'f')"], "bf")):
    t.equal(tags(*options), expected, f"kept in its order, {options}")
t.equal(tags("--merge", series=("K/X/kept", "K/Y/other")), "axbcdyefzg", "merged by the greatest key so far")
t.equal(tags("--merge", "--reverse", series=("K/X/kept", "K/Y/other")), "gzfeydcbxa", "and backward")
t.equal(tags("--merge", series=("K/Y/other", "K/X/kept")), "axybcdzefg", "equal times in the order of the series")

# ---- arrays -------------------------------------------------------------------------------------------------------------------


def array(*options):
    data = t.output([t.STOUP, "cat", POOL, first.name, *options, "--format", "npy"])
    length, = struct.unpack_from("<H", data, 8)
    return eval(data[10:10 + length]), data[10 + length:]  # pylint: disable=eval-used


def packed(rows):
    return b"".join(struct.pack("<qq", int(cells["size"]) * NS if cells["size"] else 2**63 - 1, key) for key, cells in rows)


rows = [row for row in first.rows if WHERE["records"][1][1](row[1])]
for options, expected in ((("--last", "50"), rows[-50:]), (("--last", "50", "--reverse"), rows[:-51:-1]),
                          (("--first", "9", "--reverse"), rows[8::-1]), (("--limit", "7"), rows[:7]), ((), rows),
                          (("--after", str(rows[9][0])), [row for row in rows if row[0] > rows[9][0]])):
    head, body = array("--select", "size,ts", "--where", "bid >= 1000", "--where", "venue != A", *options)
    t.equal(head["descr"], [("size", "<i8"), ("ts", "<i8")], "descr")
    t.equal(head["shape"], (len(expected),), f"shape of {options}")
    t.true(body == packed(expected), f"bytes of {options}")
whole, bytes_ = array()
t.equal(array("--at-ordinal", "5:9")[1], bytes_[5 * len(bytes_) // 3000:9 * len(bytes_) // 3000], "whole records by ordinal")
t.equal(array("--select", "venue", "--first", "3")[1].decode(), "".join(cells["venue"] for _, cells in first.rows[:3]), "texts")
t.true(t.output([t.STOUP, "cat", POOL, first.name, "--select", "size,ts", "--format", "npz"]).find(packed(first.rows)) > 0, "npz")
daemon.stop()
print(f"ok, {printed} rows", flush=True)
