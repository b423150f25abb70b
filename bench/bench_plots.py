# SPDX-License-Identifier: Apache-2.0
"""The plots of docs/benchmarks.md: SVG by gnuplot, where it is installed."""
import os
import shutil
import subprocess

import bench_stats as stats

STYLE = """set terminal svg size {width},{height} dynamic font "sans-serif,12" background "white"
set output "{path}"
set title "{title}" noenhanced
set border 3 lc rgb "#888888"
set tics nomirror
set grid {grid} lc rgb "#dddddd"
set format x "%g"
"""
COLORS = ["#1f6feb", "#d1495b", "#2e933c", "#e29578", "#6a4c93", "#8d99ae", "#00798c"]


def quoted(text):
    return '"' + text.replace('"', "'") + '"'


def color(name):
    """stoup's own bars stand out."""
    return int(COLORS[0 if name.startswith("stoup") else 5][1:], 16)


def bars(title, unit, values):
    """Horizontal bars, the first on top: [(name, value)]."""
    lines = [STYLE.format(width=860, height=90 + 30 * len(values), path="{path}", title=title, grid="x"),
             f"set xlabel {quoted(unit)} noenhanced\nset yrange [-0.6:{len(values) - 0.4}]\nset xrange [0:*]\n",
             "set lmargin 36\nset rmargin 4\nset style fill solid 0.9 noborder\nunset key\n",
             "set ytics (" + ", ".join(f"{quoted(name)} {len(values) - 1 - i}" for i, (name, _) in enumerate(values)) +
             ") noenhanced\n",
             "$data << EOD\n" + "".join(f"{len(values) - 1 - i} {value:.6g} {color(name)}\n"
                                        for i, (name, value) in enumerate(values)) + "EOD\n",
             "plot $data using (0):($1):(0):($2):($1-0.36):($1+0.36):3 with boxxyerror lc rgb variable\n"]
    return "".join(lines)


def lines_plot(title, xlabel, ylabel, curves):
    """Lines over powers of two: {name: [(x, y)]}."""
    text = STYLE.format(width=760, height=420, path="{path}", title=title, grid="x y")
    text += f"set xlabel {quoted(xlabel)}\nset ylabel {quoted(ylabel)}\nset logscale x 2\nset logscale y 10\n"
    text += "set key outside bottom center horizontal noenhanced\n"
    plots = []
    for i, (name, points) in enumerate(curves.items()):
        text += f"$data{i} << EOD\n" + "".join(f"{x} {y:.6g}\n" for x, y in points) + "EOD\n"
        plots.append(f"$data{i} using 1:2 with linespoints lw 2 pt 7 ps 0.6 lc rgb \"{COLORS[i % len(COLORS)]}\" "
                     f"title {quoted(name)}")
    return text + "plot " + ", \\\n  ".join(plots) + "\n"


# ---- what is drawn --------------------------------------------------------------------------------

def rates(case):
    return [(name, case["records"] * 1e3 / stats.times(case, name)["median"]) for name in case["ns"]]


def of_rates(row, names=None):
    return [(f"{case['case']}: M records/s", bars(case["case"], "million records a second", rates(case)))
            for case in row["cases"] if names is None or case["case"] in names]


def of_workers(row):
    curves = {"memory": {}, "cpu": {}}
    for item in row["values"]:
        name, v = item["case"].rpartition(", ")[0], item["values"]
        if "staggered" in name:
            continue
        total = v["pss_mib"] + v.get("daemon_pss_mib", 0) + v["page_table_mib"]
        curves["memory"].setdefault(name, []).append((int(v["workers"]), total))
        curves["cpu"].setdefault(name, []).append((int(v["workers"]), v["cpu_s"]))
    return [("memory", lines_plot("Memory of all processes and their page tables", "workers", "MiB",
                                  curves["memory"])),
            ("CPU", lines_plot("CPU time of all processes", "workers", "seconds", curves["cpu"]))]


def of_sizes(row):
    plots = []
    for item in row["values"]:
        sizes = [(name[len("bytes "):], value) for name, value in item["values"].items()
                 if name.startswith("bytes ") and name != "bytes raw"]
        if sizes:
            plots.append((item["case"], bars(item["case"], "bytes per record on disk", sizes)))
    return plots


def of_latencies(row):
    values = [(item["case"], item["p50"] / 1e3) for item in row["latencies"]]
    return [("p50", bars("Miss latency, p50", "microseconds", values))] if values else []


def of_ingest(row):
    values = [(case["case"], case["records"] * 1e3 / stats.times(case, case["reference"])["median"])
              for case in row["cases"]]
    return [("rates", bars("Ingest", "million records a second", values))] if values else []


def of_leases(row):
    values = [(name, stats.times(case, name)["median"] / case["records"])
              for case in row["cases"] for name in case["ns"]]
    return [("cost", bars("Acquire and release", "ns", values))] if values else []


DRAWN = {
    "B1": lambda row: of_rates(row, ("keys 1 M forward", "trades 1 M forward", "mbo 1 M forward")),
    "B2": of_rates, "B3": of_workers, "B4": of_leases, "B5": of_latencies, "B7": of_ingest, "B11": of_rates,
    "B12": of_sizes,
}


def draw(results, directory):
    """{row: [paths relative to the document]}; old plots go. Without gnuplot there are none."""
    gnuplot = shutil.which("gnuplot")
    plots = {}
    shutil.rmtree(directory, ignore_errors=True)
    if not gnuplot:
        print("note: gnuplot is not installed: no plots")
        return plots
    os.makedirs(directory)
    for name, make in DRAWN.items():
        row = results["rows"].get(name)
        for i, (_, script) in enumerate(make(row) if row else []):
            path = os.path.join(directory, f"{name.lower()}-{i + 1}.svg")
            subprocess.run([gnuplot], input=script.replace("{path}", path), text=True, check=True,
                           env=os.environ | {"LC_ALL": "C"})
            plots.setdefault(name, []).append(f"{os.path.basename(directory)}/{os.path.basename(path)}")
    return plots
