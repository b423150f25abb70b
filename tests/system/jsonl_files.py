# SPDX-License-Identifier: Apache-2.0
"""JSON lines into a store: the forms that are taken, and what each dirty file is told."""
import gzip
import os

import lib_stoup as t

work = t.temp_dir()
count = 0
A, B = 1_723_161_255_030_314_667, 1_723_161_255_088_169_167
NAME = "BINANCE/BTCUSDT/bipf"


def ingest(content, *options, expect=0, name="in.jsonl", series=("--series", NAME), store=None):
    """Ingest bytes into a store of their own; returns (records by series, stderr)."""
    global count
    count += 1
    path = os.path.join(work, name)
    store = store or os.path.join(work, f"store{count}")
    with open(path, "wb") as out:
        out.write(content if isinstance(content, bytes) else content.encode())
    done = t.run([t.STOUP, "ingest", "--store", store, *series, *options, path], expect=expect)
    listed = t.run([t.STOUP, "ls", store], expect=None).stdout.splitlines()[1:] if expect == 0 else []
    return {line.split()[0]: int(line.split()[2]) for line in listed}, done.stderr.replace(path, "FILE"), store


def refused(content, text, *options, expect=1, **kw):
    _, said, _ = ingest(content, *options, expect=expect, **kw)
    t.equal(said, f"stoup ingest: {text}\n", f"{content[:200]!r}")


def taken(content, expected, *options, said="", **kw):
    found, told, _ = ingest(content, *options, **kw)
    t.equal(found, expected, f"{content!r}: series")
    t.equal(told, said, f"{content!r}: stderr")


ONE = f'{A} {{"a":1}}\n'
TWO = ONE + f'{B} {{"a":2}}\n'

# ---- forms ------------------------------------------------------------------------------------------------
taken(TWO, {NAME: 2})
taken(TWO, {NAME: 2}, "--as", "text", series=("--series", NAME))
taken(TWO.rstrip("\n"), {NAME: 2})
taken(TWO.replace("\n", "\r\n"), {NAME: 2})
taken("\n\r\n  \n" + ONE + "\n\n" + ONE, {NAME: 2})
taken(b"\xef\xbb\xbf" + TWO.encode(), {NAME: 2})
taken(f"  {A}\t  [1]  \n", {NAME: 1})
taken(f'{A} "text"\n{A} 5\n{A} null\n', {NAME: 3})
taken(gzip.compress(TWO.encode()), {NAME: 2}, name="in.jsonl.gz")
taken('1723161255 {}\n1723161255088 {}\n1723161255088169 {}\n1723161255.5 {}\n', {NAME: 4})
taken('2024-08-08T23:54:15Z {}\n2024-08-08 23:54:16.5 {}\n2024-08-08 23:54:17+00:00 {}\n2024-08-09 {}\n', {NAME: 4})
taken('{"d":{"T":1723161255030}}\n{"d":{"T":"2024-08-08T23:54:16Z"}}\n{"d":{"T":1723161256.5}}\n'
      '{"d":{"T":"1723161257"}}\n{"d":{"T":1.7231612575e9}}\n{"d":{"T":1.723161258e12}}\n', {NAME: 6}, "--time", "d.T")
taken('[[1723161255030],1]\n', {NAME: 1}, "--time", "[0][0]", "--time-format", "ms")
taken(TWO, {NAME: 2}, said="FILE: taken as JSON lines (--format jsonl)\n", name="capture.txt")
taken('{"T":1723161255}\n', {NAME: 1}, "--time", "T", said="FILE: taken as JSON lines (--format jsonl)\n",
      name="capture")
taken(ONE + ONE + ONE, {NAME: 3})  # one time, three messages: in their order

# ---- a series for each stream --------------------------------------------------------------------------------
STREAMS = "".join(f'{A + i} {{"stream":"{name}"}}\n' for i, name in enumerate(("a@trade", "b/x", "a@trade")))
PATH = ("--series", "BINANCE", "--series-path", "stream")
taken(STREAMS, {"BINANCE/a@trade/bipf": 2, "BINANCE/b%2Fx/bipf": 1}, series=PATH)
taken(STREAMS, {"BINANCE/a@trade/json": 2}, "--as", "text", "--symbols", "a*", series=PATH)
REST = "FILE: messages without a string at --series-path (2, the first in line 4): "
taken(STREAMS + ONE.replace(str(A), str(B)) + f'{B} {{"stream":7}}\n',
      {"BINANCE/a@trade/bipf": 2, "BINANCE/b%2Fx/bipf": 1, "BINANCE/bipf": 2}, series=PATH,
      said=REST + "in BINANCE/bipf\n")
taken(STREAMS + f'{B} {{}}\n{B} {{}}\n', {"BINANCE/b%2Fx/bipf": 1}, "--symbols", "b/x", series=PATH,
      said=REST + "left out\n")
refused(f'{A} {{"stream":""}}\n', "FILE: line 1, column 21: what is at --series-path is no name: empty, too long, or with a "
        'NUL, at "{"stream":""}"', series=PATH)

