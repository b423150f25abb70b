# SPDX-License-Identifier: Apache-2.0
"""hftbacktest's events out of DBN, Tardis and Binance files: each rule against values worked out by hand, and both
orders of a feed that overtakes itself."""
import math
import os
import random
import struct

import lib_stoup as t

EXCH, LOCAL, BUY, SELL = 1 << 31, 1 << 30, 1 << 29, 1 << 28
DEPTH, TRADE, CLEAR, SNAPSHOT, ADD, CANCEL, MODIFY, FILL = 1, 2, 3, 4, 10, 11, 12, 13
BOTH = EXCH | LOCAL
UNDEFINED = 2**63 - 1
US = 1000
WORK = t.temp_dir()
count = 0


def fresh(name):
    global count
    count += 1
    return os.path.join(WORK, f"{count}-{name}")


def path_of(name, text):
    path = fresh(name)
    with open(path, "wb") as out:
        out.write(text.encode() if isinstance(text, str) else text)
    return path


def ingest(*arguments, expect=0):
    """The store and what was told, or the text of the failure."""
    store = fresh("store")
    done = t.run([t.STOUP, "ingest", "--store", store, "--to", "event64", "--quiet", *arguments], expect=expect)
    if expect:
        t.true(not os.path.exists(store), "what was refused leaves no store")
    return (store, done.stderr) if expect == 0 else done.stderr


def events(store, series):
    data = t.output([t.STOUP, "cat", store + "/", series, "--format", "npy"])
    start = 10 + struct.unpack_from("<H", data, 8)[0]
    return [row for row in struct.iter_unpack("<Qqqddqqd", data[start:])]


def check(found, expected, what):
    """Events without their two zero fields; NaN equals NaN."""
    def plain(rows):
        return [tuple("nan" if isinstance(v, float) and math.isnan(v) else v for v in row) for row in rows]
    full = [row + (0,) * (7 - len(row)) + (0.0,) for row in expected]
    for i, (a, b) in enumerate(zip(plain(found), plain(full))):
        t.equal(a, b, f"{what}: event {i}")
    t.equal(len(found), len(full), f"{what}: number of events")


def dbn(name, records, schema=0, symbols=None):
    path = fresh(name)
    t.dbn_file(path, symbols or {"AAA": 11}, records, schema)
    return path


def mbo(action, side, price, size, order_id=7, at=0, event=None, flags=128, ident=11):
    recv = t.T0 + at
    return struct.pack("<BBHIQQqIBBccQiI", 14, 0xA0, 1, ident, recv - 10 if event is None else event, order_id, price,
                       size, flags, 0, action.encode(), side.encode(), recv, 10, 0)


def trade(action, side, price, size, at=0, levels=(), rtype=0, ident=11, flags=128):
    length = 12 + 8 * len(levels)
    data = struct.pack("<BBHIQqIccBBQiI", length, rtype, 1, ident, t.T0 + at - 10, price, size, action.encode(),
                       side.encode(), flags, 0, t.T0 + at, 10, 0)
    return data + b"".join(struct.pack("<qqIIII", *level, 1, 1) for level in levels)


P = 10**9

