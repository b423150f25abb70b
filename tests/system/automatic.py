# SPDX-License-Identifier: Apache-2.0
"""A path with a slash joins the automatic daemon of that store: one for all, ended after the last."""
import json
import os

import lib_stoup as t

runtime = t.temp_dir()
os.environ["XDG_RUNTIME_DIR"] = runtime
store, totals = t.make_store(60_000, directory=t.temp_dir())
path = store + "/"
name = t.name_of("AAA")

# Sixteen workers at once, none of which found a daemon: they share one.
keeper = t.Worker(path, name, "--wait")
workers = [t.Worker(path, name, "--wait") for _ in range(15)]
for worker in workers:
    (found,) = worker.wait_scanned()
    totals["AAA"].check(found, "started together")
keeper.wait_scanned()
for worker in workers:
    worker.finish()
stat = json.loads(t.run([t.STOUP, "stat", "--json", path]).stdout)
t.equal(stat["state"], "running", "it lingers")
t.equal(stat["counters"]["attaches"], 16, "attached to one daemon")
t.equal(stat["counters"]["loads_max"], 1, "each block loaded once")
t.equal(stat["backing"], "memfd", "backing")
pid = stat["pid"]

# The same store by another path is the same daemon.
link = os.path.join(runtime, "link")
os.symlink(store, link)
(found,) = t.Worker(link + "/", name).finish()
totals["AAA"].check(found, "through a link")
t.equal(json.loads(t.run([t.STOUP, "stat", "--json", link + "/"]).stdout)["pid"], pid, "the same process")
keeper.finish()

# It ends after the last consumer, and leaves no name.
t.until(lambda: not os.path.exists(f"/proc/{pid}"), "the automatic daemon ends by itself")
t.equal([n for n in os.listdir("/dev/shm") if "auto-" in n and f"stoup.{os.geteuid()}." in n
         and stat["pool"] in n], [], "names left")

# A daemon serves the store that it was started for: when that was moved, and another one has its place, each path gives
# its own records, whether the daemon has a consumer or lingers.
for held in (False, True):
    place = t.temp_dir()
    first, first_totals = t.make_store(3_000, directory=place)
    keeper = t.Worker(first + "/", name, "--wait")
    keeper.wait_scanned()
    if not held:
        keeper.finish()
    away = os.path.join(runtime, f"away{held}")
    os.rename(first, away)
    second, second_totals = t.make_store(5_000, directory=place)
    t.equal(second, first, "the same path")
    (found,) = t.Worker(away + "/", name).finish()
    first_totals["AAA"].check(found, f"moved away, held {held}")
    (found,) = t.Worker(second + "/", name).finish()
    second_totals["AAA"].check(found, f"in its place, held {held}")
    if held:
        keeper.finish()

# What keeps it from starting is told to the caller.
nowhere = t.run([t.WORKER, os.path.join(runtime, "nowhere") + "/", name], expect=1)
t.true("nowhere" in nowhere.stdout, nowhere.stdout)
