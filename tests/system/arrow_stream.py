# SPDX-License-Identifier: Apache-2.0
"""A whole scan as an Arrow stream, taken as a foreign program takes it: by the interface's structs alone (ctypes), over the
pool and over mapped files, whose spans are cut into batches. And whole ranges as one array (stoup_array)."""
import array
import ctypes as c
import os
import struct
import sys
import threading

import lib_stoup as t
from lib_arrow import Array, Schema, Stream

if os.environ.get("STOUP_SANITIZED"):
    print("a sanitized library needs the sanitizer's runtime in front of Python: not run here")
    sys.exit(t.SKIP)

BATCH = 1 << 20
lib = c.CDLL(os.path.join(os.environ["STOUP_LIB_DIR"], "libstoup.so"))


class Error(c.Structure):
    _fields_ = [("code", c.c_int), ("text", c.c_char * 256)]


class Series(c.Structure):
    _fields_ = [("id", c.c_uint64), ("name", c.c_char_p), ("schema", c.c_void_p), ("cnt", c.c_uint64),
                ("first", c.c_int64), ("last", c.c_int64), ("flags", c.c_uint32), ("volumes", c.c_uint32)]


class Range(c.Structure):
    _fields_ = [("low", c.c_int64), ("high", c.c_int64), ("flags", c.c_uint32), ("zero", c.c_uint32)]


def leases(daemon):
    return sum(consumer["leases"] for consumer in daemon.stat()["consumers"])


def must(rc, err):
    t.true(rc == 0, f"{rc}: {err.text.decode()}")


class Scan:
    """An attachment and a stream over one series."""

    def __init__(self, pool, name, flags=0, direct=False):
        self.st, cur, err, series = c.c_void_p(), c.c_void_p(), Error(), Series()
        self.stream = Stream()
        must(lib.stoup_attach(pool.encode(), None, c.byref(self.st), c.byref(err)), err)
        must(lib.stoup_series_find(self.st, name.encode(), c.byref(series), c.byref(err)), err)
        must(lib.stoup_scan(self.st, c.byref(series), c.byref(Range(0, 0, 2 if direct else 0, 0)), c.byref(cur),
                            c.byref(err)), err)
        must(lib.stoup_arrow_stream(cur, c.c_uint32(flags), c.byref(self.stream), c.byref(err)), err)

    def formats(self):
        schema = Schema()
        t.equal(self.stream.get_schema(c.byref(self.stream), c.byref(schema)), 0, "schema")
        found = [(schema.children[i].contents.name.decode(), schema.children[i].contents.format.decode())
                 for i in range(schema.n_children)]
        schema.release(c.byref(schema))
        return found

    def next(self):
        batch = Array()
        rc = self.stream.get_next(c.byref(self.stream), c.byref(batch))
        t.equal(rc, 0, f"batch: {self.stream.get_last_error(c.byref(self.stream))}")
        return batch if batch.release else None

    def batches(self):
        while True:
            batch = self.next()
            if batch is None:
                return
            yield batch

    def end(self):
        self.stream.release(c.byref(self.stream))
        t.true(not self.stream.release, "released")
        t.equal(lib.stoup_detach(self.st), 0, "nothing is held")


def column(batch, idx, buffer, size):
    child = batch.children[idx].contents
    return c.string_at(child.buffers[buffer], size)


# ---- over the pool: columns are the records' fields ---------------------------------------------------------
SYMBOLS = {"AAA": 11}
store, totals = t.make_store(20_000, SYMBOLS)
daemon = t.Daemon(store, "16M")
rows = list(t.mbo_records(20_000, SYMBOLS))
scan = Scan(daemon.pool, t.name_of("AAA"), 2 | 8)  # prices and times as integers
names = [name for name, _ in scan.formats()]
t.equal(dict(scan.formats())["price"], "l", "integer prices")
t.equal(dict(scan.formats())["action"], "u", "texts")
at = 0
for batch in scan.batches():
    n = batch.length
    t.equal(list(struct.unpack(f"<{n}q", column(batch, names.index("price"), 1, 8 * n))), [r[2] for r in rows[at:at + n]],
            "prices")
    t.equal(list(struct.unpack(f"<{n}Q", column(batch, names.index("ts_recv"), 1, 8 * n))), [r[1] for r in rows[at:at + n]],
            "times")
    t.equal(column(batch, names.index("action"), 2, n), b"A" * n, "actions")
    t.equal(batch.children[names.index("price")].contents.null_count, 0, "no nulls")
    batch.release(c.byref(batch))
    at += n
