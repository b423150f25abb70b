# SPDX-License-Identifier: Apache-2.0
"""ITCH 5.0: a day against an independent naive book, every message type's bytes, dates, filters, dirty files."""
import gzip
import os
import struct

import lib_itch as i
import lib_stoup as t

WORK = t.temp_dir()
HOUR = 3600 * 10**9
# 2019-01-30 00:00 in New York is 05:00 UTC
MIDNIGHT = 1548824400 * 10**9
count = 0


def path_of(name, data):
    path = os.path.join(WORK, name)
    with open(path, "wb") as out:
        out.write(data)
    return path


def ingest(data, *options, name="01302019.NASDAQ_ITCH50", expect=0):
    """The store and what was told; or, where it is to fail, the error."""
    global count
    count += 1
    store = os.path.join(WORK, f"store{count}")
    done = t.run([t.STOUP, "ingest", "--store", store, "--quiet", *options, path_of(name, data)], expect=expect)
    return (store, done.stderr) if expect == 0 else done.stderr


def series(store):
    out = t.run([t.STOUP, "ls", "--json", store]).stdout
    import json
    return {s["name"]: s["records"] for s in json.loads(out)["series"]}


def rows(store, name, layout):
    data = t.output([t.STOUP, "cat", store + "/", name, "--format", "npy"])
    names, size, raw = i.npy_rows(data)
    t.equal(size, layout.size, f"bytes of a record of {name}")
    return [layout.unpack_from(raw, n) for n in range(0, len(raw), size)]


def text(store, name):
    return t.run([t.STOUP, "cat", store + "/", name]).stdout.splitlines()


def first_difference(found, expected, what):
    t.equal(len(found), len(expected), f"records of {what}")
    for n, (a, b) in enumerate(zip(found, expected)):
        if a != b:
            t.fail(f"{what}, record {n}: {a}, expected {b}")


def check_day(day, store, wanted):
    have = series(store)
    for stock in wanted:
        first_difference(rows(store, f"NASDAQ.ITCH/{stock}/itch-mbo", i.MBO), day.mbo[stock], f"{stock} orders")
        if day.trades[stock]:
            first_difference(rows(store, f"NASDAQ.ITCH/{stock}/itch-trade", i.TRADE), day.trades[stock],
                             f"{stock} trades")
    for stock in set(day.mbo) - set(wanted):
        t.true(not any(f"/{stock}/" in name for name in have), f"{stock} was not asked for, and is there")


def book_of(records):
    """The book by the rule that the documents give."""
    book = {}
    for r in records:
        price, order_price, size, left, before = r[5:10]
        kind, side = r[13].decode(), r[14].decode()
        if kind not in "AF":
            book[side, order_price] = book.get((side, order_price), 0) - (before if kind == "U" else before - left)
        if kind in "AFU":
            book[side, price] = book.get((side, price), 0) + size
    return {level: shares for level, shares in book.items() if shares}


def test_day():
    stocks = ["AAPL", "MSFT", "ZVZZT", "BRK.A", "A"]
    for seed in range(3):
        day = i.Day(seed, 6000, stocks, MIDNIGHT)
        data = i.framed(day.messages)
        store, told = ingest(data)
        t.equal(told, "", "a clean day tells nothing")
        check_day(day, store, stocks)
        for stock in stocks:
            t.equal(book_of(rows(store, f"NASDAQ.ITCH/{stock}/itch-mbo", i.MBO)), day.levels(stock),
                    f"final book of {stock}")
    store, _ = ingest(gzip.compress(data), name="01302019.NASDAQ_ITCH50.gz")
    check_day(day, store, stocks)
    # Without lengths, known by its bytes; and only some stocks.
    store, _ = ingest(b"".join(day.messages), "--date", "2019-01-30", name="bare.bin")
    check_day(day, store, stocks)
    store, _ = ingest(data, "--symbols", "MSFT,BRK*")
    check_day(day, store, ["MSFT", "BRK.A"])
    # Volume without counting twice, as the documents say.
    for stock in stocks:
        told = {r[2] for r in day.trades[stock] if r[9] == b"B"}
        volume = sum(r[4] for r in day.trades[stock] if r[11] == b"Y" and r[2] not in told)
        have = rows(store, f"NASDAQ.ITCH/{stock}/itch-trade", i.TRADE) if stock in ("MSFT", "BRK.A") else None
        if have:
            gone = {r[2] for r in have if r[9] == b"B"}
            t.equal(sum(r[4] for r in have if r[11] == b"Y" and r[2] not in gone), volume, f"volume of {stock}")


