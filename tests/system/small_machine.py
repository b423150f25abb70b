# SPDX-License-Identifier: Apache-2.0
"""Small machines: little shared memory, few descriptors, no locked memory, a memory limit.

Each case works, or fails with a text that names the limit, its value and what mends it: never a SIGBUS,
never a hang. /dev/shm is one of 64 MiB of this test's own, in a mount namespace.
"""
import os
import subprocess
import sys
import time

import lib_stoup as t

if os.geteuid() != 0:
    print("unverified: needs root for a /dev/shm of its own and for cgroups")
    sys.exit(t.SKIP)
if not os.environ.get("STOUP_SMALL_SHM"):
    if not t.can_mount():
        print("unverified: mount namespaces can not be made here")
        sys.exit(t.SKIP)
    os.environ["STOUP_SMALL_SHM"] = "64"
    os.execvp("unshare", ["unshare", "-m", "bash", "-c", 'mount -t tmpfs -o size=64M tmpfs /dev/shm && exec "$@"',
                          "small", sys.executable, "-B", __file__])

store, totals = t.make_store(60_000)
name = t.name_of("AAA")
messages = []


def said(text, *words):
    for word in words:
        t.true(word in text, f"'{word}' in: {text}")
    messages.append(text.strip())


def scan(daemon, what, *options, prefix=()):
    found = t.json.loads(t.run([*prefix, t.WORKER, *options, daemon.pool, name]).stdout)
    totals["AAA"].check(found, what)


def refused(size, *words, options=(), prefix=(), what_store=None):
    daemon = t.Daemon(what_store or store, size, options=options, prefix=prefix, wait=False)
    t.equal(daemon.process.wait(60), 1, f"status of {daemon.ready}")
    said(daemon.ready, *words)
    t.equal(t.shm_names(daemon.pool), [], "names left")


# ---- /dev/shm of 64 MiB -----------------------------------------------------------------------------
refused("128M", "/dev/shm is too small", "needed 134217728", "available 66", "--shm-size=", "--backing memfd")
daemon = t.Daemon(store, "32M")
scan(daemon, "a pool that fits")
refused("48M", "/dev/shm is too small", "needed 50331648", "available 3")
daemon.stop()
daemon = t.Daemon(store, "128M", options=["--backing", "memfd"])
scan(daemon, "memfd needs no /dev/shm")
daemon.stop()

# Filled by others after the start: everything that was promised is there.
daemon = t.Daemon(store, "32M")
holder = t.Worker(daemon.pool, name, "--hold", 3, "--wait")
holder.wait_scanned()
with open("/dev/shm/filler", "wb") as out:
    try:
        while True:
            out.write(bytes(1 << 20))
            out.flush()
    except OSError as error:
        print("filled:", error)
t.equal(os.statvfs("/dev/shm").f_bavail, 0, "free blocks of /dev/shm")
for _ in range(3):
    scan(daemon, "in a full /dev/shm")
looked = t.run([t.STOUP, "stat", daemon.pool]).stdout
t.true("running" in looked, looked)
t.true(holder.finish()[0]["held_unchanged"], "what was held")
refused("1M", "/dev/shm", "available 0")
t.until(lambda: daemon.counter("consumers") == 0, "all are gone")
os.unlink("/dev/shm/filler")
# It is killed while somebody still maps its pool: there is room for half of the next one.
holder = t.Worker(daemon.pool, name, "--hold", 3, "--wait")
holder.wait_scanned()
daemon.kill()
begin = time.monotonic()
late = t.Daemon(store, "48M", pool=daemon.pool, wait=False)
t.equal(late.process.wait(60), 1, f"the killed daemon's pool takes the room: {late.ready}")
said(late.ready, "needed 50331648", "available")
print(f"refused after {time.monotonic() - begin:.1f} s")
t.true(holder.finish()[0]["held_unchanged"], "what was held outlives the daemon")
again = t.Daemon(store, "48M", pool=daemon.pool)
scan(again, "when the last one let go")
again.stop()

# ---- no locked memory, few descriptors -----------------------------------------------------------------
ORDINARY = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs"]
if subprocess.run([*ORDINARY, "true"], capture_output=True).returncode != 0:
    ORDINARY = []
for options in ((), ("--cached", "off")):
    daemon = t.Daemon(store, "4M", prefix=[*ORDINARY, "prlimit", "--memlock=0:0"], options=options)
    scan(daemon, "RLIMIT_MEMLOCK 0", prefix=["prlimit", "--memlock=0:0"])
    print("memlock 0:", daemon.stat()["reader"], daemon.stat()["reader_reason"])
    daemon.stop()

