# SPDX-License-Identifier: Apache-2.0
"""compact, rm, repair and diff of messages, which are of any length: each stays whole, in its order."""
import os
import re
import shutil

import lib_care as c
import lib_stoup as t

NAME = "X/feed/json"
T = t.T0


def lines_of(day, count=1_500, salt=0):
    """Time and message, some of equal times, of lengths from a few bytes to some KiB."""
    for i in range(count):
        key = T + day * 10**12 + i // 3 * 1000
        length = i * 7919 % 60 if i % 97 else i * 31 % 9000
        yield key, f'{{"d":{day},"i":{i},"s":{salt},"x":"{"ab" * (length // 2)}"}}'


def ingest(store, rows, *options):
    path = store + ".jsonl"
    with open(path, "w", encoding="ascii") as out:
        for key, text in rows:
            out.write(f"{key} {text}\n")
    t.run([t.STOUP, "ingest", "--quiet", "--store", store, "--format", "jsonl", "--as", "text", "--series", NAME,
           "--block", "64K", *options, path])
    os.unlink(path)


def new_store(days, *options, **more):
    store = os.path.join(t.temp_dir(), "store")
    for day in days:
        ingest(store, lines_of(day, **more), *options)
    return store


def messages_of(store):
    """What a daemon hands out."""
    daemon = t.Daemon(store, "8M")
    out = t.run([t.STOUP, "cat", "--format", "jsonl", daemon.pool, NAME]).stdout
    daemon.stop()
    return out.splitlines()


days = range(4)
original = new_store(days, "--codec", "lz4")
c.ingest(original, 0)  # records beside them
whole = messages_of(original)
t.equal(len(whole), 6_000, "messages")

# A message that is longer than a block, and messages of which a block holds one.
long = os.path.join(t.temp_dir(), "store")
ingest(long, ((T + i, f'{{"x":"{"ab" * (60_000 if i == 3 else 20_000)}"}}') for i in range(20)))
for _ in range(2):
    done = c.stoup("compact", "--codec", "default", "--block", "64K", long).stdout
t.true("nothing to be gained" in done, f"long messages: {done}")

# ---- compact ---------------------------------------------------------------------------------------------------
for options in ([], ["--codec", "small"], ["--codec", "fast", "--block", "64K"], ["--codec", "zstd", "--block", "256K"],
                ["--codec", "none", "--block", "64K", "--volume", "200K"]):
    store = c.copy_of(original)
    out = c.stoup("compact", *options, store).stdout
    t.true(f"{NAME}" in out and "6000" in out, out)
    t.run([t.STOUP, "verify", store])
    t.true(messages_of(store) == whole, f"{options}: the same messages")
    c.must_be_same(original, store, f"{options}")
    t.true("nothing to be gained" in c.stoup("compact", *options, store).stdout, f"{options}: once more")
    t.true("nothing to be gained" in c.stoup("compact", *options, store).stdout, f"{options}: again")

# ---- a range, also inside a run --------------------------------------------------------------------------------------
keys = [key for day in days for key, _ in lines_of(day)]
for low, high in ((keys[100], keys[1300]), (keys[1400], keys[3100]), (keys[5_997], keys[-1] + 1)):
    store = c.copy_of(original)
    c.stoup("rm", "--quiet", "--from", str(low), "--to", str(high), store, NAME)
    t.run([t.STOUP, "verify", store])
    t.true(messages_of(store) == [m for m, key in zip(whole, keys) if not low <= key < high], f"{low} to {high}")
    c.must_be_same(original, store, "the records beside them", t.name_of("AAA"))
store = c.copy_of(original)
c.stoup("rm", "--quiet", store, NAME)
t.equal([s["name"] for s in c.info(store)["series"] if s["name"] == NAME], [], "all of them")

# ---- diff ---------------------------------------------------------------------------------------------------------------
other = new_store([0, 1])
ingest(other, lines_of(2, salt=5))
ingest(other, lines_of(3))
out = c.stoup("diff", original, other, NAME, expect=1).stdout
t.true("1500 of 6000 records differ; first at record 3000" in out and "byte" in out, out)

# ---- overlaps -------------------------------------------------------------------------------------------------------------
lapping = new_store([0])
again, mixed = new_store([0]), new_store([0], salt=9)
for source in (again, mixed):
    shutil.copy(os.path.join(source, c.volumes_of(source)[0]), lapping)
merged = c.copy_of(lapping)
c.stoup("compact", "--quiet", "--overlaps", "merge", merged)
t.run([t.STOUP, "verify", merged])
t.equal(sorted(messages_of(merged)), sorted(messages_of(again) * 2 + messages_of(mixed)), "all messages of all volumes")
c.stoup("compact", "--quiet", "--overlaps", "dedup", lapping)
t.run([t.STOUP, "verify", lapping])
t.equal(sorted(messages_of(lapping)), sorted(messages_of(again) + messages_of(mixed)), "each once")

# ---- repair ---------------------------------------------------------------------------------------------------------------
store = c.copy_of(original)
path = os.path.join(store, c.volumes_of(store)[1])
c.flip(path, 3000)
out = c.stoup("verify", "--repair", store).stdout
(lost,) = re.findall(r"^lost: (\S+): (\d+) records, ordinals (\d+) to (\d+),", out, re.M)
t.equal(lost[0], NAME, "the series")
first, last = int(lost[2]), int(lost[3])
t.true(first == 1500 and last < 3000, f"in the second volume: {lost}")
t.run([t.STOUP, "verify", store])
t.true(messages_of(store) == whole[:first] + whole[last + 1:], "what is left")
