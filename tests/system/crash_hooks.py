# SPDX-License-Identifier: Apache-2.0
"""Consumers and daemons that die between two stores, at each hook: nothing leaks, whoever lives goes on.

Needs a build with -DSTOUP_HOOKS=ON. The hooks are in lib_hooks.py; crash_writers.py has those of writers.
"""
import json
import os
import signal
import subprocess

import lib_hooks as h
import lib_rescan
import lib_stoup as t

h.need_hooks()
os.environ.pop("STOUP_HOOK", None)
store, totals = t.make_store(60_000)
name = t.name_of("AAA")
pool = f"h{os.getpid()}"
HELPER_FORK = os.path.join(t.BIN, "helper_fork")


def killed(process, what):
    t.equal(process.wait(60), -signal.SIGKILL, f"{what}: the end")


def dying_daemon(hook, size="512K", served=store, wait=True, options=()):
    os.environ["STOUP_HOOK"] = hook
    daemon = t.Daemon(served, size, pool=pool, wait=wait, options=options)
    del os.environ["STOUP_HOOK"]
    return daemon


def forks(pool_name, env=None):
    return subprocess.Popen([HELPER_FORK, pool_name, name, "3"], env=env, stdout=subprocess.PIPE, text=True)


def both_halves(process, what):
    """Parent and child read the same, all of it, with what they held unchanged."""
    out = process.communicate(timeout=100)[0]
    t.equal(process.returncode, 0, f"{what}: a consumer that forked: {out}")
    halves = [json.loads(line) for line in out.splitlines()]
    t.equal([half["who"] for half in halves], ["child", "parent"], f"{what}: both halves")
    for half in halves:
        t.equal((half["records"], half["sum"], half["unchanged"]),
                (totals["AAA"].records, halves[0]["sum"], True), f"{what}: {half}")


# ---- a consumer dies; the daemon and the others notice nothing but its death ----------------------------
daemon = t.Daemon(store, "1M", pool=pool)
ends = 0
for hook in h.SCAN:
    for at in (1, 7):
        # The former is passed once per cell, and a scan uses few; the latter once.
        if hook in ("lease.high", "detach.said") and at > 1:
            continue
        # What is read ahead needs no request.
        ahead = ["--ahead", -1] if hook.startswith("request.") else []
        victim = t.Worker(pool, name, *ahead, env=h.hooked(f"{hook}:{at}"))
        victim.process.stdin.close()
        killed(victim.process, f"{hook}:{at}")
        ends += 1
        counter = "detaches" if hook == "detach.said" else "deaths"
        t.until(lambda: daemon.counter("deaths") + daemon.counter("detaches") == ends, f"{hook}: it is seen")
        t.true(daemon.counter(counter) > 0, f"{hook}: counted as {counter}")
        h.whole(daemon, f"{hook}:{at}")
        (found,) = t.Worker(pool, name).finish()
        ends += 1
        totals["AAA"].check(found, f"after {hook}:{at}")
daemon.stop()

# It dies when it has given up a request that a stopped daemon did not answer.
for hook in h.WAIT:
    daemon = t.Daemon(store, "1M", pool=pool)
    victim = t.Worker(pool, name, "--steps", "--timeout", 100, env=h.hooked(hook))
    t.equal(victim.line(), {"ready": True}, "attached")
    daemon.process.send_signal(signal.SIGSTOP)
    victim.process.stdin.close()
    killed(victim.process, hook)
    daemon.process.send_signal(signal.SIGCONT)
    h.whole(daemon, hook)
    (found,) = t.Worker(pool, name).finish()
    totals["AAA"].check(found, f"after {hook}")
    t.equal(daemon.stop(), 0, f"{hook}: the daemon's end")

# It dies between two daemons.
for hook in h.RENEW:
    daemon = t.Daemon(store, "1M", pool=pool)
    victim = t.Worker(pool, name, "--mark", 2, "--pause", 20000, env=h.hooked(hook))
    t.equal(victim.line(), "mark\n", "in the middle")
    daemon.kill()
    victim.process.stdin.close()
    if hook == "renew.retired":
        killed(victim.process, hook)
    daemon = t.Daemon(store, "1M", pool=pool)
    killed(victim.process, hook)
    h.whole(daemon, hook)
    daemon.stop()
    h.after(pool, store, name, totals["AAA"], hook)

