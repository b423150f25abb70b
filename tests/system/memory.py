# SPDX-License-Identifier: Apache-2.0
"""Eight workers over one pool: the sum of their memory is the pool and at most 1 MiB for each."""
import os
import sys

import lib_stoup as t

if os.environ.get("STOUP_SANITIZED"):
    print("a sanitizer's shadow memory is not the library's: skipped")
    sys.exit(t.SKIP)


def pss(pid):
    with open(f"/proc/{pid}/smaps_rollup") as rollup:
        for line in rollup:
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return 0


pool_len = 32 << 20
store, totals = t.make_store(300_000, block="512K")  # 16.8 MB decoded
daemon = t.Daemon(store, pool_len)
workers = [t.Worker(daemon.pool, t.name_of("AAA"), "--passes", 2, "--wait") for _ in range(8)]
sums = set()
for worker in workers:
    for found in worker.wait_scanned():
        if found["spans"] == daemon.stat()["volumes"][0]["blocks"]:
            sums.add((found["records"], found["price"], found["size"], found["checksum"]))
t.equal(len(sums), 1, "all workers saw the same bytes")
of_workers = [pss(worker.pid) for worker in workers]
of_daemon = pss(daemon.process.pid)
print("PSS of workers", [size >> 10 for size in of_workers], "KiB, of the daemon", of_daemon >> 10, "KiB")
t.true(sum(of_workers) <= pool_len + 8 * (1 << 20),
       f"sum of PSS {sum(of_workers)} above pool {pool_len} and 1 MiB a worker")
# Eight private copies would be far more.
t.true(sum(of_workers) < 8 * 16_800_000 / 2, "far below eight copies")
for worker in workers:
    worker.finish()
t.equal(daemon.counter("loads_max"), 1, "each block decoded once")
daemon.stop()
