# SPDX-License-Identifier: Apache-2.0
"""The matrix of dirty CSV files: each is refused with what, where and what to do, or taken with a note; and the
store is as before where it was refused."""
import hashlib
import json
import os

import lib_stoup as t

directory = t.temp_dir()
FILE = os.path.join(directory, "f.csv")
STORE = os.path.join(directory, "store")

PLAIN = ["--series", "A/B/c", "--columns", "ts:time,px:price,n:u32"]
NAMED = ["--series", "A/B/c", "--time", "ts", "--map", "px:price=px,n:u32=n"]
TRADES = ["--format", "binance-trades", "--symbol", "BTCUSDT"]
L2 = ["--format", "tardis-l2"]

T = 1704067200000  # 2024-01-01, ms
ROW = f"1,42000.5,0.25,10500.125,{T},True,True\n"
TARDIS = "exchange,symbol,timestamp,local_timestamp,is_snapshot,side,price,amount\n"
LEVEL = f"deribit,BTC,{T}000,{T}001,true,ask,6421.5,18640\n"
WHOLE = "the last line has no line end: is the file whole?"
KNOWN = ("not the columns of a feed that is known ({}): say which it is (--format), or what they are (--columns, "
         "--map or --schema)")


def contents():
    """Names and bytes of the store, the lock aside."""
    return {name: hashlib.sha256(open(os.path.join(STORE, name), "rb").read()).hexdigest()
            for name in sorted(os.listdir(STORE)) if name.endswith(".stoup")}


def rows_of(store):
    if not os.path.exists(store):
        return 0
    listing = json.loads(t.run([t.STOUP, "ls", "--json", store]).stdout)
    return sum(series["records"] for series in listing["series"])


with open(FILE, "w", encoding="ascii") as out:
    out.write(f"{T},1.5,1\n")
t.run([t.STOUP, "ingest", "--quiet", "--store", STORE, "--series", "Z/Z/z", *PLAIN[2:], FILE])
BEFORE = contents()


def told(err):
    """What was said about the file, without its path; the front of a path may be left out."""
    lines = []
    for line in err.splitlines():
        line = line.removeprefix("stoup ingest: ")
        at = line.find("f.csv: ")
        lines.append(line[at + len("f.csv: "):] if at >= 0 else line)
    return lines


def dirty(what, data, options, text):
    """It is refused with `text`, and nothing happens to the store."""
    with open(FILE, "wb") as out_:
        out_.write(data.encode() if isinstance(data, str) else data)
    done = t.run([t.STOUP, "ingest", "--quiet", "--store", STORE, *options, FILE], expect=1)
    t.equal(told(done.stderr)[-1:], [text], f"{what}: {done.stderr}")
    t.equal(contents(), BEFORE, f"{what}: the store")


def taken(what, data, options, rows, notes=()):
    """It is taken, with notes."""
    with open(FILE, "wb") as out_:
        out_.write(data.encode() if isinstance(data, str) else data)
    store = os.path.join(t.temp_dir(), "store")
    done = t.run([t.STOUP, "ingest", "--quiet", "--store", store, *options, FILE])
    t.equal(told(done.stderr), list(notes), f"{what}: notes")
    t.equal(rows_of(store), rows, f"{what}: rows")


# ---- cut, empty -----------------------------------------------------------------------------------

dirty("empty", "", PLAIN, f"{FILE} is empty: was it written whole? Get it again, or leave it out")
taken("a header only", "ts,px,n\n", NAMED, 0, ["a header, and no rows"])
taken("a header only, of a feed", TARDIS, L2, 0, ["a header, and no rows"])
taken("blank lines only", "\n\n\n", PLAIN, 0, ["holds no rows"])
dirty("cut in a row", f"{T},1.5,1\n{T},1.", PLAIN, "line 2: 2 columns instead of 3: the file is cut there")
dirty("cut in a row of a feed", ROW + ROW[:30], TRADES,
      "line 2: 5 columns instead of 7: the file is cut there")
taken("cut in the last number", f"{T},1.5,12", PLAIN, 1, [WHOLE])
dirty("cut in the last word", ROW + ROW[:-3], TRADES,
      "line 2, column 7 (is_best_match): \"Tr\" is not true or false (or 1 or 0)")
