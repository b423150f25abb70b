# SPDX-License-Identifier: Apache-2.0
"""stoup export: what is ingested comes out the same, as DBN, CSV, JSON lines and arrays; files are whole or
not there; and what a format can not say is refused with what to do."""
import fcntl
import glob
import os
import resource
import signal
import subprocess
import time

import lib_dbn as d
import lib_stoup as t

WORK = t.temp_dir()
count = 0
DATES = [d.date(d.DAY1 // d.DAY + i) for i in range(8)]


def path(name):
    return os.path.join(WORK, name)


def write(name, data):
    with open(path(name), "wb") as out:
        out.write(data)
    return path(name)


def read(name):
    with open(path(name) if not name.startswith("/") else name, "rb") as file:
        return file.read()


def ingest(*files, options=()):
    global count
    count += 1
    store = path(f"store{count}")
    t.run([t.STOUP, "ingest", "--store", store, "--quiet", *options, *files])
    return store


def export(store, *args, expect=0):
    return t.run([t.STOUP, "export", store + "/", *args], expect=expect)


def refused(store, *args, text):
    found = export(store, *args, expect=1).stderr
    t.true(text in found, f"export {args}: {found!r} lacks {text!r}")


def series(store):
    lines = t.run([t.STOUP, "ls", store]).stdout.splitlines()[1:]
    return sorted(line.split()[0] for line in lines if "/" in line.split()[0])


def rows(store, name):
    """All bytes of a series, header of the array included."""
    return subprocess.run([t.STOUP, "cat", store + "/", name, "--format", "npy"], capture_output=True,
                          check=True).stdout


def same_stores(a, b, what):
    t.equal(series(b), series(a), f"{what}: series")
    for name in series(a):
        t.equal(rows(b, name) == rows(a, name), True, f"{what}: bytes of {name}")


# ---- every kind of every version, with and without ts_out -------------------------------------------------

def kinds_of(version):
    return [name for name, kind in d.KINDS.items() if kind[2][version - 1]]


def every_kind_comes_out_byte_for_byte(version, ts_out):
    """Three symbols in turn over three days, one file for each kind and one of all but tbbo."""
    symbols = {"AAA": 11, "B/B%": 12, "CCC": 13}
    mappings = [(s, [(DATES[0], DATES[3], i)]) for s, i in symbols.items()]
    mixed = []
    for kind in kinds_of(version):
        number = d.KINDS[kind][0]
        records = [d.record(kind, version, 11 + i % 3, d.DAY1 + i * d.DAY // 20 + 1, i, ts_out) for i in range(60)]
        data = d.file(version, number, mappings, records, ts_out)
        store = ingest(write("in.dbn", data))
        export(store, "*", "-o", path("out.dbn"), "--force", "--dbn-version", str(version))
        out = d.Parsed(read("out.dbn"))
        t.equal(out.body, b"".join(records), f"records of {kind}, version {version}")
        t.equal((out.version, out.schema, out.ts_out), (version, number, ts_out), f"metadata of {kind}")
        t.equal((out.dataset, out.stype_in, out.stype_out), ("TEST.SET", 1, 0), "dataset and types of symbols")
        t.equal((out.start, out.end), (d.DAY1 + 1, d.DAY1 + 59 * d.DAY // 20 + 2), "range")
        if kind not in ("error", "system"):
            t.equal(out.mappings, [(s, [(DATES[0], DATES[3], str(i))]) for s, i in symbols.items()], "mappings")
            t.equal(out.symbols, list(symbols), "symbols")
        t.equal(len(out.padding) < 8 and out.padding == bytes(len(out.padding)), True, "padding")
        t.equal(out.body_off % 8 == 0 or version < 3, True, "records of version 3 are aligned in the file")
        if kind == "tbbo":
            same_stores(store, ingest(path("out.dbn")), f"{kind}, version {version}")
        else:
            mixed.append(records)
    turns = [records[i] for i in range(60) for records in mixed]
    store = ingest(write("in.dbn", d.file(version, d.MIXED, mappings, turns, ts_out)))
    export(store, "*", "-o", path("out.dbn"), "--force")
    out = d.Parsed(read("out.dbn"))
    t.equal((out.schema, out.version), (d.MIXED, version), "a file of all kinds: its version shows in layouts")
    t.equal(sorted(out.records()), sorted(turns), "a file of all kinds: records")
    keys = [rec for rec in out.records() if rec[1] == 0xA0]
    t.equal(keys, [rec for rec in turns if rec[1] == 0xA0], "records of a kind stay in their order")
    same_stores(store, ingest(path("out.dbn")), f"all kinds, version {version}")


for number in (1, 2, 3):
    every_kind_comes_out_byte_for_byte(number, False)
every_kind_comes_out_byte_for_byte(1, True)
every_kind_comes_out_byte_for_byte(3, True)

# ---- order and ties --------------------------------------------------------------------------------------

two = [("AAA", [(DATES[0], DATES[5], 1)]), ("BBB", [(DATES[0], DATES[5], 2)])]
ties = [d.record("mbo", 3, 2 - i % 2, d.DAY1 + i // 6 * 10 + 1, i) for i in range(600)]
tied = ingest(write("ties.dbn", d.file(3, 0, two, ties)))
export(tied, "*", "-o", path("ties.out.dbn"))
keyed = [(int.from_bytes(rec[40:48], "little"), rec[4], i, rec) for i, rec in enumerate(ties)]
t.equal(d.Parsed(read("ties.out.dbn")).records(), [rec for *_, rec in sorted(keyed)],
        "order: key, then series, then as ingested")

# --order keep: a series whose times step back keeps its order.
back = [d.record("mbo", 3, 1, d.DAY1 + k, k) for k in (5, 9, 7, 9, 30, 2, 31)]
kept = ingest(write("back.dbn", d.file(3, 0, two, back)), options=["--order", "keep"])
export(kept, "*", "-o", path("back.out.dbn"))
t.equal(d.Parsed(read("back.out.dbn")).records(), back, "the order of records is kept")

# A range of time.
export(tied, "*", "-o", path("part.dbn"), "--from", str(d.DAY1 + 101), "--to", str(d.DAY1 + 201))
part = d.Parsed(read("part.dbn"))
t.equal(part.records(), [rec for key, *_, rec in sorted(keyed) if d.DAY1 + 101 <= key < d.DAY1 + 201], "a range")
t.equal((part.start, part.end), (d.DAY1 + 101, d.DAY1 + 201), "the range in the metadata")
export(tied, "*", "-o", path("none.dbn"), "--from", str(d.DAY1 + d.DAY), "--quiet")
t.equal(d.Parsed(read("none.dbn")).body, b"", "an empty range is a file without records")

# More series than buffers, pieces that end in the middle of blocks.
many = {f"S{i:04}": i + 1 for i in range(700)}
crowd = [d.record("status", 3, i * 7919 % 700 + 1, d.DAY1 + i, i) for i in range(40000)]
crowded = ingest(write("crowd.dbn", d.file(3, 11, [(s, [(DATES[0], DATES[1], i)]) for s, i in many.items()], crowd)))
export(crowded, "*", "-o", path("crowd.out.dbn"))
t.equal(d.Parsed(read("crowd.out.dbn")).body, b"".join(crowd), "700 series in order of time")
single = [d.record("mbp-10", 3, 1, d.DAY1 + i // 50, i) for i in range(14000)]
long = ingest(write("long.dbn", d.file(3, 2, two, single)))
export(long, "*", "-o", path("long.out.dbn"))
t.equal(d.Parsed(read("long.out.dbn")).body, b"".join(single), "a series longer than a piece, with ties over its ends")

# ---- symbols ---------------------------------------------------------------------------------------------

# From day to day: ES.c.0 is 1, then 2, then 1 again; instrument 2 is NEW meanwhile.
rolling = [("ES.c.0", [(DATES[0], DATES[1], 1), (DATES[1], DATES[2], 2), (DATES[2], DATES[3], 1)]),
           ("NEW", [(DATES[0], DATES[1], 2), (DATES[2], DATES[3], 2)])]
rolled = [d.record("mbo", 2, ident, d.DAY1 + day * d.DAY + ident, day) for day in range(3) for ident in (1, 2)
          if (day, ident) != (1, 1)]
store = ingest(write("roll.dbn", d.file(2, 0, rolling, rolled)))
export(store, "*", "-o", path("roll.out.dbn"), "--dbn-version", "2")
found = d.Parsed(read("roll.out.dbn"))
t.equal(found.body, b"".join(rolled), "records of symbols that roll")
t.equal(found.mappings, [(s, [(a, b, str(i)) for a, b, i in r]) for s, r in rolling], "mappings day by day")
same_stores(store, ingest(path("roll.out.dbn")), "symbols that roll")

# Two symbols of one instrument: written once, mapped twice.
alias = [("AAA", [(DATES[0], DATES[2], 1)]), ("AAA.c.0", [(DATES[0], DATES[2], 1)])]
rec = [d.record("mbo", 3, 1, d.DAY1 + i, i // 2) for i in range(10)]
store = ingest(write("alias.dbn", d.file(3, 0, alias, rec)))
t.equal(len(series(store)), 2, "two series")
told = export(store, "*", "-o", path("alias.out.dbn")).stderr
t.true("10 records of instruments with several symbols are written once" in told, told)
t.equal(d.Parsed(read("alias.out.dbn")).body, b"".join(rec), "records once")
same_stores(store, ingest(path("alias.out.dbn")), "two symbols of one instrument")

# A symbol that changes within a day is no mapping of days.
live = [d.record("symbol-mapping", 3, 7, d.DAY1 + k, 0) for k in (1, 5)]
live = [r[:89] + s.ljust(71, b"\0") + r[160:] for r, s in zip(live, (b"OLD", b"NEW"))]
session = [live[0], d.record("mbo", 3, 7, d.DAY1 + 2), live[1], d.record("mbo", 3, 7, d.DAY1 + 6)]
store = ingest(write("live.dbn", d.file(3, d.MIXED, [], session)))
refused(store, "*", "-o", path("x.dbn"), text="on 2020-12-28 instrument 7 is in TEST.SET/NEW/mbo and in "
        "TEST.SET/OLD/mbo, with different records, and DBN maps whole days: export them apart")
export(store, "TEST.SET/OLD/*", "-o", path("old.dbn"))
t.equal(d.Parsed(read("old.dbn")).body, session[0] + session[1], "each of them alone")

# Several instruments under one symbol, instruments without one, all in one stream.
store = ingest(path("ties.dbn"), options=["--series", "MINE/ALLES/mbo"])
export(store, "*", "-o", path("mine.dbn"))
t.equal(d.Parsed(read("mine.dbn")).stype_in, 255, "a symbol of two instruments at once")
same_stores(store, ingest(path("mine.dbn")), "a symbol of two instruments")
store = ingest(write("numbers.dbn", d.file(3, 0, [], ties)))
told = export(store, "*", "-o", path("numbers.out.dbn")).stderr
t.true("2 series are of no one symbol (TEST.SET/1/mbo...)" in told, told)
same_stores(store, ingest(path("numbers.out.dbn")), "instruments without symbols")
store = ingest(path("ties.dbn"), options=["--one-stream"])
export(store, "*", "-o", path("stream.dbn"))
t.equal(d.Parsed(read("stream.dbn")).body, b"".join(ties), "one stream is the file as it was")
same_stores(store, ingest(path("stream.dbn"), options=["--one-stream"]), "one stream")

# ---- what DBN can not say --------------------------------------------------------------------------------

definitions = [ingest(write(f"def{v}.dbn", d.file(v, 9, two, [d.record("definition", v, 1, d.DAY1 + 1)])))
               for v in (1, 2, 3)]
both = ingest(path("def1.dbn"), path("def3.dbn"))
refused(both, "*", "--format", "dbn", "-o", path("x.dbn"), text="have layouts of different versions of DBN")
refused(definitions[0], "*", "-o", path("x.dbn"), "--dbn-version", "3", text="DBN version 3 has no definition-v1")
t.equal([d.Parsed(read(name)).version for name in ("numbers.out.dbn", "old.dbn")], [3, 3], "the newest version")
tbbo = ingest(write("tbbo.dbn", d.file(3, 3, two, [d.record("tbbo", 3, 1, d.DAY1 + 1)])), path("ties.dbn"))
refused(tbbo, "*", "-o", path("x.dbn"), text="tbbo records can not be told from mbp-1; export tbbo apart")
out = ingest(write("out1.dbn", d.file(3, 0, two, [d.record("mbo", 3, 1, d.DAY1 + 1, 0, True)], True)), path("ties.dbn"))
refused(out, "*", "-o", path("x.dbn"), text="a DBN file has either; export them apart")
old_bar = [b"\x0e\x11" + d.record("ohlcv-1m", 1, 1, d.DAY1 + 1)[2:]]
bars = ingest(write("bars.dbn", d.file(1, 6, two, old_bar)))
export(bars, "*", "-o", path("bars.out.dbn"))
t.equal(d.Parsed(read("bars.out.dbn")).body, old_bar[0], "bars of the old type alone")
same_stores(bars, ingest(path("bars.out.dbn")), "bars of the old type")
mixed_bars = ingest(path("bars.dbn"), path("ties.dbn"))
refused(mixed_bars, "*", "-o", path("x.dbn"), text="is a bar of the old type 0x11")
wide = "X" * 22
store = ingest(write("wide.dbn", d.file(3, 0, [(wide, [(DATES[0], DATES[1], 1)])], [d.record("mbo", 3, 1, d.DAY1 + 1)])))
refused(store, "*", "-o", path("x.dbn"), "--dbn-version", "1", text="has 22 bytes, DBN version 1 has room for 21")
longest = "Y" * 90
frag = write("frag.dbn", d.record("mbo", 3, 1, d.DAY1 + 1))
store = ingest(frag, options=["--series", f"S/{longest}/mbo"])
export(store, "*", "-o", path("y.dbn"))
t.equal(d.Parsed(read("y.dbn")).symbol_len, 91, "room for a symbol longer than usual")
same_stores(store, ingest(path("y.dbn")), "a long symbol")
store = ingest(frag, options=["--dataset", "A.DATASET.OF.MANY.BYTES"])
refused(store, "*", "-o", path("x.dbn"), text="DBN has room for a dataset of 16 bytes, this one has 23")
ticks = ingest(write("t.csv", b"ts,price,size,flags\n2024-01-02T03:04:05Z,1.5,7,3\n"), options=["--series", "M/X/tick", "--schema",
               "tick", "--time", "ts"])
refused(ticks, "*", "-o", path("x.dbn"), text="records of tick are none of DBN's: export them as csv, jsonl or npy")
sets = ingest(path("def1.dbn"), write("other.dbn", d.file(1, 9, two, [d.record("definition", 1, 1, d.DAY1 + 1)],
              dataset="OTHER")))
refused(sets, "*", "-o", path("x.dbn"), text="--directory DIR makes a file of each dataset")
refused(sets, "NO*", "-o", path("x.dbn"), text="no series matches 'NO*'")
refused(sets, "NO", "-o", path("x.dbn"), text="NO")
t.equal(os.path.exists(path("x.dbn")), False, "no refused export left a file")
export(sets, "*", "--format", "dbn", "--directory", path("sets"))
t.equal(sorted(os.listdir(path("sets"))), ["OTHER.dbn", "TEST.SET.dbn"], "a file of each dataset")

# ---- text and arrays -------------------------------------------------------------------------------------

for kind in ("csv", "jsonl", "npy", "npz"):
    export(tied, "TEST.SET/AAA/mbo", "-o", path(f"one.{kind}"))
    cat = subprocess.run([t.STOUP, "cat", tied + "/", "TEST.SET/AAA/mbo", "--format", kind], capture_output=True,
                         check=True).stdout
    t.equal(read(f"one.{kind}") == cat, True, f"{kind} is what cat prints")
export(tied, "*", "--format", "csv", "--directory", path("csvs"), "--no-header")
t.equal(sorted(os.path.relpath(p, path("csvs")) for p in glob.glob(path("csvs/**/*.csv"), recursive=True)),
        ["TEST.SET/AAA/mbo.csv", "TEST.SET/BBB/mbo.csv"], "a file of each series")
t.equal(read("csvs/TEST.SET/AAA/mbo.csv"), read("one.csv").split(b"\n", 1)[1], "without the line of names")
plain = read("one.csv")
export(tied, "TEST.SET/AAA/mbo", "-o", path("one.csv.zst"))
t.equal(read("one.csv.zst")[:4], b"\x28\xb5\x2f\xfd", "compressed by the name")
export(tied, "TEST.SET/AAA/mbo", "-o", path("same.csv.zst"), "--compress", "none")
t.equal(read("same.csv.zst"), plain, "not compressed when said so")

# Values come back: trades out of CSV, arrays byte for byte.
trades = ingest(write("tr.dbn", d.file(3, 4, two, [d.record("trades", 3, 1, d.DAY1 + i, i) for i in range(200)])))
export(trades, "*", "-o", path("tr.npy"))
again = ingest(path("tr.npy"), options=["--series", "TEST.SET/AAA/trades", "--schema", "trades"])
same_stores(trades, again, "npy")
export(trades, "*", "-o", path("tr.npz"))
again = ingest(path("tr.npz"), options=["--series", "TEST.SET/AAA/trades", "--schema", "trades"])
same_stores(trades, again, "npz")
export(ticks, "*", "-o", path("ticks.csv.zst"))
same_stores(ticks, ingest(path("ticks.csv.zst"), options=["--series", "M/X/tick", "--schema", "tick", "--time", "ts"]),
            "packed CSV")
export(tied, "*", "-o", path("ties.dbn.zst"))
same_stores(tied, ingest(path("ties.dbn.zst")), "packed DBN")

# ---- whole or not there ----------------------------------------------------------------------------------

before = read("ties.out.dbn")
refused(tied, "*", "-o", path("ties.out.dbn"), text="is there already: --force replaces it")
t.equal(read("ties.out.dbn"), before, "the file that was there")
write("old.csv", b"old")
export(tied, "TEST.SET/AAA/mbo", "-o", path("old.csv"), "--force")
t.equal(read("old.csv"), plain, "replaced by force")
refused(tied, "TEST.SET/AAA/mbo", "-o", WORK, "--format", "csv", text="is a directory")
refused(tied, "TEST.SET/AAA/mbo", "-o", path("no/such/x.csv"), text="No such file")
t.equal(export(tied, "*", expect=2).returncode, 2, "no format")
t.equal(export(tied, "*", "-o", path("x.npy"), "--compress", "zstd", expect=2).returncode, 2, "arrays stay as they are")
export(tied, "TEST.SET/AAA/mbo", "-o", "/dev/null", "--format", "csv")

refused(long, "*", "-o", "/dev/full", "--format", "dbn", text="/dev/full: No space left on device")
with t.Daemon(long).log as _:
    daemon = t._daemons[-1]
    for kind in ("dbn", "csv", "npy", "npz", "dbn.zst"):
        done = subprocess.run([t.STOUP, "export", daemon.pool, "*", "-o", path("full." + kind)], capture_output=True,
                              text=True, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000)))
        t.equal(done.returncode, 1, f"a file that can not grow ({kind})")
        t.true("File too large; nothing was left behind" in done.stderr, done.stderr)
    t.equal(glob.glob(path("*full*")), [], "nothing of it")
    # Of several files none is left when one fails.
    os.mkdir(path("several"))
    done = subprocess.run([t.STOUP, "export", daemon.pool, "*", "--format", "csv", "--directory", path("several")],
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000)),
                          capture_output=True)
    t.equal((done.returncode, glob.glob(path("several/**/*.csv"), recursive=True)), (1, []), "none of several")
    for options in (["--format", "csv"], ["--format", "dbn"], ["--format", "dbn", "--compress", "zstd"]):
        read_fd, write_fd = os.pipe()
        fcntl.fcntl(write_fd, getattr(fcntl, "F_SETPIPE_SZ", 1031), 4096)  # what is written does not fit, however long nobody reads
        process = subprocess.Popen([t.STOUP, "export", daemon.pool, "*", *options], stdout=write_fd,
                                   stderr=subprocess.PIPE, text=True)
        os.close(write_fd)
        os.read(read_fd, 100)
        os.close(read_fd)
        text = process.communicate()[1]
        t.equal(process.returncode, 1, f"a reader that goes away ({options})")
        t.true("standard output: the reader has gone" in text, text)
    # Killed at many moments: no file, or all of it; never a part.
    os.mkdir(path("killed"))
    whole = t.output([t.STOUP, "export", daemon.pool, "*", "--format", "csv"])
    kills = 0
    for i in range(10 if os.environ.get("STOUP_SANITIZED") else 40):
        process = subprocess.Popen([t.STOUP, "export", daemon.pool, "*", "-o", path("killed/x.csv")],
                                   stdout=subprocess.DEVNULL)
        time.sleep(0.002 + i * 0.003)
        process.send_signal(signal.SIGKILL)
        kills += process.wait() != 0
        found = os.listdir(path("killed"))
        found = [name for name in found if not name.endswith(".tmp")]  # file systems without nameless files
        t.true(found in ([], ["x.csv"]), f"a killed export left {found}")
        if found:
            t.equal(read("killed/x.csv") == whole, True, "what a killed export left is whole")
            os.unlink(path("killed/x.csv"))
    t.true(kills > 0, "no export was killed")
    t.equal(daemon.stop(), 0, "the daemon ends well")

# ---- real files ------------------------------------------------------------------------------------------

for real in sorted(glob.glob(os.path.join(t.DATA, "dbn", "*.dbn*"))) if t.DATA else []:
    if os.environ.get("STOUP_SANITIZED") and os.path.getsize(real) > 100_000:
        continue  # the small ones have every kind
    store = ingest(real)
    export(store, "*", "-o", path("real.dbn"), "--force", "--quiet")
    export(store, "*", "-o", path("real.one.dbn"), "--force", "--quiet")
    again = ingest(path("real.dbn"))
    same_stores(store, again, real)
    if len(series(store)) > 1:
        continue
    # Records of one series come out as the stream that the file had.
    raw = ingest(real, options=["--series", "R/R/" + series(store)[0].rsplit("/", 1)[1]])
    t.equal(d.Parsed(read("real.dbn")).body, d.Parsed(read("real.one.dbn")).body, real)
    t.equal(b"".join(d.Parsed(read("real.dbn")).records()), rows(raw, series(raw)[0])[-len(d.Parsed(
        read("real.dbn")).body):], f"{real}: records")
    packed = subprocess.run(["zstd", "-dc", real], capture_output=True) if real.endswith(".zst") and \
        os.path.exists("/usr/bin/zstd") else None
    if packed and packed.returncode == 0:
        t.equal(d.Parsed(packed.stdout).body == d.Parsed(read("real.dbn")).body, True, f"{real}: byte for byte")
print("ok")
