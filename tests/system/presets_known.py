# SPDX-License-Identifier: Apache-2.0
"""Files of feeds whose bytes are equal and whose names are not: what a name says makes another file, and what it does
not say makes none."""
import json
import os
import shutil

import lib_stoup as t

MESSAGES = "34200.1,1,11,100,5853300,1\n34201.1,1,12,100,5853300,-1\n"
BOOK = "5853300,1,5853200,2\n5853300,1,5853200,3\n"
TRADE = "1,2.5,3,7.5,1704067200000,true\n"
KLINE = "1704067200000,1,2,0.5,1.5,10,1704067259999,15,3,5,7,0\n"
TARDIS = ("exchange,symbol,timestamp,local_timestamp,id,side,price,amount\n"
          "deribit,BTC,1704067200000000,1704067200000005,1,buy,1,2\n")
QUOTES = "timestamp,bid,ask\n2024-01-02T00:00:00Z,1,2\n"
MBP = ("ts_recv,ts_event,rtype,publisher_id,instrument_id,action,side,depth,price,size,flags,ts_in_delta,sequence,"
       "bid_px_00,ask_px_00,bid_sz_00,ask_sz_00,bid_ct_00,ask_ct_00\n"
       "1609160400099150057,1609160400000000000,1,1,5482,T,A,0,3.5,5,130,1,2,3.25,4.5,5,6,7,8\n")


def write(root, name, text):
    path = os.path.join(root, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="ascii") as out:
        out.write(text)
    return path


def ingest(store, path, *options):
    return t.run([t.STOUP, "ingest", "--store", store, *options, path]).stderr


def counts(store):
    listing = json.loads(t.run([t.STOUP, "ls", "--json", store]).stdout)
    return {series["name"]: series["records"] for series in listing["series"]}


def both(text, first, second, expected, options=(), known=False):
    """The same bytes under two names, one after the other: what the store has then, and whether the second was known."""
    root = t.temp_dir()
    store = os.path.join(root, "store")
    t.true("already" not in ingest(store, write(root, first, text), *options), f"{first} is new")
    again = ingest(store, write(root, second, text), *options)
    t.equal("the store has it already" in again, known, f"{second} behind {first}: {again}")
    t.equal(counts(store), expected, f"{first}, {second}")
    print("ok", first, second, *options, flush=True)


# ---- names that tell ------------------------------------------------------------------------------

LOBSTER = "{}_2012-06-{}_34200000_57600000_message_1.csv"
both(MESSAGES, LOBSTER.format("AAPL", 21), LOBSTER.format("AAPL", 22), {"lobster/AAPL/message": 4})
both(MESSAGES, LOBSTER.format("AAPL", 21), LOBSTER.format("MSFT", 21),
     {"lobster/AAPL/message": 2, "lobster/MSFT/message": 2})
both(MESSAGES, LOBSTER.format("AAPL", 21), LOBSTER.format("AAPL", 22), {"lobster/AAPL/message": 4},
     ["--format", "lobster"])
both(TRADE, "BTCUSDT-trades-2024-01-01.csv", "ETHUSDT-trades-2024-01-01.csv",
     {"binance-futures/BTCUSDT/trades": 1, "binance-futures/ETHUSDT/trades": 1})
both(TRADE, "spot/BTCUSDT-trades-2024-01-01.csv", "futures/cm/BTCUSDT-trades-2024-01-01.csv",
     {"binance/BTCUSDT/trades": 1, "binance-delivery/BTCUSDT/trades": 1})
both(KLINE, "futures/um/klines/BTCUSDT-1m-2024-01.csv", "futures/um/markPriceKlines/BTCUSDT-1m-2024-01.csv",
     {"binance-futures/BTCUSDT/klines-1m": 1, "binance-futures/BTCUSDT/markPriceKlines-1m": 1})
both(TARDIS, "deribit_trades_2024-01-01_BTC.csv", "deribit_liquidations_2024-01-01_BTC.csv",
     {"deribit/BTC/trades": 1, "deribit/BTC/liquidations": 1})
both(QUOTES, "EURUSD-2024-01.csv", "GBPUSD-2024-01.csv",
     {"truefx/EURUSD/quotes": 1, "truefx/GBPUSD/quotes": 1})
both(MBP, "glbx-mdp3-20201228.mbp-1.csv", "glbx-mdp3-20201228.tbbo.csv",
     {"GLBX.MDP3/5482/mbp-1": 1, "GLBX.MDP3/5482/tbbo": 1})
both(MBP, "glbx-mdp3-20201228.mbp-1.csv", "xnas-itch-20201228.mbp-1.csv",
     {"GLBX.MDP3/5482/mbp-1": 1, "XNAS.ITCH/5482/mbp-1": 1})

# ---- names that do not -----------------------------------------------------------------------------

