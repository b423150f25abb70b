# SPDX-License-Identifier: Apache-2.0
"""Names that were removed (RemoveIPC, rm): the control object's is told once, consumers go on, stat asks the socket;
the socket's is made again."""
import os

import lib_stoup as t
import lib_wire as w

store, totals = t.make_store(30_000)
name = t.name_of("AAA")

for planted in (False, True):
    daemon = t.Daemon(store, "1M")
    holder = t.Worker(daemon.pool, name, "--hold", 1, "--wait")
    holder.wait_scanned()
    path = f"/dev/shm/stoup.{os.geteuid()}.{daemon.pool}.ctl"
    os.unlink(path)
    if planted:
        # Another object took the name: it is not ours to remove.
        open(path, "wb").close()
    t.until(lambda: f"{path} was removed" in daemon.stderr(), "the daemon says so")
    t.true("loginctl enable-linger USER, RemoveIPC=no" in daemon.stderr(), daemon.stderr())
    (found,) = t.Worker(daemon.pool, name).finish()
    totals["AAA"].check(found, "a consumer that comes after")
    t.true(holder.finish()[0]["held_unchanged"], "one that was there before")
    if not planted:
        daemon.runs("stat through the socket")
        t.equal(daemon.counter("errors"), 1, "told once")
        t.until(lambda: daemon.counter("monitors") > 1, "as a monitor")
    t.equal(daemon.stop(), 0, "the daemon's end")
    t.equal(os.path.exists(path), planted, "what lies there is not ours")
    if planted:
        os.unlink(path)
    gone = t.run([t.STOUP, "stat", daemon.pool], expect=1)
    t.true("there is no pool" in gone.stderr, gone.stderr)

# The attach socket: made again, with its modes; where another lies there, that is said once.
daemon = t.Daemon(store, "1M")
found = w.socket_path(daemon.pool)
mode = os.stat(found).st_mode
os.unlink(found)
t.until(lambda: os.path.exists(found) and os.stat(found).st_mode == mode, "made again")
t.until(lambda: daemon.counter("sockets_remade") == 1, "counted")
(sums,) = t.Worker(daemon.pool, name).finish()
totals["AAA"].check(sums, "through the socket that was made again")
planted = os.path.join(os.path.dirname(found), f".planted-{os.getpid()}")
open(planted, "wb").close()
os.rename(planted, found)
t.until(lambda: "another file has the name; mend: remove that one" in daemon.stderr(), "it is said that nobody can attach")
os.unlink(found)
t.until(lambda: daemon.counter("sockets_remade") == 2, "made again once there is room")
(sums,) = t.Worker(daemon.pool, name).finish()
totals["AAA"].check(sums, "after that")
t.equal(daemon.stop(), 0, "the daemon's end")
t.equal(os.path.exists(found), False, "its name is gone with it")

# A daemon that was killed without its name: its socket is all that is left, and the next one starts.
daemon = t.Daemon(store, "1M")
os.unlink(f"/dev/shm/stoup.{os.geteuid()}.{daemon.pool}.ctl")
daemon.kill()
gone = t.run([t.STOUP, "stat", daemon.pool], expect=1)
t.true("there is no pool" in gone.stderr, gone.stderr)
after = t.Daemon(store, "1M", pool=daemon.pool)
(found,) = t.Worker(after.pool, name).finish()
totals["AAA"].check(found, "with the next daemon")
t.equal(after.stop(), 0, "its end")
