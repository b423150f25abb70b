# SPDX-License-Identifier: Apache-2.0
"""Documents through stoup.hpp, by every C++ compiler of the machine, compared with Python's json."""
import json
import os

import lib_install as i
from lib_install import t

i.need("pkg-config", "cmake")
compilers = i.cxx_compilers()
prefix = i.Prefix()
work = t.temp_dir()
store, lines = os.path.join(work, "store") + "/", os.path.join(work, "in.jsonl")
documents = [{"e": ("trade", "quote")[n % 3 == 0], "n": n, "d": {"p": f"{61000 + n % 700}.50"}, "pad": "x" * (n % 90)}
             for n in range(9000)]
with open(lines, "w", encoding="ascii") as out:
    out.writelines(f"{1_700_000_000_000_000_000 + n} {json.dumps(one)}\n" for n, one in enumerate(documents))
for name, options in (("X/btc/bipf", []), ("X/btc/json", ["--as", "text"])):
    t.run([t.STOUP, "ingest", "--quiet", "--store", store, "--series", name, *options, lines])
daemon = t.Daemon(store)
flags = prefix.flags("--cflags", "--libs")
expected = "".join(f'{1_700_000_000_000_000_000 + n} "{one["d"]["p"]}"\n' for n, one in enumerate(documents)
                   if one["e"] == "trade" and 61100 <= 61000 + n % 700 < 61200) + "0\n"
question = "e = 'trade' and d.p >= 61100 and d.p < 61200"
for compiler in compilers:
    for options in (["-std=c++20", "-O0"], ["-std=c++20", "-O2"]):
        program = os.path.join(work, "documents")
        t.run([compiler, *i.CXX_STRICT, *options, os.path.join(i.PROGRAMS, "documents.cc"), "-o", program, *flags])
        for room in ("1", "7", "100000"):
            done = t.run([program, daemon.pool, "X/btc/bipf", question, "d.p", room], expect=None)
            t.equal((done.returncode, done.stderr), (0, ""), f"{compiler} {options}: {done.stdout[-500:]}")
            t.true(done.stdout == expected, f"{compiler} {options}, room for {room}: {done.stdout[:500]}")
        done = t.run([program, daemon.pool, "X/btc/json", question, "d.p", "16"], expect=None)
        t.equal((done.returncode, done.stdout, done.stderr), (0, "9000\n", ""), f"{compiler}: texts are no documents")
daemon.stop()
