# SPDX-License-Identifier: Apache-2.0
"""A daemon of a system user of its own, without any capability, in /run/stoup: others attach by their group."""
import os
import shutil
import subprocess
import sys

import lib_stoup as t

if not t.can_mount():
    print("needs root, and mount namespaces, to play other users: skipped")
    sys.exit(t.SKIP)
if "STOUP_TEST_INSIDE" not in os.environ:
    # A /run of our own: the machine's is not ours to give away.
    done = subprocess.run(["unshare", "-m", sys.executable, "-B", __file__],
                          env={**os.environ, "STOUP_TEST_INSIDE": "1"})
    sys.exit(done.returncode)
if subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/run"]).returncode != 0:
    print("mounting is not allowed here: skipped")
    sys.exit(t.SKIP)

DAEMON, GAMES, NOBODY = 1, 60, 65534
os.mkdir("/run/stoup")
os.chmod("/run/stoup", 0o755)
os.chown("/run/stoup", DAEMON, DAEMON)

base = t.temp_dir()
os.chmod(base, 0o755)
store, totals = t.make_store(20_000, directory=base)
name = t.name_of("AAA")
programs = t.temp_dir()
os.chmod(programs, 0o755)
STOUP, WORKER = (shutil.copy(path, programs) for path in (t.STOUP, t.WORKER))
t.STOUPD = shutil.copy(t.STOUPD, programs)


def as_user(uid, groups, argv, **more):
    # No capability in any set: not even what a set-uid program could bring back.
    return ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--bounding-set=-all", "--inh-caps=-all",
            "--no-new-privs", *(["--groups", groups] if groups else ["--clear-groups"]), *argv]


def run_as(uid, groups, argv):
    return subprocess.run(as_user(uid, groups, argv), capture_output=True, text=True, timeout=100,
                          env={"PATH": os.environ["PATH"]})


os.environ.pop("XDG_RUNTIME_DIR", None)
daemon = t.Daemon(store, "8M", options=["--group", "games"], prefix=as_user(DAEMON, "games", []))
status = open(f"/proc/{daemon.process.pid}/status").read()
for line in ("CapPrm", "CapEff", "CapBnd", "CapAmb"):
    t.true(f"{line}:\t0000000000000000" in status, f"{line} in {status}")
sock = os.stat(f"/run/stoup/{daemon.pool}.sock")
t.equal((sock.st_mode & 0o777, sock.st_uid, sock.st_gid), (0o660, DAEMON, GAMES), "the socket")
control = os.stat(f"/dev/shm/stoup.{DAEMON}.{daemon.pool}.ctl")
t.equal((control.st_mode & 0o777, control.st_gid), (0o640, GAMES), "the control object")

inside = run_as(NOBODY, "games", [WORKER, daemon.pool, name])
t.equal(inside.returncode, 0, f"another user, by the group: {inside.stdout} {inside.stderr}")
t.true(f'"records": {totals["AAA"].records}' in inside.stdout, inside.stdout)
seen = run_as(NOBODY, "games", [STOUP, "stat", daemon.pool])
t.equal(seen.returncode, 0, f"stat in the group: {seen.stderr}")
outside = run_as(NOBODY, None, [WORKER, daemon.pool, name])
t.equal(outside.returncode, 1, "another user, not in the group")
t.true("games" in outside.stdout, outside.stdout)
t.equal(t.run([WORKER, daemon.pool, name]).returncode, 0, "root")
t.equal(daemon.stop(), 0, "the daemon's end")
t.equal(t.shm_names(daemon.pool), [], "names left")

# A group that the daemon's user is not in can not own the socket: the text says both ways out.
daemon = t.Daemon(store, "8M", options=["--group", "games"], prefix=as_user(DAEMON, None, []), wait=False)
t.equal(daemon.process.wait(60), 1, "not in the group")
for part in ("giving the socket to group 'games'", "make the daemon's user a member", "--allow-group games"):
    t.true(part in daemon.ready, f"{part!r} in {daemon.ready}")
# The second one: it needs no ownership.
daemon = t.Daemon(store, "8M", options=["--allow-group", "games"], prefix=as_user(DAEMON, None, []))
t.equal(run_as(NOBODY, "games", [WORKER, daemon.pool, name]).returncode, 0, "by the list")
seen = t.answered(lambda: run_as(NOBODY, "games", [STOUP, "stat", daemon.pool]))
t.equal(seen.returncode, 0, f"stat by the list: {seen.stderr}")
t.equal(t.run([STOUP, "stat", daemon.pool]).returncode, 0, "stat of root")
t.equal(daemon.stop(), 0, "the daemon's end")
