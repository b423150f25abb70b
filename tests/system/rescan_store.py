# SPDX-License-Identifier: Apache-2.0
"""What can happen to a store while a daemon serves it: damage, removal, another directory in its place, longer
blocks than at the start; and how the daemon learns of it."""
import errno
import json
import os
import shutil

import lib_stoup as t
from lib_rescan import (NAME, check_new, deleted_files, errors, hang_up, ingest, new_store, stepped, totals,
                        volumes_of)

# ---- SIGHUP -------------------------------------------------------------------------------------------------
store = new_store()
ingest(store, 0)
daemon = t.Daemon(store, "4M", ["--no-watch"])
waiting = stepped(daemon)
ingest(store, 1)
t.equal(daemon.counter("volumes"), 1, "nobody told of the ingest")
hang_up(daemon)
t.equal(daemon.counter("volumes"), 2, "SIGHUP told")
check_new(daemon, [0, 1], "after SIGHUP")

# ---- a machine that has no inotify to give: that is said once, and SIGHUP and attaches tell ----------------------
deaf = new_store()
ingest(deaf, 0)
blind = t.Daemon(deaf, "4M", prefix=[os.path.join(t.BIN, "helper_seccomp"), "EMFILE"])
t.true("is not watched" in errors(blind) and "max_user_instances" in errors(blind), f"said: {errors(blind)}")
ingest(deaf, 1)
check_new(blind, [0, 1], "an attach tells")
ingest(deaf, 2)
hang_up(blind)
t.equal(blind.counter("volumes"), 3, "SIGHUP tells")
t.equal(blind.counter("errors"), 1, "said once")
t.equal(blind.stop(), 0, "the daemon's end")

# ---- a damaged volume among the new ones: it is refused, the rest is served ------------------------------------
spare = new_store()
ingest(spare, 2)
(name,) = volumes_of(spare)
with open(os.path.join(spare, name), "r+b") as volume:
    volume.seek(-80, os.SEEK_END)
    volume.write(b"\xa5" * 16)
os.rename(os.path.join(spare, name), os.path.join(store, "99999999-00-0badcafe.stoup"))
ingest(store, 3)
check_new(daemon, [0, 1, 3], "beside a damaged volume")
t.equal(daemon.counter("volumes_refused"), 1, "it is refused")
t.true("0badcafe" in errors(daemon) and "volume refused" in errors(daemon), f"and named: {errors(daemon)}")
count = [error["count"] for error in daemon.stat()["errors"] if "0badcafe" in error["text"]]
hang_up(daemon)
t.equal([error["count"] for error in daemon.stat()["errors"] if "0badcafe" in error["text"]], count,
        "told once, not at each rescan")
snapshot = daemon.counter("snapshot")
os.unlink(os.path.join(store, "99999999-00-0badcafe.stoup"))
hang_up(daemon)
t.equal(daemon.counter("volumes_refused"), 0, "its removal is seen")
t.equal(daemon.counter("snapshot"), snapshot, "nothing that is served has changed")

# ---- the store goes away: what was served is served on; another one in its place is taken -----------------------
os.rename(store, store + ".away")
hang_up(daemon)
t.true(daemon.counter("rescans_failed") >= 1, "a store that is gone can not be read")
t.true("served on" in errors(daemon), f"it is said: {errors(daemon)}")
check_new(daemon, [0, 1, 3], "the store is gone, its data is served")
ingest(store, 7)
check_new(daemon, [7], "another store is in its place")
t.equal(daemon.counter("volumes"), 1, "its volumes alone are served")
waiting.step()
totals([0]).check(waiting.line(), "the first snapshot, of a store that is gone")
waiting.finish()
shutil.rmtree(store + ".away")
t.until(lambda: not deleted_files(daemon), "nothing of it is open")

# ... also when the path is a link that leads elsewhere now, and when no event can tell of that.
t.equal(daemon.stop(), 0, "the daemon's end")
link = os.path.join(t.temp_dir(), "link")
other = new_store()
ingest(other, 8)
os.symlink(store, link)
daemon = t.Daemon(link, "4M")
check_new(daemon, [7], "through a link")
os.symlink(other, link + ".new")
os.rename(link + ".new", link)
hang_up(daemon)
check_new(daemon, [8], "the link leads elsewhere")
ingest(other, 9)
t.until(lambda: daemon.counter("volumes") == 2, "and the watch is on the other directory")
shutil.rmtree(other)
t.until(lambda: not os.path.exists(other), "removed")
ingest(other, 4)
t.until(lambda: [v["path"] for v in daemon.stat()["volumes"] if v["state"] == "served"] ==
        [os.path.join(link, name) for name in volumes_of(other)], "a store that was made again is found")
check_new(daemon, [4], "made again")
t.equal(daemon.stop(), 0, "the daemon's end")

# ---- blocks that are longer than any at the start ----------------------------------------------------------------
grow = new_store()
ingest(grow, 0, count=100)
daemon = t.Daemon(grow, "16M")
ingest(grow, 1, count=30_000, block="512K")
check_new(daemon, [(0, 0, 100), (1, 0, 30_000)], "blocks as ingest makes by default")
ingest(grow, 2, count=60_000, block="2M")
out = json.loads(t.run([t.WORKER, daemon.pool, NAME], expect=1).stdout)
t.equal(out["rc"], -errno.EFBIG, f"blocks too long for the daemon: {out}")
t.true("restart the daemon" in errors(daemon), f"what to do is said: {errors(daemon)}")
t.equal(daemon.stop(), 0, "the daemon's end")
daemon = t.Daemon(grow, "16M")
check_new(daemon, [(0, 0, 100), (1, 0, 30_000), (2, 0, 60_000)], "the next daemon serves them")
t.equal(daemon.stop(), 0, "the daemon's end")

# A daemon that began with an empty store serves what comes.
empty = new_store()
os.mkdir(empty)
process = t.Daemon(empty, "4M")
ingest(empty, 0, block="512K")
check_new(process, [0], "the first ingest into an empty store")
t.equal(process.stop(), 0, "the daemon's end")

# Who copies a store may set its times back, as rsync does: what came is seen all the same.
copied = new_store()
ingest(copied, 0)
times = os.stat(copied)
daemon = t.Daemon(copied, "4M", ["--no-watch"])
check_new(daemon, [0], "before")
ingest(copied, 1)
os.utime(copied, ns=(times.st_atime_ns, times.st_mtime_ns))
check_new(daemon, [0, 1], "times set back")
t.equal(daemon.stop(), 0, "the daemon's end")
