# SPDX-License-Identifier: Apache-2.0
"""Quotas under everything that moves them: members of two groups and of none that hold, scan, sleep, are stopped, killed, and end, in
an order by chance. At each look no group leases more than its quota, by the daemon's account and by what its members say that they
hold; scans are right; nobody waits for ever; in the end nothing is left of it.

usage: quota_storm.py [STEPS [SEED]]
"""
import errno
import os
import random
import signal
import subprocess
import sys

import lib_stoup as t

if os.geteuid() != 0:
    print("needs root to play other groups: skipped")
    sys.exit(t.SKIP)

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 100
SEED = int(sys.argv[2]) if len(sys.argv) > 2 else int.from_bytes(os.urandom(4), "little")
QUOTA = {60: 320 << 10, 12: 640 << 10}  # five and ten blocks
MOST = 12  # processes at once

print(f"seed {SEED}", flush=True)
random.seed(SEED)
store, totals = t.make_store(120_000)  # 6.7 MB in blocks of 64 KiB
name = t.name_of("AAA")
daemon = t.Daemon(store, "3M", options=["--lease-bytes", "3M", *(word for gid, size in QUOTA.items() for word in ("--quota", f"{gid}={size}"))])
members = []


class Member(t.Worker):
    """A worker whose process is of this group, or of root's."""

    def __init__(self, gid, *options, scans):
        self.gid, self.scans, self.held, self.stopped = gid, scans, 0, False
        prefix = ["setpriv", f"--regid={gid}", "--clear-groups"] if gid else []
        self.process = subprocess.Popen([*prefix, t.WORKER, "--timeout", "60000", *map(str, options), daemon.pool, name],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        members.append(self)


def of(*, held=None, stopped=None):
    return [m for m in members if (held is None or bool(m.held) == held) and (stopped is None or m.stopped == stopped)]


def free_of(gid):
    return QUOTA.get(gid, 1 << 20) - sum(m.held for m in members if m.gid == gid)


def holds():
    """A new one that keeps blocks of its own part of the series, as many as its group has room for beside the others."""
    gid = random.choice((60, 12, 0))
    most = free_of(gid) // 65536 - 2  # those who scan want one at a time
    if len(members) >= MOST or most < 1 or of(stopped=True):
        return
    member = Member(gid, "--hold", random.randint(1, most), "--wait", "--from", t.T0 + random.randrange(0, 60_000_000), scans=False)
    result = member.wait_scanned()[-1]
    t.equal(result["rc"], 0, f"seed {SEED}: a holder: {result}")
    member.held = result["held_bytes"]


def scans():
    if len(members) < MOST:
        Member(random.choice((60, 12, 0)), "--pause", random.choice((0, 500, 3000)), scans=True)


def greedy():
    """More than the quota, whatever the others do: refused with the numbers, and without harm to anybody."""
    gid = random.choice(list(QUOTA))
    member = Member(gid, "--timeout", 200, "--hold", QUOTA[gid] // 57_000 + 2, scans=False)
    members.remove(member)
    (result,) = member.finish(expect=1)
    t.true(result["rc"] in (-errno.EDQUOT, -errno.ETIMEDOUT), f"seed {SEED}: {result}")


def ends(member):
    members.remove(member)
    if member.stopped:
        member.process.send_signal(signal.SIGCONT)
    result = member.finish()[-1]
    if member.scans:
        totals["AAA"].check(result, f"seed {SEED}: a scan of group {member.gid}")
    else:
        t.true(result["held_unchanged"], f"seed {SEED}: what was held never changed")


def killed():
    if members:
        member = random.choice(members)
        members.remove(member)
        member.kill()


def stops():
    if len(of(stopped=True)) < 3 and of(stopped=False):
        member = random.choice(of(stopped=False))
        member.process.send_signal(signal.SIGSTOP)
        member.stopped = True


def goes_on():
    for member in of(stopped=True):
        member.process.send_signal(signal.SIGCONT)
        member.stopped = False


def release():
    if of(held=True):
        ends(random.choice(of(held=True)))


def look():
    stat = daemon.stat()
    t.equal(daemon.process.poll(), None, f"seed {SEED}: the daemon")
    for quota in stat["quotas"]:
        t.true(quota["leased_bytes"] <= quota["bytes_max"] == QUOTA[quota["id"]], f"seed {SEED}: the daemon's account: {quota}")
        held = sum(m.held for m in members if m.gid == quota["id"])
        t.true(held <= quota["bytes_max"], f"seed {SEED}: what members say: {held}, {quota}")


STEP = ((4, holds), (4, scans), (1, greedy), (3, release), (2, killed), (1, stops), (2, goes_on))
for _ in range(STEPS):
    random.choices([act for _, act in STEP], [weight for weight, _ in STEP])[0]()
    look()
goes_on()
for member in of(held=True):
    ends(member)
while members:
    ends(members[0])
t.until(lambda: daemon.counter("consumers") == 0, "all have gone")
stat = daemon.settled()
t.equal([(quota["leased_bytes"], quota["consumers"], quota["waiting"]) for quota in stat["quotas"]], [(0, 0, 0)] * 2, f"seed {SEED}: what is left")
t.equal((stat["counters"]["leases"], stat["counters"]["quota_dropped"]), (0, 0), f"seed {SEED}: of the pool")
for gid in (60, 12):
    (found,) = Member(gid, scans=True).finish()
    totals["AAA"].check(found, "afterwards")
t.equal(daemon.stop(), 0, "the daemon's end")
