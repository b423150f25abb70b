# SPDX-License-Identifier: Apache-2.0
"""Files of feeds whose columns are known: bytes as their publishers write them, and the records that follow, by hand."""
import os
import zipfile

import lib_stoup as t

directory = t.temp_dir()
numbers = iter(range(1000))


def ingest(name, data, options=(), status=0):
    """Ingest bytes under a file name into a new store. Returns the store and what was told."""
    place = os.path.join(directory, f"{next(numbers)}")
    path = os.path.join(place, "in", name)
    os.makedirs(os.path.dirname(path))
    if name.endswith(".zip"):
        with zipfile.ZipFile(path, "w") as out:
            out.writestr(os.path.basename(name)[:-4] + ".csv", data)
    else:
        with open(path, "wb") as out:
            out.write(data)
    store = os.path.join(place, "store")
    done = t.run([t.STOUP, "ingest", "--quiet", "--store", store, *options, path], expect=None)
    t.equal(done.returncode, status, f"{name}: {done.stderr}")
    return store, done.stderr.replace(path, name)


def cat(store, series):
    daemon = t.Daemon(store, "8M")
    try:
        return [t.run([t.STOUP, "cat", daemon.pool, name]).stdout for name in series]
    finally:
        daemon.stop()


def golden(name, data, options, told, series):
    """`series` is {name: text of stoup cat}; `told` what is said, line by line, after the file's name."""
    store, err = ingest(name, data.encode(), options)
    t.equal(err, "".join(f"{name}: {line}\n" for line in told), f"{name}: notes")
    found = cat(store, series)
    for (series_name, expected), text in zip(series.items(), found):
        t.equal(text, expected, f"{name}: {series_name}")
    print("ok", name, *options, flush=True)


# ---- Binance --------------------------------------------------------------------------------------

TRADES = "id,price,qty,quote_qty,time,is_buyer_maker,is_best_match\n"

# Spot: no header; milliseconds up to 2024, microseconds from 2025, here in one file.
golden("BTCUSDT-trades-2025-01-01.zip",
       "4000000,93425.37000000,0.00018000,16.81656660,1735689599999,True,True\n"
       "4000001,93425.38000000,0.00006000,5.60552280,1735689600011234,False,True\n",
       [], ["taken as Binance spot trades (--format binance-trades)",
            "line 2: times go on in microseconds, milliseconds before"],
       {"binance/BTCUSDT/trades": "id,price,qty,quote_qty,time,is_buyer_maker,is_best_match\n"
        "4000000,93425.37,0.00018,16.8165666,2024-12-31T23:59:59.999000000Z,1,1\n"
        "4000001,93425.38,0.00006,5.6055228,2025-01-01T00:00:00.011234000Z,0,1\n"})

# Futures: a header, no is_best_match, which is then undefined.
golden("ETHUSDT-trades-2024-03.csv",
       "id,price,qty,quote_qty,time,is_buyer_maker\n"
       "3756812345,3340.01,0.500,1670.005,1709251200030,true\n",
       [], ["taken as Binance futures trades (--format binance-trades)"],
       {"binance-futures/ETHUSDT/trades": TRADES +
        "3756812345,3340.01,0.5,1670.005,2024-03-01T00:00:00.030000000Z,1,\n"})

# The same without the header that they had before 2022, from the archive's folders.
golden("data/futures/cm/daily/trades/BTCUSD_PERP/BTCUSD_PERP-trades-2021-01-01.csv",
       "102,28923.6,5,0.01728692,1609459200066,false\n",
       ["--format", "binance-trades"], [],
       {"binance-delivery/BTCUSD_PERP/trades": TRADES +
        "102,28923.6,5,0.01728692,2021-01-01T00:00:00.066000000Z,0,\n"})

golden("BTCUSDT-aggTrades-2024-01-02.csv",
       "2860000001,44179.55000000,0.00300000,3360000010,3360000012,1704153600000,False,True\n",
       [], ["taken as Binance spot aggTrades (--format binance-aggtrades)"],
       {"binance/BTCUSDT/aggTrades":
        "agg_trade_id,price,quantity,first_trade_id,last_trade_id,transact_time,is_buyer_maker,"
        "is_best_match\n"
        "2860000001,44179.55,0.003,3360000010,3360000012,2024-01-02T00:00:00.000000000Z,0,1\n"})

