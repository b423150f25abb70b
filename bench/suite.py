# SPDX-License-Identifier: Apache-2.0
"""Run the benchmarks row by row, write one JSON and the document made of it.

    suite.py --bin DIR --out DIR [--quick] [--rows B1,B2] [--doc FILE]
    suite.py --document JSON --doc FILE

Started by bench/run.sh. The second form writes the document of a JSON anew.
"""
import argparse
import datetime
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time

import bench_document
import bench_rows
import bench_sizes

HERE = os.path.dirname(os.path.abspath(__file__))
REASONS = os.path.join(HERE, "reasons.txt")
PROGRAM_ROWS = ("B1", "B2", "B3", "B4", "B5", "B7", "B8", "B9", "B10", "B11", "B13")
ORDER = ("B1", "B2", "B4", "B5", "B6", "B7", "B8", "B9", "B10", "B11", "B12", "B13", "B3")  # the long one last


# ---- the machine ----------------------------------------------------------------------------------

def first_line(path, prefix=""):
    try:
        with open(path, encoding="utf-8", errors="replace") as source:
            for line in source:
                if line.startswith(prefix):
                    return line[len(prefix):].strip(" \t:\n")
    except OSError:
        pass
    return "not known"


def machine(bin_dir):
    versions = json.loads(subprocess.run([os.path.join(bin_dir, "stoup-bench"), "--versions"], check=True,
                                         capture_output=True, text=True).stdout)
    memory = first_line("/proc/meminfo", "MemTotal:").split()[0]
    return {
        "processor": first_line("/proc/cpuinfo", "model name"),
        "cores": os.cpu_count(),
        "memory_gib": round(int(memory) / 2 ** 20, 1) if memory.isdigit() else memory,
        "kernel": platform.release(),
        "system": first_line("/etc/os-release", "PRETTY_NAME=").strip('"'),
        "governor": first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        "huge_pages": first_line("/sys/kernel/mm/transparent_hugepage/enabled"),
        "virtual": first_line("/sys/class/dmi/id/product_name"),
        "load_before": os.getloadavg()[0],
        **{f"version_{name}": text or "absent" for name, text in versions.items()},
    }


# ---- rows -----------------------------------------------------------------------------------------

def empty_row():
    return {"cases": [], "latencies": [], "values": [], "absents": [], "notes": []}


def add_line(rows, item):
    place = {"samples": "cases", "latency": "latencies", "values": "values", "absent": "absents"}
    kind, row = item.pop("kind"), rows.setdefault(item.pop("row"), empty_row())
    if kind == "note":
        row["notes"].append(item["text"])
    else:
        row[place[kind]].append(item)


def run_program(arguments, rows, log_dir):
    done = subprocess.run(arguments, capture_output=True, text=True)
    if done.returncode != 0:
        log = os.path.join(log_dir, "log")
        if os.path.exists(log):
            with open(log, encoding="utf-8", errors="replace") as source:
                sys.stderr.write(source.read()[-2000:])
        sys.exit(f"suite.py: {' '.join(arguments)}: exit status {done.returncode}\n{done.stderr[-2000:]}")
    for line in done.stdout.splitlines():
        add_line(rows, json.loads(line))


def run_codec(args, work, rows):
    """B6 is the codec's own program, where this version has it."""
    program = os.path.join(args.bin, "stoup-bench-codec")
    row = rows.setdefault("B6", empty_row())
    if not os.path.exists(program):
        row["absents"].append({"case": "codecs", "why": "not built: the field transform comes with its issue"})
        return
    rounds = ["--rounds", "3", "--encode", "1"] if args.quick else []
    for name, path in bench_sizes.codec_files(args.bin, work, args.quick):
        done = subprocess.run([program, "--json", *rounds, path], capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"suite.py: {program} {path}: {done.stderr[-2000:]}")
        bench_sizes.add_codec_rows(row, name, json.loads(done.stdout))


def run_row(name, args, rows):
    work = tempfile.mkdtemp(prefix=f"{name}.", dir=args.work)
    if name == "B6":
        run_codec(args, work, rows)
    elif name == "B12":
        rows[name] = bench_sizes.run(args.bin, work, args.quick, empty_row())
    else:
        quick = ["--quick"] if args.quick else []
        run_program([os.path.join(args.bin, "stoup-bench"), *quick, "--work", work, name], rows, work)
    shutil.rmtree(work)


