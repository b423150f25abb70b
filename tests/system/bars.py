# SPDX-License-Identifier: Apache-2.0
"""Bars of stored trades: over borders of segments and volumes, over the daemon's death, of the presets' schemas, and of
real files, where the vendor's own bars of the same trades must come out.

The reference is in this file: it goes over the rows that were written, never over what stoup reads.
"""
import calendar
import math
import os
import random
import struct
import subprocess
import time

import lib_stoup as t

HELPER = os.path.join(t.BIN, "helper_bars")
NONE, NO_SIDE = 2**63 - 1, 2**64 - 1
SECOND = 10**9
WORK = t.temp_dir()
COLUMNS = ("open_ns close_ns available_ns open high low close volume buy sell count low_word high_word vwap first last "
           "partial filled").split()


def bars(pool, series, spec, *options):
    rows = []
    for line in t.output([HELPER, pool, series, spec, *map(str, options)]).decode().splitlines():
        row = dict(zip(COLUMNS, map(int, line.split())))
        row["notional"] = (row.pop("high_word") << 64) + row.pop("low_word")
        rows.append(row)
    return rows


def bar(rows, first=None, interval=None, sides=True):
    """Of (key, price, size, side, ordinal), which are not empty."""
    volume = sum(row[2] for row in rows)
    notional = sum(row[1] * row[2] for row in rows)
    vwap = (2 * abs(notional) + volume) // (2 * volume) * (1 if notional >= 0 else -1) if volume else NONE
    end = first + interval if interval else rows[-1][0]
    return {"open_ns": first if interval else rows[0][0], "close_ns": end, "available_ns": end,
            "open": rows[0][1], "high": max(row[1] for row in rows), "low": min(row[1] for row in rows),
            "close": rows[-1][1], "volume": volume,
            "buy": sum(row[2] for row in rows if row[3] == 1) if sides else NO_SIDE,
            "sell": sum(row[2] for row in rows if row[3] == -1) if sides else NO_SIDE,
            "count": len(rows), "vwap": vwap, "first": rows[0][4], "last": rows[-1][4], "partial": 0, "filled": 0,
            "notional": notional}