# It dies between two series that it pins: what was pinned stays, and the same command makes it whole.
pair, pair_totals = t.make_store(20_000, {"AAA": 11, "BBB": 22})
daemon = t.Daemon(pair, "4M", pool=pool)
for hook in h.PIN:
    for at, left in ((1, 1), (2, 2)):
        done = t.run([t.STOUP, "pin", pool, "*"], expect=None, env=h.hooked(f"{hook}:{at}"))
        t.equal((done.returncode, done.stdout), (-signal.SIGKILL, ""), f"{hook}:{at}: the tool died")
        h.whole(daemon, f"{hook}:{at}")
        t.equal(daemon.counter("pins"), left, f"{hook}:{at}: what it came to")
        t.run([t.STOUP, "pin", pool, "*"])
        t.equal(daemon.counter("pins"), 2, f"{hook}:{at}: asked for again")
        t.run([t.STOUP, "unpin", "--all", pool])
        t.equal([daemon.settled()["counters"][key] for key in ("pins", "pin_bytes", "pinned_blocks")], [0] * 3, f"{hook}:{at}: nothing left")
t.equal(daemon.stop(), 0, "the end of a daemon without pins")

# It dies around a fork: as the parent with a copy that nobody comes for, as the child before and after it
# came. Copies wait 10 s for their child, all of them at the same time.
daemon = t.Daemon(store, "4M", pool=pool)
processes = [forks(pool, h.hooked(hook)) for hook in h.FORK]
for hook, process in zip(h.FORK, processes):
    out = process.communicate(timeout=60)[0]
    who = [json.loads(line)["who"] for line in out.splitlines()]
    if hook == "fork.prepared":
        t.equal((process.returncode, who), (-signal.SIGKILL, []), f"{hook}: the parent died")
    else:
        t.equal((process.returncode, who), (0, ["parent"]), f"{hook}: the child died, the parent goes on")
t.equal(daemon.counter("forks"), len(h.FORK), "copies")
h.whole(daemon, "forks")
t.equal(daemon.counter("forks_expired"), len(h.FORK) - 1, "copies that nobody came for")
both_halves(forks(pool), "after forks")
h.whole(daemon, "after forks")
daemon.stop()

# ---- a daemon dies while it starts: the next one of that name just starts -------------------------------
for hook in h.START:
    killed(dying_daemon(hook, wait=False).process, hook)
    h.after(pool, store, name, totals["AAA"], hook)

# ---- a daemon dies in the middle of its work: every worker goes on with the next one, and has all -------
for hook in h.SERVE:
    for at in (1, 5):
        dying = dying_daemon(f"{hook}:{at}")
        workers = [t.Worker(pool, name, "--hold", 1) for _ in range(5)]
        for worker in workers:
            worker.process.stdin.close()
        killed(dying.process, f"{hook}:{at}")
        daemon = t.Daemon(store, "512K", pool=pool)
        for worker in workers:
            (found,) = [json.loads(line) for line in worker.process.stdout]
            worker.process.wait(60)
            # Who was attached has everything, once. Who was not is told.
            if "records" in found:
                totals["AAA"].check(found, f"{hook}:{at}: a worker")
                t.equal((found["rc"], found["gaps"]), (0, 0), f"{hook}:{at}: {found['text']}")
                continue
            t.true("daemon" in found["text"] or "no pool" in found["text"] or "hung up" in found["text"],
                   f"{hook}:{at}: the reason: {found}")
        h.whole(daemon, f"{hook}:{at}")
        daemon.stop()
        h.after(pool, store, name, totals["AAA"], f"{hook}:{at}")