golden("BTCUSDT-aggTrades-2024-01-03.csv",
       "agg_trade_id,price,quantity,first_trade_id,last_trade_id,transact_time,is_buyer_maker\n"
       "2022222222,44930.1,0.102,4500000000,4500000001,1704240000123,true\n",
       [], ["taken as Binance futures aggTrades (--format binance-aggtrades)"],
       {"binance-futures/BTCUSDT/aggTrades":
        "agg_trade_id,price,quantity,first_trade_id,last_trade_id,transact_time,is_buyer_maker,"
        "is_best_match\n"
        "2022222222,44930.1,0.102,4500000000,4500000001,2024-01-03T00:00:00.123000000Z,1,\n"})

KLINES = ("open_time,open,high,low,close,volume,close_time,quote_volume,count,taker_buy_volume,"
          "taker_buy_quote_volume\n")
golden("spot/BTCUSDT-1m-2017-08.zip",
       "1502942400000,4261.48000000,4261.48000000,4261.48000000,4261.48000000,1.77518300,1502942459999,"
       "7564.90685084,3,0.07518300,320.39085084,7958.47906800\n",
       [], ["taken as Binance spot klines (--format binance-klines)"],
       {"binance/BTCUSDT/klines-1m": KLINES +
        "2017-08-17T04:00:00.000000000Z,4261.48,4261.48,4261.48,4261.48,1.775183,"
        "2017-08-17T04:00:59.999000000Z,7564.90685084,3,0.075183,320.39085084\n"})

# Microseconds, a header, and the length of the bars out of the rows alone.
golden("k.csv",
       "open_time,open,high,low,close,volume,close_time,quote_volume,count,taker_buy_volume,"
       "taker_buy_quote_volume,ignore\n"
       "1735689600000000,1,2,0.5,1.5,10,1735693199999999,15,4,5,7.5,0\n",
       ["--symbol", "XUSDT"], ["taken as Binance futures klines (--format binance-klines)"],
       {"binance-futures/XUSDT/klines-1h": KLINES +
        "2025-01-01T00:00:00.000000000Z,1,2,0.5,1.5,10,2025-01-01T00:59:59.999999000Z,15,4,5,7.5\n"})

golden("BTCUSDT-bookTicker-2024-03-30.csv",
       "update_id,best_bid_price,best_bid_qty,best_ask_price,best_ask_qty,transaction_time,event_time\n"
       "4325839839393,69850.5,6.174,69850.6,0.003,1711756800003,1711756800008\n",
       [], ["taken as Binance futures bookTicker (--format binance-bookticker)"],
       {"binance-futures/BTCUSDT/bookTicker":
        "update_id,best_bid_price,best_bid_qty,best_ask_price,best_ask_qty,transaction_time,event_time\n"
        "4325839839393,69850.5,6.174,69850.6,0.003,2024-03-30T00:00:00.003000000Z,"
        "2024-03-30T00:00:00.008000000Z\n"})

# ---- Tardis ---------------------------------------------------------------------------------------

# Two symbols in one file: a series each. An unknown column is told.
TARDIS_TRADES = ("exchange,symbol,timestamp,local_timestamp,id,side,price,amount,more\n"
                 "bitmex,XBTUSD,1583020803145000,1583020803307160,6fc4f1a8-1d4d-1b9e-3a3f-aaaaaaaaaaaa,buy,"
                 "8531.5,2152,1\n"
                 "bitmex,ETHUSD,1583020803145001,1583020803307160,77,sell,217.45,1e3,2\n"
                 "bitmex,XBTUSD,1583020803145000,1583020803307161,,unknown,8531,0.00000001,3\n")
TARDIS_HEAD = "timestamp,local_timestamp,price,amount,side,id\n"
XBT = ("2020-03-01T00:00:03.145000000Z,2020-03-01T00:00:03.307160000Z,8531.5,2152,B,"
       "6fc4f1a8-1d4d-1b9e-3a3f-aaaaaaaaaaaa\n"
       "2020-03-01T00:00:03.145000000Z,2020-03-01T00:00:03.307161000Z,8531,0.00000001,U,\n")
