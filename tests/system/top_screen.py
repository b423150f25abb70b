# SPDX-License-Identifier: Apache-2.0
"""stoup top on a terminal: what stands on 80x24 and 120x40, each key, resizing, kinds of terminals, and that each end leaves the
terminal as it was."""
import os
import re
import signal

import lib_stoup as t
from lib_top import Top, row_of

SYMBOLS = {"AAA": 11, "BBB": 12, "CCC": 13}
store, _ = t.make_store(90_000, SYMBOLS)
daemon = t.Daemon(store, "16M")
NAMES = [t.name_of(symbol) for symbol in SYMBOLS]
farm = [t.Worker(daemon.pool, NAMES[i], "--hold", i + 1, "--wait") for i in range(3)]
for worker in farm:
    worker.wait_scanned()
t.until(lambda: daemon.counter("leases") == 6, "all leases are seen")
stat = daemon.settled()
PIDS = [worker.pid for worker in farm]


def pids(lines):
    """Processes in the order of the table of consumers."""
    return [int(m.group(1)) for line in lines if (m := re.match(r" *(\d+) helper_worker ", line))]


# ---- 80 columns and 24 rows -----------------------------------------------------------------------
top = Top("--interval", "0.1", daemon.pool)
lines = top.until(r"^misses +▁+ evictions +▁+$(.*\n)* *\d+ helper_worker(.*\n)*q quit")
t.true(re.fullmatch(rf"{daemon.pool}: running \(pid {daemon.process.pid}\)  16\.0 MiB  up [\d.]+ (ms|s) +\d\d:\d\d:\d\d  every 0\.1 s",
                    lines[0]), lines[0])
t.true(re.fullmatch(r"store \S*store +posix, (io_uring|pread), \d+ decode threads?, \S+", lines[1]), lines[1])
hits, misses = stat["counters"]["hits"], stat["counters"]["misses"]
t.true(re.fullmatch(rf"hits -        of all {100 * hits / (hits + misses):.2f}%   hits/s 0        misses/s 0       evictions/s 0", lines[2]), lines[2])
t.true(re.fullmatch(r"decode 0 B/s          read 0 B/s         loads/s 0      decoding 0\.00 threads", lines[3]), lines[3])
t.true(re.fullmatch(r"miss( +p[\d.]+ [\d.]+ (us|ms|s)){4} +since start", lines[4]), lines[4])
used = stat["counters"]["resident_bytes"]
oldest = max(stat['consumers'], key=lambda c: c['oldest_lease_ns'])
t.true(lines[5].startswith(f"used {used / 2**20:.1f} MiB ({100 * used / 2**24:.0f}%)"), lines[5])
t.true(re.search(rf"leased {stat['counters']['leased_bytes'] / 1024:.1f} KiB +leases 6 +oldest [\d.]+ (ms|s) \({oldest['pid']}\)", lines[5]), lines[5])
t.true(re.fullmatch(r"waiting 0     starved 0       failed 0   timeouts 0     deaths 0    errors 0", lines[6]), lines[6])
t.true(re.match(r"hit ratio +decode +▁", lines[7]) and re.match(r"misses +▁+ evictions +▁+", lines[8]), "\n".join(lines))
t.equal(lines[9], "by state (51.2 KiB): . free o loading u unread r resident l/L leased d draining", "the legend")
t.equal({len(line) for line in lines[10:14]}, {80}, "the map")
t.equal({*"".join(lines[10:14])} - {*"lLru."}, set(), "its letters")
t.true("." in lines[13] and lines[10][0] == "L", f"the pool is not full, its first block is held: {lines[10:14]}")
t.equal(lines[14], "[consumers] series  map  errors  3 attached, by held", "the title")
t.equal(lines[15], "    pid command       state     leases       held   oldest     hits  misses wait", "the columns")
t.equal(pids(lines), PIDS[::-1], "who holds most is on top")
seen = {c["pid"]: c for c in stat["consumers"]}
for line in lines[16:19]:
    pid, command, state, leases, held, unit, _, _, hit, miss, wait = line.split()
    c = seen[int(pid)]
    t.equal((command, state, int(leases), int(hit), int(miss), int(wait)),
            ("helper_worker", "attached", c["leases"], c["hits"], c["misses"], 0), line)
    t.equal(f"{held} {unit}", f"{c['leased_bytes'] / 1024:.1f} KiB", line)
t.equal(lines[23], "q quit  h help  Tab view  s/S sort  / filter  f freeze  c colour  +/- interval", "the keys")

# ---- colours: letters alone would do, colours come on top --------------------------------------------
cell = top.screen.buffer[10][0]
t.equal((cell.data, cell.fg), ("L", "green"), "a held block")
t.equal(top.screen.buffer[15][4].reverse, True, "the head of the table")

