# SPDX-License-Identifier: Apache-2.0
"""stoup.hpp: each promise of it, in a program built outside of the tree by every C++ compiler of the machine."""
import os
import shutil

import lib_install as i
from lib_install import t

i.need("pkg-config", "cmake")
compilers = i.cxx_compilers()
prefix = i.Prefix()
work = t.temp_dir()

# ---- data: mbo, quotes and bars in one store, and the mbo records once more with a block destroyed ------
store, rows = i.mbo_store(20_000)
total = sum(price * size for _, _, price, size in rows)
damaged = os.path.join(work, "damaged")
shutil.copytree(store, damaged)
i.damage_middle(damaged)
quotes = os.path.join(work, "quotes.csv")
with open(quotes, "w", encoding="ascii") as out:
    for n in range(1000):
        out.write(f"{t.T0 + n},{1.1 + n * 1e-5:.9f},{1.10002 + n * 1e-5:.9f},{n},{'AB' if n % 2 else 'ABCD'}\n")
t.run([t.STOUP, "ingest", "--quiet", "--store", store, "--series", "FX/QUOTES", "--columns",
       "ts:time,bid:price,ask:price,size:u32,venue:char[4]", quotes])
bars = os.path.join(work, "bars.csv")
with open(bars, "w", encoding="ascii") as out:
    out.write("2024-01-02T00:00:00Z,1,2,1,2,10\n2024-01-02T00:01:00Z,3,5,3,4,10\n")
t.run([t.STOUP, "ingest", "--quiet", "--store", store, "--series", "FX/BARS", "--schema", "bar", "--interval", "1m",
       "--columns", "ts,open,high,low,close,volume", bars])
daemon = t.Daemon(store)

# ---- the programs ----------------------------------------------------------------------------------------
flags = prefix.flags("--cflags", "--libs")
for compiler in compilers:
    standards = ["-std=c++20"]
    if t.run([compiler, "-std=c++23", "-E", "-x", "c++", os.devnull], expect=None).returncode == 0:
        standards.append("-std=c++23")
    for standard in standards:
        program = os.path.join(work, "header")
        t.run([compiler, *i.CXX_STRICT, standard, "-O1", os.path.join(i.PROGRAMS, "header.cc"), "-o", program, *flags,
               "-ldl"])
        done = t.run([program, daemon.pool, str(len(rows)), str(total), damaged + "/"], expect=None)
        t.equal((done.returncode, done.stdout + done.stderr), (0, ""), f"{compiler} {standard}")
    program = os.path.join(work, "sum")
    t.run([compiler, *i.CXX_STRICT, "-O2", "-fno-exceptions", "-fno-rtti", os.path.join(i.PROGRAMS, "sum.cc"), "-o",
           program, *flags])
    t.equal(t.run([program, daemon.pool, t.name_of("AAA")]).stdout, f"{total}\n", f"{compiler}: sum")
    text = t.run([program, daemon.pool, "FX/QUOTES"], expect=1).stderr
    t.equal(text, "sum: 22: FX/QUOTES has schema csv, not mbo\n", f"{compiler}: error")
    text = t.run([program, damaged + "/", t.name_of("AAA")], expect=1)
    t.true(text.stderr.startswith("sum: 74: ") and not text.stdout, text.stderr)

# ---- what must not compile -------------------------------------------------------------------------------
BAD = {
    "no word about the struct": ("struct s { long ts; };", "st.find<s>(\"x\");", "STOUP_RECORD"),
    "a copied cursor": ("", "auto c = st.scan(st.find<stoup_mbo>(\"x\")); auto d = c;", "delete|copy constructor"),
    "a written record": ("", "for (auto &r : st.scan(st.find<stoup_mbo>(\"x\")).records()) r.size = 1;",
                         "read-only|const"),
    "a series that was not checked": ("", "st.scan(st.find(\"x\"));", "no match"),
    "a span of an array without a name": ("", "for (auto &r : st.array_of(st.find<stoup_mbo>(\"x\")).records()) (void)r;",
                                          "delete"),
    "a span of a lease without a name": ("", "auto c = st.scan(st.find<stoup_mbo>(\"x\"));"
                                         "for (auto &r : c.hold().records()) (void)r;", "delete"),
    "a span of a cursor without a name": ("", "for (auto &r : st.scan(st.find<stoup_mbo>(\"x\")).next()) (void)r;",
                                          "delete"),
    "the same without exceptions": ("", "auto s = st.scan(st.find<stoup_mbo>(\"x\")).try_next();", "delete"),
    "a field that is no member": ("struct s { long ts; }; STOUP_RECORD(s, ts, bid);", "", "bid"),
}
import re  # noqa: E402
for compiler in compilers:
    for what, (outside, inside, words) in BAD.items():
        path = os.path.join(work, "bad.cc")
        with open(path, "w", encoding="ascii") as out:
            out.write(f"#include <stoup.hpp>\n{outside}\nvoid f(stoup::client &st);\n"
                      f"void f(stoup::client &st) {{ {inside} }}\n")
        done = t.run([compiler, "-std=c++20", "-fsyntax-only", *prefix.flags("--cflags"), path], expect=None)
        t.true(done.returncode != 0 and re.search(words, done.stderr), f"{compiler} takes {what}: {done.stderr[:800]}")
        t.true(len(done.stderr.splitlines()) < 100, f"{compiler} says too much of {what}")
t.true(t.run([compilers[0], "-std=c++17", "-fsyntax-only", "-x", "c++", *prefix.flags("--cflags"),
              os.path.join(prefix.include, "stoup.hpp")], expect=1).stderr.find("needs C++20") >= 0, "C++17")
daemon.stop()
