# SPDX-License-Identifier: Apache-2.0
"""A real Prometheus scrapes an exporter of a real daemon with workers, and says what stat says; alerts fire. The files for Prometheus and
systemd are what promtool and systemd-analyze take."""
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request

import lib_exporter as x
import lib_stoup as t

SOURCE = os.environ["STOUP_SOURCE_DIR"]
FILES = os.path.join(SOURCE, "docs", "packaging", "prometheus")
work = t.temp_dir()

# ---- the unit ---------------------------------------------------------------------------------------------
with open(os.path.join(os.environ["STOUP_BUILD_DIR"], "packages", "stoup-exporter.service"), encoding="utf-8") as source:
    unit = source.read()
start = re.search(r'^ExecStart="[^"]+/bin/stoup" (.*)$', unit, re.M).group(1)
options = set(re.findall(r"--[a-z-]+", start))
t.true(options <= set(re.findall(r"--[a-z-]+", t.run([t.STOUP, "help", "exporter"]).stdout)), f"options of the unit: {options}")
if shutil.which("systemd-analyze"):
    path = os.path.join(work, "stoup-exporter.service")
    with open(path, "w", encoding="utf-8") as out:
        out.write(re.sub(r'^ExecStart="[^"]+"', f'ExecStart="{t.STOUP}"', unit, flags=re.M))
    done = subprocess.run(["systemd-analyze", "--man=no", "verify", path], capture_output=True, text=True)
    t.true(done.returncode == 0 and "stoup-exporter" not in done.stderr, f"systemd-analyze verify: {done.stdout} {done.stderr}")
    if "--offline" in t.run(["systemd-analyze", "--help"]).stdout:
        t.run(["systemd-analyze", "security", "--no-pager", "--offline=yes", "--threshold=20", path])
else:
    print("note: systemd-analyze is not installed: the unit is not verified")

# ---- files for Prometheus -----------------------------------------------------------------------------------
if not (shutil.which("promtool") and shutil.which("prometheus")):
    print("prometheus is not installed")
    raise SystemExit(t.SKIP)
for argv in (["check", "rules", "stoup.rules.yml"], ["test", "rules", "stoup.rules.test.yml"], ["check", "config", "prometheus.yml"]):
    done = subprocess.run(["promtool", *argv], cwd=FILES, capture_output=True, text=True)
    t.true(done.returncode == 0 and "SUCCESS" in done.stdout, f"promtool {argv}: {done.stdout} {done.stderr}")
with open(os.path.join(FILES, "stoup.rules.yml"), encoding="utf-8") as source:
    rules = source.read()
with open(os.path.join(FILES, "stoup.rules.test.yml"), encoding="utf-8") as source:
    tested = source.read()
for alert in re.findall(r"- alert: (\w+)", rules):
    t.true(re.search(rf"alertname: {alert}\n +eval_time: \w+\n +exp_alerts:\n +- exp_labels", tested), f"{alert} is seen to fire")

store, _ = t.make_store(26 * 1170 * 2, {"AAA": 11, "BBB": 12})  # full blocks of one series: a span is its block
daemon = t.Daemon(store, "16M")
once = t.run([t.STOUP, "exporter", "--once", daemon.pool]).stdout
named = x.Metrics(once)
for metric in set(re.findall(r"\bstoup_\w+", re.sub(r"#.*", "", rules))):
    t.true(metric in named.families, f"the rules use {metric}, which is none")
done = subprocess.run(["promtool", "check", "metrics"], input=once, capture_output=True, text=True)
t.equal((done.returncode, done.stderr), (0, ""), "promtool check metrics")
if not x.built_with_http():
    print("built without libmicrohttpd")
    raise SystemExit(t.SKIP)

# ---- a Prometheus -------------------------------------------------------------------------------------------
absent = daemon.pool + ".no"
odd = '/tmp/"quoted\\ and\nbroken\udcff/'
exporter = x.Exporter(daemon.pool, absent, odd)
# Alerts at once: what they wait for is what promtool tests.
with open(os.path.join(work, "stoup.rules.yml"), "w", encoding="utf-8") as out:
    out.write(re.sub(r"\n +for: \S+", "", rules))
with open(os.path.join(work, "prometheus.yml"), "w", encoding="utf-8") as out:
    with open(os.path.join(FILES, "prometheus.yml"), encoding="utf-8") as source:
        out.write(source.read().replace("127.0.0.1:9753", f"127.0.0.1:{exporter.port}").replace("15s", "2s"))
with socket.socket() as probe:
    probe.bind(("127.0.0.1", 0))
    port = probe.getsockname()[1]
