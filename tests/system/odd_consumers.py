# SPDX-License-Identifier: Apache-2.0
"""Consumers that are stopped, that exec, fork, daemonize, close everything or pass their descriptors on:
leases are free exactly when nobody reads under them any more, and stat shows whose they are."""
import json
import os
import signal
import subprocess

import lib_stoup as t

ODD = os.path.join(t.BIN, "helper_odd")
store, totals = t.make_store(100_000)
name = t.name_of("AAA")
daemon = t.Daemon(store, "1M")


class Odd:
    def __init__(self, mode):
        self.mode = mode
        self.process = subprocess.Popen([ODD, daemon.pool, name, mode], text=True, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)
        t.equal(self.process.stdout.readline(), "holding\n", mode)
        t.until(lambda: leases() >= 3, f"{mode}: it holds")

    def act(self):
        self.process.stdin.write("now\n")
        self.process.stdin.flush()
        word, pid = self.process.stdout.readline().split()
        t.equal(word, "done", self.mode)
        return int(pid)

    def end(self):
        self.process.stdin.close()
        t.equal(self.process.stdout.readline(), "unchanged\n", f"{self.mode}: the bytes that it held")
        t.equal(self.process.wait(), 0, self.mode)

    def shown(self):
        (entry,) = [c for c in daemon.stat()["consumers"] if c["pid"] == self.process.pid]
        return entry


def leases():
    return daemon.counter("leases")


def pressure(what, times=2):
    """The whole series through a pool of a sixth of it: whatever may be evicted is."""
    before = daemon.counter("evictions")
    for _ in range(times):
        (found,) = t.Worker(daemon.pool, name, "--retry").finish()
        totals["AAA"].check(found, what)
    t.true(daemon.counter("evictions") > before, f"{what}: evictions")


def nothing_left(what):
    t.until(lambda: leases() == 0 and daemon.counter("consumers") == 0, f"{what}: nothing is left")
    pressure(what, 1)


# ---- it becomes another program: descriptors and mappings are gone, so the leases are -----------------------
odd = Odd("exec")
odd.act()
nothing_left("after an exec")
t.true(odd.process.poll() is None, "the process lives, as another program")
odd.process.kill()
odd.process.wait()

# ---- it closes all descriptors and reads on: shown as deaf, never robbed ------------------------------------
odd = Odd("close")
odd.act()
t.until(lambda: odd.shown()["state"] == "deaf", "it is shown as deaf")
pressure("beside a deaf one", 4)
entry = odd.shown()
t.equal((entry["state"], entry["leases"]), ("deaf", 3), "a deaf consumer keeps its leases")
holders = t.run([t.STOUP, "holders", daemon.pool]).stdout
t.true("deaf" in holders and str(odd.process.pid) in holders, holders)
odd.end()
nothing_left("after a deaf one ended")

# ---- it forks: the child shares nothing; the leases are the parent's, whatever the child keeps open -----------
for mode in ("fork", "spawn", "pass"):
    odd = Odd(mode)
    other = odd.act()
    pressure(f"{mode}: beside the parent of a child")
    t.until(lambda: daemon.counter("consumers") == 1, f"{mode}: one consumer")
    t.equal(daemon.settled()["counters"]["leases"], 3, f"{mode}: leases of the parent alone")
    t.equal(odd.shown()["state"], "attached", f"{mode}: state")
    odd.end()
    nothing_left(f"{mode}: the parent ended")
    t.true(os.path.exists(f"/proc/{other}"), f"{mode}: the other process lives on")
    os.kill(other, signal.SIGKILL)
# The parent is killed, not ended.
odd = Odd("pass")
other = odd.act()
odd.process.kill()
nothing_left("the one who passed its descriptors on was killed")
os.kill(other, signal.SIGKILL)
odd.process.wait()

# ---- it becomes a daemon: who held the leases is gone --------------------------------------------------------
odd = Odd("daemon")
other = odd.act()
nothing_left("after a double fork")
t.true(os.path.exists(f"/proc/{other}"), "the daemon lives on")
os.kill(other, signal.SIGKILL)
odd.process.wait()

# ---- it is stopped: the oldest holder, named where others starve, never robbed ----------------------------------
odd = Odd("stay")
odd.process.send_signal(signal.SIGSTOP)
t.until(lambda: odd.shown()["oldest_lease_ns"] > 1_000_000_000, "its leases grow old")
younger = t.Worker(daemon.pool, name, "--hold", 1, "--wait", "--to", t.T0 + 50_000_000)
younger.wait_scanned()
t.until(lambda: leases() == 4, "the younger one holds the same block")
ages = {c["pid"]: c["oldest_lease_ns"] for c in daemon.stat()["consumers"]}
t.equal(max(ages, key=ages.get), odd.process.pid, f"the stopped one is the oldest holder: {ages}")
pressure("beside a stopped holder", 4)
t.equal(odd.shown()["leases"], 3, "a stopped holder is never robbed")
t.true(younger.finish()[0]["held_unchanged"], "the younger one's bytes")
odd.process.send_signal(signal.SIGCONT)
odd.act()
odd.end()
nothing_left("after a stopped one ended")
t.equal(daemon.stop(), 0, "exit status")

# All of a pool held by stopped processes: whoever starves is told whom to wake.
daemon = t.Daemon(store, "256K", options=["--lease-bytes", "256K"])
odd = Odd("stay")
odd.process.send_signal(signal.SIGSTOP)
last = t.Worker(daemon.pool, name, "--hold", 1, "--wait", "--from", t.T0 + 80_000_000, "--to", t.T0 + 80_001_000)
last.wait_scanned()
last.process.send_signal(signal.SIGSTOP)


def names_both():
    """Where it has no processor until the deadline, it is told that and no more."""
    starved = t.run([t.WORKER, "--timeout", "3000", daemon.pool, name, "--from", str(t.T0 + 50_000_000)], expect=1)
    text = json.loads(starved.stdout)["text"]
    return text if str(odd.process.pid) in text and str(last.pid) in text else None


print(t.until(names_both, "both are named"))
for process in (odd.process, last.process):
    process.send_signal(signal.SIGCONT)
odd.act()
odd.end()
t.true(last.finish()[0]["held_unchanged"], "the last one's bytes")
(found,) = t.Worker(daemon.pool, name).finish()
totals["AAA"].check(found, "when they went on")
daemon.stop()
