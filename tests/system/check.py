# SPDX-License-Identifier: Apache-2.0
"""stoup check finds what is wrong with a machine and names the right cure: laid out as files, and really staged by
limits, a seccomp filter and a small /dev/shm."""
import os
import resource
import subprocess
import sys

import lib_check as c
import lib_stoup as t

ROOT = os.geteuid() == 0
GIB = 1 << 30
os.environ.pop("XDG_RUNTIME_DIR", None)

# ---- all is well ---------------------------------------------------------------------------------------
well = c.machine()
lines = c.check("--root", well, "--size", "8M", expect=0)
for name in ("shm", "memory", "memlock", "huge_pages", "swap", "overcommit", "nofile", "kernel", "group", "runtime_dir",
             "remove_ipc", "pools"):
    t.equal([line["level"] for line in lines[name]], ["ok"], f"{name} of a machine where all is well")
plain = t.run([t.STOUP, "check", "--root", well, "--size", "8M"]).stdout
count = sum(len(found) for found in lines.values())
t.equal(len(plain.splitlines()), 1 + count + plain.count("mend:"), f"a line for each, and one for each cure: {plain}")
t.true(plain.startswith("ok       pools        0 served") and " 0 problems\n" in plain, plain)

# ---- laid out as files ---------------------------------------------------------------------------------
# Name of the stage; the changed files; options; check, level, words of the cure.
MEMORY = c.WELL["proc/meminfo"]
STAGES = (
    ("little memory", {"proc/meminfo": MEMORY.replace("MemAvailable: 33554432", "MemAvailable: 1048576")}, ["--size", "4G"],
     "memory", "problem", ["stoupd --size 928M"]),
    ("a cgroup's limit", {"sys/fs/cgroup/system.slice/stoupd.service/memory.max": f"{GIB}\n",
                          "sys/fs/cgroup/system.slice/stoupd.service/memory.current": f"{GIB // 2}\n",
                          "sys/fs/cgroup/system.slice/stoupd.service/memory.stat": "inactive_file 0\nactive_file 0\n"},
     ["--size", "1G"], "memory", "problem", ["raise its limit by 608M", "MemoryMax=", "stoupd --size 416M"]),
    ("a container's limit", {"proc/self/cgroup": "4:memory:/docker/1\n", ".dockerenv": "",
                             "sys/fs/cgroup/memory/docker/1/memory.limit_in_bytes": f"{GIB}\n",
                             "sys/fs/cgroup/memory/docker/1/memory.usage_in_bytes": f"{GIB // 2}\n"},
     ["--size", "1G"], "memory", "problem", ["raise its limit by 608M", "docker update --memory"]),
    ("few huge pages", {c.HUGE + "nr_hugepages": "10\n", c.HUGE + "free_hugepages": "8\n", c.HUGE + "resv_hugepages": "3\n"},
     ["--backing", "hugetlb", "--size", "64M"], "huge_pages", "problem", ["sysctl vm.nr_hugepages=37"]),
    ("a pod's limit", {"proc/self/cgroup": "0::/\n", "var/run/secrets/kubernetes.io/": None,
                       "sys/fs/cgroup/memory.max": f"{GIB}\n", "sys/fs/cgroup/memory.current": f"{GIB}\n",
                       "sys/fs/cgroup/memory.stat": f"inactive_file {GIB // 4}\nactive_file {GIB // 4}\n"},
     ["--size", "1G"], "memory", "problem", ["raise its limit by 608M", "resources.limits.memory"]),
    ("huge pages denied", {"sys/kernel/mm/transparent_hugepage/shmem_enabled": "always advise never [deny] force\n"}, [],
     "thp_shmem", "warning", ["echo never > /sys/kernel/mm/transparent_hugepage/shmem_enabled"]),
    ("swap", {"proc/meminfo": MEMORY.replace("SwapTotal: 0", "SwapTotal: 1048576")}, [], "swap", "warning",
     ["--mlock", "sysctl vm.swappiness=10"]),
    ("strict overcommit", {"proc/sys/vm/overcommit_memory": "2\n",
                           "proc/meminfo": MEMORY.replace("Committed_AS: 1048576", "Committed_AS: 33500000")},
     ["--size", "64M"], "overcommit", "problem", ["sysctl vm.overcommit_memory=0", "vm.overcommit_ratio"]),
    ("io_uring switched off", {"proc/sys/kernel/io_uring_disabled": "2\n"}, [], "io_uring", "warning",
     ["sysctl kernel.io_uring_disabled=0"]),
    ("few inotify instances", {"proc/sys/fs/inotify/max_user_instances": "4\n"}, [], "inotify", "warning",
     ["sysctl fs.inotify.max_user_instances=512"]),
    ("few inotify watches", {"proc/sys/fs/inotify/max_user_watches": "8\n"}, [], "inotify", "warning",
     ["sysctl fs.inotify.max_user_watches=65536"]),
    ("an old kernel", {"proc/sys/kernel/osrelease": "5.4.0-42-generic\n"}, [], "kernel", "warning",
     ["6.1 or later", "no 2 MiB pages"]),
    ("a kernel without seals", {"proc/sys/kernel/osrelease": "4.18.0\n"}, ["--backing", "memfd"], "kernel", "problem",
     ["6.1 or later", "no --backing memfd"]),
)
for what, files, options, name, level, words in STAGES:
    options = options if "--size" in options else [*options, "--size", "8M"]
    c.staged(what, c.check("--root", c.machine(files), *options, expect=int(level == "problem")), name, level, *words)

