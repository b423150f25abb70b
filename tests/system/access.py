# SPDX-License-Identifier: Apache-2.0
"""Who may use a pool: its owner, root, its group; others are refused with a text that names the group."""
import errno
import json
import os
import shutil
import subprocess
import sys

import lib_stoup as t
import lib_wire as w

if os.geteuid() != 0:
    print("needs root to play other users: skipped")
    sys.exit(t.SKIP)

NOBODY = ["setpriv", "--reuid=65534", "--regid=65534"]
GROUP = "games"
store, totals = t.make_store(20_000)
name = t.name_of("AAA")

# Copies that everybody can reach: the build may lie in a home that is closed to others.
programs = t.temp_dir()
os.chmod(programs, 0o755)
STOUP, STOUPD, WORKER = (shutil.copy(path, programs) for path in (t.STOUP, t.STOUPD, t.WORKER))


def as_nobody(argv, groups=None, env=None):
    clear = ["--clear-groups"] if groups is None else [f"--groups={groups}"]
    base = {"PATH": os.environ["PATH"], "STOUPD": STOUPD, **(env or {})}
    return subprocess.run([*NOBODY, *clear, *argv], capture_output=True, text=True, env=base, timeout=100)


t.equal(as_nobody([STOUP, "--version"]).returncode, 0, "an ordinary user reaches the programs")

# A pool of root with a group.
daemon = t.Daemon(store, "8M", options=["--group", GROUP])
outside = as_nobody([WORKER, daemon.pool, name])
t.equal(outside.returncode, 1, "a user outside the group")
t.true(GROUP in outside.stdout and "usermod" in outside.stdout, f"the group is named: {outside.stdout}")
looked = as_nobody([STOUP, "stat", daemon.pool])
t.equal(looked.returncode, 1, "stat of a user outside the group")
t.true(GROUP in looked.stderr, f"the group is named: {looked.stderr}")
inside = as_nobody([WORKER, daemon.pool, name], groups=GROUP)
t.equal(inside.returncode, 0, f"a user in the group: {inside.stdout} {inside.stderr}")
t.true(f'"records": {totals["AAA"].records}' in inside.stdout, inside.stdout)
t.equal(as_nobody([STOUP, "stat", daemon.pool], groups=GROUP).returncode, 0, "stat in the group")
daemon.stop()

# Users and groups beside it, by name and by number.
daemon = t.Daemon(store, "8M", options=["--allow-user", "nobody", "--allow-group", "60"])
t.equal(as_nobody([WORKER, daemon.pool, name]).returncode, 0, "a user on the list")
t.equal(os.stat(w.socket_path(daemon.pool)).st_mode & 0o777, 0o666, "the socket's mode with lists")
daemon.stop()
daemon = t.Daemon(store, "8M", options=["--allow-user", "1", "--allow-group", "60", "--allow-group", "4242424"])
inside = as_nobody([WORKER, daemon.pool, name], groups="60")
t.equal(inside.returncode, 0, f"a user in a group on the list: {inside.stdout}")
outside = as_nobody([WORKER, daemon.pool, name])
t.equal(outside.returncode, 1, "a user on no list")
for part in ("admits group 'games', group 4242424, user 'daemon', not uid 65534",
             "start stoupd with --allow-user 65534, or --group GROUP"):
    t.true(part in outside.stdout, f"{part!r} in {outside.stdout}")
t.equal(daemon.counter("attaches_refused"), 1, "refusals")
daemon.stop()
daemon = t.Daemon(store, "8M", options=["--allow-user", "nobody", "--socket-mode", "0600"])
t.equal(os.stat(w.socket_path(daemon.pool)).st_mode & 0o777, 0o600, "the socket's mode as told")
t.equal(as_nobody([WORKER, daemon.pool, name]).returncode, 1, "nobody can connect")
daemon.stop()

# One name, two pools: when the daemon of a user's own one ends, the other is none that comes after it.
mine = shutil.copytree(store, os.path.join(t.temp_dir(), "mine"))
os.chmod(os.path.dirname(mine), 0o755)
daemon = t.Daemon(store, "8M", options=["--allow-user", "nobody"])
t.STOUPD = STOUPD
own = t.Daemon(mine, "8M", pool=daemon.pool, prefix=[*NOBODY, "--clear-groups"])
worker = subprocess.Popen([*NOBODY, "--clear-groups", WORKER, "--pause", "20000", "--mark", "3",
                           "--reconnect", "300", daemon.pool, name], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          text=True)
