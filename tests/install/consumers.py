# SPDX-License-Identifier: Apache-2.0
"""A C and a C++ program build outside of the tree against what was installed, with nothing but pkg-config or
find_package, shared and static, and sum a pool: from a prefix with a space in its path."""
import os
import re
import shutil
import subprocess

import lib_install as i
from lib_install import t

i.need("pkg-config", "cmake")
compilers = i.cxx_compilers()
prefix = i.Prefix()
work = os.path.join(t.temp_dir(), "of a user")
os.mkdir(work)
for name in ("sum.c", "sum.cc"):
    shutil.copy(os.path.join(i.PROGRAMS, name), work)
store, rows = i.mbo_store(10_000)
expected = f"{sum(price * size for _, _, price, size in rows)}\n"
daemon = t.Daemon(store)


def sums(program, what):
    t.equal(t.run([program, daemon.pool, t.name_of("AAA")]).stdout, expected, what)
    done = t.run([program, daemon.pool, "XTST.TEST/AAB/mbo"], expect=1)
    t.true(done.stderr.startswith("sum: 2: ") and t.name_of("AAA") in done.stderr, f"{what}: {done.stderr}")


# ---- pkg-config, moved as well ---------------------------------------------------------------------------
def by_pkg_config(what):
    flags = i.Prefix.flags("--cflags", "--libs")
    for compiler, source, strict in ((i.C_COMPILER, "sum.c", i.C_STRICT), *((c, "sum.cc", i.CXX_STRICT) for c in compilers)):
        program = os.path.join(work, f"{os.path.basename(compiler)} {source[4:]}")
        t.run([compiler, *strict, "-O2", os.path.join(work, source), "-o", program, *flags])
        sums(program, f"{compiler} with {what}")


by_pkg_config("pkg-config")
version = i.cached("CMAKE_PROJECT_VERSION")
t.equal(t.run(["pkg-config", "--modversion", "stoup"]).stdout.strip(), version, "version of the .pc file")
t.equal(t.run(["pkg-config", "--exists", f"stoup >= {version}", "stoup < 1"]).returncode, 0, "pkg-config --exists")
(pc,) = [os.path.join(root, name) for root, _, names in os.walk(prefix.directory) for name in names if name == "stoup.pc"]
with open(pc, encoding="ascii") as text:
    t.true(prefix.directory not in text.read(), "the .pc file names the prefix: it cannot be moved")

# ---- find_package -------------------------------------------------------------------------------------------
with open(os.path.join(work, "CMakeLists.txt"), "w", encoding="ascii") as out:
    out.write(f"""cmake_minimum_required(VERSION 3.25)
project(user C CXX)
set(CMAKE_CXX_STANDARD 20)
find_package(stoup {version} REQUIRED)
foreach(kind stoup stoup_static)
  add_executable(c_${{kind}} sum.c)
  add_executable(cxx_${{kind}} sum.cc)
  target_link_libraries(c_${{kind}} PRIVATE stoup::${{kind}})
  target_link_libraries(cxx_${{kind}} PRIVATE stoup::${{kind}})
endforeach()
""")
generator = i.cached("CMAKE_GENERATOR")


def by_find_package(directory, compiler):
    build = os.path.join(work, f"build {compiler}")
    shutil.rmtree(build, ignore_errors=True)
    t.run(["cmake", "-G", generator, "-S", work, "-B", build, f"-DCMAKE_PREFIX_PATH={directory}",
           f"-DCMAKE_C_COMPILER={i.C_COMPILER}", f"-DCMAKE_CXX_COMPILER={compiler}"])
    t.run(["cmake", "--build", build])
    for kind in ("c_stoup", "c_stoup_static", "cxx_stoup", "cxx_stoup_static"):
        sums(os.path.join(build, kind), f"{kind} of find_package, {compiler}")
    shared = t.run(["readelf", "-d", os.path.join(build, "cxx_stoup")]).stdout
    static = t.run(["readelf", "-d", os.path.join(build, "cxx_stoup_static")]).stdout
    t.true("libstoup.so.1" in shared and "libstoup" not in static, "which library is linked")


for name in compilers:
    by_find_package(prefix.directory, name)

# ---- another version is refused, a moved tree is found ---------------------------------------------------
wanted = os.path.join(t.temp_dir(), "CMakeLists.txt")
for asked, fits, words in (("0.0.9", True, ""), ("0.1", True, ""), ("1.0", False, "compatible"), ("0.2", False, "compatible"),
                           ("0.1...<0.2", True, ""), ("0.0.5...1.0", True, ""), ("0.2...0.9", False, "compatible"),
                           (f"{version} EXACT", True, ""), ("0.1.9 EXACT", False, "version"),
                           ("0.1 COMPONENTS static", False, "stoup has no components (asked for: static)")):
    with open(wanted, "w", encoding="ascii") as out:
        out.write(f"cmake_minimum_required(VERSION 3.25)\nproject(user C)\nfind_package(stoup {asked} REQUIRED)\n")
    done = t.run(["cmake", "-G", generator, "-S", os.path.dirname(wanted), "-B", os.path.dirname(wanted) + "/build",
                  f"-DCMAKE_PREFIX_PATH={prefix.directory}", f"-DCMAKE_C_COMPILER={i.C_COMPILER}"], expect=None)
    t.equal(done.returncode == 0, fits, f"find_package(stoup {asked}): {done.stderr}")
    t.true(words in re.sub(r"\s+", " ", done.stderr), f"find_package(stoup {asked}): {done.stderr}")

moved = os.path.join(t.temp_dir(), "moved here")
shutil.move(prefix.directory, moved)
lib = prefix.lib.replace(prefix.directory, moved)
os.environ["PKG_CONFIG_PATH"] = os.path.join(lib, "pkgconfig")
os.environ["LD_LIBRARY_PATH"] = lib
by_pkg_config("pkg-config of a moved tree")
by_find_package(moved, compilers[0])

# ---- the library is found by its SONAME, and the links lead to it --------------------------------------------
files = sorted(name for name in os.listdir(lib) if name.startswith("libstoup.so"))
t.equal(files, ["libstoup.so", "libstoup.so.1", f"libstoup.so.1.{version}"], "files of the library")
t.equal(os.readlink(os.path.join(lib, "libstoup.so.1")), f"libstoup.so.1.{version}", "the link of the SONAME")
text = subprocess.run(["readelf", "-d", os.path.join(lib, "libstoup.so")], capture_output=True, text=True).stdout
t.equal(re.search(r"SONAME.*\[(.*)\]", text).group(1), "libstoup.so.1", "SONAME")
t.true("RPATH" not in text and "RUNPATH" not in text, "an installed library with a path in it")
daemon.stop()