# ---- dirty files ------------------------------------------------------------------------------------------
AT = "FILE: line 2, column "
refused(ONE + '{"a":1}\n', AT + '1: no time before the message; is it inside? (--time PATH, such as data.T), at "{"a":1}"')
refused(ONE + "soon {}\n", AT + '1: "soon" is not a time such as 2024-01-31T09:30:00.5Z')
refused(ONE + "12 {}\n", AT + '1: "12" is not an epoch whose unit can be told; set the time format to s, ms, us or ns')
refused(ONE + f"{B}\n", AT + "20: no message behind the time")
refused(ONE + f'{B} {{"a":1 "b":2}}\n', AT + '28: a comma or } is missing, at ""b":2}"')
refused(ONE + f"{B} {{'a':1}}\n", AT + "22: a key is missing: a string in double quotes, at \"'a':1}\"")
refused(ONE + f'{B} {{"a":NaN}}\n', AT + '26: NaN and Infinity are no numbers of JSON, at "NaN}"')
refused(ONE + f'{B} {{"a":01}}\n', AT + '26: a number of JSON has no leading zero, at "01}"')
refused(ONE + f'{B} {{}} {{}}\n', AT + '24: more behind the value, at "{}"')
refused(ONE + f'{B} {{"a":\n1}}\n', AT + "26: the line ends inside of a value (JSON lines have a whole one each: jq -c makes "
        "them)")
refused(ONE.encode() + b"%d \"a\xff\"\n" % B, AT + '23: bytes that are not UTF-8, at "?""')
refused(ONE.encode() + b"%d \"a\0b\"\n" % B, AT + '23: a NUL byte, at "?b""')
refused(ONE.encode() + b"\0\0\0\n", AT + "4: no message behind the time")
refused(ONE + f'{B} "\\ud800"\n', AT + '22: half of a surrogate pair is no character, at "\\ud800""')
refused(ONE + f"{B} " + "[" * 129 + "]" * 129 + "\n", AT + "149: more than 128 arrays and objects inside each other, at "
        '"[]]]]]]]]]]]]]]]]]]]]]]]"')
refused(TWO.encode("utf-16"), "FILE is UTF-16 or UTF-32, not UTF-8 (convert: iconv -f UTF-16 -t UTF-8)")
refused(TWO.encode("utf-16-le"), "FILE is UTF-16 or UTF-32, not UTF-8 (convert: iconv -f UTF-16 -t UTF-8)")
refused(TWO.encode("utf-32-be"), "FILE is UTF-16 or UTF-32, not UTF-8 (convert: iconv -f UTF-16 -t UTF-8)")
refused(ONE + f"{B} \"" + "x" * (17 << 20) + '"\n', "FILE: line 2 is longer than 16 MiB: is it text, one message a line?")
refused(ONE + f"{B} [" + "1," * 900_000 + "1]\n", "FILE: line 2: a message of 1800003 bytes, which is a document of 4500009; at most "
        "4194240 are stored: --as text stores the message as it is")
refused('{"a":1}\n', 'FILE: line 1, column 1: the message has no value at --time, at "{"a":1}"', "--time", "T")
refused('{"T":[]}\n', 'FILE: line 1, column 1: what is at --time is neither a number nor a string, at "{"T":[]}"', "--time",
        "T")
refused('{"T":"soon"}\n', 'FILE: line 1, column 1: "soon" is not a time such as 2024-01-31T09:30:00.5Z', "--time", "T")

# ---- a time that steps back; one file cut at its end -----------------------------------------------------------
BACK = f'{B} {{"a":2}}\n{A} {{"a":1}}\n'
_, said, _ = ingest(BACK, expect=1)
t.true(said.startswith("stoup ingest: FILE:2: 2024-08-08T23:54:15.030314667Z is before ") and "--order" in said, said)
taken(BACK, {NAME: 2}, "--order", "sort")
for tail in (f'{B} {{"a":', f'{B} {{"a":"x', f'{B} ', f"{B}", f'{B} {{"a":"\\ud83d\\u', "17231612550"):
    refused(ONE + tail, "FILE: line 2: the file ends inside of a message: is it cut? (--allow-partial takes the lines before)")
    taken(ONE + tail, {NAME: 1}, "--allow-partial", said="FILE: line 2 is cut by the end of the file: left out\n")
whole = gzip.compress(("".join(f'{A + i} {{"a":{i}}}\n' for i in range(20000))).encode())
_, said, _ = ingest(whole[:len(whole) // 2], expect=1, name="in.jsonl.gz")
t.true("FILE" in said and "cut" in said or "ends" in said, said)
found, said, _ = ingest(whole[:len(whole) // 2], "--allow-partial", name="in.jsonl.gz")
t.true(0 < found[NAME] < 20000 and "cut" in said, f"{found} {said}")
# A bad line is a bad line, cut or not.
refused(f'{A} {{"a" 1}}\n{B} {{"a":', 'FILE: line 1, column 26: a colon is missing behind the key, at "1}"', "--allow-partial")

# ---- options --------------------------------------------------------------------------------------------------
refused(ONE, "FILE: JSON lines need the name of their series (--series NAME; with --series-path PATH its first part); "
             "of a directory --include '*.jsonl*' takes them alone, --exclude all others",
        series=())
refused(ONE, "FILE: JSON lines have --series, --series-path, --as, --time, --time-format and --time-zone; columns are for CSV",
        "--columns", "a:time")
refused(ONE, "FILE: --symbols chooses JSON lines by what is at --series-path PATH", "--symbols", "A*")
refused(ONE, '--time: path "a..b": a name is missing at ".b"', "--time", "a..b")
_, said, _ = ingest(ONE, "--as", "bson", expect=2)
t.equal(said, "stoup ingest: --as bson: document or text; see `stoup help ingest`\n", "--as")

# ---- a dry run shows documents as the JSON that they are made of --------------------------------------------------
for options, shown in (((), '{"a":[1.5,true]}'), (("--as", "text"), '{"a" : [1.50, true]}')):
    path = os.path.join(work, "in.jsonl")
    with open(path, "w", encoding="ascii") as out:
        out.write(f'{A} {{"a" : [1.50, true]}}\n')
    said = t.run([t.STOUP, "ingest", "--dry-run", "--store", os.path.join(work, "none"), "--series", NAME, *options, path]).stdout
    t.true(f" bytes  {shown}\n" in said, said)
