# SPDX-License-Identifier: Apache-2.0
"""JSON documents in Python: values, paths, filters over a series, against Python's json and jq; and who keeps what."""
import gc
import gzip
import json
import os
import pickle
import random
import shutil
import struct
import subprocess
from decimal import Decimal

import lib_python as p
import lib_stoup as t
import numpy as np
import stoup

work = t.temp_dir()
STORE = os.path.join(work, "store") + "/"
NAME, TEXTS = "X/btc/bipf", "X/btc/json"
T0 = 1_723_161_255_030_314_667


def ingest(lines, name, *options):
    path = os.path.join(work, "in.jsonl")
    with open(path, "w", encoding="utf-8") as out:
        out.writelines(f"{T0 + i} {line}\n" for i, line in enumerate(lines))
    t.run([t.STOUP, "ingest", "--quiet", "--store", STORE, "--series", name, *options, path])


def first(pairs):
    """Of a key that is there twice the first counts."""
    return dict(reversed(pairs))


def loads(text):
    return json.loads(text, parse_float=Decimal, object_pairs_hook=first)


def same(a, b):
    """Equal in value and in kind."""
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return isinstance(b, dict) and set(a) == set(b) and all(same(a[key], b[key]) for key in a)
    return type(a) is type(b) and a == b


# ---- values -----------------------------------------------------------------------------------------------------
LINES = ['{"stream":"a@trade","data":{"e":"trade","T":1723161256322,"p":"61800.30","q":0.006,"m":false,"x":null}}',
         '{"stream":"a@book","data":{"e":"book","b":[["61800.20","2.5"],["61800.10","0"]],"note":"a \\u20ac\\n"}}',
         '{"stream":"a@trade","data":{"e":"trade","T":18446744073709551615,"p":"61799.95","q":123456789012345678901,"m":true}}',
         '[1,-2.5,1e+22,null,"\u20ac\U0001f600",{},0.1,1.0,3000000000,-9223372036854775809,12345678901234567890.123,1e400]',
         '"text"', "17", '{"a":1,"b":2,"a":3}', '{"type":"Buffer","data":[222,173]}', "-0.0", "[]", "1e-400", "true",
         "[" * 100 + "]" * 100, "12" * 3000, "1e99999999999999999999"]
ingest(LINES, NAME)
ingest(LINES, TEXTS, "--as", "text")
daemon = t.Daemon(STORE, "16M")
client = stoup.open(daemon.pool)
series = client[NAME]
found = list(series.documents())
t.equal([one.key for one in found], [T0 + i for i in range(len(LINES))], "times")
for line, document in zip(LINES[:12], found):
    expected = b"\xde\xad" if "Buffer" in line else loads(line)
    t.true(same(document.value(), expected), f"{line}: {document.value()!r}")
    again = pickle.loads(pickle.dumps(document))
    t.true(same(again.value(), expected) and again.key == document.key, f"{line} through pickle")
depth, value = 0, found[12].value()
while value:
    depth, value = depth + 1, value[0]
t.equal(depth, 99, "arrays inside each other")
t.equal(str(Decimal(found[13].value())), "12" * 3000, "an integer of 6,000 digits")
t.equal(found[14].value(), "1e99999999999999999999", "an exponent that no Decimal has stays a text")
t.equal(str(found[8].value()), "-0.0", "the sign of zero")

# ---- paths ------------------------------------------------------------------------------------------------------
trade, book, _, array = found[:4]
t.equal((trade["data.T"], trade["data.p"], trade["data.m"], trade["data.x"]), (1723161256322, "61800.30", False, None), "paths")
t.true(same(trade["data.q"], Decimal("0.006")) and same(array[1], Decimal("-2.5")) and array[0] == 1, "decimals")
t.equal((book["data.b[0][1]"], book.get("data.b[7]"), book.get("data.z", 5)), ("2.5", None, 5), "elements")
t.equal(book[stoup.Path("data.b[1]")].value(), ["61800.10", "0"], "a path that is compiled, an array")
t.true("data.e" in trade and "data.x" in trade and "data.b" not in trade, "in")
p.raises(KeyError, lambda: trade["data.b"], "data.b")
t.equal(found[6]["a"], 1, "the first of two")
t.equal(list(found[6].items()), [("a", 1), ("b", 2), ("a", 3)], "members")
t.equal((list(trade), [one.value() for one in book["data.b"]]), (["stream", "data"], [["61800.20", "2.5"], ["61800.10", "0"]]),
        "iterated over")
