# SPDX-License-Identifier: Apache-2.0
"""compact, rm and repair while daemons serve the store: nobody who reads is disturbed, who comes sees the new volumes."""
import os

import lib_care as c
import lib_rescan as r
import lib_stoup as t

AAA, BBB = t.name_of("AAA"), t.name_of("BBB")
# Half under the sanitizers, which make each step slow.
PASSES = 40
ROUNDS = 4 if os.environ.get("STOUP_SANITIZED") else 8


def totals(days, symbol="AAA"):
    sums = t.Totals()
    for day in days:
        for ident, key, price, size in c.rows_of(day):
            if ident == c.SYMBOLS[symbol]:
                sums.add(key, price, size)
    return sums


store = c.new_store(range(4))
daemon = t.Daemon(store, "8M")

# ---- leases and open scans outlive the volumes that they read ---------------------------------------------------
holder = t.Worker(daemon.pool, AAA, "--hold", 3, "--wait")
holder.wait_scanned()
waiting = r.stepped(daemon)
middle = t.Worker(daemon.pool, AAA, "--mark", 2)
t.equal(middle.line(), "mark\n", "in the middle of a scan")
c.stoup("compact", "--quiet", "--codec", "small", store)
t.equal(len(c.volumes_of(store)), 1, "one volume")
r.hang_up(daemon)
(found,) = t.Worker(daemon.pool, AAA).finish()
totals(range(4)).check(found, "who comes after compact")
c.stoup("rm", "--quiet", "--to", str(t.T0 + c.DAY), store, AAA)
r.hang_up(daemon)
(found,) = t.Worker(daemon.pool, AAA).finish()
totals(range(1, 4)).check(found, "who comes after rm")
(found,) = t.Worker(daemon.pool, BBB).finish()
totals(range(4), "BBB").check(found, "the other series")
waiting.step()
(found,) = waiting.finish()
totals(range(4)).check(found, "who was attached before")
(found,) = middle.finish()
totals(range(4)).check(found, "who was in the middle")
t.equal((found["rc"], found["gaps"]), (0, 0), "no gap")
t.true(holder.finish()[-1]["held_unchanged"], "bytes of leases")
t.until(lambda: not r.deleted_files(daemon), "the old volumes are let go")

# ---- in a loop, under readers; inotify tells the daemon -----------------------------------------------------------
readers = [t.Worker(daemon.pool, BBB, "--passes", PASSES, "--pause", 200) for _ in range(2)]
for number in range(ROUNDS):
    # AAA comes and goes, BBB stays.
    c.stoup("rm", "--quiet", store, AAA)
    c.stoup("compact", "--quiet", "--codec", "fast" if number % 2 else "lz4", "--block", "64K" if number % 3 else "128K",
            store)
    c.ingest_rows(store, [row for row in c.rows_of(number % 4) if row[0] == 11], symbols={"AAA": 11})
    t.until(lambda: t.Worker(daemon.pool, AAA).finish(expect=None)[-1].get("records") == totals([number % 4]).records,
            f"round {number}: the daemon takes the new volumes")
for reader in readers:
    results = reader.finish()
    t.equal(len(results), PASSES, "passes")
    for number, found in enumerate(results, 1):
        for name in ("records", "price", "size"):
            t.equal(found[name], number * getattr(totals(range(4), "BBB"), name), f"a reader beside it: {name}")
        t.equal(found["rc"], 0, found["text"])
t.equal(daemon.counter("volumes_refused"), 0, "no volume was refused")
t.equal(daemon.stop(), 0, "the daemon's end")

# ---- the automatic daemon, too ---------------------------------------------------------------------------------------
os.environ["XDG_RUNTIME_DIR"] = t.temp_dir()
store = c.new_store(range(3))
reader = t.Worker(store, AAA, "--steps")
t.equal(reader.line(), {"ready": True}, "attached to a path")
c.stoup("compact", "--quiet", store)
c.stoup("rm", "--quiet", "--from", str(t.T0 + 2 * c.DAY), store, AAA)
(found,) = t.Worker(store, AAA).finish()
totals([0, 1]).check(found, "who comes")
reader.step()
(found,) = reader.finish()
totals(range(3)).check(found, "who was there")

# ---- repair under a daemon: the damaged volume is served in part, then without its loss ------------------------------
store = c.new_store(range(3))
path = os.path.join(store, c.volumes_of(store)[1])
lost = [s for s in c.info(path, BBB)["series"][0]["segments"]][-1]
daemon = t.Daemon(store, "8M")
offset = c.footer_offset(path)
c.flip(path, offset - 3000)
out = c.stoup("verify", "--repair", store).stdout
t.true("lost:" in out, out)
r.hang_up(daemon)
before = sum(s["records"] for s in c.info(store)["series"])
count = 0
for symbol in c.SYMBOLS:
    (found,) = t.Worker(daemon.pool, t.name_of(symbol)).finish()
    t.equal((found["rc"], found["gaps"]), (0, 0), "no gap")
    count += found["records"]
t.equal(count, before, "what is left is served")
t.true(0 < count < 9_000, f"some was lost, most was not: {count}")
t.equal(daemon.stop(), 0, "the daemon's end")
