# SPDX-License-Identifier: Apache-2.0
"""README.md's C and C++ programs, as a reader pastes them: they compile, sum right, and fail where they must not sum."""
import os
import re
import shlex
import shutil
import sys

SOURCE = os.environ["STOUP_SOURCE_DIR"]
BUILD = os.environ["STOUP_BUILD_DIR"]
sys.path.insert(0, os.path.join(SOURCE, "tests", "system"))
import lib_stoup as t  # noqa: E402


def cached(name):
    with open(os.path.join(BUILD, "CMakeCache.txt"), encoding="utf-8") as cache:
        found = re.search(rf"^{name}:[A-Z]+=(.*)$", cache.read(), re.M)
    return found.group(1) if found else ""


if not shutil.which("pkg-config") or not shutil.which("cmake") or cached("STOUP_SANITIZE"):
    print("needs pkg-config, cmake and a library without sanitizers")
    sys.exit(t.SKIP)

directory = t.temp_dir()
prefix = os.path.join(directory, "prefix")
t.run(["cmake", "--install", BUILD, "--prefix", prefix])
lib = next(root for root, _, names in os.walk(prefix) if "libstoup.so" in names)

# The environment that README.md asks for, and nothing of ours: the daemon comes from PATH.
del os.environ["STOUPD"]
os.environ["PATH"] = os.path.join(prefix, "bin") + ":" + os.environ["PATH"]
os.environ["PKG_CONFIG_PATH"] = os.path.join(lib, "pkgconfig")
os.environ["LD_LIBRARY_PATH"] = lib
os.environ["XDG_RUNTIME_DIR"] = t.temp_dir()

# ---- compile what the block says, by the line that README.md gives ------------------------------------
with open(os.path.join(SOURCE, "README.md"), encoding="utf-8") as readme:
    text = readme_lines = readme.read()
readme_text = " ".join(text.split())
blocks, cpp_blocks = (re.findall(rf"^```{name}\n(.*?)^```$", text, re.M | re.S) for name in ("c", "cpp"))
t.equal((len(blocks), len(cpp_blocks)), (2, 1), "C and C++ blocks in README.md")
with open(os.path.join(directory, "worker.c"), "w", encoding="ascii") as out:
    out.write(blocks[0])
flags = shlex.split(t.run(["pkg-config", "--cflags", "--libs", "stoup"]).stdout)
worker = os.path.join(directory, "worker")
t.run([cached("CMAKE_C_COMPILER") or "cc", "-O2", "-Wall", "-Wextra", "-Werror",
       worker + ".c", "-o", worker, *flags])
workers = [worker]
for compiler in filter(shutil.which, ("g++", "clang++")):
    workers.append(os.path.join(directory, "worker-" + compiler))
    with open(worker + ".cc", "w", encoding="ascii") as out:
        out.write(cpp_blocks[0])
    t.run([compiler, "-std=c++20", "-O2", "-Wall", "-Wextra", "-Werror", worker + ".cc", "-o", workers[-1], *flags])
t.equal(t.run([worker], expect=2).stderr, "usage: worker POOL|STORE/ SERIES\n", "wrong usage")

# ---- the sum, through the automatic daemon and through a pool with a name -----------------------------
symbols = {"AAA": 11}
UNDEFINED = 2**63 - 1
rows = [(i, key, price * 1000 if i % 7 else UNDEFINED, size)  # beyond 64 bits: it must not overflow
        for i, (_, key, price, size) in enumerate(t.mbo_records(5_000, symbols))]
expected = sum(price * size for _, _, price, size in rows if price != UNDEFINED)
t.true(expected > 2**64, f"a sum that 64 bits hold proves little: {expected}")
dbn = os.path.join(directory, "in.dbn")
t.dbn_file(dbn, symbols, (t.mbo(11, key, price, size, sequence=i) for i, key, price, size in rows))
store = os.path.join(directory, "ticks")
t.run(["stoup", "ingest", "--quiet", "--block", "64K", "--store", store, dbn])
text = f"{float(expected) / 1e9:.2f}\n"
for program in workers:
    t.equal(t.run([program, store + "/", t.name_of("AAA")]).stdout, text, "sum of the automatic daemon's records")
daemon = t.Daemon(store)
for program in workers:
    t.equal(t.run([program, daemon.pool, t.name_of("AAA")]).stdout, text, "sum of the pool's records")
daemon.stop()

