# SPDX-License-Identifier: Apache-2.0
"""stat, holders, log and check before a control object that somebody wrote nonsense into or cut short: each ends by itself with
0 or 1, its JSON is JSON, and no control character reaches a terminal."""
import json
import os
import random
import subprocess

import lib_stoup as t

SEED, ROUNDS = 20261201, 40
ODD = (b"\xff" * 8, bytes(8), b"\x1b[2J\x9b\xc2\x9b", b"\x00\x00\x00\x00\x01\x00\x00\x00")
FORMS = (["stat", "--all"], ["stat", "--json"], ["holders", "--json"], ["log"], ["check", "--json"])

store, _ = t.make_store(30_000)
daemon = t.Daemon(store, "8M")
worker = t.Worker(daemon.pool, t.name_of("AAA"), "--hold", 3, "--wait")
worker.wait_scanned()
t.until(lambda: daemon.counter("leases") == 3, "leases are seen")
(name,) = [name for name in t.shm_names(daemon.pool) if name.endswith(".ctl")]
path = os.path.join("/dev/shm", name)
watching = subprocess.Popen([t.STOUP, "stat", "--watch=0.01", daemon.pool], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
watching.stdout.readline()
watching.stdout.readline()
daemon.kill()
with open(path, "rb") as source:
    good = source.read()


def look(what):
    """How many of the forms took the object."""
    taken = 0
    for form in FORMS:
        done = subprocess.run([t.STOUP, *form, daemon.pool], capture_output=True, timeout=60)
        t.true(done.returncode in (0, 1), f"{what}: {form} ended with {done.returncode}: {done.stderr[-500:]}")
        text = (done.stdout + done.stderr).decode()
        t.equal([c for c in text if c != "\n" and (c < " " or "\x7f" <= c < "\xa0")], [], f"{what}: control characters of {form}")
        if "--json" in form and done.stdout:
            json.loads(done.stdout)
        taken += form[0] != "check" and done.returncode == 0
    return taken


# ---- cut short while it is mapped, and before -----------------------------------------------------------
os.truncate(path, 4096)
_, text = watching.communicate(timeout=60)
t.equal(watching.returncode, 1, f"the watcher ends by itself: {text}")
t.true("cut short" in text, f"and says why: {text}")
for length in (0, 1, 4095, 4096, len(good) - 4096):
    os.truncate(path, length)
    t.equal(look(f"{length} bytes"), 0, f"an object of {length} bytes")

# ---- nonsense ---------------------------------------------------------------------------------------------
rng = random.Random(SEED)
taken = 0
for i in range(ROUNDS):
    image = bytearray(good)
    for _ in range(rng.choice((1, 3, 20, 500))):
        at = rng.randrange(2, rng.choice((512, len(good) // 8))) * 8
        word = rng.choice(ODD) if rng.random() < 0.5 else rng.randbytes(8)
        image[at:at + 8] = word[:8]
    with open(path, "wb") as out:
        out.write(image[:len(good)])
    taken += look(f"seed {SEED}, round {i}")
t.true(0 < taken < ROUNDS * 4, f"some were taken and some refused: {taken}")
os.unlink(path)
worker.kill()
