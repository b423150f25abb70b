# SPDX-License-Identifier: Apache-2.0
"""Every way to store a block: ingest, ls, verify, records through a daemon, and a replacement that decodes it."""
import json
import os

import lib_stoup as t

WAYS = {"default": ("lz4", "fields"), "fast": ("lz4", "fields"), "small": ("zstd", "fields"), "none": ("none", "none"),
        "lz4": ("lz4", "none"), "lz4hc": ("lz4", "none"), "zstd": ("zstd", "none")}
COUNT = 20_000
name = t.name_of("AAA")
stored = {}
texts = {}

for codec, (packs, transform) in WAYS.items():
    store, totals = t.make_store(COUNT, block="128K", codec=codec)
    series = json.loads(t.run([t.STOUP, "ls", "--json", store]).stdout)["series"][0]
    t.equal((series["codecs"], series["transforms"]), ([packs], [transform]), f"{codec}: how it is stored")
    stored[codec] = series["stored_bytes"]
    shown = f"fields+{packs}" if transform == "fields" else packs
    t.true(f" {shown} " in t.run([t.STOUP, "ls", store]).stdout, f"{codec}: ls shows {shown}")
    t.true("0 faults" in t.run([t.STOUP, "verify", store]).stdout, f"{codec}: verify")
    daemon = t.Daemon(store, "8M")
    (found,) = t.Worker(daemon.pool, name).finish()
    totals["AAA"].check(found, codec)
    texts[codec] = t.run([t.STOUP, "cat", daemon.pool, name]).stdout
    daemon.stop()
    # The second half comes again: what is before it is taken out of the old blocks.
    dbn = os.path.join(os.path.dirname(store), "half.dbn")
    rows = list(t.mbo_records(COUNT, {"AAA": 11}))
    t.dbn_file(dbn, {"AAA": 11}, (t.mbo(*row, sequence=i) for i, row in enumerate(rows) if i >= COUNT // 2))
    t.run([t.STOUP, "ingest", "--quiet", "--store", store, "--codec", codec, "--replace", dbn])
    t.true("0 faults" in t.run([t.STOUP, "verify", store]).stdout, f"{codec}: verify after --replace")
    daemon = t.Daemon(store, "8M")
    t.equal(t.run([t.STOUP, "cat", daemon.pool, name]).stdout, texts[codec], f"{codec}: the same records after --replace")
    daemon.stop()

t.equal(len(set(texts.values())), 1, "all codecs give the same records")
t.true(stored["small"] < stored["default"] < stored["lz4hc"] < stored["none"], f"lengths in order: {stored}")
t.true(stored["default"] <= stored["fast"] < stored["lz4"], f"lengths in order: {stored}")
t.true(stored["small"] < stored["zstd"], f"lengths in order: {stored}")
# The level of the packs.
store, _ = t.make_store(10, codec="default")
dbn = os.path.join(os.path.dirname(store), "again.dbn")
t.dbn_file(dbn, {"BBB": 12}, (t.mbo(*row) for row in t.mbo_records(COUNT, {"BBB": 12})))
for level in ("1", "12"):
    where = os.path.join(os.path.dirname(store), "level-" + level)
    t.run([t.STOUP, "ingest", "--quiet", "--store", where, "--codec", "default", "--level", level, dbn])
    stored[level] = json.loads(t.run([t.STOUP, "ls", "--json", where]).stdout)["series"][0]["stored_bytes"]
t.true(stored["12"] < stored["1"], f"level 12 is smaller than level 1: {stored}")
