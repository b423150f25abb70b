# SPDX-License-Identifier: Apache-2.0
"""From end to end by arm64 programs: ingest, stoupd, two `stoup cat` at once, stat, verify.

    arm64_scan.py READER     io_uring or pread: what the daemon must have chosen

Every printed record is compared with the text that it must have; the pool holds a fraction of the data, so
that buffers are granted, evicted and granted again. Called by arm64_run.py, which sets STOUP_BIN_DIR.
"""
import datetime
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "system"))
import lib_stoup as t  # noqa: E402 - the folder of the system tests comes first

COUNT = 60_000
HEADER = ("rtype,publisher_id,instrument_id,ts_event,order_id,price,size,flags,channel_id,action,side,ts_recv,"
          "ts_in_delta,sequence")
reader = sys.argv[1]


def time_text(ns):
    seconds = datetime.datetime.fromtimestamp(ns // 10**9, datetime.timezone.utc)
    return seconds.strftime("%Y-%m-%dT%H:%M:%S") + f".{ns % 10**9:09d}Z"


def price_text(price):
    return f"{price // 10**9}.{price % 10**9:09d}".rstrip("0").rstrip(".")


def line(number, row):
    ident, key, price, size = row
    return (f"160,1,{ident},{time_text(key - 1000)},1,{price_text(price)},{size},128,0,A,B,{time_text(key)},1000,"
            f"{number}")


expected = [HEADER] + [line(i, row) for i, row in enumerate(t.mbo_records(COUNT, {"AAA": 11}))]

for codec in ("none", "lz4", "zstd"):
    store, totals = t.make_store(COUNT, codec=codec)
    daemon = t.Daemon(store, "1M")
    cats = [subprocess.Popen([t.STOUP, "cat", daemon.pool, t.name_of("AAA")], stdout=subprocess.PIPE, text=True)
            for _ in range(2)]
    for number, cat in enumerate(cats):
        printed = cat.communicate(timeout=250)[0].splitlines()
        t.equal(cat.returncode, 0, f"{codec}: exit status of cat {number}")
        t.equal(len(printed), len(expected), f"{codec}: lines of cat {number}")
        wrong = next((i for i, pair in enumerate(zip(printed, expected)) if pair[0] != pair[1]), None)
        t.true(wrong is None, f"{codec}: cat {number}: line {wrong} differs")
    (found,) = t.Worker(daemon.pool, t.name_of("AAA")).finish()
    totals["AAA"].check(found, f"{codec}: a worker")
    stat = daemon.stat()
    counters = stat["counters"]
    t.equal(stat["reader"], reader, "the reader")
    t.true(reader == "io_uring" or "io_uring" in stat["reader_reason"], f"why not: {stat['reader_reason']}")
    t.true(counters["grants"] > 0 and counters["evictions"] > 0, f"{codec}: grants and evictions: {counters}")
    t.equal((counters["errors"], counters["leases"], counters["attaches"]), (0, 0, 3), f"{codec}: at the end")
    t.equal(daemon.stop(), 0, "the daemon's end")
    t.true("0 faults" in t.run([t.STOUP, "verify", store]).stdout, f"{codec}: verify")
    print(f"{codec}: {COUNT} records twice by cat and once by a worker; {counters['loads']} loads by {reader}, "
          f"{counters['grants']} grants, {counters['evictions']} evictions")
