# SPDX-License-Identifier: Apache-2.0
"""Messages of variable length through stoup.hpp, by every C++ compiler of the machine."""
import os

import lib_install as i
from lib_install import t

i.need("pkg-config", "cmake")
compilers = i.cxx_compilers()
prefix = i.Prefix()
work = t.temp_dir()
store, _ = i.mbo_store(2_000)
t.run([os.path.join(t.BIN, "helper_messages"), "put", store, "lz4", "65536", "refuse", "X/btc/json", "json", "1", "0",
       "9000"])
daemon = t.Daemon(store)
flags = prefix.flags("--cflags", "--libs")
for compiler in compilers:
    for options in (["-std=c++20", "-O0"], ["-std=c++20", "-O2"]):
        program = os.path.join(work, "messages")
        t.run([compiler, *i.CXX_STRICT, *options, os.path.join(i.PROGRAMS, "messages.cc"), "-o", program, *flags])
        done = t.run([program, daemon.pool, "X/btc/json", "9000", t.name_of("AAA")], expect=None)
        t.equal((done.returncode, done.stdout + done.stderr), (0, ""), f"{compiler} {options}")
    # A copy would not know its bytes.
    path = os.path.join(work, "bad.cc")
    with open(path, "w", encoding="ascii") as out:
        out.write("#include <stoup.hpp>\nvoid f(std::span<const stoup::message> all);\n"
                  "void f(std::span<const stoup::message> all) { for (auto m : all) (void)m; }\n")
    done = t.run([compiler, "-std=c++20", "-fsyntax-only", *prefix.flags("--cflags"), path], expect=None)
    t.true(done.returncode != 0 and "delete" in done.stderr, f"{compiler} copies a message: {done.stderr[:500]}")
daemon.stop()
