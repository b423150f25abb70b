# SPDX-License-Identifier: Apache-2.0
"""Damage, full disks, stores that may not be written: what is said, what is lost, and that nothing else is.

A damaged file is one that the test damages; a full disk is a tmpfs of its own, or a largest size of files.
"""
import errno
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import time

import lib_care as c
import lib_stoup as t

AAA, BBB, CCC = (t.name_of(symbol) for symbol in c.SYMBOLS)
original = c.new_store()
c.ingest(original, 0, count=9_000)
c.ingest(original, 1, "--volume", "200K", count=9_000)
c.ingest(original, 2, count=9_000)


def path_of(store, number):
    return os.path.join(store, c.volumes_of(store)[number])


def blocks_of(path):
    """Block -> [(series, records, ordinal in the volume)]."""
    found = {}
    for series in c.info(path)["series"]:
        for segment in series["segments"]:
            found.setdefault(segment["block"], []).append((series["name"], segment["records"], segment["ordinal"]))
    return found


def offset_of(path, block):
    """The middle of a block's stored bytes: as verify tells it after a byte that can only be in a block was damaged."""
    size = c.footer_offset(path)
    low = 64
    # Blocks follow each other; their stored lengths stand in info.
    for series in c.info(path)["series"]:
        for segment in series["segments"]:
            del segment["volume"]
    lengths = {}
    for series in c.info(path)["series"]:
        for segment in series["segments"]:
            lengths[segment["block"]] = lengths.get(segment["block"], 0) + segment["stored_bytes"]
    for number in sorted(lengths):
        low = (low + 63) // 64 * 64
        if number == block:
            break
        low += lengths[number]
    t.true(low < size, "an offset inside the blocks")
    return low + lengths[block] // 2


# ---- a damaged block -----------------------------------------------------------------------------------------------
for number in (0, 4):
    path = path_of(original, number)
    for block, owners in list(blocks_of(path).items())[:3]:
        store = c.copy_of(original)
        name = c.volumes_of(store)[number]
        c.flip(os.path.join(store, name), offset_of(path, block))
        damaged = open(os.path.join(store, name), "rb").read()
        before = c.bytes_of(store)
        for command in (["compact", store], ["compact", "--codec", "none", store], ["rm", store, owners[0][0], "--to", str(t.T0 + 1)]):
            done = c.stoup(*command, expect=None)
            if "no records in that range" in done.stdout or "nothing to be gained" in done.stdout:
                continue
            t.true(done.returncode == 1 and f"block {block}:" in done.stderr and name in done.stderr, f"{command}: {done}")
            t.equal(c.bytes_of(store), before, f"{command}: nothing was changed")
        out = c.stoup("verify", "--repair", "--dry-run", store).stdout
        t.equal(c.bytes_of(store), before, "a dry run")
        out = c.stoup("verify", "--repair", store).stdout
        lost = re.findall(r"^lost: (\S+): (\d+) records, ordinals (\d+) to (\d+), from (\S+) to (\S+) \((\S+), block (\d+)\)$",
                          out, re.M)
        t.equal(sorted((n, int(r)) for n, r, *_ in lost), sorted((n, r) for n, r, _ in owners), f"lost: {out}")
        for series, records, first, last, begin, end, where, at in lost:
            t.equal((int(last) - int(first) + 1, where, int(at)), (int(records), name, block), "what is said of it")
            # Ordinals are those of a scan of the whole series: without these records it is what is left.
            whole = c.records_of(original, series)
            t.equal(c.records_of(store, series), whole[:int(first)] + whole[int(last) + 1:], f"{series}: what is left")
        for series in {AAA, BBB, CCC} - {entry[0] for entry in lost}:
            c.must_be_same(original, store, series, series)
        t.run([t.STOUP, "verify", store])
        with open(os.path.join(store, name + ".damaged"), "rb") as kept:
            t.true(kept.read() == damaged, "the damaged file is kept")
        # Once more: nothing to be done.
        before = c.bytes_of(store)
        t.true("it was not touched" in c.stoup("verify", "--repair", store).stdout, "idempotent")
        t.equal(c.bytes_of(store), before, "idempotent")