if ROOT:
    c.staged("no group", c.check("--root", c.machine({"etc/group": "root:x:0:\n"}), "--size", "8M", expect=0), "group",
             "warning", "groupadd --system stoup && usermod -aG stoup USER")
open_dir = c.machine()
where = os.path.join(open_dir, "run/stoup")  # ours, so that a daemon of ours would use it
os.chmod(where, 0o777)
c.staged("a directory that others may write", c.check("--root", open_dir, "--size", "8M", expect=1), "runtime_dir", "problem",
         f"chmod go-w {where[len(open_dir):]}")

# ---- really staged -------------------------------------------------------------------------------------
found = c.check("--size", "900T", expect=1)
if found["shm"][0]["found"] != "/dev/shm has no limit of its own":
    line = c.staged("no room in /dev/shm", found, "shm", "problem", "--backing memfd")
    t.true("-o remount,size=" in line["mend"] or "--shm-size=" in line["mend"], f"which size mends it: {line}")
c.staged("no such memory", found, "memory", "problem", "--size")
c.staged("few open files", c.check("--size", "8M", expect=1, preexec_fn=lambda: resource.setrlimit(
    resource.RLIMIT_NOFILE, (256, 256))), "nofile", "problem", "LimitNOFILE=2496", "ulimit -n 2496")
c.staged("fewer than for what may come", c.check("--size", "8M", expect=0, preexec_fn=lambda: resource.setrlimit(
    resource.RLIMIT_NOFILE, (1024, 1024))), "nofile", "warning", "LimitNOFILE=2496")

blocked = os.path.join(t.BIN, "helper_seccomp")
if subprocess.run([blocked, "EPERM", "true"]).returncode == 0:
    plain_root = c.machine({"proc/self/status": "CapEff:\t0000000000000000\nSeccomp:\t2\n"})
    boxed = c.machine({".dockerenv": ""})
    for code, words in (("EPERM", "Operation not permitted"), ("ENOSYS", "Function not implemented")):
        line = c.staged(f"io_uring refused ({code})", c.check("--root", plain_root, "--size", "8M", expect=0,
                                                              prefix=[blocked, code]),
                        "io_uring", "warning", "seccomp", "SystemCallFilter=")
        t.true(words in line["found"] and "reads go by threads" in line["found"], f"why not: {line}")
        c.staged(f"io_uring refused in a container ({code})", c.check("--root", boxed, "--size", "8M", expect=0,
                                                                      prefix=[blocked, code]),
                 "io_uring", "warning", "docker run --security-opt seccomp=")
    c.staged("no inotify instance left", c.check("--root", well, "--size", "8M", expect=0, prefix=[blocked, "EMFILE"]),
             "inotify", "warning", "fs.inotify.max_user_instances=512")
else:
    print("no seccomp filter can be set here: io_uring is not refused")

# In a pod it is another setting. Of the file system of the staged directory; where that has no limit, none is met.
pod = c.check("--root", c.machine({"var/run/secrets/kubernetes.io/": None}), "--size", "900T", expect=1)
if pod["shm"][0]["level"] == "problem":
    c.staged("no room in a pod's /dev/shm", pod, "shm", "problem", "emptyDir of medium: Memory", "at /dev/shm")