dirty("a row too short", f"{T},1.5,1\n{T},1.5\n{T},1.5,1\n", PLAIN, "line 2: 2 columns instead of 3")
dirty("a comma at the end", f"{T},1.5,1\n{T},1.5,1,\n", PLAIN,
      "line 2: 4 columns instead of 3: the last is empty, a ',' at the end of the line")
dirty("a comma too many", f"{T},1.5,1\n{T},1,5,1\n", PLAIN,
      "line 2: 4 columns instead of 3: is there a ',' inside a value?")
taken("commas at all ends", TARDIS[:-1] + ",\n" + LEVEL[:-1] + ",\n", L2, 1, ["columns left out: #9"])

# ---- times ----------------------------------------------------------------------------------------

dirty("seconds", ROW.replace(str(T), "1704067200"), TRADES,
      "line 1, column 5 (time): \"1704067200\" looks like seconds, which this feed has not: if so, say "
      "--time-format s; nor is the row a header of binance-trades")
dirty("nanoseconds", ROW + ROW.replace(str(T), f"{T}000000"), TRADES,
      f"line 2, column 5 (time): \"{T}000000\" looks like nanoseconds, which this feed has not: if so, say "
      "--time-format ns")
dirty("ms where there are us", TARDIS + LEVEL.replace(f"{T}001", f"{T}"), L2,
      f"line 2, column 4 (local_timestamp): \"{T}\" looks like milliseconds, which this feed has not: if so, say "
      "--time-format ms")
taken("ms, as told", TARDIS + LEVEL.replace(f"{T}001", f"{T}"), [*L2, "--time-format", "epoch"], 1)
dirty("the year 1970", ROW + ROW.replace(str(T), "17040672000"), TRADES,
      "line 2, column 5 (time): \"17040672000\" is no time from 1990 to 2099 in any unit")
dirty("a time with a point", ROW + ROW.replace(str(T), f"{T}.5"), TRADES,
      f"line 2, column 5 (time): \"{T}.5\" is no time: a count of units since 1970 is, without sign, point or "
      "letters (texts: --time-format iso)")
taken("two units in one column", f"{T},1,1\n{T + 1}000,1,1\n{T + 2}000000,1,1\n", PLAIN, 3,
      ["line 2: times go on in microseconds, milliseconds before",
       "line 3: times go on in nanoseconds, microseconds before"])
taken("two units in one column of a feed", ROW + ROW.replace(str(T), f"{T}001").replace("1,", "2,", 1), TRADES, 2,
      ["line 2: times go on in microseconds, milliseconds before"])
dirty("out of order", f"{T},1,1\n{T - 1},1,1\n", PLAIN,
      f"{FILE}:2: 2023-12-31T23:59:59.999000000Z is before 2024-01-01T00:00:00.000000000Z of the record before it; "
      "--sort sorts, --order=keep keeps the order (series A/B/c)")
dirty("no time", f"{T},1,1\nnoon,1,1\n", PLAIN,
      "line 2, column 1 (ts): \"noon\" is not a time such as 2024-01-31T09:30:00.5Z")
dirty("a day first", f"{T},1,1\n31.01.2024 09:30,1,1\n", PLAIN,
      "line 2, column 1 (ts): \"31.01.2024 09:30\" is not an epoch whose unit can be told; set the time format to s, ms, us or ns "
      "(as text: --time-format '%d.%m.%Y %H:%M:%S', in the order that stands there)")
dirty("a month first", f"{T},1,1\n01/31/2024,1,1\n", PLAIN,
      "line 2, column 1 (ts): \"01/31/2024\" is not a time such as 2024-01-31T09:30:00.5Z "
      "(as text: --time-format '%d/%m/%Y %H:%M:%S', in the order that stands there)")
dirty("a year first", f"{T},1,1\n2024/01/31 09:30,1,1\n", PLAIN,
      "line 2, column 1 (ts): \"2024/01/31 09:30\" is not a time such as 2024-01-31T09:30:00.5Z "
      "(as text: --time-format '%Y/%m/%d %H:%M:%S', as it stands there)")
dirty("a time of day", f"{T},1,1\n9:30:00,1,1\n", PLAIN,
      "line 2, column 1 (ts): \"9:30:00\" is not a time such as 2024-01-31T09:30:00.5Z "
      "(a time of day: date and time belong into one column; docs/schemas.md, Times)")