t.equal(trade["."].value(), trade.value(), "the document itself")
t.equal([one.type for one in found[:6]], ["object", "object", "object", "array", "string", "int"], "types")
p.raises(TypeError, lambda: list(found[5]), "int")
p.raises(TypeError, lambda: list(array.items()), "array")
p.raises(ValueError, lambda: stoup.Path("a..b"), "a name is missing")
p.raises(ValueError, lambda: stoup.Path("a\0b"), "NUL")
p.raises(ValueError, lambda: stoup.Filter("a ="), "a value is a number")
t.equal(repr(pickle.loads(pickle.dumps(stoup.Filter("a = 1")))), "stoup.Filter('a = 1')", "a filter through pickle")

# ---- filters ----------------------------------------------------------------------------------------------------
for question, expected in (("data.e = 'trade'", [0, 2]), ("data.p >= 61800", [0]), ("not stream exists", list(range(3, 15))),
                           ("data.b[0][1] < 3 or . = 17", [1, 5]), ("data.T = 18446744073709551615", [2]), ("x = 1", [])):
    for backward in (False, True):
        keys = [one.key - T0 for one in client.documents(NAME, where=question, backward=backward)]
        t.equal(keys, expected[::-1] if backward else expected, question)
    t.equal([i for i, one in enumerate(found) if stoup.Filter(question).matches(one)], expected, f"{question} of each")
rows = list(client.documents(NAME, "stream exists", ["data.p", stoup.Path("data.q")], start=T0 + 1))
t.true(same([list(row) for row in rows], [[T0 + 1, None, None], [T0 + 2, "61799.95", 123456789012345678901]]), "values at paths")
numbers, broken = stoup.Filter("data.e exists").select(next(series.scan())[1:3])
t.true(numbers.dtype == np.uint32 and numbers.tolist() == [0, 1] and broken == 0, "a slice of a span")
p.raises(TypeError, lambda: stoup.Filter("a = 1").select([b""]))
texts = client.documents(TEXTS, "a = 1")
t.equal((list(texts), texts.broken), ([], len(LINES)), "texts are no documents, and are counted")
texts = client.documents(TEXTS)
t.equal((list(texts), texts.broken), ([], len(LINES)), "without a filter too")
p.raises(stoup.NotFound, lambda: client.documents("X/btc/bip"))

# ---- bytes that lie -----------------------------------------------------------------------------------------------
rng = random.Random(7)
whole = bytes(found[1])
t.equal(stoup.Document(whole).value(), book.value(), "bytes of one's own")
outcomes = set()
for _ in range(3000):
    lie = bytearray(whole)
    for _ in range(rng.randrange(1, 4)):
        lie[rng.randrange(len(lie))] = rng.randrange(256)
    lie = bytes(lie[:rng.choice((len(lie), rng.randrange(len(lie) + 1)))])
    for ask in (lambda one: one.value(), lambda one: one.get("data.b[1][0]"), lambda one: list(one.items())):
        try:
            ask(stoup.Document(lie))
            outcomes.add("read")
        except stoup.Error as error:
            outcomes.add(error.errno)
        except TypeError as error:
            outcomes.add(type(error).__name__)
t.true({"read", 74} <= outcomes <= {"read", 74, "TypeError"}, f"outcomes: {outcomes}")
for lie in (b"\x08\xff", b"\x18\xed\xa0\x80", b"\x43" + struct.pack("<d", float("inf")), b"\x43" + struct.pack("<d", float("nan")),
            *(bytes([(len(number) + 1) << 3 | 7, 3]) + number for number in (b"abc", b"1e", b"01", b"-", b".5", b"NaN", b"1_0", b"\xff"))):
    for lies, ask in ((lie, lambda one: one.value()), (bytes([len(lie) << 3 | 4]) + lie, lambda one: one["[0]"]),
                      (bytes([len(lie) + 2 << 3 | 5]) + b"\x08a" + lie, lambda one: list(one.items()))):
        error = p.raises(stoup.Error, lambda: ask(stoup.Document(lies)))
        t.equal(error.errno, 74, f"{lies!r}")