if t.can_mount():
    script = 'mount -t tmpfs -o size=4M tmpfs /dev/shm && exec "$@"'
    line = c.staged("a small /dev/shm", c.check("--root", "", "--size", "16M", expect=1,
                                                prefix=["unshare", "-m", "bash", "-c", script, "small"]), "shm", "problem")
    # 4 MiB are there and none of them is used: the pool and a MiB for the control object.
    t.true("size=17M" in line["mend"] or "--shm-size=17m" in line["mend"], f"the size: {line}")

if ROOT:
    program = c.reachable_copy()
    nobody = {"program": program, "env": {"PATH": os.environ["PATH"]}}
    c.staged("little locked memory", c.check("--mlock", "--size", "64M", expect=1, prefix=c.as_nobody("prlimit", "--memlock=8388608"),
                                             **nobody), "memlock", "problem", "ulimit -l 66560", "LimitMEMLOCK=65M")
    t.equal(c.check("--size", "64M", expect=0, prefix=c.as_nobody("prlimit", "--memlock=8388608"), **nobody)["memlock"][0]["level"],
            "ok", "without --mlock none is wanted")
    tight = c.check("--size", "8M", expect=0, prefix=c.as_nobody("prlimit", "--memlock=0"), **nobody)["io_uring"][0]
    t.true(tight["level"] == "ok" or "Cannot allocate" not in tight["found"] or "ulimit -l unlimited" in tight["mend"],
           f"a ring without locked memory, which some kernels refuse: {tight}")
    logind = {"etc/systemd/logind.conf": "[Login]\n#RemoveIPC=yes\n"}
    user = c.check("--root", c.machine(logind), "--size", "8M", expect=0, prefix=c.as_nobody(), **nobody)
    c.staged("RemoveIPC", user, "remove_ipc", "warning", "loginctl enable-linger nobody", "RemoveIPC=no")
    c.staged("no member", user, "group", "warning", "usermod -aG stoup nobody, then log in again")
    for what, files in (("RemoveIPC=no", {"etc/systemd/logind.conf.d/own.conf": "[Login]\nRemoveIPC = no\n"}),
                        ("lingering", {"var/lib/systemd/linger/nobody": ""})):
        user = c.check("--root", c.machine(logind | files), "--size", "8M", expect=0, prefix=c.as_nobody(), **nobody)
        t.equal(user["remove_ipc"][0]["level"], "ok", what)
    again = c.machine({"etc/group": "stoup:x:60:nobody\n"})
    c.staged("a session from before", c.check("--root", again, "--size", "8M", expect=0, prefix=c.as_nobody(), **nobody),
             "group", "warning", "newgrp stoup")
    user = c.check("--root", again, "--size", "8M", expect=0, prefix=c.as_nobody(groups="60"), **nobody)
    t.equal(user["group"][0]["level"], "ok", f"a member: {user['group']}")
    nobody["env"]["XDG_RUNTIME_DIR"] = "/nowhere"
    c.staged("a runtime directory that is not there", c.check("--size", "8M", expect=1, prefix=c.as_nobody(), **nobody),
             "runtime_dir", "problem", "unset XDG_RUNTIME_DIR", "install -d -m 0700 -o 65534 /nowhere")

# ---- names that others chose ------------------------------------------------------------------------------
# C0, and C1 in both forms, command terminals: none gets through, neither as text nor as JSON.
odd = os.path.join(os.fsencode(t.temp_dir()), b"a\x1b[2Jb\xc2\x9b2J\x9b\nc")
os.mkdir(odd)
for form in ([], ["--json"]):
    done = subprocess.run([t.STOUP, "check", *form, odd], capture_output=True)
    text = done.stdout.decode() + done.stderr.decode()
    t.equal([c for c in text if c != "\n" and (c < " " or "\x7f" <= c < "\xa0")], [], f"check {form} of an odd name")
    t.true("holds no volumes" in text, f"it is told: {text}")

# ---- usage ---------------------------------------------------------------------------------------------
for argv, text in ((["--size", "much"], "a size is wanted"), (["--backing", "paper"], "not one of posix, memfd, hugetlb"),
                   (["a", "b"], "one pool or store is wanted"), (["-"], "no name of a pool")):
    t.true(text in t.run([t.STOUP, "check", *argv], expect=2).stderr, f"{argv}: {text}")
print("ok", flush=True)
sys.exit(0)
