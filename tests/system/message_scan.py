# SPDX-License-Identifier: Apache-2.0
"""Messages of variable length: stored, served, scanned in every way, printed.

helper_messages makes them from their numbers and compares each one that a scan yields with what it must be.
"""
import json
import os
import shutil
import subprocess

import lib_stoup as t

HELPER = os.path.join(t.BIN, "helper_messages")
KEY0 = 1_700_000_000_000_000_000
CNT = 20_000
JSON, FRAMES = "X/btc/json", "X/btc/frames"


def put(store, codec, *series, block="65536", order="refuse"):
    t.run([HELPER, "put", store, codec, block, order, *map(str, series)])
    return store


def scan(pool, series, seed, cnt, *options):
    done = t.run([HELPER, "scan", pool, series, series.rsplit("/", 1)[1], str(seed), str(cnt), *options])
    t.equal(done.stdout, "good\n", f"scan of {series}")


# ---- forward, backward, ranges; in the pool and in the file ------------------------------------------------
stores = {}
for codec in ("lz4", "zstd", "none"):
    stores[codec] = put(os.path.join(t.temp_dir(), "store"), codec, JSON, "json", 1, 0, CNT,
                        FRAMES, "frames", 2, 0, CNT)
    daemon = t.Daemon(stores[codec], "16M")
    scan(daemon.pool, JSON, 1, CNT, "queries", "60")
    scan(daemon.pool, FRAMES, 2, CNT, "queries", "60")
    if codec == "none":
        scan(daemon.pool, JSON, 1, CNT, "direct", "queries", "60")
        scan(daemon.pool, FRAMES, 2, CNT, "direct", "queries", "60")
    t.equal(daemon.settled()["counters"]["leases"], 0, "leases left")
    daemon.stop()
    t.run([t.STOUP, "verify", "--quiet", stores[codec]])

# Two volumes of one series that touch in the middle of equal keys; a pool of a few blocks.
store = put(os.path.join(t.temp_dir(), "store"), "lz4", JSON, "json", 1, 0, 10_001)
put(store, "zstd", JSON, "json", 1, 10_001, 9_999)
daemon = t.Daemon(store, "1M")
scan(daemon.pool, JSON, 1, CNT, "queries", "40")
daemon.stop()

