# SPDX-License-Identifier: Apache-2.0
"""A worker that forgets to release, among others that work: one command names its pid, command, series and age, on top; also while
its process sleeps, is stopped, after its daemon was killed, and in a small pool that it starves."""
import errno
import json
import os
import re
import shutil
import signal
import subprocess
import time

import lib_stoup as t

SYMBOLS = {"AAA": 11, "BBB": 12}
NAMES = [t.name_of(symbol) for symbol in SYMBOLS]
# Full blocks of one series each (64 KiB hold 1170 records of 56 bytes): a span is its block.
store, _ = t.make_store(39 * 1170 * len(SYMBOLS), SYMBOLS)
daemon = t.Daemon(store, "32M")

# A program with a name of its own: that is what whoever looks has to go by.
named = os.path.join(t.temp_dir(), "night_job_7")
shutil.copy(t.WORKER, named)
t.WORKER, usual = named, t.WORKER
before = time.monotonic_ns()
forgetful = t.Worker(daemon.pool, NAMES[1], "--hold", 5, "--wait")
(result,) = forgetful.wait_scanned()
t.WORKER = usual
t.until(lambda: daemon.counter("leases") == 5, "its leases are seen")
seen = time.monotonic_ns()
# Others take and release, and one holds more than it, but not for as long.
greedy = t.Worker(daemon.pool, NAMES[0], "--hold", 9, "--wait")
greedy.wait_scanned()
busy = [t.Worker(daemon.pool, NAMES[i % 2], "--passes", 100_000, "--pause", 1000) for i in range(3)]
t.until(lambda: daemon.counter("consumers") == 5, "all work")
daemon.settled()


def named_on_top(state, *more):
    """The one command: the first row of its table."""
    now = time.monotonic_ns()
    lines = t.run([t.STOUP, "holders", daemon.pool, *more]).stdout.splitlines()
    after = time.monotonic_ns()
    head = next(i for i, line in enumerate(lines) if line.split()[:2] == ["pid", "command"])
    row = re.fullmatch(r" *(\d+) (\S+) +(\S+) +(\d+) +(\d+) +([\d.]+) (ms|s)  (\S+)", lines[head + 1])
    t.true(row, f"a row: {lines[head + 1]!r}")
    t.equal(row.group(1, 2, 3, 4, 5, 8),
            (str(forgetful.pid), "night_job_7", state, "5", str(result["held_bytes"]), NAMES[1]), "who forgot")
    age = float(row.group(6)) * {"ms": 1e6, "s": 1e9}[row.group(7)]
    # The daemon saw it between its start and `seen`; what is shown has one digit behind the point.
    t.true(now - seen - 1e8 <= age <= after - before + 1e8, f"its age: {age / 1e9} s, at least {(now - seen) / 1e9} s")


named_on_top("attached")
named_on_top("attached", NAMES[1])
named_on_top("attached", "*/BBB/*")
t.equal(max(daemon.stat()["consumers"], key=lambda c: c["oldest_lease_ns"])["pid"], forgetful.pid, "stat says so too")
forgetful.process.send_signal(signal.SIGSTOP)
t.until(lambda: "suspended" in t.run([t.STOUP, "holders", daemon.pool, NAMES[1]]).stdout, "it is stopped")
named_on_top("suspended")
forgetful.process.send_signal(signal.SIGCONT)
t.until(lambda: "suspended" not in t.run([t.STOUP, "holders", daemon.pool, NAMES[1]]).stdout, "it runs on")
daemon.kill()
named_on_top("attached")
for worker in busy:
    worker.kill()
greedy.kill()
# With the daemon dead, only the process table tells that the others are gone; it still holds.
named_on_top("attached")
t.equal([h["state"] for h in json.loads(t.run([t.STOUP, "holders", "--json", daemon.pool]).stdout)["holders"] if h["pid"] == greedy.pid],
        ["ended"], "the other ended")
# What mends it: end that process.
os.kill(forgetful.pid, signal.SIGTERM)
forgetful.kill()
t.true("ended" in t.run([t.STOUP, "holders", daemon.pool, NAMES[1]]).stdout, "it holds nothing any more")

# ---- a pool that it starves: the same command names it, and so does what a starved worker is told ----------
daemon = t.Daemon(store, "1M", ("--lease-bytes", "1M"))
forgetful = t.Worker(daemon.pool, NAMES[1], "--hold", 14, "--wait")
t.equal(forgetful.wait_scanned()[-1]["held"], 14, "it holds most of the pool")
t.until(lambda: daemon.counter("leases") == 14, "its leases are seen")
rows = json.loads(t.run([t.STOUP, "holders", "--json", daemon.pool]).stdout)["holders"]
t.equal([(h["pid"], h["command"], h["series"], h["leases"]) for h in rows], [(forgetful.pid, "helper_worker", NAMES[1], 14)],
        "it alone holds")


def starved():
    """What a worker is told that starves; another error where it had no processor to begin with."""
    done = subprocess.run([t.WORKER, "--hold", "14", "--timeout", "3000", daemon.pool, NAMES[0]], capture_output=True, text=True)
    said = json.loads(done.stdout.splitlines()[-1])
    return said if said["rc"] == -errno.ENOBUFS else None


told = t.until(starved, "a worker starves")
t.true(f"{forgetful.pid} (helper_worker) 14 leases" in told["text"], f"whoever starves is told by whom: {told}")
# By the daemon, a little before the deadline; by the worker itself where the daemon had no processor then.
counted = daemon.settled()["counters"]
t.true(counted["starved"] > 0 and counted["starved_failed"] + counted["timeouts"] > 0, f"and it is counted: {counted}")
forgetful.kill()
t.until(lambda: daemon.counter("leases") == 0, "gone with it")
t.equal(daemon.stop(), 0, "the end")
