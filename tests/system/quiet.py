# SPDX-License-Identifier: Apache-2.0
"""A scan of what is in the pool costs nothing but its loads: no system call and no page fault from the second
pass on. And what mapping the pool costs: page tables, lazily or at once."""
import json
import os
import re
import shutil
import subprocess

import lib_stoup as t

QUIET = os.path.join(t.BIN, "helper_quiet")
PASSES = 60
NAME = t.name_of("AAA")
store, totals = t.make_store(120_000, codec="none")
daemon = t.Daemon(store, "128M")


def passes(*options, prefix=()):
    done = t.run([*prefix, QUIET, daemon.pool, NAME, str(PASSES), *options])
    found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    t.equal({p["records"] for p in found}, {120_000}, "records of a pass")
    t.equal(len({p["sum"] for p in found}), 1, "the same records in each pass")
    t.equal(len(found), PASSES, "passes")
    return found


def calls_of(trace):
    """Names of the system calls of each pass: what lies between two getppid."""
    with open(trace, encoding="ascii", errors="replace") as lines:
        names = re.findall(r"^(?:\d+ +)?(\w+)\(", lines.read(), re.M)
    found, inside = [], None
    for name in names:
        if name == "getppid":
            if inside is not None:
                found.append(inside)
            inside = [] if inside is None else None
        elif inside is not None:
            inside.append(name)
    return found


if os.environ.get("STOUP_SANITIZED"):
    print("sanitizers make calls and faults of their own")
    raise SystemExit(t.SKIP)

WAYS = ([], ["backward"], ["direct"], ["direct", "backward"])
for options in WAYS:
    # The kernel may take a page back at any time, so not each pass alone counts: of the later ones, half.
    later = sorted(p["minor"] + p["major"] for p in passes(*options)[1:])
    t.equal(later[len(later) // 2], 0, f"page faults of a later pass {options}: {later}")
    t.equal(sum(p["major"] for p in passes(*options)[1:]), 0, "reads of the disk")

trace = os.path.join(t.temp_dir(), "trace")
strace = shutil.which("strace")
if strace and subprocess.run([strace, "-o", trace, "true"], capture_output=True).returncode == 0:
    for options in WAYS:
        found = passes(*options, prefix=[strace, "-f", "-o", trace])
        calls = calls_of(trace)
        t.equal(len(calls), PASSES, "passes in the trace")
        made = [name for called in calls[1:] for name in called]
        t.equal(made, [], f"system calls of later passes {options}")
else:
    print("note: strace is absent or refused: system calls are not counted")

# ---- mapping the pool -----------------------------------------------------------------------------------------
lazy, populated = passes()[0]["minor"], passes("populate")[0]["minor"]
t.true(populated < lazy, f"faults of the first pass: {populated} populated, {lazy} lazily")

tables = {}
for way in ("", "populate"):
    worker = subprocess.Popen([QUIET, daemon.pool, NAME, "2", "wait", *way.split()], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True)
    while worker.stdout.readline() != "done\n":
        pass
    with open(f"/proc/{worker.pid}/status", encoding="ascii") as status:
        kib = int(re.search(r"^VmPTE:\s+(\d+) kB$", status.read(), re.M).group(1))
    stat = t.until(lambda: [c for c in daemon.stat()["consumers"] if c["pid"] == worker.pid], "it is shown")
    t.equal(stat[0]["page_table_bytes"], kib * 1024, "page tables, as the kernel counts them")
    shown = t.run([t.STOUP, "stat", daemon.pool]).stdout
    t.true("tables KiB" in shown and re.search(rf"^ *{worker.pid} .* {kib}$", shown, re.M), shown)
    tables[way] = kib
    worker.stdin.close()
    t.equal(worker.wait(), 0, "the end of a consumer")
stat = daemon.stat()
print(f"page tables of a consumer: {tables['']} KiB lazily, {tables['populate']} KiB at once; "
      f"{stat['huge_bytes'] >> 20} of {stat['size'] >> 20} MiB in 2 MiB pages; "
      f"faults of the first pass {lazy} and {populated}")
# In pages of 4 KiB, all of the pool takes 8 bytes of tables for each; in 2 MiB pages next to nothing.
if stat["huge_bytes"] == stat["size"]:
    t.true(tables["populate"] * 1024 < stat["size"] // 4096 * 8 // 2, f"{tables} KiB of page tables")
daemon.stop()

# ---- where blocks lie: in the order of the scan that loaded them, so that the next one walks straight on --------
for options, above in (([], True), (["backward"], False)):
    daemon = t.Daemon(store, "128M")
    for found in passes(*options):
        t.equal(found["above"], found["spans"] - 1 if above else 0,
                f"of {found['spans']} spans, those above the one before {options}")
    daemon.stop()
