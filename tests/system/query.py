# SPDX-License-Identifier: Apache-2.0
"""Random queries of every form against a naive reference, over adversarial stores; tests/query.sh runs it for long.

usage: query.py [SECONDS [SEED]]

The stores are made of the seed. Each is served by a pool that holds all, by one that evicts at every step, mapped (where
it is not compressed), and by daemons that are killed at random moments. A failure says how its query is made again.
"""
import os
import random
import signal
import subprocess
import sys
import threading
import time

import lib_dbn
import lib_query as q
import lib_stoup as t

SECONDS = int(sys.argv[1]) if len(sys.argv) > 1 else 0
SEED = int(sys.argv[2]) if len(sys.argv) > 2 else 20240101
HELPER = os.path.join(t.BIN, "helper_query")
COUNT = 200


def query(daemon, store, what, *options, seconds=None, count=None):
    """One run of queries; returns the process."""
    argv = [HELPER, "--seed", str(SEED), "--store", store.path, "--expect", store.expect,
            "--count", str(count or COUNT), *options]
    if seconds:
        argv += ["--seconds", str(seconds)]
    print(f"== {what}: {' '.join(argv[1:])} {daemon.pool}", flush=True)
    return subprocess.Popen([*argv, daemon.pool])


def finish(process, what):
    try:
        status = process.wait(SECONDS + 280)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGABRT)
        t.fail(f"{what}: still at work (seed {SEED})")
    t.equal(status, 0, f"{what} (seed {SEED}, stores in {', '.join(s.path for s in stores)})")


def run(store, what, size, *options, daemon_options=(), seconds=None, count=None):
    daemon = t.Daemon(store.path, size, options=daemon_options)
    finish(query(daemon, store, what, *options, seconds=seconds, count=count), what)
    t.equal(daemon.stop(), 0, f"{what}: the daemon's exit status")


def killed(store, what, size, *options, seconds):
    """The daemon is killed under the queries, and another one takes its place."""
    chance = random.Random(SEED)
    daemon = t.Daemon(store.path, size)
    process = query(daemon, store, what, *options, seconds=seconds, count=COUNT)
    killed_cnt = 0
    while process.poll() is None:
        time.sleep(chance.uniform(0.02, 0.5))
        daemon.kill()
        time.sleep(chance.choice((0, 0, 0.05)))
        daemon = t.Daemon(store.path, size, pool=daemon.pool)
        killed_cnt += 1
    finish(process, what)
    print(f"   {killed_cnt} daemons were killed", flush=True)
    daemon.stop()


chance = random.Random(SEED)
print(f"seed {SEED}", flush=True)
stores = []
for codec in ("lz4", "none"):
    stores.append(q.make(os.path.join(t.temp_dir(), codec), chance, codec))
if t.DATA:
    stores.append(q.real(os.path.join(t.temp_dir(), "real"), t.DATA))

share = SECONDS / (4 * len(stores)) if SECONDS else None
seconds = max(1, int(share)) if share else None
for store in stores:
    name = os.path.basename(store.path)
    few = COUNT // 4 if name == "real" and not SECONDS else COUNT
    run(store, f"{name}, a pool that holds all", "64M", seconds=seconds, count=few)
    small = store.small
    run(store, f"{name}, a pool that evicts", small, "--small", "--ahead", "-1", seconds=seconds, count=few)
    run(store, f"{name}, mapped", "64M", "--direct", seconds=seconds, count=few)
    killed(store, f"{name}, daemons killed", small, "--small", *(["--direct"] if name == "none" else []),
           seconds=seconds or 2)
