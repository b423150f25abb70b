# SPDX-License-Identifier: Apache-2.0
"""Random queries of every form against a naive reference, over adversarial stores; tests/query.sh runs it for long.

usage: query.py [SECONDS [SEED]]

The stores are made of the seed. Each is served by a pool that holds all, by one that evicts at every step, mapped (where
it is not compressed), and by daemons that are killed at random moments. A failure says how its query is made again; the
stores are kept then.
"""
import os
import random
import re
import subprocess
import sys
import tempfile
import time

import lib_oracle as q
import lib_stoup as t

SECONDS = int(sys.argv[1]) if len(sys.argv) > 1 else 0
SEED = int(sys.argv[2]) if len(sys.argv) > 2 else 20240101
HELPER = os.path.join(t.BIN, "helper_oracle")
COUNT = 100  # of each form in each way, and over again until the time is over

chance = random.Random(SEED)


class Query:
    """A run of queries, begun when its reference is there."""

    def __init__(self, daemon, store, what, *options):
        self.what, self.store = what, store
        argv = [HELPER, "--seed", str(SEED), "--store", store.path, "--expect", store.expect, "--count", str(COUNT),
                *options, daemon.pool]
        print(f"== {what}: {' '.join(argv[1:])}", flush=True)
        self.process = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
        self.lines = []
        while not self.lines or not self.lines[-1].startswith("reference"):
            line = self.process.stdout.readline()
            if not line:
                self.finish()
            self.lines.append(line)

    def at_work(self):
        return self.process.poll() is None

    def finish(self, *expect):
        self.lines += self.process.stdout.readlines()
        self.process.wait()
        if self.process.returncode not in (expect or (0,)):
            print("".join(self.lines), end="", flush=True)
            t.fail(f"{self.what}: exit status {self.process.returncode} (seed {SEED}, store {self.store.kept()})")
        print("   " + self.lines[-1], end="", flush=True)
        return self.lines[-1]


def run(store, what, size, *options):
    daemon = t.Daemon(store.path, size)
    Query(daemon, store, what, *options).finish()
    t.equal(daemon.stop(), 0, f"{what}: the daemon's exit status")


def killed(store, what, size, *options):
    """The daemon is killed under the queries, and another one takes its place."""
    daemon = t.Daemon(store.path, size)
    deaths = 0
    for _ in range(20):  # again where all ended while this process had no processor
        query = Query(daemon, store, what, *options)
        while query.at_work():
            time.sleep(chance.uniform(0.01, 0.3))
            daemon.kill()
            time.sleep(chance.choice((0, 0, 0.05)))
            daemon = t.Daemon(store.path, size, pool=daemon.pool)
            deaths += 1
        query.finish()
        if deaths:
            break
    t.true(deaths > 0, f"{what}: no daemon was killed")
    print(f"   {deaths} daemons were killed", flush=True)
    daemon.stop()


def merge_needs(store):
    """A merge of 64 series in a pool that has just what it needs, and in one that has less."""
    what, share, size = "64 series in a pool of what they need", (), store.small
    for _ in range(3):
        daemon = t.Daemon(store.path, size, options=share)
        query = Query(daemon, store, what, "--merge-all")
        line = query.finish(0, 3)
        daemon.stop()
        if line.startswith("merged: 64 "):
            break
        number = re.search(r"stoupd(?: --size (\d+))? --lease-bytes (\d+)", line)
        t.true(number, f"{what}: the text says no option: {line}")
        size = number[1] or str(max(q.bytes_of(store.small), int(number[2])))
        share = ("--lease-bytes", number[2])
    else:
        t.fail(f"{what}: refused with what it asked for")
    t.true(share, f"{what}: the small pool was not too small")
    less = t.Daemon(store.path, size, options=("--lease-bytes", str(int(share[1]) - 4096)))
    query = Query(less, store, f"{what}, less a page", "--merge-all")
    query.finish(3)
    less.stop()


print(f"seed {SEED}", flush=True)
directory = tempfile.mkdtemp(prefix="stoup-query-")
stores = [q.make(os.path.join(directory, codec), chance, codec) for codec in ("lz4", "none")]
if t.DATA:
    stores.append(q.real(os.path.join(directory, "real"), t.DATA))
ways = [(store, way) for store in stores for way in ("all", "small", "mapped", "killed")]
for store, way in ways:
    name = os.path.basename(store.path)
    some = ["--seconds", str(max(1, SECONDS // len(ways)) if SECONDS else 1 if way == "killed" else 0)]
    mapped = ["--direct"] if name == "none" else []
    if way == "all":
        run(store, f"{name}, a pool that holds all", "64M", *some)
    elif way == "small":
        run(store, f"{name}, a pool that evicts", store.small, "--small", "--ahead", "-1", *some)
    elif way == "mapped" and mapped:
        run(store, f"{name}, mapped", "64M", "--direct", *some)
    elif way == "killed":
        killed(store, f"{name}, daemons killed", store.small, "--small", *some, *mapped)
merge_needs(stores[0])
for store in stores:
    store.remove()
os.rmdir(directory)
