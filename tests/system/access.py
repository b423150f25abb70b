# SPDX-License-Identifier: Apache-2.0
"""Who may use a pool: its owner, root, its group; others are refused with a text that names the group."""
import os
import shutil
import subprocess
import sys

import lib_stoup as t

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

# An ordinary user runs all of it: ingest, daemon, worker, stat, cat, verify.
home = t.temp_dir()
os.chmod(home, 0o755)
own = os.path.join(home, "own")
os.mkdir(own, 0o700)
os.chown(own, 65534, 65534)
dbn = os.path.join(home, "in.dbn")
t.dbn_file(dbn, {"AAA": 11}, (t.mbo(*row) for row in t.mbo_records(5_000, {"AAA": 11})))
env = {"XDG_RUNTIME_DIR": own, "HOME": own}
for argv in ([STOUP, "ingest", "--quiet", "--store", f"{own}/store", dbn],
             [STOUP, "verify", f"{own}/store"],
             [STOUP, "ls", f"{own}/store"],
             [WORKER, f"{own}/store/", name],          # the automatic daemon
             [STOUP, "cat", "--limit", "3", f"{own}/store/", name],
             [STOUP, "stat", f"{own}/store/"]):
    done = as_nobody(argv, env=env)
    t.equal(done.returncode, 0, f"{argv}: {done.stdout} {done.stderr}")
t.true("running" in done.stdout, done.stdout)
