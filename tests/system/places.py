# SPDX-License-Identifier: Apache-2.0
"""Where things lie and how they are called: closed umask, read-only data, links, spaces, UTF-8."""
import os
import shutil
import subprocess
import sys

import lib_stoup as t

store, totals = t.make_store(20_000)
name = t.name_of("AAA")


def all_tools(path, where, series=name, expected=None):
    """Serve, list, verify and print a store that may only be read."""
    expected = expected or totals["AAA"]
    daemon = t.Daemon(path, "4M")
    (found,) = t.Worker(daemon.pool, series).finish()
    expected.check(found, where)
    looked = t.run([t.STOUP, "stat", daemon.pool]).stdout
    t.true(path[-20:] in looked, f"{where}: stat names the store: {looked}")
    t.equal(daemon.stop(), 0, f"{where}: exit status")
    t.true(series in t.run([t.STOUP, "ls", path]).stdout, f"{where}: ls")
    t.run([t.STOUP, "verify", path])
    lines = t.run([t.STOUP, "cat", "--limit", "5", path + "/", series]).stdout.splitlines()
    t.equal(len(lines), 6, f"{where}: lines of cat")


# ---- names ------------------------------------------------------------------------------------------------
os.environ["XDG_RUNTIME_DIR"] = t.temp_dir()
odd = os.path.join(t.temp_dir(), "ein Speicher für Ticks – 取引")
symbols = {"GRÜN 5%/€": 7, "東京 1": 9}
rows = list(t.mbo_records(10_000, symbols))
dbn = os.path.join(t.temp_dir(), "ein gabe ü.dbn")
t.dbn_file(dbn, symbols, (t.mbo(*row) for row in rows))
t.run([t.STOUP, "ingest", "--quiet", "--store", odd, dbn])
listed = t.run([t.STOUP, "ls", odd]).stdout
for symbol, escaped in (("GRÜN 5%/€", "GRÜN 5%25%2F€"), ("東京 1", "東京 1")):
    sums = t.Totals()
    for ident, key, price, size in rows:
        if ident == symbols[symbol]:
            sums.add(key, price, size)
    t.true(t.name_of(escaped) in listed, f"{symbol} in {listed}")
    all_tools(odd, "spaces and UTF-8", t.name_of(escaped), sums)
missing = t.run([t.STOUP, "cat", odd + "/", "XTST.TEST/東京 2/mbo"], expect=1).stderr
t.true("東京 1" in missing, f"near names are shown: {missing}")
(volume,) = [entry for entry in os.listdir(odd) if entry.endswith(".stoup")]
damaged = os.path.join(odd, volume)
with open(damaged, "r+b") as out:
    out.seek(70)
    byte = out.read(1)
    out.seek(70)
    out.write(bytes([byte[0] ^ 1]))
bad = t.run([t.STOUP, "verify", odd], expect=1)
t.true(damaged in bad.stdout + bad.stderr, f"the path in an error: {bad.stdout}{bad.stderr}")

# ---- links -------------------------------------------------------------------------------------------------
links = t.temp_dir()
link = os.path.join(links, "a link")
os.symlink(store, link)
all_tools(link, "a symlinked store")
os.mkdir(os.path.join(links, "spread"))
(volume,) = [entry for entry in os.listdir(store) if entry.endswith(".stoup")]
os.symlink(os.path.join(store, volume), os.path.join(links, "spread", volume))
all_tools(os.path.join(links, "spread"), "a symlinked volume")
os.symlink(os.path.join(links, "loop"), os.path.join(links, "loop"))
for path in ("loop", "nowhere"):
    gone = t.run([t.STOUPD, "--store", os.path.join(links, path), "--pool", f"l{os.getpid()}"], expect=1).stderr
    t.true(path in gone, gone)
fresh = os.path.join(links, "target")
os.mkdir(fresh)
os.symlink(fresh, os.path.join(links, "to target"))
t.run([t.STOUP, "ingest", "--quiet", "--store", os.path.join(links, "to target"), dbn])
t.true(any(entry.endswith(".stoup") for entry in os.listdir(fresh)), "an ingest through a link")

if os.geteuid() != 0:
    print("unverified: read-only mounts and other users need root")
    sys.exit(0)

