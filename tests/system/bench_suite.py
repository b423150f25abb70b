# SPDX-License-Identifier: Apache-2.0
"""bench/run.sh --quick: every row has a verdict, every case its samples, and the document is made of the JSON.
No time is looked at."""
import json
import os
import re
import subprocess
import sys

import lib_stoup as t

SOURCE = os.environ["STOUP_SOURCE_DIR"]
RUN = os.path.join(SOURCE, "bench", "run.sh")
ROWS = [f"B{i}" for i in range(1, 14)]
MEASURED = ["B1", "B2", "B3", "B4", "B5", "B7", "B8", "B9", "B10", "B11", "B12", "B13"]
VERDICTS = ("met", "missed", "not measurable here")

if not os.path.exists(os.path.join(t.BIN, "stoup-bench")):
    print("the benchmarks are not built: skipped")
    sys.exit(t.SKIP)


def run(*arguments, expect=0):
    return t.run(["bash", RUN, *arguments], expect=expect)


# ---- options ---------------------------------------------------------------------------------------------
for wrong, word in ((["--quick"], "--out"), (["--rows", "B1"], "--out"), (["--nothing"], "run.sh"),
                    (["--out"], "needs a value")):
    done = run(*wrong, expect=2)
    t.true(word in done.stdout + done.stderr, f"run.sh {wrong} says what is wrong: {done.stderr}")
done = run("--bin", t.BIN, "--out", t.temp_dir(), "--rows", "B99", expect=1)
t.true("B99" in done.stderr, f"a row that is none is named: {done.stderr}")

# ---- a smoke run -----------------------------------------------------------------------------------------
out = t.temp_dir()
run("--quick", "--bin", t.BIN, "--out", out)
with open(os.path.join(out, "benchmarks.json"), encoding="utf-8") as source:
    results = json.load(source)
t.true(results["quick"], "a smoke run is marked as one")
for key in ("processor", "cores", "kernel", "system", "version_compiler", "version_zstd", "governor"):
    t.true(results["machine"].get(key), f"the machine's {key} is there")

t.equal(list(results["verdicts"]), ROWS, "rows with a verdict")
for name, verdict in results["verdicts"].items():
    t.true(verdict["verdict"] in VERDICTS, f"{name}: {verdict['verdict']}")
    if verdict["verdict"] == VERDICTS[2]:
        t.true(verdict["why"], f"{name} says why it is not measurable")
    for item in verdict["checks"]:
        t.true(item["verdict"] in VERDICTS and item["target"] is not None, f"{name}: {item}")
        t.true(item["found"] or item.get("why"), f"{name}: {item['what']} has a number or a reason")
for name in MEASURED:
    row = results["rows"][name]
    t.true(row["cases"] or row["latencies"] or row["values"], f"{name} measured something")
    t.true(results["verdicts"][name]["checks"], f"{name} has checks")
    for case in row["cases"]:
        t.true(case["reference"] in case["ns"], f"{name}, {case['case']}: the reference took part")
        for contender, samples in case["ns"].items():
            t.true(any(samples) and all(ns is None or ns > 0 for ns in samples), f"{name}: samples of {contender}")
        t.true(all(case["absent"].values()), f"{name}, {case['case']}: who is absent has a reason")

names = [case["case"] for case in results["rows"]["B1"]["cases"]]
for kind in ("keys", "trades", "mbo"):
    for way in ("forward", "backward"):
        t.true(any(name.startswith(kind) and name.endswith(way) for name in names), f"B1 has {kind} {way}: {names}")
contenders = {name for case in results["rows"]["B1"]["cases"] for name in list(case["ns"]) + list(case["absent"])}
t.true(len(contenders) >= 8, f"B1's contenders: {contenders}")
for name, cases, count in (("B8", 6, 3), ("B10", 2, 4)):
    t.equal(len(results["rows"][name]["cases"]), cases, f"cases of {name}")
    for case in results["rows"][name]["cases"]:
        t.equal(len(case["ns"]) + len(case["absent"]), count, f"{name}, {case['case']}: contenders")
lone = results["rows"]["B9"]["cases"][0]
t.equal(sorted(list(lone["ns"]) + list(lone["absent"])),
        ["jansson", "simdjson, iterate_many", "simdjson, message by message", "stoup, filter over spans", "stoup, path per message"],
        "B9: contenders")
for case in results["rows"]["B11"]["cases"]:
    t.equal(len(case["ns"]) + len(case["absent"]), 6, f"B11, {case['case']}: forms")