taken("a day first, as told", "31.01.2024 09:30:00,1,1\n", [*PLAIN, "--time-format", "%d.%m.%Y %H:%M:%S"], 1)
taken("date and time in one", "2024-01-31 09:30:00.037,1,1\n", PLAIN, 1)
dirty("an empty time", f"{T},1,1\n,1,1\n", PLAIN,
      "line 2, column 1 (ts): \"\" is not a time between 1970 and 2262, as a key must be")
dirty("a day that is not", f"{T},1,1\n2024-02-30,1,1\n", PLAIN,
      "line 2, column 1 (ts): \"2024-02-30\" names a date that does not exist")

# ---- rows twice -----------------------------------------------------------------------------------

taken("a row twice", f"{T},1,1\n{T},1,1\n", PLAIN, 2)
taken("a numbered row twice", ROW + ROW + ROW, TRADES, 3,
      ["line 2: the same row as before it: kept (more such rows may follow)"])
dirty("two headers", "ts,px,n\n" + f"{T},1,1\n" + "ts,px,n\n", NAMED,
      "line 3: the header again: were files put together? take this line out, or ingest them one by one")
dirty("two headers of a feed", TARDIS + LEVEL + TARDIS + LEVEL, L2,
      "line 3: the header again: were files put together? take this line out, or ingest them one by one")

# ---- bytes ----------------------------------------------------------------------------------------

UTF16 = "line 1: the text is UTF-16; convert it (iconv -f UTF-16 -t UTF-8)"
NUL = "line {} has a NUL byte: not a text file, or UTF-16 (convert: iconv -f UTF-16 -t UTF-8)"
dirty("UTF-16", (TARDIS + LEVEL).encode("utf-16"), L2, UTF16)
dirty("UTF-16, unasked", (TARDIS + LEVEL).encode("utf-16"), [], UTF16)
dirty("UTF-16 without a mark", (TARDIS + LEVEL).encode("utf-16-le"), L2, NUL.format(1))
dirty("a NUL byte", f"{T},1,1\n{T},1\0,1\n", PLAIN, NUL.format(2))
taken("a mark of UTF-8", b"\xef\xbb\xbf" + (TARDIS + LEVEL).encode(), L2, 1)
taken("CR LF", (TARDIS + LEVEL).replace("\n", "\r\n"), L2, 1)
CR = "line 1: a CR inside the line: do lines end with CR alone? convert it (tr '\\r' '\\n')"
dirty("CR alone", f"{T},1,1\r{T},1,1\r", PLAIN, CR)
dirty("CR alone, of a feed", (TARDIS + LEVEL).replace("\n", "\r"), L2, CR)
dirty("CR alone, megabytes of it", f"{T},1,1\r" * 100_000, PLAIN, CR)
dirty("a very long row", f"{T},1,1\n" + "7" * (1 << 20) + "77\n", PLAIN,
      "line 2: the row that starts here is longer than 1048576 bytes; is a quote not closed, or is this not a "
      "table?")

# ---- quotes and delimiters ------------------------------------------------------------------------

taken("quoted", f'"{T}","1.5","1"\n', PLAIN, 1)
taken("quoted, of a feed", TARDIS.replace("price", '"price"') + LEVEL.replace("ask", '"ask"'), L2, 1)
dirty("a quote inside", f'{T},1"5,1\n', PLAIN,
      "line 1, column 2: a quote inside a field that does not start with one")
dirty("an open quote", f'{T},"1.5,1\n', PLAIN, "line 1, column 2: the quote that starts here is not closed")
dirty("semicolons", f"{T};1.5;1\n", PLAIN,
      "line 1 has 1 columns, but --columns names 3 (use - for one to skip); the columns seem to have another "
      "delimiter (--delimiter ';')")
dirty("tabs, by name", "ts\tpx\tn\n", NAMED,
      "line 1: no column is named ts; the first row is: ts?px?n; the columns seem to have another delimiter "
      "(--delimiter tab)")
dirty("semicolons of a feed", (TARDIS + LEVEL).replace(",", ";"), [],
      "line 1: " + KNOWN.format("...") + "; the columns seem to have another delimiter (--delimiter ';')")
taken("semicolons, as told", (TARDIS + LEVEL).replace(",", ";"), [*L2, "--delimiter", ";"], 1)
dirty("decimal commas", f"{T};1,5;1\n", [*PLAIN, "--delimiter", ";", "--header", "no"],
      "line 1, column 2 (px): \"1,5\" is not a decimal number (a decimal comma, or one between thousands? write "
      "1234.5)")
