#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""python_ratio.py - NumPy over stoup against the same expression over a private array.

    STOUP_BIN_DIR=build/bin STOUP_LIB=build/lib bench/python_ratio.py [RECORDS [ROUNDS [BLOCK]]]

Makes RECORDS trades of 48 bytes (4,000,000; random walk, fixed seed), stores them, keeps the pool warm, and sums
price x size in turns: over one private array, over the same array in pieces as long as stoup's, over stoup's arrays.
Prints one line of JSON: medians in ns per record, and the ratio private / stoup of each round's median; 1 is equal,
more is faster. BLOCK is ingest's --block (default: ingest's own).

Beside it, what an array costs where records are few: blocks of 64 KiB (1,365 records), and a series that lies in 200
volumes of 100 records each.
"""
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "consumer", "python"))
sys.path.insert(0, os.path.join(HERE, "..", "tests", "system"))
import lib_stoup as t  # noqa: E402
import stoup  # noqa: E402

SERIES = "XTST.TEST/AAA/trades"


def trades(count):
    """DBN trades, layout of stoup_records.h."""
    rng = np.random.default_rng(20240701)
    rows = np.zeros(count, {"names": ["length", "rtype", "publisher_id", "instrument_id", "ts_event", "price", "size",
                                      "action", "side", "flags", "depth", "ts_recv", "ts_in_delta", "sequence"],
                            "formats": ["u1", "u1", "<u2", "<u4", "<u8", "<i8", "<u4", "S1", "S1", "u1", "u1", "<u8",
                                        "<i4", "<u4"]})
    rows["length"], rows["publisher_id"], rows["instrument_id"] = 12, 1, 11
    rows["ts_recv"] = t.T0 + np.cumsum(rng.integers(1000, 90000, count))
    rows["ts_event"] = rows["ts_recv"] - 15000
    # Sums stay within 64 bits.
    rows["price"] = 5_000_000 + 250 * np.cumsum(rng.integers(-2, 3, count))
    rows["size"], rows["action"], rows["side"] = rng.integers(1, 20, count), b"T", b"B"
    rows["sequence"] = np.arange(count)
    return rows


def store_of(rows, folder, block, volumes):
    """A store of that many volumes, each made by a call of ingest."""
    path = os.path.join(folder, "in.dbn")
    store = tempfile.mkdtemp(dir=folder)
    for part in np.split(rows, volumes):
        t.dbn_file(path, {"AAA": 11}, (part[i:i + 65536].tobytes() for i in range(0, len(part), 65536)), schema=4)
        subprocess.run([t.STOUP, "ingest", "--store", store, "--quiet", *(["--block", block] if block else []), path],
                       check=True)
    os.unlink(path)
    return store


def total(array):
    return int((array["price"] * array["size"]).sum())


def timed(call):
    begin = time.perf_counter_ns()
    found = call()
    return time.perf_counter_ns() - begin, found


def measure(rows, folder, rounds, block, volumes=1):
    daemon = t.Daemon(store_of(rows, folder, block, volumes), size=str(len(rows) * 48 * 3 // 2 + (64 << 20)),
                      options=["--backing", "memfd"])
    with stoup.open(daemon.pool) as client:
        cuts = np.cumsum([len(array) for array in client.scan(SERIES)])[:-1]
        pieces = np.split(rows, cuts)
        ways = {"private": lambda: total(rows), "pieces": lambda: sum(map(total, pieces)),
                "stoup": lambda: sum(map(total, client.scan(SERIES)))}
        times = {name: [] for name in ways}
        sums = set()
        for i in range(rounds):
            names = list(ways)
            for name in names[i % 3:] + names[:i % 3]:
                ns, found = timed(ways[name])
                times[name].append(ns / len(rows))
                sums.add(found)
    daemon.stop()
    t.equal(len(sums), 1, "different sums")
    medians = {name: statistics.median(values) for name, values in times.items()}
    return {"block": block or "default", "volumes": volumes, "records": len(rows), "spans": len(pieces),
            "ns_per_record": {name: round(value, 3) for name, value in medians.items()},
            "ratio": round(medians["private"] / medians["stoup"], 3),
            "ratio_to_pieces": round(medians["pieces"] / medians["stoup"], 3),
            "us_per_span_more": round((medians["stoup"] - medians["pieces"]) * len(rows) / len(pieces) / 1000, 2)}


def main():
    count, rounds = (int(value) for value in (sys.argv[1:3] + ["4000000", "15"][len(sys.argv[1:3]):]))
    block = sys.argv[3] if len(sys.argv) > 3 else ""
    rows = trades(count)
    with tempfile.TemporaryDirectory(prefix="stoup-bench-") as folder:
        print(json.dumps({"numpy": np.__version__, "python": sys.version.split()[0],
                          "large": measure(rows, folder, rounds, block),
                          "short": measure(rows[:count // 4], folder, rounds, "64K"),
                          "tiny": measure(rows[:20000], folder, rounds * 4, "", 200)}))


main()
