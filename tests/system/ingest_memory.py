# SPDX-License-Identifier: Apache-2.0
"""An ingest needs the same memory whatever the length and the number of its files."""
import os
import struct
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import lib_stoup as t  # noqa: E402

if os.environ.get("STOUP_SANITIZED"):
    print("a sanitizer's shadow memory is not the program's: skipped")
    sys.exit(t.SKIP)

WORK = t.temp_dir()
CAP = 160 << 20  # the buffer of 64 MiB, windows, encoders, lanes; the inputs are longer
INPUT = 200 << 20
ROW = b"1700000000123456,42000.01000000,0.08272000,buy,3400000000\n"
COLUMNS = ["--series", "A/B/trades", "--columns", "ts:time,price:price,size:price,side:char[4],id:u64"]


def ingest(store, args, feed=None):
    """Run an ingest whose standard input `feed` writes; its greatest resident memory, in bytes."""
    reader, writer = os.pipe() if feed else (None, None)
    pid = os.fork()
    if pid == 0:
        if feed:
            os.dup2(reader, 0)
            os.close(writer)
        os.execv(t.STOUP, ["stoup", "ingest", "--store", os.path.join(WORK, store), "--quiet", "--codec", "fast", *args])
    if feed:
        os.close(reader)
        with open(writer, "wb", buffering=0) as out:
            feed(out)
    _, status, usage = os.wait4(pid, 0)
    t.equal(os.waitstatus_to_exitcode(status), 0, f"ingest of {store}")
    print(store, usage.ru_maxrss >> 10, "MiB", flush=True)
    return usage.ru_maxrss << 10


def repeated(front, item):
    piece = item * ((1 << 20) // len(item))

    def feed(out):
        out.write(front)
        for _ in range(INPUT // len(piece)):
            out.write(piece)

    return feed, INPUT // len(piece) * ((1 << 20) // len(item))


def count(store, name):
    (row,) = [line for line in t.run([t.STOUP, "ls", os.path.join(WORK, store)]).stdout.splitlines() if name in line]
    return int(row.split()[2].replace(",", ""))


# ---- one long text, one long file of DBN -------------------------------------------------------------------------
feed, cnt = repeated(b"", ROW)
t.true(ingest("text", [*COLUMNS, "-"], feed) < CAP, "memory for a long text")
t.equal(count("text", "A/B/trades"), cnt, "its rows")
t.dbn_file(os.path.join(WORK, "one.dbn"), {"AAA": 1}, [t.mbo(1, 1700000000 * 10**9, 5, 1)])
with open(os.path.join(WORK, "one.dbn"), "rb") as one:
    whole = one.read()
feed, cnt = repeated(whole[:-56], whole[-56:])
t.true(ingest("dbn", ["--format", "dbn", "-"], feed) < CAP, "memory for long DBN")
t.equal(count("dbn", "mbo"), cnt, "its records")

# ---- many files: descriptors and memory of a few ------------------------------------------------------------------
many = os.path.join(WORK, "many")
os.mkdir(many)
for i in range(1500):
    with open(os.path.join(many, f"part{i}.csv"), "wb") as out:
        out.write(ROW * 300)
# Their contents are the same, which --again allows.
t.true(ingest("many", [*COLUMNS, "--again", many]) < CAP, "memory for many files")
t.equal(count("many", "A/B/trades"), 1500 * 300, "their rows")
