# SPDX-License-Identifier: Apache-2.0
"""Pins: kept blocks survive what evicts all others, the bound is refused with its numbers, and nothing outlives the daemon."""
import json
import errno
import mmap
import os
import random
import re
import shutil
import signal
import struct
import subprocess
import time

import lib_stoup as t
import lib_wire as w

SYMBOLS = {"AAA": 11, "BBB": 22}
store, totals = t.make_store(120_000, SYMBOLS)  # 6.7 MB in blocks of 64 KiB
name, other = t.name_of("AAA"), t.name_of("BBB")
SPAN = ["--from", str(t.T0 + 10_000_000), "--to", str(t.T0 + 30_000_000)]


def stoup(command, *words, expect=0):
    return t.run([t.STOUP, command, *map(str, words)], expect=expect)


def listed(daemon):
    return json.loads(stoup("pin", "--list", "--json", daemon.pool).stdout)


def loads_of(daemon, *words):
    """What a scan loads, and what it reads."""
    before = daemon.counter("loads")
    (found,) = t.Worker(daemon.pool, *words).finish()
    return daemon.counter("loads") - before, found


def pressure(daemon):
    """Eight scans of the other series, in a pool that it does not fit into."""
    workers = [t.Worker(daemon.pool, other) for _ in range(4)]
    for worker in workers:
        (found,) = worker.finish()
        totals["BBB"].check(found, "under pressure")


