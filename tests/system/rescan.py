# SPDX-License-Identifier: Apache-2.0
"""Data that comes and goes while a daemon serves: who is attached reads its snapshot to the end, who comes
next sees the new one, and what nobody uses any more is let go."""
import errno
import signal

import lib_stoup as t
from lib_rescan import (COUNT, DAY, NAME, check_new, deleted_files, ingest, new_store, stepped, totals)

# ---- ingest while workers scan: they see their snapshot, who attaches afterwards sees the new data --------
store = new_store()
ingest(store, 0)
daemon = t.Daemon(store, "4M")
t.equal(daemon.counter("snapshot"), 1, "the first snapshot")
waiting = stepped(daemon, "--passes", 2)
scanning = [t.Worker(daemon.pool, NAME, "--pause", 300_000) for _ in range(3)]
t.until(lambda: daemon.counter("attaches") == 4, "the workers are attached")
for day in range(1, 6):
    ingest(store, day)
    # At once: whoever attaches after an ingest sees it, whatever inotify has told by then.
    check_new(daemon, range(day + 1), f"attached after day {day} was ingested")
for worker in scanning:
    (found,) = worker.finish()
    totals([0]).check(found, "scanned while days were ingested")
for _ in range(2):
    waiting.step()
    found = waiting.line()
    t.equal(found["rc"], 0, f"the old snapshot: {found['text']}")
    t.equal(found["records"] % COUNT, 0, "records of the old snapshot")
    if _ == 0:
        totals([0]).check(found, "scanned after days were ingested")
        t.equal(waiting.line(), {"ready": True}, "second pass")
waiting.finish()
t.equal(daemon.counter("volumes"), 6, "volumes served")
t.equal(daemon.counter("snapshot"), 6, "one snapshot per ingest")

# Without an attach, inotify tells.
ingest(store, 6)
t.until(lambda: daemon.counter("volumes") == 7, "inotify tells of an ingest")
t.equal(daemon.counter("snapshot"), 7, "the next snapshot")

# A rescan that finds nothing new makes none.
before = daemon.counter("rescans")
daemon.process.send_signal(signal.SIGHUP)
t.until(lambda: daemon.counter("rescans") > before, "SIGHUP rescans")
t.equal(daemon.counter("snapshot"), 7, "nothing new, no snapshot")

# ---- replaced data: the old snapshot is readable to its end, then its disk space is free --------------------
old = stepped(daemon)
ingest(store, 3, "--replace", salt=5)
mixed = [0, 1, 2, (3, 5), 4, 5, 6]
check_new(daemon, mixed, "attached after day 3 was replaced")
t.equal(daemon.counter("volumes_retired"), 1, "the replaced volume is retired")
t.true(deleted_files(daemon), "and open although it was unlinked")
t.equal([v["state"] for v in daemon.stat()["volumes"]].count("retired"), 1, "shown as retired")
old.step()
totals(range(7)).check(old.line(), "the old snapshot after day 3 was replaced")
old.finish()
t.until(lambda: daemon.counter("volumes_retired") == 0, "nobody uses it any more")
t.until(lambda: not deleted_files(daemon), "its file is closed: the disk space is free")
check_new(daemon, mixed, "after that")

# A lease on a block of a volume that is gone: its bytes stay as they are, and hold nothing else up.
holder = t.Worker(daemon.pool, NAME, "--hold", 3, "--wait", "--to", t.T0 + DAY)
holder.wait_scanned()
for salt in range(1, 12):
    ingest(store, 0, "--replace", salt=salt)
    check_new(daemon, [(0, salt), 1, 2, (3, 5), 4, 5, 6], f"day 0 replaced {salt} times")
t.until(lambda: daemon.counter("leases") == 3 and daemon.counter("volumes_retired") >= 1,
        "only the leased blocks of the first day 0 are left")
stat = daemon.stat()
t.true(any(v["state"] == "retired" and v["born"] == 1 for v in stat["volumes"]), "it is not gone yet")
(end,) = holder.finish()
t.true(end["held_unchanged"], "the bytes of the leases never changed")
t.until(lambda: daemon.counter("volumes_retired") == 0 and not deleted_files(daemon), "gone with the last lease")

# ---- a laggard: eight snapshots later its volumes are gone, and it is told -----------------------------------
lag = stepped(daemon, "--passes", 2)
now = daemon.counter("snapshot")
current = {0: 11, 3: 5}


def days_now():
    return [(day, current.get(day, 0)) for day in range(7)]


kept = None
for count in range(12):
    current[1] = count + 20
    ingest(store, 1, "--replace", salt=current[1])
    check_new(daemon, days_now(), f"{count + 1} snapshots after the laggard's")
    if count == 3:
        kept = (stepped(daemon), totals(days_now()))
    if count == 6:
        lag.step()
        found = lag.line()
        t.equal((found["rc"], found["records"]), (0, 7 * COUNT), f"7 snapshots behind: {found['text']}")
        t.equal(lag.line(), {"ready": True}, "second pass")
t.equal(daemon.counter("snapshot"), now + 12, "a snapshot for each ingest")
t.equal(daemon.counter("stale"), 0, "nobody asked for what is gone")
lag.step()
found = lag.line()
t.equal(found["rc"], -errno.ESTALE, f"12 snapshots behind: {found}")
lag.finish(expect=1)
t.true(daemon.counter("stale") >= 1, "it is counted")
kept[0].step()
kept[1].check(kept[0].line(), "8 snapshots behind")
kept[0].finish()
check_new(daemon, days_now(), "others are right")
t.until(lambda: daemon.counter("volumes_retired") == 0 and not deleted_files(daemon), "all let go")
t.equal(daemon.counter("rescans_failed"), 0, "no rescan failed")
t.equal(daemon.stop(), 0, "the daemon's end")
