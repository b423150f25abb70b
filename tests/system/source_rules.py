# SPDX-License-Identifier: Apache-2.0
"""Rules about the source itself: who includes whom, what the library needs and exports, documents that
repeat the code."""
import os
import re
import subprocess
import sys

SOURCE = os.environ["STOUP_SOURCE_DIR"]
LIB = os.path.join(os.environ["STOUP_LIB_DIR"], "libstoup.so")
failures = []


def check(condition, text):
    if not condition:
        failures.append(text)


def files(folder, *endings):
    for root, _, names in os.walk(os.path.join(SOURCE, folder)):
        for name in sorted(names):
            if name.endswith(endings):
                yield os.path.join(root, name)


def read(path):
    with open(path, encoding="utf-8") as source:
        return source.read()


# ---- one direction: producer -> {codec, shm}, consumer -> shm --------------------------------------
MAY = {
    "shm": ({"shm"}, set()),
    "codec": ({"codec"}, {"lz4.h", "lz4hc.h", "zstd.h", "zstd_errors.h", "xxhash.h"}),
    "consumer": ({"consumer", "shm"}, {"microhttpd.h"}),
    "producer": ({"producer", "shm", "codec"},
                 {"liburing.h", "archive.h", "archive_entry.h", "zstd.h", "zstd_errors.h", "lz4frame.h",
                  "zlib.h", "xxhash.h"}),
}
LIBRARIES = {"lz4.h", "lz4hc.h", "lz4frame.h", "zstd.h", "zstd_errors.h", "xxhash.h", "liburing.h",
             "archive.h", "archive_entry.h", "zlib.h", "check.h", "microhttpd.h"}
