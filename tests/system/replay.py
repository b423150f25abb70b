# SPDX-License-Identifier: Apache-2.0
"""`stoup replay` prints what `stoup cat --merge` prints, in the same order, at any speed; says how late it was; cuts gaps; and
ends well by Ctrl-C, in a wait as well as in the middle of printing. No time is asserted but that nothing came early."""
import csv
import json
import os
import re
import signal
import subprocess
import time

import lib_stoup as t

LATE = re.compile(r"stoup replay: (\d+) records; late: p50 [\d.]+ (ns|us|ms|s), p99 [\d.]+ (ns|us|ms|s), max [\d.]+ "
                  r"(ns|us|ms|s)(; [\d.]+ s of the data's gaps left out)?(; ended by a signal)?\n")
HOUR = 3600 * 10**9

directory = t.temp_dir()
store = os.path.join(directory, "store")
symbols = {"AAA": 1, "BBB": 2, "CCC": 3}
rows = []
# Three days of some minutes, ties, 20 ms to 3 s between records.
for i in range(3000):
    key = t.T0 + i // 1000 * 24 * HOUR + i % 1000 // 2 * 300_000_000
    rows.append(t.mbo(1 + i * 7 % 3, key, 1_000_000_000 * (i % 50), 1 + i % 9, sequence=i))
dbn = os.path.join(directory, "in.dbn")
t.dbn_file(dbn, symbols, rows)
t.run([t.STOUP, "ingest", "--store", store, "--block", "64K", "--quiet", dbn])
with open(os.path.join(directory, "m.jsonl"), "w", encoding="ascii") as out:
    for i in range(300):
        out.write('%d {"n":%d}\n' % (t.T0 + i * 500_000_000, i))
t.run([t.STOUP, "ingest", "--store", store, "--quiet", "--series", "XTST.TEST/M/json", out.name])
names = [t.name_of(symbol) for symbol in ("BBB", "AAA", "CCC")] + ["XTST.TEST/M/json"]
daemon = t.Daemon(store)


def replay(*options, series=names, expect=0):
    done = t.run([t.STOUP, "replay", *options, daemon.pool, *series], expect=expect)
    return done.stdout, done.stderr


# ---- the same records in the same order, whatever the speed and the format ------------------------------
for form in ("csv", "jsonl", "json"):
    expected = t.run([t.STOUP, "cat", "--merge", "--format", form, daemon.pool, *names]).stdout
    for options in (("--speed", "max"), ("--speed", "1e9"), ("--speed", "1e6", "--max-gap", "1s")):
        found, told = replay("--format", form, *options)
        t.equal(found, expected, f"replay {form} {options}")
        if options[1] == "max":
            t.equal(told, "stoup replay: 3300 records\n", "what a replay at full speed tells")
        else:
            t.true(LATE.fullmatch(told) and told.startswith("stoup replay: 3300 "), f"told: {told}")
t.equal(len(expected and json.loads(expected)), 3300, "records")
found, told = replay("--speed", "1e6", "--max-gap", "1s")
t.true("s of the data's gaps left out" in told, f"two nights are left out: {told}")
t.equal(round(float(re.search(r"([\d.]+) s of the data", told)[1])), round((2 * 24 * HOUR - 2 * 149_700_000_000) / 1e9 - 2),
        "seconds left out")
found, told = replay("--speed", "1e9", "--no-header", series=names[:1])
t.equal(found, t.run([t.STOUP, "cat", "--no-header", daemon.pool, names[0]]).stdout, "one series has no column of names")
start, stop = t.T0 + 10 * 10**9, t.T0 + 20 * 10**9
found, told = replay("--speed", "1e9", "--from", str(start), "--to", str(stop))
t.equal(found, t.run([t.STOUP, "cat", "--merge", "--from", str(start), "--to", str(stop), daemon.pool, *names]).stdout,
        "a range")
found, told = replay("--from", str(t.T0 + 1000 * HOUR))
t.equal((len(found.splitlines()), told), (1, "stoup replay: 0 records\n"), "a range without records")


