# SPDX-License-Identifier: Apache-2.0
"""stoup cat as a query: each option, and each combination that is allowed, over series of two schemas, bars and
documents, compared with what plain Python makes of the rows that went in; each pair that is refused, with its text."""
import csv
import io
import itertools
import json
import os
import random
import struct

import lib_stoup as t

NS = 1_000_000_000
work = t.temp_dir()
STORE = os.path.join(work, "ticks") + "/"
random.seed(20240603)


def iso(ns):
    seconds, rest = divmod(ns, NS)
    import datetime
    at = datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc)
    return f"{at:%Y-%m-%dT%H:%M:%S}.{rest:09}Z"


class Series:
    """What went in: for each record its key, when it was known, and its columns as printed; JSON of them."""

    def __init__(self, name, columns, late=0):
        self.name, self.columns, self.late, self.rows = name, columns, late, []

    def add(self, key, *cells):
        self.rows.append((key, dict(zip(self.columns, cells))))


def decimal(units, digits):
    """units * 10^-digits without needless zeros."""
    sign, units = ("-" if units < 0 else ""), abs(units)
    whole, rest = divmod(units, 10 ** digits)
    rest = f"{rest:0{digits}}".rstrip("0")
    return sign + str(whole) + ("." + rest if rest else "")


def ingest(name, text, *options):
    path = os.path.join(work, "in.csv")
    with open(path, "w", encoding="ascii") as out:
        out.write(text)
    t.run([t.STOUP, "ingest", "--store", STORE, "--quiet", "--series", name, *options, path])


