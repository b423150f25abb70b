# SPDX-License-Identifier: Apache-2.0
"""As-of lookups in real pools: records, messages, bars, series that kept their order; several volumes; from the pool, a
pool of a few blocks, and the volumes' files; over the death of the daemon; many series at once.

helper_asof compares each lookup with a walk over a copy of the series.
"""
import json
import os
import subprocess

import lib_stoup as t

HELPER = os.path.join(t.BIN, "helper_asof")
MESSAGES = os.path.join(t.BIN, "helper_messages")
QUERIES = "10000"
COUNT = 12_000
SYMBOLS = {"AAA": 11}
NAME = t.name_of("AAA")
BARS = "FX/X/bars"


def good(pool, series, *options, queries=QUERIES):
    done = t.run([HELPER, pool, series, queries, *map(str, options)])
    t.equal(done.stdout, "good\n", f"{series} {options}")


def rows_of(count, first, back=False):
    """Ties of up to five; with `back` times that step back."""
    state = 99
    for i in range(count):
        state = (state * 6364136223846793005 + 1442695040888963407) & (2**64 - 1)
        key = first + i // (1 + i // 64 % 5) * 1000 + (i // 1000) * 50_000_000
        if back and (state >> 40) % 3 == 0:
            key -= (state >> 33) % 90_000
        yield 11, key, 10**12 + i, 1 + i % 50


def ingest(store, rows, *options):
    path = os.path.join(t.temp_dir(), "in.dbn")
    t.dbn_file(path, SYMBOLS, (t.mbo(*row, sequence=i) for i, row in enumerate(rows)))
    t.run([t.STOUP, "ingest", "--store", store, "--quiet", *options, path])


def series_of(store):
    return [series["name"] for series in json.loads(t.run([t.STOUP, "ls", "--json", store]).stdout)["series"]]


def ordered(rows):
    return sorted(rows, key=lambda row: row[1])


# ---- records of two volumes that touch in equal keys -----------------------------------------------------------
records = ordered(rows_of(COUNT, t.T0))
middle = records[COUNT // 2][1]
stores = {}
for codec in ("default", "none"):
    stores[codec] = os.path.join(t.temp_dir(), "store")
    ingest(stores[codec], records[:COUNT // 2], "--codec", codec, "--block", "64K")
    # Begins in the key in which the first one ends.
    tie = [(11, records[COUNT // 2 - 1][1], 5, 5)] * 3
    ingest(stores[codec], tie + records[COUNT // 2:], "--codec", codec, "--block", "64K")
    daemon = t.Daemon(stores[codec], "16M")
    good(daemon.pool, NAME)
    good(daemon.pool, NAME, "from", records[1000][1], "to", middle + 1, queries="3000")
    good(daemon.pool, NAME, "to", records[1000][1], queries="3000")
    good(daemon.pool, NAME, "from", records[-1][1] + 1, queries="300")
    if codec == "none":
        good(daemon.pool, NAME, "direct")
        good(daemon.pool, NAME, "direct", "from", records[1000][1], "to", middle, queries="3000")
    t.equal(daemon.settled()["counters"]["leases"], 0, "leases left")
    daemon.stop()

# A pool of a few blocks: what is looked up is loaded again and again.
daemon = t.Daemon(stores["default"], "1M")
good(daemon.pool, NAME, queries="1000")
daemon.stop()

# ---- the daemon is killed in the middle ------------------------------------------------------------------------
daemon = t.Daemon(stores["default"], "16M")
worker = subprocess.Popen([HELPER, daemon.pool, NAME, QUERIES, "pause"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          text=True)
t.equal(worker.stdout.readline(), "middle\n", "in the middle")
daemon.kill()
daemon = t.Daemon(stores["none"], "16M", pool=daemon.pool)
said = worker.communicate("\n", timeout=60)[0]
t.equal((worker.returncode, said), (0, "good\n"), "goes on with the next daemon")
daemon.stop()

# ---- the order of the file was kept ----------------------------------------------------------------------------
store = os.path.join(t.temp_dir(), "store")
ingest(store, rows_of(COUNT, t.T0, back=True), "--order", "keep", "--codec", "none", "--block", "64K")
daemon = t.Daemon(store, "16M")
good(daemon.pool, NAME)
good(daemon.pool, NAME, "direct")
good(daemon.pool, NAME, "from", t.T0 + 3_000_000, "to", t.T0 + 200_000_000, queries="3000")
daemon.stop()

# ---- messages ---------------------------------------------------------------------------------------------------
store = os.path.join(t.temp_dir(), "store")
for first, cnt in ((0, 6_001), (6_001, 5_999)):
    t.run([MESSAGES, "put", store, "none", "65536", "refuse", "X/btc/frames", "frames", "2", str(first), str(cnt)])
daemon = t.Daemon(store, "16M")
good(daemon.pool, "X/btc/frames")
good(daemon.pool, "X/btc/frames", "direct", queries="3000")
daemon.stop()

# ---- bars ---------------------------------------------------------------------------------------------------------
csv = os.path.join(t.temp_dir(), "bars.csv")
with open(csv, "w", encoding="ascii") as out:
    out.write("ts,open,high,low,close,volume\n")
    for i in range(8_000):
        out.write(f"{t.T0 + 60 * 10**9 * (i + i // 700 * 30)},1.5,1.7,1.4,1.6,{i}\n")
store = os.path.join(t.temp_dir(), "store")
t.run([t.STOUP, "ingest", "--store", store, "--quiet", "--series", BARS, "--schema", "bar", "--interval", "1m",
       "--block", "64K", csv])
daemon = t.Daemon(store, "16M")
good(daemon.pool, BARS)
daemon.stop()

# ---- many series ----------------------------------------------------------------------------------------------------
symbols = {f"S{i:02}": 100 + i for i in range(64)}
store, _ = t.make_store(64 * 150, symbols)
for size in ("16M", "2M"):
    daemon = t.Daemon(store, size, options=("--lease-bytes", size))
    done = t.run([HELPER, "many", daemon.pool, "2000", *map(t.name_of, symbols)])
    t.equal(done.stdout, "good\n", "many series")
    t.equal(daemon.settled()["counters"]["leases"], 0, "leases left")
    daemon.stop()

# ---- real files ------------------------------------------------------------------------------------------------------
if t.DATA:
    store = os.path.join(t.temp_dir(), "store")
    for path in ("esh4-glbx-mdp3-20231225.mbo.dbn.zst", "futures-20240701.mbp-1.dbn.zst", "futures-20240701.trades.dbn.zst"):
        t.run([t.STOUP, "ingest", "--store", store, "--quiet", "--block", "256K", os.path.join(t.DATA, "dbn", path)])
    daemon = t.Daemon(store, "64M")
    names = series_of(store)
    t.true(len(names) >= 2, f"series of the real files: {names}")
    for name in names:
        good(daemon.pool, name)
    daemon.stop()
print("no difference")