ETH = "2020-03-01T00:00:03.145001000Z,2020-03-01T00:00:03.307160000Z,217.45,1000,S,77\n"
golden("bitmex_trades_2020-03-01_PERPETUALS.csv", TARDIS_TRADES, [],
       ["taken as Tardis trades (--format tardis-trades)", "columns left out: more"],
       {"bitmex/XBTUSD/trades": TARDIS_HEAD + XBT, "bitmex/ETHUSD/trades": TARDIS_HEAD + ETH})
golden("t.csv", TARDIS_TRADES, ["--format", "tardis-liquidations", "--symbols", "ETH*"],
       ["columns left out: more"], {"bitmex/ETHUSD/liquidations": TARDIS_HEAD + ETH})
golden("t.csv", TARDIS_TRADES,
       ["--format", "tardis-trades", "--symbols", "XBT*", "--series", "my/own/name"],
       ["columns left out: more"], {"my/own/name": TARDIS_HEAD + XBT})

golden("l2.csv",
       "exchange,symbol,timestamp,local_timestamp,is_snapshot,side,price,amount\n"
       "deribit,BTC-PERPETUAL,1585699200245000,1585699200355684,true,ask,6421.5,18640\n"
       "deribit,BTC-PERPETUAL,1585699200246000,1585699200355685,false,bid,-6421,0\n",
       [], ["taken as Tardis incremental_book_L2 (--format tardis-l2)"],
       {"deribit/BTC-PERPETUAL/incremental_book_L2":
        "timestamp,local_timestamp,price,amount,is_snapshot,side\n"
        "2020-04-01T00:00:00.245000000Z,2020-04-01T00:00:00.355684000Z,6421.5,18640,1,A\n"
        "2020-04-01T00:00:00.246000000Z,2020-04-01T00:00:00.355685000Z,-6421,0,0,B\n"})

# Ask first, amount before price; a side without orders is undefined.
golden("q.csv",
       "exchange,symbol,timestamp,local_timestamp,ask_amount,ask_price,bid_price,bid_amount\n"
       "ftx,A/B,1585699200245000,1585699200355684,3,101.5,100.5,7\n"
       "ftx,A/B,1585699200245000,1585699200355684,,,100.25,8\n",
       [], ["taken as Tardis quotes (--format tardis-quotes)"],
       {"ftx/A%2FB/quotes":
        "timestamp,local_timestamp,ask_amount,ask_price,bid_price,bid_amount\n"
        "2020-04-01T00:00:00.245000000Z,2020-04-01T00:00:00.355684000Z,3,101.5,100.5,7\n"
        "2020-04-01T00:00:00.245000000Z,2020-04-01T00:00:00.355684000Z,,,100.25,8\n"})

levels = ",".join(f"asks[{i}].price,asks[{i}].amount,bids[{i}].price,bids[{i}].amount" for i in range(25))
values = ",".join(f"{100 + i}.5,{i},{100 - i},{i + 1}" for i in range(25))
golden("b.csv",
       f"exchange,symbol,timestamp,local_timestamp,{levels}\nx,Y,1585699200245000,1585699200355684,{values}\n",
       [], ["taken as Tardis book_snapshot (--format tardis-book)"],
       {"x/Y/book_snapshot_25":
        f"timestamp,local_timestamp,{levels}\n"
        f"2020-04-01T00:00:00.245000000Z,2020-04-01T00:00:00.355684000Z,{values}\n"})

golden("d.csv",
       "exchange,symbol,timestamp,local_timestamp,funding_timestamp,funding_rate,predicted_funding_rate,"
       "open_interest,last_price,index_price,mark_price\n"
       "bitmex,XBTUSD,1585699200245000,1585699200355684,1585713600000000,-0.0000123456789,,1234,6421,6420.1,"
       "6420.25\n",
       [], ["taken as Tardis derivative_ticker (--format tardis-derivative)"],
       {"bitmex/XBTUSD/derivative_ticker":
        "timestamp,local_timestamp,funding_timestamp,funding_rate,predicted_funding_rate,open_interest,"
        "last_price,index_price,mark_price\n"
        "2020-04-01T00:00:00.245000000Z,2020-04-01T00:00:00.355684000Z,2020-04-01T04:00:00.000000000Z,"
        "-0.0000123456789,,1234,6421,6420.1,6420.25\n"})

