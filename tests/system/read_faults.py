# SPDX-License-Identifier: Apache-2.0
"""Reads of a running daemon that come short, are interrupted, fail or find nothing; signals; clocks.

Faults are laid under the pread reader by a preloaded library, and under every reader by files that are
cut short or replaced while they are served.
"""
import errno
import mmap
import os
import shutil
import signal
import struct
import time

import lib_stoup as t

# By name and search path: a path in LD_PRELOAD ends at its first space.
PRELOAD = {"LD_PRELOAD": "preload_faults.so", "LD_LIBRARY_PATH": os.environ["STOUP_LIB_DIR"]}
NOTHING, ERROR, SHORT, END, JUMP = range(5)
if os.environ.get("STOUP_SANITIZED"):
    os.environ["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"

store, totals = t.make_store(100_000)
name = t.name_of("AAA")
(volume,) = [entry for entry in os.listdir(store) if entry.endswith(".stoup")]
path = os.path.join(store, volume)


class Orders:
    def __init__(self):
        self.path = os.path.join(t.temp_dir(), "orders")
        with open(self.path, "wb") as out:
            out.write(bytes(4096))
        with open(self.path, "r+b") as file:
            self.map = mmap.mmap(file.fileno(), 4096)

    def give(self, kind, every=1, code=0):
        self.map[4:16] = struct.pack("<III", every, code, 0)
        self.map[0:4] = struct.pack("<I", kind)

    def hits(self):
        return struct.unpack("<I", self.map[12:16])[0]


def faulty(orders, size="1M", options=()):
    return t.Daemon(store, size, options=["--reader", "pread", *options],
                    prefix=["env", *(f"{k}={v}" for k, v in PRELOAD.items()), f"STOUP_FAULT_FILE={orders.path}"])


def scan(daemon, what, *options):
    (found,) = t.Worker(daemon.pool, name, *options).finish()
    totals["AAA"].check(found, what)


# ---- reads that need patience: nobody notices -----------------------------------------------------------
for options in (("--cached", "off"), ()):
    orders = Orders()
    daemon = faulty(orders, options=options)
    for what, kind, every, code in (("short", SHORT, 1, 0), ("EINTR", ERROR, 2, errno.EINTR),
                                    ("EAGAIN", ERROR, 3, errno.EAGAIN)):
        orders.give(kind, every, code)
        workers = [t.Worker(daemon.pool, name) for _ in range(3)]
        for worker in workers:
            (found,) = worker.finish()
            totals["AAA"].check(found, f"{what} reads")
        t.true(orders.hits() > 0, f"{what} reads happened")
        print(what, options, orders.hits(), "reads struck")
    t.equal(daemon.stat()["errors"], [], "errors")

    # ---- reads that fail: each waiter is told file and offset; when the disk is well again, so are they --
    for what, kind, code, words in (("EIO", ERROR, errno.EIO, "Input/output error"),
                                    ("EINTR for ever", ERROR, errno.EINTR, ""),
                                    ("end of file", END, 0, "truncated")):
        orders.give(NOTHING)
        scan(daemon, f"before {what}")
        scan(daemon, f"before {what}")
        orders.give(kind, 1, code)
        workers = [t.Worker(daemon.pool, name, "--timeout", 60_000) for _ in range(3)]
        for worker in workers:
            (found,) = worker.finish(expect=1)
            t.equal(found["rc"], -errno.EIO, what)
            t.true(volume in found["text"] and "offset" in found["text"] and words in found["text"],
                   f"{what}: file, offset and reason in {found}")
        print(f"{what}: {found['rc']} {found['text']}")
        t.true(orders.hits() > 0, f"{what}: it struck")
        daemon.runs(f"{what}: the daemon lives")
        orders.give(NOTHING)
        scan(daemon, f"after {what}")
    # Now and then: whoever retries gets through, and what was read is right.
    orders.give(ERROR, 5, errno.EIO)
    printed = t.run([t.STOUP, "cat", "--skip-damaged", daemon.pool, name], expect=None)
    t.true("left out" in printed.stderr or printed.returncode == 0, printed.stderr[-500:])
    orders.give(NOTHING)
    scan(daemon, "after EIO now and then")
    t.true(daemon.counter("loads_failed") > 0, "counted")
    t.until(lambda: daemon.counter("consumers") == 0, "all are gone")
    t.equal(daemon.settled()["counters"]["leases"], 0, "leases")
    t.equal(daemon.stop(), 0, "exit status")

# ---- a wall clock that jumps ten years to and fro -------------------------------------------------------
orders = Orders()
daemon = faulty(orders)
orders.give(JUMP)
for _ in range(3):
    scan(daemon, "beside a jumping clock")
worker = t.Worker(daemon.pool, name, "--timeout", 60_000, env={**os.environ, **PRELOAD, "STOUP_FAULT_FILE": orders.path})
(found,) = worker.finish()
totals["AAA"].check(found, "whose clock jumps")
daemon.runs("state")
orders.give(NOTHING)
daemon.stop()

# ---- signals, and a stop of everything ------------------------------------------------------------------
daemon = t.Daemon(store, "512K", options=["--cached", "off"])
for us in (50, 1000):
    workers = [t.Worker(daemon.pool, name, "--alarm", us) for _ in range(3)]
    for worker in workers:
        (found,) = worker.finish()
        totals["AAA"].check(found, f"a signal every {us} us")
# The daemon ignores what it is sent, but for the signals that it knows.
worker = t.Worker(daemon.pool, name, "--pause", 2000)
while worker.process.poll() is None:
    for number in (signal.SIGUSR1, signal.SIGALRM, signal.SIGPIPE, signal.SIGCHLD, signal.SIGUSR2):
        daemon.process.send_signal(number)
    time.sleep(0.001)
(found,) = worker.finish()
totals["AAA"].check(found, "while the daemon is showered with signals")
# Stopped as a whole, as by a suspended machine, for longer than a heartbeat may be late.
workers = [t.Worker(daemon.pool, name, "--mark", 3, "--pause", 3000) for _ in range(3)]
for worker in workers:
    t.equal(worker.line(), "mark\n", "in the middle")
group = [daemon.process, *(worker.process for worker in workers)]
for process in group:
    process.send_signal(signal.SIGSTOP)
time.sleep(3.5)
t.equal(daemon.stat()["state"], "suspended", "a stopped daemon")
for worker in workers:
    worker.step()
for process in reversed(group):  # the consumers first: they find a daemon that is silent
    process.send_signal(signal.SIGCONT)
for worker in workers:
    (found,) = worker.finish()
    totals["AAA"].check(found, "after a stop of everything")
t.equal(daemon.counter("deaths"), 0, "nobody was taken for dead")
daemon.stop()

# ---- volumes that are cut short or replaced while they are served, under each reader -----------------------
def step(worker):
    """One pass of a worker that was attached before: its snapshot stays what it was."""
    worker.process.stdin.write("on\n")
    worker.process.stdin.flush()
    found = worker.line()
    if found["rc"] == 0:
        t.equal(worker.line(), {"ready": True}, "before the next pass")
    return found


copy = os.path.join(t.temp_dir(), "copy")
for reader in ("auto", "pread"):
    for cached in ("auto", "off"):
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(store, copy)
        there = os.path.join(copy, volume)
        daemon = t.Daemon(copy, "1M", options=["--reader", reader, "--cached", cached])
        workers = [t.Worker(daemon.pool, name, "--steps", "--passes", 9) for _ in range(2)]
        for worker in workers:
            t.equal(worker.line(), {"ready": True}, "attached")
            totals["AAA"].check(step(worker), "before")
        # Replaced: who has the snapshot reads on what it has.
        os.rename(there, os.path.join(copy, "old"))
        with open(there, "wb") as out:
            out.write(b"something else" * 1000)
        found = step(workers[0])
        t.equal((found["rc"], found["records"]), (0, 2 * totals["AAA"].records), f"{reader}: replaced")
        # Cut in the middle of a block.
        os.truncate(os.path.join(copy, "old"), os.path.getsize(path) // 2 + 77)
        found = step(workers[0])
        t.equal(found["rc"], -errno.EIO, f"{reader}: cut: {found}")
        t.true("truncated" in found["text"] and "offset" in found["text"], f"{reader}: {found}")
        t.true(found["records"] > 2 * totals["AAA"].records, f"{reader}: records before the cut: {found}")
        # Overwritten with noise: the checksum tells.
        with open(os.path.join(copy, "old"), "r+b") as out:
            out.seek(4096)
            out.write(os.urandom(200_000))
        found = step(workers[1])
        t.true(found["rc"] == -errno.EBADMSG and "offset" in found["text"], f"{reader}: {found}")
        for worker in workers:
            worker.finish(expect=1)
        daemon.runs("the daemon lives")
        t.equal(daemon.stop(), 0, "exit status")
