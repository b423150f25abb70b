# SPDX-License-Identifier: Apache-2.0
"""`stoup check` among hundreds of dead pools: one that hangs is told, all are counted, and the machine's lines are there."""
import collections
import json
import os
import shutil
import signal
import sys

import lib_stoup as t

if not t.alone():
    print("needs root, and mount namespaces, to see no pools of others: skipped")
    sys.exit(t.SKIP)
UID, DEAD, ODD = os.geteuid(), 200, 100
store, _ = t.make_store(3_000)
hung = t.Daemon(store, "4M")
dead = t.Daemon(store, "4M")
dead.kill()
for i in range(DEAD - 1):
    shutil.copy(f"/dev/shm/stoup.{UID}.{dead.pool}.ctl", f"/dev/shm/stoup.{UID}.dead{i}.ctl")
hung.process.send_signal(signal.SIGSTOP)


def check(*argv):
    """Lines by what was looked at; whether this machine has problems besides is not asked here."""
    lines = collections.defaultdict(list)
    for line in json.loads(t.run([t.STOUP, "check", "--json", *argv], expect=None).stdout)["checks"]:
        lines[line["check"]].append(line)
    return lines


def of_hung():
    return [line for line in check().get("daemon", []) if line["mend"] == f"kill -CONT {hung.process.pid}"]


(line,) = t.until(of_hung, "one that hangs is seen among the dead")
t.equal(line["level"], "warning", "it keeps nobody from starting another one")
lines = check()["stale"]
t.equal((len(lines), lines[-1]["found"]), (5, f"{DEAD - 4} more pools of which dead daemons left something"), "all are counted")
t.true(lines[-1]["mend"].startswith("for each: stoup check POOL (ls /dev/shm/stoup.*.ctl"), f"where their names are: {lines[-1]}")

usual = set(check(hung.pool)) - {"daemon", "pool", "attach"}
for i in range(ODD):
    with open(f"/dev/shm/stoup.{UID}.odd{i}.ctl", "wb") as out:
        out.write(b"nonsense")
lines = check()
t.equal(usual - set(lines), set(), "lines of the machine that are missing")
t.equal([len(lines["control"]), lines["control"][-1]["found"]],
        [5, f"{ODD - 4} more pools with an object of another release, or not made by its user"], "what is no pool")
t.equal(len(of_hung()), 1, "it is still told")
hung.process.send_signal(signal.SIGCONT)
hung.stop()
