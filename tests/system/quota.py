# SPDX-License-Identifier: Apache-2.0
"""Quotas: what the consumers of a group lease together stays within it, others are not touched, and nobody who waits is lost."""
import errno
import json
import os
import re
import struct
import subprocess
import sys
import time

import lib_stoup as t
import lib_wire as w

store, totals = t.make_store(120_000)  # 6.7 MB in blocks of 64 KiB
name = t.name_of("AAA")

# ---- the command line ---------------------------------------------------------------------------------------------------
for value, part in (("games", "GROUP=SIZE"), ("=1M", "GROUP=SIZE"), ("nosuch=1M", "--quota 'nosuch=1M': there is no group 'nosuch'"),
                    ("user:nosuch=1M", "there is no user 'nosuch'"), ("0=", "a size such as 64M"), ("0=0", "more than 0 is wanted"),
                    ("0=101%", "from 0% to 100%"), ("0=-1", "a size such as 64M"), ("x" * 64 + "=1M", "GROUP=SIZE")):
    said = t.run([t.STOUPD, "--store", store, "--pool", "x", "--quota", value], expect=2).stderr
    t.true("--quota" in said and part in said, f"{value}: {said}")
many = [word for number in range(17) for word in ("--quota", f"{5000 + number}=1M")]
said = t.run([t.STOUPD, "--store", store, "--pool", "x", *many], expect=2).stderr
t.true("more than 16" in said, said)
# A second one of the same group would never count.
for first, second, whose in (("games", "60", "group"), ("group:60", "games", "group"), ("user:0", "user:root", "user")):
    said = t.run([t.STOUPD, "--store", store, "--pool", "x", "--quota", f"{first}=1M", "--quota", f"{second}=2M"], expect=2).stderr
    t.true(f"--quota '{second}=2M': its {whose} has one already, '{first}'; mend: " in said, said)

if os.geteuid() != 0:
    print("needs root to play other groups: skipped")
    sys.exit(t.SKIP)

GAMES, MAN = 60, 12


class Member(t.Worker):
    """A worker whose process is of these groups."""

    def __init__(self, pool, series, *options, gid=GAMES, groups=None):
        prefix = ["setpriv", f"--regid={gid}", f"--groups={groups}" if groups else "--clear-groups"]
        self.process = subprocess.Popen([*prefix, t.WORKER, *map(str, options), pool, series], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)


def quotas(daemon):
    return {quota["name"]: quota for quota in daemon.settled()["quotas"]}


def within(daemon):
    """No quota is exceeded, at this look."""
    stat = daemon.stat()
    for quota in stat["quotas"]:
        t.true(quota["leased_bytes"] <= quota["bytes_max"], f"{quota}")
    return stat