def run_rows(args, names):
    rows, seconds = {}, {}
    for name in names:
        began = time.monotonic()
        run_row(name, args, rows)
        seconds[name] = round(time.monotonic() - began, 1)
        print(f"{name}: {seconds[name]} s", flush=True)
    return rows, seconds


# ---- results --------------------------------------------------------------------------------------

def number_text(value):
    """Samples are whole ns; other numbers keep six digits: what a diff of two results shows is change."""
    return float(f"{value:.6g}") if isinstance(value, float) else value


def rounded(value):
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [rounded(item) for item in value]
    return number_text(value)


def write_json(path, results):
    """Lists of samples on one line each: a file that can be read and compared."""
    text = json.dumps(results, indent=1)
    text = re.sub(r"\[\s+([-+.,\w\s]*?)\s+\]", lambda found: "[" + " ".join(found.group(1).split()) + "]", text)
    with open(path, "w", encoding="utf-8") as out:
        out.write(text + "\n")


def show(results):
    for name, verdict in results["verdicts"].items():
        counts = {kind: sum(item["verdict"] == kind for item in verdict["checks"])
                  for kind in (bench_rows.MET, bench_rows.MISSED, bench_rows.ABSENT)}
        detail = ", ".join(f"{count} {kind}" for kind, count in counts.items() if count)
        why = verdict["why"] or ("not yet profiled" if verdict["verdict"] == bench_rows.MISSED else "")
        print(f"{name:4} {verdict['verdict']:24} {detail}{': ' if why and detail else ''}{why}")


def measure(args):
    names = args.rows.split(",") if args.rows else ORDER
    unknown = [name for name in names if name not in ORDER]
    if unknown:
        sys.exit(f"suite.py: no such row: {', '.join(unknown)}; there are {', '.join(ORDER)}")
    began = time.monotonic()
    results = {"format": 1, "quick": args.quick,
               "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"),
               "machine": machine(args.bin)}
    if results["machine"]["load_before"] > bench_document.BUSY_LOAD and not args.quick:
        print(f"note: the load of this machine is {results['machine']['load_before']:.1f}: let nothing else run")
    results["rows"], results["seconds"] = run_rows(args, names)
    results["duration_s"] = round(time.monotonic() - began)
    results["rows"] = {name: results["rows"][name] for name in bench_rows.QUESTIONS if name in results["rows"]}
    results = rounded(results)  # what is judged and shown is what the file says
    results["verdicts"] = bench_rows.verdicts(results, bench_rows.reasons_read(REASONS))
    return results


def arguments():
    parser = argparse.ArgumentParser(prog="suite.py")
    parser.add_argument("--bin", help="directory of the built programs")
    parser.add_argument("--out", help="directory for benchmarks.json")
    parser.add_argument("--work", help="directory for data; removed afterwards", default=None)
    parser.add_argument("--doc", help="the document to write")
    parser.add_argument("--rows", help="only these, such as B1,B4")
    parser.add_argument("--quick", action="store_true", help="smoke run: small data, few samples")
    parser.add_argument("--document", metavar="JSON", help="measure nothing, write the document of this JSON")
    return parser.parse_args()


def main():
    args = arguments()
    if args.document:
        with open(args.document, encoding="utf-8") as source:
            results = json.load(source)
        results["verdicts"] = bench_rows.verdicts(results, bench_rows.reasons_read(REASONS))
    else:
        if not args.bin or not args.out:
            sys.exit("suite.py: --bin and --out are needed")
        os.makedirs(args.out, exist_ok=True)
        own_work = args.work is None
        args.work = args.work or tempfile.mkdtemp(prefix="stoup-bench-")
        try:
            results = measure(args)
        finally:
            if own_work:
                shutil.rmtree(args.work, ignore_errors=True)
        write_json(os.path.join(args.out, "benchmarks.json"), results)
    show(results)
    if args.doc:
        bench_document.write(results, args.doc)


main()
