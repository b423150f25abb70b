# SPDX-License-Identifier: Apache-2.0
"""Dukascopy's bi5 and messages behind their lengths: what is stored, and what dirty files are told."""
import json
import lzma
import os
import struct
import time

import lib_itch as i
import lib_stoup as t

WORK = t.temp_dir()
TICK = struct.Struct("<qII4s4s")
HOUR = 1579082400 * 10**9  # 2020-01-15T10:00Z
count = 0


def ingest(data, *options, name="EURUSD/2020/00/15/10h_ticks.bi5", expect=0):
    """The store and what was told; or, where it is to fail, the error."""
    global count
    count += 1
    path = os.path.join(WORK, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as out:
        out.write(data)
    store = os.path.join(WORK, f"store{count}")
    done = t.run([t.STOUP, "ingest", "--store", store, "--quiet", *options, path], expect=expect)
    return (store, done.stderr) if expect == 0 else done.stderr


def series(store):
    return {s["name"]: s["records"] for s in json.loads(t.run([t.STOUP, "ls", "--json", store]).stdout)["series"]}


def text(store, name):
    return t.run([t.STOUP, "cat", store + "/", name]).stdout.splitlines()


def rows_of(ticks):
    return b"".join(struct.pack(">III", *tick[:3]) + tick[3] + tick[4] for tick in ticks)


def alone(data, known=False):
    packed = lzma.compress(data, format=lzma.FORMAT_ALONE)
    return packed[:5] + struct.pack("<Q", len(data)) + packed[13:] if known else packed


# Volumes as bits: a NaN with a payload, the smallest number, minus zero stay what they are.
VOLUMES = [struct.pack(">f", 1.25), bytes.fromhex("7fc00123"), bytes.fromhex("00000001"), bytes.fromhex("80000000")]
TICKS = [(n * 1234 % 1000 + n * 900, 111500 + n, 111490 + n, VOLUMES[n % 4], VOLUMES[(n + 1) % 4]) for n in range(3000)]
TICKS.sort(key=lambda tick: tick[0])


def test_values():
    for data in (alone(rows_of(TICKS)), alone(rows_of(TICKS), known=True), rows_of(TICKS)):
        store, told = ingest(data)
        t.equal(told, "", "a clean hour tells nothing")
        out = t.output([t.STOUP, "cat", store + "/", "DUKASCOPY/EURUSD/bi5", "--format", "npy"])
        names, size, raw = i.npy_rows(out)
        t.equal((names, size), (["ts", "ask", "bid", "ask_vol", "bid_vol"], TICK.size), "layout")
        expected = b"".join(TICK.pack(HOUR + ms * 10**6, ask, bid, av[::-1], bv[::-1]) for ms, ask, bid, av, bv in TICKS)
        t.true(raw == expected, "the records are the rows, turned around")
    t.equal(text(store, "DUKASCOPY/EURUSD/bi5")[1], "2020-01-15T10:00:00.000000000Z,1.115,1.1149,1.25,nan", "as text")
    one = alone(rows_of(TICKS[:1]))
    cases = [  # path, options, series, line
        ("USDJPY/2020/11/31/23h_ticks.bi5", [], "DUKASCOPY/USDJPY/bi5", "2020-12-31T23:00:00.000000000Z,111.5,111.49"),
        ("XAUUSD/2020/00/01/00h_ticks.bi5", [], "DUKASCOPY/XAUUSD/bi5", "2020-01-01T00:00:00.000000000Z,111.5,111.49"),
        ("BTCUSD/2020/01/29/05h_ticks.bi5", ["--point", "1"], "DUKASCOPY/BTCUSD/bi5",
         "2020-02-29T05:00:00.000000000Z,11150,11149"),
        ("x.bi5", ["--symbol", "EURUSD", "--date", "2020-01-15", "--hour", "7", "--dataset", "D"], "D/EURUSD/bi5",
         "2020-01-15T07:00:00.000000000Z,1.115,1.1149"),
        ("EURUSD/2020/00/15/10h_ticks.bi5", ["--series", "a/b"], "a/b", "2020-01-15T10:00:00.000000000Z,1.115,1.1149"),
        ("EURUSD/2020/12/15/10h_ticks.bi5", ["--date", "20200115"], "DUKASCOPY/EURUSD/bi5",
         "2020-01-15T10:00:00.000000000Z,1.115,1.1149"),
        ("x.dat", ["--format", "bi5", "--symbol", "EURUSD", "--date", "2020-01-15", "--hour", "7"],
         "DUKASCOPY/EURUSD/bi5", "2020-01-15T07:00:00.000000000Z,1.115,1.1149"),
    ]
    for path, options, name, line in cases:
        store, told = ingest(one, *options, name=path)
        t.equal((told, text(store, name)[1]), ("", line + ",1.25,nan"), f"{path} {options}")
    store, _ = ingest(one, "--symbols", "USD*")
    t.true(not os.path.isdir(store), "a symbol that was not asked for is not stored")


def test_same_bytes():
    """Two hours may have the same bytes: the path makes them two. The same hour again is known."""
    one = alone(rows_of(TICKS[:1]))
    store, _ = ingest(one, name="EURUSD/2020/00/15/10h_ticks.bi5")
    for name, told, cnt in (("EURUSD/2020/00/15/11h_ticks.bi5", "", 2),
                            ("EURUSD/2020/00/15/11h_ticks.bi5", "the store has it already", 2),
                            ("moved/EURUSD/2020/00/15/11h_ticks.bi5", "the store has it already", 2)):
        path = os.path.join(WORK, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as out:
            out.write(one)
        done = t.run([t.STOUP, "ingest", "--store", store, "--quiet", path])
        t.true(told in done.stderr and (told or not done.stderr), f"{name}: {done.stderr!r}")
        t.equal(series(store), {"DUKASCOPY/EURUSD/bi5": cnt}, name)


def test_directory():
    """A day in one call: hours in their order, one of them empty."""
    base = os.path.join(WORK, "day", "EURUSD", "2020", "00", "15")
    os.makedirs(base)
    for hour in range(24):
        with open(os.path.join(base, f"{hour:02d}h_ticks.bi5"), "wb") as out:
            out.write(alone(rows_of(TICKS[:hour])) if hour else b"")
    store = os.path.join(WORK, "day-store")
    done = t.run([t.STOUP, "ingest", "--store", store, "--quiet", os.path.join(WORK, "day")])
    t.true("00h_ticks.bi5: an hour without ticks" in done.stderr, done.stderr)
    t.equal(series(store), {"DUKASCOPY/EURUSD/bi5": sum(range(24))}, "rows of a day")
    hours = [line[11:13] for line in text(store, "DUKASCOPY/EURUSD/bi5")[1:]]
    t.equal(hours, [f"{h:02d}" for h in range(24) for _ in range(h)], "hours in their order")


def test_dirty():
    rows, good = rows_of(TICKS), alone(rows_of(TICKS))
    flipped = bytearray(good)
    flipped[20] ^= 0x40
    back = rows_of([TICKS[5], TICKS[4]])
    cases = [  # data, path or None, options, error, note
        (b"", None, [], None, "an hour without ticks"),
        (alone(b""), None, [], None, "an hour without ticks"),
        (alone(b"", known=True), None, [], None, "an hour without ticks"),
        (good[:1] + struct.pack("<I", 3 << 29) + good[5:], None, [], "a dictionary of 1536 MiB, at most 128", None),
        (good[:5], None, [], "5 bytes follow row 0 at its end, and a row has 20", None),
        (good[:13], None, [], "inside its lzma data", None),
        (good[:20], None, [], "inside its lzma data", None),
        (good[:len(good) // 2], None, [], "inside its lzma data", None),
        (good[:-1], None, [], "inside its lzma data", None),
        (alone(rows, True)[:len(good) // 2], None, [], "inside its lzma data", None),
        (alone(rows, True)[:len(good) - 30], None, [], "inside its lzma data", None),
        (good + b"more", None, [], "garbage behind the last lzma stream", None),
        (bytes(flipped), None, [], "10h_ticks.bi5", None),
        (alone(rows[:-3]), None, [], "17 bytes follow row 2999 at its end, and a row has 20", None),
        (alone(rows[:-3]), None, ["--allow-partial"], None, "17 bytes behind row 2999 are left out"),
        (b"<html>404 Not Found</html>", None, [], 'begins with "<html>40": a text', None),
        (b"{}", None, [], 'begins with "{}": a text', None),
        (b"garbage" * 20, None, [], "row 1 (offset 0 unpacked) is at 1734439522 ms", None),
        (alone(struct.pack("<IIIff", 77, 111500, 111490, 1, 1)), None, [], "its first row is little-endian (77 ms", None),
        (alone(rows[:40] + struct.pack(">IIIff", 3600000, 1, 1, 1, 1)), None, [],
         "row 3 (offset 40 unpacked) is at 3600000 ms", None),
        (alone(back), None, [], "before", None),
        (alone(back), None, ["--sort"], None, ": rows that are before the one before them: 1"),
        (good, "ticks.bi5", [], "the path does not say the symbol", None),
        (good, "2020/00/15/10h_ticks.bi5", ["--symbol", "EURUSD", "--hour", "24"], "--hour 24: 0 to 23", None),
        (good, "EURUSD/2020/12/15/10h_ticks.bi5", [], "a date that does not exist (months are 00 to 11 there)", None),
        (good, "EURUSD/2020/00/32/10h_ticks.bi5", [], "a date that does not exist", None),
        (good, "EURUSD/2020/00/15/ticks.bi5", [], "the path does not say the hour", None),
        (good, "BTCUSD/2020/00/15/10h_ticks.bi5", [],
         "the decimals of the prices of BTCUSD are not known: say them (--point 5", None),
        (good, None, ["--symbol", "EUR/USD"], "--symbol EUR/USD: 1 to 31 letters, digits", None),
        (good, None, ["--symbol", ""], "--symbol : 1 to 31 letters", None),
        (good, None, ["--symbol", "E" * 32], ": 1 to 31 letters", None),
        (good, None, ["--point", "10"], "--point 10: decimals of a price, 0 to 9", None),
        (good, None, ["--date", "2020-02-30"], "--date 2020-02-30: a date that exists", None),
    ]
    for data, path, options, error, note in cases:
        usage = error and error.startswith(("--hour", "--point"))
        told = ingest(data, *options, name=path or "EURUSD/2020/00/15/10h_ticks.bi5",
                      expect=2 if usage else 1 if error else 0)
        told = told if error else told[1]
        t.true((error or note) in told, f"{path} {options} {data[:30]!r}: told {told!r}, expected {error or note!r}")


def stamp(seconds):
    return time.strftime("%Y-%m-%dT%H:%M:%S.000000000Z", time.gmtime(seconds))


def test_frames():
    messages = [b"", b"x", b"\0" * 300, b"{\"a\":1}"]
    times = [10**9, 10**9, 10**9 + 7, 2 * 10**9]  # seconds
    for name, code in (("u16be", ">H"), ("u16le", "<H"), ("u32be", ">I"), ("u32le", "<I"), ("u64be", ">Q"),
                       ("u64le", "<Q")):
        data = b"".join(struct.pack("<I", s) + struct.pack(code, len(m)) + m for s, m in zip(times, messages))
        store, told = ingest(data, "--format", "frames", "--series", "a/b", "--frame-length", name,
                             "--frame-time-first", "u32le:s", name="f.bin")
        t.equal((told, series(store)), ("", {"a/b": 4}), f"lengths as {name}")
        t.equal(text(store, "a/b")[1:], [f"{stamp(s)},{m.hex()}" for s, m in zip(times, messages)], f"messages, {name}")
        inner = [struct.pack(">Q", s * 10**6) + m for s, m in zip(times, messages)]
        data = b"".join(struct.pack(code, len(m)) + m for m in inner)
        store, told = ingest(data, "--format", "frames", "--series", "a/b", "--frame-length", name,
                             "--frame-time", "0:u64be:us", name="f.bin")
        t.equal((told, series(store)), ("", {"a/b": 4}), f"time inside, lengths as {name}")
        t.equal(text(store, "a/b")[1:], [f"{stamp(s)},{m.hex()}" for s, m in zip(times, inner)], f"time inside, {name}")
    good = b"".join(struct.pack("<I", s) + struct.pack(">I", len(m)) + m for s, m in zip(times, messages))
    first = ["--frame-length", "u32be", "--frame-time-first", "u32le:s"]
    inside = ["--frame-length", "u16be", "--frame-time", "2:u32be:ms"]
    cases = [  # data, options, error, note
        (good[:-1], first, "the message 4 at offset 325 is cut short", None),
        (good[:-1], first + ["--allow-partial"], None, "the message 4 at offset 325 is cut short: left out"),
        (good[:3], first, "the message 1 at offset 0 is cut short", None),
        (struct.pack("<II", 10**9, 5) + b"abcde", first,
         "claims 83886080 bytes, at most 4194240 are allowed: in the other byte order it is short", None),
        (struct.pack("<I", 10**9) + b"\xff" * 9, first, "claims 4294967295 bytes", None),
        (struct.pack("<I", 0) + struct.pack(">I", 1) + b"a", first, "has the time 0", None),
        (struct.pack("<I", 2) + struct.pack(">I", 0) + struct.pack("<I", 1) + struct.pack(">I", 0), first,
         "offset 8: 1970-01-01T00:00:01", None),
        (b"\0\5abcde", inside, "the message 1 at offset 0 has 5 bytes, its time ends at 6", None),
        (b"\0\0", inside, "has 0 bytes, its time ends at 6", None),
        (b"\0\6ab\xff\xff\xff\xff", inside, None, ""),
        (good, ["--frame-length", "u32be"], "the place of their times", None),
        (good, ["--frame-time-first", "u32le:s"], "the type of their lengths", None),
    ]
    for data, options, error, note in cases:
        told = ingest(data, "--format", "frames", "--series", "a/b", *options, name="f.bin", expect=1 if error else 0)
        told = told if error else told[1]
        t.true((error or note) in told, f"{options} {data[:30]!r}: told {told!r}, expected {error or note!r}")
        t.true("f.bin" in told or note == "", f"the file is named: {told!r}")
    for option, value in (("--frame-length", "u24be"), ("--frame-time", "u64be:ns"), ("--frame-time", "x:u64be:ns"),
                          ("--frame-time", "1:u16be:ns"), ("--frame-time-first", "u64be"),
                          ("--frame-time-first", "u64be:h"), ("--frame-time", "-1:u64be:ns")):
        told = ingest(good, "--format", "frames", "--series", "a/b", option, value, name="f.bin", expect=2)
        t.true(f"{option} {value}:" in told, told)
    t.true("the name of their series" in ingest(good, "--format", "frames", *first, name="f.bin", expect=1), "no series")


test_values()
print("ok: values of bi5")
test_same_bytes()
print("ok: hours with the same bytes")
test_directory()
print("ok: a directory of hours")
test_dirty()
print("ok: dirty files of bi5")
test_frames()
print("ok: frames")
