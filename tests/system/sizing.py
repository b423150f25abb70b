# SPDX-License-Identifier: Apache-2.0
"""The sizes of docs/operating.md serve those for whom they were computed, and half of them starves the same farm.

Each worker reads a series of its own, so that no two hold the same block: the case that the formula is for.
"""
import os

import lib_stoup as t

WORKERS, KEPT, BLOCK, SPANS = 8, 2, 64 * 1024, 32
FORMULA = "size = 4/3 x workers x (kept + 1) x block"

with open(os.path.join(os.environ["STOUP_SOURCE_DIR"], "docs", "operating.md"), encoding="utf-8") as text:
    t.true(FORMULA in text.read(), f"operating.md has the formula that is tried here: {FORMULA}")

store, totals = t.make_store(96_000, {f"S{i}": 11 + i for i in range(WORKERS)}, block="64K")
size = 4 * WORKERS * (KEPT + 1) * BLOCK // 3



def farm(daemon, *options):
    """All keep their first blocks, and then each reads the rest of its series beside them."""
    workers = [t.Worker(daemon.pool, t.name_of(f"S{i}"), "--hold", KEPT, "--wait", "--gate", *options)
               for i in range(WORKERS)]
    for kept in range(KEPT):
        for worker in workers:
            t.equal(worker.line(), {"ready": True}, f"span {kept} of process {worker.pid}")
            if kept < KEPT - 1:
                worker.step()
    for worker in workers:
        for _ in range(SPANS):
            worker.step()
    return workers


def spoken(worker):
    """The results up to "scanned"."""
    return [line for line in worker.wait_scanned() if "ready" not in line]


daemon = t.Daemon(store, size)
workers = farm(daemon)
scanned = [spoken(worker) for worker in workers]
counters = daemon.settled()["counters"]
t.equal(counters["leases"], WORKERS * KEPT, "what they keep")
t.equal((counters["starved_failed"], counters["limit_bytes"]), (0, 0), "nobody is refused")
for i, worker in enumerate(workers):
    totals[f"S{i}"].check(scanned[i][0], f"worker {i} in a pool by the formula")
    t.true(worker.finish()[0]["held_unchanged"], f"worker {i}: what it kept")
t.equal(daemon.stop(), 0, "the daemon's end")

# In half of it the blocks that are kept fill the pool: nobody gets on, and is told who holds it.
daemon = t.Daemon(store, size // 2)
workers = farm(daemon, "--timeout", 10_000)
told = [line["text"] for worker in workers for line in worker.finish(expect=None) if line.get("text")]
t.true(any("starved" in text and "held by" in text for text in told), f"who holds the pool: {told}")
t.true(all("starved" in text or "did not come within" in text for text in told), f"nothing else is told: {told}")
counted = daemon.settled()["counters"]
t.true(counted["starved_failed"] + counted["timeouts"] > 0, f"counted: {counted}")
t.equal(daemon.stop(), 0, "the daemon's end")