t.equal(at, 20_000, "all of it")
t.equal(scan.next(), None, "the end stays the end")
scan.end()

# What is not copied holds leases, until another thread lets go.
scan = Scan(daemon.pool, t.name_of("AAA"), 1)
held = list(scan.batches())
scan.stream.release(c.byref(scan.stream))
t.until(lambda: leases(daemon) == len(held), f"{len(held)} leases")
records = b"".join(column(batch, 0, 1, 56 * batch.length) for batch in held)
t.equal(records, b"".join(t.mbo(*row, sequence=i) for i, row in enumerate(rows)), "the records themselves")
t.equal(lib.stoup_detach(scan.st), -16, "EBUSY")
thread = threading.Thread(target=lambda: [batch.release(c.byref(batch)) for batch in held])
thread.start()
thread.join()
t.until(lambda: leases(daemon) == 0, "no lease")
t.equal(lib.stoup_detach(scan.st), 0, "detached")
daemon.stop()

# ---- direct: one span, cut into batches ------------------------------------------------------------------------
count = 2 * BATCH + 12_345
pairs = array.array("q", bytes(16 * count))
pairs[0::2] = array.array("q", range(t.T0, t.T0 + count))
pairs[1::2] = array.array("q", range(count))
path = os.path.join(t.temp_dir(), "pairs.npy")
text = f"{{'descr': [('t', '<M8[ns]'), ('v', '<i8')], 'fortran_order': False, 'shape': ({count},), }}".encode()
with open(path, "wb") as out:
    out.write(b"\x93NUMPY\1\0" + struct.pack("<H", 118) + text.ljust(117) + b"\n" + pairs.tobytes())
