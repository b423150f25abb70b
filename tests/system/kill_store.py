# SPDX-License-Identifier: Apache-2.0
"""Writers of a store that are killed at random moments, while a daemon serves it: before or after, never in between.

As a test a few deaths of each command. tests/kill_store.sh N [SEED] makes N of each.
"""
import os
import random
import shutil
import signal
import subprocess
import sys
import time

import lib_care as c
import lib_stoup as t

COUNT = int(sys.argv[1]) if len(sys.argv) > 1 else 6
SEED = int(sys.argv[2]) if len(sys.argv) > 2 else random.SystemRandom().randrange(2**32)
ONLY = sys.argv[3:]
print(f"seed {SEED}", flush=True)
choice = random.Random(SEED)
NAME = t.name_of("AAA")
POOL = f"kill{os.getpid()}"
TOTAL = ("records", "price", "size", "first_key", "last_key")
RECORDS = 6_000


def dbn_of(path, rows):
    t.dbn_file(path, c.SYMBOLS, (t.mbo(*row, sequence=i) for i, row in enumerate(rows)))
    return path


work = t.temp_dir()
base = os.path.join(work, "base")
for day in range(3):
    c.ingest(base, day, *(["--volume", "128K"] if day == 1 else []), count=RECORDS)
add = dbn_of(os.path.join(work, "add.dbn"), c.rows_of(3, count=RECORDS))
change = dbn_of(os.path.join(work, "change.dbn"), c.rows_of(1, salt=7, count=RECORDS))
later = dbn_of(os.path.join(work, "later.dbn"), c.rows_of(8, count=300))
broken = os.path.join(work, "broken")
shutil.copytree(base, broken)
INGEST = [t.STOUP, "ingest", "--quiet", "--block", "64K", "--codec", "lz4", "--threads", "1"]


# What a command does: its words behind "stoup", what it starts from.
WORKS = {
    "ingest": (lambda store: [*INGEST, "--volume", "128K", "--store", store, add], base),
    "replace": (lambda store: [*INGEST, "--replace", "--store", store, change], base),
    "compact": (lambda store: [t.STOUP, "compact", "--quiet", "--codec", "small", "--volume", "300K", "--threads", "1",
                               store], base),
    "rm": (lambda store: [t.STOUP, "rm", "--quiet", "--from", str(t.T0 + 2_000_000), store, NAME], base),
    "repair": (lambda store: [t.STOUP, "verify", "--repair", "--quiet", store], broken),
}


def scan(pool):
    (found,) = t.Worker(pool, NAME).finish()
    t.equal((found["rc"], found["gaps"]), (0, 0), found["text"])
    return {name: found[name] for name in TOTAL}


def served(store):
    daemon = t.Daemon(store, "4M", pool=f"{POOL}.o")
    totals = scan(daemon.pool)
    t.equal(daemon.stop(), 0, "a daemon's end")
    return totals


def ids(store):
    return sorted(volume["id"] for volume in c.info(store)["volumes"])


def contents(store, start, states, what):
    """Which state it is in: by the volumes that a reader takes, and then by every record."""
    word = "before" if ids(store) == ids(start) else "after"
    t.run([t.STOUP, "verify", store])
    c.must_be_same(store, states[word][0], f"{what}: {word}")
    return word, states[word][1]


def states_of(work, start):
    """Before and after, whole; how long the command takes."""
    before, after = c.copy_of(start), c.copy_of(start)
    began = time.monotonic()
    t.run(WORKS[work][0](after))
    took = time.monotonic() - began
    return {"before": (before, served(before)), "after": (after, served(after))}, took


