# SPDX-License-Identifier: Apache-2.0
"""stoup check of pools and stores: daemons that were stopped or killed, names that were removed, hostile objects, stores
that are damaged, unfinished, open to everybody, or have blocks too long for the pool."""
import json
import os
import re
import signal
import struct

import lib_check as c
import lib_stoup as t
import lib_wire as w

UID = os.geteuid()
store, totals = t.make_store(30_000)
os.environ.setdefault("XDG_RUNTIME_DIR", os.path.join(t.temp_dir(), "run"))
os.makedirs(os.environ["XDG_RUNTIME_DIR"], exist_ok=True)

# ---- a pool that is served -------------------------------------------------------------------------------
daemon = t.Daemon(store, "8M")
lines = c.check(daemon.pool, expect=0)
t.true(f"process {daemon.process.pid}, uid {UID}" in lines["pool"][0]["found"], f"who serves it: {lines['pool']}")
t.true("(0600): root and uid" in lines["attach"][0]["found"] or "members of group stoup" in lines["attach"][0]["found"],
       f"who may attach: {lines['attach']}")
# Its memory is there already: a pool that could not be made beside it is no problem.
t.equal(c.check(daemon.pool, "--size", "900T", "--backing", "memfd", expect=0)["memory"][0]["level"], "ok", "memory")

# ---- a daemon that hangs ---------------------------------------------------------------------------------
daemon.process.send_signal(signal.SIGSTOP)
lines = t.until(lambda: next((found for found in [t.run([t.STOUP, "check", "--json", daemon.pool], expect=None)]
                              if found.returncode == 1), None), "its silence is seen")
c.staged("a stopped daemon", c.check(daemon.pool, expect=1), "daemon", "problem", f"kill -CONT {daemon.process.pid}")
if t.can_mount():
    # Its number is of another namespace: no command may be named that meets whoever has it here.
    found = t.run(["unshare", "-m", "-p", "-f", "--mount-proc", t.STOUP, "check", "--json", daemon.pool], expect=1)
    (line,) = [line for line in json.loads(found.stdout)["checks"] if line["check"] == "daemon" and daemon.pool in line["found"]]
    t.true("another PID namespace" in line["found"] and "kill" not in line["mend"] and f"stoup check {daemon.pool}" in line["mend"],
           f"a stopped daemon of another namespace: {line}")
machine = json.loads(t.run([t.STOUP, "check", "--json"], expect=None).stdout)["checks"]
t.equal([line["level"] for line in machine if line["mend"] == f"kill -CONT {daemon.process.pid}"], ["warning"],
        "of a pool that was not asked for")
daemon.process.send_signal(signal.SIGCONT)
t.until(lambda: t.run([t.STOUP, "check", daemon.pool], expect=None).returncode == 0, "it goes on")

# ---- its name was removed --------------------------------------------------------------------------------
control = f"/dev/shm/stoup.{UID}.{daemon.pool}.ctl"
os.rename(control, control + ".away")
c.staged("a removed name", c.check(daemon.pool, expect=0), "control", "warning", "loginctl enable-linger", "RemoveIPC=no",
         "a system user")
os.rename(control + ".away", control)

# ---- another release, garbage, links and pipes in its place: nothing but words ---------------------------
os.rename(control, control + ".away")
for what, put in (("garbage", lambda path: open(path, "wb").write(os.urandom(8192))),
                  ("nothing", lambda path: open(path, "wb").close()),
                  ("a link", lambda path: os.symlink("/etc/passwd", path)),
                  ("a pipe", os.mkfifo), ("a directory", os.mkdir)):
    put(control)
    c.staged(f"{what} in its place", c.check(daemon.pool, expect=0), "control", "warning", "one release")
    (os.rmdir if os.path.isdir(control) else os.unlink)(control)
with open(control + ".away", "rb") as source:
    image = source.read()
for at in range(24, 1152, 8):  # behind the fingerprint: each word torn
    with open(control, "wb") as out:
        out.write(image[:at] + struct.pack("<Q", 2**64 - 1) + image[at + 8:])
    found = t.run([t.STOUP, "check", daemon.pool], expect=None)
    t.true(found.returncode in (0, 1), f"a torn word at {at}: {found.returncode} {found.stderr}")