def flagged(daemon):
    """Buffers that the control object shows as pinned: (how many, their bytes)."""
    with open(f"/dev/shm/stoup.{os.geteuid()}.{daemon.pool}.ctl", "rb") as file:
        with mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as control:
            (table,) = struct.unpack_from("<Q", control, 136)
            (cnt,) = struct.unpack_from("<I", control, 112)
            rows = [struct.unpack_from("<QIIQIIIIQI", control, table + i * 64) for i in range(cnt)]
    rows = [row for row in rows if row[9] & 1]
    t.true(all(row[2] == 2 for row in rows), "what is pinned is resident")
    return len(rows), sum((row[1] + 4095) // 4096 * 4096 for row in rows)


# ---- kept, and let go ---------------------------------------------------------------------------------------------
daemon = t.Daemon(store, "2M")
said = stoup("warm", "--pin", daemon.pool, name, *SPAN).stdout
blocks = int(re.match(r"(\d+) blocks", said)[1])
stat = daemon.settled()
counters = stat["counters"]
t.true(8 <= blocks <= 14, f"blocks of the range: {said}")
t.equal(stat["pin_bytes_max"], 2**20, "half of the pool by default")
t.equal((counters["pins"], counters["pinned_blocks"]), (1, blocks), "pinned")
t.equal(counters["pinned_bytes"], counters["pin_bytes"], "all of it is loaded")
t.equal(flagged(daemon), (blocks, counters["pinned_bytes"]), "as the map shows it")
words = stoup("stat", daemon.pool).stdout
t.true(f"  pins: 1, which keep {blocks} blocks" in words and "at most 1.0 MiB" in words, words)
pressure(daemon)
loads, found = loads_of(daemon, name, *SPAN)
t.equal(loads, 0, "a pinned range after others went through")
t.equal(daemon.settled()["counters"]["pinned_blocks"], blocks, "still pinned")
t.equal(stoup("unpin", daemon.pool, name).stdout, f"1 pin removed in pool '{daemon.pool}'\n", "unpin")
counters = daemon.settled()["counters"]
t.equal([counters[key] for key in ("pins", "pin_bytes", "pinned_blocks", "pinned_bytes")], [0] * 4, "nothing is pinned")
t.equal(flagged(daemon), (0, 0), "no flag")


def gone():
    """What the other series leaves of it depends on how far apart its readers are."""
    pressure(daemon)
    loads, read = loads_of(daemon, name, *SPAN)
    return read if loads > blocks // 2 else None


again = t.until(gone, "unpinned it goes")
t.equal((again["records"], again["price"]), (found["records"], found["price"]), "the same records")

# Pinned first and loaded later, by whoever reads; the text says how many are there.
stoup("pin", daemon.pool, name, *SPAN)
pressure(daemon)
loads_of(daemon, name, *SPAN)
pressure(daemon)
t.equal(loads_of(daemon, name, *SPAN)[0], 0, "kept from when it was loaded")
said = stoup("pin", daemon.pool, name, *SPAN).stdout
found = re.fullmatch(r"pinned (\d+) blocks of 1 series \(([\d.]+) MiB\) in pool '\S+', of them loaded: (\d+) "
                     r"\(([\d.]+) MiB\); all pins keep ([\d.]+) of at most 1\.0 MiB\n", said)
t.true(found and int(found[1]) == int(found[3]) == blocks and found[2] == found[4] == found[5], said)
pins = listed(daemon)
t.equal(len(pins["pins"]), 1, "the same pin again is one pin")
t.equal((pins["pins"][0]["series"], pins["pins"][0]["blocks"]), (name, blocks), "the list")
t.equal((pins["bytes"], pins["bytes_max"]), (daemon.counter("pin_bytes"), 2**20), "the sums")
t.true(pins["pins"][0]["from"].startswith("2023-11-14T22:13:20.01"), f"from: {pins}")

# ---- the bound ----------------------------------------------------------------------------------------------------
held = daemon.counter("pin_bytes")
refused = stoup("pin", daemon.pool, name, expect=1)
found = re.search(r"needs (\d+) bytes, (\d+) are pinned in pool '.*': together more than the 1048576 of --pin-max; mend: ",
                  refused.stderr)
t.true(found and int(found[2]) == held, refused.stderr)
# All blocks of AAA, less those that are pinned already.
whole = int(re.search(r"(\d+) blocks of (\d+) bytes", stoup("warm", daemon.pool, name, expect=1).stderr)[2])
t.equal(int(found[1]), whole - held, "what it needs besides")
# Several: none of them where one is refused.
before = listed(daemon)
refused = stoup("pin", daemon.pool, "*", "--to", t.T0 + 15_000_000, expect=1) if whole < 0 else \
    stoup("pin", daemon.pool, other, name, "--from", t.T0 + 60_000_000, "--to", t.T0 + 68_000_000, expect=1)
t.true("--pin-max" in refused.stderr, refused.stderr)
t.equal(listed(daemon), before, "all or none")
t.equal(daemon.counter("pin_bytes"), held, "nothing is left of it")
said = stoup("unpin", daemon.pool, "nosuch", expect=1).stderr
t.true("has no pin of 'nosuch'" in said, said)
t.equal(stoup("unpin", daemon.pool, "XTST*").stdout, f"1 pin removed in pool '{daemon.pool}'\n", "by pattern")
stoup("pin", daemon.pool, name, other, "--to", t.T0 + 8_000_000)
t.equal(len(listed(daemon)["pins"]), 2, "two series")
t.equal(stoup("unpin", "--all", daemon.pool).stdout, f"2 pins removed in pool '{daemon.pool}'\n", "all")
t.true("has no pins; they may keep 1.0 MiB" in stoup("pin", "--list", daemon.pool).stdout, "an empty list")

# ---- hostile questions --------------------------------------------------------------------------------------------
peer = w.Peer(daemon.pool)
t.equal(peer.hello()["error"], 0, "attach")
for op, series, begin, end, code in ((0, b"x", 0, 0, errno.EINVAL), (5, b"x", 0, 0, errno.EINVAL), (2**32 - 1, b"x", 0, 0, errno.EINVAL),
                                     (w.PIN_ADD, b"", 0, 0, errno.EINVAL), (w.PIN_ADD, b"x" * 512, 0, 0, errno.EINVAL),
                                     (w.PIN_DROP, b"x" * 512, 0, 0, errno.EINVAL), (w.PIN_ADD, b"x", -1, 0, errno.EINVAL),
                                     (w.PIN_ADD, b"x", 5, 4, errno.EINVAL), (w.PIN_ADD, b"nosuch", 0, 0, errno.ENOENT),
                                     (w.PIN_ADD, b"%s%n\x01\xff", 0, 0, errno.ENOENT)):
    error, numbers, text = peer.pin(op, series, begin, end)
    t.equal(error, -code, f"{op} {series[:8]} {begin} {end}: {text}")
    t.true(text, "with a reason")
t.equal(peer.pin(w.PIN_LIST, idx=2**32 - 1)[0], -errno.ENOENT, "no such number")
t.equal(peer.pin(w.PIN_DROP_SAME, b"x", 1, 2)[1]["cnt"], 0, "none of these")
# As many as there may be, and one more.
for number in range(256):
    error, numbers, text = peer.pin(w.PIN_ADD, name.encode(), 1 + number, 2 + number)
    t.equal((error, numbers["cnt"], numbers["blocks"]), (0, 1, 0), f"pin {number}: {text}")
error, _, text = peer.pin(w.PIN_ADD, name.encode(), 1000, 1001)
t.true(error == -errno.ENOSPC and "256 pins" in text, text)
t.equal(len(listed(daemon)["pins"]), 256, "all are listed")
t.equal(peer.pin(w.PIN_DROP)[1]["cnt"], 256, "all go")
# Another length is no question.
peer.send(struct.pack("<QIi", w.HELLO_MAGIC, w.PIN, 0) + bytes(583))
t.true(peer.hung_up(), "another length: hung up")
peer.close()
# Questions without number, answers never read.
for _ in range(4):
    peer = w.Peer(daemon.pool)
    peer.hello()
    peer.sock.setblocking(False)
    try:
        for _ in range(100):
            peer.send(struct.pack("<QIiIIIIqqQQQQII512s", w.HELLO_MAGIC, w.PIN, 0, w.PIN_ADD, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0, 0,
                                  name.encode()))
    except (BlockingIOError, BrokenPipeError, ConnectionResetError):
        pass
    peer.close()
t.until(lambda: daemon.counter("consumers") == 0, "they are gone")
stoup("unpin", "--all", daemon.pool)

# ---- a tool that is killed leaves a sound daemon --------------------------------------------------------------------
random.seed(7)
for _ in range(12):
    process = subprocess.Popen([t.STOUP, "warm", "--pin", daemon.pool, name, other, "--to", str(t.T0 + 8_000_000)],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(random.random() * 0.01)
    process.kill()
    process.wait()
t.until(lambda: daemon.counter("consumers") == 0, "all are gone")
pressure(daemon)
counters = daemon.settled()["counters"]
t.equal(flagged(daemon), (counters["pinned_blocks"], counters["pinned_bytes"]), "flags and counters agree")
stoup("unpin", "--all", daemon.pool)
counters = daemon.settled()["counters"]
t.equal([counters[key] for key in ("pins", "pin_bytes", "pinned_blocks", "pinned_bytes", "leases")], [0] * 5, "all of it goes")

# ---- the daemon ends ------------------------------------------------------------------------------------------------
stoup("pin", daemon.pool, name, other, "--to", t.T0 + 8_000_000)
daemon.kill()
said = stoup("pin", "--list", daemon.pool, expect=1).stderr
t.true(daemon.pool in said, said)
daemon = t.Daemon(store, "2M", pool=daemon.pool)
t.equal(listed(daemon)["lost"], 2, "what ended with the one before")
said = stoup("pin", "--list", daemon.pool).stdout
t.true(said.startswith("pins that ended with the daemon before this one, which was killed: 2\n") and "has no pins" in said, said)
t.true("pins that ended with the daemon before, which was killed: 2" in daemon.stderr(), daemon.stderr())
stoup("pin", daemon.pool, name, "--to", t.T0 + 8_000_000)
# An older daemon: it is said, and not asked.
with open(f"/dev/shm/stoup.{os.geteuid()}.{daemon.pool}.ctl", "r+b") as control:
    control.seek(12)
    minor = control.read(4)
    control.seek(12)
    control.write(struct.pack("<I", 2))
    control.flush()
    for words in (["pin", daemon.pool, name], ["unpin", "--all", daemon.pool], ["pin", "--list", daemon.pool],
                  ["warm", "--pin", daemon.pool, name, "--to", t.T0 + 8_000_000]):
        said = stoup(*words, expect=1).stderr
        t.true("is of an older release, which has no pins: restart it" in said, said)
    control.seek(12)
    control.write(minor)
t.equal(daemon.counter("pins"), 1, "nothing was changed")
daemon.stop()
t.true("pins that end with this daemon: 1" in daemon.stderr(), daemon.stderr())
daemon = t.Daemon(store, "2M", pool=daemon.pool)
t.equal(listed(daemon)["lost"], 0, "one that ended in order has said so itself")
daemon.stop()

# ---- rescans: a new volume of the series ------------------------------------------------------------------------------
grown = os.path.join(t.temp_dir(), "store")
shutil.copytree(store, grown)


def ingest(first, cnt, *options):
    dbn = os.path.join(t.temp_dir(), "in.dbn")
    t.dbn_file(dbn, {"AAA": 11}, (t.mbo(11, first + i * 1000, 5_000_000_000_000, 1) for i in range(cnt)))
    stoup("ingest", "--store", grown, "--block", "64K", "--quiet", *options, dbn)


daemon = t.Daemon(grown, "2M")
stoup("pin", daemon.pool, name, "--from", t.T0 + 100_000_000)
(pin,) = listed(daemon)["pins"]
ingest(t.T0 + 10**9, 2000)
stoup("warm", daemon.pool, name, "--from", t.T0 + 100_000_000)
(more,) = listed(daemon)["pins"]
t.true(more["blocks"] > pin["blocks"] and more["volumes_left_out"] == 0, f"a new volume is taken in: {pin} {more}")
t.equal(daemon.settled()["counters"]["pinned_blocks"], more["blocks"], "and kept")
# One that finds no room under --pin-max is left out, and the log says so; when there is room it is taken in.
ingest(t.T0 + 2 * 10**9, 12_000)
t.until(lambda: listed(daemon)["pins"][0]["volumes_left_out"] == 1, "left out")
t.equal(daemon.counter("pin_bytes"), more["bytes"], "the bound holds")
t.true("new blocks of" in stoup("log", daemon.pool).stdout, "the log")
t.true("(new volumes left out: 1)" in stoup("pin", "--list", daemon.pool).stdout, "the list")
# Volumes merged: the old ones go, the new one is pinned as far as it has room, here not at all.
stoup("compact", grown)
t.until(lambda: daemon.counter("snapshot") >= 4, "the compact is seen")
t.until(lambda: daemon.counter("pinned_blocks") == 0, "blocks of volumes that were replaced are not pinned")
t.equal(listed(daemon)["pins"][0]["volumes_left_out"], 1, "the new one is too much")
stoup("unpin", "--all", daemon.pool)
stoup("warm", "--pin", daemon.pool, name, "--from", t.T0 + 10**9, "--to", t.T0 + 10**9 + 2_000_000)
pressure(daemon)
before = daemon.counter("loads")
t.Worker(daemon.pool, name, "--from", t.T0 + 10**9, "--to", t.T0 + 10**9 + 2_000_000).finish()
t.equal(daemon.counter("loads"), before, "pinned in the new volume")
t.equal(daemon.stop(), 0, "exit status")

# ---- pins never starve the pool ---------------------------------------------------------------------------------------
daemon = t.Daemon(store, "256K", options=["--pin-max", "75%", "--lease-bytes", "256K"])
stoup("warm", "--pin", daemon.pool, name, "--to", t.T0 + 4_000_000)
pinned = daemon.settled()["counters"]["pinned_blocks"]
t.true(2 <= pinned <= 3, f"pinned: {pinned}")
# One buffer beside them: it goes round, and no pin yields. One reader after the other: who has no processor while it holds
# that one would make a pin yield to the next.
for _ in range(4):
    (found,) = t.Worker(daemon.pool, other).finish()
    totals["BBB"].check(found, "in what the pins leave")
t.equal(daemon.settled()["counters"]["pinned_blocks"], pinned, "still pinned")
t.equal(daemon.counter("pins_yielded"), 0, "none yielded")
# That one is held: a pin yields, and the scan ends.
holder = t.Worker(daemon.pool, other, "--hold", 4 - pinned, "--wait", "--to", t.T0 + 6_000_000)
holder.wait_scanned()
(found,) = t.Worker(daemon.pool, other, "--from", t.T0 + 50_000_000).finish()
t.true(found["records"] > 30_000, f"a scan beside a holder: {found}")
counters = daemon.settled()["counters"]
t.true(counters["pins_yielded"] > 0 and counters["starved_failed"] == 0, f"yielded: {counters['pins_yielded']}")
(rest,) = holder.finish()
t.true(rest["held_unchanged"], "what was held never changed")
# Loaded again it is pinned again.
t.Worker(daemon.pool, name, "--to", t.T0 + 4_000_000).finish()
t.equal(daemon.settled()["counters"]["pinned_blocks"], pinned, "pinned again")
daemon.stop()

# ---- blocks that are longer than a pool of this size serves ----------------------------------------------------------------
mixed, _ = t.make_store(60_000, {"AAA": 11}, block="256K")
dbn = os.path.join(os.path.dirname(mixed), "small.dbn")
t.dbn_file(dbn, {"BBB": 22}, (t.mbo(22, t.T0 + i * 10**6, 5 * 10**9, 1, sequence=i) for i in range(5_000)))
t.run([t.STOUP, "ingest", "--store", mixed, "--quiet", "--block", "64K", dbn])
daemon = t.Daemon(mixed, "768K")
said = stoup("pin", daemon.pool, name, "--to", t.T0 + 8_000_000).stdout
left = re.search(r"\n(\d+) blocks of up to (\d+) bytes not pinned: this pool serves at most 196608; mend: a larger stoupd --size\n", said)
t.true(said.startswith("pinned 0 blocks of 1 series (0.0 MiB) in pool") and left and int(left[2]) > 196_608, said)
t.equal(listed(daemon)["pins"][0]["blocks"], 0, "as the daemon says")
said = stoup("pin", daemon.pool, other, "--to", t.T0 + 1_000_000).stdout
t.true(said.startswith("pinned 1 block of 1 series (0.1 MiB) in pool") and said.count("\n") == 1, said)
daemon.stop()

# ---- options ------------------------------------------------------------------------------------------------------------
for value in ("76%", "-1%", "x", "%", "1.5%"):
    said = t.run([t.STOUPD, "--store", store, "--pool", "x", "--pin-max", value], expect=2).stderr
    t.true(f"--pin-max '{value}'" in said, said)
said = t.run([t.STOUPD, "--store", store, "--pool", f"x{os.getpid()}", "--size", "1M", "--pin-max", "900K"], expect=1).stderr
t.true("at most 75 % of the pool" in said, said)
daemon = t.Daemon(store, "2M", options=["--pin-max", "0"])
said = stoup("pin", daemon.pool, name, expect=1).stderr
t.true("more than the 0 of --pin-max" in said, said)
daemon.stop()
daemon = t.Daemon(store, "2M", options=["--pin-max", "300K"])
t.equal(daemon.stat()["pin_bytes_max"], 300 * 1024, "a size")
daemon.stop()

# ---- somebody else --------------------------------------------------------------------------------------------------------
if os.geteuid() == 0:
    programs = t.temp_dir()
    os.chmod(programs, 0o755)
    tool = shutil.copy(t.STOUP, programs)
    daemon = t.Daemon(store, "2M", options=["--allow-user", "nobody"])
    stoup("pin", daemon.pool, name, "--to", t.T0 + 4_000_000)

    def as_nobody(*words):
        return subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", tool, *words], capture_output=True,
                              text=True, timeout=60, env={"PATH": os.environ["PATH"]})

    for words in (["pin", daemon.pool, name], ["unpin", "--all", daemon.pool], ["unpin", daemon.pool, name],
                  ["warm", "--pin", "--best-effort", daemon.pool, name]):
        done = as_nobody(*words)
        t.equal(done.returncode, 1, f"{words} of another user")
        t.true("are made and removed by its owner (uid 0) or root, not by uid 65534" in done.stderr, done.stderr)
    t.equal(json.loads(as_nobody("pin", "--list", "--json", daemon.pool).stdout), listed(daemon), "anybody may list")
    t.equal(daemon.counter("pins"), 1, "nothing changed")
    daemon.stop()
else:
    print("needs root to play other users: that part is left out")
