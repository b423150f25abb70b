# SPDX-License-Identifier: Apache-2.0
"""Arrays outlive cursor, client, close, daemon and interpreter; leases go with the last view, at once; damage and
restarts."""
import gc
import os
import signal
import threading
import time
import weakref

import lib_python as p
import lib_stoup as t
import numpy as np
import stoup

COUNT = 20_000
store, totals = t.make_store(COUNT)
NAME = t.name_of("AAA")
daemon = t.Daemon(store, "4M")
gc.disable()  # nothing here may depend on it


def whole(client):
    return client.read(NAME)


# ---- who keeps a lease ---------------------------------------------------------------------------------------
client = stoup.open(daemon.pool)
private = whole(client)


def held():
    """Cells of this process that name a lease, now."""
    return client.stats()["lease_cnt"]


p.no_leases(daemon, "a scan to its end")

cursor = client.scan(NAME)
first = next(cursor)
second = next(cursor)
t.true(held() >= 2, "two arrays, and what comes next")
cursor.close()
t.equal(held(), 2, "two arrays")
row, column, sliced = first[5], first["price"], first[10:20]["size"]
del first
t.equal(held(), 2, "views keep the lease")
del column, sliced
t.equal(held(), 2, "so does a record")
want = private[5].copy()
t.true(row == want, "the record")
del row
t.equal(held(), 1, "the last view is gone, and its lease at once")
owner = weakref.ref(second)
del second
t.true(owner() is None, "no cycle keeps an array")
t.equal(held(), 0, "none")
p.raises(ValueError, lambda: next(cursor), "closed")

for view in client.scan(NAME):
    break
t.equal(held(), 1, "a scan that is left: what was handed out")
del view
t.equal(held(), 0, "and no more")
for i, view in enumerate(client.scan(NAME)):
    if i == 4:
        break
del view
t.equal((held(), stoup._lib.stoup_use_cnt(client._handle().it)), (0, 0), "a batch that is left, and its cursor")

for _ in range(200):
    client.asof(NAME, t.T0 + 5000)
t.true(len(client._steps) < 100, "what is kept of cursors that are gone")

# A batch that is not handed out yet goes with the cursor.
cursor = client.scan(NAME)
views = [next(cursor) for _ in range(4)]
del views
cursor.close()
t.equal(held(), 0, "the rest of a batch")
del cursor

# An error on the way: a view that cannot be made gives its lease back.
good = stoup._view
calls = []


def fails(held, schema):
    calls.append(1)
    if len(calls) == 3:
        raise RuntimeError("in the middle")
    return good(held, schema)


stoup._view = fails
p.raises(RuntimeError, lambda: [None for _ in client.scan(NAME)], "in the middle")
stoup._view = good
t.equal(held(), 0, "after an exception within")
interrupted = client.scan(NAME)
stoup._view = fails
calls.clear()
p.raises(RuntimeError, lambda: [None for _ in interrupted])
stoup._view = good
p.raises(stoup.Error, lambda: next(interrupted), "interrupted")

# ---- close with live views ------------------------------------------------------------------------------------
cursor = client.scan(NAME)
views = [next(cursor), next(cursor)]
client.close()
p.raises(ValueError, lambda: next(cursor), "closed")
p.raises(ValueError, lambda: client.scan(NAME), "closed")
t.equal(len(daemon.stat()["consumers"]), 1, "attached while an array lives")
t.true((np.concatenate(views) == private[:sum(map(len, views))]).all(), "the same records")
del views[0]
t.until(lambda: p.leases(daemon) == 1, "the other one")
t.equal(len(daemon.stat()["consumers"]), 1, "still attached")
views.clear()
t.until(lambda: not daemon.stat()["consumers"], "the attachment goes with the last array")

# A view that another thread lets go, after everything else went.
client = stoup.open(daemon.pool)
views = [next(client.scan(NAME))]
client.close()
del client
thread = threading.Thread(target=views.clear)
thread.start()
thread.join()
t.until(lambda: not daemon.stat()["consumers"], "let go by another thread")

# ---- threads --------------------------------------------------------------------------------------------------
client = stoup.open(daemon.pool)
found, errors = [], []


def work():
    try:
        for _ in range(5):
            sums = [0, 0]
            for view in client.scan(NAME):
                sums[0] += len(view)
                sums[1] += int(view["size"].sum())
            found.append(tuple(sums))
            client.asof(NAME, t.T0 + 5000)
    except BaseException as error:
        errors.append(error)


