# SPDX-License-Identifier: Apache-2.0
"""Files of feeds that hold several symbols, or say their kind by folder, delimiter or length alone: no two things end
in one series."""
import json
import os
import zipfile

import lib_stoup as t

BARS = ("Date,Ticker,Open,High,Low,Close,Volume\n"
        "2024-01-02,AAPL,1,2,0.5,1,5\n2024-01-02,MSFT,1,2,0.5,1,7\n2024-01-03,AAPL,1,2,0.5,1,5\n")
QUOTES = ("timestamp,symbol,bid,ask\n2024-01-02T00:00:00Z,AAPL,1,2\n2024-01-02T00:00:00Z,MSFT,1,2\n")
TARDIS = ("exchange,symbol,timestamp,local_timestamp,ask_amount,ask_price,bid_price,bid_amount\n"
          "a,S,1704067200000000,1704067200000000,1,2,3,4\na,T,1704067200000000,1704067200000000,1,2,3,4\n")


def ingest(name, text, *options, expect=0):
    """Files {name: text}, or one. Returns {series: records} and what was told."""
    root = t.temp_dir()
    paths = []
    for file, content in (name.items() if isinstance(name, dict) else [(name, text)]):
        paths.append(os.path.join(root, file))
        os.makedirs(os.path.dirname(paths[-1]), exist_ok=True)
        with open(paths[-1], "w", encoding="ascii") as out:
            out.write(content)
    store = os.path.join(root, "store")
    done = t.run([t.STOUP, "ingest", "--quiet", "--store", store, *options, *paths], expect=expect)
    if expect:
        return {}, done.stderr
    listing = json.loads(t.run([t.STOUP, "ls", "--json", store]).stdout)
    return {series["name"]: series["records"] for series in listing["series"]}, done.stderr


# ---- several symbols -------------------------------------------------------------------------------

found, _ = ingest("b.csv", BARS, "--exchange", "X", "--interval", "1d")
t.equal(found, {"X/AAPL/bars-1d": 2, "X/MSFT/bars-1d": 1}, "bars of two tickers")
found, _ = ingest("b.csv", BARS, "--exchange", "X", "--interval", "1d", "--symbols", "MSFT", "--symbol", "OTHER")
t.equal(found, {"X/OTHER/bars-1d": 1}, "one ticker, named otherwise")
found, _ = ingest("q.csv", QUOTES, "--format", "quotes", "--exchange", "X")
t.equal(found, {"X/AAPL/quotes": 1, "X/MSFT/quotes": 1}, "quotes of two symbols")
ONE = "line 3, column 2: \"{}\" is another symbol (or exchange) than before, and --symbol names one"
for text, symbol, options in ((BARS, "MSFT", ["--format", "bars", "--interval", "1d", "--exchange", "X"]),
                              (QUOTES, "MSFT", ["--format", "quotes", "--exchange", "X"]),
                              (TARDIS, "T", ["--format", "tardis-quotes"])):
    _, told = ingest("x.csv", text, *options, "--symbol", "A", expect=1)
    t.true(ONE.format(symbol) in told, f"--symbol over two: {told}")
found, _ = ingest("x.csv", TARDIS, "--exchange", "B")
t.equal(found, {"B/S/quotes": 1, "B/T/quotes": 1}, "--exchange over two symbols")
_, told = ingest("x.csv", TARDIS.replace("a,T", "b,S"), "--exchange", "B", expect=1)
t.true("line 3, column 1: \"b\" is another exchange than before, and --exchange names one" in told, told)
found, _ = ingest("x.csv", BARS.replace("AAPL", "").replace("MSFT", ""), "--exchange", "X", "--symbol", "A",
                  "--interval", "1d")
