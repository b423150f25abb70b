# SPDX-License-Identifier: Apache-2.0
"""A farm of 8 workers, and every tool that shows a pool: at a quiet moment all agree, exactly, with what the workers counted
themselves; and no count is lost or doubled at any moment while workers end, by themselves or killed.

VIEWS has a row for each way to look. A view takes the daemon and returns what it shows; SHOWS says which of these that must be:

    hits misses records   of all consumers so far, those that ended included
    leases bytes          held now; a block that two hold counts once in bytes
    some                  {pid: {leases, hits, misses}}
    consumers             {pid: {member: value}}, of those attached; members: hits misses records leases bytes
    holders               {(pid, series): (leases, bytes)}
"""
import json
import os
import re
import signal
import time

import lib_stoup as t

SYMBOLS = {"AAA": 11, "BBB": 12, "CCC": 13}
NAMES = [t.name_of(symbol) for symbol in SYMBOLS]
TOTALS = ("hits", "misses", "records")
GAUGES = ("leases", "bytes")


def say(*argv):
    return t.run([t.STOUP, *argv]).stdout


# ---- ways to look ------------------------------------------------------------------------------------
def rows(holders):
    return {(h["pid"], h["series"]): (h["leases"], h["bytes"]) for h in holders}


def stat_json(daemon):
    stat = daemon.stat()
    counters = stat["counters"]
    return {**{name: counters[name] for name in TOTALS}, "leases": counters["leases"], "bytes": counters["leased_bytes"],
            "consumers": {c["pid"]: {**{name: c[name] for name in (*TOTALS, "leases")}, "bytes": c["leased_bytes"]}
                          for c in stat["consumers"]},
            "holders": rows(stat["holders"])}


def stat_line(daemon):
    """`stat --watch --json`: the same on one line."""
    stat = json.loads(say("stat", "--watch=0.01", "--count", "2", "--json", daemon.pool).splitlines()[-1])
    return {name: stat["counters"][name] for name in TOTALS} | {"leases": stat["counters"]["leases"]}


def stat_table(daemon):
    found = {}
    for line in say("stat", daemon.pool).splitlines():
        row = re.fullmatch(r" *(\d+) helper_worker +attached +(\d+) +(\d+) +[\d.-]+ +0 +(\d+) +(\d+) +(\d+) +\d+", line)
        if row:
            pid, leases, size, hits, misses, records = map(int, row.groups())
            found[pid] = {"leases": leases, "bytes": size, "hits": hits, "misses": misses, "records": records}
    return {"consumers": found}


def stat_counters(daemon):
    found = dict(re.findall(r"^(\w+) +(\d+) ", say("stat", "--counters", daemon.pool), re.M))
    return {name: int(found[name]) for name in (*TOTALS, "leases")} | {"bytes": int(found["leased_bytes"])}


def holders_json(daemon):
    found = json.loads(say("holders", "--json", daemon.pool))
    return {"leases": found["leases"], "bytes": found["leased_bytes"], "holders": rows(found["holders"])}


def holders_table(daemon):
    text = say("holders", daemon.pool)
    leases, size = map(int, re.search(r"^  (\d+) leases on (\d+) bytes$", text, re.M).groups())
    found = re.findall(r"^ *(\d+) helper_worker +attached +(\d+) +(\d+) +[\d.]+ (?:ms|s) +(\S+)$", text, re.M)
    return {"leases": leases, "bytes": size, "holders": {(int(pid), series): (int(cnt), int(held)) for pid, cnt, held, series in found}}


def top(daemon):
    """As tall as it takes: its rows do not say records, and bytes are rounded."""
    text = t.run([t.STOUP, "top", "--once", daemon.pool], env=dict(os.environ, LINES="60", COLUMNS="120")).stdout
    found = re.findall(r"^ *(\d+) helper_worker +attached +(\d+) +.*? (\d+) +(\d+) +0\b", text, re.M)
    return {"leases": int(re.search(r" leases (\d+) ", text).group(1)),
            "some": {int(pid): {"leases": int(leases), "hits": int(hits), "misses": int(misses)} for pid, leases, hits, misses in found}}


def metrics(text):
    """Of the text that Prometheus reads."""
    one = {name: int(value) for name, value in re.findall(r'^stoup_(\w+)\{pool="[^"]*"\} (\d+)$', text, re.M)}
    found = {}
    for name, member in (("hits_total", "hits"), ("misses_total", "misses"), ("records_total", "records"), ("leases", "leases"),
                         ("leased_bytes", "bytes")):
        for pid, value in re.findall(rf'^stoup_consumer_{name}\{{[^}}]*pid="(\d+)"[^}}]*\}} (\d+)$', text, re.M):
            found.setdefault(int(pid), {})[member] = int(value)
    return {**{name: one[f"{name}_total"] for name in TOTALS}, "leases": one["leases"], "bytes": one["leased_bytes"], "consumers": found}