# ---- the daemon is killed in the middle --------------------------------------------------------------------
for options in (["pause"], ["pause", "backward"], ["pause", "fork"]):
    daemon = t.Daemon(stores["lz4"], "16M")
    worker = subprocess.Popen([HELPER, "scan", daemon.pool, FRAMES, "frames", "2", str(CNT), *options],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    t.equal(worker.stdout.readline(), "middle\n", "in the middle")
    daemon.kill()
    # The next one serves the same messages in other blocks.
    daemon = t.Daemon(stores["none"], "16M", pool=daemon.pool)
    said = worker.communicate("\n", timeout=60)[0]
    t.equal((worker.returncode, said), (0, "good\n"), f"goes on at the same message, {options}")
    daemon.stop()

# ---- printed ------------------------------------------------------------------------------------------------
daemon = t.Daemon(stores["zstd"], "16M")


def cat(series, *options, expect=0):
    return t.run([t.STOUP, "cat", *options, daemon.pool, series], expect).stdout


def time_of(i):
    ns = i // 3 * 1000
    return f"2023-11-14T22:13:20.{ns:09d}Z"


lines = cat(JSON, "--format", "jsonl").splitlines()
t.equal(len(lines), CNT, "lines")
for i, line in enumerate(lines):
    record = json.loads(line)
    t.equal((record["key"], record["message"]["n"]), (time_of(i), i), "message as a value")
rows = cat(JSON, "--limit", "2").splitlines()
t.equal(rows[0], "key,message", "names")
t.true(rows[1].startswith(time_of(0) + ',"{""n"":0,""p"":""'), "quotes are doubled: " + rows[1])
back = cat(JSON, "--backward", "--format", "jsonl", "--limit", "100").splitlines()
t.equal(back, lines[:-101:-1], "backward")
some = cat(JSON, "--from", str(KEY0 + 5000), "--to", str(KEY0 + 7000), "--format", "jsonl").splitlines()
t.equal(some, lines[15:21], "a range")
hexes = cat(FRAMES, "--no-header", "--limit", "50").splitlines()
for i, line in enumerate(hexes):
    key, text = line.split(",")
    t.equal(key, time_of(i), "key of a frame")
    t.true(len(bytes.fromhex(text)) < 50 and text == text.lower(), "hexadecimal digits")
t.equal(json.loads(cat(FRAMES, "--format", "jsonl", "--limit", "2").splitlines()[1])["message"],
        hexes[1].split(",")[1], "the same digits")
said = t.run([t.STOUP, "cat", "--format", "npy", daemon.pool, JSON], 1).stderr
t.true("--format csv or jsonl" in said, said)
said = t.run([t.STOUP, "bench", "--series", JSON, daemon.pool], 1).stderr
t.true("not measured" in said, said)
daemon.stop()
table = t.run([t.STOUP, "ls", stores["zstd"]]).stdout
t.true(f"{CNT}" in table and "json" in table and "frames" in table, table)
(row,) = [row for row in json.loads(t.run([t.STOUP, "ls", "--json", stores["none"]]).stdout)["series"]
          if row["name"] == JSON]
t.equal((row["records"], row["stride"]), (CNT, 0), "ls --json")

# ---- damage inside of a run, under hashes that are right ----------------------------------------------------
GOLDEN = os.path.join(os.environ["STOUP_SOURCE_DIR"], "tests", "golden", "damaged")
with open(os.path.join(GOLDEN, "faults.txt"), encoding="utf-8") as table:
    faults = [line.rstrip("\n").split("\t") for line in table if line.startswith("message-")]
t.true(len(faults) >= 7, f"damaged volumes: {faults}")
for name, _, _, off, words in faults:
    store = t.temp_dir()
    shutil.copy(os.path.join(GOLDEN, name + ".stoup"), os.path.join(store, "00000003-00-x.stoup"))
    said = t.run([t.STOUP, "verify", store], 1).stdout
    t.true(words[:100] in said and f"offset {off}" in said, f"verify: {said}")
    daemon = t.Daemon(store, "4M")
    for options in ([], ["direct"]):
        *errors, counts = t.run([HELPER, "count", daemon.pool, "TEST/AAA/json", *options]).stdout.splitlines()
        t.equal(counts.split()[:2], ["12", "7"], f"{name} {options}: messages read and left out")
        t.equal(len(errors), 1, f"{name}: {errors}")
        t.true(errors[0].startswith("-74 ") and f"block 1 at offset {off}" in errors[0], f"{name} {options}: {errors}")
        # In a file the run is found by its first entry: damage there has other words.
        t.true(options or words[:60] in errors[0], f"{name}: {errors}")
        # The other series of that block: refused with it by the daemon, served by itself from the file.
        *errors, counts = t.run([HELPER, "count", daemon.pool, "TEST/BBB/json", *options]).stdout.splitlines()
        t.equal(counts.split()[:2], ["5", "0"] if options else ["0", "5"], f"{name} {options}: {errors}")
        t.equal(t.run([HELPER, "count", daemon.pool, "TEST/AAA/frames", *options]).stdout.split()[0], "9",
                "another block")
    daemon.stop()

# An ingest that would have to keep something of such a block says so, and changes nothing.
def volumes():
    return sorted(name for name in os.listdir(store) if name.endswith(".stoup"))


before = volumes()
first = (1_735_689_600_003_001_000 - KEY0) // 1000 * 3
done = t.run([HELPER, "put", store, "lz4", "65536", "replace", "TEST/AAA/json", "json", "1", str(first), "2"], 1)
t.true("block 1 is damaged" in done.stderr and "would be lost" in done.stderr, done.stderr)
t.equal(volumes(), before, "the store is unchanged")
