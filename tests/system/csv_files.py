# SPDX-License-Identifier: Apache-2.0
"""The real CSV files that need no preset, with options alone: counts, and every value comes back exactly."""
import csv
import datetime
import decimal
import gzip
import os
import sys

import lib_stoup as t

if not t.DATA:
    print("STOUP_DATA is not set: skipped")
    sys.exit(t.SKIP)

UTC = datetime.timezone.utc
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=UTC)


def ns(moment):
    delta = moment - EPOCH
    return (delta.days * 86400 + delta.seconds) * 10**9 + delta.microseconds * 1000


def iso(text):
    moment = datetime.datetime.fromisoformat(text)
    return ns(moment if moment.tzinfo else moment.replace(tzinfo=UTC))


def packed(text):
    return ns(datetime.datetime.strptime(text + "000", "%Y%m%d %H%M%S%f").replace(tzinfo=UTC))


# file: rows, header, time, columns {place in the file: field}, options
FILES = {
    "fxcm-gbpusd-m1-bid-2012.csv": (
        30117, True, iso, {1: "open", 2: "high", 3: "low", 4: "close"},
        ["--schema", "bar", "--interval", "1m", "--time", "timestamp"]),
    "truefx-usdjpy-ticks.csv": (
        1000, True, iso, {1: "bid", 2: "ask"},
        ["--time", "timestamp", "--map", "bid:price=bid,ask:price=ask"]),
    "quote_tick_data.csv": (
        9500, False, packed, {1: "bid", 2: "ask"},
        ["--columns", "ts:time,bid:price,ask:price,-"]),
    "6EH4-1min-bars-202401.csv.gz": (
        29996, True, iso, {1: "open", 2: "high", 3: "low", 4: "close", 5: "volume"},
        ["--schema", "bar", "--interval", "1m", "--time", "timestamp_utc"]),
}

for name, (rows, header, time_of, columns, options) in FILES.items():
    path = os.path.join(t.DATA, "csv", name)
    store = os.path.join(t.temp_dir(), "store")
    t.run([t.STOUP, "ingest", "--quiet", "--store", store, "--series", "X/Y/z", *options, path])
    daemon = t.Daemon(store, "16M")
    (found,) = t.Worker(daemon.pool, "X/Y/z").finish()
    t.equal(found["records"], rows, f"{name}: rows")
    printed = list(csv.DictReader(t.run([t.STOUP, "cat", daemon.pool, "X/Y/z"]).stdout.splitlines()))
    daemon.stop()
    opener = gzip.open if name.endswith(".gz") else open
    with opener(path, "rt", newline="") as source:
        original = list(csv.reader(source))[1 if header else 0:]
    t.equal(len(original), rows, f"{name}: rows of the file")
    t.equal(len(printed), rows, f"{name}: rows printed")
    for number, (row, record) in enumerate(zip(original, printed)):
        key = next(value for value in record.values() if "T" in value)
        whole, fraction = key.rstrip("Z").split(".")
        t.equal(iso(whole) + int(fraction), time_of(row[0]), f"{name}: row {number}: time")
        for place, field in columns.items():
            t.equal(decimal.Decimal(record[field]), decimal.Decimal(row[place]),
                    f"{name}: row {number}: {field}")
    print("ok", name, flush=True)
