# SPDX-License-Identifier: Apache-2.0
"""stoup top --once agrees with stat --json; both forms say what is wrong with a daemon that is stopped, killed, ended or replaced,
and go over to its successor."""
import os
import re
import signal

import lib_stoup as t

SYMBOLS = {"AAA": 11, "BBB": 12}
store, _ = t.make_store(60_000, SYMBOLS)
NAMES = [t.name_of(symbol) for symbol in SYMBOLS]
UTF8 = dict(os.environ, LC_ALL="C.UTF-8", COLUMNS="100", LINES="40")
with open(os.path.join(store, "bad.stoup"), "wb") as out:  # an error that the daemon logs once
    out.write(bytes(8192))


def once(*argv, pool, env=UTF8, expect=0):
    return t.run([t.STOUP, "top", "--once", "--interval", "0.05", *argv, pool], env=env, expect=expect)


def found(pattern, text):
    match = re.search(pattern, text, re.M)
    t.true(match, f"{pattern} in\n{text}")
    return match.groups()


# ---- nobody is there ------------------------------------------------------------------------------
daemon = t.Daemon(store, "8M")
t.until(lambda: daemon.stat()["errors"], "the error is logged")
text = once(pool=daemon.pool).stdout
t.true("nobody is attached" in text and "nothing in the pool" in text and "no miss yet" in text, text)
t.equal(found(r"^used (.*?)  +leased (.*?)  +leases (\d+) +oldest (\S+)", text), ("0 B (0%)", "0 B", "0", "-"), "nothing")
t.equal(found(r"errors (\d+)", text), (str(daemon.counter("errors")),), "errors")
lines = text.splitlines()
at = next(i for i, line in enumerate(lines) if line.startswith("by state"))
t.true(set("".join(lines[at + 1:at + 8])) == {"."}, f"an empty pool: {text}")

# ---- a farm: the numbers of stat --json -----------------------------------------------------------------
farm = [t.Worker(daemon.pool, NAMES[i % 2], "--hold", i + 1, "--passes", 2, "--wait") for i in range(4)]
for worker in farm:
    worker.wait_scanned()
t.until(lambda: daemon.counter("leases") == 10, "all leases are seen")
stat = daemon.settled()
text = once(pool=daemon.pool).stdout
c = stat["counters"]
t.equal(found(r"leases (\d+) ", text) + found(r"blocks (\d+)$", text) + found(r"of all ([\d.]+)%", text),
        (str(c["leases"]), str(c["resident_blocks"]), f"{100 * c['hits'] / (c['hits'] + c['misses']):.2f}"), "of the whole pool")


def size(number):
    return f"{number / 2**20:.1f} MiB" if number >= 2**20 else f"{number / 2**10:.1f} KiB"


t.equal(found(r"^used (.*) \(\d+%\) +leased (.*?)  ", text), (size(c["resident_bytes"]), size(c["leased_bytes"])), "bytes")
for one in stat["consumers"]:
    row = found(rf"^ *{one['pid']} (\S+) +(\w+) +(\d+) +([\d.]+ \w+) +[\d.]+ \w+ +(\d+) +(\d+) +(\d+)", text)
    t.equal(row, (one["command"], one["state"], str(one["leases"]), size(one["leased_bytes"]), str(one["hits"]), str(one["misses"]),
                  str(one["waiting"])), f"consumer {one['pid']}")
for name in NAMES:
    rows = [h for h in stat["holders"] if h["series"] == name]
    row = found(rf"^{name} +[\d.]+ \w+ +([\d.]+ \w+) +(\d+) +(\d+)", text)
    t.equal(row, (size(sum(h["bytes"] for h in rows)), str(sum(h["leases"] for h in rows)), str(len(rows))), name)
lines = once("--count", "2", pool=daemon.pool).stdout.splitlines()
t.equal(len(lines), 80, "two screens")
t.equal(len(once(pool=daemon.pool, env=dict(os.environ, LC_ALL="C", COLUMNS="x", LINES="2")).stdout.splitlines()), 24, "sizes that are none")
text = once(pool=daemon.pool, env=dict(os.environ, LC_ALL="C")).stdout
t.true(all(ord(char) < 128 for char in text) and max(map(len, text.splitlines())) <= 80, text)

