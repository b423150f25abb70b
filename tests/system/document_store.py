# SPDX-License-Identifier: Apache-2.0
"""Documents in a store: back as they were captured, whole, by path, chosen by a filter; what is none is told."""
import csv
import gzip
import io
import json
import os

import lib_stoup as t

work = t.temp_dir()
os.environ["XDG_RUNTIME_DIR"] = t.temp_dir()
STORE = os.path.join(work, "store") + "/"
DOCS, TEXTS = "BINANCE/BTCUSDT/bipf", "BINANCE/BTCUSDT/json"
T0 = 1_723_161_255_030_314_667
MESSAGES = ['{"stream":"a@trade","data":{"e":"trade","T":1723161256322,"p":"61800.30","q":0.006,"m":false}}',
            '{"stream":"a@book","data":{"e":"book","b":[["61800.20","2.5"],["61800.10","0"]],"note":"a, \\"b\\"\\nc"}}',
            '{"stream":"a@trade","data":{"e":"trade","T":1723161256323,"p":"61799.95","q":123456789012345678901,"m":true}}',
            '[1,-2.5,1e+22,null,"\u20ac\U0001f600",{}]', '"text"', "17"]
LINES = [f"{T0 + i} {message}" for i, message in enumerate(MESSAGES)]


def cat(series, *options, expect=0):
    return t.run([t.STOUP, "cat", *options, STORE, series], expect=expect)


def ingest(lines, series, *options):
    path = os.path.join(work, "in.jsonl")
    with open(path, "w", encoding="utf-8") as out:
        out.writelines(line + "\n" for line in lines)
    t.run([t.STOUP, "ingest", "--quiet", "--store", STORE, "--series", series, *options, path])


ingest(LINES, DOCS)
ingest(LINES, TEXTS, "--as", "text")

# ---- back ------------------------------------------------------------------------------------------------
for series in (DOCS, TEXTS):
    t.equal(cat(series, "--format", "lines").stdout.splitlines(), LINES, f"{series}: lines")
    t.equal(cat(series, "--format", "lines", "--backward", "--limit", "2").stdout.splitlines(), LINES[:3:-1], "backward")
rows = [json.loads(line) for line in cat(DOCS, "--format", "jsonl").stdout.splitlines()]
t.equal([row["message"] for row in rows], [json.loads(message) for message in MESSAGES], "jsonl")
t.equal(rows[0]["key"], "2024-08-08T23:54:15.030314667Z", "key")
rows = list(csv.reader(io.StringIO(cat(DOCS).stdout)))
t.equal(rows[0], ["key", "message"], "header")
t.equal([row[1] for row in rows[1:]], MESSAGES, "csv")
exported = os.path.join(work, "out.jsonl")
t.run([t.STOUP, "export", "-o", exported, STORE, DOCS])
with open(exported, encoding="utf-8") as lines:
    t.equal(lines.read(), cat(DOCS, "--format", "jsonl").stdout, "export")

# ---- what was printed can be read again ---------------------------------------------------------------------
ingest(cat(DOCS, "--format", "lines").stdout.splitlines(), "AGAIN/BTCUSDT/bipf")
t.equal(cat("AGAIN/BTCUSDT/bipf").stdout, cat(DOCS).stdout, "a second time")

# ---- paths and filters ----------------------------------------------------------------------------------------
rows = list(csv.reader(io.StringIO(cat(DOCS, "--path", "data.p", "--path", "data.b[0][1]", "--path", "data.note", "--path",
                                       "data.b", "--path", "[1]").stdout)))
t.equal(rows[0], ["key", "data.p", "data.b[0][1]", "data.note", "data.b", "[1]"], "names of paths")
t.equal([row[1:] for row in rows[1:]],
        [["61800.30", "", "", "", ""], ["", "2.5", 'a, "b"\nc', '[["61800.20","2.5"],["61800.10","0"]]', ""],
         ["61799.95", "", "", "", ""], ["", "", "", "", "-2.5"], ["", "", "", "", ""], ["", "", "", "", ""]], "values at paths")
rows = [json.loads(line) for line in cat(DOCS, "--format", "jsonl", "--path", "data.q", "--where", "data.q exists").stdout
        .splitlines()]
t.equal([row["data.q"] for row in rows], [0.006, 123456789012345678901], "jsonl of a path")
for question, expected in (('data.e = "trade"', [0, 2]), ("data.p >= 61800", [0]), ("data.p < 61800", [2]),
                           ("data.q > 1e20 or data.e = 'book'", [1, 2]), ("not stream exists", [3, 4, 5]), (". = 17", [5]),
                           ("data.m = true and data.p > 0", [2]), ("data.p = 1", [])):
    found = cat(DOCS, "--format", "lines", "--where", question).stdout.splitlines()
    t.equal(found, [LINES[i] for i in expected], question)
