# SPDX-License-Identifier: Apache-2.0
"""stoup cat asked of real files: filters, columns, ranges, as of times, merges and counts equal what Python finds in the bytes
of the DBN files."""
import bisect
import csv
import io
import json
import os
import random
import struct
import sys

import lib_stoup as t

if not t.DATA:
    print("STOUP_DATA is not set: skipped")
    sys.exit(t.SKIP)
NS, NONE = 1_000_000_000, 2**63 - 1
random.seed(1)
work = t.temp_dir()
STORE = os.path.join(work, "ticks")
FILES = [os.path.join(t.DATA, "dbn", name) for name in (
    "esh4-glbx-mdp3-20231225.mbo.dbn.zst", "futures-20240701.mbp-1.dbn.zst", "futures-20240701.trades.dbn.zst",
    "futures-20240701.ohlcv-1m.dbn.zst")]
t.run([t.STOUP, "ingest", "--quiet", "--store", STORE, *FILES])
listing = {entry["name"]: entry for entry in json.loads(t.run([t.STOUP, "ls", "--json", STORE]).stdout)["series"]}
daemon = t.Daemon(STORE, "64M")


def records(name):
    """The records of a series, out of the DBN file that they came in."""
    path = os.path.join(work, "one.dbn")
    t.run([t.STOUP, "export", "--quiet", "--force", "-o", path, daemon.pool, name])
    with open(path, "rb") as source:
        data = source.read()
    at = 8 + struct.unpack_from("<I", data, 4)[0]
    out = []
    while at < len(data):
        out.append(data[at:at + 4 * data[at]])
        at += 4 * data[at]
    return out


def decimal(price):
    whole, rest = divmod(abs(price), NS)
    text = str(whole) + ("." + f"{rest:09}".rstrip("0") if rest else "")
    return "" if price == NONE else ("-" if price < 0 else "") + text


