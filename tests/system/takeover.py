# SPDX-License-Identifier: Apache-2.0
"""A machine with memory for one pool: the next daemon waits for who still maps the old one, and names them.

/dev/shm has room for one and a half pools. A worker that holds on keeps the killed daemon's pages; when it lets
go, the new daemon starts.
"""
import os
import re
import signal
import subprocess
import sys

import lib_stoup as t

if not t.can_mount():
    print("needs root, and mount namespaces, to mount a /dev/shm of its own: skipped")
    sys.exit(t.SKIP)
if "STOUP_TEST_INSIDE" not in os.environ:
    done = subprocess.run(["unshare", "-m", sys.executable, "-B", __file__],
                          env={**os.environ, "STOUP_TEST_INSIDE": "1"})
    sys.exit(done.returncode)
if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=12M", "tmpfs", "/dev/shm"]).returncode != 0:
    print("mounting is not allowed here: skipped")
    sys.exit(t.SKIP)

SIZE = 8 << 20
store, totals = t.make_store(40_000)
name = t.name_of("AAA")


def holder_of(daemon):
    worker = t.Worker(daemon.pool, name, "--hold", 1, "--wait")
    worker.wait_scanned()
    return worker


def used():
    vfs = os.statvfs("/dev/shm")
    return (vfs.f_blocks - vfs.f_bfree) * vfs.f_frsize


def start(pool, *options):
    """A daemon that need not be ready when this returns: (process, the end of its readiness)."""
    read_fd, write_fd = os.pipe()
    log = t.tempfile.TemporaryFile("w+")
    process = subprocess.Popen([t.STOUPD, "--store", store, "--pool", pool, "--size", str(SIZE), "--quiet",
                                "--ready-fd", str(write_fd), *options], pass_fds=[write_fd], stderr=log)
    os.close(write_fd)
    return process, os.fdopen(read_fd), log


def said(log):
    log.seek(0)
    return log.read()


first = t.Daemon(store, SIZE)
holder = holder_of(first)
first.kill()
t.true(used() > SIZE, "the killed daemon's pool is still there")

# No patience: an error that says how much, who, and what to do.
process, ready, log = start(first.pool, "--takeover-wait", "0")
text = ready.read()
t.equal(process.wait(60), 1, "the status")
comm = open(f"/proc/{holder.pid}/comm").read().strip()
for part in (f"needed {SIZE} bytes, available ", f"still mapped by {holder.pid} ({comm}); waited ",
             "mend: let them detach, end them, or --takeover-wait TIME"):
    t.true(part in text, f"{part!r} in {text}")
t.true(used() < SIZE + (1 << 20), "nothing of the attempt is left")

# A little: the same, after that time.
process, ready, log = start(first.pool, "--takeover-wait", "300ms")
text = ready.read()
waited = re.search(rf"still mapped by {holder.pid} \({re.escape(comm)}\); waited (\d+\.\d) s", text)
t.true(waited and float(waited[1]) >= 0.3, f"it waited, in vain: {text}")
t.equal(process.wait(60), 1, "the status")

# Told to stop while it waits.
process, ready, log = start(first.pool, "--takeover-wait", "1h")
t.until(lambda: "waiting for memory" in said(log), "it waits")
process.send_signal(signal.SIGTERM)
t.true("told to stop while it waited for memory" in ready.read(), "why it ended")
t.equal(process.wait(60), 1, "the status")

# It waits, says for whom, and starts when they let go.
process, ready, log = start(first.pool, "--takeover-wait", "1h")
t.until(lambda: f"is still mapped by {holder.pid} ({comm})" in said(log), "it names the worker")
t.true(holder.finish()[0]["held_unchanged"], "the worker's bytes stayed as they were")
t.equal(ready.read(), "ready\n", "the new daemon starts")
(found,) = t.Worker(first.pool, name).finish()
totals["AAA"].check(found, "of the new daemon")

# Two that hold on, of a daemon that was stopped in order; one is killed, the other lets go.
holders = [t.Worker(first.pool, name, "--hold", 1, "--wait") for _ in range(2)]
for worker in holders:
    worker.wait_scanned()
process.send_signal(signal.SIGTERM)
t.equal(process.wait(60), 0, "the end of the second daemon")
process, ready, log = start(first.pool, "--takeover-wait", "1h")
t.until(lambda: all(f"{worker.pid} ({comm})" in said(log) for worker in holders), "it names both")
holders[0].kill()
holders[1].finish()
t.equal(ready.read(), "ready\n", "the third daemon starts")
process.send_signal(signal.SIGTERM)
t.equal(process.wait(60), 0, "its end")

# Short for another reason: no waiting, the usual text.
process, ready, log = start(first.pool, "--takeover-wait", "1h", "--size", "64M")
text = ready.read()
t.equal(process.wait(60), 1, "the status")
t.true("/dev/shm is too small: needed 67108864 bytes" in text, text)
t.equal(used() < (1 << 20), True, "nothing is left")