t.equal(cat(DOCS, "--format", "lines", "--where", "data.e exists", "--limit", "2").stdout.splitlines(), LINES[:2],
        "a limit counts what is printed")

# ---- what can not be had ----------------------------------------------------------------------------------------
for series, options, expect, text in (
        (TEXTS, ["--where", "a = 1"], 1, "BINANCE/BTCUSDT/json has nothing that --where could look into: its schema is json; `stoup ingest --as document` makes documents of JSON"),
        (TEXTS, ["--path", "a"], 1, "BINANCE/BTCUSDT/json has no documents that --path could look into: its schema is json; `stoup ingest --as document` makes documents of JSON"),
        (DOCS, ["--where", "a ="], 2, '--where: filter, at "": a value is a number, true, false, null, or a text in quotes'),
        (DOCS, ["--where", "a = 1", "--where", "b"], 2, '--where: \'b\': filter, at "": =, !=, <, <=, >, >= or exists is missing'),
        (DOCS, ["--path", "a..b"], 2, '--path: path "a..b": a name is missing at ".b"'),
        (DOCS, ["--path", "a", "--format", "lines"], 2, "--format lines and --path exclude each other: lines are whole messages"),
        (DOCS, ["--format", "bson"], 2, "--format bson: none of csv, jsonl, json, lines, npy and npz")):
    said = cat(series, *options, expect=expect).stderr
    t.equal(said.splitlines()[0], "stoup cat: " + text, str(options))

# ---- messages that are no documents, put by a program -----------------------------------------------------------
broken = os.path.join(work, "broken") + "/"
t.run([os.path.join(t.BIN, "helper_messages"), "put", broken, "none", "65536", "refuse", "X/a/bipf", "bipf", "1", "0", "50"])
done = t.run([t.STOUP, "cat", broken, "X/a/bipf"], expect=1)
t.true("messages left out: no documents" in done.stderr, done.stderr)
for limit in ("--limit", "--first", "--last"):
    done = t.run([t.STOUP, "cat", limit, "1", broken, "X/a/bipf"], expect=1)
    t.true("stoup cat: 50 messages left out: no documents" in done.stderr, f"{limit} counts what is printed: {done.stderr}")
lies = os.path.join(work, "lies") + "/"
t.run([os.path.join(t.BIN, "helper_messages"), "put", lies, "none", "65536", "refuse", "X/a/bipf", "bipf", "1", "0", "9000"])
shown = {}
for options in ([], ["--path", "."], ["--where", "not a exists"], ["--where", "not a exists", "--last", "9000"],
                ["--where", "not a exists", "--path", "."]):
    done = t.run([t.STOUP, "cat", lies, "X/a/bipf", "--format", "jsonl", *options], expect=1)
    shown[" ".join(options)] = len(done.stdout.splitlines()), done.stderr
done = t.run([t.STOUP, "cat", lies, "X/a/bipf", "--count", "--where", "not a exists"], expect=1)
shown["count"] = int(done.stdout.split()[1]), done.stderr
t.equal(len(set(shown.values())), 1, f"as many in all forms, and as many told: {shown}")
t.true(0 < shown["count"][0] < 9000, f"{shown}")
done = t.run([t.STOUP, "export", "--format", "csv", broken, "X/a/bipf"], expect=1)
t.true("X/a/bipf has a message that is no document" in done.stderr, done.stderr)
done = t.run([t.STOUP, "verify", broken], expect=1)
t.true("X/a/bipf, message 0: offset 0 of the document: " in done.stdout + done.stderr, done.stdout + done.stderr)
done = t.run([t.STOUP, "verify", "--repair", broken], expect=1)
t.true("its bytes are whole: what was put so, or by a later version, is no damage" in done.stdout, done.stdout)
t.run([t.STOUP, "verify", "--quiet", STORE])

# ---- a captured file comes back byte for byte ---------------------------------------------------------------------
capture = os.path.join(t.DATA, "json", "binance-usdm-btcusdt-20240808.jsonl.gz")
if t.DATA and os.path.exists(capture):
    t.run([t.STOUP, "ingest", "--quiet", "--store", STORE, "--series", "REAL/BTCUSDT/bipf", capture])
    with gzip.open(capture, "rt", encoding="utf-8") as lines:
        expected = lines.read()
    t.true(cat("REAL/BTCUSDT/bipf", "--format", "lines").stdout == expected, "the captured file")
    found = cat("REAL/BTCUSDT/bipf", "--format", "lines", "--where", "data.e = 'trade' and data.p >= 61800").stdout
    wanted = [line for line in expected.splitlines() if '"e":"trade"' in line and
              float(json.loads(line.split(" ", 1)[1])["data"]["p"]) >= 61800]
    t.true(found.splitlines() == wanted and len(wanted) > 1000, "a filter over the captured file")
else:
    print("note: the captured messages are not here")