for folder, (modules, libraries) in MAY.items():
    for path in files(folder, ".c", ".h"):
        for kind, name in re.findall(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', read(path), re.M):
            where = f"{os.path.relpath(path, SOURCE)} includes {name}"
            if kind == '"' and "/" in name:
                module = name.split("/")[0]
                # The dispatcher calls the tools by their prototypes.
                dispatcher = path.endswith("stoup_main.c") and name == "consumer/tools.h"
                check(module in modules or dispatcher, f"{where}: not allowed in {folder}")
            elif kind == "<":
                check(name not in LIBRARIES or name in libraries, f"{where}: not allowed in {folder}")

# ---- the library needs libc only, and exports what its headers declare ------------------------------
if not os.environ.get("STOUP_SANITIZED"):
    needed = subprocess.run(["objdump", "-p", LIB], capture_output=True, text=True, check=True).stdout
    needed = set(re.findall(r"NEEDED\s+(\S+)", needed))
    sanitizers = {name for name in needed if name.startswith(("libasan", "libubsan", "libtsan"))}
    if not sanitizers:
        check(needed <= {"libc.so.6", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"},
              f"libstoup.so needs {sorted(needed)}")
        exported = subprocess.run(["nm", "-D", "--defined-only", LIB], capture_output=True, text=True,
                                  check=True).stdout
        exported = {line.split()[-1].split("@")[0] for line in exported.splitlines()} - {"STOUP_1"}
        declared = set()
        for header in ("consumer/stoup.h", "consumer/stoup_arrow.h", "consumer/stoup_filter.h", "consumer/stoup_bars.h", "consumer/stoup_merge.h", "consumer/stoup_docs.h",
                       "shm/stoup_types.h", "shm/stoup_doc.h", "shm/stoup_text.h"):
            text = re.sub(r"/\*.*?\*/", "", read(os.path.join(SOURCE, header)), flags=re.S)
            declared |= set(re.findall(r"\b(stoup_\w+)\s*\(", text))
        check(exported == declared, f"exported and not declared: {sorted(exported - declared)}; "
                                    f"declared and not exported: {sorted(declared - exported)}")

# ---- docs/memory-model.md names each tag, and each tag stands at both of its ends -------------------
code = {}
for folder in ("shm", "producer", "consumer"):
    for path in files(folder, ".c", ".h"):
        for tag in re.findall(r"\[([A-Z]\d)\]", read(path)):
            code.setdefault(tag, []).append(os.path.relpath(path, SOURCE))
document = set(re.findall(r"^\| ([A-Z]\d) \|", read(os.path.join(SOURCE, "docs/memory-model.md")), re.M))
check(set(code) == document, f"tags in the code {sorted(code)}, in docs/memory-model.md {sorted(document)}")
for tag, places in code.items():
    check(len(places) >= 2, f"tag {tag} has one end only: {places}")

# ---- the operations behind the tags are those that tests/arm64_orders.py compares with instructions ---
orders = subprocess.run([sys.executable, "-B", os.path.join(SOURCE, "tests/arm64_orders.py"), "--table"],
                        capture_output=True, text=True)
check(orders.returncode == 0, "the table in tests/arm64_orders.py: " + orders.stdout + orders.stderr)

# ---- each hook in the code is tried in the kill matrix, and has its row in docs/crash-states.md ------
hooks = {name for folder in ("shm", "producer", "consumer") for path in files(folder, ".c", ".h")
         for name in re.findall(r'STOUP_HOOK\("([a-z.]+)"\)', read(path))}
tried = set(re.findall(r'"([a-z]+\.[a-z]+)"', read(os.path.join(SOURCE, "tests/system/lib_hooks.py"))))
rows = set(re.findall(r"^\|[^|]*\| `([a-z.]+)` \|", read(os.path.join(SOURCE, "docs/crash-states.md")), re.M))
check(len(hooks) > 30, f"hooks found in the code: {len(hooks)}")
check(hooks == tried, f"hooks in the code and in tests/system/lib_hooks.py: {sorted(hooks ^ tried)}")
check(hooks == rows, f"hooks in the code and in docs/crash-states.md: {sorted(hooks ^ rows)}")

# ---- docs/counters.md repeats shm/counters.h ---------------------------------------------------------
table = re.findall(r'X\(\w+,\s*"(\w+)",\s*"(\w+)",\s*([CG]),\s*"([^"]+)"\)',
                   read(os.path.join(SOURCE, "shm/counters.h")))
check(len(table) > 30, f"counters found in shm/counters.h: {len(table)}")
written = re.findall(r"^\| `(\w+)` \| (\w+) \| (\w+) \| (.+) \|$",
                     read(os.path.join(SOURCE, "docs/counters.md")), re.M)
expected = [(name, unit, "gauge" if kind == "G" else "counter", text) for name, unit, kind, text in table]
check(written == expected, "docs/counters.md differs from shm/counters.h: "
                           f"{sorted(set(expected) ^ set(written))[:4]}")

# ---- and shm/histogram.h ------------------------------------------------------------------------------
table = re.findall(r'X\(\w+,\s*"(\w+)",\s*"(\w+)",\s*"([^"]+)"\)', read(os.path.join(SOURCE, "shm/histogram.h")))
check(len(table) == 6, f"histograms found in shm/histogram.h: {len(table)}")
written = re.findall(r"^\| `(\w+)` \| (ns) \| ([^|]+) \|$", read(os.path.join(SOURCE, "docs/counters.md")), re.M)
check(written == table, f"docs/counters.md differs from shm/histogram.h: {sorted(set(table) ^ set(written))}")

# ---- no file or function grows beyond what one reads in one go ---------------------------------------
for folder in ("shm", "codec", "producer", "consumer", "bench", "tests"):
    for path in files(folder, ".c", ".h", ".py", ".sh"):
        length = read(path).count("\n")
        # The Python module is one file, so that it can be copied to where it is needed.
        limit = 2600 if path.endswith("consumer/python/stoup.py") else 800
        check(length <= limit, f"{os.path.relpath(path, SOURCE)} has {length} lines, at most {limit}")
        if path.endswith((".c", ".h")):
            check(read(path).startswith("/* SPDX-License-Identifier: Apache-2.0 */"),
                  f"{os.path.relpath(path, SOURCE)} has no SPDX line")

for text in failures:
    print("FAILED:", text)
sys.exit(1 if failures else 0)