# ---- keys ---------------------------------------------------------------------------------------------
ORDER = ("leases", "oldest", "misses", "waiting", "hits", "command", "pid", "held")
for name in ORDER:
    lines = top.press("s", rf"attached, by {name}$")
    key = {"held": "leased_bytes", "oldest": "oldest_lease_ns"}.get(name, name)
    if name in ("leases", "hits", "oldest"):
        t.equal(pids(lines), sorted(PIDS, key=lambda pid: (-seen[pid][key], pid)), f"by {name}")
    if name in ("command", "pid"):
        t.equal(pids(lines), sorted(PIDS), f"by {name}")
t.equal(pids(top.press("S", "by held reversed")), PIDS, "the other way round")
t.equal(pids(top.press("S", "by held$")), PIDS[::-1], "and back")
lines = top.press("c", r"^by holders \(")
t.equal({*"".join(lines[10:14])} - {*"-.1"}, set(), "one lease on a block at most")
lines = top.press("c", r"^by heat \(")
t.equal({*"".join(lines[10:14])} - {*"-.123"}, set(), "consumers that used a block")
top.press("c", r"^by state")
lines = top.press("\t", r"\[series\]")
first, sums = row_of(lines, "resident     leased leases"), 0
for name, held in zip(NAMES[::-1], (3, 2, 1)):
    first += 1
    row = lines[first].split()
    t.equal((row[0], row[3:7]), (name, [f"{held * 65520 / 1024:.1f}", "KiB", str(held), "1"]), lines[first])
for line in lines[first - 2:]:  # the ends of series share blocks: a row of their own
    if found := re.search(r"  ([\d.]+) ([KM])iB +[\d.]+ K?i?B ", line):
        sums += float(found[1]) * (2**20 if found[2] == "M" else 2**10)
t.true(abs(sums - used) < 0.16 * 2**20, f"resident bytes by series add up to {used}: {sums}")
lines = top.press("s", "by resident")
lines = top.press("\t", r"\[map\]")
t.true(all(len(line) == 80 for line in lines[11:22]), "a map over the rest of the screen")
top.press("\t", r"no errors")
top.press("\t", r"\[consumers\]")
top.press("\x1b[Z", r"\[errors\]")
top.press("\t", r"\[consumers\]")
for key in "h?":
    top.press(key, "^stoup top: help")
    top.press("x", r"\[consumers\]")
for keys, shown in (("+", "0.2"), ("+", "0.5"), ("+", "1"), ("-", "0.5"), ("-", "0.2"), ("-", "0.1")):
    top.press(keys, rf"every {shown} s$")
top.press("-")
top.press("=", r"every 0\.2 s$")
top.press("-", r"every 0\.1 s$")

# ---- the filter -----------------------------------------------------------------------------------------
top.press("/BBBx", r"^/BBBx_")
top.press("\x7f", r"^/BBB_ ")
lines = top.press("\r", r"only /BBB$")
t.equal(pids(lines), [PIDS[1]], "who holds BBB")
lines = top.press("\t", r"\[series\].*only /BBB")
t.true(NAMES[1] in "\n".join(lines) and NAMES[0] not in "\n".join(lines), "the series alone")
top.press("/\x15nobody\r", "none that /nobody lets through")
top.press("/\x15\r", NAMES[0])
top.press("/nobody", "^/nobody_")
top.press("\x1b", "^q quit")
t.true(NAMES[0] in top.text and "only" not in top.text, "left as it was")
top.press("\x1b[Z", r"\[consumers\]")

# ---- freeze ---------------------------------------------------------------------------------------------
top.press("f", "FROZEN")
extra = t.Worker(daemon.pool, NAMES[0], "--hold", 9, "--wait")
extra.wait_scanned()
t.until(lambda: daemon.counter("leases") == 15, "one more")
for _ in range(10):
    top.read(0.05)
t.equal(pids(top.lines), PIDS[::-1], "frozen")
lines = top.press(" ", r"leases 15 ")
t.equal(pids(lines), [extra.pid, *PIDS[::-1]], "it goes on")
t.true("FROZEN" not in lines[0] and "last" in lines[4] or "since" in lines[4], lines[4])
extra.kill()
top.until(r"leases 6 (.*\n)*.*3 attached")

