# SPDX-License-Identifier: Apache-2.0
"""stoup cat and its range: ends that cross are a usage error; a damaged block is counted."""
import glob
import json
import os
import subprocess

import lib_stoup as t

store, _ = t.make_store(6_000, block="64K", codec="none")
name = t.name_of("AAA")
rows = list(t.mbo_records(6_000, {"AAA": 11}))
daemon = t.Daemon(store, "8M")

# Later than its end: told in ISO times, whichever form they were given in.
crossed = t.run([t.STOUP, "cat", "--from", "2024-01-02", "--to", str(t.T0), daemon.pool, name], expect=2)
t.true("--from 2024-01-02T00:00:00.000000000Z is later than --to 2023-11-14T22:13:20.000000000Z"
       in crossed.stderr, crossed.stderr)
t.equal(crossed.stdout, "", "nothing on standard output")
t.run([t.STOUP, "cat", "--to", "2023-01-01", "--from", "2023-01-02", "nopool", "x"], expect=2)
zero = t.run([t.STOUP, "cat", "--from", "1970-01-01", daemon.pool, name], expect=2)
t.true("later than 1970" in zero.stderr, zero.stderr)

# An empty range is none; half-open ones are as ever.
same = t.run([t.STOUP, "cat", "--no-header", "--from", str(rows[5][1]), "--to", str(rows[5][1]), daemon.pool,
              name])
t.equal(same.stdout, "", "from = to")
some = t.run([t.STOUP, "cat", "--no-header", "--from", str(rows[5][1]), "--to", str(rows[9][1]), daemon.pool,
              name])
t.equal(len(some.stdout.splitlines()), 4, "four records")
daemon.stop()

# A block is damaged: what was left out is counted exactly, and within a range at most.
(volume,) = glob.glob(os.path.join(store, "*.stoup"))
with open(volume, "r+b") as out:
    out.seek(4096 + 1000)
    out.write(b"\xff\xff\xff\xff")
daemon = t.Daemon(store, "8M")
all_ = t.run([t.STOUP, "cat", "--no-header", "--skip-damaged", daemon.pool, name], expect=1)
left = 6_000 - len(all_.stdout.splitlines())
t.true(0 < left < 6_000, f"one block is missing: {left} records")
t.true(f"stoup cat: {left} records left out" in all_.stderr, all_.stderr)
cut = t.run([t.STOUP, "cat", "--no-header", "--skip-damaged", "--from", str(rows[9][1]), daemon.pool, name],
            expect=1)
t.equal(len(cut.stdout.splitlines()), 6_000 - left, "the same blocks are read")
t.true(f"at most {left - 1} records left out" in cut.stderr, cut.stderr)

# What is left of it answers the other questions, each with exit status 1: the damaged block is the first one.
rest = all_.stdout.splitlines()


def ask(*options, count=None):
    done = t.run([t.STOUP, "cat", "--no-header", "--skip-damaged", *options, daemon.pool, name], expect=1)
    t.true(f"{left} records left out" in done.stderr, f"{options}: {done.stderr}")
    return done.stdout.splitlines()


t.equal(ask("--first", "3"), rest[:3], "the first that can be read")
t.equal(ask("--reverse"), rest[::-1], "backward")
t.equal(ask("--first", "3", "--reverse"), rest[2::-1], "the first ones, backward")
t.equal(ask("--merge"), [f"{name},{line}" for line in rest], "a merge")
t.equal(ask("--count"), [str(len(rest))], "a count of what can be read")
t.equal(ask("--where", "size > 40", "--count"), [str(sum(int(line.split(",")[6]) > 40 for line in rest))], "a filter")
# Without it: an error where the block is needed, and none where it is not.
last = t.run([t.STOUP, "cat", "--no-header", "--last", "3", daemon.pool, name])
t.equal(last.stdout.splitlines(), rest[-3:], "the last ones lie behind it")
t.equal(t.run([t.STOUP, "cat", "--no-header", "--count", daemon.pool, name]).stdout, "6000\n", "the index tells how many")
for options in (["--first", "1"], ["--asof", str(rows[3][1])], ["--where", "size > 0"], ["--merge"], ["--bars", "1m"],
                ["--count", "--to", str(rows[3][1])]):
    failed = t.run([t.STOUP, "cat", *options, daemon.pool, name], expect=1)
    t.true("is damaged" in failed.stderr or "checksum" in failed.stderr, f"{options}: {failed.stderr}")
# What was printed before it is no whole array of JSON: backward the damaged block is the last one.
cut = t.run([t.STOUP, "cat", "--reverse", "--format", "json", daemon.pool, name], expect=1).stdout
t.equal(len(cut.splitlines()), 1 + len(rest), "lines that were printed before the damage")
t.equal(len(json.loads(cut + "]")), len(rest), "records of an array that was left open")
t.true(cut[-1] != "]" and not cut.endswith("]\n"), "an array that failed in the middle has no end")
t.equal(t.run([t.STOUP, "cat", "--skip-damaged", "--format", "json", daemon.pool, name], expect=1).stdout[-3:], "\n]\n",
        "what --skip-damaged leaves out is told, and the array has an end")
# A full disk behind standard output is told once; a reader that goes away is not, as `head` does.
for command in (["cat", name], ["cat", "--count", name], ["cat", "--where", "size > 0", "--last", "5", name],
                ["cat", "--format", "json", "--last", "9", name], ["replay", "--speed", "max", name]):
    with open("/dev/full", "w", encoding="ascii") as full:
        done = subprocess.run([t.STOUP, command[0], daemon.pool, command[-1], *command[1:-1]], stdout=full, check=False,
                              stderr=subprocess.PIPE, text=True, restore_signals=False, timeout=60)
    told = [line for line in done.stderr.splitlines() if "records" not in line and "checksum" not in line]
    t.equal((done.returncode, told), (1, [f"stoup {command[0]}: standard output: No space left on device"]), f"{command}")
reading, writing = os.pipe()
os.close(reading)
done = subprocess.run([t.STOUP, "cat", daemon.pool, name, "--last", "50"], stdout=writing, stderr=subprocess.PIPE, text=True,
                      restore_signals=False, check=False, timeout=60)  # SIGPIPE stays ignored, as Python has it
t.equal((done.returncode, done.stderr), (1, ""), "the reader has gone")
daemon.stop()
