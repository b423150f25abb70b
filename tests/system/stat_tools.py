# SPDX-License-Identifier: Apache-2.0
"""stat, holders and log: they agree with what a farm counted itself, name who forgets to release, and say what is wrong with a
daemon that is stopped, dead or replaced."""
import json
import os
import re
import signal
import subprocess

import lib_stoup as t

SYMBOLS = {"AAA": 11, "BBB": 12, "CCC": 13}
store, _ = t.make_store(90_000, SYMBOLS)
NAMES = [t.name_of(symbol) for symbol in SYMBOLS]
HISTOGRAMS = {"miss_latency", "queue_wait", "read", "decode", "wake_up", "lease_age"}

# A file that is no volume: an error that the daemon logs once.
with open(os.path.join(store, "bad.stoup"), "wb") as out:
    out.write(bytes(8192))
daemon = t.Daemon(store, "32M")


def say(*argv, expect=0):
    return t.run([t.STOUP, *argv], expect=expect).stdout


def holders(*series):
    return json.loads(say("holders", "--json", daemon.pool, *series))


# ---- nothing has happened -------------------------------------------------------------------------
stat = daemon.stat()
t.equal((stat["state"], stat["problem"], stat["holders"], stat["consumers"]), ("running", "", [], []), "at the start")
t.equal(set(stat["histograms"]), HISTOGRAMS, "histograms")
for name, h in stat["histograms"].items():
    t.equal(h, {"unit": "ns", "count": 0, "sum": 0, "p50": 0, "p90": 0, "p99": 0, "p999": 0, "max": 0}, name)
t.true("nobody holds anything" in say("holders", daemon.pool), "nobody holds anything")

# ---- a farm -----------------------------------------------------------------------------------------
# The first one forgets to release: its leases are seen before anybody else's.
forgetful = t.Worker(daemon.pool, NAMES[0], "--hold", 2, "--wait")
forgetful.wait_scanned()
t.until(lambda: daemon.counter("leases") == 2, "the leases of the first worker")
farm = [(forgetful, NAMES[0], 2)]
for i in range(1, 8):
    farm.append((t.Worker(daemon.pool, NAMES[i % 3], "--hold", i, "--passes", 2, "--wait"), NAMES[i % 3], i))
own = {}
for worker, name, held in farm:
    if worker is not forgetful:
        own[worker.pid] = worker.wait_scanned()[-1]
        t.equal((own[worker.pid]["rc"], own[worker.pid]["held"]), (0, held), "a worker")
leases = sum(held for _, _, held in farm)
t.until(lambda: daemon.counter("leases") == leases, "all leases are seen")
stat = daemon.settled()
seen = {c["pid"]: c for c in stat["consumers"]}
t.equal(set(seen), {worker.pid for worker, _, _ in farm}, "consumers")
for pid, result in own.items():
    for member, counted in (("hits", "hits"), ("misses", "misses"), ("leases", "held")):
        t.equal(seen[pid][member], result[counted], f"{member} of {pid}")
    t.equal((seen[pid]["state"], seen[pid]["suspended"]), ("attached", False), "state")
for member in ("hits", "misses", "records", "timeouts", "wait_ns"):
    t.equal(stat["counters"][member], sum(c[member] for c in seen.values()), f"the sum of {member}")
counters, times = stat["counters"], stat["histograms"]
t.equal(times["miss_latency"]["count"], counters["misses"], "each miss is timed")
t.equal(times["wake_up"]["count"], counters["misses"], "each wake-up is timed")
t.equal(times["read"]["count"], counters["loads"], "each read is timed")
t.equal(times["decode"]["count"], counters["loads"], "each decode is timed")
t.equal(times["decode"]["sum"], counters["decode_ns"], "the time of all decodes")
t.true(0 < times["queue_wait"]["count"] <= counters["requests"], f"waits in the queue: {times['queue_wait']}")
for name, h in times.items():
    order = [h["p50"], h["p90"], h["p99"], h["p999"], h["max"]]
    t.true(order == sorted(order) and h["sum"] <= h["max"] * h["count"], f"{name}: {h}")
    t.true(h["count"] == 0 or h["max"] > 0 or name == "queue_wait", f"{name} is measured: {h}")
t.true(times["miss_latency"]["sum"] <= counters["wait_ns"], "misses wait no longer than consumers say")

# ---- who holds what ---------------------------------------------------------------------------------
# Blocks of 64 KiB hold 1170 records of 56 bytes; those at the begin of a series are full and its own.
BLOCK = 65_536 // 56 * 56
rows = holders()["holders"]
t.equal({(h["pid"], h["series"], h["leases"], h["bytes"], h["series_in_block"]) for h in rows},
        {(worker.pid, name, held, held * BLOCK, 1) for worker, name, held in farm}, "holders")
