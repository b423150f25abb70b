# SPDX-License-Identifier: Apache-2.0
"""Pins under everything that moves them: ranges that overlap, unpins, killed tools, scans, warming, ingests, compactions, rescans, in an
order by chance. Scans stay right, nothing is refused for want of room, and what was counted is counted back to nothing.

usage: pin_storm.py [STEPS [SEED]]
"""
import json
import os
import random
import signal
import subprocess
import sys
import time

import lib_stoup as t

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 250
SEED = int(sys.argv[2]) if len(sys.argv) > 2 else int.from_bytes(os.urandom(4), "little")
DAY = 86_400 * 10**9
SYMBOLS = {f"S{i}": 11 + i for i in range(12)}
GAUGES = ("pins", "pin_bytes", "pinned_blocks", "pinned_bytes")

print(f"seed {SEED}", flush=True)
random.seed(SEED)
store, totals = t.make_store(60_000, SYMBOLS, block="64K")
daemon = t.Daemon(store, "4M", options=["--pin-max", "75%"])
days = 0


def some():
    return [t.name_of(symbol) for symbol in random.sample(list(SYMBOLS), random.randint(1, 4))]


def part():
    first = t.T0 + random.randint(0, 60_000) * 10**6
    return random.choice(([], ["--from", first], ["--from", first, "--to", first + random.randint(1, 30_000) * 10**6]))


def tool(*argv, allowed=(0,)):
    done = t.run([t.STOUP, *map(str, argv)], expect=None)
    t.true(done.returncode in allowed, f"stoup {argv}: {done.returncode}: {done.stderr}")
    return done.stdout


def killed():
    process = subprocess.Popen([t.STOUP, "pin", daemon.pool, *some(), *map(str, part())], stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    time.sleep(random.random() / 100)
    process.kill()
    process.wait()


def ingest():
    global days
    if days == 4:
        return
    days += 1
    dbn = os.path.join(os.path.dirname(store), f"day{days}.dbn")
    t.dbn_file(dbn, SYMBOLS, (t.mbo(11 + i % 12, t.T0 + DAY * days + i * 10**6, 5 * 10**9, 1, sequence=i) for i in range(3_000)))
    tool("ingest", "--store", store, "--quiet", dbn)


def scan(symbol=None):
    symbol = symbol or random.choice(list(SYMBOLS))
    (found,) = t.Worker(daemon.pool, t.name_of(symbol), "--to", t.T0 + DAY).finish()
    totals[symbol].check(found, f"seed {SEED}: {symbol}")


STEP = (
    (3, lambda: tool("pin", daemon.pool, *some(), *part(), allowed=(0, 1))),  # 1: more than --pin-max
    (1, killed),
    (1, lambda: tool("unpin", daemon.pool, *some(), allowed=(0, 1))),  # 1: none of them was pinned
    (1, lambda: tool("unpin", "--all", daemon.pool)),
    (1, lambda: json.loads(tool("pin", "--list", "--json", daemon.pool))),
    (1, lambda: tool("warm", daemon.pool, *some(), "--best-effort", allowed=(0, 1))),  # 1: some went again meanwhile
    (1, lambda: daemon.process.send_signal(signal.SIGHUP)),
    (1, lambda: tool("compact", store, "--quiet", "--codec", random.choice(("fast", "default", "none", "zstd")))),
    (1, ingest),
    (2, scan),
)
for _ in range(STEPS):
    random.choices([act for _, act in STEP], [weight for weight, _ in STEP])[0]()
    t.true(daemon.process.poll() is None, f"seed {SEED}: the daemon has ended: {daemon.stderr()}")
tool("unpin", "--all", daemon.pool)
counters = daemon.settled()["counters"]
t.equal([counters[name] for name in GAUGES], [0] * 4, f"seed {SEED}: what is left of pins")
t.equal((counters["starved_failed"], counters["requests_failed"]), (0, 0), f"seed {SEED}: requests that failed")
for one in SYMBOLS:
    scan(one)
t.equal(daemon.stop(), 0, "the daemon's end")