# ---- LOBSTER --------------------------------------------------------------------------------------

MESSAGES = ("34200.004241176,1,16113575,18,5853300,1\n"
            "34200.25,5,0,100,5853250,-1\n"
            "57599.999999999,7,0,0,-1,-1")
LOBSTER = "time,order_id,size,price,type,direction\n"
NEW_YORK = "times are taken as New York's of that day: UTC{} (--time-zone)"
golden("AAPL_2012-06-21_34200000_57600000_message_10.csv", MESSAGES, [],
       ["taken as LOBSTER messages (--format lobster)", NEW_YORK.format("-04:00")],
       {"lobster/AAPL/message": LOBSTER +
        "2012-06-21T13:30:00.004241176Z,16113575,18,585.33,1,1\n"
        "2012-06-21T13:30:00.250000000Z,0,100,585.325,5,-1\n"
        "2012-06-21T19:59:59.999999999Z,0,0,-0.0001,7,-1\n"})
# Winter, another name, another venue.
golden("m.csv", MESSAGES.split("\n", maxsplit=1)[0],
       ["--format", "lobster", "--date", "2012-11-05", "--symbol", "AAPL", "--exchange", "XNAS"],
       [NEW_YORK.format("-05:00")],
       {"XNAS/AAPL/message": LOBSTER + "2012-11-05T14:30:00.004241176Z,16113575,18,585.33,1,1\n"})
golden("m.csv", MESSAGES.split("\n", maxsplit=1)[0],
       ["--format", "lobster", "--date", "2012-11-05", "--symbol", "AAPL", "--time-zone", "+00:00"], [],
       {"lobster/AAPL/message": LOBSTER + "2012-11-05T09:30:00.004241176Z,16113575,18,585.33,1,1\n"})


def book(messages, rows, status=0, name="AAPL_2012-06-21_34200000_57600000_{}_2.csv"):
    place = os.path.join(directory, f"{next(numbers)}")
    os.makedirs(place)
    paths = [os.path.join(place, name.format(kind)) for kind in ("message", "orderbook")]
    for path, text in zip(paths, (messages, rows)):
        if text is not None:
            with open(path, "w", encoding="ascii") as out:
                out.write(text)
    store = os.path.join(place, "store")
    done = t.run([t.STOUP, "ingest", "--quiet", "--store", store, paths[1]], expect=None)
    t.equal(done.returncode, status, f"a book: {done.stderr}")
    return store, done.stderr.replace(place + "/", "")


ROWS = ("5859400,200,5853300,18,5859800,200,5853000,150\n"
        "5859400,200,5853300,18,9999999999,0,-9999999999,0\n"
        "5859400,200,5853300,18,5859800,200,5853000,150\n")
store, err = book(MESSAGES, ROWS)
BOOK = "AAPL_2012-06-21_34200000_57600000_orderbook_2.csv"
t.equal(err, f"{BOOK}: taken as a LOBSTER order book (--format lobster-book)\n{BOOK}: "
        f"{NEW_YORK.format('-04:00')}\n", "notes of a book")
t.equal(cat(store, ["lobster/AAPL/orderbook_2"]),
        ["time,ask_price_1,ask_size_1,bid_price_1,bid_size_1,ask_price_2,ask_size_2,bid_price_2,bid_size_2\n"
         "2012-06-21T13:30:00.004241176Z,585.94,200,585.33,18,585.98,200,585.3,150\n"
         "2012-06-21T13:30:00.250000000Z,585.94,200,585.33,18,,0,,0\n"
         "2012-06-21T19:59:59.999999999Z,585.94,200,585.33,18,585.98,200,585.3,150\n"], "a book")
_, err = book(MESSAGES, "".join(ROWS.splitlines(True)[:2]), 1)
AS_MANY = "both files must have as many rows"
t.equal(err.splitlines()[-1], f"stoup ingest: {BOOK}: line 3: a message, and no row of it here: {AS_MANY}",
        "a row less")
_, err = book(MESSAGES.split("\n", maxsplit=1)[0], ROWS, 1)
t.equal(err.splitlines()[-1], f"stoup ingest: {BOOK}: line 2: no message of this row: {AS_MANY}", "a message less")
_, err = book(None, ROWS, 1)
t.true("needs its message file: cannot open" in err, f"no messages: {err}")
print("ok lobster-book", flush=True)