dirty("thousands", f'{T},"1,234,567.5",1\n', [*PLAIN, "--header", "no"],
      "line 1, column 2 (px): \"1,234,567.5\" is not a decimal number (commas between thousands? take them out)")

# ---- numbers --------------------------------------------------------------------------------------

taken("1e-8 and 19 digits", f"{T},1e-8,1\n{T},9223372036.854775806,1\n{T},-9223372036.854775808,1\n", PLAIN, 3)
dirty("a digit too many", f"{T},1.5,1\n{T},1.0000000001,1\n", PLAIN,
      "line 2, column 2 (px): \"1.0000000001\" has more decimals than the field's scale (9 decimals; more: "
      "--scale N)")
dirty("a digit too many of a feed's price", ROW + ROW.replace("42000.5", "1e-10"), TRADES,
      "line 2, column 2 (price): \"1e-10\" has more decimals than the field's scale (9 decimals; more: --scale N)")
dirty("a digit too many of a feed's size", ROW + ROW.replace("0.25", "0.250000001"), TRADES,
      "line 2, column 3 (qty): \"0.250000001\" has more decimals than the field's scale (8 decimals; more: "
      "--size-scale N)")
taken("mended", ROW.replace("42000.5", "1e-10"), [*TRADES, "--scale", "10"], 1)
dirty("a number too large", ROW + ROW.replace("0.25", "1e12"), TRADES,
      "line 2, column 3 (qty): \"1e12\" does not fit the field's type (with 8 decimals; fewer: --size-scale N)")
dirty("the value for undefined", f"{T},9223372036.854775807,1\n", [*PLAIN, "--header", "no"],
      "line 1, column 2 (px): \"9223372036.854775807\" is the value that stands for \"undefined\" in this field "
      "(with 9 decimals; fewer: --scale N)")
taken("prices below and at zero", ROW.replace("42000.5", "-3.25") + ROW.replace("42000.5", "0"), TRADES, 2)
dirty("a size below zero", ROW + ROW.replace("0.25", "-0.25"), TRADES,
      "line 2, column 3 (qty): \"-0.25\" does not fit the field's type")
taken("blanks around numbers", f"{T} , 1.5,\t1\n", PLAIN, 1)
taken("an empty price", f"{T},,1\n", PLAIN, 1)
dirty("an empty cell that cannot be", ROW + ROW.replace("0.25", ""), TRADES,
      "line 2, column 3 (qty): \"\" is empty, and the field has no value for \"undefined\"")
for word, hint in (("NaN", "what is undefined has an empty cell"), ("null", "what is undefined has an empty cell"),
                   ("-inf", "no field holds infinity")):
    dirty(word, f"{T},1,1\n{T},{word},1\n", PLAIN, f"line 2, column 2 (px): \"{word}\" is not a decimal number ({hint})")
dirty("a boolean that is none", ROW + ROW.replace("True", "yes"), TRADES,
      "line 2, column 6 (is_buyer_maker): \"yes\" is not true or false (or 1 or 0)")
dirty("a side that is none", TARDIS + LEVEL.replace("ask", "sell"), L2,
      "line 2, column 6 (side): \"sell\" is not bid or ask")
dirty("an empty symbol", TARDIS + LEVEL.replace("BTC", ""), L2,
      "line 2, column 2: \"\" is no name of a symbol or an exchange (1 to 127 bytes)")

# ---- which feed? ----------------------------------------------------------------------------------

dirty("no feed", "a,b,c\n1,2,3\n", [], "line 1: " + KNOWN.format("a,b,c"))
dirty("two feeds", "exchange,symbol,timestamp,local_timestamp,id,side,price,amount\n", [],
      "line 1: the columns may be those of tardis-trades or tardis-liquidations: say which (--format NAME)")
dirty("a column missing", TARDIS.replace("is_snapshot", "snapshot") + LEVEL, L2,
      "line 1: the column is_snapshot of tardis-l2 is missing; the first row is: "
      "exchange,symbol,timestamp,local_timestamp,snapshot,side,price,amount")
dirty("a column twice", TARDIS[:-1] + ",price\n" + LEVEL[:-1] + ",1\n", L2,
      "line 1: columns 7 and 9 are both named price: rename the one that does not count")
