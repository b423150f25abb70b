# SPDX-License-Identifier: Apache-2.0
"""Each byte of a small volume flipped: verify reports it; damage costs a block or a volume, not more."""
import os

import lib_stoup as t

directory = t.temp_dir()
good_store, good = t.make_store(200, {"GOOD": 5}, directory=t.temp_dir())
store, totals = t.make_store(2_600, {"AAA": 11}, directory=directory)  # three blocks of 64 KiB
(volume,) = [name for name in os.listdir(store) if name.endswith(".stoup")]
path = os.path.join(store, volume)
(other,) = [name for name in os.listdir(good_store) if name.endswith(".stoup")]
original = open(path, "rb").read()
t.run([t.STOUP, "verify", store])


def flip(offset):
    with open(path, "r+b") as out:
        out.seek(offset)
        out.write(bytes([original[offset] ^ 0x40]))


def restore():
    with open(path, "r+b") as out:
        out.write(original)


# Through the tool: a sample of offsets in every region (the unit tests take every byte).
size = len(original)
step = max(1, size // 150)
regions = set()
for offset in sorted({*range(0, size, step), *range(0, 64, 5), *range(size - 64, size, 5), size - 1}):
    flip(offset)
    bad = t.run([t.STOUP, "verify", store], expect=1)
    text = bad.stdout + bad.stderr
    t.true(volume in text and "offset" in text, f"byte {offset}: file and offset in {text}")
    regions |= {word for word in ("header", "block", "padding", "footer", "trailer") if word in text}
    restore()
t.true({"header", "block", "footer", "trailer"} <= regions, f"regions named: {regions}")

# Cut short at several lengths.
for keep in (0, 1, 63, 64, size // 3, size - 65, size - 1):
    with open(path, "r+b") as out:
        out.truncate(keep)
    bad = t.run([t.STOUP, "verify", store], expect=1)
    t.true(volume in bad.stdout + bad.stderr, f"truncated to {keep}")
    with open(path, "wb") as out:
        out.write(original)

# A damaged block costs that block alone: the scan names file and offset, and goes on behind it.
flip(64 + 10)
daemon = t.Daemon(store, "2M")
lines = t.run([t.STOUP, "cat", "--skip-damaged", daemon.pool, t.name_of("AAA")], expect=1)
t.true(volume in lines.stderr and "offset 64" in lines.stderr, lines.stderr)
printed = len(lines.stdout.splitlines()) - 1
t.true(0 < printed < 2_600, f"records of the other blocks: {printed}")
t.true(f"{2_600 - printed} records left out" in lines.stderr, lines.stderr)
stat = daemon.stat()
t.true(any(volume in error["text"] for error in stat["errors"]), f"error log: {stat['errors']}")
daemon.stop()
restore()

# A damaged footer costs that volume alone.
os.link(os.path.join(good_store, other), os.path.join(store, "0" + other))
flip(size - 200)
daemon = t.Daemon(store, "2M")
(found,) = t.Worker(daemon.pool, t.name_of("GOOD")).finish()
good["GOOD"].check(found, "the other volume")
missing = t.run([t.WORKER, daemon.pool, t.name_of("AAA")], expect=1)
stat = daemon.stat()
t.equal(stat["counters"]["volumes_refused"], 1, "volumes refused")
t.true(any("footer" in error["text"] and volume in error["text"] for error in stat["errors"]),
       f"region and file: {stat['errors']}")
daemon.stop()
restore()

# Truncated while it is served: one block fails with file and offset, no crash.
# The worker is there before: who comes after the next rescan does not even see the volume.
daemon = t.Daemon(store, "2M")
worker = t.Worker(daemon.pool, t.name_of("AAA"), "--steps")
t.equal(worker.line(), {"ready": True}, "the worker is attached")
with open(path, "r+b") as out:
    out.truncate(100)
worker.process.stdin.write("\n")
(bad,) = worker.finish(expect=1)
t.true(volume in bad["text"] and "truncated" in bad["text"], bad["text"])
daemon.runs("the daemon lives")
daemon.stop()