test_day()
print("ok: days against a naive book")


# ---- every type's bytes ---------------------------------------------------------------------------------------

def hexed(kind, tail, locate="0007", tracking="0102", ns="22c5c98f3bb4"):
    """A message out of hexadecimal."""
    return kind.encode() + bytes.fromhex(locate + tracking + ns + tail)


NS = 0x22c5c98f3bb4  # 38,232,885,509,044 ns: 10:37:12.885509044
TS = "2019-01-30T15:37:12.885509044Z"
STOCK = b"AAPL    ".hex()
# type, rest of the message in hex, series, the line that cat prints behind ts (seq is 2: a directory message comes first)
GOLDEN = [
    ("S", "51", "MARKET/itch-system", "2,7,258,Q"),
    ("H", STOCK + "54" "20" + b"    ".hex(), "MARKET/itch-action", "2,7,258,AAPL,T,,"),
    ("H", STOCK + "48" "20" + b"T1  ".hex(), "MARKET/itch-action", "2,7,258,AAPL,H,,T1"),
    ("Y", STOCK + "31", "MARKET/itch-regsho", "2,7,258,AAPL,1"),
    ("L", b"GSCO".hex() + STOCK + "594e41", "MARKET/itch-participant", "2,7,258,GSCO,AAPL,Y,N,A"),
    ("V", "0000003dfd240000" "000000399bfec160" "00000033f1cd0f80", "MARKET/itch-mwcb-levels",
     "2,7,258,2662.4,2474.303,2231.0008"),
    ("W", "32", "MARKET/itch-mwcb-status", "2,7,258,2"),
    ("K", STOCK + "00009394" "41" "0002bf20", "MARKET/itch-ipo", "2,7,258,AAPL,37780,A,18"),
    ("J", STOCK + "000f4240" "0010c8e0" "000dbba0" "00000001", "MARKET/itch-luld", "2,7,258,AAPL,100,110,90,1"),
    ("h", STOCK + "51" "48", "MARKET/itch-halt", "2,7,258,AAPL,Q,H"),
    ("A", "0000000100000002" "42" "00000064" + STOCK + "00030d40", "AAPL/itch-mbo",
     "2,4294967298,,,20,20,100,100,0,,7,258,A,B,"),
    ("F", "0000000100000002" "53" "00000064" + STOCK + "00030d41" + b"GSCO".hex(), "AAPL/itch-mbo",
     "2,4294967298,,,20.0001,20.0001,100,100,0,GSCO,7,258,F,S,"),
    ("P", "0000000000000000" "42" "00000064" + STOCK + "00030d40" "00000000000003e9", "AAPL/itch-trade",
     "2,1001,0,100,20,,7,258,P,B,Y,"),
    ("Q", "0000000100000000" + STOCK + "00030d40" "00000000000003e9" "43", "AAPL/itch-trade",
     "2,1001,,4294967296,20,,7,258,Q,,Y,C"),
    ("B", "00000000000003e9", "AAPL/itch-trade", "2,1001,,,,,7,258,B,,,"),
    ("I", "0000000000000064" "00000000000000c8" "42" + STOCK + "00030d40" "00030d41" "00030d42" "4f" "4c",
     "AAPL/itch-imbalance", "2,7,258,100,200,B,20,20.0001,20.0002,O,L"),
    ("N", STOCK + "42", "MARKET/itch-rpii", "2,7,258,AAPL,B"),
    ("O", STOCK + "59" "00030d40" "000f4240" "00061a80" "000022c5c98f3bb4" "00057e40" "0006b6c0",
     "MARKET/itch-listing", "2,7,258,AAPL,Y,20,100,40,38232885509044,36,44"),
]
# Events of an order of 100 shares at 20 (message 2); the event is message 3.
GOLDEN_EVENTS = [
    ("E", "0000000100000002" "0000001e" "00000000000003e9", "3,4294967298,,1001,20,20,30,70,100,GSCO,7,258,E,B,Y",
     "3,1001,4294967298,30,20,GSCO,7,258,E,B,Y,"),
    ("C", "0000000100000002" "00000064" "00000000000003e9" "4e" "00030d43",
     "3,4294967298,,1001,20.0003,20,100,0,100,GSCO,7,258,C,B,N", "3,1001,4294967298,100,20.0003,GSCO,7,258,C,B,N,"),
    ("X", "0000000100000002" "00000001", "3,4294967298,,,20,20,1,99,100,GSCO,7,258,X,B,", None),
    ("D", "0000000100000002", "3,4294967298,,,20,20,100,0,100,GSCO,7,258,D,B,", None),
    ("U", "0000000100000002" "ffffffffffff0001" "000000c8" "00030d44",
     "3,18446744073709486081,4294967298,,20.0004,20,200,200,100,GSCO,7,258,U,B,", None),
]


