# SPDX-License-Identifier: Apache-2.0
"""The automatic daemon's name is held, but nobody listens yet or any more: whoever comes waits for it.

Held by a daemon that still starts, whose first comer was killed; by one that ends and has removed its
socket; by one that never gets anywhere, which is told after the time-out.
"""
import errno
import fcntl
import glob
import json
import os
import signal
import struct

import lib_stoup as t

runtime = t.temp_dir()
os.environ["XDG_RUNTIME_DIR"] = runtime
store, totals = t.make_store(60_000, directory=t.temp_dir())
path = store + "/"
name = t.name_of("AAA")
seen = os.stat(store)
pool = f"auto-{seen.st_dev:x}-{seen.st_ino:x}"
lock_path = os.path.join(runtime, "stoup", pool + ".lock")
sock_path = os.path.join(runtime, "stoup", pool + ".sock")


def flock(fd, command):
    """fcntl(2) with a write lock on the whole file; the type that comes back."""
    done = fcntl.fcntl(fd, command, struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
    return struct.unpack("hhqqi4x", done)[0]


def owner():
    """The process that holds the daemon's lock, and 0 while nobody does."""
    if not os.path.exists(lock_path):
        return 0
    with open(lock_path, "r+", encoding="ascii") as lock:
        text = lock.read()
        return int(text) if text and flock(lock.fileno(), fcntl.F_OFD_GETLK) != fcntl.F_UNLCK else 0


def stat():
    return json.loads(t.run([t.STOUP, "stat", "--json", path]).stdout)


# 1. The first comer is killed, and the daemon that it started still starts: it is stopped on its way for
# as long as others come, so that they find the name held. Should it listen already, its first comer keeps it.
slow = os.path.join(runtime, "stoupd-slow")
with open(slow, "w", encoding="ascii") as out:
    out.write(f'#!/bin/sh\nexec "{t.STOUPD}" "$@" --size 256M\n')
os.chmod(slow, 0o755)
first = t.Worker(path, name, "--wait", env={**os.environ, "STOUPD": slow})
pid = t.until(owner, "the daemon takes its lock")
os.kill(pid, signal.SIGSTOP)
first.kill()
print("stopped while it", "listens already" if os.path.exists(sock_path) else "still starts", flush=True)
others = [t.Worker(path, name, *options) for options in ((), (), (), ("--wait",))]
t.time.sleep(1.5)
for worker in others:
    t.equal(worker.process.poll(), None, "who comes meanwhile waits")
os.kill(pid, signal.SIGCONT)
for worker in others[:3]:
    (found,) = worker.finish()
    totals["AAA"].check(found, "came while the daemon started")
(found,) = others[3].wait_scanned()  # it keeps the daemon: one without consumers would end two seconds later
totals["AAA"].check(found, "came while the daemon started, and stays")
found = stat()
t.equal(found["pid"], pid, "it is the daemon of the first comer")
t.equal(found["counters"]["loads_max"], 1, "each block loaded once")
others[3].finish()
t.until(lambda: not os.path.exists(f"/proc/{pid}"), "it ends by itself")
t.until(lambda: owner() == 0, "and its name is free")

# 2. A daemon that ends: the name is held, and there is no socket (any more).
with open(lock_path, "r+", encoding="ascii") as lock:
    flock(lock.fileno(), fcntl.F_OFD_SETLK)
    t.equal(glob.glob(sock_path), [], "no socket")
    worker = t.Worker(path, name, "--wait")
    t.time.sleep(1.5)
    t.equal(worker.process.poll(), None, "who comes meanwhile waits")
(found,) = worker.wait_scanned()
totals["AAA"].check(found, "came while the name was held")
again = stat()["pid"]
t.equal(owner(), again, "a daemon was started once the name was free")
worker.finish()
t.until(lambda: not os.path.exists(f"/proc/{again}"), "it ends by itself")
t.until(lambda: owner() == 0, "and its name is free")

# 3. A name that stays held: the error comes at the deadline, in the daemon's words.
# The first try must bring its words: where it did not end in time, the machine is so busy that more time is given.
with open(lock_path, "r+", encoding="ascii") as lock:
    flock(lock.fileno(), fcntl.F_OFD_SETLK)
    for seconds in (4, 8, 16, 32, 64):
        begin = t.time.monotonic()
        late = json.loads(t.run([t.WORKER, "--timeout", str(seconds * 1000), path, name], expect=1).stdout)
        t.equal(late["rc"], -errno.ETIMEDOUT, f"the deadline: {late}")
        t.true(f"not attached within {seconds}.0 s" in late["text"], late["text"])
        t.true(t.time.monotonic() - begin >= seconds - 0.1, "tried until the deadline")
        if "served already" in late["text"]:
            break
    t.true("served already" in late["text"], late["text"])
