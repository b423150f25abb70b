# SPDX-License-Identifier: Apache-2.0
"""NumPy files in and out: .npy and .npz of structured arrays, byte for byte, and what is refused.

Files are written here from the published layout; where NumPy is installed it reads and writes them too."""
import io
import os
import struct
import zipfile

import lib_stoup as t

try:
    import numpy
except ImportError:
    numpy = None

EVENT64 = [("ev", "<u8"), ("exch_ts", "<i8"), ("local_ts", "<i8"), ("px", "<f8"), ("qty", "<f8"),
           ("order_id", "<u8"), ("ival", "<i8"), ("fval", "<f8")]
BOTH = 3 << 30
WORK = t.temp_dir()
count = 0


def npy(descr, rows, cnt, version=1, order="False", shape=None):
    """A .npy file as NumPy writes it: a header padded to 64 bytes, then the rows."""
    shape = shape or f"({cnt},)"
    text = f"{{'descr': {descr!r}, 'fortran_order': {order}, 'shape': {shape}, }}".encode()
    prelude = 10 if version == 1 else 12
    length = -(-(prelude + len(text) + 1) // 64) * 64 - prelude
    head = b"\x93NUMPY" + bytes([version, 0]) + struct.pack("<H" if version == 1 else "<I", length)
    return head + text.ljust(length - 1) + b"\n" + rows


def path_of(name, data):
    path = os.path.join(WORK, name)
    with open(path, "wb") as out:
        out.write(data)
    return path


def ingest(data, *options, name="in.npy", expect=0, store=None):
    global count
    count += 1
    store = store or os.path.join(WORK, f"store{count}")
    done = t.run([t.STOUP, "ingest", "--store", store, "--quiet", *options, path_of(name, data)], expect=expect)
    return store if expect == 0 else done.stderr


def export(store, series, *options, kind="npy"):
    import subprocess
    return subprocess.run([t.STOUP, "cat", store + "/", series, "--format", kind, *options], capture_output=True,
                          check=True).stdout


def same(found, expected, what):
    """Equal bytes, of which a failure shows the first that differ."""
    if found != expected:
        at = next((i for i, (a, b) in enumerate(zip(found, expected)) if a != b), min(len(found), len(expected)))
        t.fail(f"{what}: {len(found)} bytes, expected {len(expected)}; at {at} {found[at:at + 40]!r} and "
               f"{expected[at:at + 40]!r}")


def event(i, ev=BOTH | 1 << 29 | 1, exch=None, local=None):
    exch = t.T0 + i * 1000 if exch is None else exch
    return struct.pack("<Qqqddqqd", ev, exch, exch + 500 if local is None else local, 100 + i / 4, i % 7, i, -i, i / 3)


# ---- event64: known by its fields, the same bytes again --------------------------------------------------
ROWS = 30_000
events = b"".join(event(i) for i in range(ROWS))
for version in (1, 2, 3):
    store = ingest(npy(EVENT64, events, ROWS, version), "--series", "X/Y/event64")
    listed = t.run([t.STOUP, "ls", store]).stdout
    t.true("event64" in listed and f"{ROWS}" in listed, listed)
    same(export(store, "X/Y/event64"), npy(EVENT64, events, ROWS), f"version {version}: the file that NumPy writes")
head = len(npy(EVENT64, b"", 0))
found = export(store, "X/Y/event64", "--from", str(t.T0 + 500 + 10_000_000), "--limit", "7")
same(found, npy(EVENT64, events[10_000 * 64:10_007 * 64], 7), "a part of it")
found = export(store, "X/Y/event64", "--backward", "--limit", "2")
same(found, npy(EVENT64, events[-64:] + events[-128:-64], 2), "the last two, backward")
same(export(store, "X/Y/event64", "--to", str(t.T0)), npy(EVENT64, b"", 0), "nothing of it")

# ---- npz: stored and deflated, in and out ------------------------------------------------------------------
zipped = export(store, "X/Y/event64", kind="npz")
with zipfile.ZipFile(io.BytesIO(zipped)) as archive:
    t.equal(archive.testzip(), None, "checksums")
    t.equal(archive.namelist(), ["data.npy"], "members")
    t.equal(archive.getinfo("data.npy").compress_type, zipfile.ZIP_STORED, "stored")
    same(archive.read("data.npy"), npy(EVENT64, events, ROWS), "the member")
same(export(store, "X/Y/event64", kind="npz"), zipped, "the same file each time")
again = ingest(zipped, "--series", "A/B/event64", name="in.npz")
same(export(again, "A/B/event64", kind="npz"), zipped, "round trip")
for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        with archive.open("data.npy", "w", force_zip64=True) as member:  # as NumPy does
            member.write(npy(EVENT64, events, ROWS))
    again = ingest(out.getvalue(), "--series", "A/B/event64", name="in.npz")
    same(export(again, "A/B/event64"), npy(EVENT64, events, ROWS), f"zip method {method}")
with zipfile.ZipFile(out, "a") as archive:
    archive.writestr("meta.npy", b"x")
t.true("several files (data.npy, meta.npy)" in ingest(out.getvalue(), "--series", "A/B/c", name="in.npz", expect=1),
       "a second member")

# ---- event64 has two orders ----------------------------------------------------------------------------------
# The feed overtook itself: the event of exchange time 2 came before that of 1. hftbacktest has it so.
woven = [event(0), event(1, ev=1 << 31 | 2, exch=t.T0 + 1000, local=t.T0 + 9000),
         event(2, ev=BOTH | 2, exch=t.T0 + 2000, local=t.T0 + 3000),
         event(1, ev=1 << 30 | 2, exch=t.T0 + 1000, local=t.T0 + 9000)]
store = ingest(npy(EVENT64, b"".join(woven), 4), "--series", "X/Y/event64")
same(export(store, "X/Y/event64"), npy(EVENT64, b"".join(woven), 4), "its order is kept")
t.true("keeps its order" in t.run([t.STOUP, "ls", store]).stdout, "and said")
t.run([t.STOUP, "verify", store])
wrong = b"".join([event(0), event(1, exch=t.T0 - 1, local=t.T0 + 600)])
text = ingest(npy(EVENT64, wrong, 2), "--series", "X/Y/event64", expect=1)
t.true("exch_ts of events with the EXCH flag steps back" in text and f"offset {head + 64}" in text, text)
wrong = b"".join([event(0), event(1, exch=t.T0 + 1, local=t.T0 + 2)])
text = ingest(npy(EVENT64, wrong, 2), "--series", "X/Y/event64", expect=1)
t.true("local_ts of events with the LOCAL flag steps back" in text, text)
store = ingest(npy(EVENT64, wrong, 2), "--series", "X/Y/event64", "--order", "keep")
same(export(store, "X/Y/event64"), npy(EVENT64, wrong, 2), "as it is, on request")
t.true("leave --sort out" in ingest(npy(EVENT64, wrong, 2), "--series", "X/Y/e", "--sort", expect=1), "no sorting")

# Also from file to file, and whatever the file: days in the wrong order, one given twice, a table.
days = [path_of(f"day{k}.npy", npy(EVENT64, b"".join(event(i, exch=t.T0 + 100 * k + i, local=t.T0 + 100 * k + i + 5)
                                                     for i in range(3)), 3)) for k in range(2)]
fresh = os.path.join(WORK, "days")
twin = path_of("twin-of-day0.npy", open(days[0], "rb").read())
for files in ((days[1], days[0]), (twin, days[0])):
    text = t.run([t.STOUP, "ingest", "--store", fresh, "--series", "X/Y/e", "--quiet", *files], expect=1).stderr
    t.true("steps back" in text and "day0.npy, offset" in text and "in the order of time" in text, text)
    t.true(not os.path.exists(fresh), "nothing is stored")
t.run([t.STOUP, "ingest", "--store", fresh, "--series", "X/Y/e", "--quiet", "--order", "refuse", *days])
t.equal([row[1] for row in struct.iter_unpack("<Qqqddqqd", export(fresh, "X/Y/e")[-6 * 64:])],
        [t.T0 + k * 100 + i for k in range(2) for i in range(3)], "both days")
table = "ev,exch_ts,local_ts,px,qty,order_id,ival,fval\n" + "".join(
    f"{BOTH | 2},{t.T0 + at},{t.T0 + at + 100},1,1,0,0,0\n" for at in (100, 50))
for options, expect, word in (((), 1, "in.csv:3: exch_ts of events"), (("--order", "refuse"), 1, "in.csv:3: exch_ts"),
                              (("--sort",), 1, "leave --sort out"), (("--order", "keep"), 0, "")):
    text = ingest(table.encode(), "--schema", "event64", "--series", "X/Y/e", *options, name="in.csv", expect=expect)
    t.true(word in text, text)
store = ingest(npy(EVENT64, b"".join(woven), 4), "--series", "X/Y/event64", "--order", "refuse")
same(export(store, "X/Y/event64"), npy(EVENT64, b"".join(woven), 4), "the default, said")

# ---- arrays of one's own ---------------------------------------------------------------------------------------
own = [("t", "<M8[ns]"), ("n", "<i4"), ("", "|V3"), ("ok", "|b1"), ("name", "|S4"), ("f", "<f4"), ("raw", "|V4"),
       ("u", "<u2"), ("", "|V10")]
rows = b"".join(struct.pack("<qi3s?4sf4sH10s", t.T0 + i, -i, b"pad", i % 2, b"ab", i / 2, b"\1\0\2\0", i, b"filler")
                for i in range(1000))
store = ingest(npy(own, rows, 1000), "--series", "X/Y/own")
expected = [(name, {"<M8[ns]": "<i8", "|b1": "|u1"}.get(kind, kind)) for name, kind in own]
same(export(store, "X/Y/own"), npy(expected, rows, 1000), "layout, gaps and all")
shown = t.run([t.STOUP, "cat", store + "/", "X/Y/own", "--limit", "2"]).stdout.splitlines()
t.equal(shown[0], "t,n,ok,name,f,raw,u", "names")
t.true(shown[2].startswith("2023-11-14T22:13:20.000000001Z,-1,1,ab,0.5,"), shown[2])

# A layout that no series can have is laid out anew; the key may be an integer that is named.
packed = [("c", "|i1"), ("when", "<u8"), ("x", "<f8")]
rows = b"".join(struct.pack("<bQd", i % 100, t.T0 + i, i * 1.5) for i in range(100))
text = ingest(npy(packed, rows, 100), "--series", "X/Y/p", expect=1)
t.true("--time FIELD" in text and "c when x" in text, text)
store = ingest(npy(packed, rows, 100), "--series", "X/Y/p", "--time", "when")
shown = t.run([t.STOUP, "cat", store + "/", "X/Y/p"]).stdout.splitlines()
t.equal(shown[3], "2,2023-11-14T22:13:20.000000002Z,3", "values")
t.true("an integer of 8 bytes" in ingest(npy(packed, rows, 100), "--series", "X/Y/p", "--time", "x", expect=1), "key")

# By the fields of a schema, in another order, with one that may be undefined.
bars = [("close", "<i8"), ("ts", "<i8"), ("open", "<i8"), ("high", "<i8"), ("low", "<i8"), ("extra", "<f8")]
rows = b"".join(struct.pack("<qqqqqd", i, t.T0 + i * 60_000_000_000, i + 1, i + 2, i + 3, 0) for i in range(10))
options = ["--series", "X/Y/bar", "--schema", "bar", "--interval", "1m"]
store = ingest(npy(bars, rows, 10), *options)
shown = t.run([t.STOUP, "cat", store + "/", "X/Y/bar"]).stdout.splitlines()
t.equal(shown[3], "2023-11-14T22:15:20.000000000Z,0.000000003,0.000000004,0.000000005,0.000000002,", "by name")
bad = [(name, "<f8" if name == "high" else kind) for name, kind in bars]
text = ingest(npy(bad, rows, 10), *options, expect=1)
t.true("field high is f64 in the array and i64 in schema bar" in text, text)
few = [(name if name != "low" else "lo", kind) for name, kind in bars]
store = ingest(npy(few, rows, 10), *options)
shown = t.run([t.STOUP, "cat", store + "/", "X/Y/bar"]).stdout.splitlines()
t.equal(shown[1], "2023-11-14T22:13:20.000000000Z,0.000000001,0.000000002,,0,", "undefined where there is none")
ticks = [("ts", "<i8"), ("price", "<i8"), ("size", "<u4"), ("flag", "<u4")]
text = ingest(npy(ticks, bytes(24), 1), "--series", "X/Y/t", "--schema", "tick", expect=1)
t.true("has a field flags, the array has none" in text and "ts price size flag)" in text, text)

# NaT is what is undefined, and no key.
nat = -2**63
times = [("t", "<M8[ns]"), ("other", "<M8[ns]")]
rows = struct.pack("<qqqq", t.T0, nat, t.T0 + 1, t.T0)
text = ingest(npy(times, rows, 2), "--series", "X/Y/n", expect=1)
t.true("both t and other are times" in text, text)
store = ingest(npy(times, rows, 2), "--series", "X/Y/n", "--time", "t")
t.equal(t.run([t.STOUP, "cat", store + "/", "X/Y/n", "--limit", "1"]).stdout.splitlines()[1],
        "2023-11-14T22:13:20.000000000Z,", "NaT prints as nothing")
text = ingest(npy(times, struct.pack("<qq", nat, 1), 1), "--series", "X/Y/n", "--time", "t", expect=1)
t.true(f"offset {len(npy(times, b'', 1))}" in text, text)

# ---- refused, with what mends it ----------------------------------------------------------------------------------
good = npy(EVENT64, events[:640], 10)
big = [(name, kind.replace("<", ">")) for name, kind in EVENT64]
for data, words in (
        (npy(big, events[:640], 10), ("big-endian", "newbyteorder('<')", "'ev'")),
        (npy("<f8", bytes(80), 10), ("a plain array of '<f8'", "structured")),
        (npy(EVENT64, events[:640], 10, shape="(5, 2)"), ("2 dimensions", "a.ravel()")),
        (npy(EVENT64, events[:640], 10, shape="()"), ("0 dimensions",)),
        (npy([("t", "<M8[us]")], bytes(80), 10), ("only nanoseconds", "datetime64[ns]")),
        (npy([("t", "<i8"), ("s", "<U4")], bytes(240), 10), ("S8",)),
        (npy([("t", "<i8"), ("o", "|O")], bytes(160), 10), ("Python objects",)),
        (npy([("t", "<i8"), ("v", "<f8", (3,))], bytes(320), 10), ("an array within a record",)),
        (npy([("t", "<i8"), ("v", [("a", "<f8")])], bytes(160), 10), ("fields within a field",)),
        (npy([("t", "<i8"), (("title", "v"), "<f8")], bytes(160), 10), ("title",)),
        (npy([("t", "<i8"), ("h", "<f2")], bytes(100), 10), ("'<f2'",)),
        (npy([("t", "<i8"), ("bad name", "<f8")], bytes(160), 10), ("'bad name'", "letters, digits")),
        (good[:-1], (f"ends at offset {len(good) - 1}", "1 bytes short")),
        (good + b"x", ("garbage behind the array", f"offset {len(good)}")),
        (good[:100], ("cut short",)),
        (good[:8], ("of 8 bytes", "cut short")),
        (good.replace(b"\x93NUMPY\x01", b"\x93NUMPY\x04"), ("version 4.0",)),
        (good.replace(b"'shape'", b"'shapE'"), ("'descr', 'fortran_order' and 'shape'",)),
        (good.replace(b"False", b"Maybe"), ("True or False",))):
    text = ingest(data, "--series", "X/Y/z", expect=1)
    t.true("in.npy" in text and all(word in text for word in words), f"{words}: {text}")
t.true("--series" in ingest(good, expect=1), "a series has a name")
t.true("fields have names" in ingest(good, "--series", "X/Y/z", "--map", "a=b", expect=1), "no map")
t.equal(os.path.exists(os.path.join(WORK, f"store{count}")) and os.listdir(os.path.join(WORK, f"store{count}")), False,
        "nothing is left of what was refused")
store = ingest(good, "--series", "X/Y/z")
t.true("--skip-damaged" in t.run([t.STOUP, "cat", store + "/", "X/Y/z", "--format", "npy", "--skip-damaged"],
                                 expect=2).stderr, "no gaps in an array")

# ---- NumPy itself ---------------------------------------------------------------------------------------------------
if numpy is None:
    print("note: python3-numpy is not installed: NumPy does not read and write the files itself")
    raise SystemExit(0)
dtype = numpy.dtype([(name, kind[1:]) for name, kind in EVENT64])
array = numpy.frombuffer(events, dtype)
store = ingest(zipped, "--series", "X/Y/event64", name="in.npz")
t.true((numpy.load(path_of("out.npz", export(store, "X/Y/event64", kind="npz")))["data"] == array).all(), "npz")
out = io.BytesIO()
numpy.savez_compressed(out, data=array)
store = ingest(out.getvalue(), "--series", "X/Y/event64", name="in.npz")
loaded = numpy.load(path_of("out.npy", export(store, "X/Y/event64")))
t.true(loaded.dtype == dtype and (loaded == array).all(), "savez_compressed")
aligned = numpy.zeros(50, numpy.dtype([("t", "M8[ns]"), ("a", "i1"), ("b", "f8")], align=True))
aligned["t"] = numpy.arange(50) + t.T0
aligned["b"] = numpy.arange(50) / 3
out = io.BytesIO()
numpy.save(out, aligned)
store = ingest(out.getvalue(), "--series", "X/Y/a")
loaded = numpy.load(path_of("out.npy", export(store, "X/Y/a")))
t.true(loaded.dtype.itemsize == 24 and (loaded["b"] == aligned["b"]).all(), "a dtype with padding")