t.equal(found, {"X/A/bars-1d": 3}, "empty symbols, named by the user")
DBN = ("ts_recv,ts_event,rtype,publisher_id,instrument_id,action,side,depth,price,size,flags,ts_in_delta,sequence,symbol\n"
       "1609160400099150057,1609160400000000000,0,1,5482,T,A,0,3720250000000,5,130,19251,1,ESH1\n"
       "1609160400099150058,1609160400000000000,0,1,77,T,A,0,3720250000000,5,130,19251,2,\n"
       "1609160400099150059,1609160400000000000,0,1,77,T,A,0,3720250000000,5,130,19251,3,\n"
       "1609160400099150060,1609160400000000000,0,1,5482,T,A,0,3720250000000,5,130,19251,4,ESH1\n")
found, _ = ingest("glbx-mdp3-20201228.trades.csv", DBN)
t.equal(found, {"GLBX.MDP3/ESH1/trades": 2, "GLBX.MDP3/77/trades": 2}, "an instrument without a symbol")
found, _ = ingest("AAPL_2012-06-21_34200000_57600000_message_1.csv", "34200.1,1,1,1,1,1,null\n34200.2,1,1,1,1,1,ABCD\n")
t.equal(found, {"lobster/AAPL/message": 2}, "LOBSTER's seventh column")
print("ok symbols", flush=True)

# ---- the second megabyte ---------------------------------------------------------------------------

# A symbol whose rows all lie behind the part that is read first is no reason to say that there are none.
text = ["exchange,symbol,timestamp,local_timestamp,id,side,price,amount\n"]
text += [f"d,{'B' if i == 45_000 else 'A'},{1704067200000000 + i},{1704067200000005 + i},{i},buy,1,1\n"
         for i in range(60_000)]
found, told = ingest("d_trades_2024-01-01_X.csv", "".join(text), "--symbols", "B")
t.equal(found, {"d/B/trades": 1}, "a late symbol")
t.true("holds no row" not in told, f"a late symbol: {told}")
root = t.temp_dir()
path = os.path.join(root, "d_trades_2024-01-01_X.csv")
with open(path, "w", encoding="ascii") as out:
    out.writelines(text)
done = t.run([t.STOUP, "ingest", "--store", os.path.join(root, "store"), "--symbols", "Z", path])
t.equal(done.stderr.count("holds no row of the symbols asked for"), 1, f"no such symbol: {done.stderr}")
print("ok late", flush=True)

# ---- what is said by folder, name and length --------------------------------------------------------

KLINE = "{},1,2,0.5,1.5,10,{},15,3,5,7,0\n"
DAY = 86_400_000
JANUARY, FEBRUARY, MARCH = 1704067200000, 1704067200000 + 31 * DAY, 1704067200000 + 60 * DAY
MINUTE = KLINE.format(JANUARY, JANUARY + 59999)
found, _ = ingest({f"futures/um/{kind}/BTCUSDT-1m-2024-01.csv": MINUTE
                   for kind in ("klines", "markPriceKlines", "indexPriceKlines", "premiumIndexKlines")}, None)
t.equal(found, {f"binance-futures/BTCUSDT/{kind}-1m": 1
                for kind in ("klines", "markPriceKlines", "indexPriceKlines", "premiumIndexKlines")}, "kinds of klines")
MONTHS = {"BTCUSDT-1mo-2024-01.csv": KLINE.format(JANUARY, FEBRUARY - 1),
          "BTCUSDT-1mo-2024-02.csv": KLINE.format(FEBRUARY, MARCH - 1)}
found, _ = ingest(MONTHS, None, "--exchange", "binance", "--interval", "31d")
t.equal(found, {"binance/BTCUSDT/klines-31d": 2}, "months")
for files in (MONTHS, {"x.csv": MONTHS["BTCUSDT-1mo-2024-02.csv"]}):
    _, told = ingest(files, None, "--exchange", "binance", "--symbol", "BTCUSDT", expect=1)
    t.true("months are not of one length: say the longest (--interval 31d)" in told, told)
found, told = ingest("DAT_ASCII_EURUSD_M1_2012.csv", "20120201 000000;1.3;1.4;1.2;1.35;0\n")
t.equal(found, {"histdata/EURUSD/bars-1m": 1}, "HistData's bars by their name")
t.true("taken as HistData bars (--format histdata-bars)" in told, told)
print("ok kinds", flush=True)

