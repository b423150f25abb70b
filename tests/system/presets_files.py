# SPDX-License-Identifier: Apache-2.0
"""Presets over larger and real files: totals and values by plain decimals, threads that share one file, and DBN
records out of Databento's CSV that are those of the DBN file."""
import collections
import csv
import decimal
import gzip
import json
import os
import struct

import lib_stoup as t

decimal.getcontext().prec = 60
D = decimal.Decimal
directory = t.temp_dir()


def ingest(path, *options, expect=0):
    store = os.path.join(t.temp_dir(), "store")
    done = t.run([t.STOUP, "ingest", "--store", store, *options, path], expect=expect)
    return store, done


def cat(store, names):
    daemon = t.Daemon(store, "32M")
    try:
        return {name: t.run([t.STOUP, "cat", daemon.pool, name]).stdout for name in names}
    finally:
        daemon.stop()


def counts(store):
    listing = json.loads(t.run([t.STOUP, "ls", "--json", store]).stdout)
    return {series["name"]: series["records"] for series in listing["series"]}


# ---- several threads ------------------------------------------------------------------------------

# Four megabytes: some pieces, read by two threads, with symbols that alternate and a unit that changes.
path = os.path.join(directory, "bitmex_trades_2024-01-01_X.csv")
T0 = 1704067200000000
totals = collections.defaultdict(lambda: [0, D(0)])
with open(path, "w", encoding="ascii") as out:
    out.write("exchange,symbol,timestamp,local_timestamp,id,side,price,amount\n")
    for i in range(60_000):
        symbol = f"S{i * 7 % 13}"
        price = D(10_000 + i * 31 % 977) / 8
        out.write(f"bitmex,{symbol},{T0 + i},{T0 + i + 5},{i},{'buy' if i % 3 else 'sell'},{price},{i % 50}\n")
        totals[symbol][0] += 1
        totals[symbol][1] += price
one, _ = ingest(path, "--quiet", "--threads", "1")
two, _ = ingest(path, "--quiet", "--threads", "2")
t.equal(counts(two), {f"bitmex/{symbol}/trades": count for symbol, (count, _) in totals.items()}, "rows")
names = list(counts(two))
first, second = cat(one, names), cat(two, names)
t.equal(first, second, "records read by one thread and by two")
for symbol, (_, total) in totals.items():
    rows = csv.DictReader(second[f"bitmex/{symbol}/trades"].splitlines())
    t.equal(sum((D(row["price"]) for row in rows), D(0)), total, f"{symbol}: sum of price")
_, done = ingest(path, "--quiet", "--threads", "2", "--series", "A/B/c", expect=1)
t.true("is another symbol (or exchange) than before" in done.stderr, f"two symbols, one series: {done.stderr}")
print("ok threads", flush=True)

# The second symbol is far behind the first piece, where another thread reads.
path = os.path.join(directory, "far.csv")
with open(path, "w", encoding="ascii") as out:
    out.write("exchange,symbol,timestamp,local_timestamp,id,side,price,amount\n")
    for i in range(60_000):
        symbol = "B" if i == 45_000 else "A"
        out.write(f"bitmex,{symbol},{T0 + i},{T0 + i + 5},{i},buy,1,{i % 50}\n")
_, done = ingest(path, "--quiet", "--threads", "2", "--series", "A/B/c", "--format", "tardis-trades", expect=1)
t.true("line 45002, column 2: \"B\" is another symbol" in done.stderr, f"far: {done.stderr}")
store, _ = ingest(path, "--quiet", "--threads", "2", "--series", "A/B/c", "--format", "tardis-trades",
                  "--symbols", "A")
t.equal(counts(store), {"A/B/c": 59_999}, "rows of A")
print("ok far", flush=True)

# ---- Databento's CSV and its DBN --------------------------------------------------------------------

symbols = {"AAA": 11, "BBB": 12}
dbn, text = os.path.join(directory, "x.dbn"), os.path.join(directory, "x.mbo.csv")
records = [t.mbo(*record, order_id=2**63 + n, sequence=n)
           for n, record in enumerate(t.mbo_records(500, symbols))]
