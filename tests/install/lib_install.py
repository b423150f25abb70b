# SPDX-License-Identifier: Apache-2.0
"""What the install tests share: an installed prefix in a directory whose name has a space, compilers, a pool."""
import os
import re
import shlex
import shutil
import sys

SOURCE = os.environ["STOUP_SOURCE_DIR"]
BUILD = os.environ["STOUP_BUILD_DIR"]
PROGRAMS = os.path.join(SOURCE, "tests", "install", "programs")
sys.path.insert(0, os.path.join(SOURCE, "tests", "system"))
import lib_stoup as t  # noqa: E402

CXX_STRICT = ["-std=c++20", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Wold-style-cast",
              "-Wnon-virtual-dtor", "-Werror"]
C_STRICT = ["-std=c17", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror"]


def cached(name):
    with open(os.path.join(BUILD, "CMakeCache.txt"), encoding="utf-8") as cache:
        found = re.search(rf"^{name}:[A-Z]+=(.*)$", cache.read(), re.M)
    return found.group(1) if found else ""


def skip(text):
    print(text)
    sys.exit(t.SKIP)


def need(*programs):
    """Skip where a program is absent, or where the library needs a sanitizer's."""
    missing = [name for name in programs if not shutil.which(name)]
    if missing:
        skip(f"needs {', '.join(missing)}")
    if cached("STOUP_SANITIZE"):
        skip("a library with sanitizers is not for programs without")


C_COMPILER = cached("CMAKE_C_COMPILER") or "cc"


def cxx_compilers():
    """The C++ compilers of this machine; the test skips where there is none."""
    found = [name for name in ("g++", "clang++") if shutil.which(name)]
    if not found:
        skip("needs a C++ compiler (g++, clang++)")
    return found


class Prefix:
    """`cmake --install` of this build into a new directory, and the environment to use it from there."""

    def __init__(self, strip=False):
        self.directory = os.path.join(t.temp_dir(), "a prefix")
        t.run(["cmake", "--install", BUILD, "--prefix", self.directory] + (["--strip"] if strip else []))
        self.lib = next(root for root, _, names in os.walk(self.directory) if "libstoup.so" in names)
        self.include = os.path.join(self.directory, "include")
        os.environ["PKG_CONFIG_PATH"] = os.path.join(self.lib, "pkgconfig")
        os.environ["LD_LIBRARY_PATH"] = self.lib
        os.environ["XDG_RUNTIME_DIR"] = t.temp_dir()

    @staticmethod
    def flags(*options):
        return shlex.split(t.run(["pkg-config", *options, "stoup"]).stdout)


def mbo_store(count, block="64K"):
    """A store with XTST.TEST/AAA/mbo; returns its path and its records as t.mbo_records tells them."""
    symbols = {"AAA": 11}
    rows = list(t.mbo_records(count, symbols))
    directory = t.temp_dir()
    dbn = os.path.join(directory, "in.dbn")
    t.dbn_file(dbn, symbols, (t.mbo(*row, sequence=i) for i, row in enumerate(rows)))
    store = os.path.join(directory, "store")
    t.run([t.STOUP, "ingest", "--store", store, "--block", block, "--codec", "lz4", "--quiet", dbn])
    return store, rows


def damage_middle(store):
    """Turn one bit in the middle of the only volume: one block is no longer what its checksum says."""
    (volume,) = [name for name in os.listdir(store) if name.endswith(".stoup")]
    with open(os.path.join(store, volume), "r+b") as out:
        out.seek(os.path.getsize(out.name) // 2)
        byte = out.read(1)[0]
        out.seek(-1, os.SEEK_CUR)
        out.write(bytes([byte ^ 0x40]))
