# SPDX-License-Identifier: Apache-2.0
"""A volume with blocks across and beyond 4 GiB, served, verified, printed, damaged and cut there."""
import json
import os
import subprocess
import sys

import lib_stoup as t

store = os.path.join(t.temp_dir(), "store")
os.mkdir(store)
made = subprocess.run([os.path.join(t.BIN, "helper_far"), store], capture_output=True, text=True)
if made.returncode == t.SKIP:
    print("unverified:", made.stderr.splitlines()[-1])
    sys.exit(t.SKIP)
t.equal(made.returncode, 0, made.stderr)
print(made.stderr.strip())
expected = json.loads(made.stdout)
name = "XTST.TEST/FAR/far"
(volume,) = os.listdir(store)
path = os.path.join(store, volume)
t.true(os.path.getsize(path) > 4 << 30, "its length")


def scan(daemon, what, *options, expect=0):
    (found,) = t.Worker(daemon.pool, name, "--size", "qty", *options).finish(expect=expect)
    if expect == 0:
        for key, value in expected.items():
            t.equal(found[key], value, f"{what}: {key}")
    return found


for reader in ("auto", "pread"):
    for options in (("--cached", "off"), ("--cached", "off", "--direct", "off"), ()):
        daemon = t.Daemon(store, "512K", options=["--reader", reader, *options])
        scan(daemon, f"{reader} {options}")
        scan(daemon, f"{reader} {options}, again")
        t.equal(daemon.stop(), 0, "exit status")
t.run([t.STOUP, "verify", store])
listed = t.run([t.STOUP, "ls", store]).stdout
t.true(name in listed, listed)
last = t.run([t.STOUP, "cat", "--from", str(expected["last_key"]), store + "/", name])
t.equal(len(last.stdout.splitlines()), 2, f"the last record: {last.stdout}")

# Damage beyond 4 GiB: the text has the whole offset; so has that of a file which ends there.
offset = 4 << 30
with open(path, "r+b") as out:
    out.seek(offset + 8192)
    byte = out.read(1)
    out.seek(offset + 8192)
    out.write(bytes([byte[0] ^ 0x10]))
daemon = t.Daemon(store, "512K")
found = scan(daemon, "damaged", expect=1)
t.true("offset 42949" in found["text"], f"the offset: {found}")
os.truncate(path, offset + 100)
found = scan(daemon, "cut", expect=1)
t.true("offset 42949" in found["text"] and "truncated" in found["text"], f"cut: {found}")
daemon.stop()