# ---- read-only ---------------------------------------------------------------------------------------------
# For an ordinary user: the directory may be read and searched, not written.
home = t.temp_dir()
os.chmod(home, 0o755)
shutil.copytree(store, os.path.join(home, "store"))
for entry in os.listdir(os.path.join(home, "store")):
    os.chmod(os.path.join(home, "store", entry), 0o444)
os.chmod(os.path.join(home, "store"), 0o555)
own = os.path.join(home, "own")
os.mkdir(own, 0o700)
os.chown(own, 65534, 65534)
shutil.copy(dbn, os.path.join(home, "in.dbn"))
os.chmod(os.path.join(home, "in.dbn"), 0o644)
programs = [shutil.copy(path, home) for path in (t.STOUP, t.STOUPD, t.WORKER)]
env = {"PATH": os.environ["PATH"], "XDG_RUNTIME_DIR": own, "STOUPD": programs[1], "HOME": own}
as_nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
for argv in ([programs[0], "ls", f"{home}/store"], [programs[0], "verify", f"{home}/store"],
             [programs[2], f"{home}/store/", name],
             [programs[0], "cat", "--limit", "2", f"{home}/store/", name]):
    t.run([*as_nobody, *argv], env=env)
refused = t.run([*as_nobody, programs[0], "ingest", "--quiet", "--store", f"{home}/store", f"{home}/in.dbn"],
                env=env, expect=1).stderr
t.true("store" in refused and "ermission denied" in refused, f"ingest: {refused}")
print("ingest, r-x:", refused.strip())

if not t.can_mount():
    print("unverified: mount namespaces can not be made here")
    sys.exit(0)
# On a read-only mount.
if not os.environ.get("STOUP_PLACES_RO"):
    script = f"mount --bind -o ro '{store}' '{store}' && mount -o remount,bind,ro '{store}' && exec \"$@\""
    env = {**os.environ, "STOUP_PLACES_RO": "1"}
    code = f"""
import sys; sys.path.insert(0, {os.path.dirname(os.path.abspath(__file__))!r})
import lib_stoup as t
daemon = t.Daemon({store!r}, "4M")
(found,) = t.Worker(daemon.pool, {name!r}).finish()
t.equal(found["records"], {totals["AAA"].records}, "records of a read-only mount")
t.equal(daemon.stop(), 0, "exit status")
t.run([t.STOUP, "ls", {store!r}])
t.run([t.STOUP, "verify", {store!r}])
t.run([t.WORKER, {store!r} + "/", {name!r}])
print("ingest, ro:", t.run([t.STOUP, "ingest", "--quiet", "--store", {store!r}, {dbn!r}], expect=1).stderr.strip())
"""
    done = t.run(["unshare", "-m", "bash", "-c", script, "ro", sys.executable, "-B", "-c", code], env=env)
    t.true("ead-only file system" in done.stdout and store in done.stdout, f"ingest: {done.stdout}")
    print(done.stdout.strip())

# ---- umask 077 ---------------------------------------------------------------------------------------------
# Also where /run/stoup is still to be made: who is in the group gets in.
script = f"""
unset XDG_RUNTIME_DIR; mount -t tmpfs tmpfs /run && umask 077
'{t.STOUPD}' --store '{store}' --pool closed --size 2M --group games --quiet & pid=$!
for i in $(seq 3000); do '{t.STOUP}' stat closed > /dev/null 2>&1 && break; sleep 0.02; done
setpriv --reuid=65534 --regid=65534 --groups=games '{programs[2]}' closed '{name}'; in=$?
setpriv --reuid=65534 --regid=65534 --groups=games '{programs[0]}' stat closed | head -1; looked=$?
setpriv --reuid=65534 --regid=65534 --clear-groups '{programs[2]}' closed '{name}'; out=$?
kill $pid; wait $pid
echo "status $in $looked $out"
"""
done = subprocess.run(["unshare", "-m", "bash", "-c", script], capture_output=True, text=True, timeout=250)
t.true("status 0 0 1" in done.stdout, f"umask 077: {done.stdout}{done.stderr}")
# And an automatic daemon that a closed umask starts.
t.run(["bash", "-c", 'umask 077; "$@"', "closed", t.WORKER, store + "/", name])
