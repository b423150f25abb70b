# SPDX-License-Identifier: Apache-2.0
"""Read-ahead by its counts: who reads slowly never waits, it keeps to its share and stops with its cursor, and
workers that start together cost one decoding of each block."""
import lib_stoup as t
import lib_wire as w

WINDOW = 16  # blocks that a cursor has read ahead
NAME = t.name_of("AAA")
store, totals = t.make_store(70_000, block="64K", codec="zstd")
BLOCKS = t.Daemon(store, "16M").stat()["volumes"][0]["blocks"]
t.true(BLOCKS > 3 * WINDOW, f"{BLOCKS} blocks")


def taken(daemon):
    """The daemon has taken all that was asked before this. It answers after a turn in which it may have looked too
    early, so that the second answer is the one that tells."""
    for _ in range(2):
        peer = w.Peer(daemon.pool)
        t.equal(peer.hello(w.MONITOR)["error"], 0, "a look")
        peer.close()


def settled(daemon):
    """All that was asked for is there. Counts of the same moment, or they are asked again."""
    taken(daemon)

    def counts():
        c = daemon.stat()["counters"]
        return c if c["loads"] + c["ahead_refused"] == c["requests"] + c["ahead_asked"] else None
    return t.until(counts, "what was asked for has come")


for options in ([], ["--backward"]):
    # ---- one span at a time, each only after all that was asked for is there -------------------------------
    daemon = t.Daemon(store, "16M")
    worker = t.Worker(daemon.pool, NAME, "--gate", *options)
    for spans in range(1, BLOCKS + 1):
        t.equal(worker.line(), {"ready": True}, f"span {spans}")
        counts = settled(daemon)
        t.equal(counts["requests"], 1, f"misses up to span {spans} {options}")
        t.true(counts["ahead_asked"] <= min(BLOCKS - 1, spans - 1 + WINDOW),
               f"at span {spans}, {counts['ahead_asked']} blocks were asked for ahead")
        if spans == 20:  # it stands still: nothing more is asked for, however long
            t.until(lambda: daemon.stat()["consumers"][0]["hits"] >= 16, "two looks of the daemon later")
            t.equal(settled(daemon)["ahead_asked"], counts["ahead_asked"], "read-ahead stops with its cursor")
        worker.step()
    (result,) = worker.finish()
    t.equal((result["rc"], result["misses"], result["hits"]), (0, 1, BLOCKS - 1), f"a slow reader {options}")
    counts = settled(daemon)
    t.equal((counts["loads"], counts["loads_max"], counts["ahead_refused"], counts["ahead_wasted"]),
            (BLOCKS, 1, 0, 0), "each block once")
    daemon.stop()

# ---- pools whose share of unread blocks is less than a window: nothing is turned away, the share is kept -----
for size in ("512K", "1M", "2M"):
    daemon = t.Daemon(store, size)
    share = daemon.stat()["size"] // 4
    worker = t.Worker(daemon.pool, NAME, "--gate")
    for spans in range(1, BLOCKS + 1):
        t.equal(worker.line(), {"ready": True}, f"span {spans}")
        counts = settled(daemon)
        t.true(counts["unread_bytes"] <= share, f"{counts['unread_bytes']} bytes unread of {share}")
        worker.step()
    (result,) = worker.finish()
    counts = settled(daemon)
    t.equal((counts["ahead_refused"], counts["ahead_wasted"], counts["loads_max"]), (0, 0, 1), f"a pool of {size}")
    t.equal(result["misses"], 1, f"misses in a pool of {size}")
    daemon.stop()

# ---- more cursors than the share has room for: they wait their turn, and read all of it ----------------------
daemon = t.Daemon(store, "1M")
workers = [t.Worker(daemon.pool, NAME, *options) for options in ([], ["--backward"], [], ["--backward"])]
for worker in workers:
    (result,) = worker.finish()
    t.equal((result["rc"], result["records"], result["gaps"]), (0, 70_000, 0), "all of it")
t.true(daemon.counter("unread_bytes") <= daemon.stat()["size"] // 4, "the share is kept")
daemon.stop()

# ---- eight workers started together decode each block once ------------------------------------------------------
daemon = t.Daemon(store, "16M")
workers = [t.Worker(daemon.pool, NAME, "--steps") for _ in range(8)]
for worker in workers:
    t.equal(worker.line(), {"ready": True}, "attached")
for worker in workers:
    worker.step()
for worker in workers:
    (result,) = worker.finish()
    totals["AAA"].check(result, "one of eight")
counts = daemon.stat()["counters"]
t.equal((counts["loads"], counts["loads_distinct"], counts["loads_max"]), (BLOCKS, BLOCKS, 1), "decoded once")
daemon.stop()
