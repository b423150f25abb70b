# SPDX-License-Identifier: Apache-2.0
"""Ranges, limits and counts against a plain scan, with a real daemon; and a cursor that follows a store that grows, is
compacted and gets another daemon."""
import json
import os
import subprocess

import lib_rescan as r
import lib_stoup as t

QUERY = os.path.join(t.BIN, "helper_query")


def ask(pool, name, what, count):
    done = subprocess.run([QUERY, pool, name, what, str(count)], capture_output=True, text=True, check=False)
    t.equal(done.returncode, 0, f"{name}: {what}: {done.stdout} {done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


# ---- random queries over three volumes, compressed and not --------------------------------------------
for codec in ("lz4", "none"):
    store = os.path.join(t.temp_dir(), "store")
    for day in range(3):
        r.ingest(store, day, "--codec", codec, count=12_000)
    daemon = t.Daemon(store)
    t.equal(ask(daemon.pool, r.NAME, "random", 1500),
            {"queries": 1500, "records": 36_000, "mapped": int(codec == "none")}, f"queries of {codec}")
    daemon.stop()

# ---- following ----------------------------------------------------------------------------------------
store = os.path.join(t.temp_dir(), "store")
r.ingest(store, 0)
daemon = t.Daemon(store)
reader = subprocess.Popen([QUERY, daemon.pool, r.NAME, "follow", str(4 * r.COUNT)], stdout=subprocess.PIPE, text=True)


def says(expected, what):
    line = reader.stdout.readline()
    while line and json.loads(line) != expected:
        # News without more of the series: the same end again.
        t.equal(json.loads(line), said, what)
        line = reader.stdout.readline()
    t.true(line, f"{what}: the reader ended")
    return expected


said = {"end": 0}
said = says({"end": r.COUNT}, "the first day")
r.ingest(store, 1)
said = says({"end": 2 * r.COUNT}, "a day that was added")
t.run([t.STOUP, "compact", "--quiet", store])
r.ingest(store, 2)
said = says({"end": 3 * r.COUNT}, "a day behind a compacted store")
pool = daemon.pool
daemon.kill()
daemon = t.Daemon(store, pool=pool)
r.ingest(store, 3)
says({"records": 4 * r.COUNT, "last_key": max(key for _, key, _, _ in r.rows_of(3))}, "a day of another daemon")
t.equal(reader.wait(), 0, "the reader's end")
daemon.stop()
print("ranges: fine")
