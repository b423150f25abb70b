# SPDX-License-Identifier: Apache-2.0
"""More volumes than a daemon has descriptors or places: places are used again, and what finds none is told,
while what was served is served on."""
import os
import signal

import lib_stoup as t
from lib_rescan import NAME, check_new, errors, hang_up, ingest, new_store, stepped, totals, volumes_of

# Small volumes, which are moved into a store and out again.
shelf = new_store()
for day in range(1, 71):
    ingest(shelf, day, count=20)
small = volumes_of(shelf)


def move(source, target):
    for name in small:
        os.rename(os.path.join(source, name), os.path.join(target, name))


# ---- no descriptors for what comes: what was served is served on, and the rest once there are some again ----------
few = new_store()
ingest(few, 0)
daemon = t.Daemon(few, "4M", prefix=["prlimit", "--nofile=64:64"])
daemon.process.send_signal(signal.SIGSTOP)  # it must not look before all of them are there
move(shelf, few)
daemon.process.send_signal(signal.SIGCONT)
t.until(lambda: daemon.counter("rescans_failed") >= 1, "more volumes than descriptors")
t.true("ulimit -n" in errors(daemon), f"said: {errors(daemon)}")
check_new(daemon, [0], "what was served is served on")
move(few, shelf)
ingest(few, 100)
check_new(daemon, [0, 100], "room again")
t.equal(daemon.stop(), 0, "the daemon's end")

# ---- places are used again: there are 1024 more than at the start, and 1260 volumes come ---------------------------
many = new_store()
ingest(many, 0)
base = volumes_of(many)
daemon = t.Daemon(many, "4M", ["--no-watch"])
first = os.listdir(f"/proc/{daemon.process.pid}/fd")
for turn in range(18):
    move(shelf, many)
    hang_up(daemon)
    t.equal(daemon.counter("volumes"), len(small) + 1, f"volumes of turn {turn}")
    move(many, shelf)
    hang_up(daemon)
    t.until(lambda: daemon.counter("volumes_retired") == 0, "what went is let go")
t.equal(volumes_of(many), base, "as at the start")
# The first look may still have seen the descriptor that told of readiness.
t.until(lambda: len(os.listdir(f"/proc/{daemon.process.pid}/fd")) <= len(first), "descriptors as at the start")
t.equal(daemon.counter("rescans_failed"), 0, "each volume found a place")
check_new(daemon, [0], "after all of them went")

# A consumer that keeps an old snapshot keeps its places, until they run short: then it is cut off, others see the new
# data, and it goes on where it was.
keeper = stepped(daemon, "--passes", 2)
keeper.step()
totals([0]).check(keeper.line(), "the first pass")
holder = t.Worker(daemon.pool, NAME, "--hold", 1, "--wait")
holder.wait_scanned()
for turn in range(18):
    move(shelf, many)
    hang_up(daemon)
    t.equal(daemon.counter("volumes"), len(small) + 1, f"volumes of turn {turn} beside a keeper")
    move(many, shelf)
    hang_up(daemon)
t.equal(daemon.counter("rescans_failed"), 0, "each volume found a place beside a keeper")
t.equal(daemon.counter("laggards_cut"), 2, "keeper and holder were cut off")
t.true("uses an old snapshot" in errors(daemon), f"it is said: {errors(daemon)}")
t.until(lambda: daemon.counter("leases") == 1, "what is leased stays so")
check_new(daemon, [0], "who comes new")
t.equal(keeper.line(), {"ready": True}, "second pass")
keeper.step()
totals([0, 0]).check(keeper.line(), "both passes: the keeper goes on in the newest snapshot")
keeper.finish()
(end,) = holder.finish()
t.true(end["held_unchanged"], "the bytes of the lease never changed")
t.until(lambda: daemon.counter("consumers") == 0 and daemon.counter("volumes_retired") == 0, "all let go")

t.equal(daemon.stop(), 0, "the daemon's end")

# More volumes at once than there are places: that is said, nobody is cut off for it, and what is served is served on.
rows = [many] + [new_store() for _ in range(15)]
for store in rows[1:]:
    os.mkdir(store)
daemon = t.Daemon(many, "4M", ["--no-watch", *(f"--store={store}" for store in rows[1:])])
keeper = stepped(daemon)
links = [os.path.join(store, name) for store in rows for name in small]
for link in links:
    os.link(os.path.join(shelf, os.path.basename(link)), link)
hang_up(daemon)
t.equal(daemon.counter("rescans_failed"), 1, "too many")
t.true("not all find a place" in errors(daemon), f"it is said: {errors(daemon)}")
t.equal(daemon.counter("laggards_cut"), 0, "in vain nobody is cut off")
check_new(daemon, [0], "what is served is served on")
keeper.step()
totals([0]).check(keeper.line(), "the old snapshot")
keeper.finish()
for link in links:
    os.unlink(link)
ingest(many, 500)
check_new(daemon, [0, 500], "places are free again")
t.equal(daemon.stop(), 0, "the daemon's end")
