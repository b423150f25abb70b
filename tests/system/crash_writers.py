# SPDX-License-Identifier: Apache-2.0
"""Writers of a store that die between two steps, at each hook: the old contents or the new ones, whole.

Needs a build with -DSTOUP_HOOKS=ON. A daemon that serves meanwhile goes on; the same command, given again,
ends what was begun.
"""
import os
import shutil
import signal
import subprocess

import lib_hooks as h
import lib_rescan as r
import lib_stoup as t

h.need_hooks()
os.environ.pop("STOUP_HOOK", None)
# Days of 168 KB in volumes of 64 KiB: a batch of several.
SEVERAL = ["--volume", "64K"]
pool = f"w{os.getpid()}"

base = r.new_store()
r.ingest(base, 0, *SEVERAL)
r.ingest(base, 1)

# What a writer does; what the store holds before and after it.
WORKS = {
    "add": (2, 0, [], [0, 1], [0, 1, 2]),
    "add several": (2, 0, SEVERAL, [0, 1], [0, 1, 2]),
    "replace": (1, 7, ["--replace"], [0, 1], [0, (1, 7)]),
    "replace several by several": (0, 7, ["--replace", *SEVERAL], [0, 1], [(0, 7), 1]),
}
passed = {hook: 0 for hook in h.WRITE + h.SWEEP}


def ingest(store, work, hook=None):
    """The writer's exit status."""
    day, salt, options, _, _ = WORKS[work]
    dbn = os.path.join(os.path.dirname(store), "in.dbn")
    t.dbn_file(dbn, {"AAA": 11}, (t.mbo(*row, sequence=i) for i, row in enumerate(r.rows_of(day, salt))))
    argv = [t.STOUP, "ingest", "--store", store, "--block", "64K", "--codec", "lz4", "--quiet", *options, dbn]
    return subprocess.run(argv, env=h.hooked(hook) if hook else None, stderr=subprocess.DEVNULL,
                          timeout=60).returncode


def records(totals):
    return {name: getattr(totals, name) for name in ("records", "price", "size", "first_key", "last_key")}


def contents(store, work, what):
    """"old" or "new", as a daemon serves it; anything else is a failure."""
    t.run([t.STOUP, "verify", store])
    _, _, _, before, after = WORKS[work]
    daemon = t.Daemon(store, "4M", pool=pool)
    (found,) = t.Worker(pool, r.NAME).finish()
    h.whole(daemon, what)
    t.equal(daemon.stop(), 0, f"{what}: the daemon's end")
    for word, days in (("old", before), ("new", after)):
        if all(found[name] == value for name, value in records(r.totals(days)).items()):
            return word
    return t.fail(f"{what}: neither the old nor the new contents: {found}")


def clean(store, work, what):
    """The same command again: it adds what is not there yet, or refuses what is there already."""
    t.true(ingest(store, work) in (0, 1), f"{what}: the writer after it")
    if contents(store, work, what) == "old":
        t.fail(f"{what}: the writer after it brought nothing")
    t.run([t.STOUP, "ingest", "--store", store, "--quiet", "--replace", os.path.join(
        os.path.dirname(store), "in.dbn"), "--block", "64K"])
    left = [name for name in os.listdir(store) if name.startswith(".tmp-")]
    t.equal(left, [], f"{what}: temporary files left")
    t.equal(contents(store, work, what), "new", f"{what}: the end")


def new_dead(work, hook):
    """A store whose writer died at the hook; None: it did not pass there."""
    store = r.new_store()
    shutil.copytree(base, store)
    status = ingest(store, work, hook)
    if status == 0:
        return None
    t.equal(status, -signal.SIGKILL, f"{work}, {hook}: the writer's end")
    passed[hook.split(":")[0]] += 1
    return store


# ---- a writer dies while it writes and publishes --------------------------------------------------------
for work in WORKS:
    for hook in h.WRITE + ["sweep.superseded"]:
        for at in (1, 2):
            what = f"{work}, {hook}:{at}"
            store = new_dead(work, f"{hook}:{at}")
            if not store:
                continue
            word = contents(store, work, what)
            if hook == "ingest.renamed":
                # Of several volumes the last one decides; one alone is the last one.
                t.equal(word, "old" if SEVERAL[0] in WORKS[work][2] else "new", what)
            else:
                t.equal(word, "new" if hook in ("ingest.published", "sweep.superseded") else "old", what)
            clean(store, work, what)

# ---- the writer after it dies while it sweeps up --------------------------------------------------------
for hook in ("sweep.member", "sweep.temporary"):
    for at in (1, 2):
        what = f"{hook}:{at}"
        store = new_dead("add several", "ingest.renamed:2")
        status = ingest(store, "add several", f"{hook}:{at}")
        if status == 0:
            continue
        t.equal(status, -signal.SIGKILL, f"{what}: the writer's end")
        passed[hook] += 1
        t.equal(contents(store, "add several", what), "old", what)
        clean(store, "add several", what)

# ---- a daemon serves while a writer dies ----------------------------------------------------------------
store = r.new_store()
shutil.copytree(base, store)
daemon = t.Daemon(store, "4M", pool=f"{pool}.s")
for hook in ("ingest.headed", "ingest.renamed", "ingest.published"):
    ingest(store, "replace several by several", hook)
    (found,) = t.Worker(daemon.pool, r.NAME).finish()
    days = [0, 1] if hook != "ingest.published" else [(0, 7), 1]
    r.totals(days).check(found, f"served after {hook}")
h.whole(daemon, "served meanwhile")
t.equal(daemon.stop(), 0, "the daemon's end")
t.equal(t.shm_names(pool), [], "names left")

t.equal([hook for hook, count in passed.items() if count == 0], [], "hooks that nobody passed")
