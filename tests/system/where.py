# SPDX-License-Identifier: Apache-2.0
"""Filters and zone maps end to end: what stoup_scan_where hands out has every record that matches, whatever wrote the
volumes, forward and backward, in direct mode and when the daemon is killed; verify finds zone maps that lie, and repair
mends them; what is left out is not read."""
import glob
import json
import os
import re
import shutil
import subprocess

import lib_stoup as t

HELPER = os.path.join(t.BIN, "helper_where")
SERIES = "T/WHERE/model"
CNT = 60_000


def put(store, codec, seed, first, cnt, block=65536):
    t.run([HELPER, "put", store, codec, str(block), str(seed), str(first), str(cnt)])
    return store


def ask(pool, queries, seed, *options):
    said = t.run([HELPER, "ask", pool, str(CNT), str(queries), str(seed), *options]).stdout
    left_out, spans, records = map(int, re.findall(r"\d+", said))
    t.true(left_out > spans / 10 and spans > 0 and records > 0, f"zone maps leave nothing out: {said}")


def info(store):
    return json.loads(t.run([t.STOUP, "info", "--json", store]).stdout)["volumes"]


def zones(store):
    return sum(volume["zone_maps"] for volume in info(store))


stores = {}
for codec in ("none", "default"):
    store = stores[codec] = os.path.join(t.temp_dir(), "store")
    put(store, codec, 7, 0, 20_000)
    put(store, codec, 7, 20_000, 2)  # a segment of two records has no zone map
    put(store, codec, 7, 20_002, 20_001, 131072)
    put(store, codec, 7, 40_003, CNT - 40_003)
    volumes = info(store)
    t.equal([v["segments"] - v["zone_maps"] for v in volumes], [0, 1, 0, 0], "segments without a zone map")
    t.true("zone maps of" in t.run([t.STOUP, "info", store]).stdout, "stoup info tells of them")
    t.run([t.STOUP, "verify", "--quiet", store])

# ---- random filters ------------------------------------------------------------------------------------------
daemon = t.Daemon(stores["default"], "16M")
ask(daemon.pool, 4000, 1)
daemon.stop()
daemon = t.Daemon(stores["none"], "16M")
ask(daemon.pool, 3000, 2)
ask(daemon.pool, 3000, 3, "direct")
daemon.stop()

# ---- what is left out is not read -----------------------------------------------------------------------------
one = put(os.path.join(t.temp_dir(), "one"), "default", 7, 0, CNT)
daemon = t.Daemon(one, "64M")
segments = info(one)[0]["segments"]
for text, expected in (("u8 = 300", 0), ("price < -1e12", 0), ("key < 2023-11-14T22:13:20.001", 12)):
    before = daemon.counter("loads")
    left_out, spans = map(int, t.run([HELPER, "count", daemon.pool, text]).stdout.split())
    t.equal((left_out, spans), (segments - expected, expected), f"{text}: segments left out and handed out")
    t.equal(daemon.counter("loads") - before, expected, f"{text}: blocks loaded")
daemon.stop()

# ---- the daemon is killed in the middle; the next one has the same records in other segments -------------------
other = put(os.path.join(t.temp_dir(), "other"), "lz4", 7, 0, CNT, 262144)
for options in ([], ["backward"]):
    for second in (one, other):
        daemon = t.Daemon(one, "16M")
        worker = subprocess.Popen([HELPER, "pause", daemon.pool, str(CNT), *options], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, text=True)
        t.equal(worker.stdout.readline(), "middle\n", "in the middle")
        daemon.kill()
        daemon = t.Daemon(second, "16M", pool=daemon.pool)
        said = worker.communicate("\n", timeout=60)[0]
        t.true(worker.returncode == 0 and "left out" in said, f"goes on with the records that match: {said}")
        daemon.stop()

# ---- compact keeps them, and makes them anew where they are not ------------------------------------------------
t.run([t.STOUP, "compact", "--quiet", stores["default"]])
volumes = info(stores["default"])
t.true(all(v["segments"] == v["zone_maps"] for v in volumes), "zone maps after compact")
t.run([t.STOUP, "verify", "--quiet", stores["default"]])
daemon = t.Daemon(stores["default"], "16M")
ask(daemon.pool, 500, 4)
daemon.stop()

# ---- a volume of before there were zone maps -------------------------------------------------------------------
old = os.path.join(t.temp_dir(), "old")
os.mkdir(old)
shutil.copy(os.path.join(os.environ["STOUP_SOURCE_DIR"], "tests", "golden", "orders-default.stoup"), old)
t.equal(zones(old), 0, "zone maps of an old volume")
daemon = t.Daemon(old, "16M")
lines = t.run([t.STOUP, "cat", daemon.pool, "TEST/AAA/order56"]).stdout
daemon.stop()
t.run([t.STOUP, "compact", "--quiet", "--codec", "default", old])
t.equal(zones(old), sum(volume["segments"] for volume in info(old)), "zone maps made by compact")
t.run([t.STOUP, "verify", "--quiet", old])
daemon = t.Daemon(old, "16M")
t.equal(t.run([t.STOUP, "cat", daemon.pool, "TEST/AAA/order56"]).stdout, lines, "the records of before")
daemon.stop()
t.true("nothing to be gained" in t.run([t.STOUP, "compact", "--codec", "default", old]).stdout, "all is done then")

# ---- a zone map that lies ---------------------------------------------------------------------------------------
path = glob.glob(os.path.join(one, "*.stoup"))[0]
os.chmod(path, 0o644)
t.run([HELPER, "lie", path])
text = t.run([t.STOUP, "verify", one], expect=1).stdout
t.true("zone map of segment 0" in text and "field u8" in text, text)
t.run([t.STOUP, "verify", "--repair", "--quiet", one])
t.run([t.STOUP, "verify", "--quiet", one])
t.true(zones(one) > 50, "zone maps after a repair")
daemon = t.Daemon(one, "16M")
ask(daemon.pool, 300, 5)
daemon.stop()