t.equal(len(rows), len(farm), "a row for each")
t.equal((rows[0]["pid"], rows[0]["command"], rows[0]["state"]), (forgetful.pid, "helper_worker", "attached"), "the oldest first")
ages = [h["oldest_lease_ns"] for h in rows]
t.true(ages == sorted(ages, reverse=True) and ages[-1] > 0, f"by age: {ages}")
distinct = sum(max(held for _, series, held in farm if series == name) for name in NAMES)
t.equal((holders()["leases"], holders()["leased_bytes"]), (leases, distinct * BLOCK), "leases, and bytes of each block once")
t.equal(counters["leased_bytes"], distinct * BLOCK, "the counter says the same")
for series, expected in ((NAMES[1], {NAMES[1]}), ("*/CCC/*", {NAMES[2]}), ("*", set(NAMES)), ("XTST.TEST/DDD/mbo", set())):
    t.equal({h["series"] for h in holders(series)["holders"]}, expected, f"holders of {series}")
lines = say("holders", daemon.pool, NAMES[0]).splitlines()
t.equal(lines[3].split(), ["pid", "command", "state", "leases", "bytes", "oldest", "series"], "the table")
t.true(re.fullmatch(rf" *{forgetful.pid} helper_worker +attached +2 +{2 * BLOCK} +[\d.]+ (ms|s) +{re.escape(NAMES[0])}", lines[4]),
       f"one command names it: {lines[4]!r}")
t.true("nobody holds a block of XTST.TEST/DDD/mbo" in say("holders", daemon.pool, "XTST.TEST/DDD/mbo"), "nobody holds that")

# A worker that is stopped by a signal releases nothing: it is named.
forgetful.process.send_signal(signal.SIGSTOP)
t.equal(t.until(lambda: [h for h in holders()["holders"] if h["state"] == "suspended"], "it is stopped")[0]["pid"],
        forgetful.pid, "a suspended worker")
forgetful.process.send_signal(signal.SIGCONT)

# ---- words ------------------------------------------------------------------------------------------
words = say("stat", daemon.pool)
t.true(words.startswith(f"pool {daemon.pool}: running (pid {daemon.process.pid}, "), words)
t.true(all(re.search(rf"^ *{pid} helper_worker", words, re.M) for pid in seen), f"each consumer: {words}")
table = say("stat", "--counters", daemon.pool)
for name in counters:
    t.true(re.search(rf"^{name} +\d+ \w+ +[A-Z].*\.$", table, re.M), f"{name} in {table}")
t.true("helper_worker" not in table, "the counters alone")
table = say("stat", "--histograms", daemon.pool)
for name in HISTOGRAMS:
    t.true(re.search(rf"^{name} +\d+( +[\d.]+ (ns|us|ms|s|h)){{6}}$", table, re.M), f"{name} in {table}")
whole = say("stat", "--all", daemon.pool)
t.true(all(part in whole for part in ("helper_worker", "starved_failed", "p99.9", "bad.stoup")), whole)
lines = say("stat", "--watch", "0.05", "--count", "3", daemon.pool).splitlines()
t.equal((len(lines), lines[0].split()[:4]), (4, ["time", "state", "users", "leases"]), f"{lines}")
t.equal([line.split()[1:4] for line in lines[1:]], [["running", "8", str(leases)]] * 3, "each look")
lines = say("stat", "--watch=0.05", "--count", "2", "--json", daemon.pool).splitlines()
t.equal([json.loads(line)["counters"]["hits"] for line in lines], [counters["hits"]] * 2, "an object on a line")

# ---- the log ------------------------------------------------------------------------------------------
log = json.loads(say("log", "--json", daemon.pool))
t.equal(log["errors"], daemon.stat()["errors"], "the same errors")
t.equal([e["count"] for e in log["errors"] if "bad.stoup" in e["text"]], [1], f"{log}")
t.true(re.search(r"Z  once\n  .*bad\.stoup", say("log", daemon.pool)), say("log", daemon.pool))

# ---- wrong usage --------------------------------------------------------------------------------------
for argv in (["stat", "a", "b"], ["stat", "--count", "2", "p"], ["stat", "--watch=0", "p"], ["stat", "--watch=x", "p"],
             ["stat", "--watch", "--count", "0", "p"], ["holders", "--all", "p"], ["holders", "p", "s", "t"],
             ["log", "p", "s"], ["log", "--counters", "p"]):
    done = t.run([t.STOUP, *argv], expect=2)
    t.true(f"stoup help {argv[0]}" in done.stderr and done.stdout == "", f"{argv}: {done}")