few = ["prlimit", "--nofile=64:64"]
daemon = t.Daemon(store, "4M", prefix=few)
fds = len(os.listdir(f"/proc/{daemon.process.pid}/fd"))
scan(daemon, "64 descriptors on both sides", prefix=few)
workers = []
while len(workers) < 64:
    worker = t.Worker(daemon.pool, name, "--wait")
    line = worker.line()
    if line["rc"] < 0:
        break
    totals["AAA"].check(line, "64 descriptors")
    workers.append(worker)
t.true(len(workers) >= 8, f"consumers of a daemon with 64 descriptors: {len(workers)}")
said(line["text"], "ulimit -n")
scan_late = t.run([t.WORKER, "--timeout", "3000", daemon.pool, name], expect=1)
t.true("rc" in scan_late.stdout, f"one more ends, too: {scan_late.stdout}")
print(f"64 descriptors: {fds} at rest, {len(workers)} consumers")
workers.pop().finish()
t.until(lambda: t.run([t.WORKER, daemon.pool, name], expect=None).returncode == 0, "when one left, one comes in")
for worker in workers:
    worker.finish()
t.until(lambda: daemon.counter("consumers") == 0, "all are gone")
t.until(lambda: len(os.listdir(f"/proc/{daemon.process.pid}/fd")) <= fds, "descriptors as before")
daemon.stop()

# More volumes than descriptors: said at the start.
many = os.path.join(t.temp_dir(), "many")
for number in range(3):
    dbn = os.path.join(t.temp_dir(), "in.dbn")
    rows = list(t.mbo_records(40, {f"S{number}": 11}))
    t.dbn_file(dbn, {f"S{number}": 11}, (t.mbo(*row) for row in rows))
    t.run([t.STOUP, "ingest", "--quiet", "--store", many, dbn])
refused("1M", "ulimit -n", prefix=["prlimit", "--nofile=12:12"], what_store=many)

# Lowered while it runs: whoever is there goes on, whoever comes is told; raised again, all is well.
daemon = t.Daemon(store, "2M")
reader = t.Worker(daemon.pool, name, "--mark", 2, "--retry")
t.equal(reader.line(), "mark\n", "a reader is there")
now = len(os.listdir(f"/proc/{daemon.process.pid}/fd"))
t.run(["prlimit", "--pid", str(daemon.process.pid), f"--nofile={now}:"])
late = t.run([t.WORKER, "--timeout", "2000", daemon.pool, name], expect=1)
print("lowered:", late.stdout.strip())
t.true("ulimit" in late.stdout, late.stdout)
(found,) = reader.finish()
totals["AAA"].check(found, "a reader of a daemon without free descriptors")
t.run(["prlimit", "--pid", str(daemon.process.pid), "--nofile=1024:"])
scan(daemon, "raised again")
said(next(error["text"] for error in daemon.stat()["errors"] if "ulimit" in error["text"]), "ulimit -n")
# The same in a consumer: no descriptor at all for the attach; none left while it reads.
for count in range(4, 12):
    poor = t.run(["prlimit", f"--nofile={count}:{count}", t.WORKER, daemon.pool, name], expect=None)
    if poor.returncode == 0:
        break
    t.true("ulimit -n" in poor.stdout or "cannot open shared" in poor.stderr, f"{count}: {poor.stdout}{poor.stderr}")
t.true(4 < count < 11, f"descriptors that an attach needs: {count}")
reader = t.Worker(daemon.pool, name, "--mark", 2)
t.equal(reader.line(), "mark\n", "a reader is there")
t.run(["prlimit", "--pid", str(reader.pid), "--nofile=3:3"])
(found,) = reader.finish()
totals["AAA"].check(found, "a reader without free descriptors")
t.equal(daemon.stop(), 0, "exit status")

# ---- a memory limit --------------------------------------------------------------------------------------


def cgroup(limit):
    """A memory cgroup of that limit, or None where it can not be had."""
    for root, file in (("/sys/fs/cgroup", "memory.max"), ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")):
        path = f"{root}/stoup-test-{os.getpid()}"
        try:
            os.mkdir(path)
            if os.path.exists(f"{path}/{file}"):
                with open(f"{path}/{file}", "w", encoding="ascii") as out:
                    out.write(str(limit))
                return path
            os.rmdir(path)
        except OSError:
            continue
    return None


group = cgroup(64 << 20)
if group:
    inside = ["bash", "-c", f'echo $$ > {group}/cgroup.procs && exec "$@"', "inside"]
    for backing in ("posix", "memfd"):
        refused("128M", "needed 134217728", "cgroup", "available", "memory limit",
                options=["--backing", backing], prefix=inside)
    daemon = t.Daemon(store, "24M", prefix=inside)
    scan(daemon, "below the memory limit")
    t.equal(daemon.stop(), 0, "exit status")
    t.until(lambda: not open(f"{group}/cgroup.procs", encoding="ascii").read(), "the cgroup is empty")
    os.rmdir(group)
else:
    print("unverified: no memory cgroup can be made here")
print("\nmessages:")
for text in messages:
    print(" ", text)
