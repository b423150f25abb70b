# SPDX-License-Identifier: Apache-2.0
"""Places for volumes run short, and consumers of old snapshots are cut off: it costs none of them a byte, a
record or a lease, whatever they are about to do, and nobody is cut off in vain."""
import errno
import json
import os
import signal
import struct
import subprocess

import lib_stoup as t
import lib_wire as w
from lib_rescan import NAME, check_new, errors, hang_up, ingest, new_store, stepped, totals, volumes_of

LONG = 60_000  # records of 3.2 MiB: more than the pools here
ROWS = 8

shelf = new_store()
for day in range(1, 71):
    ingest(shelf, day, count=20)
small = volumes_of(shelf)


class Pool:
    """A daemon with one store that is read, and others that volumes are linked into and out of: 560 at a time,
    of 1024 places."""

    def __init__(self, count=LONG, size="1M", options=(), prefix=()):
        self.store = new_store()
        ingest(self.store, 0, count=count)
        self.rows = [new_store() for _ in range(ROWS)]
        for row in self.rows:
            os.mkdir(row)
        self.daemon = t.Daemon(self.store, size, ["--no-watch", *options, *(f"--store={row}" for row in self.rows)],
                               prefix=prefix)

    def link(self, rows=ROWS):
        for row in self.rows[:rows]:
            for name in small:
                os.link(os.path.join(shelf, name), os.path.join(row, name))

    def unlink(self, rows=ROWS):
        for row in self.rows[:rows]:
            for name in small:
                os.unlink(os.path.join(row, name))

    def fill(self):
        """From here on, who uses a snapshot of now keeps 560 places."""
        self.link()
        hang_up(self.daemon)
        self.unlink()
        hang_up(self.daemon)

    def cut(self, count):
        """There is no room without those who keep places: `count` are cut off."""
        before = self.daemon.counter("laggards_cut")
        self.link()
        hang_up(self.daemon)
        t.equal(self.daemon.counter("laggards_cut") - before, count, "cut off")
        self.unlink()
        hang_up(self.daemon)

    def states(self):
        return sorted((c["state"], c["leases"]) for c in self.daemon.settled()["consumers"])

    def pressure(self):
        """All that nobody holds is evicted."""
        for _ in range(2):
            (found,) = t.Worker(self.daemon.pool, NAME, "--to", t.T0 + 10**11).finish()
            t.equal(found["records"], LONG, "beside what is held")

    def end(self):
        t.until(lambda: self.daemon.counter("consumers") == 0, "all have gone")
        t.equal(self.daemon.settled()["counters"]["leases"], 0, "leases left")
        t.equal(self.daemon.stop(), 0, "the daemon's end")
        t.equal(t.shm_names(self.daemon.pool), [], "names left")