def iso(ns):
    import datetime
    at = datetime.datetime.fromtimestamp(ns // NS, datetime.timezone.utc)
    return f"{at:%Y-%m-%dT%H:%M:%S}.{ns % NS:09}Z"


def cat(*arguments):
    return t.run([t.STOUP, "cat", daemon.pool, *arguments]).stdout


def rows_of(text):
    return list(csv.reader(io.StringIO(text)))[1:]


# ---- a day of orders ------------------------------------------------------------------------------------------------------------
(mbo,) = [name for name in listing if name.endswith("/mbo")]
orders = []
for record in records(mbo):
    order_id, price, size = struct.unpack_from("<QqI", record, 16)
    orders.append((struct.unpack_from("<Q", record, 40)[0], order_id, price, size, chr(record[38]), chr(record[39])))
t.equal(len(orders), 68792, "orders")
keys = [order[0] for order in orders]
t.true(all(a <= b for a, b in zip(keys, keys[1:])), "in order of time")


def lines(chosen):
    return [[iso(key), decimal(price), str(size), action, side] for key, _, price, size, action, side in chosen]


SELECT = ["--select", "ts_recv,price,size,action,side"]
FILTERS = (("action = 'T'", lambda o: o[4] == "T"), ("price > 4800 and side = 'B' and size >= 10", lambda o:
                                                    NONE > o[2] > 4800 * NS and o[5] == "B" and o[3] >= 10),
           ("price is null or size between 100 and 200", lambda o: o[2] == NONE or 100 <= o[3] <= 200),
           ("not (price >= 4790.25 or action in (A, C))", lambda o: o[2] < 4790_250_000_000 and o[4] not in "AC"),
           ("order_id = 1", lambda o: o[1] == 1), ("size > 10", lambda o: o[3] > 10))
found_some = 0
for text, holds in FILTERS:
    chosen = [order for order in orders if holds(order)]
    found_some += bool(chosen)
    t.true(rows_of(cat(mbo, "--where", text, *SELECT)) == lines(chosen), f"where {text}")
    t.equal(cat(mbo, "--where", text, "--count", "--no-header"), f"{len(chosen)}\n", f"where {text}, counted")
    t.true(rows_of(cat(mbo, "--where", text, *SELECT, "--last", "7")) == lines(chosen[-7:]), f"where {text}, the last")
    t.true(rows_of(cat(mbo, "--where", text, *SELECT, "--reverse", "--limit", "7")) == lines(chosen[:-8:-1]),
           f"where {text}, backward")
t.true(found_some >= 5, "filters that hold of some")
for _ in range(20):
    low, high = sorted(random.choice(keys) + random.choice((-1, 0, 1)) for _ in range(2))
    a, b = random.choice((("--from", bisect.bisect_left), ("--after", bisect.bisect_right))), random.choice(
        (("--to", bisect.bisect_left), ("--until", bisect.bisect_right)))
    begin, end = a[1](keys, low), max(b[1](keys, high), a[1](keys, low))
    options = [a[0], str(low), b[0], str(high)]
    t.equal(cat(mbo, *options, "--count", "--no-header"), f"{end - begin}\n", f"count of {options}")
    t.true(rows_of(cat(mbo, *options, *SELECT, "--first", "5")) == lines(orders[begin:end][:5]), f"the first of {options}")
    t.true(rows_of(cat(mbo, *options, *SELECT, "--last", "5")) == lines(orders[begin:end][-5:]), f"the last of {options}")

# ---- quotes, trades and bars of several instruments ----------------------------------------------------------------------------------
OFFSETS = {"mbp-1": 32, "trades": 32, "ohlcv-1m": 8}
series = {}  # name: [(time at which it was known, record)]
for name in listing:
    schema = name.rsplit("/", 1)[1]
    if schema in OFFSETS:
        late = 60 * NS if schema == "ohlcv-1m" else 0
        series[name] = [(struct.unpack_from("<Q", record, OFFSETS[schema])[0] + late, record) for record in records(name)]
t.true(len(series) == 4, f"series: {list(series)}")
names = sorted(series)
COLUMN = {"mbp-1": "price", "trades": "price", "ohlcv-1m": "close"}


def value(name, record):
    schema = name.rsplit("/", 1)[1]
    return decimal(struct.unpack_from("<q", record, 40 if schema == "ohlcv-1m" else 16)[0])


def row(name, record):
    close = name.endswith("ohlcv-1m")
    return [name, "" if close else value(name, record), value(name, record) if close else ""]


merged = [row(name, record) for _, _, _, name, record in sorted(
    (at, place, n, name, record) for place, name in enumerate(names) for n, (at, record) in enumerate(series[name]))]
patterns = ["*/mbp-1", "*/trades", "*/ohlcv-1m"]
for given in (names, names[::-1]):
    expected = [row(name, record) for _, _, _, name, record in sorted(
        (at, place, n, name, record) for place, name in enumerate(given) for n, (at, record) in enumerate(series[name]))]
    options = ["--merge", "--select", "price,close"]
    t.true(rows_of(cat(*given, *options)) == expected, "one order of time")
    t.true(rows_of(cat(*given, *options, "--reverse")) == expected[::-1], "and back")
    t.true(rows_of(cat(*given, *options, "--last", "100")) == expected[-100:], "its end")
    t.true(rows_of(cat(*given, *options, "--first", "100", "--reverse")) == expected[99::-1], "its begin, backward")
t.equal(cat(*patterns, "--merge", "--count", "--no-header"), f"{len(merged)}\n", "all of them")
times = [random.choice(random.choice(list(series.values())))[0] + random.choice((-1, 0, 1)) for _ in range(150)]
expected = []
for at in times:
    for name in names:
        known = bisect.bisect_right([when for when, _ in series[name]], at)
        expected.append([iso(at), *(row(name, series[name][known - 1][1]) if known else [name, "", ""])])
found = rows_of(cat(*names, "--select", "price,close", *(word for at in times for word in ("--asof", str(at)))))
t.true(found == expected, "as of 150 times")
t.true(any(line[2] == line[3] == "" for line in expected), "of some nothing was known")
daemon.stop()
print(f"ok, {len(orders)} orders, {len(merged)} records of {len(series)} series merged", flush=True)
