# SPDX-License-Identifier: Apache-2.0
"""Records as they come, from Python: scans and bars that follow what is ingested, waiting for news, replays by the clock;
and Ctrl-C in each of them."""
import os
import select
import signal
import subprocess
import sys
import threading
import time

import lib_python as p
import lib_stoup as t
import stoup

NS = 10**9
store = os.path.join(t.temp_dir(), "ticks")
BASE = t.T0 // (60 * NS) * 60 * NS


def ingest(symbol, begin, count, step=NS):
    """Trades of the seconds from `begin` on; their keys."""
    path = os.path.join(os.path.dirname(store), "in.csv")
    keys = [BASE + (begin + n) * step for n in range(count)]
    with open(path, "w", encoding="ascii") as out:
        out.writelines(f"{key},{100 + key // step % 7}.5,{1 + key // step % 5}\n" for key in keys)
    t.run([t.STOUP, "ingest", "--store", store, "--quiet", "--series", f"X/{symbol}/tick", "--columns",
           "ts:time,price:price,size:u32", path])
    return keys


A, B = "X/A/tick", "X/B/tick"
keys_a, keys_b = ingest("A", 0, 90), ingest("B", 30, 200, NS // 2)
daemon = t.Daemon(store, "8M")
client = stoup.open(daemon.pool)


def keys_of(views):
    return [int(key) for view in views for key in view["ts"]]


# ---- follow: to the end, on when there is more, in a loop of one's own and in one that waits ----------------------------
cursor = client.scan(A, follow=0)
t.equal(keys_of(cursor), keys_a, "all that is there")
t.equal(keys_of(cursor), [], "no more yet")
t.equal(client.wait(0), False, "no news")
more = ingest("A", 90, 40)
t.true(client.wait(120), "news")
t.equal(keys_of(cursor), more, "what was added, once")
t.equal(keys_of(cursor), [], "and no more")
keys_a += more
t.true(keys_of(client.scan(A)) == keys_a, "other scans of this client have it too")
t.equal(client.refresh(), False, "so that there is no news")

waiting = client.scan(A, last=5, follow=True)
bars = client.bars(A, "1m", follow=120)
t.equal(next(bars)["ts_open"].tolist(), [BASE, BASE + 60 * NS], "complete bars")
added = []
thread = threading.Thread(target=lambda: (time.sleep(0.5), added.extend(ingest("A", 130, 60))))
thread.start()
found = []
for view in waiting:
    found += keys_of([view])
    if len(found) >= 65:
        break
thread.join()
keys_a += added
t.equal(found, keys_a[130 - 5:], "the last five, then what came in while it waited")
t.equal(next(bars)["ts_open"].tolist(), [BASE + 120 * NS], "a bar that became complete")
waiting.close()
bars.close()
p.raises(ValueError, lambda: next(waiting), "closed")
del view
cursor.close()
begun = time.monotonic()
late = client.scan(A, keys_a[-1] + 1, follow=0.3)
t.equal((keys_of(late), client.wait(0.2)), ([], False), "nothing within the time")
t.true(time.monotonic() - begun >= 0.5, "it waited as long as was said")
late.close()

# ---- replay -------------------------------------------------------------------------------------------------------------
want = [(i, int(key)) for i, run in client.merge(A, B) for key in run["ts"]]
with client.replay(A, B, speed=float("inf")) as replay:
    t.equal([(i, int(key)) for i, run in replay for key in run["ts"]], want, "as fast as can be: the merge")
    t.true(replay.ended and replay.poll(5) is None, "it has ended")
    p.raises(ValueError, replay.pause, "closed")
begun = time.monotonic_ns()
replay, found, speed = client.replay(A, B, speed=200.0, max_gap=50, begin=begun), [], 200
for i, run in replay:
    for key in run["ts"]:
        found.append((i, int(key)))
        t.true((time.monotonic_ns() - begun) * speed >= int(key) - BASE, f"record {len(found)} is not early")
stats = replay.stats()
t.equal(found, want, "paced: the same")
t.equal((stats["record_cnt"], stats["late_cnt"], stats["skipped_ns"]), (len(want), len(want), 0), "counted")
t.true(0 <= stats["late_p50_ns"] <= stats["late_p99_ns"] and stats["late_max_ns"] > 0, f"lateness {stats}")
replay = client.replay(A, start=BASE + 10 * NS, limit=20, history=BASE + 15 * NS, paused=True, speed=0.001)
t.equal((replay.poll(0.1), replay.stats()["paused"]), (None, 1), "paused")
replay.resume()
i, run = replay.poll(120)
t.true(set(keys_a[10:15]) <= set(run["ts"].tolist()) <= set(keys_a[10:16]), "what lies before the begin comes at once")
seen = keys_of([run])
replay.pause()
while (one := replay.poll()) is not None:  # the first behind it may have been due
    seen += keys_of([one[1]])
t.equal((replay.poll(), replay.stats()["paused"]), (None, 1), "paused again")
t.equal(select.select([replay], [], [], 0)[0], [], "nothing to be read")
replay.speed = 1000.0
replay.resume()
t.equal(select.select([replay], [], [], 120)[0], [replay], "a record is due")
while not replay.ended:
    one = replay.poll(1)
    seen += keys_of([one[1]]) if one else []
t.equal(seen, keys_a[10:30], "all of them, once")
p.raises(ValueError, lambda: client.replay(A, speed=0), "speed")
p.raises(ValueError, lambda: client.replay(A, speed=1e12).close())
p.raises(ValueError, client.replay, "nothing to replay")
replay = client.replay(A, speed=float("inf"))
del replay
del run, one
t.equal((client.stats()["lease_cnt"], stoup._lib.stoup_use_cnt(client._handle().it)), (0, 0), "nothing is left")
# A replay that is closed with its client.
replay = client.replay(A)
next(replay)
client.close()
p.raises(ValueError, lambda: next(replay), "closed")
del replay
t.until(lambda: not daemon.stat()["consumers"], "a closed client is gone")

# ---- Ctrl-C -----------------------------------------------------------------------------------------------------------------
VICTIM = """
import sys, time
import stoup
pool, name, kind = sys.argv[1:]
client = stoup.open(pool)
if kind == "wait":
    steps = iter(client.wait, None)
elif kind == "follow":
    steps = client.scan(name, last=1, follow=True)
elif kind == "bars":
    steps = client.bars(name, "1m", follow=True)
else:
    steps = client.replay(name, speed=0.001)
taken = next(steps) if kind != "wait" else None  # what is there; then it waits
for n in range(3):
    try:
        print("waits", flush=True)
        next(steps)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
if kind == "replay":
    steps.speed = float("inf")
    print(sum(len(run) for _, run in steps) + len(taken[1]))
elif kind != "wait":
    steps.close()
    print(client.count(name))
else:
    print(client.count(name))
taken = None
print(client.stats()["lease_cnt"])
"""
for kind in ("wait", "follow", "bars", "replay"):
    victim = subprocess.Popen([sys.executable, "-W", "always", "-c", VICTIM, daemon.pool, A, kind], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True)
    for n in range(3):
        t.equal(victim.stdout.readline(), "waits\n", f"{kind}: it waits")
        time.sleep(0.4)
        t.equal(victim.poll(), None, f"{kind}: it goes on waiting")
        victim.send_signal(signal.SIGINT)
        t.equal(victim.stdout.readline(), "interrupted\n", f"{kind}: Ctrl-C")
    out, err = victim.stdout.read(), victim.stderr.read()
    victim.wait(60)
    t.equal((out.split(), err, victim.returncode), ([str(len(keys_a)), "0"], "", 0), f"{kind}: goes on, nothing is lost")
daemon.stop()