# ---- DBN mbo ---------------------------------------------------------------------------------------------
path = dbn("all.mbo.dbn", [
    mbo("R", "N", UNDEFINED, 0, 0, at=0, event=t.T0 - 10**12, flags=8),
    mbo("A", "B", 4800 * P + P // 4, 5, 101, at=100),
    mbo("A", "A", 9007199254740993, 2, 102, at=200),
    mbo("M", "B", 4799 * P, 4, 101, at=300, flags=0),
    mbo("T", "A", -37 * P // 100, 1, 0, at=400),
    mbo("F", "B", 4799 * P, 1, 101, at=400),
    mbo("C", "B", 4799 * P, 1, 101, at=400),
    mbo("N", "N", UNDEFINED, 0, 0, at=500),
    mbo("T", "N", 1, 3, 0, at=600)])
store, told = ingest(path)
T = t.T0
check(events(store, "XTST.TEST/AAA/event64"), [
    (BOTH | CLEAR, T + 90, T + 100, math.nan, 0.0, 0, 8),     # the times of what follows
    (BOTH | BUY | ADD, T + 90, T + 100, 4800.25, 5.0, 101, 128),
    (BOTH | SELL | ADD, T + 190, T + 200, 9007199.254740993, 2.0, 102, 128),
    (BOTH | BUY | MODIFY, T + 290, T + 300, 4799.0, 4.0, 101, 0),
    (BOTH | SELL | TRADE, T + 390, T + 400, -0.37, 1.0, 0, 128),
    (BOTH | BUY | FILL, T + 390, T + 400, 4799.0, 1.0, 101, 128),
    (BOTH | BUY | CANCEL, T + 390, T + 400, 4799.0, 1.0, 101, 128),
    (BOTH | TRADE, T + 590, T + 600, 1e-9, 3.0, 0, 128)], "mbo")
t.true("1 record without an action left out" in told, told)

# A snapshot happens when it is sent, whatever the times of its orders.
path = dbn("snap.mbo.dbn", [mbo("A", "B", P, 1, 1, at=100, event=T - 5000, flags=0x28),
                            mbo("A", "B", P, 1, 2, at=100, event=T - 9000, flags=0x28), mbo("A", "B", P, 1, 3, at=200)])
check(events(ingest(path)[0], "XTST.TEST/AAA/event64"), [
    (BOTH | BUY | ADD, T + 100, T + 100, 1.0, 1.0, 1, 0x28), (BOTH | BUY | ADD, T + 100, T + 100, 1.0, 1.0, 2, 0x28),
    (BOTH | BUY | ADD, T + 190, T + 200, 1.0, 1.0, 3, 128)], "snapshot")

# ---- DBN trades, tbbo, mbp-1, mbp-10 -----------------------------------------------------------------------
path = dbn("t.trades.dbn", [trade("T", "B", 5 * P, 2, 100), trade("T", "A", 4 * P, 3, 200)], schema=4)
check(events(ingest(path)[0], "XTST.TEST/AAA/event64"),
      [(BOTH | BUY | TRADE, T + 90, T + 100, 5.0, 2.0), (BOTH | SELL | TRADE, T + 190, T + 200, 4.0, 3.0)], "trades")
NO = UNDEFINED
book = [trade("A", "B", 100 * P, 5, 100, [(100 * P, NO, 5, 0)], 1),
        trade("A", "A", 102 * P, 6, 200, [(100 * P, 102 * P, 5, 6)], 1),
        trade("A", "B", 101 * P, 1, 300, [(101 * P, 102 * P, 1, 6)], 1),   # a better bid: 100 leaves the view
        trade("T", "A", 101 * P, 1, 400, [(101 * P, 102 * P, 1, 6)], 1),   # the trade alone
        trade("C", "B", 101 * P, 1, 400, [(100 * P, 102 * P, 5, 6)], 1),
        trade("M", "A", 102 * P, 4, 500, [(100 * P, 102 * P, 5, 4)], 1),
        trade("R", "N", NO, 0, 600, [(NO, NO, 0, 0)], 1),
        trade("A", "B", 90 * P, 1, 700, [(90 * P, NO, 1, 0)], 1)]
expected = [(BOTH | BUY | DEPTH, T + 90, T + 100, 100.0, 5.0), (BOTH | SELL | DEPTH, T + 190, T + 200, 102.0, 6.0),
            (BOTH | BUY | DEPTH, T + 290, T + 300, 100.0, 0.0), (BOTH | BUY | DEPTH, T + 290, T + 300, 101.0, 1.0),
            (BOTH | SELL | TRADE, T + 390, T + 400, 101.0, 1.0), (BOTH | BUY | DEPTH, T + 390, T + 400, 101.0, 0.0),
            (BOTH | BUY | DEPTH, T + 390, T + 400, 100.0, 5.0), (BOTH | SELL | DEPTH, T + 490, T + 500, 102.0, 4.0),
            (BOTH | CLEAR, T + 590, T + 600, math.nan, 0.0), (BOTH | BUY | DEPTH, T + 690, T + 700, 90.0, 1.0)]
path = dbn("b.mbp-1.dbn", book, schema=1)
check(events(ingest(path)[0], "XTST.TEST/AAA/event64"), expected, "mbp-1")
# In two files the book goes on; in one with its own name the same.
one, two = dbn("b1.mbp-1.dbn", book[:3], schema=1), dbn("b2.mbp-1.dbn", book[3:], schema=1)
check(events(ingest("--series", "A/B/c", one, two)[0], "A/B/c"), expected, "two files, named")
ten = [[((100 - i) * P, (101 + i) * P, 10 + i, 20 + i) for i in range(10)],
       [((101 - i) * P, (102 + i) * P, 9 + i, 21 + i) for i in range(10)]]  # one tick up, sizes the same
path = dbn("b.mbp-10.dbn", [trade("A", "B", 100 * P, 1, 100 * (k + 1), levels, 10) for k, levels in enumerate(ten)],
           schema=2)
found = events(ingest(path)[0], "XTST.TEST/AAA/event64")
t.equal(len(found), 24, "ten levels a side, then one out and one in a side")
check(found[20:], [(BOTH | BUY | DEPTH, T + 190, T + 200, 91.0, 0.0), (BOTH | BUY | DEPTH, T + 190, T + 200, 101.0, 9.0),
                   (BOTH | SELL | DEPTH, T + 190, T + 200, 101.0, 0.0),
                   (BOTH | SELL | DEPTH, T + 190, T + 200, 111.0, 30.0)], "mbp-10")

# ---- a feed that overtakes itself, and one whose clock is behind -----------------------------------------------
randoms = random.Random(5)
for rounds in range(3):
    rows, at = [], 0
    for i in range(3000):
        at += randoms.choice((0, 0, 5, 40))
        rows.append((T + at + 1000, T + at + 1000 - randoms.randrange(0, 60), i))
    records = [mbo("A", "B", P, 1, i, event=event, at=recv - T) for recv, event, i in rows]
    store, _ = ingest(dbn("o.mbo.dbn", records))
    found = events(store, "XTST.TEST/AAA/event64")
    exch = [(e[1], e[5]) for e in found if e[0] & EXCH]
    local = [(e[2], e[5]) for e in found if e[0] & LOCAL]
    t.equal(exch, sorted((event, i) for _, event, i in rows), "exchange order, equal times as they came")
    t.equal(local, [(recv, i) for recv, _, i in rows], "local order")
    t.true(3000 < len(found) < 6000, f"most events stand once: {len(found)}")
    t.run([t.STOUP, "verify", store])
# The order of the array itself is that of hftbacktest's own converters: the earlier head first, of equal ones by exchange
# time the one that is known earlier.
path = dbn("w.mbo.dbn", [mbo("A", "B", P, 1, 2, at=20, event=T + 10), mbo("A", "B", P, 1, 1, at=30, event=T + 10),
                         mbo("A", "B", P, 1, 4, at=70, event=T + 60), mbo("A", "B", P, 1, 3, at=80, event=T + 50)])
first = path_of("trades.csv", "exchange,symbol,timestamp,local_timestamp,id,side,price,amount\n"
                f"d,X,{T // US + 1},{T // US + 3},1,buy,1,1\nd,X,{T // US + 1},{T // US + 2},2,buy,2,1\n")
check(events(ingest(first)[0], "d/X/event64"), [
    (LOCAL | BUY | TRADE, T + 1000, T + 2000, 2.0, 1.0), (BOTH | BUY | TRADE, T + 1000, T + 3000, 1.0, 1.0),
    (EXCH | BUY | TRADE, T + 1000, T + 2000, 2.0, 1.0)], "equal exchange times")
check(events(ingest(path)[0], "XTST.TEST/AAA/event64"), [
    (BOTH | BUY | ADD, T + 10, T + 20, 1.0, 1.0, 2, 128), (BOTH | BUY | ADD, T + 10, T + 30, 1.0, 1.0, 1, 128),
    (EXCH | BUY | ADD, T + 50, T + 80, 1.0, 1.0, 3, 128), (BOTH | BUY | ADD, T + 60, T + 70, 1.0, 1.0, 4, 128),
    (LOCAL | BUY | ADD, T + 50, T + 80, 1.0, 1.0, 3, 128)], "woven")
path = dbn("s.mbo.dbn", [mbo("A", "B", P, 1, 1, at=100, event=T + 100), mbo("A", "B", P, 1, 2, at=200, event=T + 450),
                         mbo("A", "B", P, 1, 3, at=500, event=T + 490)])
store, told = ingest(path)
check(events(store, "XTST.TEST/AAA/event64"), [
    (BOTH | BUY | ADD, T + 100, T + 350, 1.0, 1.0, 1, 128), (BOTH | BUY | ADD, T + 450, T + 450, 1.0, 1.0, 2, 128),
    (BOTH | BUY | ADD, T + 490, T + 750, 1.0, 1.0, 3, 128)], "moved")
t.true("moved 250 ns later" in told and "s.mbo.dbn, offset" in told, told)
check(events(ingest(path, "--base-latency", "10ns")[0], "XTST.TEST/AAA/event64")[1:2],
      [(BOTH | BUY | ADD, T + 450, T + 460, 1.0, 1.0, 2, 128)], "and so much more")
text = ingest(path, "--max-shift", "249ns", expect=1)
t.true("250 ns before the exchange's" in text and "--max-shift" in text, text)

# ---- Tardis ------------------------------------------------------------------------------------------------------
S = T // US
trades = path_of("trades.csv", "exchange,symbol,timestamp,local_timestamp,id,side,price,amount\n" + "".join(
    f"deribit,BTC-PERPETUAL,{S + i},{S + i + 7},x{i},{side},6428.5,{i}.25\n"
    for i, side in enumerate(("buy", "sell", "unknown"))))
depth = path_of("depth.csv", "exchange,symbol,timestamp,local_timestamp,is_snapshot,side,price,amount\n" + "".join(
    f"deribit,BTC-PERPETUAL,{S + at},{S + at + 7},{snapshot},{side},{price},{amount}\n"
    for at, snapshot, side, price, amount in (
        (0, "true", "ask", 6429, 10), (0, "true", "ask", 6430, 20), (0, "true", "bid", 6428, 30),
        (0, "true", "bid", 6427.5, 40), (1, "false", "bid", 6428, 0), (2, "true", "bid", 6420, 1),
        (3, "true", "ask", 6440, 2), (3, "true", "bid", 6410, 5))))
store, _ = ingest(trades, depth)
E = S * US
check(events(store, "deribit/BTC-PERPETUAL/event64"), [
    (BOTH | BUY | TRADE, E, E + 7000, 6428.5, 0.25),               # the file that was given first
    (BOTH | BUY | CLEAR, E, E + 7000, 6427.5, 0.0), (BOTH | BUY | SNAPSHOT, E, E + 7000, 6428.0, 30.0),
    (BOTH | BUY | SNAPSHOT, E, E + 7000, 6427.5, 40.0), (BOTH | SELL | CLEAR, E, E + 7000, 6430.0, 0.0),
    (BOTH | SELL | SNAPSHOT, E, E + 7000, 6429.0, 10.0), (BOTH | SELL | SNAPSHOT, E, E + 7000, 6430.0, 20.0),
    (BOTH | SELL | TRADE, E + 1000, E + 8000, 6428.5, 1.25), (BOTH | BUY | DEPTH, E + 1000, E + 8000, 6428.0, 0.0),
    (BOTH | TRADE, E + 2000, E + 9000, 6428.5, 2.25), (BOTH | BUY | CLEAR, E + 2000, E + 9000, 6420.0, 0.0),
    (BOTH | BUY | SNAPSHOT, E + 2000, E + 9000, 6420.0, 1.0), (BOTH | BUY | CLEAR, E + 3000, E + 10000, 6410.0, 0.0),
    (BOTH | BUY | SNAPSHOT, E + 3000, E + 10000, 6410.0, 5.0), (BOTH | SELL | CLEAR, E + 3000, E + 10000, 6440.0, 0.0),
    (BOTH | SELL | SNAPSHOT, E + 3000, E + 10000, 6440.0, 2.0)], "Tardis")

# ---- Binance -----------------------------------------------------------------------------------------------------
M = T // 10**6 * 10**6
MS = T // 10**6
expected = [(BOTH | SELL | TRADE, M, M + 5000, 100.5, 0.1), (BOTH | BUY | TRADE, M + 10**6, M + 10**6 + 5000, 100.25, 0.2)]
for name, text in (
        ("futures.csv", f"id,price,qty,quote_qty,time,is_buyer_maker\n1,100.5,0.1,1,{MS},true\n2,100.25,0.2,1,{MS + 1},false\n"),
        ("spot.csv", f"1,100.5,0.1,1,{MS},True,True\n2,100.25,0.2,1,{MS + 1},False,True\n"),
        ("spot-us.csv", f"1,100.5,0.1,1,{MS}000,True,True\n2,100.25,0.2,1,{MS + 1}000,False,True\n"),
        ("agg.csv", f"agg_trade_id,price,quantity,first_trade_id,last_trade_id,transact_time,is_buyer_maker\n"
                    f"1,100.5,0.1,1,2,{MS},true\n2,100.25,0.2,3,4,{MS + 1},false\n"),
        ("agg-old.csv", f"1,100.5,0.1,1,2,{MS},true\n2,100.25,0.2,3,4,{MS + 1},false\n"),
        ("agg-spot.csv", f"1,100.5,0.1,1,2,{MS},True,True\n2,100.25,0.2,3,4,{MS + 1},False,True\n")):
    store, _ = ingest("--series", "B/BTC/e", "--feed-latency", "5us", path_of(name, text))
    check(events(store, "B/BTC/e"), expected, name)
text = "update_id,best_bid_price,best_bid_qty,best_ask_price,best_ask_qty,transaction_time,event_time\n"
text += f"1,100,5,101,6,{MS},{MS + 3}\n2,100,5,101,7,{MS + 1},{MS + 3}\n3,99,1,101,7,{MS + 2},{MS + 3}\n"
store, _ = ingest("--series", "B/BTC/e", "--feed-latency", "0", path_of("ticker.csv", text))
check(events(store, "B/BTC/e"), [(BOTH | BUY | DEPTH, M, M, 100.0, 5.0), (BOTH | SELL | DEPTH, M, M, 101.0, 6.0),
                                 (BOTH | SELL | DEPTH, M + 10**6, M + 10**6, 101.0, 7.0),
                                 (BOTH | BUY | DEPTH, M + 2 * 10**6, M + 2 * 10**6, 100.0, 0.0),
                                 (BOTH | BUY | DEPTH, M + 2 * 10**6, M + 2 * 10**6, 99.0, 1.0)], "bookTicker")

# ---- refused, and nothing is stored -------------------------------------------------------------------------------
spot = path_of("spot.csv", f"1,100.5,0.1,1,{MS},True,True\n")
head = "exchange,symbol,timestamp,local_timestamp,id,side,price,amount\n"
for arguments, words in (
        ([spot, "--series", "A/B/c"], ("--feed-latency", "Binance trades")),
        ([spot, "--feed-latency", "1ms"], ("--series",)),
        ([path_of("x.csv", "a,b\n1,2\n")], ("these become events",)),
        ([path_of("x.csv", head + f"d,X,{S},{S},1,buy,1.2.3,1\n")], ("x.csv: line 2, column 7 (price): \"1.2.3\"",)),
        ([path_of("x.csv", head + f"d,X,{S},{S},1,long,1,1\n")], ("line 2, column 6 (side)", "buy, sell or unknown")),
        ([path_of("x.csv", head + f"d,X,{S},{S},1,buy,1,-1\n")], ("a quantity below zero",)),
        ([path_of("x.csv", head + f"d,X,{S},{S},1,buy,1\n")], ("line 2: 7 columns, 8",)),
        ([path_of("x.csv", head + f"d,X,{S},{S},1,buy,1,1\nd,Y,{S},{S},1,buy,1,1\n"), "--series", "A/B/c"],
         ("another symbol", "leave --series out")),
        ([dbn("x.dbn", [mbo("A", "B", UNDEFINED, 1)])], ("has no price", "x.dbn, offset")),
        ([dbn("x.dbn", [mbo("A", "B", P, 2**32 - 1)])], ("has no size",)),
        ([dbn("x.dbn", [mbo("A", "B", P, 1, event=2**64 - 1)])], ("has no time",)),
        ([dbn("x.dbn", [mbo("A", "X", P, 1)])], ("the side is not A, B or N",)),
        ([dbn("x.dbn", [mbo("Q", "B", P, 1)])], ("the action is not",)),
        ([dbn("x.dbn", [mbo("A", "B", P, 1), mbo("A", "B", P, 1, ident=12)], symbols={"A": 11, "B": 12}), "--series",
          "A/B/c"], ("instruments 11 and 12", "leave --series out")),
        ([dbn("x.dbn", [mbo("A", "B", P, 1)]), dbn("y.dbn", book, schema=1)], ("of mbo and of mbp-1", "one kind"))):
    text = ingest(*arguments, expect=1)
    t.true(all(word in text for word in words), f"{words}: {text}")
for arguments, word in ((["--sort", spot], "leave --sort out"), (["--map", "a=b", spot], "--series and --allow-partial"),
                        (["--one-stream", spot], "--series and --allow-partial")):
    t.true(word in ingest(*arguments, expect=2), word)
t.true("are for --to event64" in t.run([t.STOUP, "ingest", "--store", "x", "--max-shift", "1s", spot], 2).stderr, "alone")

# ---- the clear that opens a series says nothing of its clocks --------------------------------------------------------
late = [mbo("R", "N", UNDEFINED, 0, 0, at=0, event=T + 5 * 10**9), mbo("A", "B", P, 1, 1, at=10**10),
        mbo("A", "B", P, 1, 2, at=10**10 + 5)]
store, told = ingest(dbn("late.mbo.dbn", late))
t.equal(told, "", "no local time is moved for a time that the clear does not keep")
check(events(store, "XTST.TEST/AAA/event64"), [
    (BOTH | CLEAR, T + 10**10 - 10, T + 10**10, math.nan, 0.0, 0, 128),
    (BOTH | BUY | ADD, T + 10**10 - 10, T + 10**10, 1.0, 1.0, 1, 128),
    (BOTH | BUY | ADD, T + 10**10 - 5, T + 10**10 + 5, 1.0, 1.0, 2, 128)], "opening clear")

# ---- a file is of one unit, whichever ------------------------------------------------------------------------------
for unit, ns in (("ms", 10**6), ("us", 1000), ("ns", 1)):
    at = 1585699200245 * 10**6
    store, _ = ingest(path_of("x.csv", head + f"d,X,{at // ns},{(at + 10**9) // ns},1,buy,1,2\n"))
    check(events(store, "d/X/event64"), [(BOTH | BUY | TRADE, at, at + 10**9, 1.0, 2.0)], unit)

# ---- columns by name, in any order; a snapshot whose levels are not sorted is cleared down to its farthest ------------
text = "amount,price,side,is_snapshot,local_timestamp,timestamp,symbol,exchange\n" + "".join(
    f"1,{price},{side},true,{S + 1},{S},X,d\n" for side, price in (("ask", 12), ("ask", 14), ("bid", 9), ("ask", 13),
                                                                ("bid", 7), ("bid", 8)))
found = events(ingest(path_of("x.csv", text))[0], "d/X/event64")
t.equal([(row[0] & 0xF00000FF & ~BOTH, row[3]) for row in found],
        [(BUY | CLEAR, 7.0), (BUY | SNAPSHOT, 9.0), (BUY | SNAPSHOT, 7.0), (BUY | SNAPSHOT, 8.0),
         (SELL | CLEAR, 14.0), (SELL | SNAPSHOT, 12.0), (SELL | SNAPSHOT, 14.0), (SELL | SNAPSHOT, 13.0)], "snapshot")

# ---- nothing is told twice -----------------------------------------------------------------------------------------------
day = [path_of(f"day{k}.csv", head + "".join(f"d,X,{S + k * 10 + i},{S + k * 10 + i},1,buy,{k}{i},1\n" for i in range(3)))
       for k in range(3)]
other = path_of("other.csv", head + f"d,Y,{S + 100},{S + 100},1,buy,1,1\n")
agg = path_of("agg.csv", f"1,100.5,0.1,1,2,{MS},True,True\n")
binance = ["--series", "A/B/c", "--feed-latency", "1ms"]
for arguments, words in (
        ([day[0], day[0]], ("would be there twice", "day0.csv")),
        ([day[0], day[2], path_of("part.csv", head + f"d,X,{S + 1},{S + 1},1,buy,1,1\n")], ("would be there twice", "part.csv")),
        ([other, other], ("would be there twice",)),
        (["--series", "A/B/c", day[0], other], ("d/X", "d/Y", "leave --series out")),
        ([*binance, spot, agg], ("Binance trades and of Binance aggTrades", "the same trades")),
        ([*binance, spot, day[0]], ("Binance trades and of Tardis trades",)),
        (["--series", "A/B/c", dbn("x.dbn", [mbo("A", "B", P, 1)]), dbn("y.dbn", [mbo("A", "B", P, 1, at=9, ident=12)],
                                                                    symbols={"B": 12})], ("instrument 11", "instrument 12")),
        ([dbn("x.dbn", [mbo("A", "B", P, 1), mbo("A", "B", P, 1, at=1)[:2] + b"\x02\0" + mbo("A", "B", P, 1, at=1)[4:]])],
         ("publishers 1 and 2", "of one venue")),
        ([path_of("x.csv", head[:-1] + ",price\n" + f"d,X,{S},{S},1,buy,1,2,3\n")], ("columns 7 and 9", "price")),
        ([path_of("x.csv", head.replace("local_timestamp,", "") + f"d,X,{S},1,buy,1,2\n")],
         ("Tardis trades", "without local_timestamp"))):
    text = ingest(*arguments, expect=1)
    t.true(all(word in text for word in words), f"{words}: {text}")
found = events(ingest(day[2], day[0], day[1])[0], "d/X/event64")
t.equal([e[3] for e in found], [float(f"{k}{i}") for k in range(3) for i in range(3)], "days in any order")
both = [path_of("a.csv", f"1,1.5,1,1,{MS},True,True\n"), path_of("b.csv", f"2,2.5,1,1,{MS},True,True\n3,3.5,1,1,{MS + 1},True,True\n")]
t.equal([e[3] for e in events(ingest(*binance, *both)[0], "A/B/c")], [1.5, 2.5, 3.5], "files that touch")

# ---- a book of changes keeps the order of its feed, in both walks -------------------------------------------------------
ticker = "update_id,best_bid_price,best_bid_qty,best_ask_price,best_ask_qty,transaction_time,event_time\n"
rows = [(100, 200, 0), (101, 200, 10), (102, 200, 4), (103, 200, 20)]
store, told = ingest(*binance, path_of("x.csv", ticker + "".join(f"1,{b},1,{a},1,{MS + at},0\n" for b, a, at in rows)))
t.true("1 changes of the book" in told, told)
found = events(store, "A/B/c")
for flag, when in ((EXCH, 1), (LOCAL, 2)):
    book, last = {}, 0
    for row in found:
        if row[0] & flag and row[0] & BUY:
            t.true(row[when] >= last, "in order")
            last = row[when]
            book[row[3]] = row[4]
    t.equal({px for px, qty in book.items() if qty}, {103.0}, "one best bid")
t.equal([row[1] for row in found if row[3] == 102.0][0], (MS + 10) * 10**6, "moved to the time of the one before")
files = [path_of(f"{k}.csv", ticker + f"1,{100 + k},1,200,1,{MS + 10_000 * k},0\n") for k in range(2)]
t.true("steps back from" in ingest(*binance, files[1], files[0], expect=1), "files in the wrong order")
crossed = [trade("A", "B", 100 * P, 1, 100, [(100 * P, NO, 1, 0)], 1), trade("R", "N", NO, 0, 90, [(NO, NO, 0, 0)], 1),
           trade("A", "B", 90 * P, 1, 110, [(90 * P, NO, 1, 0)], 1)]
check(events(ingest("--max-shift", "1ms", dbn("r.mbp-1.dbn", crossed, schema=1))[0], "XTST.TEST/AAA/event64"), [
    (BOTH | BUY | DEPTH, T + 90, T + 100, 100.0, 1.0), (BOTH | CLEAR, T + 90, T + 100, math.nan, 0.0),
    (BOTH | BUY | DEPTH, T + 100, T + 110, 90.0, 1.0)], "a clear behind what it clears")

# ---- several symbols of one file ------------------------------------------------------------------------------------
rows = "".join(f"d,{'XY'[i % 2]},{S + i},{S + i},1,buy,{i},1\n" for i in range(10))
store, _ = ingest(path_of("x.csv", head + rows))
t.equal([e[3] for e in events(store, "d/Y/event64")], [1.0, 3.0, 5.0, 7.0, 9.0], "each symbol its own series")

# ---- real files ------------------------------------------------------------------------------------------------------
if t.DATA:
    store, _ = ingest(os.path.join(t.DATA, "dbn/esh4-glbx-mdp3-20231225.mbo.dbn.zst"))
    found = events(store, "GLBX.MDP3/ESH4/event64")
    t.equal(sum(1 for e in found if e[0] & LOCAL), 68792, "all orders")
    t.equal(sum(round(e[3] * 100) for e in found if e[0] & LOCAL), 33036224750, "sum of price")
    t.equal(sum(int(e[4]) for e in found if e[0] & LOCAL), 192312, "sum of size")
    kinds = {kind: sum(1 for e in found if e[0] & LOCAL and e[0] & 255 == kind) for kind in (ADD, CANCEL, MODIFY, TRADE, FILL)}
    t.equal(kinds, {ADD: 29216, CANCEL: 17999, MODIFY: 12233, TRADE: 2973, FILL: 6371}, "kinds")
    store, _ = ingest(os.path.join(t.DATA, "csv/tardis-incremental_book_L2-BTC-PERPETUAL.csv"))
    found = events(store, "deribit/BTC-PERPETUAL/event64")
    t.equal([e[0] & 255 for e in found], [CLEAR] + [SNAPSHOT] * 15 if len(found) == 16 else [], "one side's snapshot")