# ---- two columns for one field -----------------------------------------------------------------------

# A date and a time of day: all bars of a day would have one time.
for head, row, text in (("Date,Time,Open,High,Low,Close,Volume", "2024-01-01,09:30:00,1,2,0.5,1,5",
                         "columns 1 (Date) and 2 (Time) may both be ts of bars"),
                        ("date,time,open,high,low,close", "2024-01-01,09:30:00,1,2,0.5,1",
                         "columns 1 (date) and 2 (time) may both be ts of bars"),
                        ("time,bid,ask,bid_price", "2024-01-01,1,2,3", "columns 2 (bid) and 4 (bid_price) may both be bid"),
                        ("time,bid,ask,bid", "2024-01-01,1,2,3", "columns 2 and 4 are both named bid")):
    _, told = ingest("x.csv", f"{head}\n{row}\n", "--series", "A", "--format", "bars" if "pen" in head else "quotes",
                     *(["--interval", "1m"] if "pen" in head else []), expect=1)
    t.true(f"line 1: {text}" in told, f"{head}: {told}")
print("ok two columns", flush=True)

# ---- options that would be ignored ----------------------------------------------------------------------

PLAIN = ["--series", "A", "--columns", "ts:time,p:price"]
for name, text, options, expected in (
        ("p.csv", "2024-01-02,1\n", [*PLAIN, "--size-scale", "3"], "--size-scale is for CSV of a feed (--format)"),
        ("p.csv", "2024-01-02,1\n", [*PLAIN, "--exchange", "X"], "--exchange is for CSV of a feed (--format)"),
        ("p.csv", "2024-01-02,1\n", [*PLAIN, "--symbol", "X"], "--symbol is for CSV of a feed (--format)"),
        ("p.csv", "2024-01-02,1\n", [*PLAIN, "--date", "2024-01-02"], "--date is for CSV of a feed (--format)"),
        ("BTCUSDT-trades-2024-01.csv", "1,2.5,3,7.5,1704067200000,true\n", ["--date", "2024-01-02"],
         "--date is for times that count from midnight, and those of binance-trades do not"),
        ("AAPL_2012-06-21_1_2_message_1.csv", "34200.1,1,1,1,1,1\n", ["--time-format", "ns"],
         "--time-format is not for lobster")):
    _, told = ingest(name, text, *options, expect=1)
    t.true(expected in told, f"{options}: {told}")
print("ok ignored", flush=True)
for times in (["--from", "2024-01-02", "--to", "2024-01-01"], ["--to", "2024-01-01", "--from", "2024-01-01"]):
    _, told = ingest("p.csv", "2024-01-02,1\n", *PLAIN, *times, expect=2)
    t.true("--from is not before --to" in told, told)
print("ok range", flush=True)

# ---- columns left out ------------------------------------------------------------------------------------

EXTRA = [f"extra_column_{i}" for i in range(40)]
_, told = ingest("q.csv", f"time,bid,ask,{','.join(EXTRA)},\n2024-01-02,1,2{',x' * 41}\n", "--format", "quotes",
                 "--series", "A")
t.true(f"columns left out: {', '.join(EXTRA[:11])}, #44 and 29 more" in told, told)
print("ok left out", flush=True)

# A pair in one zip: the book's messages are not looked for inside.
place = os.path.join(t.temp_dir(), "pair.zip")
with zipfile.ZipFile(place, "w") as pair:
    pair.writestr("A_2012-06-21_1_2_message_1.csv", "34200.1,1,11,100,5853300,1\n")
    pair.writestr("A_2012-06-21_1_2_orderbook_1.csv", "5853300,1,5853200,2\n")
told = t.run([t.STOUP, "ingest", "--store", place + ".store", place], expect=1).stderr
t.true("are in the message file beside it: unpack the archive, and give the files" in told, told)
print("ok pair", flush=True)