# ---- the picture in the documents has the rows that are shown now --------------------------------------------
with open(os.path.join(os.environ["STOUP_SOURCE_DIR"], "docs", "top.txt"), encoding="utf-8") as picture:
    picture = picture.read()
for name in ("README.md", "docs/operating.md"):
    with open(os.path.join(os.environ["STOUP_SOURCE_DIR"], name), encoding="utf-8") as manual:
        t.true(f"```\n{picture}```" in manual.read(), f"{name} has docs/top.txt")


def names_of(screen):
    """What stands on a screen, without numbers, units, marks and the map."""
    rows = [row for row in screen.splitlines()[2:] if not re.fullmatch(r"[lLrud.o]{80}", row)]
    end = next(i for i, row in enumerate(rows) if "pid command" in row)
    return [re.sub(r"\([^)]*\)|[\d.]+%?( [KMG]?i?B(/s)?| [mu]?s)?|[\u2581-\u2588]| -(?= |$)|, by.*", " ", row).split() for row in rows[:end + 1]]


text = once(pool=daemon.pool, env=dict(UTF8, COLUMNS="80", LINES="28")).stdout
for now, then in zip(names_of(text), names_of(picture)):
    t.equal([word for word in then if word not in now and word not in ("last", "since", "start", "attached")], [], "a row of the picture")

# ---- usage ------------------------------------------------------------------------------------------------
for argv in (["a", "b"], ["--interval", "0", "p"], ["--interval", "x", "p"], ["--count", "0", "p"], ["--count", "1x", "p"], ["--bogus", "p"]):
    done = t.run([t.STOUP, "top", *argv], expect=2)
    t.true("stoup help top" in done.stderr and done.stdout == "", f"{argv}: {done}")
done = once(pool=f"{daemon.pool}.no", expect=1)
t.true("there is no pool" in done.stderr and daemon.pool in done.stderr and done.stdout == "", f"{done}")

# ---- on a terminal, through the daemon's fates --------------------------------------------------------------
from lib_top import Top  # noqa: E402 - all above wants no terminal; without pyte the test ends here

top = Top("--interval", "0.1", daemon.pool)
top.until(r"running(.*\n)*.*4 attached")


def both_say(state, cure):
    text = once(pool=daemon.pool, env=dict(os.environ, LC_ALL="C")).stdout
    t.true(re.match(rf"{daemon.pool}: {state} ", text) and cure in text.replace("\n", " "), text)
    lines = top.until(rf"^{daemon.pool}: {state} ")
    t.true(cure in " ".join(lines[1:4]), f"{state} on a terminal:\n{top.text}")
    t.equal(sum("helper_worker" in line for line in lines), 4, f"who holds, of a {state} pool:\n{top.text}")


daemon.process.send_signal(signal.SIGSTOP)
t.until(lambda: daemon.stat()["state"] == "suspended", "it is stopped")
both_say("suspended", f"kill -CONT {daemon.process.pid}")
daemon.process.send_signal(signal.SIGCONT)
top.until("running")
farm[0].process.send_signal(signal.SIGSTOP)
top.until(rf"^ *{farm[0].pid} helper_worker suspended")
farm[0].process.send_signal(signal.SIGCONT)
daemon.kill()
both_say("dead", "start it again")
farm[3].kill()
top.until(rf"^ *{farm[3].pid} helper_worker ended")
second = t.Daemon(store, "8M", pool=daemon.pool)
top.until(rf"running \(pid {second.process.pid}\)")
top.until(rf"a new daemon \(pid {second.process.pid}\) took the place of process {daemon.process.pid}")
for worker in farm[:3]:
    worker.kill()
t.equal(second.stop(), 0, "the end")
lines = top.until(rf"^{daemon.pool}: stopped ")
t.true("start it again" in " ".join(lines), top.text)
third = t.Daemon(store, "8M", pool=daemon.pool)
top.until(rf"running \(pid {third.process.pid}\)")
top.quit("after three daemons")
third.stop()
t.true("there is no pool" in once(pool=daemon.pool, expect=1).stderr, "gone")
