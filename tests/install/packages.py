# SPDX-License-Identifier: Apache-2.0
"""Packages through cpack: the source tarball has what git knows and builds where it is unpacked; the Debian packages
made there have the right files, fields and dependencies, and are installed, used and removed.

As root the use is in an overlay over this system, in a mount namespace, by dpkg; else they are unpacked into a
directory, and used from there. tests/packages_root.sh does it in a fresh Debian, by apt.
"""
import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile

import lib_install as i
from lib_install import t

i.need("cmake", "cpack", "pkg-config", "dpkg-deb", "dpkg-shlibdeps", "file", "gzip", "strip")
i.cxx_compilers()
work = t.temp_dir()
version = i.cached("CMAKE_PROJECT_VERSION")
PYTHON = os.path.exists(os.path.join(i.SOURCE, "consumer", "python", "stoup.py"))

# ---- the source tarball ------------------------------------------------------------------------------------
source = i.SOURCE
if os.path.exists(os.path.join(i.SOURCE, ".git")) and shutil.which("git"):
    git = ["git", "-c", f"safe.directory={i.SOURCE}", "-C", i.SOURCE, "-c", "core.quotePath=false"]
    known = {name for name in t.run([*git, "ls-files"]).stdout.splitlines()
             if os.path.exists(os.path.join(i.SOURCE, name))}
    t.run(["cpack", "--config", os.path.join(i.BUILD, "CPackSourceConfig.cmake"), "-G", "TGZ", "-B", work])
    with tarfile.open(os.path.join(work, f"stoup-{version}.tar.gz")) as tar:
        packed = {entry.name.split("/", 1)[1] for entry in tar if not entry.isdir()}
        t.equal(packed ^ known, set(), "files of the tarball and of git")
        tar.extractall(os.path.join(work, "src"))
    source = os.path.join(work, "src", f"stoup-{version}")
    t.true(os.access(os.path.join(source, "test.sh"), os.X_OK), "test.sh of the tarball is a program")
else:
    print("note: no git checkout: packages are made of the tree as it is")

# ---- build it for /usr, and make the packages -------------------------------------------------------------------
build = os.path.join(work, "build")
t.run(["cmake", "-S", source, "-B", build, "-G", i.cached("CMAKE_GENERATOR"), f"-DCMAKE_C_COMPILER={i.C_COMPILER}",
       "-DCMAKE_INSTALL_PREFIX=/usr", "-DSTOUP_TESTS=OFF", "-DSTOUP_BENCH=OFF"])
t.run(["cmake", "--build", build, "-j", "2"])
debs = os.path.join(work, "debs")
t.run(["cpack", "--config", os.path.join(build, "CPackConfig.cmake"), "-G", "DEB", "-B", debs])
refused = t.run(["cpack", "--config", os.path.join(i.BUILD, "CPackConfig.cmake"), "-G", "DEB", "-B", work + "/none"],
                expect=None)
if i.cached("CMAKE_INSTALL_PREFIX") != "/usr":
    t.true(refused.returncode != 0 and "-DCMAKE_INSTALL_PREFIX=/usr" in refused.stderr, "packages of another prefix")

# ---- what is in them ------------------------------------------------------------------------------------------------
arch = t.run(["dpkg", "--print-architecture"]).stdout.strip()
triplet = t.run([i.C_COMPILER, "-print-multiarch"], expect=None).stdout.strip() or os.uname().machine + "-linux-gnu"
pages = os.listdir(os.path.join(i.SOURCE, "docs", "man"))
headers = os.listdir(os.path.join(i.BUILD, "consumer", "include"))
documents = [name for name in os.listdir(os.path.join(i.SOURCE, "docs")) if name.endswith(".md")]
lib = f"usr/lib/{triplet}"
EXPECTED = {
    "stoup": {"usr/bin/stoup", "usr/bin/stoupd", "usr/share/bash-completion/completions/stoup",
              "usr/share/bash-completion/completions/stoupd", "usr/share/doc/stoup/changelog.gz",
              "usr/lib/systemd/system/stoupd@.service", "usr/lib/systemd/system/stoup-exporter.service",
              "usr/lib/sysusers.d/stoup.conf", "usr/lib/tmpfiles.d/stoup.conf",
              *(f"usr/share/doc/stoup/container/{name}" for name in ("Containerfile", "compose.yaml", "seccomp.json")),
              *(f"usr/share/doc/stoup/prometheus/{name}" for name in ("prometheus.yml", "stoup.rules.yml", "stoup.rules.test.yml")),
              *(f"usr/share/man/man{page[-1]}/{page}.gz" for page in pages if page[-1] != "3"),
              *(f"usr/share/doc/stoup/{name}" for name in [*documents, "README.md"] if name != "CHANGELOG.md")},
    "libstoup1": {f"{lib}/libstoup.so.1", f"{lib}/libstoup.so.1.{version}"},
    "libstoup-dev": {f"{lib}/libstoup.so", f"{lib}/libstoup.a", f"{lib}/pkgconfig/stoup.pc",
                     *(f"usr/include/{name}" for name in headers),
                     *(f"{lib}/cmake/stoup/stoup-{name}.cmake" for name in
                       ("config", "config-version", "targets", "targets-relwithdebinfo")),
                     *(f"usr/share/man/man3/{page}.gz" for page in pages if page[-1] == "3")},
}
DEPENDS = {"stoup": {"libc6", "libarchive13", "liblz4-1", "liburing2", "libxxhash0", "libzstd1"},
           "libstoup1": {"libc6"}, "libstoup-dev": {f"libstoup1 (= {version}-1)"}}
