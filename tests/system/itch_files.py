# SPDX-License-Identifier: Apache-2.0
"""ITCH 5.0: a day against an independent naive book, every message type's bytes, dates, filters, dirty files."""
import gzip
import os
import struct
import subprocess

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
    data = subprocess.run([t.STOUP, "cat", store + "/", name, "--format", "npy"], capture_output=True, check=True).stdout
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