# ---- what is in the store: many equal keys, gaps, undefined values, two volumes ------------------------------------------
QUOTES = ("ts", "bid", "ask", "size", "venue")
first, second = Series("A/X/quotes", QUOTES), Series("A/Y/quotes", QUOTES)
for series in (first, second):
    for part in range(2):
        key, lines = t.T0 + part * 600 * NS, []
        for n in range(1500 if series is first else 400):
            key += random.choice((0, 0, 1, 1, 5, NS // 4))
            bid = random.randrange(900_00, 1100_00)
            size = random.choice(("", *map(str, range(1, 30))))
            cells = decimal(bid, 2), decimal(bid + random.randrange(1, 5), 2), size, random.choice("ABC")
            lines.append(f"{key},{','.join(cells)}\n")
            series.add(key, iso(key), *cells)
        ingest(series.name, "".join(lines), "--columns", "ts:time,bid:price,ask:price,size:price,venue:char", "--block", "64K")
bars = Series("A/X/bars", ("ts", "open", "high", "low", "close", "volume"), 60 * NS)
lines = []
for n in range(20):
    key = t.T0 // (60 * NS) * 60 * NS + n * 60 * NS
    cells = "1", decimal(150 + n, 2), "0.5", "1.25", str(100 + n)
    bars.add(key, iso(key), *cells)
    lines.append(",".join((str(key), *cells)) + "\n")
ingest(bars.name, "".join(lines), "--schema", "bar", "--interval", "1m", "--columns", "ts,open,high,low,close,volume")
docs = Series("D/a/bipf", ("key", "message"))
for n in range(60):
    key = t.T0 + n // 2 * 7 * NS
    body = {"e": random.choice(("trade", "book")), "p": decimal(random.randrange(1, 900), 1), "n": n, "deep": [{"x": n % 7}]}
    docs.add(key, iso(key), json.dumps(body, separators=(",", ":")))
capture = os.path.join(work, "capture.jsonl")
with open(capture, "w", encoding="ascii") as out:
    out.writelines(f"{key} {cells['message']}\n" for key, cells in docs.rows)
t.run([t.STOUP, "ingest", "--store", STORE, "--quiet", "--series", docs.name, capture])
texts = Series("D/a/json", ("key", "message"))
texts.rows = docs.rows
t.run([t.STOUP, "ingest", "--store", STORE, "--quiet", "--as", "text", "--series", texts.name, capture])
ALL = {series.name: series for series in (first, second, bars, docs, texts)}
daemon = t.Daemon(STORE[:-1], "32M")
POOL = daemon.pool


# ---- what is expected -------------------------------------------------------------------------------------------------------


def holds(series, row, where):
    return where is None or where(row[1])


def chosen(series, ask):
    """The rows of one series in the order of time, of which each is (key, cells)."""
    rows = list(enumerate(series.rows))
    low, high = ask.get("ordinals", (0, len(rows)))
    rows = [row for at, row in rows if low <= at < high]
    late = series.late if ask.get("merge") else 0  # a merge has bars where they were known
    rows = [row for row in rows if ask.get("from", 0) <= row[0] + late and row[0] + late > ask.get("after", -1)]
    rows = [row for row in rows if row[0] + late < ask.get("to", 2**63) and row[0] + late <= ask.get("until", 2**63)]
    return [row for row in rows if holds(series, row, ask.get("where"))]


def ends(rows, ask):
    if "first" in ask:
        rows = rows[:ask["first"]]
    if "last" in ask:
        rows = rows[-ask["last"]:] if ask["last"] else []
    if ask.get("reverse"):
        rows = rows[::-1]
    return rows[:ask.get("limit", len(rows))]


def answer(names, ask):
    """Rows as (asof, series, cells)."""
    out = []
    if "asof" in ask:
        for at in ask["asof"]:
            for name in names:
                series = ALL[name]
                known = [row for row in series.rows if row[0] + series.late <= at and holds(series, row, ask.get("where"))]
                out.append((at, name, known[-1][1] if known else {}))
        return out
    if ask.get("merge"):
        rows = [(key + ALL[name].late, place, at, (None, name, cells)) for place, name in enumerate(names)
                for at, (key, cells) in enumerate(chosen(ALL[name], ask))]
        return [row[3] for row in ends(sorted(rows, key=lambda row: row[:3]), ask)]
    for name in names:
        out += [(None, name, cells) for _, cells in ends(chosen(ALL[name], ask), ask)]
    return out


def union(names, ask):
    if "select" in ask:
        return list(ask["select"])
    records = [name for name in names if name.startswith("A/")]
    columns = list(dict.fromkeys(column for name in records for column in ALL[name].columns))
    return columns + (["key", "message"] if len(records) < len(names) else [])


def options_of(ask):
    out = []
    for option in ("from", "after", "to", "until"):
        if option in ask:
            out += ["--" + option, random.choice((str, iso))(ask[option])]
    for option in ("first", "last", "limit"):
        if option in ask:
            out += ["--" + option, str(ask[option])]
    for at in ask.get("asof", ()):
        out += ["--asof", iso(at)]
    if "ordinals" in ask:
        out += ["--at-ordinal", "{}:{}".format(*ask["ordinals"])]
    if "select" in ask:
        out += ["--select", ",".join(ask["select"])]
    for text in ask.get("where_text", ()):
        out += ["--where", text]
    return out + ["--" + option for option in ("reverse", "merge") if ask.get(option)]


def cat(arguments, *options, expect=0):
    return t.run([t.STOUP, "cat", POOL, *arguments, *options], expect=expect)


def as_csv(names, ask, named):
    rows, columns = answer(names, ask), union(names, ask)
    out = io.StringIO()
    head = (["asof"] if "asof" in ask else []) + (["series"] if named else []) + columns
    table = csv.writer(out, lineterminator="\n")
    table.writerow(head)
    for at, name, cells in rows:
        table.writerow(([iso(at)] if "asof" in ask else []) + ([name] if named else []) +
                       [cells.get(column, "") for column in columns])
    return out.getvalue()


TEXTS = {"ts", "venue", "key"}


def value(column, cell):
    if column in TEXTS:
        return cell or None
    return json.loads(cell) if cell else None


def as_json(names, ask, named):
    out = []
    for at, name, cells in answer(names, ask):
        columns = ask.get("select", ALL[name].columns)
        out.append(({"asof": iso(at)} if "asof" in ask else {}) | ({"series": name} if named else {}) |
                   {column: value(column, cells.get(column, "")) for column in columns})
    return out


def same(found, expected, what):
    """Two long lists: the first place where they differ."""
    t.equal(len(found), len(expected), what + ": lines")
    for at, (one, other) in enumerate(zip(found, expected)):
        t.equal(one, other, f"{what}: line {at}")


def check(names, ask, patterns=None):
    """All forms of text of one question."""
    arguments, options = patterns or names, options_of(ask)
    named = len(names) > 1 or patterns is not None or "asof" in ask or bool(ask.get("merge"))
    what = f"{arguments} {options}"
    found = cat(arguments, *options).stdout
    expected = as_csv(names, ask, named)
    if found != expected:
        # JSON texts are quoted in any case; the values are compared where the bytes differ.
        same(list(csv.reader(io.StringIO(found))), list(csv.reader(io.StringIO(expected))), what)
    t.equal(cat(arguments, *options, "--no-header").stdout, found.split("\n", 1)[1], what + " --no-header")
    objects = as_json(names, ask, named)
    lines = cat(arguments, *options, "--format", "jsonl").stdout.splitlines()
    same([json.loads(line) for line in lines], objects, what + " --format jsonl")
    t.true(all(list(json.loads(line)) == list(one) for line, one in zip(lines, objects)), what + ": order of members")
    same(json.loads(cat(arguments, *options, "--format", "json").stdout), objects, what + " --format json")
    return len(objects)


def counts(names, ask, patterns=None):
    ask = {key: part for key, part in ask.items() if key not in ("reverse", "select", "asof")}
    options = options_of(ask)
    rows = answer(names, ask)
    if ask.get("merge"):
        t.equal(cat(names, *options, "--count").stdout, f"records\n{len(rows)}\n", f"{names} {options} --count")
        return
    numbers = [sum(row[1] == name for row in rows) for name in names]
    if len(names) == 1:
        t.equal(cat(names, *options, "--count", "--no-header").stdout, f"{numbers[0]}\n", f"{names} {options} --count")
    else:
        t.equal(cat(names, *options, "--count").stdout,
                "series,records\n" + "".join(f"{name},{number}\n" for name, number in zip(names, numbers)),
                f"{names} {options} --count")
    t.equal(json.loads(cat(names, *options, "--count", "--format", "json").stdout),
            [({"series": name} if len(names) > 1 else {}) | {"records": number} for name, number in zip(names, numbers)],
            f"{names} {options} --count --format json")


# ---- some by hand, so that the model is not believed alone -------------------------------------------------------------------
two = first.rows[:2]
t.equal(cat([first.name], "--first", "2").stdout,
        "ts,bid,ask,size,venue\n" + "".join(",".join(cells.values()) + "\n" for _, cells in two), "the first two")
t.equal(cat([bars.name], "--select", "high,ts", "--first", "2", "--reverse").stdout,
        "high,ts\n1.51,2023-11-14T22:14:00.000000000Z\n1.5,2023-11-14T22:13:00.000000000Z\n", "the first two, the second first")
t.equal(cat([bars.name], "--asof", "2023-11-14T22:14:59.999999999Z", "--select", "volume").stdout,
        "asof,series,volume\n2023-11-14T22:14:59.999999999Z,A/X/bars,100\n", "a bar is known from its close on")
t.equal(cat([bars.name], "--asof", "2023-11-14T22:15:00Z", "--select", "volume", "--no-header").stdout,
        "2023-11-14T22:15:00.000000000Z,A/X/bars,101\n", "and then it is")
t.equal(cat([bars.name], "--asof", "2023-11-14T22:13:59Z", "--format", "jsonl", "--select", "volume,ts").stdout,
        '{"asof":"2023-11-14T22:13:59.000000000Z","series":"A/X/bars","volume":null,"ts":null}\n', "none was known")
t.equal(cat([first.name], "--count").stdout, "records\n3000\n", "count")
t.equal(cat([first.name, second.name, "A/*"], "--count", "--format", "jsonl").stdout,
        '{"series":"A/X/quotes","records":3000}\n{"series":"A/Y/quotes","records":800}\n'
        '{"series":"A/X/bars","records":20}\n', "each series once, in the order in which they are said")
t.equal(cat([first.name], "--first", "0", "--format", "json").stdout, "[]\n", "an empty array")
t.equal(cat([first.name], "--at-ordinal", "7", "--no-header").stdout, ",".join(first.rows[7][1].values()) + "\n", "one record")
t.equal(cat([first.name], "--at-ordinal", "2998:", "--no-header").stdout,
        "".join(",".join(cells.values()) + "\n" for _, cells in first.rows[2998:]), "an open end")
t.equal(cat([first.name], "--at-ordinal", ":2", "--count", "--no-header").stdout, "2\n", "an open begin")
empty = next(n for n, (_, cells) in enumerate(first.rows) if not cells["size"])
t.equal(cat([first.name], "--at-ordinal", str(empty), "--select", "size").stdout, 'size\n""\n', "no empty line")
t.equal(cat([first.name], "--backward", "--limit", "1", "--no-header").stdout,
        ",".join(first.rows[-1][1].values()) + "\n", "--backward is --reverse")

# ---- every question, at random --------------------------------------------------------------------------------------------
WHERE = {
    "records": ((("size > 20 and venue = 'B'",), lambda c: c["size"] != "" and int(c["size"]) > 20 and c["venue"] == "B"),
                (("bid >= 1000", "venue != A"), lambda c: float(c["bid"]) >= 1000 and c["venue"] != "A"),
                (("size is null",), lambda c: c["size"] == ""), (("bid > 5000",), lambda c: False)),
    "docs": ((('e = "trade"', "p > 30"), lambda c: json.loads(c["message"])["e"] == "trade" and
              float(json.loads(c["message"])["p"]) > 30), (("deep[0].x = 3",), lambda c: json.loads(c["message"])["deep"][0]["x"] == 3),
             (("n < 0",), lambda c: False)),
}


def near_key(names):
    key = random.choice(random.choice([ALL[name] for name in names]).rows)[0]
    return key + random.choice((0, 0, -1, 1, 60 * NS))


def ask_of(names):
    ask = {}
    kind = random.choice(("range", "range", "range", "ordinals", "asof"))
    if kind == "asof":
        ask["asof"] = [near_key(names) for _ in range(random.randrange(1, 6))]
    elif kind == "ordinals":
        low = random.randrange(3100)
        ask["ordinals"] = (low, low + random.randrange(1, 1700))
    else:
        low, high = sorted((near_key(names), near_key(names)))
        ask |= random.choice(({}, {"from": low}, {"after": low}))
        ask |= random.choice(({}, {"to": high}, {"until": high}))
        if len(names) > 1:
            ask |= random.choice(({}, {"merge": True}))
    if kind != "asof":
        ask |= random.choice(({}, {"first": random.randrange(0, 90)}, {"last": random.randrange(0, 90)},
                              {"limit": random.randrange(0, 2000)}))
        ask |= random.choice(({}, {"reverse": True}))
    if all(name.startswith("A/") for name in names):
        columns = union(names, {})
        ask |= random.choice(({}, {"select": random.sample(columns, random.randrange(1, len(columns) + 1))}))
    kinds = {"records" if "quotes" in name else "docs" if "bipf" in name else None for name in names}
    if len(kinds) == 1 and kinds != {None} and random.random() < 0.5:
        ask["where_text"], ask["where"] = random.choice(WHERE[kinds.pop()])
    return ask


SETS = ([first.name], [second.name], [bars.name], [docs.name], [texts.name], [second.name, first.name],
        [second.name, bars.name], [docs.name, second.name, bars.name, texts.name], list(ALL))
printed = 0
for number in range(180):
    names = random.choice(SETS)
    ask = ask_of(names)
    printed += check(names, ask)
    if "asof" not in ask:
        counts(names, ask)
t.true(printed > 10_000, f"rows compared: {printed}")
by_name = sorted(ALL)
check([name for name in by_name if "quotes" in name], {"last": 3}, ["A/*/quotes"])
check([bars.name], {"last": 3}, ["*bars"])
check([docs.name, texts.name], {"first": 1, "reverse": True}, ["D/[a]/*"])

# ---- documents cut to paths ------------------------------------------------------------------------------------------------
found = cat([docs.name], "--path", "p", "--path", "deep[0].x", "--where", "n >= 57", "--reverse").stdout
t.equal(found, "key,p,deep[0].x\n" + "".join(
    f"{cells['key']},{json.loads(cells['message'])['p']},{n % 7}\n" for n, (_, cells) in reversed(list(enumerate(docs.rows)))
    if n >= 57), "paths")
t.equal(cat([docs.name], "--asof", str(t.T0 - 1), "--asof", str(t.T0), "--path", "n", "--path", "e").stdout,
        f"asof,series,key,n,e\n{iso(t.T0 - 1)},D/a/bipf,,,\n{iso(t.T0)},D/a/bipf,{iso(t.T0)},1,"
        f"{json.loads(docs.rows[1][1]['message'])['e']}\n", "paths as of times")
t.equal(cat([docs.name], "--format", "lines", "--last", "2", "--where", "n != 59").stdout,
        "".join(f"{key} {cells['message']}\n" for key, cells in docs.rows[57:59]), "lines")

# ---- bars, by hand -------------------------------------------------------------------------------------------------------
# Trades at seconds 0, 20, 40 of a minute and at second 10 of the one after the next; T0 is at second 20.
MINUTE = t.T0 // (60 * NS) * 60
lines = [(MINUTE, 10.5, 3), (MINUTE + 20, 11, 1), (MINUTE + 40, 9.5, 2), (MINUTE + 130, 10, 4)]
ingest("B/X/tick", "".join(f"{at * NS},{price},{size}\n" for at, price, size in lines), "--columns",
       "ts:time,price:price,size:u32")
t.until(lambda: "B/X/tick" in t.run([t.STOUP, "cat", POOL, "*", "--count"]).stdout, "the trades are there")
COLUMNS = "ts_open,open,high,low,close,volume,count,partial"
rows = [f"{iso(MINUTE * NS)},10.5,11,9.5,9.5,6,3,0", f"{iso((MINUTE + 120) * NS)},10,10,10,10,4,1,1"]
for options, expected in (
        ([], rows), (["--reverse"], rows[::-1]), (["--first", "1"], rows[:1]), (["--last", "1"], rows[1:]),
        (["--first", "1", "--reverse"], rows[:1]), (["--last", "1", "--reverse"], rows[1:]), (["--limit", "1"], rows[:1]),
        (["--limit", "1", "--reverse"], rows[1:]), (["--limit", "0"], []), (["--last", "9"], rows), (["--at-ordinal", ":3"], [
            rows[0][:-1] + "1"]),
        (["--to", iso((MINUTE + 180) * NS)], [rows[0], rows[1][:-1] + "0"]),  # it is past, so that the bar is whole
        (["--until", iso((MINUTE + 180) * NS - 1)], [rows[0], rows[1][:-1] + "0"]),
        (["--after", iso(MINUTE * NS), "--to", iso((MINUTE + 60) * NS)], [f"{iso(MINUTE * NS)},11,11,9.5,9.5,3,2,0"]),
        (["--from", iso((MINUTE + 500) * NS)], [])):
    t.equal(cat(["B/X/tick"], "--bars", "1m", "--select", COLUMNS, *options).stdout.splitlines(), [COLUMNS, *expected],
            f"bars {options}")
    objects = json.loads(cat(["B/X/tick"], "--bars", "1m", "--select", COLUMNS, "--format", "json", *options).stdout)
    t.equal([",".join(str(part) for part in one.values()) for one in objects], expected, f"bars {options} as JSON")
    if "--reverse" not in options:
        t.equal(cat(["B/X/tick"], "--bars", "1m", "--count", "--no-header", *options).stdout, f"{len(expected)}\n",
                f"bars {options}, counted")
for spec, volumes in (("2t", (4, 6)), ("5v", (6, 4)), ("40n", (42.5, 59)), ("90s", (4, 2, 4))):  # MINUTE is 60 s behind a bound of 90 s
    column = "vwap" if spec == "40n" else "volume"
    found = cat(["B/X/tick"], "--bars", spec, "--select", "volume,vwap", "--no-header").stdout.splitlines()
    if column == "volume":
        t.equal([int(line.split(",")[0]) for line in found], list(volumes), f"bars of {spec}")
    else:  # 10.5 x 3 + 11 = 42.5 of 4; 9.5 x 2 + 10 x 4 = 59 of 6
        t.equal(found, ["4,10.625", "6,9.833333333"], f"bars of {spec}")
t.equal(cat(["B/X/tick", "A/X/quotes"], "--bars", "1m", expect=1).stdout, "", "one of the two has no trades")
t.equal(cat(["B/*"], "--bars", "1m", "--last", "1", "--select", "close").stdout, "series,close\nB/X/tick,10\n", "of a pattern")
data = t.output([t.STOUP, "cat", POOL, "B/X/tick", "--bars", "1m", "--select", "volume,open", "--format", "npy"])
t.equal(struct.unpack("<QqQq", data[-32:]), (6, 10_500_000_000, 4, 10_000_000_000), "an array of bars")

# ---- arrays -------------------------------------------------------------------------------------------------------------------


def array(*options):
    data = t.output([t.STOUP, "cat", POOL, first.name, *options, "--format", "npy"])
    length, = struct.unpack_from("<H", data, 8)
    return eval(data[10:10 + length]), data[10 + length:]  # pylint: disable=eval-used


def packed(rows):
    return b"".join(struct.pack("<qq", int(cells["size"]) * NS if cells["size"] else 2**63 - 1, key) for key, cells in rows)


rows = [row for row in first.rows if WHERE["records"][1][1](row[1])]
for options, expected in ((("--last", "50"), rows[-50:]), (("--last", "50", "--reverse"), rows[:-51:-1]),
                          (("--first", "9", "--reverse"), rows[8::-1]), (("--limit", "7"), rows[:7]), ((), rows),
                          (("--after", str(rows[9][0])), [row for row in rows if row[0] > rows[9][0]])):
    head, body = array("--select", "size,ts", "--where", "bid >= 1000", "--where", "venue != A", *options)
    t.equal(head["descr"], [("size", "<i8"), ("ts", "<i8")], "descr")
    t.equal(head["shape"], (len(expected),), f"shape of {options}")
    t.true(body == packed(expected), f"bytes of {options}")
whole, bytes_ = array()
t.equal(array("--at-ordinal", "5:9")[1], bytes_[5 * len(bytes_) // 3000:9 * len(bytes_) // 3000], "whole records by ordinal")
t.equal(array("--select", "venue", "--first", "3")[1].decode(), "".join(cells["venue"] for _, cells in first.rows[:3]), "texts")
t.true(t.output([t.STOUP, "cat", POOL, first.name, "--select", "size,ts", "--format", "npz"]).find(packed(first.rows)) > 0, "npz")

# ---- each pair that excludes each other, with its reason -----------------------------------------------------------------
VALUES = {"--from": "2024-01-01", "--after": "2024-01-01", "--to": "2024-01-02", "--until": "2024-01-02", "--at-ordinal": "1:2",
          "--asof": "2024-01-01", "--first": "1", "--last": "1", "--limit": "1", "--where": "a = 1", "--select": "a",
          "--path": "a", "--bars": "1m"}
PLAIN = ["--reverse", "--merge", "--count", "--follow", "--no-header", "--skip-damaged", "--format jsonl", "--format json",
         "--format lines", "--format npy"]
RANGE = {"--from", "--after", "--to", "--until"}
REFUSED = {
    "both say where the range begins": ({"--from"}, {"--after"}),
    "both say where the range ends": ({"--to"}, {"--until"}),
    "a range is one of time or one of ordinals": ({"--at-ordinal"}, RANGE),
    "ordinals count within one series": ({"--at-ordinal"}, {"--merge"}),
    "a range of ordinals is of what is there": ({"--at-ordinal"}, {"--follow"}),
    "as of a time, all that is before it counts": ({"--asof"}, RANGE | {"--at-ordinal"}),
    "as of a time, a series has one record": ({"--asof"}, {"--first", "--last", "--limit", "--count"}),
    "times are answered in the order in which they are said": ({"--asof"}, {"--reverse"}),
    "all series are told of at each time as it is": ({"--asof"}, {"--merge"}),
    "bars are made of a range": ({"--asof"}, {"--bars"}),
    "bars are made of each series by itself": ({"--bars"}, {"--merge"}),
    "bars are made of all trades": ({"--bars"}, {"--where"}),
    "bars are no messages": ({"--bars"}, {"--path", "--format lines"}),
    "a bar without some of its trades is another one": ({"--bars"}, {"--skip-damaged"}),
    "what is added later does not change what was known": ({"--asof"}, {"--follow"}),
    "the record that is asked for may be the one that is left out": ({"--asof"}, {"--skip-damaged"}),
    "an array has no place for a time without a record": ({"--asof"}, {"--format npy"}),
    "both say which records": ({"--first"}, {"--last"}),
    "both say how many records": ({"--limit"}, {"--first", "--last"}),
    "what is added later has no end": ({"--follow"}, {"--to", "--until", "--count"}),
    "what is added later comes last": ({"--follow"}, {"--reverse"}),
    "a record that is added later may be earlier than one that is printed": ({"--follow"}, {"--merge"}),
    "an array ends: --format jsonl has a line for each record": ({"--follow"}, {"--format json"}),
    "an array begins with the number of its records": ({"--follow"}, {"--format npy"}),
    "a count has no order": ({"--count"}, {"--reverse"}),
    "a count has no columns": ({"--count"}, {"--select", "--path"}),
    "a count is csv, jsonl or json": ({"--count"}, {"--format lines", "--format npy"}),
    "lines are whole messages": ({"--format lines"}, {"--select", "--path"}),
    "lines have no place for the series' name": ({"--format lines"}, {"--merge", "--asof"}),
    "an array has no place for the series' name": ({"--format npy"}, {"--merge"}),
    "documents are no array": ({"--format npy"}, {"--path"}),
    "an array has no gaps": ({"--format npy"}, {"--skip-damaged"}),
    "one is of records, the other of documents": ({"--select"}, {"--path"}),
}
refused = {frozenset((a, b)): (a, b, why) for why, (ones, others) in REFUSED.items() for a in ones for b in others}
pairs = 0
for a, b in itertools.combinations([*VALUES, *PLAIN], 2):
    if a.startswith("--format") and b.startswith("--format"):
        continue
    words = [word for option in (a, b) for word in (*option.split(), *([VALUES[option]] if option in VALUES else []))]
    for order in (words, words[-len(b.split()) - (b in VALUES):] + words[:-len(b.split()) - (b in VALUES)]):
        done = t.run([t.STOUP, "cat", *order, work + "/absent/", "A/b"], expect=None)
        if frozenset((a, b)) in refused:
            one, other, why = refused[frozenset((a, b))]
            t.equal((done.returncode, done.stderr), (2, f"stoup cat: {one} and {other} exclude each other: {why}\n"
                                                     "See `stoup help cat`.\n"), f"{a} {b}")
        else:
            t.equal(done.returncode, 1, f"{a} {b} are no usage: {done.stderr}")
    pairs += 1
t.true(pairs > 240 and len(refused) > 45, f"pairs: {pairs}, refused: {len(refused)}")

# ---- what can not be had otherwise -------------------------------------------------------------------------------------------
T9 = "records are counted from 0, and A:B is those from A on before B"
for arguments, options, status, text in (
        ([first.name], ["--select", "bids"], 2, "--select: there is no column bids; near: bid"),
        ([first.name, bars.name], ["--select", "zz"], 2,
         "--select: there is no column zz; there are ts, bid, ask, size, venue, open, high, low, close, volume"),
        ([first.name], ["--select", "bid,,ask"], 2, "--select: a column's name is missing: say them as price,size"),
        ([first.name], ["--select", "bid, ask", "--select", "bid"], 2, "--select: bid is said twice"),
        ([first.name, docs.name], ["--select", "bid"], 2,
         "--select: D/a/bipf holds messages, which have no columns: --path takes values out of documents"),
        ([texts.name], ["--select", "key"], 2, "--select: D/a/json holds messages, which have no columns"),
        ([first.name], ["--select", "bids", "--format", "npy"], 2, "--select: there is no column bids; near: bid"),
        ([first.name], ["--where", "bids > 1"], 2, "--where: filter, column 1: schema csv has no field 'bids'; near: bid"),
        ([docs.name], ["--where", "n >"], 2, '--where: filter, at "": a value is a number, true, false, null, or a text in quotes'),
        ([texts.name], ["--where", "n > 1"], 1, "D/a/json has nothing that --where could look into: its schema is json"),
        ([first.name, docs.name], ["--path", "n"], 1,
         "A/X/quotes has no documents that --path could look into: its schema is "),
        ([first.name], ["--format", "lines"], 1, "A/X/quotes holds no JSON that --format lines could print: its schema is "),
        ([docs.name], ["--format", "npy"], 1,
         "D/a/bipf holds messages of variable length, which are no array: --format csv or jsonl"),
        (["A/*/quotes"], ["--format", "npz"], 2, "--format npz is of one series, and these are 2: `stoup export --directory` "
         "writes a file for each"),
        ([docs.name, texts.name], ["--format", "lines"], 2, "--format lines is of one series, and these are 2: `stoup export "
         "--directory` writes a file for each"),
        (["C/*"], [], 1, "no series matches 'C/*'"),
        ([first.name, "A/Z/quotes"], [], 1, "pool '" + POOL + "' has no series 'A/Z/quotes'; near: "),
        ([first.name], ["--at-ordinal", "5:5"], 2, "--at-ordinal 5:5: " + T9),
        ([first.name], ["--at-ordinal", ":0"], 2, "--at-ordinal :0: " + T9),
        ([first.name], ["--at-ordinal", "-1"], 2, "--at-ordinal -1: a number is wanted"),
        ([first.name], ["--at-ordinal", "1:x"], 2, "--at-ordinal 1:x: a number is wanted"),
        ([first.name], ["--last", "-5"], 2, "--last -5: a number is wanted"),
        ([first.name], ["--first", "many"], 2, "--first many: a number is wanted"),
        ([first.name], ["--asof", "noon"], 2, "'noon' "),
        ([first.name], ["--after", "2024-01-02", "--until", "2024-01-01"], 2, "--after 2024-01-02T00:00:00.000000000Z is later "
         "than --until 2024-01-01T00:00:00.000000000Z"),
        ([first.name], ["--last", "2", "--follow", "--where", "bid > 1"], 2, "--last, --follow and --where exclude each other: "
         "what the last ones are is settled before a filter looks at them"),
        ([first.name], ["--last", "2", "--follow", "--bars", "1m"], 2, "--last, --follow and --bars exclude each other: which bars "
         "are the last ones is known at the end"),
        ([first.name], ["--bars", "1y"], 2, "--bars: bars '1y': its unit is not known"),
        ([docs.name], ["--bars", "1m"], 1, "D/a/bipf: schema 'bipf' is one of messages: bars are made of trades"),
        ([bars.name], ["--bars", "1m"], 1, "A/X/bars: "),
        ([first.name], ["--bars", "1m", "--select", "bid"], 1, "A/X/quotes: "),
        ([first.name], ["--format", "xml"], 2, "--format xml: none of csv, jsonl, json, lines, npy and npz")):
    done = cat(arguments, *options, expect=status)
    t.true(done.stderr.startswith("stoup cat: " + text), f"{arguments} {options}: {done.stderr}")
    t.equal(done.stdout, "", f"{arguments} {options}: nothing was printed")
daemon.stop()
print(f"ok, {printed} rows, {pairs} pairs of options", flush=True)
