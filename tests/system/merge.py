# SPDX-License-Identifier: Apache-2.0
"""A merge of 64 series equals a stable sort of all, forward and backward, twice, in a pool that has just what the merge
needs; one page less, or a byte of the share less, is refused at once with the numbers, and the numbers are right. Read-ahead
does not thrash there. The daemon is killed in the middle. Messages and records, small series in common blocks."""
import json
import os
import re
import subprocess

import lib_stoup as t

HELPER = os.path.join(t.BIN, "helper_merge")
REFUSED = 3


def merge(pool, names, *options, expect=0):
    done = t.run([HELPER, *options, pool, *names], expect=expect)
    return json.loads(done.stdout) if expect == 0 else done.stderr


def random(state):
    while True:
        state = (state * 6364136223846793005 + 1442695040888963407) & (2**64 - 1)
        yield state >> 33


# ---- 64 series of several blocks each: ties over all of them, bursts of one -----------------------------
directory = t.temp_dir()
store = os.path.join(directory, "store")
symbols = {f"S{i:02d}": 100 + i for i in range(64)}
draw = random(7)
rows, key, ident = [], t.T0, 100
for i in range(260_000):
    r = next(draw)
    if r % 5 < 3:
        key += r // 5 % 3
    if r % 7 < 5:
        ident = 100 + r // 7 % 64
    rows.append(t.mbo(ident, key, 1_000_000_000 * (r % 99), 1 + r % 9, sequence=i))
dbn = os.path.join(directory, "in.dbn")
t.dbn_file(dbn, symbols, rows)
t.run([t.STOUP, "ingest", "--store", store, "--block", "64K", "--quiet", dbn])
names = [t.name_of(symbol) for symbol in symbols]

daemon = t.Daemon(store, size="2M", options=["--lease-bytes", "2M"])
text = merge(daemon.pool, names, expect=REFUSED)
numbers = re.search(r"merge of 64 series holds (\d+) bytes at once, one consumer of '.*' (\d+) ", text)
t.true(numbers, f"the share's text: {text}")
t.equal(int(numbers[2]), 2 << 20, "the share that it names")
need = int(numbers[1])
t.true(3 << 20 < need <= 4 << 20, f"64 blocks of at most 64K: {need}")
t.equal(daemon.counter("starved"), 0, "requests that starved")
daemon.stop()

daemon = t.Daemon(store, size="4M", options=["--lease-bytes", str(need)])
text = merge(daemon.pool, names, expect=REFUSED)
numbers = re.search(r"stoupd --size (\d+) --lease-bytes (\d+)", text)
t.true(numbers and int(numbers[2]) == need, f"the pool's text: {text}")
size = int(numbers[1])
daemon.stop()
for short_size, short_need in ((size - 4096, need), (size, need - 1)):
    daemon = t.Daemon(store, size=short_size, options=["--lease-bytes", str(short_need)])
    merge(daemon.pool, names, expect=REFUSED)
    daemon.stop()

daemon = t.Daemon(store, size=size, options=["--lease-bytes", str(need)])
for options in ((), ("--backward",)):
    found = merge(daemon.pool, names, *options)
    t.equal(found["records"], 260_000, "records of the merge")
    t.true(found["runs"] > 200_000 and found["longest"] > 4, f"runs: {found}")
    t.equal(daemon.counter("starved_failed"), 0, "requests that starved")
    t.equal(daemon.counter("ahead_wasted"), 0, "blocks read ahead for nothing")
# A scan of each, and the merge twice, both ways: six times each block, twice as often the few in which two series end.
loads, distinct = daemon.counter("loads"), daemon.counter("loads_distinct")
print(f"{loads} loads of {distinct} blocks, pool {size}, leases {need}")
t.true(loads <= 8 * distinct, f"{loads} loads of {distinct} blocks")
t.true(loads > 3 * distinct, "the pool holds less than the store")

