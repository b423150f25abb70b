# SPDX-License-Identifier: Apache-2.0
"""compact, rm and verify --repair that die between two steps, at each hook: before or after, whole.

Needs a build with -DSTOUP_HOOKS=ON. The same command, given again, ends what was begun.
"""
import os
import signal
import subprocess

import lib_care as c
import lib_hooks as h
import lib_stoup as t

h.need_hooks()
os.environ.pop("STOUP_HOOK", None)
NAME = t.name_of("AAA")
SEVERAL = ["--volume", "128K"]

base = c.new_store()
c.ingest(base, 0)
c.ingest(base, 1, *SEVERAL)
c.ingest(base, 2)
broken = c.copy_of(base)
first = c.info(broken)["volumes"][0]["path"]
c.flip(first, c.footer_offset(first) - 3000)
member = next(v["path"] for v in c.info(broken)["volumes"] if v["batch_idx"] == 1)
c.flip(member, c.footer_offset(member) + 100)

WORKS = {
    "compact": (base, ["compact", "--quiet"]),
    "compact to several": (base, ["compact", "--quiet", "--block", "128K", *SEVERAL]),
    "rm": (base, ["rm", "--quiet", "--to", str(t.T0 + c.DAY), "STORE", NAME]),
    "rm all": (base, ["rm", "--quiet", "--yes", "STORE", "*"]),
    "repair": (broken, ["verify", "--repair", "--quiet"]),
}
passed = {hook: 0 for hook in h.WRITE + h.REPAIR + ["sweep.superseded"]}


def command(work, store, hook=None):
    words = WORKS[work][1]
    argv = [t.STOUP, *[store if word == "STORE" else word for word in words], *([] if "STORE" in words else [store])]
    done = subprocess.run(argv, env=h.hooked(hook) if hook else None, capture_output=True, text=True, timeout=60)
    t.true(done.returncode in (0, 1, -signal.SIGKILL), f"{argv}: {done.returncode} {done.stderr}")
    return done.returncode


def ids(store):
    return sorted(volume["id"] for volume in c.info(store)["volumes"])


def check(work, store, references, what):
    """Before or after: by the volumes that readers take, and by each record."""
    if work == "repair":
        return
    word = "before" if ids(store) == ids(references["before"]) else "after"
    t.run([t.STOUP, "verify", store])
    if work != "rm all" or word == "before":
        c.must_be_same(store, references[word], f"{what}: {word}")
    else:
        t.equal(c.info(store)["series"], [], f"{what}: nothing is left")
    expected = "after" if hook_of(what) in ("ingest.published", "sweep.superseded") else "before"
    if hook_of(what) == "ingest.renamed":
        expected = "before" if work == "compact to several" else "after"
    t.equal(word, expected, what)


def hook_of(what):
    return what.split(", ")[1].split(":")[0]


for work, (start, _) in WORKS.items():
    references = {"before": start, "after": c.copy_of(start)}
    t.equal(command(work, references["after"]), 0, work)
    for hook in passed:
        for at in (1, 2):
            what = f"{work}, {hook}:{at}"
            store = c.copy_of(start)
            status = command(work, store, f"{hook}:{at}")
            if status == 0:
                continue
            t.equal(status, -signal.SIGKILL, f"{what}: the end")
            passed[hook] += 1
            check(work, store, references, what)
            # Given again, it ends what was begun; rm of what is gone finds nothing.
            again = command(work, store)
            t.true(again == 0 or work.startswith("rm"), f"{what}: the next one")
            if work.startswith("rm"):
                t.run([t.STOUP, "verify", store])
            if work != "rm all":
                c.must_be_same(store, references["after"], f"{what}: the end")
            t.equal(c.leftovers(store), [], f"{what}: temporary files left")
            t.run([t.STOUP, "verify", store])
            if work == "repair":
                t.equal(sorted(n for n in os.listdir(store) if ".damaged" in n),
                        sorted(n for n in os.listdir(references["after"]) if ".damaged" in n), f"{what}: kept beside")

t.equal([hook for hook, count in passed.items() if count == 0], [], "hooks that nobody passed")
