# SPDX-License-Identifier: Apache-2.0
"""Where /proc hides the daemon's process from who looks (hidepid), a daemon that runs is not told to be dead, and one that was
killed is."""
import grp
import json
import subprocess
import sys

import lib_stoup as t

NOBODY, GROUP = 65534, "nogroup"
if not t.can_mount():
    print("needs root, and mount namespaces, to mount a /proc that hides: skipped")
    sys.exit(t.SKIP)
try:
    gid = grp.getgrnam(GROUP).gr_gid
except KeyError:
    print(f"no group {GROUP}: skipped")
    sys.exit(t.SKIP)

store, _ = t.make_store(3_000)
daemon = t.Daemon(store, "4M", options=("--group", GROUP))


def hidden(option, *command):
    """What a command says as another user, who is of the pool's group."""
    inside = f'mount -t proc -o hidepid={option} proc /proc || exit 99; exec setpriv --reuid {NOBODY} --regid {gid} --clear-groups "$@"'
    return subprocess.run(["unshare", "-m", "sh", "-c", inside, "sh", t.STOUP, *command], capture_output=True, text=True)


if hidden(1, "stat", daemon.pool).returncode == 99:
    print("mounting /proc is not allowed here: skipped")
    sys.exit(t.SKIP)
for option in (0, 1, 2):
    what = f"hidepid={option}"
    daemon.settled()
    done = hidden(option, "stat", "--json", daemon.pool)
    t.equal(done.returncode, 0, f"{what}: {done.stderr}")
    stat = json.loads(done.stdout)
    t.equal((stat["state"], stat["problem"]), ("running", ""), what)
    t.true(f'\nstoup_up{{pool="{daemon.pool}"}} 1\n' in hidden(option, "exporter", "--once", daemon.pool).stdout, f"{what}: stoup_up")
daemon.kill()
for option in (0, 1, 2):
    stat = json.loads(hidden(option, "stat", "--json", daemon.pool).stdout)
    t.equal(stat["state"], "dead", f"killed, hidepid={option}")