t.dbn_file(dbn, symbols, records)
by_ident = {ident: name for name, ident in symbols.items()}
with open(text, "w", encoding="ascii") as out:
    out.write("ts_recv,ts_event,rtype,publisher_id,instrument_id,action,side,price,size,channel_id,order_id,flags,"
              "ts_in_delta,sequence,symbol\n")
    for record in records:
        (_, rtype, publisher, ident, event, order, price, size, flags, channel, action, side, recv, delta,
         sequence) = struct.unpack("<BBHIQQqIBBccQiI", record)
        out.write(f"{recv},{event},{rtype},{publisher},{ident},{action.decode()},{side.decode()},{price},{size},"
                  f"{channel},{order},{flags},{delta},{sequence},{by_ident[ident]}\n")
of_dbn, _ = ingest(dbn, "--quiet")
of_csv, done = ingest(text, "--quiet", "--exchange", "XTST.TEST")
t.equal(counts(of_csv), counts(of_dbn), "series of CSV and DBN")
names = list(counts(of_dbn))
t.equal(cat(of_csv, names), cat(of_dbn, names), "records of CSV and DBN")
t.run([t.STOUP, "export", "--quiet", "--format", "dbn", "--output", os.path.join(directory, "1.dbn"), of_dbn, names[0]])
t.run([t.STOUP, "export", "--quiet", "--format", "dbn", "--output", os.path.join(directory, "2.dbn"), of_csv, names[0]])
with open(os.path.join(directory, "1.dbn"), "rb") as a, open(os.path.join(directory, "2.dbn"), "rb") as b:
    t.equal(a.read()[-250 * 56:], b.read()[-250 * 56:], "bytes of the records of CSV and DBN")
print("ok databento", flush=True)

# ---- real files -----------------------------------------------------------------------------------

if not t.DATA:
    print("STOUP_DATA is not set: real files are left out")
    raise SystemExit


def rows_of(name):
    path_ = os.path.join(t.DATA, "csv", name)
    opener = gzip.open if name.endswith(".gz") else open
    with opener(path_, "rt", newline="") as source:
        return path_, list(csv.reader(source))


def real(name, options, series, header, columns, scale=1):
    """Every value of the columns {place: field} comes back as it was; so do the totals."""
    source, rows = rows_of(name)
    rows = rows[1:] if header else rows
    store_, told = ingest(source, *options)
    t.equal(counts(store_), {series: len(rows)}, f"{name}: series")
    printed = list(csv.DictReader(cat(store_, [series])[series].splitlines()))
    for place, field in columns.items():
        found = [D(row[field]) if row[field] else None for row in printed]
        expected = [D(row[place]) / (scale if field == "price" else 1) if row[place] else None for row in rows]
        t.equal(found, expected, f"{name}: {field}")
        t.equal(sum(found), sum(expected), f"{name}: sum of {field}")
    print("ok", name, flush=True)
    return told.stdout, printed


real("6EH4-1min-bars-202401.csv.gz", ["--exchange", "CME"], "CME/6EH4/bars-1m", True,
     {1: "open", 2: "high", 3: "low", 4: "close", 5: "volume"})
real("fxcm-gbpusd-m1-bid-2012.csv", [], "fxcm/gbpusd/bars-1m", True, {1: "open", 2: "high", 3: "low", 4: "close"})
real("quote_tick_data.csv", ["--format", "histdata", "--symbol", "EURUSD"], "histdata/EURUSD/quotes", False,
     {1: "bid", 2: "ask", 3: "volume"})
real("truefx-usdjpy-ticks.csv", [], "truefx/usdjpy/quotes", True, {1: "bid", 2: "ask"})
summary, messages = real("lobster-AAPL-20120621-message_10.csv", [], "lobster/AAPL/message", False,
                         {1: "type", 2: "order_id", 3: "size", 4: "price", 5: "direction"}, scale=10_000)
t.true("585026.72" in summary and "51909" in summary, f"the sums of the summary: {summary}")
seconds = [D(row["time"][17:29]) + 60 * int(row["time"][14:16]) for row in messages]
t.equal([D(row[0]) for row in rows_of("lobster-AAPL-20120621-message_10.csv")[1]],
        [13 * 3600 + second - 4 * 3600 for second in seconds], "seconds after midnight")
real("tardis-incremental_book_L2-BTC-PERPETUAL.csv", [], "deribit/BTC-PERPETUAL/incremental_book_L2", True,
     {6: "price", 7: "amount"})
_, book = rows_of("tardis-book_snapshot_5-BTCUSDT.csv")
real("tardis-book_snapshot_5-BTCUSDT.csv", [], "binance-futures/BTCUSDT/book_snapshot_5", True,
     {place: name for place, name in enumerate(book[0]) if place >= 4})