both(TRADE, "BTCUSDT-trades-2024-01-01.csv", "b/BTCUSDT-trades-2024-01.csv", {"binance-futures/BTCUSDT/trades": 1},
     known=True)
both(TRADE, "BTCUSDT-trades-2024-01-01.csv", "ETHUSDT-trades-2024-01-01.csv", {"A": 1}, ["--series", "A"], known=True)
both(TARDIS, "deribit_trades_2024-01-01_BTC.csv", "deribit_trades_2024-01-02_ETH.csv", {"deribit/BTC/trades": 1},
     known=True)
both(MESSAGES, LOBSTER.format("AAPL", 21), LOBSTER.format("MSFT", 22), {"lobster/X/message": 2},
     ["--symbol", "X", "--date", "2012-06-21"], known=True)
both(TRADE, "BTCUSDT-trades-2024-01-01.csv", "ETHUSDT-trades-2024-01-01.csv", {"A": 1},
     ["--series", "A", "--columns", "-,p:price,-,-,ts:time,-"], known=True)
both(QUOTES, "EURUSD-2024-01.csv", "GBPUSD-2024-01.csv", {"A": 1},
     ["--series", "A", "--columns", "ts:time,b:price,a:price"], known=True)

# A book has the times of the messages beside it.
place = t.temp_dir()
kept = os.path.join(place, "store")
name = "AAPL_2012-06-21_34200000_57600000_orderbook_1.csv"
write(place, "a/" + name.replace("orderbook", "message"), MESSAGES)
book = write(place, "a/" + name, BOOK)
shutil.copytree(os.path.join(place, "a"), os.path.join(place, "b"))
ingest(kept, book)
t.true("already" in ingest(kept, os.path.join(place, "b", name)), "the copy of a pair is known")
write(place, "b/" + name.replace("orderbook", "message"), MESSAGES.replace("3420", "3430"))
t.true("already" not in ingest(kept, os.path.join(place, "b", name)), "a book with other messages is another")
t.equal(counts(kept), {"lobster/AAPL/orderbook_1": 4}, "both books")
print("ok book", flush=True)

# Two copies in one call: the second would be known in the next.
copies = t.temp_dir()
first, second = (write(copies, name, TRADE) for name in ("BTCUSDT-trades-2024-01.csv", "BTCUSDT-trades-2024-02.csv"))
for options in ([], ["--sort"], ["--threads", "1"], ["--dry-run"]):
    told = t.run([t.STOUP, "ingest", "--store", os.path.join(copies, "store"), *options, first, second],
                 expect=1).stderr
    t.true(f"{first} and {second} hold the same: its records would be there twice" in told, told)
    t.true(not os.path.exists(os.path.join(copies, "store")) or not counts(os.path.join(copies, "store")), "nothing")
t.run([t.STOUP, "ingest", "--quiet", "--again", "--store", os.path.join(copies, "store"), first, second])
t.equal(counts(os.path.join(copies, "store")), {"binance-futures/BTCUSDT/trades": 2}, "--again takes both")
# Files without rows are all the same, and no copies.
header = "timestamp,bid,ask\n"
empties = [write(copies, f"empty{n}.csv", header) for n in range(2)] + [write(copies, "q.csv", QUOTES)]
t.run([t.STOUP, "ingest", "--quiet", "--store", os.path.join(copies, "quotes"), "--format", "quotes", "--series", "A",
       *empties])
t.equal(counts(os.path.join(copies, "quotes")), {"A": 1}, "hours without quotes")
print("ok copies", flush=True)

# ---- names of other formats ----------------------------------------------------------------------------

# The ending of a name says what is in it; what stands before, and folders, do not.
for name in ("es.dbn.csv", "glbx.dbn/q.csv", "capture.jsonl.csv", "capture.jsonl/q.csv", "a.csv/b.npy.csv"):
    root = t.temp_dir()
    t.run([t.STOUP, "ingest", "--quiet", "--store", os.path.join(root, "store"), "--format", "auto", "--series", "A",
           "--columns", "ts:time,b:price,a:price", write(root, name, QUOTES)])
    t.equal(counts(os.path.join(root, "store")), {"A": 1}, name)
print("ok names", flush=True)

# Folders count from the working directory, too.
root = t.temp_dir()
store = os.path.join(root, "store")
name = "BTCUSD_PERP-1m-2024-01.csv"
path = write(root, f"futures/cm/daily/markPriceKlines/{name}", KLINE)
for directory, file in ((os.path.dirname(path), name), (os.path.join(root, "futures"), path[len(root) + 9:]), ("/", path)):
    os.chdir(directory)
    told = t.run([t.STOUP, "ingest", "--store", store, file]).stderr
    t.equal("already" in told, file != name, f"{file} in {directory}: {told}")
t.equal(counts(store), {"binance-delivery/BTCUSD_PERP/markPriceKlines-1m": 1}, "the folder above")
print("ok working directory", flush=True)