def victim(work, store, moment):
    """Kill the command at a moment; True where it had ended before."""
    process = subprocess.Popen(WORKS[work][0](store), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    time.sleep(moment)
    process.kill()
    status = process.wait()
    t.true(status in (0, -signal.SIGKILL), f"{work}: status {status}: {process.stderr.read()}")
    process.stderr.close()
    return status == 0


def sweep(work, store, what):
    """The next writer takes away what the dead one left."""
    t.run([*INGEST, "--store", store, later])
    t.equal(c.leftovers(store), [], f"{what}: temporary files")
    out = t.run([t.STOUP, "verify", store], expect=None).stdout
    t.true("superseded, not checked" not in out, f"{what}: superseded files are left: {out}")


def one(work, states, moment, what):
    store = c.copy_of(WORKS[work][1])
    daemon = t.Daemon(store, "4M", pool=f"{POOL}.d")
    reader = t.Worker(daemon.pool, NAME, "--steps")
    t.equal(reader.line(), {"ready": True}, "attached")
    finished = victim(work, store, moment)
    word, totals = contents(store, WORKS[work][1], states, what)
    t.true(word == "after" or not finished, f"{what}: it ended, and nothing is done")
    # Who was there reads what was there; who comes reads what is there now, or, until the daemon looks, was there.
    reader.step()
    (old,) = reader.finish()
    t.equal({name: old[name] for name in TOTAL}, states["before"][1], f"{what}: a scan that was open")
    t.true(scan(daemon.pool) in (totals, states["before"][1]), f"{what}: the daemon serves something else")
    t.until(lambda: scan(daemon.pool) == totals, f"{what}: the daemon serves what is there")
    sweep(work, store, what)
    t.equal(daemon.stop(), 0, f"{what}: the daemon's end")
    shutil.rmtree(os.path.dirname(store))
    return finished, word


def repair_one(work, states, moment, what):
    """Repair goes volume by volume: what is left undone is done by the next one."""
    store = c.copy_of(broken)
    daemon = t.Daemon(store, "4M", pool=f"{POOL}.d")
    before = scan(daemon.pool)
    finished = victim(work, store, moment)
    t.equal(scan(daemon.pool), before, f"{what}: a series without damage")
    after = states["after"][0]
    whole = t.run([t.STOUP, "verify", store], expect=None).returncode == 0
    t.true(whole or not finished, f"{what}: it ended, and there is damage")
    if whole:
        c.must_be_same(store, after, f"{what}: after")
    t.run(WORKS[work][0](store))
    t.run([t.STOUP, "verify", store])
    c.must_be_same(store, after, f"{what}: repaired once more")
    kept = [name for name in os.listdir(store) if ".damaged" in name]
    t.equal(sorted(kept), sorted(n for n in os.listdir(after) if ".damaged" in n), f"{what}: what was kept beside")
    t.until(lambda: scan(daemon.pool) == before, f"{what}: the daemon")
    sweep(work, store, what)
    t.equal(daemon.stop(), 0, f"{what}: the daemon's end")
    shutil.rmtree(os.path.dirname(store))
    return finished, "after" if whole else "before"


# ---- damage for repair: a block that no record of AAA is in, and an index of one volume among others ----------
alone = next(v["path"] for v in c.info(broken)["volumes"] if v["batch_cnt"] == 1)
t.true(all(s["block"] + 1 < c.info(alone)["volumes"][0]["blocks"] for s in c.info(alone, NAME)["series"][0]["segments"]),
       "the last block is without AAA")
c.flip(alone, c.footer_offset(alone) - 3000)
member = next(v["path"] for v in c.info(broken)["volumes"] if v["batch_idx"] > 0
              and all(s["name"] != NAME for s in c.info(v["path"])["series"]))
c.flip(member, c.footer_offset(member) + 100)

for work in WORKS:
    if ONLY and work not in ONLY:
        continue
    began = time.monotonic()
    states, took = states_of(work, WORKS[work][1])
    if work == "repair":
        t.run([t.STOUP, "verify", states["after"][0]])
    words, deaths, tries = {"before": 0, "after": 0}, 0, 0
    while deaths < COUNT:
        tries += 1
        t.true(tries <= 20 * COUNT + 50, f"{work}: it ended {tries - deaths} times before it was killed")
        moment = choice.uniform(0, took)
        what = f"{work}, kill {deaths + 1} after {moment * 1000:.1f} ms (seed {SEED})"
        finished, word = (repair_one if work == "repair" else one)(work, states, moment, what)
        if finished:  # checked, too, and not counted; the machine is faster than it was
            took = max(took * 0.95, 0.001)
            continue
        deaths += 1
        words[word] += 1
    print(f"{work}: {deaths} deaths: {words['before']} before, {words['after']} after; {tries - deaths} ended first; "
          f"{time.monotonic() - began:.0f} s", flush=True)
t.equal(t.shm_names(POOL), [], "names left")
