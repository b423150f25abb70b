# SPDX-License-Identifier: Apache-2.0
"""Monitors: who may look gets the control object, by name or through the socket, and nothing else."""
import fcntl
import os
import shutil
import signal
import subprocess
import sys

import lib_stoup as t
import lib_wire as w

store, _ = t.make_store(20_000)
name = t.name_of("AAA")

# A monitor's hello: one descriptor, read-only, then the daemon hangs up.
daemon = t.Daemon(store, "1M")
peer = w.Peer(daemon.pool)
reply = peer.hello(w.MONITOR)
t.equal((reply["error"], len(reply["fds"])), (0, 1), "what a monitor gets")
t.true(peer.hung_up(), "and no more")
t.equal(fcntl.fcntl(reply["fds"][0], fcntl.F_GETFL) & os.O_ACCMODE, os.O_RDONLY, "its access")
t.equal(os.pread(reply["fds"][0], 8, 0), (0x4C43505554533031).to_bytes(8, "little"), "the control object")
t.equal((daemon.counter("monitors"), daemon.counter("attaches"), daemon.counter("consumers")), (1, 0, 0), "counted")
t.equal(daemon.stop(), 0, "the daemon's end")

if os.geteuid() != 0:
    print("needs root to play other users: the rest is skipped")
    sys.exit(0)

programs = t.temp_dir()
os.chmod(programs, 0o755)
STOUP, WORKER = (shutil.copy(path, programs) for path in (t.STOUP, t.WORKER))
GROUP, GID = "games", int(subprocess.run(["getent", "group", "games"], capture_output=True, text=True,
                                        check=True).stdout.split(":")[2])


def as_nobody(argv, groups=None):
    clear = ["--clear-groups"] if groups is None else [f"--groups={groups}"]
    return subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", *clear, *argv], capture_output=True,
                          text=True, env={"PATH": os.environ["PATH"]}, timeout=100)


def looks(groups=None, options=()):
    """What `stoup stat` says to that user."""
    return t.answered(lambda: as_nobody([STOUP, "stat", *options, daemon.pool], groups))


# A user who may look: not by name, but by asking. To attach is another thing, and the text says so.
daemon = t.Daemon(store, "1M", options=["--monitor-user", "nobody"])
control = f"/dev/shm/stoup.0.{daemon.pool}.ctl"
t.equal(os.stat(control).st_mode & 0o777, 0o600, "nobody else reads it by name")
t.equal(os.stat(w.socket_path(daemon.pool)).st_mode & 0o777, 0o666, "everybody connects, credentials decide")
seen = looks(options=["--json"])
t.equal(seen.returncode, 0, f"stat of a monitor: {seen.stderr}")
t.true('"state": "running"' in seen.stdout, seen.stdout)
t.true(daemon.counter("monitors") >= 1, "monitors")
refused = as_nobody([WORKER, daemon.pool, name])
t.equal(refused.returncode, 1, "to attach")
for part in ("lets uid 65534 look (stoup stat), not attach", "its owner alone", "--allow-user 65534"):
    t.true(part in refused.stdout, f"{part!r} in {refused.stdout}")
# A daemon that hangs is not asked for ever.
daemon.process.send_signal(signal.SIGSTOP)
late = as_nobody([STOUP, "stat", daemon.pool])
daemon.process.send_signal(signal.SIGCONT)
t.equal(late.returncode, 1, "stat of a hanging daemon")
t.true("did not answer within 0.9 s: stopped, or stuck?" in late.stderr, late.stderr)
daemon.stop()

# A group that may look has the control object by name: it shows a daemon that hangs.
daemon = t.Daemon(store, "1M", options=["--monitor-group", GROUP])
control = f"/dev/shm/stoup.0.{daemon.pool}.ctl"
t.equal((os.stat(control).st_mode & 0o777, os.stat(control).st_gid), (0o640, GID), "mode and group")
daemon.process.send_signal(signal.SIGSTOP)
seen = looks(groups=GROUP)
daemon.process.send_signal(signal.SIGCONT)
t.equal(seen.returncode, 0, f"stat in the group: {seen.stderr}")
t.equal(daemon.counter("monitors"), 0, "nobody asked the daemon")
outside = looks()
t.equal(outside.returncode, 1, "stat outside the group")
t.true(f"admits group '{GROUP}', not uid 65534" in outside.stderr and "--monitor-user 65534" in outside.stderr,
       outside.stderr)
daemon.stop()

# Who may attach may look.
daemon = t.Daemon(store, "1M", options=["--allow-user", "65534", "--monitor-group", GROUP])
t.equal(looks().returncode, 0, "stat of one who may attach")
daemon.stop()
