# SPDX-License-Identifier: Apache-2.0
"""A store of series of two schemas, bars and documents, and what plain Python answers of the rows that went in, for the
tests of stoup cat."""
import csv
import datetime
import io
import json
import os
import random

import lib_stoup as t

NS = 1_000_000_000
work = t.temp_dir()
STORE = os.path.join(work, "ticks") + "/"
random.seed(20240603)


def iso(ns):
    seconds, rest = divmod(ns, NS)
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
