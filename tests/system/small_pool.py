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


def names_both():
    """Where it has no processor until the deadline, it is told that and no more."""
    starved = t.run([t.WORKER, "--timeout", "3000", daemon.pool, name, "--from", str(t.T0 + 100_000_000)], expect=1).stdout
    return str(holder.pid) in starved and str(second.pid) in starved


t.until(names_both, f"holders {holder.pid} and {second.pid} are named")
counted = daemon.settled()["counters"]
t.true(counted["starved_failed"] + counted["timeouts"] >= 1, f"counted as starved: {counted}")
(rest,) = holder.finish()
t.true(rest["held_unchanged"], "bytes of held spans never changed")
(rest,) = second.finish()
t.true(rest["held_unchanged"], "bytes of the other's spans never changed")
(found,) = t.Worker(daemon.pool, name).finish()
totals["AAA"].check(found, "after the holders went")
daemon.stop()

# A quarter of the data and workers one behind the other: at most two loads per block on average.
daemon = t.Daemon(store, "4M")
LAG = 4  # blocks, from one to the next
workers = [t.Worker(daemon.pool, name, "--gate") for _ in range(8)]
for worker in workers:
    t.equal(worker.line(), {"ready": True}, "at its first block")
for turn in range(blocks + LAG * (len(workers) - 1)):
    for number, worker in enumerate(workers):
        if 0 <= turn - LAG * number < blocks:
            worker.step()
            line = worker.line()
            if turn - LAG * number < blocks - 1:
                t.equal(line, {"ready": True}, "at its next block")
            else:
                totals["AAA"].check(line, "staggered")
for worker in workers:
    worker.finish()
loads = daemon.counter("loads")
print(f"staggered: {loads} loads of {blocks} blocks, {loads / blocks:.2f} per block")
t.true(loads <= 2 * blocks, f"at most two loads per block: {loads} of {blocks}")
daemon.stop()