def by_time(trades, interval, known_to, offset=0, fill=False, sides=True):
    groups = {}
    for row in trades:
        groups.setdefault((row[0] - offset) // interval * interval + offset, []).append(row)
    made = []
    for first, rows in groups.items():
        while fill and made and made[-1]["close_ns"] < first:
            made.append(filled(made[-1], interval, sides))
        if first + interval <= known_to:
            made.append(bar(rows, first, interval, sides))
    while fill and made and made[-1]["close_ns"] + interval <= known_to:
        made.append(filled(made[-1], interval, sides))
    return made


def filled(last, interval, sides):
    close, end = last["close"], last["close_ns"] + interval
    return last | {"open_ns": last["close_ns"], "close_ns": end, "available_ns": end, "open": close, "high": close,
                   "low": close, "volume": 0, "buy": 0 if sides else NO_SIDE, "sell": 0 if sides else NO_SIDE,
                   "count": 0, "vwap": NONE, "first": last["last"], "filled": 1, "notional": 0}


def by_sum(trades, step, weigh, sides=True):
    made, rows, total = [], [], 0
    for row in trades:
        rows.append(row)
        total += weigh(row)
        if total >= step:
            made.append(bar(rows, sides=sides))
            rows, total = [], 0
    return made, rows


def same(found, expected, what):
    for i, (a, b) in enumerate(zip(found, expected)):
        t.equal(a, b, f"{what}: bar {i}")
    t.equal(len(found), len(expected), f"{what}: number of bars")


# ---- generated mbo: three volumes, small blocks ---------------------------------------------------------
def mbo(key, price, size, action, side, ident=11):
    return struct.pack("<BBHIQQqIBBccQiI", 14, 0xA0, 1, ident, key, 1, price, size, 0, 0, action.encode(),
                       side.encode(), key, 0, 0)


rng = random.Random(7)
key, ordinal, trades, last_key, ends = t.T0, 0, [], 0, []
store = os.path.join(WORK, "store")
for volume in range(3):
    records = []
    for _ in range(8000):
        # Ties over every border, gaps, prices on both sides of zero.
        key += rng.choice((0, 0, 0, 1, 1000, SECOND, 0 if rng.random() < 0.99 else 900 * SECOND))
        price, size = rng.randrange(-50, 51) * 250_000_000, rng.randrange(0, 40)
        action, side = rng.choice("TTTAFC"), rng.choice("BAN")
        if rng.random() < 0.05:
            price = NONE
        records.append(mbo(key, price, size, action, side))
        if action == "T" and price != NONE:
            trades.append((key, price, size, {"B": 1, "A": -1, "N": 0}[side], ordinal))
        ordinal += 1
    path = os.path.join(WORK, f"{volume}.dbn")
    t.dbn_file(path, {"AAA": 11}, records)
    t.run([t.STOUP, "ingest", "--store", store, "--block", "64K", "--quiet", path])
    last_key = key
    ends.append((ordinal, key))
NAME = t.name_of("AAA")
daemon = t.Daemon(store)
for spec, interval in (("1s", SECOND), ("1m", 60 * SECOND), ("1h", 3600 * SECOND), ("7ms", 7_000_000)):
    same(bars(daemon.pool, NAME, spec), by_time(trades, interval, last_key), spec)
same(bars(daemon.pool, NAME, "1m", "fill"), by_time(trades, 60 * SECOND, last_key, fill=True), "1m filled")
same(bars(daemon.pool, NAME, "1h", "offset", 1800 * SECOND + 5),
     by_time(trades, 3600 * SECOND, last_key, offset=1800 * SECOND + 5), "1h from half past")
same(bars(daemon.pool, NAME, "1h", "end", last_key + 7200 * SECOND, "fill"),
     by_time(trades, 3600 * SECOND, last_key + 7200 * SECOND, fill=True), "1h up to a known time")
for spec, step, weigh in (("1t", 1, lambda row: 1), ("100t", 100, lambda row: 1), ("333v", 333, lambda row: row[2]),
                          ("5000v", 5000, lambda row: row[2]),
                          ("10000n", 10**13, lambda row: abs(row[1]) * row[2])):
    expected, rest = by_sum(trades, step, weigh)
    same(bars(daemon.pool, NAME, spec), expected, spec)
    whole = bars(daemon.pool, NAME, spec, "last")
    if rest:
        same(whole[-1:], [bar(rest) | {"partial": 1}], f"{spec}: the last one")
    same(whole[:len(expected)], expected, f"{spec} with the last one")
done = t.run([HELPER, daemon.pool, NAME, "1m", "backward"], expect=1)
t.true("STOUP_BACKWARD" in done.stderr, done.stderr)

# ---- the daemon dies in the middle of a bar, and another one comes -----------------------------------------
expected = by_time(trades, SECOND, last_key)
pool = daemon.pool
process = subprocess.Popen([HELPER, pool, NAME, "1s", "pause", "100"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                           text=True)
lines = [process.stdout.readline() for _ in range(101)]
t.equal(lines.pop(), "paused\n", "a helper that waits")
daemon.kill()
daemon = t.Daemon(store, pool=pool)
rest, _ = process.communicate("\n", timeout=100)
t.equal(process.returncode, 0, "exit status over a restart")
lines += rest.splitlines(True)
t.equal([line.split()[:11] for line in lines],
        [[str(row[name]) for name in COLUMNS[:11]] for row in expected], "bars over a restart")
daemon.stop()


# ---- the store grows under a cursor that follows: the pending bar goes on ------------------------------------
grown = os.path.join(WORK, "grown")


def grow(volume):
    t.run([t.STOUP, "ingest", "--store", grown, "--block", "64K", "--quiet", os.path.join(WORK, f"{volume}.dbn")])


grow(0)
daemon = t.Daemon(grown)
followers = {spec: subprocess.Popen([HELPER, daemon.pool, NAME, spec, "follow", "2"], stdin=subprocess.PIPE,
                                    stdout=subprocess.PIPE, text=True) for spec in ("1h", "1000t")}
found = {spec: [] for spec in followers}
for volume, (end, known_to) in enumerate(ends):
    there = [row for row in trades if row[4] < end]
    expected = {"1h": by_time(there, 3600 * SECOND, known_to), "1000t": by_sum(there, 1000, lambda row: 1)[0]}
    if volume:
        grow(volume)
    for spec, process in followers.items():
        if volume:
            process.stdin.write("\n")
            process.stdin.flush()
        for line in iter(process.stdout.readline, ""):
            if line == "end\n":
                break
            found[spec].append(line.split()[:11])
        t.equal(found[spec], [[str(row[name]) for name in COLUMNS[:11]] for row in expected[spec]],
                f"{spec}, {volume + 1} volumes")
for process in followers.values():
    process.communicate(timeout=60)
    t.equal(process.returncode, 0, "a helper that follows")
daemon.stop()

# ---- bars of a merge: both series in one order, ties by the order of the names -------------------------------
rows, ordinals, records = [], {11: 0, 12: 0}, []
key = t.T0
for _ in range(6000):
    key += rng.choice((0, 0, 0, 1, SECOND))
    ident, action = rng.choice((11, 12)), rng.choice("TTA")
    price, size = rng.randrange(-50, 51) * 250_000_000, rng.randrange(0, 40)
    records.append(mbo(key, price, size, action, "B", ident))
    if action == "T":
        rows.append((key, ident, ordinals[ident], price, size))
    ordinals[ident] += 1
path = os.path.join(WORK, "two.dbn")
t.dbn_file(path, {"AAA": 11, "BBB": 12}, records)
where = os.path.join(WORK, "two.store")
t.run([t.STOUP, "ingest", "--store", where, "--block", "64K", "--quiet", path])
daemon = t.Daemon(where)
for names, order in ((("AAA", "BBB"), (11, 12)), (("BBB", "AAA"), (12, 11))):
    merged = [(row[0], row[3], row[4], 1, row[2])
              for row in sorted(rows, key=lambda row: (row[0], order.index(row[1]), row[2]))]
    both = ",".join(map(t.name_of, names))
    same(bars(daemon.pool, both, "1m"), by_time(merged, 60 * SECOND, key), f"{names}, 1m")
    same(bars(daemon.pool, both, "7t"), by_sum(merged, 7, lambda row: 1)[0], f"{names}, 7t")
    same(bars(daemon.pool, both, "100v"), by_sum(merged, 100, lambda row: row[2])[0], f"{names}, 100v")
done = t.run([HELPER, daemon.pool, both, "1m", "backward"], expect=1)
t.true("STOUP_BACKWARD" in done.stderr, done.stderr)
daemon.stop()

# ---- a merge whose first series has no sizes ------------------------------------------------------
where = os.path.join(WORK, "sizes.store")
for name, price, size, text in (("none", "i64 scale=-2", None, "ts,price\n1700000000,1.00\n1700000003,2.00\n"),
                                ("whole", "i64 scale=-2", "u32", "ts,price,size\n1700000001,1.00,15\n1700000002,2.00,25\n"),
                                ("milli", "i64 scale=-2", "i64 scale=-3", "ts,price,size\n1700000001,1.00,1.5\n1700000002,2.00,2.5\n"),
                                ("real", "f64", None, "ts,price\n1700000000,1.00\n"),
                                ("float", "f64", "i64 scale=-3", "ts,price,size\n1700000001,1.00,1.5\n1700000002,2.00,2.5\n")):
    path = os.path.join(WORK, name)
    with open(path + ".csv", "w", encoding="ascii") as out:
        out.write(text)
    with open(path + ".schema", "w", encoding="ascii") as out:
        out.write(f"schema {name}\nkey ts\nts i64 time\nprice {price}\n" + (f"size {size}\n" if size else ""))
    t.run([t.STOUP, "ingest", "--quiet", "--store", where, "--series", f"S/S/{name}", "--schema", path + ".schema",
           "--map", "ts=ts,price=price" + (",size=size" if size else ""), path + ".csv"])
daemon = t.Daemon(where)
found = bars(daemon.pool, "S/S/none,S/S/whole", "1m", "last")
t.equal([(row["count"], row["volume"], row["notional"]) for row in found], [(4, 40, 6500)], "sizes of the second series")
done = t.run([HELPER, daemon.pool, "S/S/none,S/S/milli", "1m", "last"], expect=1)
t.true("would mix units" in done.stderr, done.stderr)
found = t.output([HELPER, daemon.pool, "S/S/real,S/S/float", "1m", "last", "f64"]).decode().split()
t.equal((float(found[7]), float(found[11])), (4.0, 6.5), "doubles are in natural units, whatever the scales")
daemon.stop()

# ---- the presets' schemas ------------------------------------------------------------------------------------
def ingested(name, text, *options):
    path = os.path.join(WORK, name)
    with open(path, "w", encoding="ascii") as out:
        out.write(text)
    where = os.path.join(WORK, name + ".store")
    t.run([t.STOUP, "ingest", "--store", where, "--quiet", *options, path])
    return t.Daemon(where)


base = 1_714_000_000_000
rows = [(base + 1, "100.5", "0.002", "True"), (base + 2, "101.25", "0.5", "False"), (base + 60_001, "99", "1", "True")]
daemon = ingested("BTCUSDT-aggTrades-2024-04.csv",
                  "agg_trade_id,price,quantity,first_trade_id,last_trade_id,transact_time,is_buyer_maker\n" +
                  "".join(f"{i},{price},{size},{i},{i},{ms},{maker}\n" for i, (ms, price, size, maker) in enumerate(rows)),
                  "--series", "B/X/aggTrades")
expected = [(ms * 10**6, int(float(price) * 10**9), round(float(size) * 10**8), -1 if maker == "True" else 1, i)
            for i, (ms, price, size, maker) in enumerate(rows)]
same(bars(daemon.pool, "B/X/aggTrades", "1m"), by_time(expected, 60 * SECOND, expected[-1][0]), "Binance")
same(bars(daemon.pool, "B/X/aggTrades", "0.5v"), by_sum(expected, 5 * 10**7, lambda row: row[2])[0], "Binance, 0.5v")
same(bars(daemon.pool, "B/X/aggTrades", "50n"), by_sum(expected, 50 * 10**17, lambda row: row[1] * row[2])[0],
     "Binance, 50n")
daemon.stop()

rows = [(1, "buy", 5, 2), (2, "sell", 7, 3), (3, "unknown", 6, 4)]
daemon = ingested("deribit_trades_2020-04-01_X.csv",
                  "exchange,symbol,timestamp,local_timestamp,id,side,price,amount\n" +
                  "".join(f"deribit,X,158569920000000{at},158569920000000{at},{at},{side},{price},{size}\n"
                          for at, side, price, size in rows), "--series", "D/X/trades")
expected = [((1585699200000000 + at) * 1000, price * 10**9, size * 10**8, {"buy": 1, "sell": -1, "unknown": 0}[side], i)
            for i, (at, side, price, size) in enumerate(rows)]
same(bars(daemon.pool, "D/X/trades", "3t"), [bar(expected)], "Tardis")
daemon.stop()

# Types: 1 new, 3 deleted, 4 and 5 executed, 6 crossed, 7 halted; of 4 and 5 the resting order's direction.
rows = [(1, 100, 999, 1), (4, 10, 1000, -1), (5, 20, 1010, 1), (3, 5, 1, 1), (6, 30, 990, -1), (7, 0, -1, -1)]
daemon = ingested("AAPL_2012-06-21_34200000_57600000_message_10.csv",
                  "".join(f"3420{i}.5,{kind},{i},{size},{price},{direction}\n"
                          for i, (kind, size, price, direction) in enumerate(rows)), "--series", "L/A/message")
series = bars(daemon.pool, "L/A/message", "3t")
t.equal(len(series), 1, "LOBSTER: bars")
t.equal([series[0][name] for name in ("open", "high", "low", "close", "volume", "buy", "sell", "first", "last")],
        [1000, 1010, 990, 990, 60 * 10**8, 10 * 10**8, 20 * 10**8, 1, 4], "LOBSTER")
daemon.stop()

# ---- floats ---------------------------------------------------------------------------------------------------
path = os.path.join(WORK, "float.csv")
values = [(1_700_000_000 + i // 3, rng.uniform(-3, 3), rng.uniform(0, 2)) for i in range(9000)]
with open(path, "w", encoding="ascii") as out:
    out.write("ts,px,qty\n" + "".join(f"{at},{price!r},{size!r}\n" for at, price, size in values))
where = os.path.join(WORK, "float.store")
t.run([t.STOUP, "ingest", "--store", where, "--quiet", "--block", "64K", "--series", "F/X/f", "--columns",
       "ts:time,px:f64,qty:f64", path])
daemon = t.Daemon(where)
found = [line.split() for line in t.output([HELPER, daemon.pool, "F/X/f", "10s", "f64", "last"]).decode().splitlines()]
groups = {}
for at, price, size in values:
    groups.setdefault(at // 10, []).append((price, size))
t.equal(len(found), len(groups), "bars of floats")
for line, (first, group) in zip(found, groups.items()):
    volume = notional = 0.0
    for price, size in group:
        volume += size
        notional += price * size
    prices = [price for price, _ in group]
    t.equal([int(line[0]), *map(float, line[3:8]), int(line[10]), float(line[11])],
            [first * 10 * SECOND, prices[0], max(prices), min(prices), prices[-1], volume, len(group), notional],
            "a bar of floats")
    t.true(math.isnan(float(line[8])), "no side")
done = t.run([HELPER, daemon.pool, "F/X/f", "10s"], expect=1)
t.true("stoup_bars_next_f64" in done.stderr, done.stderr)
daemon.stop()

# ---- a size below zero: what to do is said to who has no next call ---------------------------------------------
path = os.path.join(WORK, "below.csv")
with open(path, "w", encoding="ascii") as out:
    out.write("ts,price,size\n1700000000,1.5,1\n1700000001,1.5,-1\n1700000002,2.5,1\n")
where = os.path.join(WORK, "below.store")
t.run([t.STOUP, "ingest", "--store", where, "--quiet", "--series", "B/B/b", "--columns", "ts:time,price:price,size:i64", path])
daemon = t.Daemon(where)
done = t.run([t.STOUP, "cat", daemon.pool, "B/B/b", "--bars", "1m"], expect=1)
t.true("record 1 of the series has a size below zero" in done.stderr and "--at-ordinal" in done.stderr, done.stderr)
done = t.run([t.STOUP, "cat", daemon.pool, "B/B/b", "--bars", "1m", "--at-ordinal", "2:", "--select", "open,volume"], expect=0)
t.equal(done.stdout, "open,volume\n2.5,1\n", "behind it")
daemon.stop()

# ---- real files -------------------------------------------------------------------------------------------------
dbn = os.path.join(t.DATA, "dbn")
if not os.path.isdir(dbn):
    print("note: no real files: STOUP_DATA")
    raise SystemExit(0)
where = os.path.join(WORK, "real.store")
t.run([t.STOUP, "ingest", "--store", where, "--quiet", *(os.path.join(dbn, name) for name in (
    "futures-20240701.trades.dbn.zst", "futures-20240701.mbp-1.dbn.zst", "futures-20240701.ohlcv-1m.dbn.zst",
    "esh4-glbx-mdp3-20231225.mbo.dbn.zst"))])
daemon = t.Daemon(where)


def rows_of(series):
    head, *lines = t.output([t.STOUP, "cat", where + "/", series]).decode().splitlines()
    return [dict(zip(head.split(","), line.split(","))) for line in lines]


def ns(text):
    """Of 2024-07-01T23:58:01.218485389Z."""
    seconds = calendar.timegm(time.strptime(text[:19], "%Y-%m-%dT%H:%M:%S"))
    return seconds * SECOND + int(text[20:29])


def price_of(text):
    whole, _, decimals = text.partition(".")
    return int(whole + decimals.ljust(9, "0"))


# The vendor's bars of the minutes that the trades cover; the last of them is not over when the trades end.
vendor = {ns(row["ts_event"]): [price_of(row[name]) for name in ("open", "high", "low", "close")] + [int(row["volume"])]
          for row in rows_of("GLBX.MDP3/ESU4/ohlcv-1m")}
END = 1719878520 * SECOND
for name in ("trades", "mbp-1"):
    series = f"GLBX.MDP3/ESU4/{name}"
    made = bars(daemon.pool, series, "1m", "end", END)
    t.equal([row["open_ns"] for row in made], [END - i * 60 * SECOND for i in (4, 3, 2, 1)], f"{name}: minutes")
    for row in made:
        t.equal([row[column] for column in ("open", "high", "low", "close", "volume")], vendor[row["open_ns"]],
                f"{name}: the vendor's bar of {row['open_ns']}")
    single = bars(daemon.pool, series, "1t")
    t.equal((len(single), sum(row["close"] for row in single), sum(row["volume"] for row in single)),
            (120, 663482000000000, 253), f"{name}: totals of all trades")

# A day of orders, whose trades are counted out of the CSV.
orders = rows_of("GLBX.MDP3/ESH4/mbo")
trades = [(ns(row["ts_recv"]), price_of(row["price"]), int(row["size"]), {"B": 1, "A": -1, "N": 0}[row["side"]], i)
          for i, row in enumerate(orders) if row["action"] == "T" and row["price"]]
last_key = ns(orders[-1]["ts_recv"])
t.true(len(trades) > 100, f"trades among the orders: {len(trades)}")
for spec, interval in (("1m", 60 * SECOND), ("1h", 3600 * SECOND)):
    same(bars(daemon.pool, "GLBX.MDP3/ESH4/mbo", spec, "fill"), by_time(trades, interval, last_key, fill=True),
         f"orders, {spec}")
for spec, step, weigh in (("50t", 50, lambda row: 1), ("100v", 100, lambda row: row[2])):
    same(bars(daemon.pool, "GLBX.MDP3/ESH4/mbo", spec), by_sum(trades, step, weigh)[0], f"orders, {spec}")
daemon.stop()
