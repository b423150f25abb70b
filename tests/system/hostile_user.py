# SPDX-License-Identifier: Apache-2.0
"""A consumer of another user that holds the passed descriptors harms nobody but itself.

usage: hostile_user.py [SECONDS of each backing's disturbance; default 5, or $STOUP_HOSTILE_SECONDS]

It tries to write, truncate, punch, seal and re-open what it was given, writes what it likes into its
page, rings, floods, stops and passes its descriptors on. Honest consumers beside it compare every
byte of every span with what a quiet pool gave, and the counters show that their requests were served.
"""
import os
import shutil
import signal
import subprocess
import sys

import lib_stoup as t

if os.geteuid() != 0:
    print("unverified: needs root to play another user")
    sys.exit(t.SKIP)

SECONDS = sys.argv[1] if len(sys.argv) > 1 else os.environ.get("STOUP_HOSTILE_SECONDS", "5")
GROUP = "games"
NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", f"--groups={GROUP}"]
store, totals = t.make_store(150_000)
name = t.name_of("AAA")

# Copies that everybody can reach: the build may lie in a home that is closed to others.
programs = t.temp_dir()
os.chmod(programs, 0o755)
HOSTILE, INTRUDER, WORKER, STOUP = (
    shutil.copy(os.path.join(t.BIN, program), programs)
    for program in ("helper_hostile", "helper_intruder", "helper_worker", "stoup"))


def hostile(argv, **more):
    return subprocess.Popen([*NOBODY, *map(str, argv)], text=True, stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, **more)


def intruder(daemon, mode, seconds=0):
    return hostile([INTRUDER, f"/run/stoup/{daemon.pool}.sock", daemon.pool, mode, seconds])


def descriptors(daemon):
    return len(os.listdir(f"/proc/{daemon.process.pid}/fd"))


def named(pool):
    return {entry: (os.stat(f"/dev/shm/{entry}").st_mode, os.stat(f"/dev/shm/{entry}").st_size)
            for entry in t.shm_names(pool)}


def gone(daemon, what):
    t.until(lambda: daemon.counter("consumers") == 0, f"{what}: all are gone")
    t.until(lambda: daemon.counter("leases") == 0, f"{what}: no lease is left")


class Honest:
    """Consumers whose every byte is compared with what the quiet pool gave."""

    def __init__(self, daemon):
        self.daemon = daemon
        (found,) = t.Worker(daemon.pool, name).finish()
        totals["AAA"].check(found, "before")
        self.checksum = found["checksum"]
        self.scans = self.misses = 0

    def scan(self, what):
        (found,) = t.Worker(self.daemon.pool, name, "--retry").finish()
        totals["AAA"].check(found, what)
        t.equal(found["checksum"], self.checksum, f"{what}: checksum of all spans")
        self.scans += 1
        self.misses += found["misses"]


def refuse(daemon, mode, prefix=True):
    argv = [INTRUDER, f"/run/stoup/{daemon.pool}.sock", daemon.pool, mode, "0"]
    done = subprocess.run([*NOBODY, *argv] if prefix else argv, capture_output=True, text=True, timeout=60)
    t.equal(done.returncode, 0, f"{mode}: everything refused: {done.stdout}{done.stderr}")
    print(daemon.stat()["backing"], mode, done.stdout.strip())


def disturb(daemon):
    """All kinds of disturbance at once, beside honest scans and a holder that was there before."""
    honest = Honest(daemon)
    holder = t.Worker(daemon.pool, name, "--hold", 2, "--wait", "--to", t.T0 + 5_000_000)
    holder.wait_scanned()
    before = daemon.stat()["counters"]
    gang = [hostile([HOSTILE, daemon.pool, mode, SECONDS]) for mode in ("random", "flood", "cells")]
    gang.append(intruder(daemon, "storm", SECONDS))
    while any(process.poll() is None for process in gang) or honest.scans < 3:
        honest.scan("beside a hostile user")
    for process in gang:
        t.equal(process.wait(), 0, f"the hostile process got in and did its worst: {process.args}")
    t.true(holder.finish()[0]["held_unchanged"], "what was held before all that is unchanged")
    after = daemon.settled()["counters"]
    t.true(after["grants"] - before["grants"] >= honest.misses,
           f"{honest.misses} requests of honest consumers, granted: {after['grants'] - before['grants']}")
    gone(daemon, "after the disturbance")
    print(f"{daemon.stat()['backing']}: {honest.scans} honest scans with {honest.misses} requests, all right, "
          f"in {SECONDS} s beside {after['requests'] - before['requests']} requests, "
          f"{after['requests_failed'] - before['requests_failed']} of them refused; "
          f"attaches refused: {after['attaches_refused'] - before['attaches_refused']}")
    return honest


def stopped(daemon, honest):
    """It names all cells and stops itself: it keeps its share at most, and its kill ends it."""
    process = intruder(daemon, "stop")
    t.equal(process.stdout.readline(), "stopped\n", "it attached")
    for _ in range(3):
        honest.scan("beside a stopped hostile process")
    process.kill()
    process.wait()
    gone(daemon, "after the kill of a stopped one")


def passed_on(daemon, honest):
    """Its descriptors outlive it in another process: its leases do not."""
    process = intruder(daemon, "pass")
    other = int(process.stdout.readline())
    t.equal(process.wait(), 0, "the one that attached")
    gone(daemon, "its process ended")
    try:
        t.true(os.path.exists(f"/proc/{other}"), "the heir lives")
        for _ in range(3):
            honest.scan("beside the heir of a hostile process")
        gone(daemon, "the heir is no consumer")
    finally:
        # It has our output as well, which would never end.
        os.kill(other, signal.SIGKILL)


def places(daemon, honest):
    """It takes all the places it can get: who is attached goes on, others come in, its end frees them."""
    holder = t.Worker(daemon.pool, name, "--passes", 2, "--mark", 5, "--retry")
    t.equal(holder.line(), "mark\n", "an honest consumer is there")
    process = intruder(daemon, "full")
    line = process.stdout.readline()
    t.true(line.startswith("full "), line)
    honest.scan("beside one that took all the places it can get")
    t.true(any("keeps the last 6 of its 100 places" in error["text"] and "--consumers" in error["text"]
               for error in daemon.stat()["errors"]), f"the limit is named: {daemon.stat()['errors']}")
    found = holder.finish()[-1]
    t.equal(found["rc"], 0, f"who was attached goes on: {found}")
    t.equal(found["records"], 2 * totals["AAA"].records, "its records")
    process.kill()
    process.wait()
    gone(daemon, "after the kill of one that took all places")
    honest.scan("after all places were taken")


for backing in ("posix", "memfd"):
    daemon = t.Daemon(store, "2M", options=["--backing", backing, "--group", GROUP, "--consumers", "100"])
    shm = named(daemon.pool)
    t.Worker(daemon.pool, name).finish()
    gone(daemon, "the first")
    fds = descriptors(daemon)
    refuse(daemon, "refused")
    honest = disturb(daemon)
    stopped(daemon, honest)
    passed_on(daemon, honest)
    places(daemon, honest)
    if backing == "memfd":
        # Seals hold against the daemon's own user (root, here) as well; POSIX objects do not.
        refuse(daemon, "own", prefix=False)
    t.until(lambda: descriptors(daemon) <= fds, f"descriptors of the daemon: {descriptors(daemon)}, were {fds}")
    t.equal(named(daemon.pool), shm, "the pool's names, modes and sizes")
    daemon.runs("the daemon")
    t.equal(daemon.stop(), 0, "the daemon's end")
    t.equal(t.shm_names(daemon.pool), [], "names left")