for command in ("stat", "holders", "log"):
    t.true("there is no pool" in t.run([t.STOUP, command, f"{daemon.pool}.no"], expect=1).stderr, f"{command} of no pool")

# ---- a daemon that is stopped, and one that was killed --------------------------------------------------
FORMS = (["stat"], ["stat", "--json"], ["stat", "--all"], ["holders"], ["holders", "--json"], ["log"], ["log", "--json"],
         ["stat", "--watch", "0.05", "--count", "2"])


def all_say(state, cure):
    for form in FORMS:
        text = say(*form, daemon.pool)
        t.true(state in text and cure in text, f"{form} of a {state} daemon: {text}")
    found = holders()["holders"]
    t.equal({(h["pid"], h["series"], h["leases"]) for h in found}, {(w.pid, name, held) for w, name, held in farm},
            f"holders of a {state} pool")


daemon.process.send_signal(signal.SIGSTOP)
t.until(lambda: daemon.stat()["state"] == "suspended", "the signal")
all_say("suspended", f"kill -CONT {daemon.process.pid}")
daemon.process.send_signal(signal.SIGCONT)
t.until(lambda: daemon.stat()["state"] == "running", "it runs on")
daemon.kill()
all_say("dead", "start it again")

# ---- what ended is counted on, and a successor is taken up ------------------------------------------------
watching = subprocess.Popen([t.STOUP, "stat", "--watch=0.05", "--json", daemon.pool], stdout=subprocess.PIPE, text=True)
t.equal(json.loads(watching.stdout.readline())["state"], "dead", "the first look")
for worker, _, _ in farm:
    worker.kill()
t.equal([c["state"] for c in t.Daemon.stat(daemon)["consumers"]], ["ended"] * 8, "what ended after the daemon")
t.equal({h["state"] for h in holders()["holders"]}, {"ended"}, "and holds nothing any more")
second = t.Daemon(store, "32M", pool=daemon.pool)
look = json.loads(watching.stdout.readline())
while look["state"] != "running":
    look = json.loads(watching.stdout.readline())
t.equal(look["pid"], second.process.pid, "the successor")
watching.kill()
watching.wait()
result = t.Worker(second.pool, NAMES[0], "--passes", 3).finish()[-1]
t.until(lambda: second.counter("consumers") == 0, "it detached")
stat = second.settled()
t.equal((stat["counters"]["hits"], stat["counters"]["misses"]), (result["hits"], result["misses"]), "counted after it ended")
t.equal(stat["histograms"]["miss_latency"]["count"], result["misses"], "its last miss as well")
t.equal(second.stop(), 0, "the end")

# ---- more series than a consumer has rows: none is lost -----------------------------------------------------
many = {f"S{i:02}": 100 + i for i in range(40)}
store, _ = t.make_store(120_000, many)
daemon = t.Daemon(store, "32M")
replay = subprocess.Popen([t.STOUP, "replay", daemon.pool, *map(t.name_of, many), "--speed", "0.001"], stdout=subprocess.DEVNULL)


def held():
    """What stat shows when the replay holds so many; it may take more between the writing of its tables, which then add up later."""
    stat = daemon.settled()
    (found,) = stat["consumers"] or [{"leases": 0}]
    return found["leases"] > 32 and sum(h["leases"] for h in stat["holders"]) == found["leases"] and stat


stat = t.until(held, "a replay of 40 series holds a block of each")
rows = stat["holders"]
t.equal({h["pid"] for h in rows}, {replay.pid}, "one process")
t.equal((len(rows), len({h["series"] for h in rows})), (32, 32), "its rows")
t.equal([h["series"] for h in rows if h["series"] not in map(t.name_of, many)], [""], "the others, without a name")
t.equal((sum(h["leases"] for h in rows), sum(h["bytes"] for h in rows)),
        (stat["consumers"][0]["leases"], stat["consumers"][0]["leased_bytes"]), "they add up")
t.true("(several series)" in say("holders", daemon.pool), say("holders", daemon.pool))
# A row without a name may be of whatever series is asked for.
t.true("" in {h["series"] for h in holders(t.name_of("S39"))["holders"]}, "it is not hidden")
replay.kill()
replay.wait()
t.until(lambda: holders()["holders"] == [], "rows go with their consumer")
t.equal(daemon.stop(), 0, "the end")

# ---- a store that was given by a path of the daemon's own directory is named so that others find it -----------------------------
relative = t.Daemon(os.path.basename(store), "1M", prefix=["env", "-C", os.path.dirname(store)])
stat = relative.stat()
t.equal(stat["store"], store, "the store")
t.equal([os.path.isfile(volume["path"]) for volume in stat["volumes"]], [True], f"its volume: {stat['volumes']}")
t.equal(relative.stop(), 0, "the end")
