# SPDX-License-Identifier: Apache-2.0
"""Pools far smaller than the data: progress with three workers, with eight, and with one far behind."""
import lib_stoup as t

store, totals = t.make_store(250_000)  # 14 MB in blocks of 64 KiB
name = t.name_of("AAA")

# Four blocks' size, hundreds of blocks, three workers: no deadlock.
daemon = t.Daemon(store, "256K")
blocks = daemon.stat()["volumes"][0]["blocks"]
t.true(blocks >= 200, f"hundreds of blocks: {blocks}")
workers = [t.Worker(daemon.pool, name) for _ in range(3)]
for worker in workers:
    (found,) = worker.finish()
    totals["AAA"].check(found, "three workers")
# Eight workers: more than there are buffers; they wait for each other, and all end.
workers = [t.Worker(daemon.pool, name, "--retry") for _ in range(8)]
for worker in workers:
    found = worker.finish()[-1]
    totals["AAA"].check(found, "eight workers")
t.until(lambda: daemon.counter("leases") == 0, "no lease left")
t.equal(daemon.stat()["errors"], [], "errors")
daemon.stop()

# A holder of three of four buffers leaves one: the scan goes on; a holder of all four starves it, and the
# error names the process that holds them.
daemon = t.Daemon(store, "256K", options=["--lease-bytes", "256K"])
holder = t.Worker(daemon.pool, name, "--hold", 3, "--wait", "--to", t.T0 + 3_000_000)
holder.wait_scanned()
(found,) = t.Worker(daemon.pool, name).finish()
totals["AAA"].check(found, "beside a holder of three")
second = t.Worker(daemon.pool, name, "--hold", 1, "--wait", "--from", t.T0 + 200_000_000, "--to",
                  t.T0 + 200_001_000)
second.wait_scanned()
starved = t.run([t.WORKER, "--timeout", "3000", daemon.pool, name, "--from", str(t.T0 + 100_000_000)],
                expect=1)
t.true(str(holder.pid) in starved.stdout and str(second.pid) in starved.stdout,
       f"holders {holder.pid} and {second.pid} named in: {starved.stdout}")
counted = daemon.settled()["counters"]
t.true(counted["starved_failed"] + counted["timeouts"] >= 1, f"counted as starved: {starved.stdout}")
(rest,) = holder.finish()
t.true(rest["held_unchanged"], "bytes of held spans never changed")
(rest,) = second.finish()
t.true(rest["held_unchanged"], "bytes of the other's spans never changed")
(found,) = t.Worker(daemon.pool, name).finish()
totals["AAA"].check(found, "after the holders went")
daemon.stop()

# A quarter of the data and workers one behind the other: at most two loads per block on average.
daemon = t.Daemon(store, "4M")
workers = []
for _ in range(8):
    workers.append(t.Worker(daemon.pool, name, "--pause", 5000))
    t.time.sleep(0.02)
for worker in workers:
    (found,) = worker.finish()
    totals["AAA"].check(found, "staggered")
loads = daemon.counter("loads")
print(f"staggered: {loads} loads of {blocks} blocks, {loads / blocks:.2f} per block")
t.true(loads <= 2 * blocks, f"at most two loads per block: {loads} of {blocks}")
daemon.stop()