# ---- a daemon dies while requests wait for room in their quota: the next one has room, or they wait there -----------------
options = ["--quota", f"user:{os.geteuid()}=128K"]
for hook in h.QUOTA:
    for at in (1, 5):
        dying = dying_daemon(f"{hook}:{at}", "2M", options=options)
        holder = t.Worker(pool, name, "--hold", 2, "--wait", "--to", t.T0 + 2_000_000)
        holder.wait_scanned()
        workers = [t.Worker(pool, name, "--steps") for _ in range(5)]
        for worker in workers:
            t.equal(worker.line(), {"ready": True}, "attached")
        for worker in workers:
            worker.process.stdin.close()
        if hook == "quota.left":
            t.until(lambda: dying.settled()["quotas"][0]["waiting"] == 5, f"{hook}:{at}: all wait")
            holder.process.stdin.close()
        killed(dying.process, f"{hook}:{at}")
        daemon = t.Daemon(store, "2M", pool=pool, options=options)
        for worker in workers:
            (found,) = worker.finish()
            totals["AAA"].check(found, f"{hook}:{at}: a worker")
            t.equal((found["rc"], found["gaps"]), (0, 0), f"{hook}:{at}: {found['text']}")
        t.true(holder.finish(expect=None)[-1]["held_unchanged"], f"{hook}:{at}: what was held")
        h.whole(daemon, f"{hook}:{at}")
        (quota,) = daemon.settled()["quotas"]
        t.equal((quota["leased_bytes"], quota["waiting"]), (0, 0), f"{hook}:{at}: the quota")
        t.equal(daemon.stop(), 0, f"{hook}:{at}: the next daemon's end")

# ---- a daemon dies when it has pinned, and before it says so: the tool is told, and the next daemon tells of it -----------
for hook in h.PINNED:
    dying = dying_daemon(hook, "4M", pair)
    done = t.run([t.STOUP, "pin", pool, "*"], expect=1)
    killed(dying.process, hook)
    t.true(pool in done.stderr and done.stdout == "", f"{hook}: the tool: {done.stderr}")
    daemon = t.Daemon(pair, "4M", pool=pool)
    listed = json.loads(t.run([t.STOUP, "pin", "--list", "--json", pool]).stdout)
    t.equal((listed["pins"], listed["lost"]), ([], 1), f"{hook}: the next daemon")
    t.equal(daemon.stop(), 0, f"{hook}: the next daemon's end")
    h.after(pool, pair, name, pair_totals["AAA"], hook)

# ---- a daemon dies while it copies leases for a child: both halves go on with the next one --------------
for hook in h.COPY:
    dying = dying_daemon(hook, "4M")
    process = forks(pool)
    killed(dying.process, hook)
    daemon = t.Daemon(store, "4M", pool=pool)
    both_halves(process, hook)
    h.whole(daemon, hook)
    daemon.stop()
    h.after(pool, store, name, totals["AAA"], hook)

# ---- a daemon dies while it takes in a replaced volume: the store is as whole as before -----------------
for hook in h.RESCAN:
    replaced = lib_rescan.new_store()
    lib_rescan.ingest(replaced, 0)
    dying = dying_daemon(hook, "1M", replaced)
    holder = t.Worker(pool, name, "--hold", 1, "--wait")
    holder.wait_scanned()
    lib_rescan.ingest(replaced, 0, "--replace", salt=3)
    # A volume is closed when nobody uses the snapshot that had it.
    if hook.startswith("volume."):
        t.until(lambda: dying.counter("snapshot") == 2, f"{hook}: the next snapshot")
        t.true(holder.finish()[-1]["held_unchanged"], f"{hook}: bytes of a lease")
    killed(dying.process, hook)
    if holder.process.poll() is None:
        t.true(holder.finish(expect=None)[-1]["held_unchanged"], f"{hook}: bytes of a lease")
    h.after(pool, replaced, name, lib_rescan.totals([(0, 3)]), hook)

# ---- a daemon dies while it stops -----------------------------------------------------------------------
for hook in h.STOP:
    dying = dying_daemon(hook, "1M")
    dying.process.send_signal(signal.SIGTERM)
    killed(dying.process, hook)
    h.after(pool, store, name, totals["AAA"], hook)
