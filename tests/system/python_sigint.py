# SPDX-License-Identifier: Apache-2.0
"""SIGINT at random moments: no lease is left, nothing crashes, nothing is said on stderr, sums stay right.

    python_sigint.py [SECONDS [SEED]]       10 s by default; tests/python_sigint.sh runs it for longer

Programs work in a loop (scans, views that are kept, merges, as-of, abandoned scans, forks) and catch
KeyboardInterrupt around it; each interrupt drops what was in hand, and at every tenth the program reports how many
leases and uses the library counts, which must be none. A scan that was not interrupted must find the right sum.
"""
import os
import random
import signal
import subprocess
import sys
import time

import lib_python as p
import lib_stoup as t

SECONDS = float(sys.argv[1]) if len(sys.argv) > 1 else 10.0
SEED = int(sys.argv[2]) if len(sys.argv) > 2 else time.time_ns() % 10**6

VICTIM = r"""
import os, signal, sys, time
import stoup

pool, name, size, mode, forks = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4], int(sys.argv[5])
client = stoup.open(pool)
kept = []

def work(i):
    kind = i % 6
    if kind < 2:
        found = 0
        for view in client.scan(name, direct="auto" if mode == "direct" else False):
            found += int(view["size"].sum())
        assert found == size, f"sum {found}"
    elif kind == 2:
        kept.append(next(client.scan(name, backward=True)))
        if len(kept) > 5:
            del kept[:3]
    elif kind == 3:
        for j, run in enumerate(client.merge(name, name)):
            if j > 40:
                break
    elif kind == 4:
        client.asof(name, 1_700_000_000_000_000_000 + i * 1000)
        client.last(name, 3)
        kept.clear()
        for view, numbers in client.scan(name, where="size > 3", limit=200, index=True):
            assert len(view) >= len(numbers) > 0
        del view
        client.asof_all([name, client.scan(name)], 1_700_000_000_000_000_000 + i * 1000)
        next(client.bars(name, "1t"), None)
        client.replay(name, name, speed=float("inf")).poll(0.001)
    elif forks and i % 24 == 5:
        pid = os.fork()
        if pid == 0:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            os._exit(0 if all(int(view["size"][0]) > 0 for view in kept) else 3)
        status = os.waitpid(pid, 0)[1]
        assert status == 0, f"child {status}"
    else:
        with stoup.open(pool) as other:
            next(iter(other.scan(name)))

def check(interrupts):
    # What the interrupted work had is gone with its frames.
    kept.clear()
    client_uses = stoup._lib.stoup_use_cnt(client._handle().it)
    leases = client.stats()["lease_cnt"]
    print(interrupts, client_uses, leases, flush=True)

armed = done = False
last = 0.0

def on_signal(number, frame):
    # As Python's own handler, but with a pause after each, in which the loop below takes note of it: reports are
    # not interrupted.
    global done, last
    if number == signal.SIGTERM:  # not "done or ...": a handler within this one would be overwritten
        done = True
    now = time.monotonic()
    if armed and now - last > 0.001:
        last = now
        raise KeyboardInterrupt

interrupts = i = 0
signal.signal(signal.SIGINT, on_signal)
signal.signal(signal.SIGTERM, on_signal)
print("ready", flush=True)
while not done:
    try:
        armed = True
        while not done:
            i += 1
            work(i)
        armed = False
    except KeyboardInterrupt:
        armed = False
        interrupts += 1
    if interrupts % 10 == 0 or done:
        check(interrupts)
os._exit(0) if mode == "abrupt" else None
"""


class Victim:
    def __init__(self, daemon, size, mode, forks):
        self.mode, self.seen, self.sent = mode, 0, 0
        self.log = t.tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen([sys.executable, "-W", "always", "-c", VICTIM, daemon.pool, t.name_of("AAA"),
                                         str(size), mode, str(forks)], stdout=subprocess.PIPE, stderr=self.log, bufsize=0)
        self.text = b""
        t.equal(self.process.stdout.readline(), b"ready\n", f"{mode}: begins: {self.said()}")
        os.set_blocking(self.process.stdout.fileno(), False)

    def said(self):
        self.log.seek(0)
        return self.log.read()

    def interrupt(self):
        if self.process.poll() is not None:
            t.fail(f"seed {SEED}, {self.mode}: ended with {self.process.returncode} after {self.sent} signals: {self.said()}")
        self.process.send_signal(signal.SIGINT)
        self.sent += 1
        self.take(self.process.stdout.read() or b"")

    def take(self, text):
        *lines, self.text = (self.text + text).split(b"\n")
        for line in lines:
            count, uses, leases = map(int, line.split())
            self.seen = max(self.seen, count)
            if uses or leases:
                t.fail(f"seed {SEED}, {self.mode}: after {count} interrupts {uses} uses and {leases} leases are left")

    def finish(self):
        os.set_blocking(self.process.stdout.fileno(), True)
        self.process.terminate()
        self.take(self.process.stdout.read())
        status = self.process.wait(60)
        # Python itself may say that an interrupt came within a hook of os.fork.
        said = self.said()
        if status != 0 or said:
            t.fail(f"seed {SEED}, {self.mode}: status {status} after {self.sent} signals, said: {said}")
        return self.seen


rng = random.Random(SEED)
store, totals = t.make_store(20_000)
plain, _ = t.make_store(20_000, codec="none")
daemons = {"pool": t.Daemon(store, "4M"), "small": t.Daemon(store, "1M"), "direct": t.Daemon(plain, "4M")}
victims = [Victim(daemon, totals["AAA"].size, mode, int(mode == "pool")) for mode, daemon in daemons.items()]
end = time.monotonic() + SECONDS
# On a machine that hardly lets them run it takes longer until each has caught some.
while time.monotonic() < end or (any(victim.seen < 10 for victim in victims) and time.monotonic() < end + 200):
    time.sleep(rng.random() ** 3 * 0.03)
    rng.choice(victims).interrupt()
seen = {victim.mode: victim.finish() for victim in victims}
for mode, daemon in daemons.items():
    t.until(lambda: not daemon.stat()["consumers"], f"seed {SEED}, {mode}: nobody is attached")
    p.no_leases(daemon, mode)
    t.equal(daemon.settled()["counters"]["leases"], 0, f"seed {SEED}, {mode}: leases")
    daemon.stop()
    t.equal(t.shm_names(daemon.pool), [], "/dev/shm")
sent = {victim.mode: victim.sent for victim in victims}
print(f"seed {SEED}: {SECONDS:.0f} s, signals sent {sent}, interrupts caught {seen}: no lease left")
t.true(all(count >= 10 for count in seen.values()), f"interrupts caught: {seen}")