store = os.path.join(t.temp_dir(), "store")
t.run([t.STOUP, "ingest", "--store", store, "--codec", "none", "--series", "X/Y/pairs", "--quiet", path])
os.unlink(path)
daemon = t.Daemon(store, "4M")
scan = Scan(daemon.pool, "X/Y/pairs", direct=True)
t.equal(scan.formats(), [("t", "tsn:UTC"), ("v", "l")], "formats")
at, lengths = 0, []
for batch in scan.batches():
    n = batch.length
    lengths.append(n)
    for i in (0, n // 2, n - 1):
        values = [struct.unpack("<q", c.string_at(batch.children[k].contents.buffers[1] + 8 * i, 8))[0] for k in (0, 1)]
        t.equal(values, [t.T0 + at + i, at + i], f"record {at + i}")
    batch.release(c.byref(batch))
    at += n
t.equal(lengths, [BATCH, BATCH, 12_345], "batches")
scan.end()
scan = Scan(daemon.pool, "X/Y/pairs", 1, direct=True)
bases = [(batch.children[0].contents.buffers[1], batch.length, batch.release(c.byref(batch))) for batch in scan.batches()]
t.equal([base - bases[0][0] for base, _, _ in bases], [0, 16 * BATCH, 32 * BATCH], "in place, one behind the other")
scan.end()
daemon.stop()

# ---- whole arrays ---------------------------------------------------------------------------------------------


class Whole(c.Structure):
    _fields_ = [("base", c.c_void_p), ("cnt", c.c_uint64), ("stride", c.c_uint64), ("schema", c.c_void_p),
                ("direct", c.c_uint32), ("zero", c.c_uint32), ("lease", c.c_uint64 * 3)]


def whole(st, name, low=0, high=0):
    """The array, or the code and the text."""
    series, err, found = Series(), Error(), Whole()
    must(lib.stoup_series_find(st, name.encode(), c.byref(series), c.byref(err)), err)
    rc = lib.stoup_array(st, c.byref(series), c.byref(Range(low, high, 0, 0)), c.byref(found), c.byref(err))
    return found if rc == 0 else (rc, err.text.decode())


# Several series of one ingest: each is one array of its own, aligned for hftbacktest.
symbols = {"AAA": 11, "BBB": 12, "CCC": 13}
rows = list(t.mbo_records(70_001, symbols))
work = t.temp_dir()
t.dbn_file(os.path.join(work, "in.dbn"), symbols, (t.mbo(*row, sequence=i) for i, row in enumerate(rows)))
store = os.path.join(work, "store")
t.run([t.STOUP, "ingest", "--store", store, "--to", "event64", "--codec", "none", "--quiet", os.path.join(work, "in.dbn")])
daemon = t.Daemon(store, "16M")
st, err = c.c_void_p(), Error()
must(lib.stoup_attach(daemon.pool.encode(), None, c.byref(st), c.byref(err)), err)
arrays = []
for symbol, ident in symbols.items():
    expected = [(key, price / 1e9) for of, key, price, _ in rows if of == ident]
    found = whole(st, f"XTST.TEST/{symbol}/event64")
    t.equal((found.cnt, found.stride, found.direct, found.base % 64), (len(expected), 64, 1, 0), symbol)
    events = struct.iter_unpack("<Qqqddqqd", c.string_at(found.base, 64 * found.cnt))
    known = [(event[2], event[3]) for event in events if event[0] & 1 << 30]
    t.equal(known, expected, f"{symbol}: times and prices")
    arrays.append(found)
t.equal(daemon.counter("direct_files"), 1, "one file, mapped once")
t.equal(lib.stoup_detach(st), -16, "EBUSY while arrays are held")
for found in arrays:
    t.equal(lib.stoup_array_release(c.byref(found)), 0, "released")
t.equal(lib.stoup_detach(st), 0, "detached")
daemon.stop()

# In several volumes: the text says how many, and what it says mends it.
ingest = [t.STOUP, "ingest", "--store", store, "--to", "event64", "--codec", "none", "--quiet", "--replace",
          os.path.join(work, "in.dbn")]
for more, parts in ((["--volume", "1M"], 5), (["--volume", "16M"], 1)):
    t.run([*ingest, *more])
    daemon, st = t.Daemon(store, "16M"), c.c_void_p()
    must(lib.stoup_attach(daemon.pool.encode(), None, c.byref(st), c.byref(err)), err)
    for symbol, ident in symbols.items():
        expected = sum(of == ident for of, *_ in rows)
        found = whole(st, f"XTST.TEST/{symbol}/event64")
        if parts > 1:
            t.equal(found[0], -27, "EFBIG")
            t.true(f"{expected} records" in found[1] and "volumes, in parts" in found[1] and "--volume above" in found[1], found[1])
        else:
            t.equal((found.cnt, found.direct), (expected, 1), symbol)
            t.equal(lib.stoup_array_release(c.byref(found)), 0, "released")
    t.equal(lib.stoup_detach(st), 0, "detached")
    daemon.stop()

# Compressed: what one block holds, else the numbers, before a block is loaded.
store, _ = t.make_store(20_000, SYMBOLS)
daemon = t.Daemon(store, "16M")
rows = list(t.mbo_records(20_000, SYMBOLS))
st = c.c_void_p()
must(lib.stoup_attach(daemon.pool.encode(), None, c.byref(st), c.byref(err)), err)
code, text = whole(st, t.name_of("AAA"))
t.equal(code, -27, "EFBIG")
t.true("20000 records (1094 KiB) in 18 blocks" in text and "--codec none" in text, text)
t.equal(daemon.counter("loads"), 0, "nothing was loaded")
found = whole(st, t.name_of("AAA"), rows[100][1], rows[1000][1])
t.equal((found.cnt, found.direct), (900, 0), "a part that one block holds")
t.equal(c.string_at(found.base, 56 * 900), b"".join(t.mbo(*row, sequence=100 + i) for i, row in enumerate(rows[100:1000])),
        "its records")
t.equal(lib.stoup_array_release(c.byref(found)), 0, "released")
t.equal(lib.stoup_array_release(c.byref(found)), 0, "and not twice")
t.equal(lib.stoup_detach(st), 0, "detached")
daemon.stop()
