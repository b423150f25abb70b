# SPDX-License-Identifier: Apache-2.0
"""JSON to documents and back keeps every value: random JSON and the captured messages, compared by Python's json with
decimals that are exact, keys in order and those that come twice."""
import gzip
import json
import os
import random
import subprocess
from decimal import Decimal, InvalidOperation

import lib_document
import lib_stoup as t

HELPER = os.path.join(t.BIN, "helper_doc")


def through(lines, *options):
    done = subprocess.run([HELPER, *options], input="\n".join(lines).encode("utf-8"), capture_output=True, timeout=250)
    t.equal(done.returncode, 0, f"helper_doc: {done.stderr.decode()}")
    return done.stdout.decode("utf-8").splitlines()


def number(text):
    try:
        return Decimal(text)
    except InvalidOperation:  # an exponent of 19 digits
        return text


def loads(text):
    return json.loads(text, parse_float=number, parse_int=number, object_pairs_hook=lambda pairs: ("object", pairs))


def same(a, b):
    """Equal in value and in kind: 1 is 1.0, but not true."""
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(same(x, y) for x, y in zip(a, b))
    return type(a) is type(b) and a == b


# ---- random JSON ------------------------------------------------------------------------------------------
SEED = 20240808
rng = random.Random(SEED)
ALPHABET = ["a", "Z", "0", " ", '"', "\\", "/", "\b", "\f", "\n", "\r", "\t", "\0", "\x1f", "\x7f", "\x80", "\xe9", "\u07ff",
            "\u0800", "\u20ac", "\ud7ff", "\ue000", "\uffff", "\U00010000", "\U0001f600", "\U0010ffff"]


def random_text():
    return "".join(rng.choice(ALPHABET) if rng.random() < 0.4 else chr(rng.randrange(32, 127))
                   for _ in range(rng.choice((0, 1, 2, 7, 8, 9, 15, 16, 17, 40, 255))))


def random_string():
    text = random_text()
    kind = rng.randrange(3)
    if kind == 0:
        return json.dumps(text)  # \uXXXX, pairs of surrogates
    return json.dumps(text, ensure_ascii=False)


def random_digits(count):
    return "".join(rng.choice("0123456789") for _ in range(count))


def random_number():
    sign = rng.choice(("", "-"))
    whole = rng.choice(("0", str(rng.randrange(1, 10)) + random_digits(rng.choice((0, 1, 5, 8, 9, 14, 17, 18, 19, 30)))))
    kind = rng.randrange(8)
    if kind == 0:
        return sign + str(2 ** rng.choice((31, 32, 53, 63, 64)) + rng.randrange(-2, 3))
    if kind == 1:
        return repr(rng.uniform(-1e6, 1e6))
    if kind == 2:
        return repr(rng.random() * 10.0 ** rng.randrange(-300, 300))
    fraction = "." + random_digits(rng.choice((1, 2, 5, 10, 15, 16, 20, 40))) if rng.random() < 0.6 else ""
    exponent = ""
    if rng.random() < 0.3:
        exponent = rng.choice("eE") + rng.choice(("", "+", "-")) + str(rng.choice((0, 1, 5, 22, 23, 300, 308, 324, 400)))
    return sign + whole + fraction + exponent


def blank():
    return rng.choice(("", "", "", " ", "\t", "  ", " \r"))


def random_value(depth):
    kind = rng.randrange(8 if depth else 6)
    if kind < 2:
        return random_string()
    if kind < 5:
        return random_number()
    if kind == 5:
        return rng.choice(("true", "false", "null"))
    count = rng.choice((0, 1, 2, 3, 8))
    if kind == 6:
        return "[" + blank() + ",".join(blank() + random_value(depth - 1) + blank() for _ in range(count)) + "]"
    return "{" + blank() + ",".join(
        blank() + (rng.choice(('"a"', '""', '"data"')) if rng.random() < 0.5 else random_string()) + blank() + ":" +
        blank() + random_value(depth - 1) for _ in range(count)) + "}"


texts = [random_value(rng.randrange(7)) for _ in range(20000)]
found = through(texts)
t.equal(len(found), len(texts), "lines")
for text, line in zip(texts, found):
    t.true(same(loads(text), loads(line)), f"seed {SEED}: {text!r} came back as {line!r}")
# A reader that was written from docs/document-format.md sees the same values in the bytes.
for text, line in zip(texts, through(texts, "--hex")):
    found_value = lib_document.document(bytes.fromhex(line))
    t.true(same(loads(text), found_value), f"seed {SEED}: {text!r} is {found_value!r} in the document {line}")
# The second way changes nothing any more.
t.true(through(found) == found, "printed JSON is a fixed point")
t.true(through(found, "--hex") == through(texts, "--hex"), "printed JSON has the same document")

# ---- random JSON that is broken: what Python refuses is refused ------------------------------------------------
accepted = 0
broken = []
for text in texts[:6000]:
    raw = list(text)
    if not raw:
        continue
    at = rng.randrange(len(raw))
    raw[at] = rng.choice('[]{}",:0-.e\\utfn a')
    broken.append("".join(raw))
for text, line in zip(broken, through(broken)):
    try:
        value = loads(text)
    except json.JSONDecodeError:
        value = None
        t.true(line.startswith("! "), f"{text!r} is no JSON, but became {line!r}")
        continue
    if line.startswith("! ") and "surrogate" in line:  # Python takes halves of pairs
        continue
    t.true(not line.startswith("! ") and same(value, loads(line)), f"{text!r} became {line!r}")
    accepted += 1
t.true(100 < accepted < 5900, f"{accepted} of 6000 broken texts are JSON")

# ---- the captured messages -----------------------------------------------------------------------------------
capture = os.path.join(t.DATA, "json", "binance-usdm-btcusdt-20240808.jsonl.gz")
if t.DATA and os.path.exists(capture):
    with gzip.open(capture, "rt", encoding="utf-8") as lines:
        texts = [line.rstrip("\n").split(" ", 1)[1] for line in lines]
    t.equal(len(texts), 93954, "captured messages")
    for text, line in zip(texts, through(texts)):
        t.true(same(loads(text), loads(line)), f"{text!r} came back as {line!r}")
    # A filter finds what Python finds.
    for question, holds in (
            ('data.e = "trade" and data.p >= 61800 and data.q > 0.1', lambda d: d["e"] == "trade" and Decimal(d["p"]) >= 61800 and
             Decimal(d["q"]) > Decimal("0.1")),
            ("data.b[0][1] < 0.01 or data.m = true", lambda d: d.get("m") is True or isinstance(d.get("b"), list) and
             len(d["b"]) > 0 and Decimal(d["b"][0][1]) < Decimal("0.01")),
            ("data.T > 1723161300000 and not data.e = 'depthUpdate'", lambda d: d.get("T", 0) > 1723161300000 and
             d.get("e") != "depthUpdate")):
        expected = [text for text in texts if holds(json.loads(text).get("data", {"e": "", "T": 0}))]
        t.true(0 < len(expected) < len(texts), f"{question}: {len(expected)} of {len(texts)}")
        t.true(through(texts, "--where", question) == expected, question)
else:
    print("note: the captured messages are not here")
