# SPDX-License-Identifier: Apache-2.0
"""A disk that is full at any place of an ingest: a text with the need, and the store as it was.

A file system of this test's own (a tmpfs in a mount namespace) that lacks room or inodes, and a largest
size of files (RLIMIT_FSIZE). A daemon that serves the store beside failing ingests goes on.
"""
import os
import re
import subprocess
import sys

import lib_stoup as t

directory = t.temp_dir()
symbols = {"AAA": 11}
rows = list(t.mbo_records(30_000, symbols))
before, after = t.Totals(), t.Totals()
for number, (_, key, price, size) in enumerate(rows):
    after.add(key, price, size)
    if number < 15_000:
        before.add(key, price, size)
old, new = (os.path.join(directory, name) for name in ("old.dbn", "new.dbn"))
t.dbn_file(old, symbols, (t.mbo(*row) for row in rows[:15_000]))
t.dbn_file(new, symbols, (t.mbo(*row) for row in rows[15_000:]))
name = t.name_of("AAA")
messages = set()


def ingest(store, path, *prefix, memory=None):
    more = ["--memory", memory] if memory else []
    return subprocess.run([*prefix, t.STOUP, "ingest", "--quiet", "--store", store, "--block", "64K", "--codec", "none",
                           *more, path],
                          capture_output=True, text=True, timeout=120)


def contents(store, expected, what):
    names = os.listdir(store)
    t.equal([entry for entry in names if entry.startswith(".tmp")], [], f"{what}: temporary files")
    t.run([t.STOUP, "verify", store])
    daemon = t.Daemon(store, "1M")
    (found,) = t.Worker(daemon.pool, name).finish()
    expected.check(found, what)
    t.equal(daemon.stop(), 0, "exit status")


def failed(done, *words):
    t.equal(done.returncode, 1, f"{done.args}: {done.stderr}")
    for word in words:
        t.true(word in done.stderr, f"'{word}' in {done.stderr}")
    messages.add(re.sub(r"[0-9a-f]{8,}|\d+", "N", done.stderr.strip()))


# ---- no file may be longer ---------------------------------------------------------------------------------
store = os.path.join(directory, "store")
t.equal(ingest(store, old).returncode, 0, "the first ingest")
(volume,) = [entry for entry in os.listdir(store) if entry.endswith(".stoup")]
whole = os.path.getsize(os.path.join(store, volume))
serving = t.Daemon(store, "1M")
for limit in (0, 1, 63, 64, 65, 4096, whole // 3, whole // 2, whole - 5000):
    failed(ingest(store, new, "prlimit", f"--fsize={limit}:{limit}"), "File too large", "ulimit -f",
           "the store is unchanged")
    contents(store, before, f"at most {limit} bytes per file")
(found,) = t.Worker(serving.pool, name).finish()
before.check(found, "a daemon beside failing ingests")
serving.stop()
t.equal(ingest(store, new).returncode, 0, "without the limit")
contents(store, after, "after all")

# ---- a full file system --------------------------------------------------------------------------------------
if not t.can_mount():
    print("unverified: a file system of its own needs root and mount namespaces")
    sys.exit(0)
if not os.environ.get("STOUP_FULL_DISK"):
    os.environ["STOUP_FULL_DISK"] = t.temp_dir()
    done = subprocess.run(["unshare", "-m", sys.executable, "-B", __file__])
    sys.exit(done.returncode)
mount = os.environ["STOUP_FULL_DISK"]


def with_room(size, inodes=""):
    subprocess.run(["umount", mount], capture_output=True)
    t.run(["mount", "-t", "tmpfs", "-o", f"size={size}{inodes}", "tmpfs", mount])


# Of the store: from no room at all to just too little; a first ingest and one into a store with contents.
store = os.path.join(mount, "store")
room = 4096
while True:
    with_room(room)
    done = ingest(store, old)
    if done.returncode == 0:
        break
    failed(done, "o space left", "free")
    t.equal([e for e in os.listdir(mount) if e != "store"], [], "files")
    t.true(not os.path.exists(store) or os.listdir(store) in ([], [".lock"]), f"left: {room}")
    room += 61_440
t.true(room > 300_000, f"several sizes were too small: {room}")
first = room
for more in range(0, 4_000_000, 61_440):
    with_room(first + more)
    t.equal(ingest(store, old).returncode, 0, "the first")
    done = ingest(store, new)
    contents(store, after if done.returncode == 0 else before, f"{more} bytes more than the first needs")
    if done.returncode == 0:
        break
    failed(done, "o space left", "free", "the store is unchanged")
t.true(more > 300_000, f"several sizes were too small: {more}")
# No inode is left.
with_room("64M", ",nr_inodes=5")
t.equal(ingest(store, old).returncode, 0, "an ingest takes directory, lock, volume")
with open(os.path.join(mount, "last"), "wb"):
    pass
failed(ingest(store, new), "o space left")
contents(store, before, "without an inode")

subprocess.run(["umount", mount], capture_output=True)
print("\n".join(sorted(messages)))