if t.run(["pkg-config", "--exists", "libmicrohttpd >= 0.9.71"], expect=None).returncode == 0:
    DEPENDS["stoup"].add("libmicrohttpd12")
with open(t.STOUP, "rb") as program:
    if b"libncursesw.so" in program.read():  # it may be built without
        DEPENDS["stoup"] |= {"libncursesw6", "libtinfo6"}
if PYTHON:
    EXPECTED["python3-stoup"] = {"usr/lib/python3/dist-packages/stoup.py"}
    DEPENDS["python3-stoup"] = {f"libstoup1 (>= {version})", "python3 (>= 3.9)"}
found = {}
for path in (os.path.join(debs, name) for name in sorted(os.listdir(debs)) if name.endswith(".deb")):
    name = t.run(["dpkg-deb", "-f", path, "Package"]).stdout.strip()
    found[name] = path
t.equal(set(found), set(EXPECTED), "packages")
root = os.path.join(work, "root")
os.mkdir(os.path.join(work, "control"))
for name, path in found.items():
    fields = dict(re.findall(r"^([\w-]+): (.*)$", t.run(["dpkg-deb", "-f", path]).stdout, re.M))
    t.equal((fields["Version"], fields["Source"]), (f"{version}-1", "stoup"), f"{name}: version and source")
    t.equal(fields["Architecture"], "all" if name == "python3-stoup" else arch, f"{name}: architecture")
    t.true(fields["Maintainer"] and fields["Section"] and fields["Priority"] == "optional", f"{name}: fields {fields}")
    t.true(20 < len(fields["Description"]) < 80, f"{name}: {fields['Description']}")
    depends = set(fields["Depends"].split(", "))
    if name in ("stoup", "libstoup1"):  # by dpkg-shlibdeps: with the versions of this system
        t.true(all("(>= " in one for one in depends), f"{name} depends on {depends}")
        depends = {one.split()[0].removesuffix("t64") for one in depends}
    t.equal(depends, DEPENDS[name], f"{name}: dependencies")
    listed = {}
    for line in t.run(["dpkg-deb", "-c", path]).stdout.splitlines():
        mode, owner, _, _, _, file, *_ = line.split()
        t.equal(owner, "root/root", f"{name}: owner of {file}")
        if not file.endswith("/"):
            listed[file.removeprefix("./")] = mode
        wanted = ("drwxr-xr-x" if file.endswith("/") else "lrwxrwxrwx" if mode[0] == "l" else
                  "-rwxr-xr-x" if "/bin/" in file else "-rw-r--r--")
        t.equal(mode, wanted, f"{name}: mode of {file}")
    plain = {re.sub(r"(\.md)\.gz$", r"\1", file) for file in listed}
    every = {f"usr/share/doc/{name}/{file}" for file in ("copyright", "changelog.Debian.gz")}
    t.equal(plain ^ (EXPECTED[name] | every), set(), f"{name}: files")
    t.run(["dpkg-deb", "-x", path, root])
    t.run(["dpkg-deb", "-e", path, os.path.join(work, "control", name)])
done = subprocess.run(["grep", "-rlF", work, root], capture_output=True, text=True)
t.equal(done.stdout, "", "files that name the build directory")
with open(os.path.join(work, "control", "libstoup1", "triggers"), encoding="ascii") as text:
    t.equal(text.read(), "activate-noawait ldconfig\n", "triggers")
with open(os.path.join(work, "control", "libstoup1", "symbols"), encoding="ascii") as text:
    told = set(re.findall(r"^ (stoup_\w+@\w+) [\d.]+$", text.read(), re.M))
with open(os.path.join(i.SOURCE, "tests", "golden", "abi-symbols.txt"), encoding="ascii") as text:
    t.equal(told, {line.strip().replace("@@", "@") for line in text if line[0] != "#"}, "the symbols file")
