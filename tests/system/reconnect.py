# SPDX-License-Identifier: Apache-2.0
"""The daemon is killed in the middle of scans: each goes on with the next one at the same record.

The same store; the same records in other blocks, as after a compact; other days before and behind; other
content, which is told; days that are sorted and days that are not; behind a damaged block. By name, and by
the store's path.
"""
import errno
import json
import os
import signal

import lib_stoup as t

COUNT = 60_000
SYMBOLS = {"AAA": 11}
NAME = t.name_of("AAA")
WORKERS = 4


def ingest(store, rows, *options):
    """Ingest rows of (ident, key, price, size)."""
    path = os.path.join(t.temp_dir(), "in.dbn")
    t.dbn_file(path, SYMBOLS, (t.mbo(*row, sequence=i) for i, row in enumerate(rows)))
    t.run([t.STOUP, "ingest", "--store", store, "--quiet", *options, path])


def totals_of(*days):
    totals = t.Totals()
    for rows in days:
        for _, key, price, size in rows:
            totals.add(key, price, size)
    return totals


def daemon_pid(path):
    return json.loads(t.run([t.STOUP, "stat", "--json", path]).stdout)["pid"]


def start_workers(pool, cnt=WORKERS, options=()):
    """Workers that are in the middle of their scans."""
    workers = [t.Worker(pool, NAME, "--pause", 20000, "--mark", 5 + i, "--hold", 1, "--wait", "--reconnect", 120_000, *options)
               for i in range(cnt)]
    for worker in workers:
        t.equal(worker.line(), "mark\n", "in the middle")
    return workers


def go_on(workers):
    """They find that their daemon is gone, while there is none or when the next one is there."""
    for worker in workers:
        worker.step()


def results(workers):
    found = []
    for worker in workers:
        (result,) = worker.wait_scanned()
        t.true(worker.finish()[0]["held_unchanged"], "the span of the dead daemon's pool is unchanged")
        found.append(result)
    return found


def same(found, totals, what):
    t.equal(found["rc"], 0, f"{what}: {found['text']}")
    totals.check(found, what)
    t.equal(found["gaps"], 0, f"{what}: ordinals follow each other")
    t.equal(found["reconnects"], 1, f"{what}: daemons gone on to")


day = list(t.mbo_records(COUNT, SYMBOLS))
store = os.path.join(t.temp_dir(), "store")
ingest(store, day, "--block", "64K")
totals = totals_of(day)

# The same store, killed and stopped in order.
daemon = t.Daemon(store, "16M")
workers = start_workers(daemon.pool)
daemon.kill()
go_on(workers)
again = t.Daemon(store, "16M", pool=daemon.pool)
for result in results(workers):
    same(result, totals, "the same store")
t.equal(again.settled()["counters"]["leases"], 0, "leases left")
workers = start_workers(daemon.pool)
again.stop()
go_on(workers)
daemon = t.Daemon(store, "16M", pool=daemon.pool)
for result in results(workers):
    same(result, totals, "after an orderly stop")

# The records in other blocks.
workers = start_workers(daemon.pool)
daemon.kill()
go_on(workers)
other = os.path.join(t.temp_dir(), "other")
ingest(other, day, "--block", "128K")
daemon = t.Daemon(other, "16M", pool=daemon.pool)
for result in results(workers):
    same(result, totals, "in other blocks")

# Extended by an earlier and a later day: the rest and the later day follow, the earlier one does not.
before = [(ident, key - 3_600_000_000_000, price, size) for ident, key, price, size in day[:5000]]
after = [(ident, key + 3_600_000_000_000, price, size) for ident, key, price, size in day[:5000]]
workers = start_workers(daemon.pool)
daemon.kill()
go_on(workers)
ingest(other, before, "--block", "64K")
ingest(other, after, "--block", "64K")
daemon = t.Daemon(other, "16M", pool=daemon.pool)
for result in results(workers):
    t.equal(result["rc"], 0, result["text"])
    totals_of(day, after).check(result, "extended by two days")
    t.equal(result["gaps"], 1, "ordinals moved once: by the earlier day")

# Other content under the same keys: told, and nothing of it is handed out as if it were the rest.
workers = start_workers(daemon.pool)
daemon.kill()
go_on(workers)
ingest(other, [(ident, key, price + 250_000_000, size) for ident, key, price, size in before + day + after],
       "--block", "64K", "--replace")
daemon = t.Daemon(other, "16M", pool=daemon.pool)
for worker in workers:
    (result,) = worker.wait_scanned()
    t.equal(result["rc"], -errno.ESTALE, f"another store: {result}")
    t.true("is another one" in result["text"] and NAME in result["text"], result["text"])
    t.true(result["records"] < COUNT, "nothing of it was handed out")
    worker.finish(expect=1)

# A sorted day, and one whose records kept their order: all workers are in the latter.
mixed = os.path.join(t.temp_dir(), "mixed")
kept = [row for i in range(0, len(day), 50) for row in reversed(day[i:i + 50])]
ingest(mixed, before[:1000], "--block", "64K")
ingest(mixed, kept, "--block", "64K", "--order", "keep")
second = t.Daemon(mixed, "16M")
workers = start_workers(second.pool)
second.kill()
go_on(workers)
second = t.Daemon(mixed, "16M", pool=second.pool)
for result in results(workers):
    same(result, totals_of(before[:1000], kept), "sorted and kept")
second.stop()

# All records have one key, and the first of them are in a damaged block, which was skipped.
ties = os.path.join(t.temp_dir(), "ties")
ingest(ties, [(ident, t.T0, price, size) for ident, _, price, size in day], "--block", "64K",
       "--codec", "none")
(volume,) = [entry.path for entry in os.scandir(ties) if entry.name.endswith(".stoup")]
with open(volume, "r+b") as file:
    file.seek(4096 + 100)
    file.write(b"\xff")
second = t.Daemon(ties, "16M")
workers = start_workers(second.pool, options=["--skip"])
second.kill()
go_on(workers)
second = t.Daemon(ties, "16M", pool=second.pool)
for result in results(workers):
    t.equal(result["rc"], 0, f"behind a damaged block: {result}")
    t.true(result["skipped"] > 0, f"the first block is damaged: {result}")
    t.equal(result["records"] + result["skipped"], COUNT, "records read and left out")
    t.equal(result["reconnects"], 1, "daemons gone on to")
second.stop()

# None comes: both the end and the reason, at the deadline.
worker = t.Worker(daemon.pool, NAME, "--pause", 20000, "--mark", 3, "--reconnect", 300)
t.equal(worker.line(), "mark\n", "in the middle")
daemon.kill()
(result,) = worker.finish(expect=1)
t.equal(result["rc"], -errno.EPIPE, f"no other daemon: {result}")
t.true("is dead, and none came after it within" in result["text"], result["text"])

# By the path: the automatic daemon is started again by whoever notices first.
os.environ["XDG_RUNTIME_DIR"] = t.temp_dir()
workers = start_workers(store + "/")
pid = daemon_pid(store + "/")
os.kill(pid, signal.SIGKILL)
t.until(lambda: not os.path.exists(f"/proc/{pid}"), "it is gone")
go_on(workers)
last = workers.pop()  # it keeps the next daemon, which is looked at
for result in results(workers):
    same(result, totals, "by the store's path")
(result,) = last.wait_scanned()
same(result, totals, "by the store's path")
t.true(daemon_pid(store + "/") != pid, "another automatic daemon")
last.finish()
