# SPDX-License-Identifier: Apache-2.0
"""Daemon and consumers in PID and user namespaces of their own, as containers have them.

What a number of a process means ends at its namespace: deaths are told by the kernel, a living daemon by
its lock and its heartbeat, and nobody's leases are taken because of a /proc that shows somebody else.
"""
import fcntl
import json
import os
import signal
import shutil
import struct
import subprocess
import sys

import lib_stoup as t

if os.geteuid() != 0:
    print("unverified: needs root to make namespaces")
    sys.exit(t.SKIP)

OWN_PROC = ["unshare", "-p", "-f", "--kill-child", "--mount-proc"]
PARENT_PROC = ["unshare", "-p", "-f", "--kill-child"]  # /proc shows the parent's processes
if subprocess.run([*OWN_PROC, "true"], capture_output=True).returncode != 0:
    print("unverified: PID namespaces can not be made here")
    sys.exit(t.SKIP)

store, totals = t.make_store(60_000)
name = t.name_of("AAA")


def name_free(pool):
    """Has the daemon's process let go its locks? unshare, which was killed, does not wait for its end."""
    for path in (f"/run/stoup/{pool}.lock", f"/dev/shm/stoup.0.{pool}.ctl"):
        with open(path, "r+", encoding="ascii") as lock:
            asked = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
            if struct.unpack("hhqqi4x", fcntl.fcntl(lock.fileno(), fcntl.F_OFD_GETLK, asked))[0] != fcntl.F_UNLCK:
                return False
    return True