os.unlink(control)
os.rename(control + ".away", control)

# ---- names that would be commands, and a stranger's pool ---------------------------------------------------
for bad in ("$(id)", "a;id", "a b", "-rf", "x" * 70):
    open(f"/dev/shm/stoup.{UID}.{bad}.ctl", "wb").close()
    found = t.run([t.STOUP, "check"], expect=None)
    os.unlink(f"/dev/shm/stoup.{UID}.{bad}.ctl")
    t.true(bad not in found.stdout, f"'{bad}' is repeated: {found.stdout}")
stranger = f"/dev/shm/stoup.54321.s{os.getpid()}.ctl"
open(stranger, "wb").close()
line = c.staged("a stranger's pool", c.check(f"s{os.getpid()}", expect=1), "pool", "problem", "stoupd --store DIR --pool s")
t.true("that of user 54321 is for that user alone" in line["found"], f"whose it is: {line}")
os.unlink(stranger)

# ---- killed ----------------------------------------------------------------------------------------------
sock = w.socket_path(daemon.pool)
daemon.kill()
lines = c.check(daemon.pool, expect=1)
line = c.staged("a killed daemon", lines, "stale", "warning", f"stoupd --store DIR --pool {daemon.pool}",
                f"rm {sock} {control}")
t.true(f"process {daemon.process.pid}" in line["found"], f"who it was: {line}")
c.staged("no daemon", lines, "pool", "problem", f"stoupd --store DIR --pool {daemon.pool}")
os.unlink(control)
line = c.staged("its socket alone", c.check(daemon.pool, expect=1), "stale", "warning", f"rm {sock}")
t.true("nobody listens" in line["found"] and control not in line["mend"], f"the socket alone: {line}")
os.unlink(sock)
t.true("stale" not in c.check(daemon.pool, expect=1), "nothing is left")

# ---- stores ----------------------------------------------------------------------------------------------
directory = os.path.dirname(store)
lines = c.check(store, expect=0)
t.true(lines["store"][0]["found"].startswith("1 volume, decoding to "), f"a store: {lines['store']}")
# The pool that it has in mind is the one that stoupd makes where no --size is given.
said = t.run([t.STOUPD, "--store", store, "--pool", f"d{os.getpid()}", "--auto", "--linger", "1ms"]).stderr
served = int(re.search(r"from a pool of (\d+) bytes", said).group(1))
t.equal(lines["shm"][0]["wanted"], f"{served / 2**20 + 1:.1f} MiB", "the size of the pool to be, and the control object")
os.mkdir(os.path.join(directory, "none"))
c.staged("an empty directory", c.check(os.path.join(directory, "none"), expect=1), "store", "problem",
         "stoup ingest --store", "FILE")
c.staged("no directory", c.check("/nowhere/", expect=1), "store", "problem", "stoup ingest --store /nowhere/")
c.staged("blocks too long", c.check(store, "--size", "128K", expect=1), "store_blocks", "problem", "--size 26", f" {store}")
os.chmod(store, 0o777)
(volume,) = [os.path.join(store, name) for name in os.listdir(store) if name.endswith(".stoup")]
os.chmod(volume, 0o666)
lines = c.check(store, expect=0)
t.equal([line["mend"] for line in lines["store_mode"]], [f"chmod o-w {store}", f"chmod o-w {store}/*.stoup"], "modes")
os.chmod(store, 0o755)
os.chmod(volume, 0o644)
with open(os.path.join(store, ".tmp-" + "0" * 32 + ".stoup"), "wb") as cut:
    cut.write(b"half")
c.staged("a writer that was cut short", c.check(store, expect=0), "store_writer", "warning", f"stoup compact {store}")
t.run([t.STOUP, "compact", "--quiet", store])
t.true("store_writer" not in c.check(store, expect=0), "the cure mends it")
length = os.path.getsize(volume)
with open(volume, "r+b") as out:
    out.truncate(length - 1)
c.staged("a damaged volume", c.check(store, expect=1), "store_volume", "problem", f"stoup verify --repair {store}")
print("ok", flush=True)