log = open(os.path.join(work, "log"), "w+")
prometheus = subprocess.Popen(["prometheus", f"--config.file={work}/prometheus.yml", f"--storage.tsdb.path={work}/data",
                               f"--web.listen-address=127.0.0.1:{port}"], stdout=log, stderr=log)


class Stopped:
    def kill(self):
        prometheus.kill()
        prometheus.wait()


t._daemons.append(Stopped())


def api(path, **arguments):
    url = f"http://127.0.0.1:{port}/api/v1/{path}?{urllib.parse.urlencode(arguments)}"
    try:
        with urllib.request.urlopen(url, timeout=60) as response:
            return json.load(response)["data"]
    except urllib.error.URLError:
        t.true(prometheus.poll() is None, "prometheus runs")
        return None


def values(query):
    """{labels without names of jobs: value}, of a scrape that began after this call; again where the last one was too slow."""
    begin = time.time()

    def fresh():
        found = api("query", query='timestamp(up{job="stoup"} == 1)')
        if not (found and found["result"] and float(found["result"][0]["value"][1]) > begin):
            return None
        return api("query", query=query)["result"]
    return {frozenset((k, v) for k, v in one["metric"].items() if k not in ("__name__", "job", "instance")): float(one["value"][1])
            for one in t.until(fresh, "a scrape")}


def value(query):
    (found,) = values(query).values()
    return found


t.until(lambda: api("targets"), "prometheus answers")
workers = [t.Worker(daemon.pool, t.name_of(s), "--hold", i % 4, "--passes", 2, "--wait") for i, s in enumerate(("AAA", "BBB") * 4)]
own = {worker.pid: worker.wait_scanned()[-1] for worker in workers}
t.until(lambda: daemon.counter("leases") == 12, "the leases")
stat = daemon.settled()
pool = f'{{pool="{daemon.pool}"}}'
for metric, name in (("stoup_hits_total", "hits"), ("stoup_misses_total", "misses"), ("stoup_records_total", "records"),
                     ("stoup_leases", "leases"), ("stoup_leased_bytes", "leased_bytes"), ("stoup_resident_bytes", "resident_bytes"),
                     ("stoup_load_raw_bytes_total", "load_raw_bytes")):
    t.equal(value(metric + pool), stat["counters"][name], f"Prometheus' {metric} is stat's {name}")
for metric, member in (("hits_total", "hits"), ("misses_total", "misses"), ("records_total", "records"), ("leases", "held"),
                       ("leased_bytes", "held_bytes")):
    found = {int(dict(labels)["pid"]): count for labels, count in values(f"stoup_consumer_{metric}{pool}").items()}
    t.equal(found, {pid: result[member] for pid, result in own.items()}, f"{member} that the workers counted themselves")
t.equal(value(f"stoup_miss_latency_seconds_count{pool}"), stat["counters"]["misses"], "each miss is in the histogram")
t.equal(values("stoup_up"), {frozenset({("pool", daemon.pool)}): 1, frozenset({("pool", absent)}): 0,
                             frozenset({("pool", '/tmp/"quoted\\ and\nbroken\ufffd/')}): 0}, "labels as they are")


def states():
    return {one["metric"]["state"] for one in api("query", query=f'stoup_pool_state{{pool="{daemon.pool}"}} == 1')["result"]}


def alerts():
    return {(one["labels"]["alertname"], one["labels"].get("pool")) for one in api("alerts")["alerts"] if one["state"] == "firing"}


t.until(lambda: ("StoupDaemonDead", absent) in alerts(), "an alert for the pool that is not there")
t.until(lambda: not {a for a in alerts() if a[1] == daemon.pool}, "none for one that is well")
daemon.process.send_signal(signal.SIGSTOP)
t.until(lambda: states() == {"suspended"} and ("StoupDaemonHangs", daemon.pool) in alerts(), "it hangs")
daemon.process.send_signal(signal.SIGCONT)
t.until(lambda: states() == {"running"} and ("StoupDaemonHangs", daemon.pool) not in alerts(), "it goes on")
daemon.kill()
t.until(lambda: states() == {"dead"} and ("StoupDaemonDead", daemon.pool) in alerts(), "it is dead")
for worker in workers:
    worker.kill()
second = t.Daemon(store, "16M", pool=daemon.pool)
t.until(lambda: states() == {"running"} and ("StoupDaemonDead", daemon.pool) not in alerts(), "its successor")
t.equal(second.stop(), 0, "the end")
t.equal(exporter.stop(), "", "the exporter has nothing to complain of")
t.until(lambda: ("StoupExporterDown", None) in alerts(), "an exporter that is gone")
prometheus.terminate()
t.equal(prometheus.wait(60), 0, "Prometheus ends")
log.seek(0)
bad = [line for line in log if re.search("level=(warn|error)", line) and "SIGTERM" not in line]
t.equal(bad, [], "Prometheus' log")
