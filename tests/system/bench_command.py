# SPDX-License-Identifier: Apache-2.0
"""stoup bench: what it counts is right, what it measures is there, what is wrong is told. No time is looked at."""
import json
import os

import lib_stoup as t

RATES = ("first_scan", "warm_scan", "private_copy", "memcpy")
MIB = 1 << 20


def bench(*arguments, expect=0):
    done = t.run([t.STOUP, "bench", *arguments], expect=expect)
    return json.loads(done.stdout) if "--json" in arguments and expect == 0 else done


def check_shape(found, what):
    for name in RATES:
        t.true(found[name]["ns"] > 0 and found[name]["passes"] >= 1, f"{what}: {name} is measured: {found[name]}")
        expected = found["bytes"] / found[name]["ns"]
        t.true(abs(found[name]["gb_per_s"] / expected - 1) < 0.01, f"{what}: {name} in GB/s is bytes / ns")
    t.true(found["warm_scan"]["passes"] >= 5, f"{what}: warm passes {found['warm_scan']}")
    t.equal(found["warm_scan"]["passes"], found["private_copy"]["passes"], f"{what}: contenders run in turn")
    t.true(found["attach"]["p50_ns"] <= found["attach"]["p99_ns"] <= found["attach"]["max_ns"], f"{what}: attach")
    if not os.environ.get("STOUP_SANITIZED"):  # the sanitizer's own memory
        t.true(found["worker_bytes"] < 16 * MIB, f"{what}: a worker's own memory: {found['worker_bytes']}")


# Two series: 30,000 orders of 56 bytes (1.6 MiB), and 10,000 in another.
symbols = {"BIG": 1, "SMALL": 2}
directory = t.temp_dir()
dbn = os.path.join(directory, "in.dbn")
rows = [(1, t.T0 + i * 1000, 1_000_000_000 + i * 250_000_000, 1 + i % 9) for i in range(30_000)]
rows += [(2, t.T0 + 30_000_000 + i * 1000, 2_000_000_000, 1) for i in range(10_000)]
t.dbn_file(dbn, symbols, (t.mbo(*row) for row in rows))
store = os.path.join(directory, "store")
t.run([t.STOUP, "ingest", "--quiet", "--store", store, "--block", "64K", dbn])

# ---- a store: a daemon of its own --------------------------------------------------------------------------
found = bench("--json", store + "/")
check_shape(found, "store")
t.equal((found["series"], found["records"], found["record_bytes"]), (t.name_of("BIG"), 30_000, 56),
        "the largest series")
t.equal((found["bytes"], found["series_bytes"]), (30_000 * 56, 30_000 * 56), "all of it")
t.equal(found["own_daemon"], True, "a store gets a daemon of its own")
t.true(found["first_scan_waited"] > 0, f"the first scan finds an empty pool: {found['first_scan_waited']}")
t.true(found["private_decode"]["bytes"] >= 30_000 * 56, f"private decoding: {found['private_decode']}")
t.true(found["lone_miss"]["count"] >= 20, f"lone misses: {found['lone_miss']}")
t.true(not [name for name in t.shm_names("bench") if name], "nothing is left in /dev/shm")

# --series, --limit, a path without a slash, and text
found = bench("--json", "--series", t.name_of("SMALL"), store + "/")
t.equal((found["series"], found["records"]), (t.name_of("SMALL"), 10_000), "the series that was asked for")
found = bench("--json", "--limit", "1M", store + "/")
t.equal((found["records"], found["series_bytes"]), (-(-MIB // 56), 30_000 * 56), "the begin of the series")
text = bench("./" + os.path.relpath(store)).stdout
for word in ("BIG", "30000 records of 56 bytes", "warm scan of the pool", "memcpy", "private decoding", "a lone miss",
             "attach", "a worker's own memory"):
    t.true(word in text, f"the text has '{word}': {text}")

# ---- a running pool: as it is found, and unharmed ----------------------------------------------------------
daemon = t.Daemon(store, "16M")
found = bench("--json", daemon.pool)
check_shape(found, "pool")
t.equal((found["own_daemon"], found["lone_miss"], found["records"]), (False, None, 30_000), "a running pool")
t.true(found["private_decode"]["bytes"] >= 30_000 * 56, "its store is read for private decoding")
found = bench("--json", daemon.pool)
t.equal(found["first_scan_waited"], 0, "now its blocks are there")
t.true("a running pool is not emptied" in bench(daemon.pool).stdout, "why there is no lone miss")
t.until(lambda: daemon.counter("consumers") == 0 and daemon.counter("leases") == 0, "nobody stays attached")

daemon.stop()

# ---- what is wrong -----------------------------------------------------------------------------------------
for arguments, status, word in (
        ([], 2, "STORE or POOL"), ([store, store], 2, "STORE or POOL"), (["--limit", "12", store], 2, "1M to 64G"),
        (["--limit", "2Q", store], 2, "1M to 64G"), (["--what", store], 2, "help bench"),
        ([directory + "/absent/"], 1, "no such directory"), (["no-such-pool"], 1, "no-such-pool"),
        (["--series", "A/B/mbo", store + "/"], 1, "A/B/mbo"), ([t.temp_dir() + "/"], 1, "stoup")):
    done = bench(*arguments, expect=status)
    t.true(word in done.stderr, f"stoup bench {arguments}: {done.stderr}")
    t.true(status == 2 or done.stderr.count("\n") == 1, f"one line: {done.stderr}")
done = t.run([t.STOUP, "bench", store + "/"], expect=1, env=os.environ | {"STOUPD": "/bin/false"})
t.true("did not start" in done.stderr, f"a daemon that does not start: {done.stderr}")