# ---- CSV of one's own, by the line that README.md gives, and the program that it then describes -----------
own = re.search(r"^stoup ingest [^\n]* --schema tick [^\n]*\\\n[^\n]*acme\.csv$", readme_lines, re.M).group()
at = t.temp_dir()
with open(os.path.join(at, "acme.csv"), "w", encoding="ascii") as out:
    out.write("Trade Time;Price;Volume\n2024-03-04 09:00:00.5;50.25;3\n2024-03-04 09:00:01;-0.5;1\n2024-03-04 09:00:01;;9\n")
t.run(["sh", "-c", f"cd '{at}' && {own}"])
compilers = [(cached("CMAKE_C_COMPILER") or "cc", "own.c", blocks[0].replace('"mbo"', '"tick"'), ["-O2"])]
compilers += [(name, "own.cc", cpp_blocks[0], ["-std=c++20", "-O2"]) for name in filter(shutil.which, ("g++", "clang++"))]
for compiler, file, program, options in compilers:
    file, own = os.path.join(at, file), os.path.join(at, "own")
    with open(file, "w", encoding="ascii") as out:
        out.write(program.replace("stoup_mbo", "stoup_tick"))
    t.run([compiler, *options, "-Wall", "-Wextra", "-Werror", file, "-o", own, *flags])
    t.equal(t.run([own, at + "/ticks/", "BROKER/ACME/tick"]).stdout, "150.25\n", f"sum of own records, {compiler}")

# ---- a struct of one's own, put into that program as README.md says ----------------------------------
call = re.search(r"`(stoup_schema_require_fields\([^`]*)`", readme_text).group(1)
own = re.sub(r'stoup_schema_require\(&series, "mbo", sizeof\(struct stoup_mbo\), &err\)', lambda _: call, blocks[0])
own = own.replace("#include <stdint.h>", "#include <stddef.h>\n#include <stdint.h>").replace("struct stoup_mbo", "struct trade")
own = own.replace("int main(", blocks[1] + "\nint main(")
options = re.search(r"`(--series BROKER/ACME/trades [^`]*) acme\.csv`", readme_text).group(1)
with open(os.path.join(directory, "own.c"), "w", encoding="ascii") as out:
    out.write(own)
t.run([cached("CMAKE_C_COMPILER") or "cc", "-O2", "-Wall", "-Wextra", "-Werror", out.name, "-o", out.name[:-2], *flags])
with open(os.path.join(directory, "acme.csv"), "w", encoding="ascii") as acme:
    acme.write("Trade Time;Price;Volume\n" + "".join(f"2025-03-03 09:30:{n}.037;99.99;{n}\n" for n in range(10, 30)))
t.run(["stoup", "ingest", "--quiet", "--store", os.path.join(directory, "mine"), *shlex.split(options), acme.name])
t.equal(t.run([out.name[:-2], os.path.join(directory, "mine/"), "BROKER/ACME/trades"]).stdout, f"{99.99 * sum(range(10, 30)):.2f}\n", "the sum of acme.csv")
wrong = t.run([out.name[:-2], store + "/", t.name_of("AAA")], expect=1)
t.true("bytes" in wrong.stderr, wrong.stderr)

# ---- no sum where there is none -------------------------------------------------------------------------


def refuses(pool, series, *words):
    for program in workers:
        done = t.run([program, pool, series], expect=1)
        t.equal(done.stdout, "", "a sum beside an error")
        t.true(all(word in done.stderr for word in ("worker: ", *words)), done.stderr)


refuses(daemon.pool, t.name_of("AAA"), daemon.pool)
os.chdir(directory)
refuses("ticks", t.name_of("AAA"), "no pool 'ticks' is running", "is meant by 'ticks/', with a slash")
refuses("tickets", t.name_of("AAA"), "no pool 'tickets' is running, or its socket was removed", "start it: stoupd")
refuses(store + "/", "XTST.TEST/AAB/mbo", "XTST.TEST/AAA/mbo")
damaged = os.path.join(directory, "damaged")
shutil.copytree(store, damaged)
(volume,) = [name for name in os.listdir(damaged) if name.endswith(".stoup")]
with open(os.path.join(damaged, volume), "r+b") as out:
    out.seek(os.path.getsize(out.name) // 2)
    byte = out.read(1)[0]
    out.seek(-1, os.SEEK_CUR)
    out.write(bytes([byte ^ 0x40]))
refuses(damaged + "/", t.name_of("AAA"), volume, "offset")
