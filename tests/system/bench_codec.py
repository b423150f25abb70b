# SPDX-License-Identifier: Apache-2.0
"""stoup-bench-codec: its contenders on a DBN file and on a store, as text and as JSON."""
import json
import os
import sys

import lib_stoup as t

BENCH = os.path.join(t.BIN, "stoup-bench-codec")
NAMES = ["copy", "lz4", "lz4hc-9", "zstd-1", "zstd-3", "zstd-19", "shuffle+zstd-3", "fast", "default", "small"]
if not os.path.exists(BENCH):
    sys.exit(t.SKIP)

directory = t.temp_dir()
dbn = os.path.join(directory, "in.dbn")
symbols = {"AAA": 11, "BBB": 12}
t.dbn_file(dbn, symbols, (t.mbo(*row, sequence=i) for i, row in enumerate(t.mbo_records(5_000, symbols))))
store = os.path.join(directory, "store")
t.run([t.STOUP, "ingest", "--quiet", "--store", store, dbn])
quick = ["--rounds", "2", "--encode", "1"]
for path in (dbn, store):
    found = json.loads(t.run([BENCH, "--json", *quick, path]).stdout)
    (schema,) = found["schemas"]
    t.equal((schema["schema"], schema["stride"], schema["records"]), ("mbo", 56, 5_000), f"{path}: what was read")
    t.equal([row["codec"] for row in schema["codecs"]], NAMES, "contenders")
    ratio = {row["codec"]: row["ratio"] for row in schema["codecs"]}
    t.equal(ratio["copy"], 1.0, "ratio of a copy")
    t.true(ratio["small"] > ratio["default"] > ratio["lz4"] > 1, f"ratios in order: {ratio}")
    t.true(all(row["encode_mb_s"] > 0 and row["decode_gb_s"] > 0 for row in schema["codecs"]), "speeds")
text = t.run([BENCH, *quick, "--block", "65536", dbn]).stdout.splitlines()
t.equal([line.split()[0] for line in text[2:12]], NAMES, "rows of the table")
t.true(t.run([BENCH], expect=2).stderr.startswith("Usage:"), "usage")
t.true(t.run([BENCH, "--rounds", "0", dbn], expect=2).stderr.startswith("Usage:"), "no round at all")
t.true("nofile: " in t.run([BENCH, "nofile"], expect=1).stderr, "a file that is not there")
