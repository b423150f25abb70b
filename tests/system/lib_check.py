# SPDX-License-Identifier: Apache-2.0
"""`stoup check` called and read, and a machine laid out as files where all is well, for --root."""
import json
import os
import shutil
import subprocess

import lib_stoup as t

NOBODY = 65534
LEVELS = ("ok", "warning", "problem")
HUGE = "sys/kernel/mm/hugepages/hugepages-2048kB/"
WELL = {
    "proc/meminfo": "MemTotal: 67108864 kB\nMemAvailable: 33554432 kB\nSwapTotal: 0 kB\nCommitLimit: 33554432 kB\n"
                    "Committed_AS: 1048576 kB\n",
    "proc/self/cgroup": "0::/system.slice/stoupd.service\n",
    "proc/self/status": "Name:\tstoup\nCapEff:\t0000000000000000\nSeccomp:\t0\n",
    "proc/sys/kernel/osrelease": "6.1.0-18-amd64\n",
    "proc/sys/kernel/io_uring_disabled": "0\n",
    "proc/sys/vm/swappiness": "60\n",
    "proc/sys/vm/overcommit_memory": "0\n",
    "proc/sys/fs/inotify/max_user_watches": "65536\n",
    "proc/sys/fs/inotify/max_user_instances": "128\n",
    "sys/kernel/mm/transparent_hugepage/shmem_enabled": "always within_size advise [never] deny force\n",
    HUGE + "free_hugepages": "0\n",
    HUGE + "resv_hugepages": "0\n",
    HUGE + "nr_hugepages": "0\n",
    "etc/group": f"root:x:0:\nstoup:x:{os.getegid()}:\n",
    "etc/systemd/logind.conf": "[Login]\nRemoveIPC=no\n",
    "run/systemd/system/": None,
    "run/stoup/": None,
    "tmp/": None,
    "dev/shm/": None,
}


def lay(root, files):
    for name, text in files.items():
        path = os.path.join(root, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if text is not None:
            with open(path, "w") as out:
                out.write(text)


def machine(files=None):
    """A directory for --root: all is well but for these files."""
    root = t.temp_dir()
    os.chmod(root, 0o755)
    lay(root, WELL | (files or {}))
    os.chmod(os.path.join(root, "tmp"), 0o1777)
    os.chmod(os.path.join(root, "dev", "shm"), 0o1777)
    return root


def check(*args, expect, prefix=(), program=None, **more):
    """The lines as {name: [line...]}; the form of the JSON and of its counts is checked each time."""
    done = subprocess.run([*prefix, program or t.STOUP, "check", "--json", *args], capture_output=True, text=True,
                          timeout=60, **more)
    t.true(done.returncode == expect, f"stoup check {args}: exit status {done.returncode}, expected {expect}: "
                                      f"{done.stdout} {done.stderr}")
    report = json.loads(done.stdout)
    lines = {}
    for line in report["checks"]:
        t.equal(sorted(line), ["check", "found", "level", "mend", "wanted"], "members")
        t.true(line["level"] in LEVELS and line["found"], f"a line: {line}")
        t.equal(line["mend"] is None, line["level"] == "ok", f"what is not ok has a cure, and nothing else: {line}")
        lines.setdefault(line["check"], []).append(line)
    for level, count in (("problem", report["problems"]), ("warning", report["warnings"])):
        t.equal(sum(line["level"] == level for line in report["checks"]), count, f"{level}s counted")
    t.equal(report["problems"] > 0, expect == 1, "the exit status")
    return lines


def staged(what, lines, name, level, *words, wanted=None):
    """One line of that name and level whose cure has these words."""
    found = [line for line in lines.get(name, []) if line["level"] == level]
    t.true(len(found) == 1, f"{what}: {name} {level}: {lines.get(name)}")
    for word in words:
        t.true(word in found[0]["mend"], f"{what}: '{word}' in the cure: {found[0]}")
    if wanted:
        t.equal(found[0]["wanted"], wanted, f"{what}: what is wanted")
    print(f"{what}: {found[0]['found']} -> {found[0]['mend']}")
    return found[0]


def as_nobody(*argv, groups=None):
    return ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--bounding-set=-all", "--inh-caps=-all",
            *(["--groups", groups] if groups else ["--clear-groups"]), *argv]


def reachable_copy():
    """The program where every user can run it."""
    place = t.temp_dir()
    os.chmod(place, 0o755)
    return shutil.copy(t.STOUP, place)
