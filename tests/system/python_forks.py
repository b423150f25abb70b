# SPDX-License-Identifier: Apache-2.0
"""fork and spawn: workers over one pool with flat memory and equal results, arrays that live on in children, pickled
clients and series, and nothing left behind.

    python_forks.py [WORKERS]        16 of each kind by default; 64 take some seconds more
"""
import os
import subprocess
import sys

import lib_python as p
import lib_stoup as t

WORKERS = int(sys.argv[1]) if len(sys.argv) > 1 else 16
POOL = 32 << 20
COUNT = 300_000
store, totals = t.make_store(COUNT, block="512K")  # 16.8 MB decoded
NAME = t.name_of("AAA")
daemon = t.Daemon(store, POOL, ["--consumers", "160"])
TOTAL = totals["AAA"]

# ---- workers ---------------------------------------------------------------------------------------------------
# The module of the workers, as a file: spawned children import it.
FARM = r'''
import concurrent.futures, multiprocessing, os, sys, time
import stoup

def private():
    """Bytes of this process that it shares with nobody but the pool's readers: Pss without what a plain interpreter
    with NumPy has."""
    with open("/proc/self/smaps_rollup") as rollup:
        return next(int(line.split()[1]) << 10 for line in rollup if line.startswith("Pss:"))

def total(series, barrier):
    records = price = size = 0
    for view in series.scan():
        records, price, size = records + len(view), price + int(view["price"].sum()), size + int(view["size"].sum())
    barrier.wait(200)  # all have the pool mapped and read
    found = private()
    barrier.wait(200)
    return records, price, size, found

def worker(target, name, barrier, queue):
    queue.put(total(stoup.open(target)[name], barrier))

def inherit(series, views, barrier, queue):
    assert all(int(view["size"].sum()) > 0 for view in views)
    queue.put(total(series, barrier))

def task(series):
    return sum(int(view["size"].sum()) for view in series.scan()), os.getpid(), id(series.client)

def nothing(barrier, queue):
    import numpy
    barrier.wait(200)
    found = private()
    barrier.wait(200)
    queue.put((0, 0, 0, found))

def crowd(context, cnt, target, arguments):
    barrier, queue = context.Barrier(cnt), context.Queue()
    processes = [context.Process(target=target, args=(*arguments, barrier, queue)) for _ in range(cnt)]
    for process in processes:
        process.start()
    found = [queue.get(timeout=200) for _ in processes]
    for process in processes:
        process.join()
        assert process.exitcode == 0, process.exitcode
    return {row[:3] for row in found}, sum(row[3] for row in found)

if __name__ == "__main__":
    kind, cnt, target, name = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]
    context = multiprocessing.get_context("fork" if kind == "inherit" else kind)
    idle = crowd(context, cnt, nothing, ())[1]
    if kind == "inherit":
        series = stoup.open(target)[name]
        views = [view for view, _ in zip(series.scan(), range(3))]
        sums, used = crowd(context, cnt, inherit, (series, views))
        with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as executor:
            rows = list(executor.map(task, [series] * 6))
    else:
        sums, used = crowd(context, cnt, worker, (target, name))
        client = stoup.open(target)
        with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as executor:
            rows = list(executor.map(task, [client[name]] * 6))
    print(repr((sums, used - idle, {row[0] for row in rows}, len({row[1:] for row in rows}))))
'''
folder = t.temp_dir()
farm = os.path.join(folder, "farm.py")
with open(farm, "w") as out:
    out.write(FARM)
for kind in ("spawn", "fork", "inherit", "forkserver"):
    workers = WORKERS if kind != "forkserver" else 4
    done = subprocess.run([sys.executable, "-W", "always", farm, kind, str(workers), daemon.pool, NAME],
                          capture_output=True, text=True, timeout=280)
    t.equal((done.returncode, done.stderr), (0, ""), f"{kind}: exit status and stderr")
    sums, more, sizes, attached = eval(done.stdout)
    t.equal(sums, {(COUNT, TOTAL.price, TOTAL.size)}, f"{kind}: results of {workers} workers")
    t.equal(sizes, {TOTAL.size}, f"{kind}: results of an executor")
    t.true(attached <= 2, f"{kind}: clients of two executor processes and six pickled series: {attached}")
    print(f"{kind}: {workers} workers have {more / 2**20:.1f} MiB more than as many with NumPy alone, the pool included")
    # One copy of the data for all, and what each has for itself; copies would be 16.8 MB each.
    t.true(more < (20 << 20) + workers * (2 << 20), f"{kind}: memory of {workers} workers: {more}")
    t.until(lambda: not daemon.stat()["consumers"], f"{kind}: nobody is attached")
t.equal(daemon.counter("loads_max"), 1, "each block decoded once, for all")
daemon.stop()
t.equal(t.shm_names(daemon.pool), [], "/dev/shm")

# By a path: the automatic daemon, started by the first comer.
done = subprocess.run([sys.executable, "-W", "always", farm, "spawn", "4", store + "/", NAME], capture_output=True,
                      text=True, timeout=280)
t.equal((done.returncode, done.stderr), (0, ""), "spawned by path: exit status and stderr")
t.equal(eval(done.stdout)[0], {(COUNT, TOTAL.price, TOTAL.size)}, "spawned by path")