for binary in ("usr/bin/stoup", "usr/bin/stoupd", f"{lib}/libstoup.so.1"):
    shown = t.run(["readelf", "-d", "-S", "-W", os.path.join(root, binary)]).stdout
    t.true("RUNPATH" not in shown and "RPATH" not in shown and ".symtab" not in shown and ".debug_info" not in shown,
           f"{binary} has a run path, symbols or debug information")
with open(os.path.join(root, lib, "libstoup.so.1"), "rb") as library:
    t.true(b"/usr/bin/stoupd\0" in library.read(), "the library does not know where stoupd is installed")

if shutil.which("lintian"):
    # A version that is not in Debian closes no bug; cpack writes scripts that call ldconfig, beside the trigger.
    KNOWN = {"initial-upload-closes-no-bugs", "maintscript-calls-ldconfig", "bogus-mail-host"}
    said = t.run(["lintian", "--allow-root", "--no-cfg", *found.values()], expect=None).stdout
    tags = set(re.findall(r"^[EW]: \S+: ([\w-]+)", said, re.M))
    t.true(tags <= KNOWN, f"lintian: {said}")
else:
    print("note: lintian is not installed")

# ---- used -----------------------------------------------------------------------------------------------------------
use = os.path.join(work, "use")
os.mkdir(use)
rows = list(t.mbo_records(5000, {"AAA": 11}))
t.dbn_file(os.path.join(use, "in.dbn"), {"AAA": 11}, (t.mbo(*row, sequence=n) for n, row in enumerate(rows)))
with open(os.path.join(use, "expected"), "w", encoding="ascii") as out:
    out.write(f"{sum(price * size for _, _, price, size in rows)}\n")
for name in ("sum.c", "sum.cc"):
    shutil.copy(os.path.join(i.PROGRAMS, name), use)
for path in found.values():
    shutil.copy(path, use)

if "--keep" in sys.argv:  # tests/packages_root.sh takes it from here
    shutil.copytree(use, sys.argv[sys.argv.index("--keep") + 1], dirs_exist_ok=True)
    sys.exit(0)

# An overlay over /: what is written lands in a tmpfs that goes with the namespace.
NAMESPACE = """
set -e
mount -t tmpfs none "$1/overlay"
mkdir "$1/overlay/upper" "$1/overlay/work" "$1/overlay/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$1/overlay/upper,workdir=$1/overlay/work" "$1/overlay/root" || exit 77
cd "$1/overlay/root"
mount -t proc proc proc 2>/dev/null || mount --bind /proc proc
mount --rbind /dev dev
mount -t tmpfs none dev/shm
mount -t tmpfs none run
mount -t tmpfs none tmp
mkdir tmp/use
cp "$1"/use/* tmp/use
cp "$2" tmp/use.sh
exec chroot . bash /tmp/use.sh /tmp/use dpkg
"""
os.mkdir(os.path.join(work, "overlay"))
script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib_package_use.sh")
if t.can_mount():
    clean = {name: value for name, value in os.environ.items() if name not in ("STOUPD", "XDG_RUNTIME_DIR")}
    done = subprocess.run(["unshare", "-m", "--propagation", "private", "bash", "-c", NAMESPACE, "namespace", work, script],
                          capture_output=True, text=True, env=clean, timeout=200)
    if done.returncode == 0:
        print(done.stdout.splitlines()[-1])
        sys.exit(0)
    if done.returncode != 77:
        t.fail(f"in the overlay: {done.stdout[-3000:]} {done.stderr[-3000:]}")
print("note: no overlay can be mounted here: the packages are used from where they were unpacked")
os.environ["PKG_CONFIG_PATH"] = os.path.join(root, lib, "pkgconfig")
os.environ["LD_LIBRARY_PATH"] = os.path.join(root, lib)
os.environ["STOUPD"] = os.path.join(root, "usr/bin/stoupd")
os.environ["XDG_RUNTIME_DIR"] = t.temp_dir()
t.run([os.path.join(root, "usr/bin/stoup"), "ingest", "--quiet", "--store", use + "/ticks", use + "/in.dbn"])
flags = shlex.split(t.run(["pkg-config", "--cflags", "--libs", "stoup"]).stdout)
for compiler, name in ((i.C_COMPILER, "sum.c"), (i.cxx_compilers()[0], "sum.cc")):
    standard = [] if name == "sum.c" else ["-std=c++20"]
    t.run([compiler, *standard, "-O2", os.path.join(use, name), "-o", os.path.join(use, "program"), *flags])
    with open(os.path.join(use, "expected"), encoding="ascii") as expected:
        t.equal(t.run([os.path.join(use, "program"), use + "/ticks/", t.name_of("AAA")]).stdout, expected.read(), name)
