# SPDX-License-Identifier: Apache-2.0
"""Backward scans are forward scans reversed: all layouts, ranges, damaged blocks, daemons that are killed."""
import glob
import os
import random
import shutil

import lib_stoup as t

SOURCE = os.environ["STOUP_SOURCE_DIR"]
SYMBOLS = {"AAA": 11}
NAME = t.name_of("AAA")


def ingest(store, rows, *options, symbols=None):
    path = os.path.join(t.temp_dir(), "in.dbn")
    t.dbn_file(path, symbols or SYMBOLS, (t.mbo(*row, sequence=i) for i, row in enumerate(rows)))
    t.run([t.STOUP, "ingest", "--store", store, "--quiet", *options, path])


def cat(pool, name, *options, expect=0):
    return t.run([t.STOUP, "cat", "--no-header", *options, pool, name], expect=expect).stdout.splitlines()


def reversed_in(pool, name, what, *options):
    forward = cat(pool, name, *options)
    backward = cat(pool, name, "--backward", *options)
    t.equal(len(backward), len(forward), f"{what}: records")
    t.true(backward == forward[::-1], f"{what}: backward is not forward reversed")
    return forward


# ---- layouts: block lengths, codecs, ties, volumes, many small series, an order that was kept ---------
rows = list(t.mbo_records(9_000, SYMBOLS))
ties = [(ident, t.T0 + i // 700 * 1000, price, size) for i, (ident, _, price, size) in enumerate(rows)]
keys = sorted(row[1] for row in rows)
for codec in ("none", "lz4", "zstd"):
    for block in ("64K", "128K"):
        store = os.path.join(t.temp_dir(), "store")
        ingest(store, rows[:5000], "--block", block, "--codec", codec)
        ingest(store, rows[5000:], "--block", block, "--codec", codec)
        daemon = t.Daemon(store, "4M")
        what = f"{codec}, blocks of {block}"
        lines = reversed_in(daemon.pool, NAME, what)
        t.equal(len(lines), 9_000, f"{what}: all records")
        t.equal(cat(daemon.pool, NAME, "--backward", "--limit", "7"), lines[:-8:-1], f"{what}: the last seven")
        for _ in range(6):
            low, high = sorted(random.Random(len(what)).sample(range(9_000), 2))
            reversed_in(daemon.pool, NAME, f"{what}, a range", "--from", str(keys[low]), "--to", str(keys[high]))
        daemon.stop()

store = os.path.join(t.temp_dir(), "ties")
ingest(store, ties, "--block", "64K")
daemon = t.Daemon(store, "4M")
for i in (0, 1, 5, 12):
    key = t.T0 + i * 1000
    t.equal(len(reversed_in(daemon.pool, NAME, "ties from a key on", "--from", str(key))), 9_000 - 700 * i,
            "records from a key of many")
    t.equal(len(reversed_in(daemon.pool, NAME, "ties up to a key", "--to", str(key + 1))),
            min(9_000, 700 * (i + 1)), "records up to a key of many")
daemon.stop()

many = {f"S{i:03}": 100 + i for i in range(200)}
store = os.path.join(t.temp_dir(), "many")
ingest(store, list(t.mbo_records(6_000, many)), symbols=many)
daemon = t.Daemon(store, "4M")
for symbol in ("S000", "S001", "S099", "S198", "S199"):
    t.equal(len(reversed_in(daemon.pool, t.name_of(symbol), "a small series in a shared block")), 30, symbol)
daemon.stop()

swapped = list(rows)
for i in range(0, len(swapped) - 40, 37):
    swapped[i], swapped[i + 30] = swapped[i + 30], swapped[i]
store = os.path.join(t.temp_dir(), "kept")
ingest(store, swapped, "--block", "64K", "--order", "keep")
daemon = t.Daemon(store, "4M")
t.equal(len(reversed_in(daemon.pool, NAME, "an order that was kept")), 9_000, "all of it")
for i in (1, 2_000, 2_017, 8_990):
    reversed_in(daemon.pool, NAME, "an order that was kept, from", "--from", str(swapped[i][1]))
    reversed_in(daemon.pool, NAME, "an order that was kept, to", "--to", str(swapped[i][1]))
daemon.stop()

# Volumes of all codecs that every version must read.
for volume in sorted(glob.glob(os.path.join(SOURCE, "tests", "golden", "*.stoup"))):
    store = t.temp_dir()
    shutil.copy(volume, store)
    daemon = t.Daemon(store, "64M")
    listed = [line.split()[0] for line in t.run([t.STOUP, "ls", store]).stdout.splitlines() if "/" in line]
    for name in listed:
        if t.run([t.STOUP, "cat", "--limit", "1", daemon.pool, name], expect=None).returncode == 0:
            reversed_in(daemon.pool, name, f"{os.path.basename(volume)}: {name}")
    daemon.stop()

# ---- a damaged block is left out, as forward -----------------------------------------------------------
store = os.path.join(t.temp_dir(), "damaged")
ingest(store, rows, "--block", "64K", "--codec", "none")
(volume,) = glob.glob(os.path.join(store, "*.stoup"))
with open(volume, "r+b") as out:
    out.seek(3 * 65536 + 5000)
    out.write(b"\xff\xff\xff\xff")
daemon = t.Daemon(store, "8M")
forward = t.run([t.STOUP, "cat", "--no-header", "--skip-damaged", daemon.pool, NAME], expect=1)
backward = t.run([t.STOUP, "cat", "--no-header", "--skip-damaged", "--backward", daemon.pool, NAME], expect=1)
t.true(0 < len(forward.stdout.splitlines()) < 9_000, "one block is missing")
t.true(backward.stdout.splitlines() == forward.stdout.splitlines()[::-1], "the same is left out")
t.true("records left out" in backward.stderr and backward.stderr == forward.stderr, backward.stderr)
daemon.stop()

# ---- the daemon is killed in the middle ------------------------------------------------------------------
day = list(t.mbo_records(60_000, SYMBOLS))
totals = t.Totals()
for _, key, price, size in reversed(day):
    totals.add(key, price, size)


def start_workers(pool, cnt=3):
    workers = [t.Worker(pool, NAME, "--backward", "--pause", 20000, "--mark", 5 + i, "--hold", 1, "--wait", "--reconnect", 120_000)
               for i in range(cnt)]
    for worker in workers:
        t.equal(worker.line(), "mark\n", "in the middle")
    return workers


def go_on(workers):
    """They find that their daemon is gone, while there is none or when the next one is there."""
    for worker in workers:
        worker.step()


def finish(workers, what, gaps=0):
    for worker in workers:
        (found,) = worker.wait_scanned()
        t.true(worker.finish()[0]["held_unchanged"], "the span of the dead daemon's pool is unchanged")
        t.equal(found["rc"], 0, f"{what}: {found['text']}")
        totals.check(found, what)
        t.equal(found["gaps"], gaps, f"{what}: ordinals follow each other downwards")
        t.equal(found["reconnects"], 1, f"{what}: daemons gone on to")


store = os.path.join(t.temp_dir(), "store")
ingest(store, day, "--block", "64K")
daemon = t.Daemon(store, "16M")
workers = start_workers(daemon.pool)
daemon.kill()
go_on(workers)
again = t.Daemon(store, "16M", pool=daemon.pool)
finish(workers, "the same store")
workers = start_workers(again.pool)
again.stop()
go_on(workers)
other = os.path.join(t.temp_dir(), "other")
ingest(other, day, "--block", "128K")
daemon = t.Daemon(other, "16M", pool=again.pool)
finish(workers, "in other blocks")

# A later day does not come, also where it begins with the last key of this one; an earlier one would.
last = day[-1][1]
later = [(ident, key - day[0][1] + last, price, size) for ident, key, price, size in day[:5000]]
workers = start_workers(daemon.pool)
daemon.kill()
go_on(workers)
ingest(other, later, "--block", "64K")
daemon = t.Daemon(other, "16M", pool=daemon.pool)
finish(workers, "extended by a later day")
daemon.stop()