# ---- the document: each row, no number that is not of the JSON, plots where gnuplot is ---------------------
with open(os.path.join(out, "benchmarks.md"), encoding="utf-8") as source:
    text = source.read()
t.true("smoke run" in text, "the document says that it is a smoke run")
for name in ROWS:
    t.true(re.search(rf"^## {name}$", text, re.M), f"the document has {name}")
    t.true(f"| [{name}](#{name.lower()}) |" in text, f"the summary has {name}")
for figure in ("125,410,570", "98,872,850", "38,303,900", "34,292,380", "34,494,650", "56,980,000", "52,720,000",
               "31,060,000"):
    t.true(figure in text, f"the published {figure} is shown")
for path in re.findall(r"!\[\w+\]\((\S+)\)", text):
    with open(os.path.join(out, path), encoding="utf-8") as plot:
        t.true("<svg" in plot.read(4096), f"{path} is a plot")
again = os.path.join(t.temp_dir(), "benchmarks.md")
with open(os.path.join(SOURCE, "bench", "reasons.txt"), encoding="utf-8") as source:
    t.true(source.read().startswith("#"), "reasons.txt says what it is")
suite = os.path.join(SOURCE, "bench", "suite.py")
subprocess.run([sys.executable, "-B", suite, "--document", os.path.join(out, "benchmarks.json"), "--doc", again],
               check=True, capture_output=True)
with open(again, encoding="utf-8") as source:
    t.true(source.read() == text, f"the document made anew of the same JSON is the same: {again}")

# ---- the document of the project is the one that its JSON makes (plots are there where gnuplot was) --------
kept = os.path.join(SOURCE, "bench", "results", "benchmarks.json")
if os.path.exists(kept):
    subprocess.run([sys.executable, "-B", suite, "--document", kept, "--doc", again], check=True, capture_output=True)
    texts = []
    for path in (again, os.path.join(SOURCE, "docs", "benchmarks.md")):
        with open(path, encoding="utf-8") as source:
            texts.append([line for line in source if line.strip() and not line.startswith("![")])
    t.true(texts[0] == texts[1], "docs/benchmarks.md is not what bench/results/benchmarks.json and bench/reasons.txt "
                                 "make: run bench/run.sh --document")
    with open(kept, encoding="utf-8") as source:
        t.true(not json.load(source)["quick"], "docs/benchmarks.md is of a full run")

# ---- a miss without a reason is shown as a defect, one with a reason shows it -------------------------------
sys.path.insert(0, os.path.join(SOURCE, "bench"))
import bench_rows  # noqa: E402
import bench_stats  # noqa: E402

slow = {"case": "keys", "reference": "private array", "absent": {}, "passes": {}, "records": 1, "bytes": 8,
        "ns": {"private array": [100] * 41, "stoup pool": [200] * 41}}
fast = slow | {"ns": {"private array": [100] * 41, "stoup pool": [101] * 41}}
wild = slow | {"ns": {"private array": [100] * 41, "stoup pool": [50] * 20 + [110] * 21}}
gone = slow | {"ns": {"private array": [100] * 41}, "absent": {"stoup pool": "not built"}}
for case, reasons, verdict, why in ((slow, {}, "missed", ""), (slow, {"B1": "4 KiB pages"}, "missed", "4 KiB pages"),
                                    (fast, {}, "met", ""),
                                    (wild, {}, "not measurable here",
                                     "the interval is too wide to tell: others used the machine"),
                                    (gone, {}, "not measurable here", "not built")):
    found = bench_rows.verdict_of("B1", {"cases": [case]}, reasons)
    t.equal((found["verdict"], found["why"]), (verdict, why), "verdict and reason of B1")
reasons_path = os.path.join(t.temp_dir(), "reasons.txt")
with open(reasons_path, "w", encoding="utf-8") as reasons_file:
    reasons_file.write("# comment\nB1: one\n two\nB5:\n")
t.equal(bench_rows.reasons_read(reasons_path), {"B1": "one two", "B5": ""}, "reasons by row")

# ---- the interval of a median: 41 values of a known order, by the binomial law -----------------------------
t.equal(bench_stats.of(list(range(1, 42))), {"median": 21, "low": 14, "high": 28, "count": 41}, "41 values")
t.equal(bench_stats.of([3, 1, 2]), {"median": 2, "low": 1, "high": 3, "count": 3}, "too few: all of them")
t.equal(bench_stats.ratios(slow, "stoup pool", "private array")["median"], 0.5, "half as fast")
