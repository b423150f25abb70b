# SPDX-License-Identifier: Apache-2.0
"""The exporter says what stat says, of pools that run, hang, are dead, come back and are not there; hostile names and requests
harm nobody."""
import json
import os
import re
import signal
import socket

import lib_exporter as x
import lib_stoup as t

SOURCE = os.environ["STOUP_SOURCE_DIR"]
symbols = {"AAA": 11, "BBB": 12, "CCC": 13}
store, _ = t.make_store(60_000, symbols)
daemon = t.Daemon(store, "16M")
absent = daemon.pool + ".no"


def once(*argv):
    return x.Metrics(t.run([t.STOUP, "exporter", "--once", *argv]).stdout)


# ---- wrong usage ---------------------------------------------------------------------------------------
for argv, text in ((["exporter"], "--listen HOST:PORT is wanted"), (["exporter", "--once", "--listen", "127.0.0.1:0"], "--once"),
                   (["exporter", "--listen", "localhost"], "HOST:PORT"), (["exporter", "--listen", "127.0.0.1:99999"], "HOST:PORT"),
                   (["exporter", "--listen", "::1:80"], "HOST:PORT"), (["exporter", "--listen", "example.org:80"], "HOST:PORT"),
                   (["exporter", "--listen", "0.0.0.0:0"], "--allow-remote"), (["exporter", "--once", "--series-max", "x"], "number"),
                   (["exporter", "--once", "no name"], "no name of a pool")):
    done = t.run([t.STOUP, *argv], expect=2)
    t.true(text in done.stderr and done.stdout == "", f"{argv}: {done}")

# ---- once, to stdout: also without libmicrohttpd ---------------------------------------------------------
named = ["AAA", "BBB"]
workers = [t.Worker(daemon.pool, t.name_of(s), "--hold", 3, "--wait") for s in named]
for worker in workers:
    worker.wait_scanned()
t.until(lambda: daemon.counter("leases") == 6, "the leases")
stat = daemon.settled()
metrics = once(daemon.pool, absent, daemon.pool)
pool = {"pool": daemon.pool}
t.equal((metrics.value("stoup_up", **pool), metrics.state(daemon.pool)), (1, ["running"]), "a pool that runs")
t.equal((metrics.value("stoup_up", pool=absent), metrics.state(absent)), (0, ["absent"]), "one that is not there")
t.equal(metrics.text("stoup_hits_total", pool=absent), None, "and has no counters")


def of_counter(name, unit, kind):
    """Name and factor of a counter's metric, as docs/metrics.md tells."""
    if unit == "ns":
        return f"stoup_{name.removesuffix('_ns')}_time_seconds" + ("_total" if kind == "C" else ""), 1e9
    if unit == "bytes":
        return f"stoup_{name}" + ("" if name.endswith("_bytes") else "_bytes") + ("_total" if kind == "C" else ""), 1
    return f"stoup_{name}" + ("_total" if kind == "C" else "_times" if unit == "times" else ""), 1


with open(os.path.join(SOURCE, "shm", "counters.h"), encoding="utf-8") as source:
    table = re.findall(r'X\(\w+,\s*"(\w+)",\s*"(\w+)",\s*([CG]),\s*"([^"]+)"\)', source.read())
t.equal({name for name, *_ in table}, set(stat["counters"]), "the table of counters")
MOVING = {"wakeups", "monitors"}
for name, unit, kind, text in table:
    metric, factor = of_counter(name, unit, kind)
    t.equal(metrics.families[metric][2], text, f"{metric} is told in the table's words")
    t.equal(metrics.families[metric][0], "counter" if kind == "C" else "gauge", metric)
    if name not in MOVING:
        t.equal(round(metrics.value(metric, **pool) * factor), stat["counters"][name], f"{metric} is what stat says of {name}")
for name, h in stat["histograms"].items():
    metric = f"stoup_{name}_seconds"
    rows = sorted((float(labels["le"]), value) for labels, value in metrics.all(metric + "_bucket", **pool))
    values = [value for _, value in rows]
    t.true(values == sorted(values) and len(rows) == 30 and rows[-1][0] == float("inf"), f"{metric}: {rows}")
    t.equal((values[-1], metrics.value(metric + "_count", **pool)), (h["count"], h["count"]), metric)
    t.equal(round(metrics.value(metric + "_sum", **pool) * 1e9), h["sum"], f"the sum of {metric}")
    for quantile, key in ((0.5, "p50"), (0.99, "p99")):
        if h["count"]:
            bound = next(le for le, value in rows if value >= quantile * h["count"])
            t.true(bound * 1e9 >= h[key] * 7 / 8 or bound == float("inf"), f"{key} of {metric}: {h[key]} is within {bound}")
