# SPDX-License-Identifier: Apache-2.0
"""Each line of each shell block in README.md and docs: it runs here, or a test is named that runs it, or why nothing can.

The commands of stoup itself are run by shown_commands.py, for the documents that it lists; a document that is not listed there has
its lines run here. What is not run is checked for syntax, and its options by shown_names.py.
"""
import glob
import os
import re
import subprocess
import sys

import lib_stoup as t

SOURCE = os.environ["STOUP_SOURCE_DIR"]
ELSEWHERE = (  # what it is, and who runs it
    (r"\./(demo|test)\.sh", "install packages and build everything: by hand, on a new machine"),
    (r"sudo apt-get|groupadd|usermod", "changes the machine"),
    (r"systemctl", "wants a live systemd; service.py checks the units"),
    (r"cmake -S . -B build |cmake --install|export \w+=.*stoup|export PATH=", "install/: installed.sh, readme_program.py"),
    (r"cmake -S . -B build-deb|\(cd build-deb", "install/packages.py"),
    (r"cc |c\+\+ |\./worker ", "install/readme_program.py"),
    (r"bindgen|cc -E|mkdir empty", "abi.py"),
    (r"python3 -c 'import stoup", "install/python_readme.py imports the installed module"),
    (r"stoup exporter .*&$", "exporter_http.py"),
)
HERE = r"(until stoup|stoupd|kill %1|taskset)\b"


def blocks():
    for path in [os.path.join(SOURCE, "README.md"), *sorted(glob.glob(os.path.join(SOURCE, "docs", "**", "*.md"), recursive=True))]:
        with open(path, encoding="utf-8") as text:
            for _, block in re.findall(r"^( *)```(?:sh|bash|console)\n(.*?)^\1```", text.read(), re.M | re.S):
                yield os.path.relpath(path, SOURCE), block


with open(os.path.join(SOURCE, "tests", "system", "shown_commands.py"), encoding="utf-8") as text:
    listed = re.search(r"^DOCUMENTS = \((.*)\)$", text.read(), re.M).group(1)

failures, here, total = [], {}, 0
for document, block in blocks():
    done = subprocess.run(["bash", "-n"], input=block, capture_output=True, text=True)
    if done.returncode != 0:
        failures.append(f"{document}: {done.stderr}")
    for line in block.replace("\\\n", " ").splitlines():
        line = re.sub(r"\s+#\s.*$", "", line.strip())
        if not line or line.startswith("#"):
            continue
        total += 1
        if re.match(HERE, line):
            here.setdefault(document, []).append(line)
        elif re.match(r"(sed .*\| )?stoup ", line) and f'"{document}"' in listed:
            continue
        elif not any(re.match(pattern, line) for pattern, _ in ELSEWHERE):
            failures.append(f"{document}: `{line}`: nothing runs it, and tests/system/shown_shell.py has no reason why")
t.true(not failures, "\n".join(failures))
t.true(total > 60, f"lines: {total}")

# The daemons of README.md and operating.md, as they are typed: started, waited for, started again, ended.
store, totals = t.make_store(20_000)
directory = os.path.dirname(store)
os.symlink(store, os.path.join(directory, "ticks"))
env = dict(os.environ, PATH=os.path.dirname(t.STOUP) + ":" + os.environ["PATH"])
cpus = sorted(os.sched_getaffinity(0))
t.true(len(here["README.md"]) == 3, f"what README.md starts: {here}")
for document, lines in here.items():
    pool = f"shown.{os.getpid()}"
    wait = f"for i in $(seq 2000); do stoup stat {pool} 2>/dev/null | grep -q running && break; sleep 0.05; done\n"
    script = "set -m; trap 'kill $(jobs -p) 2>/dev/null' EXIT\n"
    if len(cpus) < 2 and any(line.startswith("taskset") for line in lines):
        print(f"{document}: one processor, none to be given away", flush=True)
        continue
    for line in lines:
        line = re.sub(r"\bprices\b", pool, line)
        if line.startswith("taskset"):
            line = line.replace("-c 4-6", f"-c {cpus[0]},{cpus[1]}").replace("--cpus 5,6", f"--cpus {cpus[1]}")
        script += line + "\n" + (wait if line.endswith("&") else "")
    script += f"stoup stat {pool} && stoup cat {pool} {t.name_of('AAA')} --count; status=$?; kill %% && wait %%; exit $status\n"
    done = subprocess.run(["bash", "-c", script], cwd=directory, env=env, capture_output=True, text=True, timeout=250)
    t.true(done.returncode == 0 and "running" in done.stdout and "20" in done.stdout, f"{document}:\n{script}{done.stdout}{done.stderr}")
print(f"ok: {total} lines, {sum(map(len, here.values()))} with daemons", flush=True)
sys.exit(0)