# ---- the daemon dies in the middle ----------------------------------------------------------------------
for options in (["--mark", "100000"], ["--mark", "70000", "--backward"]):
    process = subprocess.Popen([HELPER, "--passes", "1", *options, daemon.pool, *names], text=True,
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    t.equal(process.stdout.readline(), "mark\n", "the merge in its middle")
    daemon.kill()
    daemon = t.Daemon(store, size=size, options=["--lease-bytes", str(need)], pool=daemon.pool)
    out = process.communicate("\n", timeout=120)[0]
    t.equal(process.returncode, 0, "exit status of a merge that saw a restart")
    t.equal(json.loads(out)["records"], 260_000, "records of that merge")
daemon.stop()

# ---- small series in common blocks, messages and records, in a pool that holds little ------------------
store = os.path.join(directory, "small")
symbols = {f"U{i:03d}": 1000 + i for i in range(500)}
rows = []
for i in range(20_000):
    r = next(draw)
    rows.append(t.mbo(1000 + r % 500, t.T0 + i // 3, 1_000_000_000, 1, sequence=i))
t.dbn_file(dbn, symbols, rows)
t.run([t.STOUP, "ingest", "--store", store, "--block", "64K", "--quiet", dbn])
with open(os.path.join(directory, "m.jsonl"), "w", encoding="ascii") as out:
    for i in range(9_000):
        out.write('%d {"n":%d,"pad":"%s"}\n' % (t.T0 + i // 2, i, "x" * (i % 50)))
t.run([t.STOUP, "ingest", "--store", store, "--block", "64K", "--quiet", "--series", "XTST.TEST/M/json", out.name])
names = [t.name_of(symbol) for symbol in symbols] + ["XTST.TEST/M/json"]
daemon = t.Daemon(store, size="1536K")
t.true(merge(daemon.pool, names, expect=REFUSED), "501 series in common blocks: more than a quarter")
daemon.stop()
daemon = t.Daemon(store, size="4M")
for options in ((), ("--backward",)):
    found = merge(daemon.pool, names, *options)
    t.equal(found["records"], 29_000, "records and messages")
daemon.stop()

# ---- blocks of all lengths, in a pool that scans have cut up before --------------------------------------
store = os.path.join(directory, "uneven")
symbols = {f"V{i:02d}": 1 + i for i in range(30)}
for part in range(3):
    rows = []
    for i in range(40_000):
        r = next(draw)
        # Some series are fifty times as long as others, and every part ends in short blocks.
        ident = 1 + min(r % 30, r // 30 % 30, r // 900 % 30)
        rows.append(t.mbo(ident, t.T0 + part * 10**9 + i // 2, 1_000_000_000, 1 + r % 9, sequence=i))
    t.dbn_file(dbn, symbols, rows)
    t.run([t.STOUP, "ingest", "--store", store, "--block", "64K", "--quiet", dbn])
names = [t.name_of(symbol) for symbol in symbols]
daemon = t.Daemon(store, size="1M", options=["--lease-bytes", "1M"])
need = re.search(r"holds (\d+) bytes at once", merge(daemon.pool, names, expect=REFUSED))[1]
daemon.stop()
daemon = t.Daemon(store, size="1536K", options=["--lease-bytes", need])
size = re.search(r"--size (\d+)", merge(daemon.pool, names, expect=REFUSED))[1]
daemon.stop()
daemon = t.Daemon(store, size=size, options=["--lease-bytes", need])
for i in range(6):
    t.run([t.STOUP, "cat", "--no-header", "--last", "3000", daemon.pool, names[i * 5 % 30], names[i * 7 % 30]])
    t.equal(merge(daemon.pool, names[i:] + names[:i], *["--backward"][:i % 2])["records"], 120_000, "records, uneven blocks")
t.equal(daemon.counter("starved_failed"), 0, "requests that starved")
t.true(daemon.counter("evictions") > 100, "the pool holds less than the store")
daemon.stop()

# ---- real files --------------------------------------------------------------------------------------------
if t.DATA:
    store = os.path.join(directory, "real")
    files = [os.path.join(t.DATA, "dbn", name) for name in os.listdir(os.path.join(t.DATA, "dbn"))]
    for path in sorted(files):
        if re.search(r"esh4|futures|ohlcv|definition|status|bbo", path):
            # Some of the small ones overlap: what can be stored is.
            t.run([t.STOUP, "ingest", "--store", store, "--block", "64K", "--quiet", path], expect=None)
    t.run([t.STOUP, "ingest", "--store", store, "--block", "64K", "--quiet", "--series", "BINANCE/BTCUSDT/json",
           os.path.join(t.DATA, "json", "binance-usdm-btcusdt-20240808.jsonl.gz")])
    listed = json.loads(t.run([t.STOUP, "ls", "--json", store]).stdout)["series"]
    names = [series["name"] for series in listed]
    schemas = {series["schema"] for series in listed}
    t.true(len(names) > 10 and {"mbo", "mbp-1", "trades", "ohlcv-1m"} <= schemas, f"series: {names}")
    daemon = t.Daemon(store)
    for options in ((), ("--backward",)):
        found = merge(daemon.pool, names, *options)
        t.equal(found["records"], sum(series["records"] for series in listed), "records of real files")
    daemon.stop()