# ---- eight workers of two groups, and one of none ---------------------------------------------------------------------------
daemon = t.Daemon(store, "2M", options=["--quota", "games=128K", "--quota", f"{MAN}=10%"])
found = quotas(daemon)
t.equal((found["games"]["id"], found["games"]["kind"], found["games"]["bytes_max"]), (GAMES, "group", 131072), "a quota by name")
t.equal((found[str(MAN)]["id"], found[str(MAN)]["bytes_max"]), (MAN, 2**21 // 10), "a quota by number, a part of the pool")
workers = [Member(daemon.pool, name, "--steps", "--pause", 1000, gid=GAMES if i % 2 else MAN) for i in range(8)]
free = t.Worker(daemon.pool, name)
for worker in workers:
    t.equal(worker.line(), {"ready": True}, "attached")
t.equal({quota["id"]: quota["consumers"] for quota in daemon.settled()["quotas"]}, {GAMES: 4, MAN: 4}, "who counts to which")
for worker in workers:
    worker.step()
while any(worker.process.poll() is None for worker in workers):
    within(daemon)
    time.sleep(0.01)
for worker in [*workers, free]:
    (result,) = worker.finish()
    totals["AAA"].check(result, "a worker under a quota")
t.equal(sum(quota["limit_quota"] for quota in quotas(daemon).values()), daemon.counter("limit_quota"), "by group and in all")
t.equal((daemon.counter("timeouts"), daemon.counter("requests_failed"), daemon.counter("quota_dropped")), (0, 0, 0), "nobody failed")
words = t.run([t.STOUP, "stat", daemon.pool]).stdout
t.true("  quota of group games: 0.0 of 0.1 MiB leased by 0 consumers, requests that wait: 0," in words, words)
daemon.stop()

# ---- used up: refused with the numbers, others go on, a release lets the next one go ------------------------------------------
daemon = t.Daemon(store, "4M", options=["--quota", "games=256K", "--lease-bytes", "4M"])
holder = Member(daemon.pool, name, "--hold", 3, "--wait", "--to", t.T0 + 3_000_000)
holder.wait_scanned()
held = quotas(daemon)["games"]
t.true(3 * 57_000 < held["leased_bytes"] <= 262_144, f"held: {held}")


def refused():
    """What a greedy one is told; another error where it had no processor until the deadline."""
    (said,) = Member(daemon.pool, name, "--hold", 3, "--timeout", 3000, "--from", t.T0 + 30_000_000).finish(expect=1)
    return said if said["rc"] == -errno.EDQUOT else None


result = t.until(refused, "refused")
for part in (f"group 'games' leases ", f" of the 262144 bytes of its quota in pool '{daemon.pool}', and process ",
             "mend: release there, or stoupd --quota games=SIZE"):
    t.true(part in result["text"], f"{part!r} in {result['text']}")
leased, needed = (int(result["text"].split(word)[1].split(" ")[0]) for word in ("leases ", "needs "))
t.true(held["leased_bytes"] <= leased <= 262_144 < leased + needed, result["text"])
t.true(daemon.counter("limit_quota") >= 1, "counted")
(result,) = t.Worker(daemon.pool, name, "--timeout", 60_000).finish()
totals["AAA"].check(result, "a worker of another group")
(result,) = Member(daemon.pool, name, gid=MAN, groups=str(GAMES), *[]).finish(expect=0)
totals["AAA"].check(result, "a member by a supplementary group, with one block at a time")
# Beside a holder of four blocks there is room for nothing.
second = Member(daemon.pool, name, "--hold", 1, "--wait", "--from", t.T0 + 50_000_000, "--to", t.T0 + 50_001_000)
second.wait_scanned()
waiter = Member(daemon.pool, name, "--timeout", 60000)
t.until(lambda: quotas(daemon)["games"]["waiting"] == 1, "a request waits")
within(daemon)
(rest,) = holder.finish()
t.true(rest["held_unchanged"], "what was held never changed")
(result,) = waiter.finish()
totals["AAA"].check(result, "it goes on when others release")
second.kill()
t.until(lambda: quotas(daemon)["games"]["leased_bytes"] == 0, "who is killed holds nothing")

# Waiters that are killed, and a daemon that stops while some wait.
holder = Member(daemon.pool, name, "--hold", 4, "--wait", "--to", t.T0 + 4_000_000)
holder.wait_scanned()
waiters = [Member(daemon.pool, name, "--timeout", 60000, "--reconnect", 300) for _ in range(4)]
t.until(lambda: quotas(daemon)["games"]["waiting"] == 4, "four wait")
for waiter in waiters[:2]:
    waiter.kill()
t.until(lambda: quotas(daemon)["games"]["waiting"] == 2, "two of them were killed")
t.equal(daemon.stop(), 0, "exit status of a daemon with waiters")
for waiter in waiters[2:]:
    (result,) = waiter.finish(expect=None)
    t.equal(result["rc"], -errno.EPIPE, f"who waited learns of its end: {result}")
holder.finish()

# ---- the first that fits counts; users ------------------------------------------------------------------------------------------
daemon = t.Daemon(store, "2M", options=["--quota", "user:65534=64K", "--quota", f"group:{GAMES}=1M", "--quota", "user:root=512K"])
member = Member(daemon.pool, name, "--hold", 1, "--wait", "--to", t.T0 + 1000)
other = Member(daemon.pool, name, "--hold", 1, "--wait", "--to", t.T0 + 1000, gid=MAN)
member.wait_scanned()
other.wait_scanned()
t.equal({key: quota["consumers"] for key, quota in quotas(daemon).items()},
        {"user:65534": 0, f"group:{GAMES}": 1, "user:root": 1}, "the first that fits")
t.true("quota of user:root: " in t.run([t.STOUP, "stat", daemon.pool]).stdout, "in words")
member.finish()
other.finish()
# A block that is longer than the quota: one is always possible.
(result,) = t.Worker(daemon.pool, name).finish()
totals["AAA"].check(result, "within a quota")
daemon.stop()
daemon = t.Daemon(store, "2M", options=["--quota", "user:root=4K"])
workers = [t.Worker(daemon.pool, name) for _ in range(3)]
for worker in workers:
    (result,) = worker.finish()
    totals["AAA"].check(result, "one block at a time, whatever the quota is")
daemon.stop()

# ---- a fork, and a merge --------------------------------------------------------------------------------------------------------
daemon = t.Daemon(store, "4M", options=["--quota", "user:root=1M"])
done = t.run([os.path.join(t.BIN, "helper_fork"), daemon.pool, name, "3"])
halves = [json.loads(line) for line in done.stdout.splitlines()]
t.equal([(half["who"], half["records"], half["unchanged"]) for half in halves],
        [(who, totals["AAA"].records, True) for who in ("child", "parent")], "both halves of a fork under a quota")
t.until(lambda: quotas(daemon)["user:root"]["leased_bytes"] == 0, "nothing is left of copies")
daemon.stop()
pair, _ = t.make_store(40_000, {"AAA": 11, "BBB": 22})
daemon = t.Daemon(pair, "4M", options=["--quota", "user:root=256K"])
merged = t.run([t.STOUP, "cat", "--merge", "--count", daemon.pool, "*"]).stdout
t.equal(merged.strip().splitlines()[-1], "40000", f"a merge under a quota: {merged}")
rows = t.run([t.STOUP, "cat", "--merge", daemon.pool, "*"]).stdout
t.equal(rows.count("\n"), 40_001, "rows of a merge under a quota")
daemon.stop()
# One that holds more at once than its quota would wait for itself: refused before its first block, and what is named mends it.
dozen, _ = t.make_store(24_000, {f"S{i}": 11 + i for i in range(12)})
daemon = t.Daemon(dozen, "16M", options=["--quota", "user:root=256K", "--lease-bytes", "16M"])
said = t.run([t.STOUP, "cat", "--merge", daemon.pool, "*"], expect=1).stderr
found = re.search(r"a merge of 12 series holds (\d+) bytes at once, quota 'user:root' of pool '\S+' is 262144: merge fewer, or stoupd "
                  r"--quota user:root=(\d+)", said)
t.true(found and found[1] == found[2] and int(found[1]) > 262_144, said)
t.equal((daemon.counter("requests"), daemon.counter("limit_quota")), (0, 0), "nothing was asked for")
daemon.stop()
daemon = t.Daemon(dozen, "16M", options=["--quota", f"user:root={found[2]}", "--lease-bytes", "16M"])
rows = t.run([t.STOUP, "cat", "--merge", daemon.pool, "*"]).stdout
t.equal(rows.count("\n"), 24_001, "with the quota that was named")
daemon.stop()

# ---- who takes leases without asking -----------------------------------------------------------------------------------------------
daemon = t.Daemon(store, "2M", options=["--quota", "user:root=128K", "--lease-bytes", "2M"])
peer = w.Peer(daemon.pool)
reply = peer.hello()
page = w.Page(reply["fds"])
page.request(0, 0, 0, 0)
t.until(lambda: page.slot_done(0), "an answer")
word = page.cell(0)
t.true(word and word < w.TICKET_BIT, "granted")
page.halves[w.CELL_HIGH // 4] = 8
for cell in range(1, 6):
    page.words[w.CELLS // 8 + cell] = word
t.until(lambda: quotas(daemon)["user:root"]["leased_bytes"] > 131_072 or daemon.counter("quota_dropped"), "seen at the tick")
t.until(lambda: daemon.counter("quota_dropped") == 1, "who leases without asking is disconnected")
t.true("without asking, and its quota 'user:root' of 131072 bytes is used up" in t.run([t.STOUP, "log", daemon.pool]).stdout, "the log")
peer.close()
# More requests than slots, all of them beyond the quota: bounded, answered.
peer = w.Peer(daemon.pool)
page = w.Page(peer.hello()["fds"])
for slot in range(64):
    page.write_request(slot, slot, 0, slot)
page.post(2**64 - 1)
t.until(lambda: page.slot_done(0), "the first is granted")
t.until(lambda: quotas(daemon)["user:root"]["waiting"] >= 61, "the others wait")
within(daemon)
page.release(0)
t.until(lambda: sum(page.slot_done(slot) for slot in range(64)) >= 3, "a release lets the next one go")
peer.close()
t.until(lambda: daemon.counter("consumers") == 1 or daemon.counter("consumers") == 0, "hung up")
page.detach()
t.until(lambda: daemon.counter("consumers") == 0, "gone")
t.equal(quotas(daemon)["user:root"]["waiting"], 0, "nobody waits")
(result,) = t.Worker(daemon.pool, name).finish()
totals["AAA"].check(result, "a sound daemon")
t.equal(daemon.stop(), 0, "exit status")