for c in stat["consumers"]:
    who = pool | {"consumer": c["consumer"], "pid": c["pid"], "uid": c["uid"], "command": c["command"]}
    for member, metric in (("leases", "leases"), ("leased_bytes", "leased_bytes"), ("hits", "hits_total"), ("misses", "misses_total"),
                           ("records", "records_total"), ("waiting", "waiting_requests")):
        t.equal(metrics.value("stoup_consumer_" + metric, **who), c[member], f"{metric} of {c['pid']}")
    t.true(metrics.value("stoup_consumer_oldest_lease_seconds", **who) > 0, "it holds something")
    t.equal(metrics.value("stoup_consumer_state", **who, state="attached"), 1, "its state")
t.equal(len(metrics.all("stoup_consumer_leases")), 2, "two consumers")
held = {h["series"]: (h["leases"], h["bytes"]) for h in stat["holders"]}
for name, (leases, held_bytes) in held.items():
    t.equal((metrics.value("stoup_series_leases", **pool, series=name), metrics.value("stoup_series_leased_bytes", **pool, series=name)),
            (leases, held_bytes), f"leases on {name}")
t.equal(metrics.value("stoup_series_left_out", **pool), 0, "all are named")
few = once("--series-max", "1", "--no-consumers", daemon.pool)
t.equal(sorted(labels["series"] == "other" for labels, _ in few.all("stoup_series_leases")), [False, True], "one by name")
t.equal((sum(v for _, v in few.all("stoup_series_leases")), few.value("stoup_series_left_out", **pool)), (6, 1), "the rest together")
t.equal([name for name in few.families if name.startswith("stoup_consumer_")], ["stoup_consumer_places"], "no consumers")
t.equal(metrics.value("stoup_oldest_lease_seconds", **pool) > 0, True, "the oldest lease")
t.equal(metrics.value("stoup_pool_size_bytes", **pool), stat["size"], "the pool's bytes")

# ---- docs/metrics.md has each family -----------------------------------------------------------------------
with open(os.path.join(SOURCE, "docs", "metrics.md"), encoding="utf-8") as source:
    written = re.findall(r"^\| `(stoup_\w+)` \| (\w+) \| (.+) \|$", source.read(), re.M)
found = [(name, kind, text) for name, (kind, _, text) in metrics.families.items()]
t.equal([row for row in found if row not in written], [], "metrics that docs/metrics.md does not have")
t.equal([row for row in written if row not in found], [], "and those that are none")

# ---- hostile names -------------------------------------------------------------------------------------------
odd = '/tmp/a"b\\c\nd\udcff{}/'
labels = [labels["pool"] for labels, _ in once(odd, daemon.pool).all("stoup_up")]
t.equal(labels, ['/tmp/a"b\\c\nd\ufffd{}/', daemon.pool], "a store's path is a label whatever it holds")
for worker in workers:
    worker.kill()
t.until(lambda: daemon.counter("consumers") == 0, "they are gone")
command = os.path.join(t.temp_dir(), 'q"\\\x01\udcff}')
os.symlink(t.WORKER, command)
t.WORKER, helper = command, t.WORKER
worker = t.Worker(daemon.pool, t.name_of("AAA"), "--hold", 1, "--wait")
t.WORKER = helper
worker.wait_scanned()
daemon.settled()
t.equal([labels["command"] for labels, _ in once(daemon.pool).all("stoup_consumer_leases")], ['q"\\??}'], "a command: bytes that are no text are ?")
worker.kill()

if not x.built_with_http():
    print("built without libmicrohttpd: HTTP is not tried")
    raise SystemExit(0)

# ---- HTTP ------------------------------------------------------------------------------------------------------
exporter = x.Exporter(daemon.pool, absent)
t.equal(exporter.get("/healthz")[1], "ok\n", "healthz")
t.true(exporter.get("/")[0]["Content-Type"].startswith("text/html") and "stoup" in exporter.get("/")[1], "the page")
t.until(lambda: daemon.counter("consumers") == 0, "it is gone")
new, old = exporter.metrics(), exporter.metrics(open_metrics=False)
t.equal({name.removesuffix("_total") for name in old.families}, set(new.families), "both formats have the same")
t.equal(new.families["stoup_load_raw_bytes"][:2], ["counter", "bytes"], "units")
shown = json.loads(exporter.get("/stat.json")[1])["pools"]
t.equal([(p["name"], p["state"]) for p in shown], [(daemon.pool, "running"), (absent, "absent")], "stat.json")
stat = daemon.settled()
(one,) = json.loads(exporter.get(f"/stat.json?pool={daemon.pool}")[1])["pools"]
t.equal({k: v for k, v in one["stat"]["counters"].items() if k not in MOVING},
        {k: v for k, v in stat["counters"].items() if k not in MOVING}, "stat.json is stat --json")