def worker(prefix, pool, *options):
    return subprocess.Popen([*prefix, t.WORKER, *map(str, options), pool, name], text=True,
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def scanned(process):
    line = process.stdout.readline()
    found = json.loads(line)
    totals["AAA"].check(found, "in a namespace")
    t.equal(process.stdout.readline(), "scanned\n", "it goes on")


def scan(prefix, pool, what):
    found = json.loads(t.run([*prefix, t.WORKER, pool, name]).stdout)
    totals["AAA"].check(found, what)


# ---- consumers in a PID namespace, that dies as a whole -----------------------------------------------
daemon = t.Daemon(store, "8M")
scan(OWN_PROC, daemon.pool, "a consumer in a PID namespace")
scan(PARENT_PROC, daemon.pool, "a consumer in a PID namespace with its parent's /proc")
looked = t.run([*OWN_PROC, t.STOUP, "stat", daemon.pool]).stdout
t.true("running" in looked, f"stat in a PID namespace: {looked}")
looked = t.run([*PARENT_PROC, t.STOUP, "stat", daemon.pool]).stdout
t.true("running" in looked, f"stat with the parent's /proc: {looked}")
group = worker([*OWN_PROC, "bash", "-c", 'exec 3<&0; "$@" <&3 & "$@" <&3 & wait', "two"], daemon.pool, "--hold", 5, "--wait")
t.until(lambda: daemon.counter("leases") >= 10, "two in one namespace hold")
pids = [consumer["pid"] for consumer in daemon.stat()["consumers"]]
t.true(all(pid > 1 for pid in pids), f"their numbers are those of the daemon's namespace: {pids}")
group.kill()  # unshare's --kill-child: the namespace's init goes, and all in it
t.until(lambda: daemon.counter("leases") == 0, "a namespace that died has no leases")
t.until(lambda: daemon.counter("consumers") == 0, "and no consumers")
group.wait()
daemon.stop()

# ---- the daemon in a PID namespace, the consumers outside -----------------------------------------------
for prefix, what in ((OWN_PROC, "own /proc"), (PARENT_PROC, "parent's /proc")):
    daemon = t.Daemon(store, "8M", prefix=prefix)
    daemon.runs(f"{what}: stat from outside")
    holder = worker([], daemon.pool, "--hold", 5, "--wait")
    scanned(holder)
    t.until(lambda: daemon.counter("leases") == 5, f"{what}: it holds")
    scan([], daemon.pool, f"{what}: a consumer outside")
    scan(OWN_PROC, daemon.pool, f"{what}: a consumer in another namespace")
    holder.kill()
    holder.wait()
    t.until(lambda: daemon.counter("leases") == 0, f"{what}: a death outside is seen")
    t.equal(daemon.counter("deaths"), 1, f"{what}: deaths")
    # It closes its connection and reads on: nothing tells from here that it still maps its page, so it
    # keeps its leases until it ends.
    deaf = worker([], daemon.pool, "--hold", 5, "--wait", "--deaf")
    scanned(deaf)
    t.until(lambda: any(c["state"] == "deaf" for c in daemon.stat()["consumers"]), f"{what}: it is deaf")
    looks = daemon.counter("wakeups")
    t.until(lambda: daemon.counter("wakeups") > looks + 15, f"{what}: several looks later")
    t.equal(daemon.settled()["counters"]["leases"], 5, f"{what}: a deaf consumer keeps its leases")
    t.true('"held_unchanged": true' in deaf.communicate()[0], f"{what}: its bytes")
    t.until(lambda: daemon.counter("consumers") == 0, f"{what}: it is gone when its process is")

    # Another daemon of the name that shares /dev/shm, but no directory of locks, is refused: the first one
    # lives, whatever its number is here. Its names stay.
    script = 'mount -t tmpfs tmpfs /run && exec "$@"'
    for second in (["unshare", "-m"], ["unshare", "-m", *OWN_PROC[1:]]):
        other = t.run([*second, "bash", "-c", script, "other", t.STOUPD, "--store", store, "--pool", daemon.pool,
                       "--size", "8M"], expect=1)
        t.true("served already" in other.stderr, f"{what}: a second daemon: {other.stderr}")
    scan([], daemon.pool, f"{what}: after a second daemon tried")
    daemon.runs(f"{what}: its control object")
    # It is killed: the name is free with its end, also for a daemon elsewhere.
    reader = worker([], daemon.pool, "--pause", 100000, "--passes", 1000, "--timeout", 500)
    t.until(lambda: daemon.counter("consumers") == 1, f"{what}: a reader")
    daemon.kill()
    t.until(lambda: name_free(daemon.pool), f"{what}: the killed daemon's end")
    again = t.Daemon(store, "8M", pool=daemon.pool)
    scan([], again.pool, f"{what}: the next daemon")
    reader.kill()
    t.equal(again.stop(), 0, f"{what}: exit status")
    t.equal(t.shm_names(again.pool), [], f"{what}: names left")

# ---- user namespaces -------------------------------------------------------------------------------------
NOBODY = ["setpriv", "--reuid=65534", "--regid=65534"]
USER = ["unshare", "-U", "-r"]
if subprocess.run([*NOBODY, "--clear-groups", *USER, "true"], capture_output=True).returncode != 0:
    print("unverified: user namespaces can not be made here")
    sys.exit(0)
programs = t.temp_dir()
os.chmod(programs, 0o755)
WORKER, STOUPD, STOUP = (shutil.copy(path, programs) for path in (t.WORKER, t.STOUPD, t.STOUP))
t.WORKER = WORKER
os.chmod(os.path.dirname(store), 0o755)

# Consumers in one, the daemon outside.
daemon = t.Daemon(store, "8M", options=["--group", "games"])
scan(USER, daemon.pool, "root in a user namespace")
scan([*NOBODY, "--groups=games", *USER], daemon.pool, "a member of the group in a user namespace")
scan([*NOBODY, "--groups=games", "unshare", "-U"], daemon.pool, "one whom its namespace gives no number")
scan([*NOBODY, "--groups=games", "unshare", "-U", "-r", "-p", "-f"], daemon.pool, "user and PID namespace")
looked = t.run([*NOBODY, "--groups=games", *USER, STOUP, "stat", daemon.pool]).stdout
t.true("running" in looked, looked)
outside = t.run([*NOBODY, "--clear-groups", *USER, WORKER, daemon.pool, name], expect=1).stdout
t.true('"rc": -13' in outside, f"root of a namespace is nobody here: {outside}")
t.until(lambda: daemon.counter("consumers") == 0, "all are gone")
t.equal(daemon.stop(), 0, "exit status")

# The daemon in one, its user's consumers outside and inside; others stay out.
own = t.temp_dir()
os.chown(own, 65534, 65534)
os.chmod(own, 0o700)
env = {**os.environ, "XDG_RUNTIME_DIR": own}
os.environ["XDG_RUNTIME_DIR"] = own
t.STOUPD = STOUPD
daemon = t.Daemon(store, "8M", prefix=[*NOBODY, "--clear-groups", *USER])
scan([*NOBODY, "--clear-groups"], daemon.pool, "the daemon's user outside of its namespace")
scan([*NOBODY, "--clear-groups", *USER], daemon.pool, "the daemon's user in a namespace of its own")
looked = t.run([*NOBODY, "--clear-groups", STOUP, "stat", daemon.pool]).stdout
t.true("running" in looked, looked)
os.chmod(own, 0o755)
other = subprocess.run(["setpriv", "--reuid=65533", "--regid=65533", "--clear-groups", WORKER, daemon.pool, name],
                       capture_output=True, text=True)
t.equal(other.returncode, 1, f"another user: {other.stdout}")
t.equal(daemon.stop(), 0, "exit status")

# ---- a stranger makes names first ------------------------------------------------------------------------
del os.environ["XDG_RUNTIME_DIR"]
pool = f"squat{os.getpid()}"
for uid in (0, 65532):
    path = f"/dev/shm/stoup.{uid}.{pool}.ctl"
    with open(path, "wb") as out:
        out.write(bytes(8192))
    os.chown(path, 65534, 65534)
    os.chmod(path, 0o644)
looked = t.run([STOUP, "stat", pool], expect=1).stderr
t.true("not trusted" in looked and "65534" in looked, f"a stranger's object: {looked}")
again = t.Daemon(store, "1M", pool=pool)
scan([], pool, "root's daemon takes its name back")
again.stop()
refused = subprocess.run(["setpriv", "--reuid=65532", "--regid=65532", "--clear-groups", STOUPD, "--store", store,
                          "--pool", pool, "--size", "1M"], capture_output=True, text=True,
                         env={**os.environ, "XDG_RUNTIME_DIR": t.temp_dir()})
os.unlink(f"/dev/shm/stoup.65532.{pool}.ctl")
t.equal(refused.returncode, 1, refused.stderr)