# ---- patterns: as of stoup cat; each series once ---------------------------------------------------------
for asked in (["XTST.TEST/*"], ["*/CCC/mbo"], ["XTST.TEST/BBB/mbo", "XTST.TEST/*"], [names[0]] * 2 + names[1:] + names[:1]):
    found, told = replay("--speed", "max", series=asked)
    t.equal(found, t.run([t.STOUP, "cat", "--merge", daemon.pool, *asked]).stdout, f"a replay of {asked}")
    t.equal(told, f"stoup replay: {1000 if 'CCC' in asked[0] else 3300} records\n", f"records of {asked}")
t.true("no series matches 'NOPE*'" in replay(series=["NOPE*"], expect=1)[1], "a pattern that matches nothing")

# ---- nothing is early: each line is read no sooner than it is due ------------------------------------------
speed = 40
before = time.monotonic()
process = subprocess.Popen([t.STOUP, "replay", "--speed", str(speed), "--to", str(t.T0 + 12 * 10**9), daemon.pool, *names],
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
reader = csv.reader(process.stdout)
columns = next(reader)
t.equal(columns[0], "series", "the first column")
seen = 0
for line in reader:
    row = dict(zip(columns, line))
    stamp = row["ts_recv"] or row["key"]
    seconds, nanos = re.fullmatch(r".*:(\d\d)\.(\d{9})Z", stamp).groups()
    offset = (int(seconds) - (t.T0 // 10**9) % 60) % 60 + int(nanos) / 1e9
    t.true(time.monotonic() - before >= offset / speed, f"{stamp} came early")
    seen += 1
t.equal((process.wait(60), seen), (0, 104), "exit status and records")
t.true(LATE.fullmatch(process.stderr.read()), "the line at the end")

# ---- Ctrl-C ------------------------------------------------------------------------------------------------
for number in (signal.SIGINT, signal.SIGTERM):
    process = subprocess.Popen([t.STOUP, "replay", daemon.pool, *names], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               text=True)
    lines = [process.stdout.readline() for _ in range(2)]
    t.true(lines[1].startswith("XTST.TEST/BBB/mbo,") or lines[1].startswith("XTST.TEST/AAA/mbo,"), f"flushed: {lines}")
    process.send_signal(number)
    out, told = process.communicate(timeout=60)
    t.equal(process.returncode, -number, "ended by the signal")
    t.true(LATE.fullmatch(told) and told.endswith("; ended by a signal\n"), f"told: {told}")
    t.true(not out or out.endswith("\n"), "whole lines")
# In the middle of printing, into a pipe that nobody reads.
process = subprocess.Popen([t.STOUP, "replay", "--speed", "max", "--format", "jsonl", daemon.pool, *names],
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
process.stdout.readline()
process.send_signal(signal.SIGINT)
t.true(process.stderr.readline().endswith("ended by a signal\n"), "told while nobody reads")
process.stdout.close()
t.equal(process.wait(60), -signal.SIGINT, "ended while nobody reads")
process = subprocess.Popen([t.STOUP, "replay", "--format", "json", daemon.pool, *names], stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, text=True)
first = process.stdout.readline()
process.send_signal(signal.SIGINT)
json.loads(first + process.communicate(timeout=60)[0])

# ---- a reader that goes while nothing is due -------------------------------------------------------------------
process = subprocess.Popen([t.STOUP, "replay", "--speed", "0.001", daemon.pool, names[0]], stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, text=True)
t.true(process.stdout.readline().startswith("rtype,") and process.stdout.readline(), "the first record")
process.stdout.close()
t.equal((process.wait(60), process.stderr.read()), (-signal.SIGPIPE, ""), "it ends as `stoup cat` does")

# ---- wrong use -----------------------------------------------------------------------------------------------
for options, word in ((("--speed", "0"), "--speed 0"), (("--speed", "x"), "--speed x"), (("--speed", "2x"), "or max"),
                      (("--max-gap", "5"), "with its unit"), (("--max-gap", "-5s"), "--max-gap -5s"),
                      (("--format", "npy"), "csv, jsonl and json"), (("--from", "x"), "examples"),
                      (("--from", "2024-01-02", "--to", "2024-01-01"), "later")):
    t.true(word in replay(*options, expect=2)[1], f"{options}: {replay(*options, expect=2)[1]}")
t.true("SERIES is missing" in replay(series=[], expect=2)[1], "no series")
t.true("XTST.TEST/AAX/mbo" in replay(series=["XTST.TEST/AAX/mbo"], expect=1)[1], "an unknown series")
daemon.stop()