def exporter_once(daemon):
    return metrics(say("exporter", "--once", daemon.pool))


ALL = (*TOTALS, *GAUGES)
VIEWS = {  # name: (what it shows, how it is asked)
    "stat --json": ((*ALL, "consumers", "holders"), stat_json),
    "stat --watch --json": ((*TOTALS, "leases"), stat_line),
    "stat": (("consumers",), stat_table),
    "stat --counters": (ALL, stat_counters),
    "holders --json": ((*GAUGES, "holders"), holders_json),
    "holders": ((*GAUGES, "holders"), holders_table),
    "top --once": (("leases", "some"), top),
    "exporter --once": ((*ALL, "consumers"), exporter_once),
}


# ---- what the workers counted -------------------------------------------------------------------------
class Farm:
    """Workers by pid: (worker, series, what it printed last). Those that ended stay in `ended`."""

    def __init__(self):
        self.here, self.ended = {}, []

    def add(self, worker, series, result):
        t.equal(result["rc"], 0, "a worker")
        self.here[worker.pid] = (worker, series, result)

    def end(self, pid):
        worker, _, result = self.here.pop(pid)
        self.ended.append(result)
        return worker

    def own(self):
        results = [result for _, _, result in self.here.values()] + self.ended
        # All hold the first blocks of their series: what is held of one is what the greediest holds.
        most = {series: max(r["held_bytes"] for _, s, r in self.here.values() if s == series)
                for _, series, _ in self.here.values()}
        return {**{name: sum(r[name] for r in results) for name in TOTALS},
                "leases": sum(r["held"] for _, _, r in self.here.values()), "bytes": sum(most.values()),
                "some": {pid: {"leases": r["held"], "hits": r["hits"], "misses": r["misses"]} for pid, (_, _, r) in self.here.items()},
                "consumers": {pid: {**{name: r[name] for name in TOTALS}, "leases": r["held"], "bytes": r["held_bytes"]}
                              for pid, (_, _, r) in self.here.items()},
                "holders": {(pid, series): (r["held"], r["held_bytes"]) for pid, (_, series, r) in self.here.items() if r["held"]}}

    def agree(self, daemon, when):
        daemon.settled()
        own = self.own()
        for view, (shown, ask) in VIEWS.items():
            found = ask(daemon)
            t.equal(set(found), set(shown), f"{when}: what {view} shows")
            for name in shown:
                t.equal(found[name], own[name], f"{when}: {name} in {view}")


def main():
    # Full blocks of one series each (64 KiB hold 1170 records of 56 bytes): a span is its block, bytes are the same.
    store, _ = t.make_store(26 * 1170 * len(SYMBOLS), SYMBOLS)
    daemon = t.Daemon(store, "32M")
    farm = Farm()
    # Two that are gone before the farm begins: their counts stay.
    for _ in range(2):
        worker = t.Worker(daemon.pool, NAMES[0], "--hold", 2, "--passes", 2, "--wait")
        farm.add(worker, NAMES[0], worker.wait_scanned()[-1])
    farm.agree(daemon, "two workers")
    first, second = list(farm.here)
    farm.end(first).finish()
    farm.end(second).kill()
    t.until(lambda: daemon.counter("consumers") == 0, "both are gone")

    started = [(t.Worker(daemon.pool, NAMES[i % 3], "--hold", i, "--passes", 1 + i % 3, "--wait"), NAMES[i % 3]) for i in range(8)]
    for worker, series in started:
        farm.add(worker, series, worker.wait_scanned()[-1])
    farm.agree(daemon, "a farm of 8")

    # Ends at no chosen moment: at each look the sums of all consumers are what they were. The last one is stopped by a signal
    # before it is killed, so that only the kernel tells of its end.
    totals = {name: farm.own()[name] for name in TOTALS}
    for i, pid in enumerate(list(farm.here)[:6]):
        worker = farm.end(pid)
        if i == 5:
            worker.process.send_signal(signal.SIGSTOP)
        if i % 2:
            worker.process.kill()
        else:
            worker.process.stdin.close()
        end = time.monotonic() + 120
        looks = 0
        while looks < 5 or pid in stat["consumers"]:
            stat = stat_json(daemon)
            t.equal({name: stat[name] for name in TOTALS}, totals, f"sums while worker {i} ends, look {looks}")
            looks += 1
            t.true(time.monotonic() < end, f"worker {i} is seen to have ended")
        worker.process.wait()
    farm.agree(daemon, "two are left")
    for pid in list(farm.here):
        farm.end(pid).finish()
    t.until(lambda: daemon.counter("consumers") == 0, "all are gone")
    farm.agree(daemon, "nobody is left")
    t.equal(daemon.counter("deaths"), 4, "three were killed in the farm, and one before it")
    t.equal(daemon.stop(), 0, "the end")


if __name__ == "__main__":
    main()