error = p.raises(stoup.Error, lambda: list(stoup.Document(b"\x1d\x08\xff\x06").items()))
t.equal(error.errno, 74, "a key that is no UTF-8")

# ---- who keeps what -----------------------------------------------------------------------------------------------
del found, trade, book, array, numbers, texts, rows, document, value, _
p.no_leases(daemon, "after all documents")
with client.documents(NAME) as cursor:
    kept = next(cursor)["data"]
gc.collect()
t.until(lambda: p.leases(daemon) == 1, "a value inside keeps its block")
client.close()
daemon.kill()
t.equal(kept["e"], "trade", "it outlives cursor, client and daemon")
del kept

# ---- without NumPy --------------------------------------------------------------------------------------------------
daemon = t.Daemon(STORE, "16M")
said = p.script(f"""
import sys
sys.modules["numpy"] = None
import stoup
with stoup.open({daemon.pool!r}) as client:
    print([row[1:] for row in client.documents({NAME!r}, "data.e = 'trade'", ["data.p", "data.m"])], stoup.np)
""")
t.equal(said, "[('61800.30', False), ('61799.95', True)] None\n", "without NumPy")
daemon.stop()

# ---- the captured messages --------------------------------------------------------------------------------------------
capture = os.path.join(t.DATA, "json", "binance-usdm-btcusdt-20240808.jsonl.gz")
if t.DATA and os.path.exists(capture):
    with gzip.open(capture, "rt", encoding="utf-8") as source:
        lines = [line.rstrip("\n").split(" ", 1) for line in source]
    t.equal(len(lines), 93954, "captured messages")
    t.run([t.STOUP, "ingest", "--quiet", "--store", os.path.join(work, "real"), "--series", "REAL/BTCUSDT/bipf", capture])
    daemon = t.Daemon(os.path.join(work, "real"), "128M")
    parsed = [(int(key), loads(text).get("data", {})) for key, text in lines]
    with stoup.open(daemon.pool) as client:
        for question, jq, holds in (
                ("data.T = 1723161256322", ".data.T == 1723161256322", lambda d: d.get("T") == 1723161256322),
                ("data.e = 'trade' and data.q > 0.1", '.data.e == "trade" and (.data.q | tonumber) > 0.1',
                 lambda d: d.get("e") == "trade" and Decimal(d["q"]) > Decimal("0.1")),
                ("data.b[0][0] >= 61000 and data.b[0][0] < 61700 or data.m = true",
                 '((.data.b | type) == "array" and (.data.b | length) > 0 and (.data.b[0][0] | tonumber | . >= 61000 and . < 61700))'
                 ' or .data.m == true',
                 lambda d: d.get("m") is True or isinstance(d.get("b"), list) and d["b"] != [] and
                 61000 <= Decimal(d["b"][0][0]) < 61700)):
            expected = [key for key, data in parsed if holds(data)]
            t.true(0 < len(expected) < len(parsed), f"{question}: {len(expected)}")
            found = [row[0] for row in client.documents("REAL/BTCUSDT/bipf", question, [])]
            t.equal(found, expected, f"{question}: Python's json")
            if shutil.which("jq"):
                done = subprocess.run(["jq", "-c", f"select({jq}) | .data.E"], input="\n".join(text for _, text in lines),
                                      capture_output=True, text=True, check=True)
                rows = [row[1] for row in client.documents("REAL/BTCUSDT/bipf", question, ["data.E"])]
                t.equal(["null" if one is None else str(one) for one in rows], done.stdout.split(), f"{question}: jq")
        for (key, text), document in zip(lines[::97], list(client.documents("REAL/BTCUSDT/bipf"))[::97]):
            t.true(document.key == int(key) and same(document.value(), loads(text)), f"{key}: {text}")
    daemon.stop()
    if not shutil.which("jq"):
        print("note: no jq here")
else:
    print("note: the captured messages are not here")