# ---- Databento ------------------------------------------------------------------------------------

DBN_TRADES = "ts_recv,ts_event,rtype,publisher_id,instrument_id,action,side,depth,price,size,flags," \
             "ts_in_delta,sequence"
RECORD = ("rtype,publisher_id,instrument_id,ts_event,price,size,action,side,flags,depth,ts_recv,ts_in_delta,"
          "sequence\n"
          "0,1,5482,2020-12-28T13:00:00.000000000Z,3720.25,5,T,A,130,0,2020-12-28T13:00:00.099150057Z,19251,"
          "1170380\n")
NUMBERS = "1609160400099150057,1609160400000000000,0,1,5482,T,A,0,3720250000000,5,130,19251,1170380"
PRETTY = "2020-12-28T13:00:00.099150057Z,2020-12-28T13:00:00.000000000Z,0,1,5482,T,A,0,3720.250000000,5,130," \
         "19251,1170380"
golden("glbx-mdp3-20201228.trades.csv", f"{DBN_TRADES}\n{NUMBERS}\n", [],
       ["taken as Databento CSV (--format databento-csv)"], {"GLBX.MDP3/5482/trades": RECORD})
golden("x.csv", f"{DBN_TRADES},symbol\n{PRETTY},ESH1\n", ["--format", "databento-csv"], [],
       {"databento/ESH1/trades": RECORD})
golden("x.csv", "ts_event,rtype,publisher_id,instrument_id,open,high,low,close,volume\n"
       "1609160400000000000,33,1,5482,372025000000000,9223372036854775807,372000000000000,372025000000000,353\n",
       ["--exchange", "GLBX.MDP3"], ["taken as Databento CSV (--format databento-csv)"],
       {"GLBX.MDP3/5482/ohlcv-1m": "rtype,publisher_id,instrument_id,ts_event,open,high,low,close,volume\n"
        "33,1,5482,2020-12-28T13:00:00.000000000Z,372025,,372000,372025,353\n"})

# ---- FX and bars ----------------------------------------------------------------------------------

golden("EURUSD-2012-01.csv", "EUR/USD,20120101 22:00:00.123,1.29451,1.2951\n", [],
       ["taken as TrueFX quotes (--format truefx)"],
       {"truefx/EUR%2FUSD/quotes": "timestamp,bid,ask\n2012-01-01T22:00:00.123000000Z,1.29451,1.2951\n"})
golden("DAT_ASCII_EURUSD_T_202001.csv", "20200101 170000065,1.121200,1.121720,0\n", [],
       ["taken as HistData ticks (--format histdata)",
        "times are taken as New York's without summer time, as HistData writes them: UTC-05:00 (--time-zone)"],
       {"histdata/EURUSD/quotes": "timestamp,bid,ask,volume\n2020-01-01T22:00:00.065000000Z,1.1212,1.12172,0\n"})
golden("DAT_ASCII_EURUSD_M1_2012.csv", "20120201 000000;1.3;1.4;1.2;1.35;0\n", ["--format", "histdata-bars"],
       ["times are taken as New York's without summer time, as HistData writes them: UTC-05:00 (--time-zone)"],
       {"histdata/EURUSD/bars-1m": "ts,open,high,low,close,volume\n"
        "2012-02-01T05:00:00.000000000Z,1.3,1.4,1.2,1.35,0\n"})
golden("b.csv", "Date,Open,High,Low,Close,Volume\n2024-01-02,1,2,0.5,1.5,\n",
       ["--series", "A/B/c", "--interval", "1d"], ["taken as bars (--format bars)"],
       {"A/B/c": "ts,open,high,low,close,volume\n2024-01-02T00:00:00.000000000Z,1,2,0.5,1.5,\n"})
golden("q.csv", "time,bid,ask,bid_size,ask_size\n2024-01-02T10:00:00Z,1.5,1.25,1.5,2\n",
       ["--series", "A/B/c"], ["taken as quotes (--format quotes)"],
       {"A/B/c": "ts,bid,ask,bid_size,ask_size\n2024-01-02T10:00:00.000000000Z,1.5,1.25,1.5,2\n"})
