# SPDX-License-Identifier: Apache-2.0
"""Backings and locked memory: what stat shows of each, its seals, and the texts where the machine lacks something."""
import fcntl
import os
import resource
import subprocess
import sys

import lib_stoup as t
import lib_wire as w

SEAL_SEAL, SEAL_SHRINK, SEAL_GROW, SEAL_WRITE, SEAL_FUTURE_WRITE = 1, 2, 4, 8, 16
F_GET_SEALS = 1034
HUGE = 2 << 20
base = t.temp_dir()
os.chmod(base, 0o755)
store, totals = t.make_store(30_000, directory=base)
name = t.name_of("AAA")


def seals(fd):
    return fcntl.fcntl(fd, F_GET_SEALS)


def look(backing, page_len, *options):
    """Serve from this backing; returns what stat says, and the seals of what a consumer is passed."""
    daemon = t.Daemon(store, "4M", options=["--backing", backing, *options])
    (found,) = t.Worker(daemon.pool, name).finish()
    totals["AAA"].check(found, backing)
    stat = daemon.stat()
    t.equal((stat["backing"], stat["page_bytes"]), (backing, page_len), "backing and page size")
    t.true(stat["huge_bytes"] == stat["size"] or stat["huge_reason"], f"all in huge pages, or why not: {stat}")
    words = t.run([t.STOUP, "stat", daemon.pool]).stdout
    t.true(f"({backing}, pages of {page_len // 1024} KiB," in words, words)
    peer = w.Peer(daemon.pool)
    fds = peer.hello()["fds"]
    t.equal(seals(fds[2]), SEAL_SEAL | SEAL_SHRINK | SEAL_GROW, "seals of the page: it is written, never resized")
    for fd in fds[:2] + fds[4:]:
        t.equal(fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_ACCMODE, os.O_RDONLY, "all else is passed read-only")
    found = seals(fds[1])
    peer.close()
    t.equal(daemon.stop(), 0, "the daemon's end")
    t.equal(t.shm_names(daemon.pool), [], "names left")
    return stat, found, words


stat, _, words = look("posix", 4096)
t.equal((stat["locked_bytes"], stat["lock_reason"]), (0, ""), "nothing is locked unasked")
t.true("locked" not in words, words)
stat, found, _ = look("memfd", 4096)
t.equal(found, SEAL_SEAL | SEAL_SHRINK | SEAL_GROW | SEAL_FUTURE_WRITE, "seals of the data")

# Locked memory, where the limit allows it.
allowed = os.geteuid() == 0 or resource.getrlimit(resource.RLIMIT_MEMLOCK)[1] > 8 << 20
if allowed:
    stat, _, words = look("posix", 4096, "--mlock")
    t.true(stat["locked_bytes"] > stat["size"], "the data and the control object")
    t.true(", locked)" in words, words)

# And where it does not: an error at start, since it was asked for.
drop = (["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--bounding-set=-all"] if os.geteuid() == 0
        else [])
run_dir = t.temp_dir()
os.chmod(run_dir, 0o777)
if os.geteuid() == 0:
    os.chown(run_dir, 65534, 65534)
    os.chmod(run_dir, 0o700)
    stoupd = t.shutil.copy(t.STOUPD, base)
else:
    stoupd = t.STOUPD
pool = f"lock{os.getpid()}"
# Sanitizers replace mlock by nothing.
limits = () if os.environ.get("STOUP_SANITIZED") else ((0, "available 0 "), (64 << 10, "available 65536 "))
for limit, shown in limits:
    said = subprocess.run([*drop, stoupd, "--store", store, "--pool", pool, "--size", "4M", "--mlock", "--quiet"],
                          capture_output=True, text=True, timeout=60, env={**os.environ, "XDG_RUNTIME_DIR": run_dir},
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_MEMLOCK, (limit, limit)))
    t.equal(said.returncode, 1, f"--mlock with a limit of {limit}: {said.stderr}")
    for part in ("--mlock: needed 4", shown, "ulimit -l ", "LimitMEMLOCK=", "no --mlock"):
        t.true(part in said.stderr, f"{part!r} in {said.stderr}")
    t.equal(t.shm_names(pool), [], "names left")

# Huge pages: too few is an error with the command that mends it, and that command does.
free = "/sys/kernel/mm/hugepages/hugepages-2048kB/"
if not os.access("/proc/sys/vm/nr_hugepages", os.W_OK) or not os.path.exists(free):
    print("vm.nr_hugepages can not be set here: the rest is skipped")
    sys.exit(0)


def number(which):
    with open(free + which) as file:
        return int(file.read())


def reserve(count):
    with open("/proc/sys/vm/nr_hugepages", "w") as file:
        file.write(str(count))


before = number("nr_hugepages")
try:
    reserve(number("nr_hugepages") - number("free_hugepages") + number("resv_hugepages"))
    short = t.Daemon(store, "4M", options=["--backing", "hugetlb"], wait=False)
    t.equal(short.process.wait(60), 1, "without huge pages")
    for part in ("too few huge pages of 2 MiB: needed 2, available 0", "sysctl vm.nr_hugepages="):
        t.true(part in short.ready, f"{part!r} in {short.ready}")
    t.equal(t.shm_names(short.pool), [], "names left")
    reserve(int(short.ready.split("vm.nr_hugepages=")[1].split()[0]))
    if number("free_hugepages") < 2:
        print("the kernel has no huge pages to give: the rest is skipped")
        sys.exit(0)
    stat, found, words = look("hugetlb", HUGE, "--mlock")
    t.equal(found, SEAL_SEAL | SEAL_SHRINK | SEAL_GROW | SEAL_FUTURE_WRITE, "seals of huge pages")
    t.equal((stat["huge_bytes"], stat["huge_reason"]), (stat["size"], ""), "all of it")
    t.equal(stat["lock_reason"], "huge pages are never swapped out", "what locking means here")
    t.true(stat["locked_bytes"] >= stat["size"], "locked")
finally:
    reserve(before)