def test_golden():
    first = i.directory(7, NS, "AAPL", lot=100, leverage=3, tracking=258)
    lengths = dict(zip("SRHYLVWKJhAFECXDUPQBINO", [12, 39, 25, 20, 26, 35, 12, 28, 35, 21, 36, 40, 31, 36, 23, 19, 35,
                                                   44, 40, 19, 50, 20, 48]))
    seen = {"R"}
    for kind, tail, name, line in GOLDEN:
        message = hexed(kind, tail)
        t.equal(len(message), lengths[kind], f"bytes of {kind}")
        store, _ = ingest(i.framed([first, message]))
        t.equal(text(store, f"NASDAQ.ITCH/{name}")[-1], f"{TS},{line}", f"type {kind}")
        seen.add(kind)
    t.equal(text(store, "NASDAQ.ITCH/MARKET/itch-directory")[1],
            f"{TS},1,7,258,AAPL,Q,N,100,N,C,Z,P,N,,1,N,3,N", "type R")
    opened = i.add(7, NS, 4294967298, "B", 100, "AAPL", 200000, "GSCO", tracking=258)
    for kind, tail, line, trade in GOLDEN_EVENTS:
        message = hexed(kind, tail)
        t.equal(len(message), lengths[kind], f"bytes of {kind}")
        store, _ = ingest(i.framed([first, opened, message]))
        t.equal(text(store, "NASDAQ.ITCH/AAPL/itch-mbo")[-1], f"{TS},{line}", f"type {kind}")
        have = text(store, "NASDAQ.ITCH/AAPL/itch-trade")[1:] if trade else []
        t.equal(have, [f"{TS},{trade}"] if trade else [], f"trade of type {kind}")
        seen.add(kind)
    t.equal(seen, set(lengths), "all types were tried")


test_golden()
print("ok: every type's bytes")


# ---- days -----------------------------------------------------------------------------------------------------

def test_dates():
    evening = 20 * HOUR  # in summer this is the next day in UTC
    message = i.framed([i.system(evening, "C")])
    cases = [  # name, options, time
        ("01302019.NASDAQ_ITCH50", [], "2019-01-31T01:00:00"),
        ("20190130.NASDAQ_ITCH50", [], "2019-01-31T01:00:00"),
        ("S010220-v50.txt", [], "2020-01-03T01:00:00"),
        ("07012019.NASDAQ_ITCH50", [], "2019-07-02T00:00:00"),
        ("03082019.NASDAQ_ITCH50", [], "2019-03-09T01:00:00"),  # the Friday before the clocks change
        ("03112019.NASDAQ_ITCH50", [], "2019-03-12T00:00:00"),  # the Monday after
        ("03102019.NASDAQ_ITCH50", [], "2019-03-11T01:00:00"),  # the Sunday itself: time that has passed
        ("11012019.NASDAQ_ITCH50", [], "2019-11-02T00:00:00"),
        ("11032019.NASDAQ_ITCH50", [], "2019-11-04T00:00:00"),
        ("11042019.NASDAQ_ITCH50", [], "2019-11-05T01:00:00"),
        ("04012005.NASDAQ_ITCH50", [], "2005-04-02T01:00:00"),  # the rules before 2007
        ("04042005.NASDAQ_ITCH50", [], "2005-04-05T00:00:00"),
        ("10312005.NASDAQ_ITCH50", [], "2005-11-01T01:00:00"),
        ("01302019.NASDAQ_ITCH50", ["--date", "2020-02-29"], "2020-03-01T01:00:00"),
        ("01302019.NASDAQ_ITCH50", ["--time-zone", "-04:00"], "2019-01-31T00:00:00"),
        ("01302019.NASDAQ_ITCH50", ["--time-zone", "UTC"], "2019-01-30T20:00:00"),
    ]
    for name, options, time in cases:
        store, told = ingest(message, *options, name=name)
        t.equal(told, "", f"{name} {options}")
        t.equal(text(store, "NASDAQ.ITCH/MARKET/itch-system")[1], f"{time}.000000000Z,1,0,0,C", f"{name} {options}")


# ---- dirty files ----------------------------------------------------------------------------------------------

def cut(data, n):
    return data[:n]


