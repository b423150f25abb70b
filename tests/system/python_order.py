# SPDX-License-Identifier: Apache-2.0
"""Bars count from their end in as-of, last and merge; series that kept the order of a feed whose times step back are
merged by their keys."""
import os
import random
import struct

import lib_python as p
import lib_stoup as t
import stoup

MINUTE = 60 * 10**9
BEGIN = t.T0 - t.T0 % MINUTE
rng = random.Random(11)
directory = t.temp_dir()
store = os.path.join(directory, "store")


def ingest(records, schema, *options):
    path = os.path.join(directory, "in.dbn")
    t.dbn_file(path, {"AAA": 11}, records, schema=schema)
    t.run([t.STOUP, "ingest", "--store", store, "--block", "64K", "--quiet", *options, path])


def bar(key, close):
    return struct.pack("<BBHIQqqqqQ", 14, 33, 1, 11, key, close, close, close, close, 1)


# 5,000 bars, with gaps; ticks at times around their ends; and a feed whose times step back.
bars = [BEGIN + i * MINUTE for i in range(6000) if i % 7]
ticks = sorted(BEGIN + rng.randrange(6000) * MINUTE + rng.choice((-1, 0, 1, 17)) for _ in range(3000))
stepping, at = [], BEGIN
for i in range(3000):
    at += rng.randrange(2 * MINUTE)
    stepping.append(at - rng.choice((0, 0, 0, 5 * MINUTE, 30 * 10**9)))
ingest((bar(key, i) for i, key in enumerate(bars)), 6)
ingest((t.mbo(11, key, 10**9, 1, sequence=i) for i, key in enumerate(ticks)), 0)
trades = (struct.pack("<BBHIQqIBBBBQiI", 12, 0, 1, 11, key, 10**9, 1, 84, 66, 0, 0, key, 0, i)
          for i, key in enumerate(stepping))
ingest(trades, 4, "--order=keep")

daemon = t.Daemon(store, "4M")
with stoup.open(daemon.pool) as client:
    BARS, TICKS, KEPT = (client[f"XTST.TEST/AAA/{schema}"] for schema in ("ohlcv-1m", "mbo", "trades"))
    t.equal((BARS.schema.interval_ns, TICKS.schema.interval_ns, KEPT.flags), (MINUTE, 0, 1), "what they are")

    # As of a time: the last bar that has ended.
    for when in (BEGIN, BEGIN + MINUTE - 1, BEGIN + 2 * MINUTE, *(rng.choice(bars) + rng.choice((-1, 0, 1, MINUTE))
                                                                  for _ in range(100))):
        for strict in (False, True):
            known = [i for i, key in enumerate(bars) if key + MINUTE < when + (0 if strict else 1)]
            found = client.asof(BARS, when, strict)
            t.equal(None if found is None else int(found["close"]), known[-1] if known else None, f"as of {when} {strict}")
        known = [i for i, key in enumerate(bars) if key + MINUTE < when][-5:]
        t.equal(client.last(BARS, 5, before=when)["close"].tolist(), known, f"the last five before {when}")

    # The key of a record that kept its place is the greatest so far.
    keys, highest = [], 0
    for key in stepping:
        highest = max(highest, key)
        keys.append(highest)
    for low, high in ((None, None), (BEGIN + 500 * MINUTE, BEGIN + 2000 * MINUTE)):
        for order in ((BARS, TICKS, KEPT), (KEPT, TICKS, BARS)):
            rows = []
            for i, series in enumerate(order):
                times = {BARS.name: [key + MINUTE for key in bars], TICKS.name: ticks, KEPT.name: keys}[series.name]
                rows += [(when, i, n) for n, when in enumerate(times)
                         if (low is None or when >= low) and (high is None or when < high)]
            found = []
            for i, view in client.merge(*order, start=low, end=high):
                found += [(i, int(n)) for n in view["close" if order[i] is BARS else "sequence"]]
            t.equal(found, [row[1:] for row in sorted(rows)], f"merge of bars, ticks and a feed that steps back: {low}")
    t.equal(stoup.times(client.last(BARS, 1)).astype("i8").tolist(), [bars[-1]], "a bar's key is its open time")
daemon.stop()
