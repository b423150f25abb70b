# SPDX-License-Identifier: Apache-2.0
"""Consumers and daemons that die between two stores, at each hook: nothing leaks, the next one goes on.

Needs a build with -DSTOUP_HOOKS=ON. Each hook here is a row of docs/crash-states.md; a test compares them.
"""
import json
import os
import signal
import subprocess
import sys

import lib_rescan
import lib_stoup as t

if "hooks" not in t.run([t.STOUPD, "--version"]).stdout:
    print("built without hooks: skipped")
    sys.exit(t.SKIP)

CONSUMER = ["lease.high", "lease.named", "lease.idle", "request.ticket", "request.pending"]
START = ["start.locked", "start.control", "region.named", "start.bound", "start.announced"]
DAEMON = ["attach.page", "attach.replied", "load.decoded", "grant.cell", "grant.done", "evict.cleared",
          "evict.retired"]
RESCAN = ["rescan.born", "rescan.retired", "volume.closed", "volume.emptied"]
STOP = ["stop.marked", "stop.unlinked"]

store, totals = t.make_store(60_000)
name = t.name_of("AAA")


def hooked(hook):
    return {**os.environ, "STOUP_HOOK": hook}


# A consumer dies at its hook, early and late; the daemon and the others never notice but by its death.
daemon = t.Daemon(store, "1M")
deaths = 0
for hook in CONSUMER:
    for at in (1, 7):
        # "lease.high" is passed once per cell, and a scan uses few cells.
        if hook == "lease.high" and at > 1:
            continue
        victim = t.Worker(daemon.pool, name, env=hooked(f"{hook}:{at}"))
        victim.process.stdin.close()
        t.equal(victim.process.wait(60), -signal.SIGKILL, f"{hook}:{at}: the consumer's end")
        deaths += 1
        t.until(lambda: daemon.counter("deaths") == deaths, f"{hook}: its death is seen")
        t.until(lambda: daemon.counter("leases") == 0, f"{hook}: its leases are gone", 2)
        (found,) = t.Worker(daemon.pool, name).finish()
        totals["AAA"].check(found, f"after {hook}:{at}")
daemon.stop()

# A daemon dies while it starts: the next one of that name just starts.
pool = f"h{os.getpid()}"
os.environ.pop("STOUP_HOOK", None)
for hook in START:
    os.environ["STOUP_HOOK"] = hook
    dying = t.Daemon(store, "1M", pool=pool, wait=False)
    t.equal(dying.process.wait(60), -signal.SIGKILL, f"{hook}: the daemon's end")
    del os.environ["STOUP_HOOK"]
    after = t.Daemon(store, "1M", pool=pool)
    (found,) = t.Worker(pool, name).finish()
    totals["AAA"].check(found, f"after {hook}")
    t.equal(after.stop(), 0, f"{hook}: the next daemon's end")
    t.equal(t.shm_names(pool), [], f"{hook}: names left")

# A daemon dies in the middle of its work: consumers are told, nothing wrong was read, the next one serves.
for hook in DAEMON:
    for at in (1, 5):
        os.environ["STOUP_HOOK"] = f"{hook}:{at}"
        dying = t.Daemon(store, "512K", pool=pool)
        del os.environ["STOUP_HOOK"]
        workers = [t.Worker(pool, name, "--timeout", 20000) for _ in range(5)]
        for worker in workers:
            worker.process.stdin.close()
            out = worker.process.stdout.read()
            # It was through before the daemon died, and right, or it is told.
            if worker.process.wait(60) == 0:
                totals["AAA"].check(json.loads(out), f"{hook}:{at}: a worker that was through")
                continue
            t.true("daemon" in out or "no pool" in out or "hung up" in out, f"{hook}:{at}: the reason: {out}")
        t.equal(dying.process.wait(60), -signal.SIGKILL, f"{hook}:{at}: the daemon's end")
        after = t.Daemon(store, "1M", pool=pool)
        (found,) = t.Worker(pool, name).finish()
        totals["AAA"].check(found, f"after {hook}:{at}")
        after.stop()
        t.equal(t.shm_names(pool), [], f"{hook}: names left")

# A daemon dies while it takes in a replaced volume: the store is as whole as before, and the next one serves it.
for hook in RESCAN:
    replaced = lib_rescan.new_store()
    lib_rescan.ingest(replaced, 0)
    os.environ["STOUP_HOOK"] = hook
    dying = t.Daemon(replaced, "1M", pool=pool)
    del os.environ["STOUP_HOOK"]
    holder = t.Worker(pool, name, "--hold", 1, "--wait")
    holder.wait_scanned()
    lib_rescan.ingest(replaced, 0, "--replace", salt=3)
    # A volume is closed when nobody uses the snapshot that had it.
    if hook.startswith("volume."):
        t.until(lambda: dying.counter("snapshot") == 2, f"{hook}: the next snapshot")
        t.true(holder.finish()[-1]["held_unchanged"], f"{hook}: bytes of a lease")
    t.equal(dying.process.wait(60), -signal.SIGKILL, f"{hook}: the daemon's end")
    if holder.process.poll() is None:
        t.true(holder.finish(expect=None)[-1]["held_unchanged"], f"{hook}: bytes of a lease")
    after = t.Daemon(replaced, "1M", pool=pool)
    lib_rescan.check_new(after, [(0, 3)], f"after {hook}")
    after.stop()
    t.equal(t.shm_names(pool), [], f"{hook}: names left")

# A daemon dies while it stops.
for hook in STOP:
    os.environ["STOUP_HOOK"] = hook
    dying = t.Daemon(store, "1M", pool=pool)
    del os.environ["STOUP_HOOK"]
    dying.process.send_signal(signal.SIGTERM)
    t.equal(dying.process.wait(60), -signal.SIGKILL, f"{hook}: the daemon's end")
    after = t.Daemon(store, "1M", pool=pool)
    (found,) = t.Worker(pool, name).finish()
    totals["AAA"].check(found, f"after {hook}")
    after.stop()
    t.equal(t.shm_names(pool), [], f"{hook}: names left")

# The document has a row for each.
rows = open(os.path.join(os.environ["STOUP_SOURCE_DIR"], "docs/crash-states.md"), encoding="utf-8").read()
for hook in CONSUMER + START + DAEMON + RESCAN + STOP:
    t.true(f"`{hook}`" in rows, f"docs/crash-states.md has no row for {hook}")
source = subprocess.run(["grep", "-rhoE", r'STOUP_HOOK\("[a-z.]+"\)', os.environ["STOUP_SOURCE_DIR"] + "/shm",
                         os.environ["STOUP_SOURCE_DIR"] + "/producer",
                         os.environ["STOUP_SOURCE_DIR"] + "/consumer"], capture_output=True, text=True).stdout
named = {line.split('"')[1] for line in source.splitlines()}
t.equal(named, set(CONSUMER + START + DAEMON + RESCAN + STOP), "hooks in the code and hooks tried here")