threads = [threading.Thread(target=work) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
t.equal((errors, set(found)), ([], {(COUNT, totals["AAA"].size)}), "eight threads over one client")
p.no_leases(daemon, "threads")

# ---- more than the share --------------------------------------------------------------------------------------
small = t.Daemon(store, "640K")
narrow = stoup.open(small.pool)
kept = []
error = p.raises(stoup.Exhausted, lambda: kept.extend(view for view in narrow.scan(NAME)), "release", "--lease-bytes")
cursor, kept = narrow.scan(NAME), []
try:
    for view in cursor:
        kept.append(view)
except stoup.Exhausted:
    pass
t.true(0 < len(kept) < 10, f"arrays within the share: {len(kept)}")
parts = [view.copy() for view in kept]
del view
kept.clear()
parts += [view.copy() for view in cursor]  # the same cursor goes on, with the very next record
t.true((np.concatenate(parts) == private).all(), "nothing lost and nothing twice")
narrow.close()
del cursor
t.until(lambda: not small.stat()["consumers"], "the narrow client is gone")
small.stop()

# ---- the daemon dies --------------------------------------------------------------------------------------------
cursor = client.scan(NAME)
views = [next(cursor)]
daemon.kill()
t.true((views[0] == private[:len(views[0])]).all(), "readable without a daemon")
hasty = stoup.open
p.raises(stoup.Gone, client.health)
again = t.Daemon(store, "4M", pool=daemon.pool)
views += list(cursor)
t.true((np.concatenate(views) == private).all(), "goes on at the next record of the next daemon")
again.kill()
begin = time.monotonic()
client.close()
t.true((np.concatenate(views) == private).all(), "closed, and both daemons dead")
del client, cursor
views.clear()
impatient = t.Daemon(store, "1M", pool=daemon.pool)
client = stoup.open(daemon.pool, reconnect=0.2)
cursor = client.scan(NAME)
head = next(cursor)
impatient.kill()
error = p.raises(stoup.Gone, lambda: [None for _ in cursor], "dead")
t.true(isinstance(error, ConnectionError), "a ConnectionError")
impatient = t.Daemon(store, "1M", pool=daemon.pool)
rest = [view.copy() for view in cursor]
t.true((np.concatenate([head, *rest]) == private).all(), "after Gone the same cursor goes on")
client.close()
del head, cursor
impatient.stop()

# An automatic daemon that is killed is started again by whoever reads.
def automatic():
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as line:
                words = line.read().split(b"\0")
        except OSError:
            continue
        if b"--auto" in words and os.fsencode(os.path.realpath(store)) in words:
            found.append(int(pid))
    return found


with stoup.open(store + "/", pool_bytes=1 << 20) as client:
    cursor = client.scan(NAME)
    views = [next(cursor)]
    (pid,) = automatic()
    os.kill(pid, signal.SIGKILL)
    parts = [views[0].copy()] + [view.copy() for view in cursor]
    t.true((np.concatenate(parts) == private).all(), "over the end of an automatic daemon")
    t.true((views[0] == private[:len(views[0])]).all(), "the first array is what it was")
    t.equal(client.stats()["reconnect_cnt"], 1, "another daemon")
views.clear()
t.until(lambda: not automatic(), "the automatic daemon ends")

# ---- damage -----------------------------------------------------------------------------------------------------
(volume,) = [name for name in os.listdir(store) if name.endswith(".stoup")]
path = os.path.join(store, volume)
with open(path, "r+b") as out:
    out.seek(64 + 10)
    byte = out.read(1)[0]
    out.seek(64 + 10)
    out.write(bytes([byte ^ 0x40]))
damaged = t.Daemon(store, "4M")
client = stoup.open(damaged.pool)
cursor = client.scan(NAME)
p.raises(stoup.Error, cursor.skip, "did not fail")
error = p.raises(stoup.Damaged, lambda: next(cursor), volume, "offset 64")
p.raises(stoup.Damaged, lambda: next(cursor), volume)
left_out = cursor.skip()
rest = [view.copy() for view in cursor]
t.true(0 < left_out < COUNT, f"left out: {left_out}")
t.true((np.concatenate(rest) == private[left_out:]).all(), "all that is behind the damaged block")
p.raises(stoup.Damaged, lambda: client.read(NAME), volume)
with open(path, "r+b") as out:
    out.seek(64 + 10)
    out.write(bytes([byte]))
client.close()
damaged.stop()

# ---- the interpreter's end ----------------------------------------------------------------------------------------
daemon = t.Daemon(store, "4M")
AT_EXIT = """
import sys, stoup, atexit
client = stoup.open(sys.argv[1])
cursor = client.scan(sys.argv[2])
view = next(cursor)
records = [view[3], *(next(cursor)[0] for _ in range(5))]
run = iter(client.scan(sys.argv[2]))
next(run)
merged = client.merge(sys.argv[2], sys.argv[2])
next(merged)
loop = [view]
loop.append(loop)
class Late:
    def __del__(self, view=next(client.scan(sys.argv[2]))):
        print("late", int(view["size"].sum()) > 0)
late = Late()
atexit.register(lambda: print("exit", len(view), int(view["size"].sum()) > 0))
%s
"""
for end in ("", "client.close()", "sys.exit(0)", "del client, cursor, run", "import gc; gc.disable()", "stoup = None",
            "del sys.modules['stoup']", "raise SystemExit",
            "import threading; threading.Thread(target=lambda: [None for _ in client.scan(sys.argv[2])]).start()",
            "import threading; threading.Thread(target=lambda: [None for i in range(10**9) for _ in client.scan("
            "sys.argv[2])], daemon=True).start()"):
    said = p.script(AT_EXIT % end, daemon.pool, NAME)
    t.true("exit" in said and "True" in said and "False" not in said, f"{end}: {said}")
    t.until(lambda: not daemon.stat()["consumers"], f"{end}: gone")

# A view whose process is killed.
HANGS = "import sys, stoup\nview = next(stoup.open(sys.argv[1]).scan(sys.argv[2]))\nprint(1, flush=True)\nsys.stdin.read()"
process = p.subprocess.Popen([p.sys.executable, "-c", HANGS, daemon.pool, NAME], stdin=p.subprocess.PIPE,
                             stdout=p.subprocess.PIPE)
process.stdout.readline()
t.until(lambda: p.leases(daemon) == 1, "a view in another process")
process.send_signal(signal.SIGKILL)
process.communicate()
p.no_leases(daemon, "a killed process")

# Writing beyond NumPy's own refusal ends the writer, and nobody else.
WRITES = """
import sys, ctypes, stoup
view = next(stoup.open(sys.argv[1]).scan(sys.argv[2]))
ctypes.memset(view.ctypes.data, 1, 1)
"""
p.script(WRITES, daemon.pool, NAME, expect=-signal.SIGSEGV)
with stoup.open(daemon.pool) as client:
    t.true((whole(client) == private).all(), "the bytes are what they were")
daemon.stop()
