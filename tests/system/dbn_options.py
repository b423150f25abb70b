# SPDX-License-Identifier: Apache-2.0
"""DBN at the command line: fragments, several files in one pipe, filters, huge tables of symbols in little memory."""
import os
import subprocess
import sys

import lib_dbn as d
import lib_stoup as t

WORK = t.temp_dir()
DATES = [d.date(d.DAY1 // d.DAY + i) for i in range(3)]
count = 0


def write(name, data):
    path = os.path.join(WORK, name)
    with open(path, "wb") as out:
        out.write(data)
    return path


def ingest(*args, expect=0, stdin=None):
    """The store's series with their counts, what was told, and the most memory that the program had (KiB; a fork of
    this process would count as the program's, so a small one stands between)."""
    global count
    count += 1
    store = os.path.join(WORK, f"store{count}")
    between = ("import os, resource, subprocess, sys\n"
               "done = subprocess.run(sys.argv[1:])\n"
               "sys.stderr.write(f'\\n{resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss}')\n"
               "os._exit(done.returncode)")
    done = subprocess.run([sys.executable, "-c", between, t.STOUP, "ingest", "--store", store, *args], stdin=stdin,
                          capture_output=True, text=True)
    err, _, peak = done.stderr.rpartition("\n")
    t.equal(done.returncode, expect, f"ingest {args}: {err}")
    found = {}
    if expect == 0:
        for line in t.run([t.STOUP, "ls", store]).stdout.splitlines()[1:]:
            if "/" in line.split()[0]:
                found[line.split()[0]] = int(line.split()[2])
    return found, err + done.stdout, int(peak)


# A fragment: named by --dataset, its symbols by its mapping records; --dbn-version must fit.
mapping = d.record("symbol-mapping", 2, 7, d.DAY1 + 1)
mapping = mapping[:89] + b"ESH1".ljust(71, b"\0") + mapping[160:]
fragment = write("live.dbn.frag", mapping + b"".join(d.record("mbo", 2, 7, d.DAY1 + 2 + i) for i in range(5)))
found, told, _ = ingest("--dataset", "GLBX.MDP3", fragment)
t.equal(found, {"GLBX.MDP3/ESH1/mbo": 5, "GLBX.MDP3/ESH1/symbol-mapping": 1}, "a fragment")
t.true("records without metadata, read as DBN version 2 or 3" in told, told)
_, told, _ = ingest(fragment, expect=1)
t.true("say --dataset NAME" in told, told)
_, told, _ = ingest("--dataset", "X", "--dbn-version", "1", fragment, expect=1)
t.true("is 176 bytes long, a symbol-mapping record of DBN version 2 or 3, but --dbn-version says version 1" in told, told)
_, told, _ = ingest("--dataset", "X", "--dbn-version", "7", fragment, expect=2)
t.true("--dbn-version 7: 1, 2 or 3" in told, told)
plain = write("noname", b"".join(d.record("trades", 3, 7, d.DAY1 + 2 + i) for i in range(5)))
found, _, _ = ingest("--format", "dbn", "--dataset", "Q", plain)
t.equal(found, {"Q/7/trades": 5}, "a fragment by --format alone")

# Two files in one pipe, each by its own metadata.
one = d.file(1, 0, [("AAA", [(DATES[0], DATES[1], 1)])], [d.record("mbo", 1, 1, d.DAY1 + 1)])
two = d.file(3, 0, [("BBB", [(DATES[0], DATES[1], 1)])], [d.record("mbo", 3, 1, d.DAY1 + 2)])
with open(write("both", one + two), "rb") as pipe:
    found, told, _ = ingest("--format", "dbn", "-", stdin=pipe)
t.equal(found, {"TEST.SET/AAA/mbo": 1, "TEST.SET/BBB/mbo": 1}, "two files in one stream")
t.true("2 DBN files one after the other" in told, told)

# Filters.
symbols = [(s, [(DATES[0], DATES[2], i)]) for i, s in enumerate(["ESH1", "ESM1", "NQH1", "NQM1"])]
rows = [d.record("mbo", 3, i % 4, d.DAY1 + 1 + i * d.DAY // 50, i) for i in range(100)]
path = write("many.dbn", d.file(3, 0, symbols, rows))
found, told, _ = ingest("--symbols", "ES*,NQM?", path)
t.equal(found, {f"TEST.SET/{s}/mbo": 25 for s in ("ESH1", "ESM1", "NQM1")}, "--symbols")
t.true("25 of 100 records left out by --symbols, --from or --to" in told, told)
found, _, _ = ingest("--symbols", "ESH1", "--from", "2020-12-29", "--to", str(d.DAY1 + d.DAY * 3 // 2), path)
t.equal(found, {"TEST.SET/ESH1/mbo": len([r for i, r in enumerate(rows) if i % 4 == 0 and d.DAY <= 1 + i * d.DAY // 50
                                          < d.DAY * 3 // 2])}, "--symbols, --from and --to")

# A table of 13,492 mappings, 3 MB, and one of 120,000, 27 MB: the memory is that of what they say, 16 bytes and the
# symbol for each, whatever room the file gives them.
peaks = {}
for cnt in (13_492, 120_000):
    table = [(f"O:{i:012}C{i % 9}", [(DATES[0], DATES[1], i)]) for i in range(cnt)]
    data = d.file(3, 9, table, [d.record("definition", 3, cnt - 1, d.DAY1 + 1), d.record("definition", 3, 0, d.DAY1 + 2)])
    found, _, peaks[cnt] = ingest("--quiet", write("table.dbn", data))
    t.equal(found, {f"TEST.SET/O:{cnt - 1:012}C{(cnt - 1) % 9}/definition": 1, f"TEST.SET/O:{0:012}C0/definition": 1},
            "symbols of a huge table")
if not os.environ.get("STOUP_SANITIZED"):
    t.true(peaks[120_000] - peaks[13_492] < 12 << 10, f"{len(data)} bytes of metadata: {peaks} KiB")
print("ok")