# ---- an index: of a volume alone, and of one of several ------------------------------------------------------------
for number, several in ((0, False), (2, True)):
    for where in ("footer", "trailer", "header", "short"):
        store = c.copy_of(original)
        name = c.volumes_of(store)[number]
        path = os.path.join(store, name)
        size = os.path.getsize(path)
        if where == "short":
            os.truncate(path, size // 2)
        else:
            c.flip(path, {"footer": c.footer_offset(path) + 50, "trailer": size - 30, "header": 40}[where])
        damaged = open(path, "rb").read()
        left = sum(s["records"] for s in c.info(store)["series"])
        out = c.stoup("verify", "--repair", store).stdout
        t.true(f"{name}: moved aside as" in out, out)
        t.equal("stands for it" in out, several, out)
        t.run([t.STOUP, "verify", store])
        t.equal(sum(s["records"] for s in c.info(store)["series"]), left, f"{where}: all others are served")
        with open(path + ".damaged", "rb") as kept:
            t.true(kept.read() == damaged, "moved, not changed")
        t.true("not touched" in c.stoup("verify", "--repair", store).stdout, "idempotent")
        # Brought back from a backup it is served again; first without what stands for it.
        for line in re.findall(r"^(\S+) stands for it", out, re.M):
            os.unlink(os.path.join(store, line))
        shutil.copy(os.path.join(original, name), store)
        c.must_be_same(original, store, f"{where}: brought back")

# ---- a series that keeps its order: what is left of a volume may begin before the end of the one before --------------
FULL = 65536 // 56
K = t.T0 + 10**9
keeps = c.new_store()
before = [(11, K + i, 10**9, 1) for i in range(2 * FULL)]
behind = [(11, K + 2 * FULL + i, 2 * 10**9, 1) for i in range(FULL)] + [(11, K + FULL + i, 3 * 10**9, 1) for i in range(99)]
for rows in (before, behind):
    c.ingest_rows(keeps, rows, "--order", "keep", symbols={"AAA": 11})
whole = c.records_of(keeps, AAA)
for damaged in ((1,), (0, 1)):
    store = c.copy_of(keeps)
    for path in [path_of(store, number) for number in damaged]:
        c.flip(path, 100)
    c.stoup("verify", "--repair", store)
    c.stoup("verify", store)
    left = whole[:2 * FULL] if damaged == (1,) else whole[FULL:2 * FULL]
    t.true(c.records_of(store, AAA) == left + whole[3 * FULL:], f"{damaged}: what is left is served")
    t.equal(len([name for name in os.listdir(store) if name.endswith(".damaged")]), len(damaged), "kept beside")

# ---- padding, and what is no damage -----------------------------------------------------------------------------------
store = c.new_store([0], "--codec", "none")
path = path_of(store, 0)
reference = c.copy_of(store)
c.flip(path, 100)
out = c.stoup("verify", "--repair", store).stdout
t.true("padding" in out and "0 records lost" in out, out)
t.run([t.STOUP, "verify", store])
c.must_be_same(reference, store, "padding mended, nothing lost")
store = c.copy_of(original)
before = c.bytes_of(store)
t.true("not touched" in c.stoup("verify", "--repair", store).stdout, "no damage")
t.equal(c.bytes_of(store), before, "not touched, no lock")
# A later version is no damage: never moved.
newer = c.copy_of(original)
path = path_of(newer, 0)
shutil.copy(os.path.join(newer, c.volumes_of(newer)[0]), os.path.join(newer, "copy.stoup"))
done = c.stoup("verify", "--repair", newer, expect=1)
t.true("not mended" in done.stdout and "same volume" in done.stdout, done.stdout)
t.true(os.path.exists(os.path.join(newer, "copy.stoup")), "left where it is")
t.true("not every volume is whole" in c.stoup("compact", newer, expect=1).stderr, "compact refuses it")

# ---- another writer ------------------------------------------------------------------------------------------------------
store = c.copy_of(original)
held = subprocess.Popen([sys.executable, "-c", f"""
import fcntl, struct, sys
lock = open({store + '/.lock'!r}, "w")
fcntl.fcntl(lock, 37, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 0, 0))
print("held", flush=True)
sys.stdin.read()
"""], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
t.equal(held.stdout.readline(), "held\n", "the lock")
for command in (["compact", store], ["rm", store, AAA]):
    t.true("another writer holds" in c.stoup(*command, expect=1).stderr, f"{command}")
c.must_be_same(original, store, "diff needs no lock")
c.info(store)
t.true("would become" in c.stoup("compact", "--dry-run", store).stdout, "a dry run needs no lock")
held.stdin.close()
held.wait()

# ---- Ctrl-C: ended by the signal, and nothing is left -------------------------------------------------------------------------
for command in (["compact", "--codec", "zstd", "--level", "22", "--threads", "1"], ["rm", "--to", str(t.T0 + 10**9)]):
    for signal_number in (signal.SIGINT, signal.SIGTERM):
        store = c.copy_of(original)
        argv = [t.STOUP, command[0], *command[1:], store, *([AAA] if command[0] == "rm" else [])]
        # Its first temporary file stops it: it was asked before, and looks at it at the next block.
        process = subprocess.Popen(argv, stderr=subprocess.PIPE, text=True, stdout=subprocess.DEVNULL)
        while process.poll() is None and not c.leftovers(store):
            time.sleep(0.0005)
        process.send_signal(signal_number)
        text = process.stderr.read()
        status = process.wait(60)
        t.true(status in (0, -signal_number), f"{argv}: {status} {text}")
        t.equal(c.leftovers(store), [], "temporary files")
        if status != 0:
            t.true("the store is as it was" in text, text)
            c.must_be_same(original, store, "ended by a signal")

# ---- reads that fail ------------------------------------------------------------------------------------------------------------
PRELOAD = {"LD_PRELOAD": "preload_faults.so", "LD_LIBRARY_PATH": os.environ["STOUP_LIB_DIR"]}
if os.environ.get("STOUP_SANITIZED"):
    PRELOAD["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"
orders = os.path.join(t.temp_dir(), "orders")
struck = 0
for every in (3, 7, 20, 31, 45, 60):
    for kind in (1, 3):
        with open(orders, "wb") as out:
            out.write(struct.pack("<4I", kind, every, errno.EIO, 0))
        store = c.copy_of(original)
        done = subprocess.run([t.STOUP, "compact", "--quiet", "--codec", "zstd", store], capture_output=True, text=True,
                              env={**os.environ, **PRELOAD, "STOUP_FAULT_FILE": orders})
        t.true(done.returncode in (0, 1), f"{done}")
        if done.returncode == 1:
            struck += 1
            t.true(done.stderr.count("\n") == 1 and ("nput/output error" in done.stderr or "ends inside" in done.stderr
                                                     or "not every volume" in done.stderr), done.stderr)
        t.equal(c.leftovers(store), [], "temporary files")
        c.must_be_same(original, store, f"every {every}th read fails")
        t.run([t.STOUP, "verify", store])
t.true(struck >= 6, f"it struck {struck} times")

# ---- no file may be longer -------------------------------------------------------------------------------------------------
whole = os.path.getsize(path_of(store, 0))
for limit in (0, 64, 4096, whole // 2, whole - 200):
    store = c.copy_of(original)
    done = subprocess.run(["prlimit", f"--fsize={limit}:{limit}", t.STOUP, "compact", "--codec", "none", store],
                          capture_output=True, text=True)
    t.true(done.returncode == 1 and "File too large" in done.stderr and "unchanged" in done.stderr, f"{limit}: {done}")
    t.equal(c.leftovers(store), [], "temporary files")
    t.equal(c.volumes_of(store), c.volumes_of(original), "the store as it was")

# ---- a file system of its own: full, and read-only ---------------------------------------------------------------------------
if not t.can_mount():
    print("unverified: a file system of its own needs root and mount namespaces")
    sys.exit(0)
if not os.environ.get("STOUP_CARE_MOUNT"):
    os.environ["STOUP_CARE_MOUNT"] = t.temp_dir()
    os.environ["STOUP_CARE_STORE"] = original
    code = subprocess.run(["unshare", "-m", sys.executable, "-B", "-c", f"""
import os, subprocess, sys
sys.path.insert(0, {os.path.dirname(os.path.abspath(__file__))!r})
import lib_care as c
import lib_stoup as t
mount, original = os.environ["STOUP_CARE_MOUNT"], os.environ["STOUP_CARE_STORE"]
AAA = {AAA!r}
used = sum(os.path.getsize(os.path.join(original, n)) for n in os.listdir(original))
t.run(["mount", "-t", "tmpfs", "-o", f"size={{used * 4}}", "tmpfs", mount])
store = os.path.join(mount, "store")
full = done = None
for spare in range(0, used * 3, used // 4):
    t.run(["umount", mount])
    t.run(["mount", "-t", "tmpfs", "-o", f"size={{used + 65536 + spare}}", "tmpfs", mount])
    subprocess.run(["cp", "-r", original, store], check=True)
    done = c.stoup("compact", "--codec", "lz4", "--level", "1", store, expect=None)
    if done.returncode == 0:
        break
    full = done.stderr
    t.true("o space left" in full and "more needed beside the old volumes" in full and "the store is unchanged" in full, full)
    t.equal(c.leftovers(store), [], "temporary files")
    c.must_be_same(original, store, "a full disk")
    done = c.stoup("rm", "--to", str(t.T0 + 10**9), store, AAA, expect=None)
    t.true(done.returncode == 0 or "o space left" in done.stderr, done.stderr)
t.true(full and spare > 0, "at least one disk was too small")
c.must_be_same(original, store, "enough room")
t.run(["mount", "-o", "remount,ro", mount])
for command in (["compact", "--codec", "none", store], ["rm", store, AAA]):
    stderr = c.stoup(*command, expect=1).stderr
    t.true("Read-only file system" in stderr and stderr.count("\\n") == 1, stderr)
t.run([t.STOUP, "verify", store])
t.true("not touched" in c.stoup("verify", "--repair", store).stdout, "nothing to repair there")
c.must_be_same(original, store, "diff reads it")
c.info(store)
"""])
    sys.exit(code.returncode)