def test_dirty():
    d = i.directory(1, 5, "AAPL")
    a = i.add(1, 10, 7, "B", 100, "AAPL", 200000)
    good = i.framed([d, a, i.executed(1, 20, 7, 40, 1), i.system(30, "C")])
    swapped = b"".join(struct.pack("<H", len(m)) + m for m in (d, a, a))
    soup = b"".join(struct.pack(">H", len(m) + 1) + b"S" + m for m in (d, a, a))
    packed = gzip.compress(i.framed([d] + [i.system(n, "Q") for n in range(5, 90000)]), 1)
    unknown = i.head("~", 9, 12) + b"new"

    def after(*messages):
        return i.framed([d, a, *messages])

    cases = [  # data, options, what is told (None: it works; then the note)
        (good, [], None, ""),
        (cut(good, len(good) - 2), [], None, ""),  # no end of session, but the feed's own end
        (cut(good, len(good) - 2 - 14), [], None, "the feed does not say that it ends (event C)"),
        (cut(good, 42), [], "the message at offset 43 is cut short: 1 of the 2 bytes of its length is missing", None),
        (cut(good, 43), [], "the message at offset 43 is cut short: 36 of its 36 bytes are missing", None),
        (cut(good, 60), [], "19 of its 36 bytes are missing; --allow-partial imports", None),
        (cut(good, 60), ["--allow-partial"], None, "the message at offset 43 is cut short: left out"),
        (cut(packed, len(packed) // 2), [], "inside its gzip data", None),
        (cut(packed, len(packed) // 2), ["--allow-partial"], None, "imported as far as it goes"),
        (good + b"\0", [], "the session ends (a length of 0) before offset", None),
        (good + good, [], "two sessions in one file", None),
        (b"\0\0", [], None, "holds no messages"),
        (b"", [], "is empty: was it written whole?", None),
        (b"garbage" * 20, [], "the message at offset 2 claims 26465 bytes, and none of ITCH 5.0 has more than 50", None),
        (b"\0\x0cgarbage" * 20, [], "the first message is of no type that ITCH 5.0 has", None),
        (swapped, [], "little-endian, those of ITCH files are big-endian", None),
        (soup, [], "SoupBinTCP packets", None),
        (after(a[:-1]), [], "(type A): 35 bytes, but that type has 36 in ITCH 5.0", None),
        (after(unknown), [], None, "1 message of unknown types skipped (the first at offset 81, of type ~)"),
        (after(b"~" * 600), [], "the message at offset 81 claims 600 bytes", None),
        (after(b"~x"), [], "2 bytes and an unknown type", None),
        (after(i.executed(1, 9, 7, 1, 1)), [],
         "(type E): 9 ns since midnight is before 10 of the message before it; --sort", None),
        (after(i.executed(1, 9, 7, 1, 1)), ["--order", "keep"], None, "messages that are before the one before them: 1"),
        (after(i.executed(1, 24 * HOUR, 7, 1, 1)), [], "86400000000000 ns since midnight is not within a day", None),
        (after(i.executed(1, 20, 8, 1, 1)), [], "(type E): order 8 is not open", None),
        (after(i.executed(1, 20, 8, 1, 1)), ["--allow-partial"], None,
         "1 event of orders that the file does not have left out (the first at offset 81, of order 8)"),
        (after(i.delete(1, 20, 8)), [], "(type D): order 8 is not open", None),
        (after(i.replace(1, 20, 8, 9, 1, 1)), [], "(type U): order 8 is not open", None),
        (after(i.delete(1, 20, 7), i.delete(1, 20, 7)), [], "(type D): order 7 is not open", None),
        (after(i.executed(1, 20, 7, 101, 1)), [], "takes 101 shares of order 7, which has 100 left", None),
        (after(i.cancel(1, 20, 7, 101)), [], "(type X): takes 101 shares of order 7", None),
        (after(a), [], "(type A): order 7 is open already", None),
        (after(i.replace(1, 20, 7, 7, 5, 5)), [], None, ""),
        (after(i.add(1, 20, 8, "B", 1, "AAPL", 1), i.replace(1, 20, 7, 8, 5, 5)), [],
         "(type U): order 8 is open already", None),
        (after(i.replace(1, 20, 7, 8, 0, 5)), [], "order 8 has no shares", None),
        (after(i.add(1, 20, 8, "Z", 1, "AAPL", 1)), [], "order 8 has the side 0x5a, neither B nor S", None),
        (after(i.add(1, 20, 8, "B", 1, "MSFT", 1)), [], "stock locate 1 is MSFT", None),
        (after(i.add(2, 20, 8, "B", 1, "", 1)), [], "its stock has no name", None),
        (after(i.add(2, 20, 8, "B", 1, "A\1", 1)), [], "its stock is no name (byte 0x01)", None),
        (after(i.add(2, 20, 8, "B", 1, "MSFT", 1)), [], None, "1 stocks have no directory message before"),
        (after(i.executed(2, 20, 7, 1, 1)), [], "order 7 is of stock locate 1, the message of 2", None),
        (after(i.broken(2, 20, 1)), [], "match 1 of stock locate 2, which no message before has named", None),
        (good, ["--symbols", "MSFT"], None, "none of its 1 stocks was asked for"),
        (good, ["--series", "a/b"], "--dataset changes the first part", None),
        (good, ["--date", "2019-02-29"], "--date 2019-02-29: a date that exists", None),
        (good, ["--date", "1986-02-28"], "the offset of New York in 1986 is not known", None),
    ]
    for data, options, error, note in cases:
        told = ingest(data, "--format", "itch50", *options, expect=1 if error else 0)
        told = told if error else told[1]
        t.true((error or note) in told, f"{options} {data[:60]!r}...: told {told!r}, expected {error or note!r}")
        t.true(note != "" or told == "", f"nothing is to be told: {told!r}")
        t.true("01302019.NASDAQ_ITCH50" in told or not (error or note) or "--date" in told, f"the file is named: {told!r}")
    bare = b"".join([d] + [i.system(10 + n, "Q") for n in range(20)])
    for data, error in ((bare + unknown, "the message at offset 279 is of type 0x7e, which ITCH 5.0 does not have"),
                        (bare[:-1], "the message at offset 267 is cut short: 1 of its 12 bytes are missing"),
                        (bare + i.system(9, "Q"), "(type S): 9 ns since midnight is before 29")):
        told = ingest(data, expect=1)
        t.true(error in told, f"without lengths: told {told!r}, expected {error!r}")
    told = ingest(good, "--format", "itch50", name="day.bin", expect=1)
    t.true("this name no date as 01302019.NASDAQ_ITCH50: say it (--date 2019-01-30)" in told, told)


# ---- the messages themselves ----------------------------------------------------------------------------------

def raw_of(store, name):
    return [bytes.fromhex(line.split(",")[1]) for line in text(store, name)[1:]]


def test_raw():
    day = i.Day(7, 500, ["AAPL", "MSFT"], MIDNIGHT)
    data = i.framed(day.messages)
    store, _ = ingest(data, "--raw-only")
    t.equal(series(store), {"NASDAQ.ITCH/MARKET/itch50": len(day.messages)}, "series of --raw-only")
    store, _ = ingest(data, "--raw-only", "--series", "mine/raw")
    t.equal(series(store), {"mine/raw": len(day.messages)}, "series of --raw-only --series")
    store, _ = ingest(data, "--raw", "--dataset", "NASDAQ.BX")
    have = series(store)
    t.equal(have["NASDAQ.BX/MARKET/itch50"], len(day.messages), "raw messages beside records")
    t.equal(have["NASDAQ.BX/AAPL/itch-mbo"], len(day.mbo["AAPL"]), "records beside raw messages")
    t.equal(raw_of(store, "NASDAQ.BX/MARKET/itch50"), day.messages, "messages byte for byte")
    unknown = i.head("~", 9, day.ns + 5) + b"new"
    store, told = ingest(data[:-2] + i.framed([unknown]), "--raw-only", "--symbols", "MSFT")
    t.true("1 message of unknown types taken as raw messages only" in told, told)
    # The market's, those of MSFT (locate 2), and what nobody knows.
    t.equal(raw_of(store, "NASDAQ.ITCH/MARKET/itch50"),
            [m for m in day.messages if m[2] in (0, 2)] + [unknown], "raw messages of some stocks")


def test_documents():
    """docs/itch.md has the fields as they are stored."""
    import re
    with open(os.path.join(os.environ["STOUP_SOURCE_DIR"], "docs/itch.md"), encoding="utf-8") as page:
        blocks = re.findall(r"```\nschema (\S+)\nkey ts\n(.*?)```", page.read(), re.S)
    store, _ = ingest(i.framed(i.Day(1, 300, ["AAPL"], MIDNIGHT).messages))
    t.equal([name for name, _ in blocks], ["itch-mbo", "itch-trade"], "schemas that the page has")
    for name, block in blocks:
        written = [line.split()[0] for line in block.splitlines()]
        t.equal(text(store, f"NASDAQ.ITCH/AAPL/{name}")[0].split(","), written, f"fields of {name} in docs/itch.md")


test_documents()
test_dates()
print("ok: dates")
test_dirty()
print("ok: dirty files")
test_raw()
print("ok: raw messages")