# ---- sizes ------------------------------------------------------------------------------------------------
top.resize(120, 40)
lines = top.until(r"held longest by")
t.equal(len(lines[16]), 120, "as wide as the screen")
t.true(re.search(r"^ +pid command .* records timeouts$", "\n".join(lines), re.M), "more columns:\n" + "\n".join(lines))
t.true("longest ever" in lines[4] and "read ahead/s" in lines[3], lines[3])
t.true(all(re.match(rf"{name} ", lines[9 + i]) for i, name in enumerate(("hits", "leased"))), "more lines of the past")
t.true(min(row_of(lines, name) for name in NAMES) > row_of(lines, f"{PIDS[0]} helper_worker"), "series below the consumers")
top.resize(59, 24)
t.true("59 and 24" in " ".join(top.until("needs 60 columns")), "it says what it wants")
top.resize(10, 3)
top.until("stoup top")
top.resize(1, 1)
top.read(0.2)
top.resize(60, 18)
lines = top.until(r"\[consumers\]")
t.equal(pids(lines)[0], PIDS[2], "small, but there")
top.resize(80, 24)
top.until("draining")
top.quit("q")

# ---- more rows than there is room for --------------------------------------------------------------------------
crowd = [t.Worker(daemon.pool, NAMES[0], "--wait") for _ in range(9)]
for worker in crowd:
    worker.wait_scanned()
every = sorted(PIDS + [worker.pid for worker in crowd])
top = Top("--interval", "0.1", daemon.pool)
top.until("12 attached")
lines = top.press("sssssss", "by pid$")
page = len(pids(lines))
t.equal(pids(lines), every[:page], "the first page")
for keys, first in (("\x1bOB", 1), ("\x1bOB", 2), ("\x1bOA", 1), ("\x1bOF", 12 - page), ("\x1bOH", 0), ("\x1b[6~", min(page - 1, 12 - page)),
                    ("\x1b[6~", 12 - page), ("\x1b[5~", max(12 - 2 * page + 1, 0))):
    top.press(keys)
    t.until(lambda f=first: pids(top.lines) == every[f:f + page], f"scrolled to {first} by {keys!r}:\n{top.text}")
top.quit("q after scrolling")
for worker in crowd:
    worker.kill()
t.until(lambda: daemon.counter("consumers") == 3, "they are gone")

# ---- kinds of terminals ----------------------------------------------------------------------------------------
top = Top("--interval", "0.1", daemon.pool, term="vt100", locale="C")
top.until(r"^misses +_+ evictions +_+$")
t.true(all(ord(char) < 128 for char in top.text), "ASCII alone")
t.equal({char.fg for line in top.screen.buffer.values() for char in line.values()}, {"default"}, "no colours on it")
top.quit("vt100")
for options, env, colours in ((["--no-colour"], {}, False), (["--no-color"], {}, False), ([], {"NO_COLOR": "1"}, False),
                              (["--colour"], {"NO_COLOR": "1"}, True), ([], {}, True)):
    top = Top(*options, daemon.pool, env=env)
    top.until("^q quit")
    found = {char.fg for line in top.screen.buffer.values() for char in line.values()} != {"default"}
    t.equal(found, colours, f"colours with {options} {env}")
    top.quit(f"{options}")
for term, named in (("dumb", "TERM=dumb"), ("no-such-terminal", "TERM=no-such-terminal"), ("", "TERM is not set")):
    top = Top(daemon.pool, term=term, locale="C")
    top.end(term, code=1)
    t.true(named in " ".join(top.lines) and "--once" in "".join(top.lines), top.text)
done = t.run([t.STOUP, "top", daemon.pool], expect=1)
t.true("--once" in done.stderr and done.stdout == "", f"no terminal: {done}")

# ---- every end leaves the terminal as it was ---------------------------------------------------------------------
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
    top = Top("--interval", "30", daemon.pool)
    top.until("^q quit")
    top.signal(number)
    top.end(f"signal {number}", number=number)
top = Top(daemon.pool)
top.until("^q quit")
top.press("\x03")
top.end("Ctrl-C", number=signal.SIGINT)
top = Top("--interval", "0.05", "--count", "3", daemon.pool)
top.end("--count", code=0)
top = Top(f"{daemon.pool}.no")
top.end("no pool", code=1)
t.true("there is no pool" in " ".join(top.lines) and daemon.pool in "".join(top.lines), f"it names those that are: {top.text}")
for worker in farm:
    worker.kill()
t.equal(daemon.stop(), 0, "the end")
# The control object becomes nonsense under it, or is cut short: a fault, from which the terminal comes back as well.
for harm, ending in (("nonsense", {"code": 1}), ("cut", {"number": signal.SIGBUS})):
    daemon = t.Daemon(store, "4M")
    top = Top("--interval", "0.1", daemon.pool)
    top.until("^q quit")
    name = os.path.join("/dev/shm", next(name for name in t.shm_names(daemon.pool) if name.endswith(".ctl")))
    with open(name, "r+b") as control:
        if harm == "cut":
            control.truncate(4096)
        else:
            control.write(bytes(8))
    top.end(harm, **ending)
    t.true(("a fault" if harm == "cut" else "stoup top: not a control object") in " ".join(top.lines), f"{harm}: {top.text}")
    daemon.kill()
