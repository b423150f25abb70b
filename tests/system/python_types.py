# SPDX-License-Identifier: Apache-2.0
"""The module's type hints agree with its code, and a program's types are found through them."""
import os
import shutil
import subprocess
import sys

import lib_python as p
import lib_stoup as t

if subprocess.run(["mypy", "--version"], capture_output=True).returncode if shutil.which("mypy") else True:
    print("no mypy here (Debian: apt-get install mypy): skipped")
    sys.exit(t.SKIP)

PROGRAM = """
import datetime
import pathlib
import stoup

client = stoup.open(pathlib.Path("ticks"), timeout=5)
series: stoup.Series = client["A/B/trades"]
count: int = series.count
for array in client.scan(series, "2024-01-02", datetime.date(2024, 1, 3), backward=True):
    reveal_type(stoup.to_ns(array["ts_recv"][0]))
for i, run in client.merge(series, "A/B/mbp-1", start=5):
    reveal_type(i)
with client.merge(series) as merge:
    reveal_type(merge.skip())
client.scan(5)
client.read(series, backward=True)
"""
directory = t.temp_dir()
program = os.path.join(directory, "program.py")
with open(program, "w") as out:
    out.write(PROGRAM)
env = {**os.environ, "MYPYPATH": p.MODULE}


def mypy(*arguments):
    done = subprocess.run(["mypy", "--cache-dir", os.path.join(directory, "cache"), "--no-color-output", *arguments],
                          capture_output=True, text=True, env=env, cwd=directory)
    return [line for line in done.stdout.splitlines() if ": " in line]


said = mypy("--strict", os.path.join(p.MODULE, "stoup.py"))
t.equal([line for line in said if "error:" in line and "[import" not in line], [], "the module")
said = mypy(program)
t.equal(sum('Revealed type is "builtins.int"' in line for line in said), 3, f"types: {said}")
errors = [line for line in said if "error:" in line]
t.equal(len(errors), 2, f"what a program does wrong: {errors}")
t.true("incompatible type \"int\"" in errors[0] and "backward" in errors[1], f"{errors}")