# ---- arrays over a fork, in a pool that is too small for everybody -------------------------------------------------
FORKS = r'''
import os, sys, threading, traceback
import numpy as np
import stoup

pool, name = sys.argv[1:]

def in_child(work):
    """Run work in a forked child; True when it ended well."""
    pid = os.fork()
    if pid == 0:
        try:
            work()
            os._exit(0)
        except BaseException:
            traceback.print_exc()
        os._exit(1)
    return pid

def ended(pid):
    return os.waitpid(pid, 0)[1] == 0

def churn(client, times=4):
    """Have every block evicted several times over."""
    for _ in range(times):
        for view in client.scan(name):
            pass

client = stoup.open(pool)
private = client.read(name)
cursor = client.scan(name)
views = [next(cursor) for _ in range(2)]
want = np.concatenate(views)
read_fd, write_fd = os.pipe()

def child():
    os.read(read_fd, 1)  # the parent has let go, and others have scanned
    assert (np.concatenate(views) == want).all(), "the child's arrays changed"
    assert client.stats()["lease_cnt"] >= 2
    churn(client)
    assert (np.concatenate(views) == want).all(), "the child's arrays changed under its own scans"
    rest = [view.copy() for view in cursor]  # the inherited cursor goes on
    assert (np.concatenate([want, *rest]) == private).all(), "the child's cursor"
    def grandchild():
        assert (np.concatenate(views) == want).all(), "the grandchild's arrays"
        churn(client, 1)
    assert ended(in_child(grandchild))
    views.clear()
    assert client.stats()["lease_cnt"] == 0, client.stats()
    client.close()

pid = in_child(child)
views.clear()
churn(client)
os.write(write_fd, b"x")
rest = [view.copy() for view in cursor]
assert (np.concatenate([want, *rest]) == private).all(), "the parent's cursor"
assert ended(pid), "child"
assert stoup._lib.stoup_use_cnt(client._handle().it) == 0

# A client that has nothing: the child attaches when it needs to, not before.
def later():
    assert (client.read(name) == private).all()
    assert client[name].count == len(private)
series = client[name]
assert ended(in_child(later))
assert ended(in_child(lambda: [None for _ in series.scan()]))

# Forks beside threads that scan: what those threads hold stays with the child until it ends.
stop = []
def scan():
    while not stop:
        for view in client.scan(name):
            assert len(view)
threads = [threading.Thread(target=scan, daemon=True) for _ in range(2)]
for thread in threads:
    thread.start()
kept = next(client.scan(name))
first = kept.copy()
for _ in range(10):
    def beside():
        assert (kept == first).all()
        assert (client.read(name) == private).all()
    assert ended(in_child(beside))
stop.append(1)
for thread in threads:
    thread.join()

# Nobody has room for a copy: the child cannot read what it inherited, and goes on with a client of its own.
others = []
try:
    while True:
        others.append(stoup.open(pool))
except stoup.Exhausted:
    pass
assert os.waitpid(in_child(lambda: kept[0].copy()), 0)[1] == 11, "SIGSEGV"
def alone():
    try:
        client.read(name)
        raise SystemExit("a place was found")
    except stoup.Exhausted:
        pass
assert ended(in_child(alone))
others.clear()
del kept
client.close()
print("fine", flush=True)
'''
COUNT = 60_000
store, _ = t.make_store(COUNT)  # 3.4 MB decoded, blocks of 64 KiB
small = t.Daemon(store, "2M", ["--consumers", "8", "--lease-bytes", "1M"])
t.equal(p.script(FORKS, small.pool, NAME), "fine\n", "forks")
t.until(lambda: not small.stat()["consumers"], "forks: nobody is attached")
t.equal(small.settled()["counters"]["leases"], 0, "leases")

# ---- a fork without a daemon ---------------------------------------------------------------------------------------
DEAD = r'''
import os, sys, time
import numpy as np
import stoup

client = stoup.open(sys.argv[1], timeout=1000, reconnect=1000)
cursor = client.scan(sys.argv[2])
view = next(cursor)
first = view.copy()
print("held", flush=True)
sys.stdin.readline()  # the daemon is killed
begin = time.monotonic()
pid = os.fork()
if pid == 0:
    os._exit(0 if (view == first).all() else 1)
assert os.waitpid(pid, 0)[1] == 0
print("forked", time.monotonic() - begin < 100, flush=True)  # none of these times is waited for
sys.stdin.readline()  # another one is there
pid = os.fork()
if pid == 0:
    count = sum(len(one) for one in cursor)
    os._exit(0 if (view == first).all() and count + len(first) == client[sys.argv[2]].count else 1)
print(os.waitpid(pid, 0)[1], sum(len(one) for one in cursor) + len(first), flush=True)
'''
process = subprocess.Popen([sys.executable, "-W", "always", "-c", DEAD, small.pool, NAME], stdin=subprocess.PIPE,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1)
t.equal(process.stdout.readline(), "held\n", "an array")
small.kill()
process.stdin.write("\n")
t.equal(process.stdout.readline(), "forked True\n", "a fork without a daemon")
small = t.Daemon(store, "2M", pool=small.pool)
process.stdin.write("\n")
t.equal(process.stdout.readline(), f"0 {COUNT}\n", "a fork after another daemon came")
said = process.communicate()
t.equal((process.returncode, said[1]), (0, ""), "status, stderr")
t.until(lambda: not small.stat()["consumers"], "nobody is attached")
small.stop()
t.equal(t.shm_names(small.pool), [], "/dev/shm")