dirty("no symbol", ROW, ["--format", "binance-trades"],
      "line 1: binance-trades does not name its symbol, and the file's name is not of the form that does: say it "
      "(--symbol NAME, or --series NAME)")
dirty("a header that is none", ROW, [*TRADES, "--header", "yes"],
      "line 1: a row of binance-trades, and no header as --header yes says")
dirty("no interval", "time,open,high,low,close\n2024-01-02,1,2,1,2\n", ["--series", "A/B/c"],
      "line 1: bars: say how long the bars are (--interval 1m), since a bar is known only at its end (0: the times "
      "are the ends)")
dirty("no date", "34200.1,1,1,18,5853300,1\n", ["--format", "lobster", "--symbol", "AAPL"],
      "line 1: lobster has seconds of a day, and the file's name does not say which: say it (--date 2012-06-21)")
dirty("a date before the rules", "34200.1,1,1,18,5853300,1\n",
      ["--format", "lobster", "--symbol", "AAPL", "--date", "1986-06-21"],
      "line 1: the date is before 1987, when New York had other rules of summer time: say the offset (--time-zone "
      "-04:00 or -05:00)")
dirty("a time beyond the day", "34200.1,1,1,18,5853300,1\n86400,1,1,18,5853300,1\n",
      ["--format", "lobster", "--symbol", "AAPL", "--date", "2012-06-21"],
      "line 2, column 1 (time): \"86400\" is no second of a day (0 to 86399.999999999)")
dirty("two symbols in one series", TARDIS + LEVEL + LEVEL.replace("BTC", "ETH"), [*L2, "--series", "A/B/c"],
      "line 3, column 2: \"ETH\" is another symbol (or exchange) than before, and --series makes one series of all: "
      "leave it out, or choose one (--symbols)")
dirty("two exchanges in one series", TARDIS + LEVEL + LEVEL.replace("deribit", "ftx"), [*L2, "--series", "A/B/c"],
      "line 3, column 2: \"BTC\" is another symbol (or exchange) than before, and --series makes one series of "
      "all: leave it out, or choose one (--symbols)")
dirty("columns told, and a feed", ROW, [*TRADES, "--columns", "a:time"],
      "--columns is not for --format binance-trades, which knows its columns: leave one of them out")
dirty("symbols without a feed", f"{T},1,1\n", [*PLAIN, "--symbols", "A"],
      "CSV has no symbols that --symbols could choose, unless it is of a feed (--format)")
DBN = "ts_recv,ts_event,rtype,publisher_id,instrument_id,action,side,depth,price,size,flags,ts_in_delta,sequence"
FIRST = f"{T}000000,{T}000000,{{}},1,5482,T,A,0,{{}},5,130,19251,1170380\n"
BOOK = DBN + ",bid_px_00,ask_px_00,bid_sz_00,ask_sz_00,bid_ct_00,ask_ct_00\n"
dirty("mbp-1 or tbbo", BOOK + FIRST.format(1, "1.5")[:-1] + ",1.5,1.5,1,1,1,1\n", [],
      "line 2: the columns are those of mbp-1 and of tbbo: say which (--schema mbp-1)")
taken("tbbo, as told", BOOK + FIRST.format(1, "1.5")[:-1] + ",1.5,1.5,1,1,1,1\n",
      ["--format", "databento-csv", "--schema", "tbbo"], 1)
dirty("two forms of prices", DBN + "\n" + FIRST.format(0, "1.5") + FIRST.format(0, "1500000000"), [],
      "line 3, column 9 (price): \"1500000000\" has no point, and the first row's price has one: is it in units of "
      "1e-9?")
dirty("two kinds of records", DBN + "\n" + FIRST.format(0, "1.5") + FIRST.format(1, "1.5"), [],
      "line 3, column 3 (rtype): \"1\" is another kind of record than in the first row: a file has one")

# ---- a file twice ---------------------------------------------------------------------------------

with open(FILE, "w", encoding="ascii") as out:
    out.write(TARDIS + LEVEL)
store = os.path.join(t.temp_dir(), "store")
t.run([t.STOUP, "ingest", "--quiet", "--store", store, *L2, FILE])
t.equal(rows_of(store), 1, "once")
t.run([t.STOUP, "ingest", "--quiet", "--store", store, *L2, FILE], expect=None)
t.equal(rows_of(store), 1, "a file again, for itself, adds nothing")
print("ok", flush=True)
