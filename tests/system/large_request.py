# SPDX-License-Identifier: Apache-2.0
"""Leases spread over the pool never starve a large request: it claims a window, and each release helps."""
import lib_stoup as t

# Small blocks of 64 KiB and large ones of 512 KiB in a pool of 2 MiB.
directory = t.temp_dir()
small, small_totals = t.make_store(80_000, {"SMALL": 5}, block="64K", directory=directory)
large, large_totals = t.make_store(40_000, {"LARGE": 6}, block="512K", directory=t.temp_dir())
daemon = t.Daemon(small, "2M", options=["--store", large])

# Three workers roll windows of six leases each over the small blocks, and take the new lease before they
# give the oldest back: eighteen leases wander over thirty-two places, never all gone.
rollers = [t.Worker(daemon.pool, t.name_of("SMALL"), "--roll", 6, "--pause", 300, "--passes", 1_000_000, "--retry")
           for _ in range(3)]
t.until(lambda: daemon.counter("leases") >= 15, "the windows roll")
for number in range(8):
    (found,) = t.Worker(daemon.pool, t.name_of("LARGE"), "--timeout", 60_000).finish()
    large_totals["LARGE"].check(found, f"large scan {number}")
t.true(all(roller.process.poll() is None for roller in rollers), "the leases wandered all the while")
for roller in rollers:
    roller.process.terminate()
counters = daemon.stat()["counters"]
print("claims", counters["claims"], "evictions", counters["evictions"], "kept", counters["evict_kept"])
for roller in rollers:
    for found in roller.finish():
        t.equal(found["rc"], 0, f"roller: {found}")
t.until(lambda: daemon.counter("leases") == 0, "no lease is left")
t.equal(daemon.counter("starved_failed"), 0, "requests that starved to the end")
daemon.stop()