class Forker:
    """A helper_fork that goes on when it is told."""

    def __init__(self, pool, hold):
        self.process = subprocess.Popen([os.path.join(t.BIN, "helper_fork"), pool, NAME, str(hold), "--steps"],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def line(self):
        text = self.process.stdout.readline()
        t.true(text, "helper_fork ended without a word")
        return json.loads(text)

    def go_on(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()


def whole(line, who):
    t.equal((line["who"], line["rc"], line.get("records"), line.get("unchanged")), (who, 0, LONG, True),
            f"{who}: every record once, what was held unchanged: {line}")
    return line["sum"]


# ---- waiting for a block of a volume that is replaced by the same records elsewhere: it goes on there ------------
pool = Pool(size="2M", options=["--lease-bytes", "2M"])
daemon = pool.daemon
other = new_store()
ingest(other, 0, count=LONG)
full = [t.Worker(daemon.pool, NAME, "--hold", 100, "--timeout", 3000, "--wait", "--to", t.T0 + 20_000_000),
        t.Worker(daemon.pool, NAME, "--hold", 100, "--timeout", 3000, "--wait", "--from", t.T0 + 20_000_000)]
for worker in full:
    worker.wait_scanned()
waiting = t.Worker(daemon.pool, NAME, "--timeout", 120_000, "--from", t.T0 + 45_000_000, "--to", t.T0 + 10**11)
t.until(lambda: any(c["waiting"] for c in daemon.stat()["consumers"]), "one waits while all is held")
(old,), (new,) = volumes_of(pool.store), volumes_of(other)
os.rename(os.path.join(other, new), os.path.join(pool.store, new))
os.unlink(os.path.join(pool.store, old))
hang_up(daemon)
pool.fill()
pool.cut(3)
t.equal(daemon.counter("stale"), 0, "it was not told that its snapshot is too old")
for worker in full:
    t.equal(worker.finish(None)[-1], {"held_unchanged": True}, "what is held while cut off")
(found,) = waiting.finish()
t.equal((found["records"], found["gaps"]), (15_000, 0), f"it went on: {found}")
pool.end()

# ---- no pidfd to be had: being cut off is no hang-up of its own, and takes no lease ------------------------------
seccomp = os.path.join(t.BIN, "helper_seccomp")
if subprocess.run([seccomp, "PIDFD", "true"], check=False).returncode == 0:
    pool = Pool(prefix=[seccomp, "PIDFD"])
    daemon = pool.daemon
    holder = t.Worker(daemon.pool, NAME, "--hold", 3, "--wait", "--to", t.T0 + 20_000_000)
    holder.wait_scanned()
    killed = t.Worker(daemon.pool, NAME, "--hold", 2, "--wait", "--to", t.T0 + 20_000_000)
    killed.wait_scanned()
    reader = stepped(daemon, "--to", t.T0 + 10**11)
    fds = [os.readlink(f"/proc/{daemon.process.pid}/fd/{fd}") for fd in os.listdir(f"/proc/{daemon.process.pid}/fd")]
    t.equal([fd for fd in fds if "pidfd" in fd], [], "no pidfd")
    pool.fill()
    pool.cut(3)
    t.until(lambda: pool.states() == [("deaf", 0), ("deaf", 2), ("deaf", 3)], "they keep what they hold")
    pool.pressure()
    reader.step()
    totals([(0, 0, LONG)]).check(reader.line(), "cut off, and gone on")
    reader.finish()
    killed.kill()
    t.until(lambda: pool.states() == [("deaf", 3)], "the end of a process is told by its connection")
    (end,) = holder.finish()
    t.true(end["held_unchanged"], "bytes under a lease of one that was cut off")
    pool.end()

# ---- about to fork: the child has all leases, those from before the cut as well ------------------------------------


def cut_off_while(pool, when):
    daemon = pool.daemon
    forker = Forker(daemon.pool, 2)
    for step in ("reading", "prepared"):
        t.equal(forker.line(), {"step": step}, "helper_fork")
        if step == when:
            pool.fill()
            pool.cut(2 if when == "prepared" else 1)
        forker.go_on()
    # The parent ends its scan and gives all back; either may be the first to say so.
    lines = [forker.line(), forker.line()]
    t.true({"step": "joined"} in lines, f"the child has joined: {lines}")
    (parent,) = [line for line in lines if "who" in line]
    total = whole(parent, "parent")
    if when == "joined":
        pool.fill()
        pool.cut(1)
    pool.pressure()
    forker.go_on()
    t.equal(whole(forker.line(), "child"), total, f"cut off while {when}: the child's bytes")
    t.equal(forker.process.wait(60), 0, f"cut off while {when}")
    pool.end()


for when in ("reading", "prepared", "joined"):
    for _ in range(5):  # a copy that nobody fetched within ten seconds is gone: again
        pool = Pool()
        try:
            cut_off_while(pool, when)
            break
        except SystemExit:
            if pool.daemon.counter("forks_expired") == 0:
                raise
    else:
        t.fail(f"cut off while {when}: five copies expired")

# ---- killed while it asks for the newest snapshot, which is what cuts it off ----------------------------------------
pool = Pool()
daemon = pool.daemon
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
asker = os.fork()
if asker == 0:
    peer = w.Peer(daemon.pool)
    peer.hello()
    signal.sigwait([signal.SIGUSR1])
    peer.send(struct.pack("<QIiIIIIQ", w.HELLO_MAGIC, w.VOLUMES, 0, 0, 0, 0, 1, 0))
    os.kill(os.getpid(), signal.SIGKILL)
t.until(lambda: daemon.counter("consumers") == 1, "it is attached")
pool.fill()
pool.link()
t.until(lambda: daemon.stat()["state"] == "running", "before it is stopped")
# What it asks is in the socket before it is dead, and the daemon hears of both at once.
daemon.process.send_signal(signal.SIGSTOP)
os.kill(asker, signal.SIGUSR1)
os.waitpid(asker, 0)
daemon.process.send_signal(signal.SIGCONT)
t.until(lambda: daemon.process.poll() is not None or daemon.counter("deaths") == 1, "its death is seen")
t.equal(daemon.process.poll(), None, "the daemon lives")
check_new(daemon, [(0, 0, LONG), *((day, 0, 20) for _ in range(ROWS) for day in range(1, 71))], "who comes next")
pool.end()

# ---- again and again: a slow reader that is cut off all the time ends, with each record once -----------------------
pool = Pool()
daemon = pool.daemon
slow = t.Worker(daemon.pool, NAME, "--pause", 60_000, "--hold", 1, "--wait", "--from", t.T0 + 10_000_000, "--to",
                t.T0 + 50_000_000)
keeper = t.Worker(daemon.pool, NAME, "--hold", 2, "--wait", "--to", t.T0 + 10_000_000)
keeper.wait_scanned()
t.until(lambda: daemon.counter("consumers") == 2, "both are attached")
monitored = 0
for _ in range(6):
    pool.link()
    hang_up(daemon)
    pool.unlink()
    hang_up(daemon)
    monitored += t.run([t.STOUP, "stat", daemon.pool]).returncode == 0
t.true(daemon.counter("laggards_cut") >= 2, "they were cut off")
t.equal(monitored, 6, "monitors see the pool")
(found,) = slow.wait_scanned()
t.equal((found["rc"], found["records"], found["gaps"]), (0, 40_000, 0), f"each record of the range once: {found}")
for worker in (slow, keeper):
    t.equal(worker.finish()[-1], {"held_unchanged": True}, "what was held")
pool.end()

# ---- no place is free beside the one that its leases keep: that is the reason which it is told --------------------
pool = Pool(options=["--consumers", "2"])
daemon = pool.daemon
holders = [t.Worker(daemon.pool, NAME, "--mark", 2, "--hold", 1, "--wait", "--reconnect", 2000) for _ in range(2)]
for worker in holders:
    t.equal(worker.line(), "mark\n", "both hold")
pool.fill()
pool.cut(2)
for worker in holders:
    worker.step()
for worker in holders:
    (found,) = worker.wait_scanned()
    t.equal(found["rc"], -errno.EPIPE, f"no place for it: {found}")
    t.true("has its 2 consumers already" in found["text"] and "--consumers N" in found["text"], found["text"])
for worker in holders:
    t.equal(worker.finish(None)[-1], {"held_unchanged": True}, "what was held")
pool.end()

# ---- in vain nobody is cut off: leases keep the places --------------------------------------------------------------
pool = Pool(count=200, size="64M", options=["--backing", "memfd"])
daemon = pool.daemon
holders = []
for _ in range(7):
    pool.link(2)
    hang_up(daemon)
    holders.append(t.Worker(daemon.pool, NAME, "--hold", 141, "--wait"))
    t.equal(holders[-1].wait_scanned()[0]["held"], 141, "a block of each volume is held")
    pool.unlink(2)
    hang_up(daemon)
reader = stepped(daemon)
ingest(pool.store, 500, count=20)
hang_up(daemon)
failed = daemon.counter("rescans_failed")
pool.link(2)
hang_up(daemon)
t.equal(daemon.counter("rescans_failed"), failed + 1, "no room: 980 places are kept by leases")
t.true("not all find a place" in errors(daemon), f"it is said: {errors(daemon)}")
t.equal(daemon.counter("laggards_cut"), 0, "nobody is cut off for nothing")
t.equal([state for state, _ in pool.states()], ["attached"] * 8, "all are attached")
# One gives its leases back, and there is room: the daemon finds out by itself.
holders.pop().finish()
t.until(lambda: daemon.counter("volumes") == 142, "the new volumes found places")
reader.step()
totals([(0, 0, 200)]).check(reader.line(), "the reader")
reader.finish()
for worker in holders:
    t.equal(worker.finish()[-1], {"held_unchanged": True}, "what was held")
pool.end()

# ---- what nobody uses any more is no reason to cut anybody off, although its places wait for the next look ----------
pool = Pool(count=200)
daemon = pool.daemon
first = stepped(daemon)
pool.fill()
second = stepped(daemon)
pool.link(1)
hang_up(daemon)
pool.unlink(1)
hang_up(daemon)
daemon.process.send_signal(signal.SIGSTOP)
first.kill()
pool.link()
daemon.process.send_signal(signal.SIGHUP)
daemon.process.send_signal(signal.SIGCONT)
t.until(lambda: daemon.counter("volumes") == ROWS * len(small) + 1, "the new volumes found places")
t.equal(second.process.poll(), None, "the second is there")
t.true(daemon.counter("laggards_cut") <= 1, "the second one was left alone")
t.equal([state for state, _ in pool.states()], ["attached"], "the second one is attached")
pool.unlink()
second.step()
totals([(0, 0, 200)]).check(second.line(), "the second one")
second.finish()
pool.end()
