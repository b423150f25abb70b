# SPDX-License-Identifier: Apache-2.0
"""Options of stoup cat in pairs: each that is refused, with its text, and each that is allowed, with what it answers; and what
can not be had otherwise."""
import csv
import io
import itertools
import json
import os
import signal
import struct
import subprocess

import lib_stoup as t
from lib_query import NS, POOL, answer, as_csv, as_json, bars, cat, daemon, docs, first, iso, second, texts, union, work

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

# ---- each pair that is allowed, answered ------------------------------------------------------------------------------------
# Pairs with --bars are in cat_query.py, by hand.
LOW, HIGH = first.rows[700][0], first.rows[2200][0]
REAL = {"--from": {"from": LOW}, "--after": {"after": LOW}, "--to": {"to": HIGH}, "--until": {"until": HIGH},
        "--at-ordinal": {"ordinals": (20, 55)}, "--asof": {"asof": [LOW, HIGH, t.T0 - 1]}, "--first": {"first": 30},
        "--last": {"last": 30}, "--limit": {"limit": 30}, "--reverse": {"reverse": True}, "--merge": {"merge": True},
        "--select": {"select": ["size", "ts"]}}
WHERE_RECORDS = {"where_text": ["size > 20 and venue = 'B'"],
                 "where": lambda cells: cells["size"] != "" and int(cells["size"]) > 20 and cells["venue"] == "B"}
WHERE_DOCS = {"where_text": ["n > 20 and e = 'book'"], "where": lambda cells: json.loads(cells["message"])["n"] > 20 and
              json.loads(cells["message"])["e"] == "book"}
KEYS = {cells["key"]: key for key, cells in docs.rows}


def field(data, head, name):
    """A field of each record of an array."""
    sizes = [int(kind[2:]) for _, kind in head["descr"]]
    at = sum(sizes[:[column for column, _ in head["descr"]].index(name)])
    return [struct.unpack_from("<q", data, off + at)[0] for off in range(0, len(data), sum(sizes))]


def expected_of(names, ask, options):
    """What stands on standard output, as text; of an array as a list."""
    named = len(names) > 1 or "--merge" in options or "--asof" in options
    rows = answer(names, ask)
    if "--count" in options:
        one = ask.get("merge") or len(names) == 1
        lines = [("" if one else name + ",", len(rows) if one else sum(row[1] == name for row in rows)) for name in
                 (names[:1] if one else names)]
        if "--format jsonl" in options or "--format json" in options:
            return [{"records": count} for _, count in lines]
        return ("" if "--no-header" in options else "records\n") + "".join(f"{name}{count}\n" for name, count in lines)
    if "--format npy" in options:
        return [(int(cells["size"]) * NS if cells["size"] else 2**63 - 1, cells["ts"]) for _, _, cells in rows]
    if "--format lines" in options:
        return "".join(f"{KEYS[cells['key']]} {cells['message']}\n" for _, _, cells in rows)
    if "--format jsonl" in options or "--format json" in options:
        objects = as_json(names, ask, named)
        if "--path" in options:
            for one in objects:
                message = one.pop("message")
                one["n"] = message and message["n"]
        return objects
    text = as_csv(names, ask, named)
    if "--path" in options:
        table = list(csv.reader(io.StringIO(text)))
        text = "".join(",".join([*row[:-1], "n" if at == 0 else row[-1] and str(json.loads(row[-1])["n"])]) + "\n"
                       for at, row in enumerate(table))
    return text.split("\n", 1)[1] if "--no-header" in options else text


def followed(arguments, text):
    """The output of a command that goes on, which is interrupted when it has printed as much as is expected."""
    process = subprocess.Popen([t.STOUP, "cat", POOL, *arguments], stdout=subprocess.PIPE)
    out = process.stdout.read(len(text.encode())).decode() if text else ""
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
    rest = process.communicate(timeout=60)[0]
    t.equal(rest, b"", f"{arguments}: nothing more")
    return out


def plain(text):
    """CSV as the cells that it has: JSON texts are quoted in any case."""
    return list(csv.reader(io.StringIO(text)))


def try_pair(*options):
    of_docs = {"--path", "--format lines"} & set(options)
    names = [docs.name] if of_docs else [first.name]
    if not of_docs and {"--merge", "--asof"} & set(options):
        names = [second.name, first.name]
    ask = {}
    for option in options:
        ask |= REAL.get(option, {})
    words = []
    if "--where" in options:
        ask |= WHERE_DOCS if of_docs else WHERE_RECORDS
        words += ["--where", ask["where_text"][0]]
    for option in options:
        if option in REAL and option not in ("--reverse", "--merge"):
            key, found = next(iter(REAL[option].items()))
            values = [f"{found[0]}:{found[1]}"] if key == "ordinals" else [",".join(found)] if key == "select" else \
                found if key == "asof" else [found]
            words += [word for one in values for word in (option, str(one))]
        elif option == "--path":
            words += ["--path", "n"]
        elif option != "--where":
            words += option.split()
    expected = expected_of(names, ask, options)
    what = f"{names} {words}"
    if "--format npy" in options:
        data = t.output([t.STOUP, "cat", POOL, *names, *words])
        length, = struct.unpack_from("<H", data, 8)
        head, body = eval(data[10:10 + length]), data[10 + length:]  # pylint: disable=eval-used
        found = list(zip(field(body, head, "size"), map(iso, field(body, head, "ts"))))
        t.equal(head["shape"], (len(expected),), what + ": shape")
        t.true(found == expected, what)
        return
    if "--follow" in options:
        wide = expected if isinstance(expected, str) else "".join(
            json.dumps(one, separators=(",", ":")) + "\n" for one in expected)
        found = followed([*names, *words], wide)
    else:
        found = cat(names, *words).stdout
    if isinstance(expected, str):
        t.true(found == expected or plain(found) == plain(expected), f"{what}: {found[:300]!r}, expected {expected[:300]!r}")
    else:
        found = json.loads(found) if "--format json" in options else [json.loads(line) for line in found.splitlines()]
        t.true(found == expected, f"{what}: {found[:2]}, expected {expected[:2]}")


answered = 0
for a, b in itertools.combinations([option for option in (*VALUES, *PLAIN) if option != "--bars"], 2):
    if frozenset((a, b)) in refused or (a.startswith("--format") and b.startswith("--format")):
        continue
    try_pair(a, b)
    answered += 1
t.true(answered > 140, f"pairs answered: {answered}")

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
        ([bars.name, first.name], ["--where", "open > 1"], 2,
         f"--where: {first.name}: filter, column 1: schema csv has no field 'open'; it has "),
        ([first.name], ["--where", "bid > 1", "--where", "bids > 1"], 2,
         "--where: 'bids > 1': filter, column 1: schema csv has no field 'bids'; near: bid"),
        ([first.name], ["--frobnicate"], 2, "unrecognized option '--frobnicate'"),
        ([first.name], ["--from", "0"], 2, "'0' is not an epoch whose unit can be told; examples: "),
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
print(f"ok, {pairs} pairs of options", flush=True)