t.equal(sum(row[1] for row in one["extents"] if row[2] == "resident"), stat["counters"]["resident_bytes"], "extents")
t.true("there is no pool" in shown[1]["problem"] and shown[1]["stat"] is None, f"{shown[1]}")
status, headers, body = exporter.request("HEAD", "/metrics")
t.equal((status, body, int(headers["Content-Length"]) > 1000), (200, b"", True), "HEAD")
for method, path, headers, body, expected in (
        ("GET", "/nowhere", {}, None, 404), ("POST", "/metrics", {}, b"x", 405), ("DELETE", "/", {}, None, 405),
        ("GET", "/metrics", {}, b"x" * 100, 400), ("GET", "/", {"Host": "evil.example"}, None, 403),
        ("GET", "/", {"Host": "localhost:1"}, None, 200), ("GET", "/", {"X-Long": "x" * 40_000}, None, 431)):
    t.equal(exporter.request(method, path, headers, body)[0], expected, f"{method} {path} {str(headers)[:40]}")
t.equal(exporter.request("POST", "/", body=b"")[1]["Allow"], "GET, HEAD", "what is allowed")
done = t.run([t.STOUP, "exporter", "--listen", f"127.0.0.1:{exporter.port}"], expect=1)
t.true(f"127.0.0.1:{exporter.port}" in done.stderr and "choose another port" in done.stderr, done.stderr)

# Slow clients, of which some never finish a request and some never read: others are answered.
slow = []
for i in range(50):
    client = socket.create_connection((exporter.host, exporter.port))
    client.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n" + (b"\r\n" if i % 2 else b"X-Slow: "))
    slow.append(client)
for _ in range(5):
    t.equal(exporter.metrics().value("stoup_up", pool=daemon.pool), 1, "beside slow clients")
for client in slow:
    client.close()

# ---- a daemon that hangs, dies, comes back ---------------------------------------------------------------------
daemon.process.send_signal(signal.SIGSTOP)
t.until(lambda: exporter.metrics().state(daemon.pool) == ["suspended"], "it hangs")
metrics = exporter.metrics()
t.equal((metrics.value("stoup_up", **pool), metrics.value("stoup_hits_total", **pool)), (0, stat["counters"]["hits"]), "it hangs")
daemon.process.send_signal(signal.SIGCONT)
t.until(lambda: exporter.metrics().value("stoup_up", **pool) == 1, "it goes on")
daemon.kill()
metrics = exporter.metrics()
t.equal((metrics.value("stoup_up", **pool), metrics.state(daemon.pool), metrics.value("stoup_hits_total", **pool)),
        (0, ["dead"], stat["counters"]["hits"]), "it is dead, and its last word stands")
second = t.Daemon(store, "16M", pool=daemon.pool)
t.until(lambda: exporter.metrics().value("stoup_up", **pool) == 1, "its successor")
t.equal(exporter.metrics().value("stoup_hits_total", **pool), 0, "counts from 0")
t.equal(second.stop(), 0, "the end")
t.equal(exporter.metrics().state(daemon.pool), ["stopped"], "it ended in order")
t.equal(exporter.stop(), "", "nothing was complained of")

# ---- pools are found as they come and go, also by IPv6 -----------------------------------------------------------
try:
    exporter = x.Exporter(listen="[::1]:0")
except SystemExit:
    print("note: no IPv6 here")
    exporter = x.Exporter()
t.equal(exporter.metrics().text("stoup_up", **pool), None, "it is gone")
third = t.Daemon(store, "16M", pool=daemon.pool)
t.until(lambda: exporter.metrics().value("stoup_up", **pool) == 1, "it is found")
os.unlink(f"/dev/shm/stoup.{os.geteuid()}.{third.pool}.ctl")
t.equal(exporter.metrics().value("stoup_up", **pool), 1, "its name was removed, its socket is there")
third.process.send_signal(signal.SIGSTOP)
t.until(lambda: exporter.metrics().state(third.pool) == ["suspended"], "whoever has its object sees that it hangs")
t.equal(once(third.pool, absent).state(third.pool), ["unreadable"], "who would have to ask for it says so")
third.process.send_signal(signal.SIGCONT)
t.until(lambda: once(third.pool).state(third.pool) == ["running"], "and is answered again")
third.stop()
t.equal(exporter.metrics().text("stoup_up", **pool), None, "and goes")
exporter.stop()
exporter = x.Exporter("--allow-remote", absent, listen="0.0.0.0:0")
t.true("no authentication" in exporter.stop(), "others may reach it: it warns")