t.equal(worker.stdout.readline(), "mark\n", "in the middle")
own.kill()
result = json.loads(worker.communicate("\n")[0])
t.equal(result["rc"], -errno.EPIPE, f"no daemon of this pool: {result}")
t.equal(daemon.counter("attaches"), 0, "attaches of the other pool")
daemon.stop()

# Names that nobody has are found at once; more than sixteen are none.
for option, value, part in (("--allow-user", "nosuch", "there is no user 'nosuch'; mend:"),
                            ("--monitor-group", "nosuch", "there is no group 'nosuch'; mend: groupadd"),
                            ("--allow-user", "4294967295", "is no number of a user"),
                            ("--socket-mode", "0777", "an octal mode from 0600 to 0666"),
                            ("--socket-mode", "0060", "an octal mode from 0600 to 0666")):
    said = t.run([t.STOUPD, "--store", store, "--pool", "x", option, value], expect=2).stderr
    t.true(option in said and part in said, said)
many = [word for number in range(17) for word in ("--allow-group", str(5000 + number))]
said = t.run([t.STOUPD, "--store", store, "--pool", "x", *many], expect=2).stderr
t.true("--allow-group: more than 16 groups; mend: put them into one group" in said, said)

# The umask decides nothing.
for umask in (0o000, 0o077, 0o777):
    before = os.umask(umask)
    daemon = t.Daemon(store, "8M", options=["--group", GROUP])
    os.umask(before)
    sock = w.socket_path(daemon.pool)
    modes = [os.stat(path).st_mode & 0o777 for path in (sock, sock[:-5] + ".lock",
                                                        f"/dev/shm/stoup.0.{daemon.pool}.ctl")]
    t.equal(modes, [0o660, 0o600, 0o640], f"modes of socket, lock and control object under umask {umask:o}")
    peer = w.Peer(daemon.pool)
    reply = peer.hello()
    t.equal([os.fstat(fd).st_mode & 0o777 for fd in reply["fds"][:3]], [0o640, 0o600, 0o600],
            "modes of control, data and page")
    peer.close()
    inside = as_nobody([WORKER, daemon.pool, name], groups=GROUP)
    t.equal(inside.returncode, 0, f"the group attaches under umask {umask:o}: {inside.stdout}")
    daemon.stop()

# An object of the pool's name that somebody else put there is not looked at, and not stumbled over in silence.
squatted = f"sq{os.getpid()}"
with open(f"/dev/shm/stoup.0.{squatted}.ctl", "wb") as planted:
    planted.write(bytes(8192))
os.chown(planted.name, 65534, 65534)
os.chmod(planted.name, 0o666)
looked = t.run([STOUP, "stat", squatted], expect=1).stderr
t.true("belongs to user 65534" in looked and "not trusted; mend: let root remove it" in looked, looked)
os.unlink(planted.name)

# An ordinary user runs all of it: ingest, daemon, worker, stat, cat, verify.
home = t.temp_dir()
os.chmod(home, 0o755)
own = os.path.join(home, "own")
os.mkdir(own, 0o700)
os.chown(own, 65534, 65534)
dbn = os.path.join(home, "in.dbn")
t.dbn_file(dbn, {"AAA": 11}, (t.mbo(*row) for row in t.mbo_records(5_000, {"AAA": 11})))
env = {"XDG_RUNTIME_DIR": own, "HOME": own}
keeper = None
for argv in ([STOUP, "ingest", "--quiet", "--store", f"{own}/store", dbn],
             [STOUP, "verify", f"{own}/store"],
             [STOUP, "ls", f"{own}/store"],
             [WORKER, f"{own}/store/", name],          # the automatic daemon
             [STOUP, "cat", "--limit", "3", f"{own}/store/", name],
             [STOUP, "stat", f"{own}/store/"]):
    if argv[1] == "stat":  # of a daemon that somebody keeps
        keeper = subprocess.Popen([*NOBODY, "--clear-groups", WORKER, "--wait", f"{own}/store/", name], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, text=True, env={"PATH": os.environ["PATH"], "STOUPD": STOUPD, **env})
        while keeper.stdout.readline() not in ("scanned\n", ""):
            pass
    done = as_nobody(argv, env=env)
    t.equal(done.returncode, 0, f"{argv}: {done.stdout} {done.stderr}")
t.true("running" in done.stdout, done.stdout)
keeper.communicate()

# A pool that others should use in a directory that is closed to them is refused, with the way out.
said = as_nobody([STOUPD, "--store", f"{own}/store", "--pool", "closed", "--allow-user", "1"], env=env)
t.equal(said.returncode, 1, "a closed directory")
t.true(f"nobody else can enter {own}/stoup" in said.stderr and "install -d -o 65534 /run/stoup" in said.stderr,
       said.stderr)
