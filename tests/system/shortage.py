# SPDX-License-Identifier: Apache-2.0
"""Limits and shortages: each is an error that says what is needed and what mends it; nothing hangs."""
import os
import socket
import subprocess
import sys

import lib_stoup as t

store, totals = t.make_store(60_000)
name = t.name_of("AAA")

# More memory than the machine has.
for backing in ("posix", "memfd"):
    big = t.Daemon(store, "900G", options=["--backing", backing], wait=False)
    t.equal(big.process.wait(60), 1, "status")
    t.true("needed" in big.ready and "available" in big.ready and "mend" in big.ready, big.ready)
    t.equal(t.shm_names(big.pool), [], "names left")

# A /dev/shm that is too small (needs a mount namespace).
if os.geteuid() == 0:
    script = 'mount -t tmpfs -o size=4M tmpfs /dev/shm && exec "$@"'
    small = subprocess.run(["unshare", "-m", "bash", "-c", script, "small", t.STOUPD, "--store", store, "--pool",
                            f"small{os.getpid()}", "--size", "16M", "--quiet"], capture_output=True, text=True)
    if "unshare" not in small.stderr:
        t.equal(small.returncode, 1, f"too small /dev/shm: {small.stderr}")
        for word in ("/dev/shm is too small", "needed", "available", "--shm-size", "--backing"):
            t.true(word in small.stderr, f"'{word}' in: {small.stderr}")

# A share below one block still allows one lease, and nobody takes it away.
daemon = t.Daemon(store, "1M", options=["--lease-bytes", "4K"])
holder = t.Worker(daemon.pool, name, "--hold", 1, "--wait", "--to", t.T0 + 1_000_000)
holder.wait_scanned()
end = t.time.monotonic() + 2.5
while t.time.monotonic() < end:
    (found,) = t.Worker(daemon.pool, name).finish()
    totals["AAA"].check(found, "beside the holder")
t.true(holder.finish()[0]["held_unchanged"], "the one lease was kept")
t.equal(daemon.counter("quota_dropped"), 0, "nobody was dropped")
over = t.run([t.WORKER, "--hold", "3", daemon.pool, name], expect=1)
t.true("-122" in over.stdout, f"EDQUOT: {over.stdout}")
daemon.stop()

# More consumers than the pool admits.
daemon = t.Daemon(store, "1M", options=["--consumers", "2"])
two = [t.Worker(daemon.pool, name, "--wait") for _ in range(2)]
for worker in two:
    worker.wait_scanned()
third = t.run([t.WORKER, daemon.pool, name], expect=1)
t.true("--consumers" in third.stdout, third.stdout)
for worker in two:
    worker.finish()
t.until(lambda: daemon.counter("consumers") == 0, "both are gone")
(found,) = t.Worker(daemon.pool, name).finish()
totals["AAA"].check(found, "after they went")
daemon.stop()

# A block that is larger than the pool serves.
large, _ = t.make_store(40_000, {"LARGE": 6}, block="512K", directory=t.temp_dir())
daemon = t.Daemon(large, "1M")
bad = t.run([t.WORKER, daemon.pool, t.name_of("LARGE")], expect=1)
t.true("--size" in bad.stdout and "-27" in bad.stdout, f"EFBIG with the numbers: {bad.stdout}")
daemon.stop()

# Clients that connect and say nothing: more than may be pending. Others still attach, within the time-out.
daemon = t.Daemon(store, "1M")
where = [d for d in (os.path.join(os.environ.get("XDG_RUNTIME_DIR", "/nowhere"), "stoup"), "/run/stoup",
                     f"/tmp/stoup-{os.geteuid()}") if os.path.exists(f"{d}/{daemon.pool}.sock")]
silent = []
for _ in range(80):
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    sock.setblocking(False)
    try:
        sock.connect(f"{where[0]}/{daemon.pool}.sock")
    except BlockingIOError:
        pass
    silent.append(sock)
(found,) = t.Worker(daemon.pool, name).finish()
totals["AAA"].check(found, "beside silent clients")
for sock in silent:
    sock.close()
daemon.stop()

# A daemon whose standard error nobody reads does not stop for it.
read_fd, write_fd = os.pipe()
process = subprocess.Popen([t.STOUPD, "--store", store, "--pool", f"pipe{os.getpid()}", "--size", "1M"],
                           stderr=write_fd, stdin=subprocess.DEVNULL)
os.close(write_fd)
pool = f"pipe{os.getpid()}"
t.until(lambda: ": running " in t.run([t.STOUP, "stat", pool], expect=None).stdout, "the daemon is there")
for number in range(1500):
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    sock.connect(f"{where[0]}/{pool}.sock")
    try:
        sock.send(b"junk %d" % number)
    except BrokenPipeError:  # hung up on for being late
        pass
    sock.close()
(found,) = t.Worker(pool, name).finish()
totals["AAA"].check(found, "after 1500 refusals that nobody reads about")
process.terminate()
t.equal(process.wait(60), 0, "its end")
os.close(read_fd)

# An empty store is served: empty. What is ingested is there for the next one who comes.
empty = os.path.join(t.temp_dir(), "store")
os.mkdir(empty)
os.environ["XDG_RUNTIME_DIR"] = t.temp_dir()
nothing = t.run([t.WORKER, empty + "/", name], expect=1)
t.true("-2" in nothing.stdout, f"no such series: {nothing.stdout}")
dbn = os.path.join(t.temp_dir(), "in.dbn")
t.dbn_file(dbn, {"AAA": 11}, (t.mbo(*row) for row in t.mbo_records(5_000, {"AAA": 11})))
t.run([t.STOUP, "ingest", "--quiet", "--store", empty, dbn])
(found,) = t.Worker(empty + "/", name).finish()
t.equal(found["records"], 5_000, "records of a store that was filled meanwhile")
