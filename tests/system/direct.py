# SPDX-License-Identifier: Apache-2.0
"""Direct mode: uncompressed series out of the volumes' own files, with a daemon, after its death, and refused."""
import errno
import fcntl
import glob
import os
import struct

import lib_stoup as t
import lib_wire as w

SYMBOLS = {"AAA": 11, "BBB": 12}
NAME = t.name_of("AAA")


def scan(pool, *options, name=NAME, expect=0):
    (result,) = t.Worker(pool, name, *options).finish(expect)
    return result


def records_of(result):
    return {key: result[key] for key in ("rc", "records", "price", "size", "first_key", "last_key", "gaps")}


# ---- the records of a scan from the pool, whatever the blocks ------------------------------------------
for block in ("64K", "128K"):
    store, totals = t.make_store(40_000, SYMBOLS, block=block, codec="none")
    daemon = t.Daemon(store, "16M")
    rows = list(t.mbo_records(40_000, SYMBOLS))
    middle = ["--from", rows[5_000][1], "--to", rows[31_000][1]]
    for options in ([], ["--backward"], middle, [*middle, "--backward"]):
        for symbol in SYMBOLS:
            pool = scan(daemon.pool, *options, name=t.name_of(symbol))
            direct = scan(daemon.pool, *options, "--direct", "--hold", 3, name=t.name_of(symbol))
            t.equal(records_of(direct), records_of(pool), f"blocks of {block}, {options}")
            t.equal(direct["direct"], direct["spans"], "all spans are direct")
            t.true(direct["spans"] <= pool["spans"], "spans are at least as long as blocks")
            t.equal((direct["hits"], direct["misses"], direct["leases"]), (0, 0, 0), "nothing of the pool")
    totals["AAA"].check(scan(daemon.pool, "--direct"), "all of it")
    daemon.stop()

# Records that fill whole pages: blocks lie one behind the other, and a series of one volume is one span.
rows = os.path.join(t.temp_dir(), "in.csv")
with open(rows, "w", encoding="utf-8") as out:
    out.writelines(f"{t.T0 + i},{i % 7}\n" for i in range(50_000))
store = os.path.join(t.temp_dir(), "store")
t.run([t.STOUP, "ingest", "--store", store, "--series", "X/Y/z", "--columns", "ts:time,price:i64", "--header",
       "no", "--block", "64K", "--codec", "none", "--quiet", rows])
daemon = t.Daemon(store, "4M")
direct = scan(daemon.pool, "--direct", name="X/Y/z")
t.equal((direct["records"], direct["spans"], direct["price"]), (50_000, 1, sum(i % 7 for i in range(50_000))),
        "one span")
daemon.stop()

# ---- the daemon dies: what is mapped is read on ----------------------------------------------------------
store, totals = t.make_store(40_000, SYMBOLS, block="64K", codec="none")
daemon = t.Daemon(store, "16M")
worker = t.Worker(daemon.pool, NAME, "--direct", "--pause", 20000, "--mark", 3, "--hold", 4, "--passes", 2, "--wait")
t.equal(worker.line(), "mark\n", "in the middle")
daemon.kill()
worker.step()
first, second = worker.wait_scanned()
totals["AAA"].check(first, "read on without a daemon")
t.equal(second["records"], 2 * first["records"], "and scanned anew without one")
t.true(0 < first["direct_alone"] < second["direct_alone"] <= second["direct"], f"counted: {second}")
t.equal(second["reconnects"], 0, "nobody was looked for")
t.true(worker.finish()[0]["held_unchanged"], "held spans are unchanged")

# ---- what can not be mapped is told -----------------------------------------------------------------------
packed, totals = t.make_store(20_000, SYMBOLS, codec="zstd")
daemon = t.Daemon(packed, "16M")
refused = t.Worker(daemon.pool, NAME, "--direct").finish(expect=1)[0]
t.equal(refused["rc"], -errno.ENOTSUP, "compressed")
for word in (NAME, "zstd", "--codec none", "STOUP_DIRECT_OR_POOL"):
    t.true(word in refused["text"], refused["text"])
result = scan(daemon.pool, "--direct-or-pool")
totals["AAA"].check(result, "from the pool instead")
t.equal(result["direct"], 0, "from the pool")
daemon.stop()

# A file that was truncated since the daemon opened it: told before anything is touched.
store, _ = t.make_store(20_000, SYMBOLS, codec="none")
daemon = t.Daemon(store, "16M", options=["--no-watch"])
(volume,) = glob.glob(os.path.join(store, "*.stoup"))
worker = t.Worker(daemon.pool, NAME, "--direct", "--steps")
t.equal(worker.line(), {"ready": True}, "attached")
os.truncate(volume, 100_000)
worker.step()
(refused,) = worker.finish(expect=1)
t.equal(refused["rc"], -errno.EIO, "truncated")
t.true(os.path.basename(volume) in refused["text"] and "100000" in refused["text"], refused["text"])
daemon.stop()

# ---- what the daemon gives, and to whom --------------------------------------------------------------------
store, _ = t.make_store(20_000, SYMBOLS, codec="none")
daemon = t.Daemon(store, "16M")
(volume,) = glob.glob(os.path.join(store, "*.stoup"))
with open(volume, "rb") as source:
    source.seek(16)
    ident = source.read(16)
peer = w.Peer(daemon.pool)
reply = peer.hello()
t.equal(reply["error"], 0, "attached")
error, place, fds = peer.file(0, ident)
t.equal((error, place, len(fds)), (0, 0, 1), "the file")
t.equal(fcntl.fcntl(fds[0], fcntl.F_GETFL) & os.O_ACCMODE, os.O_RDONLY, "opened read-only")
t.true(os.path.sameopenfile(fds[0], os.open(volume, os.O_RDONLY)), "the volume itself")
# Its flags and its position are its own: whatever is done to them, the daemon reads on.
fcntl.fcntl(fds[0], fcntl.F_SETFL, os.O_NONBLOCK | os.O_APPEND)
os.lseek(fds[0], 12345, os.SEEK_SET)
t.equal(scan(daemon.pool)["records"], 10_000, "served from the pool")
t.equal(peer.file(0, bytes(16))[0], -errno.ESTALE, "another volume's id")
t.equal(peer.file(1, ident)[0], -errno.EINVAL, "no such place")
t.equal(peer.file(2**32 - 1, ident)[0], -errno.EINVAL, "no place at all")
t.equal(daemon.counter("direct_files"), 1, "files given")
# Questions without taking the answers: hung up on, and nobody else notices.
for _ in range(4):
    try:
        peer.send(struct.pack("<QIiII16s", w.HELLO_MAGIC, w.FILE, 0, 0, 0, ident))
    except (BrokenPipeError, ConnectionResetError):
        break
t.until(lambda: daemon.counter("consumers") == 0, "the flooder is gone")
monitor = w.Peer(daemon.pool)
t.equal(monitor.hello(flags=w.MONITOR)["error"], 0, "a monitor may look")
try:
    monitor.send(struct.pack("<QIiII16s", w.HELLO_MAGIC, w.FILE, 0, 0, 0, ident))
    t.true(monitor.receive() == (b"", []), "a monitor gets no file")
except (BrokenPipeError, ConnectionResetError):
    pass
early = w.Peer(daemon.pool)
try:
    early.send(struct.pack("<QIiII16s", w.HELLO_MAGIC, w.FILE, 0, 0, 0, ident))
    t.equal(early.receive()[1], [], "no file before a hello")
except BrokenPipeError:  # hung up on for saying nothing in time
    pass
t.equal(scan(daemon.pool, "--direct")["records"], 10_000, "others are served")
daemon.stop()
