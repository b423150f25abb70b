# SPDX-License-Identifier: Apache-2.0
"""Consumers that write into their own pages what they like harm nobody but themselves."""
import os
import subprocess

import lib_stoup as t

HOSTILE = os.path.join(t.BIN, "helper_hostile")
SECONDS = os.environ.get("STOUP_HOSTILE_SECONDS", "4")
store, totals = t.make_store(150_000)
name = t.name_of("AAA")
# Few consumers, so that one which takes more than its part would be felt by the others.
daemon = t.Daemon(store, "2M", options=["--consumers", "8"])
for mode in ("random", "flood", "cells"):
    hostile = [subprocess.Popen([HOSTILE, daemon.pool, mode, SECONDS]) for _ in range(2)]
    scans = 0
    while any(process.poll() is None for process in hostile) or scans < 3:
        (found,) = t.Worker(daemon.pool, name, "--retry").finish()
        totals["AAA"].check(found, f"beside {mode}")
        scans += 1
    for process in hostile:
        t.equal(process.wait(), 0, f"{mode}: the hostile process")
    t.until(lambda: daemon.counter("consumers") == 0, f"{mode}: all are gone")
    t.until(lambda: daemon.counter("leases") == 0, f"{mode}: no lease is left")
    print(mode, scans, "scans")
t.equal(daemon.stop(), 0, "the daemon's end")
t.equal(t.shm_names(daemon.pool), [], "names left")
