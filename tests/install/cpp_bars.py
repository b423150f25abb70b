# SPDX-License-Identifier: Apache-2.0
"""Bars and views of texts by the installed headers of C, in a C++ program, by every C++ compiler of the machine."""
import os

import lib_install as i
from lib_install import t

i.need("pkg-config", "cmake")
compilers = i.cxx_compilers()
prefix = i.Prefix()
work = t.temp_dir()
rows = os.path.join(work, "ticks.csv")
with open(rows, "w", encoding="ascii") as out:
    out.write("ts,price,size\n")
    for n in range(1000):
        out.write(f"{t.T0 // 10**9 + n},{100 + n % 7}.25,{n}\n")
store = os.path.join(work, "store")
t.run([t.STOUP, "ingest", "--quiet", "--store", store, "--series", "X/A/tick", "--schema", "tick", "--time", "ts",
       "--map", "flags=-", rows])
daemon = t.Daemon(store)
minutes = {(t.T0 // 10**9 + n) // 60 for n in range(1000)}
for compiler in compilers:
    for options in (["-std=c++20", "-O0"], ["-std=c++20", "-O2"]):
        program = os.path.join(work, "bars")
        t.run([compiler, *i.CXX_STRICT, *options, os.path.join(i.PROGRAMS, "bars.cc"), "-o", program,
               *prefix.flags("--cflags", "--libs")])
        for spec, cnt in (("1m", len(minutes)), ("300t", 4)):
            t.equal(t.run([program, daemon.pool, "X/A/tick", spec]).stdout, f"{cnt} 1000 {999 * 500}\n",
                    f"{compiler} {options} {spec}")
daemon.stop()
