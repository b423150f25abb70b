# SPDX-License-Identifier: Apache-2.0
"""stoupd as a service: what it tells a manager by NOTIFY_SOCKET, what it logs, and the files for systemd and containers."""
import json
import os
import re
import shutil
import signal
import socket
import subprocess

import lib_stoup as t

SOURCE = os.environ["STOUP_SOURCE_DIR"]
PACKAGING = os.path.join(SOURCE, "docs", "packaging")
store, totals = t.make_store(30_000)
name = t.name_of("AAA")


def text_of(*names):
    with open(os.path.join(*names), encoding="utf-8") as source:
        return source.read()


# ---- a manager -----------------------------------------------------------------------------------------

class Manager:
    """The socket of a service manager; messages as lists of lines."""

    def __init__(self, abstract=False):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.path = ("\0" if abstract else "") + os.path.join(t.temp_dir(), "notify")
        self.socket.bind(self.path)
        os.environ["NOTIFY_SOCKET"] = self.path.replace("\0", "@")

    def next(self, seconds=120):
        self.socket.settimeout(seconds)
        return self.socket.recv(4096).decode().split("\n")

    def until(self, first):
        """The messages up to the one that begins so."""
        before = []
        while True:
            message = self.next()
            if message[0] == first:
                return message, before
            before.append(message[0])

    def rest(self):
        """What lies there now."""
        found = []
        self.socket.setblocking(False)
        while True:
            try:
                found.append(self.socket.recv(4096).decode().split("\n")[0])
            except BlockingIOError:
                return found


# Fed each second: the socket holds ten messages of those that come while this process has no processor, and what comes then is lost.
WATCHED = ["bash", "-c", 'exec env WATCHDOG_USEC=2000000 WATCHDOG_PID=$$ "$@"', "watched"]
for abstract in (False, True):
    manager = Manager(abstract)
    daemon = t.Daemon(store, "8M", prefix=WATCHED)
    ready, before = manager.until("READY=1")
    t.equal(before, [], "before it is ready")
    t.equal(ready[1:], [f"STATUS=pool {daemon.pool}: 1 volume, 8 MiB, reads by {daemon.stat()['reader']}",
                        f"MAINPID={daemon.process.pid}"], "ready")
    for _ in range(3):
        t.equal(manager.next(), ["WATCHDOG=1"], "the watchdog is fed")
    daemon.process.send_signal(signal.SIGSTOP)
    t.until(lambda: open(f"/proc/{daemon.process.pid}/stat").read().rsplit(")", 1)[1].split()[0] == "T", "it is stopped")
    manager.rest()
    try:
        t.fail(f"a stopped daemon says {manager.next(1.5)}")
    except TimeoutError:
        pass
    daemon.process.send_signal(signal.SIGCONT)
    t.equal(manager.next(), ["WATCHDOG=1"], "it goes on")
    daemon.process.send_signal(signal.SIGHUP)
    reloading, _ = manager.until("RELOADING=1")
    t.true(re.fullmatch(r"MONOTONIC_USEC=\d+", reloading[1]), f"reloading: {reloading}")
    _, between = manager.until("READY=1")
    t.true(set(between) <= {"WATCHDOG=1"}, f"while it reloads: {between}")
    t.true(daemon.counter("rescans") >= 1, "the stores were read when it said so")
    t.equal(daemon.stop(), 0, "the daemon's end")
    manager.until("STOPPING=1")
    t.equal(set(manager.rest()) - {"WATCHDOG=1"}, set(), "after that")

# A watchdog for another process is none; why it could not start is told; an automatic daemon is somebody else's business.
manager = Manager()
daemon = t.Daemon(store, "8M", prefix=["env", "WATCHDOG_USEC=300000", "WATCHDOG_PID=1"])
manager.until("READY=1")
daemon.process.send_signal(signal.SIGHUP)
_, before = manager.until("RELOADING=1")
t.equal(before, [], "a watchdog that is not ours")
t.true(b"NOTIFY_SOCKET" in open(f"/proc/{daemon.process.pid}/environ", "rb").read(), "it was asked to tell")
daemon.stop()
manager = Manager()
failed = t.Daemon(store, "900T", options=["--backing", "memfd"], wait=False)
failed.process.wait(60)
status = manager.next()
t.true(status[0].startswith("STATUS=") and "needed" in status[0] and re.fullmatch(r"ERRNO=\d+", status[1]), f"{status}")
t.equal(manager.rest(), [], "it never was ready")
daemon = t.Daemon(store, "8M", options=["--auto", "--linger", "1h"])
t.Worker(daemon.pool, name).finish()
daemon.stop()
t.equal(manager.rest(), [], "an automatic daemon tells nobody")
for wrong in ("/nowhere/notify", "notify", "/" + "x" * 200):
    os.environ["NOTIFY_SOCKET"] = wrong
    daemon = t.Daemon(store, "8M")
    t.true("error: NOTIFY_SOCKET: " in daemon.stderr(), f"a socket that is none: {daemon.stderr()}")
    t.equal(daemon.stop(), 0, "it serves all the same")
del os.environ["NOTIFY_SOCKET"]

# ---- the log -------------------------------------------------------------------------------------------


def speaks_another(path):
    """Was it answered? It is hung up on where it was late."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as stranger:
        stranger.connect(path)
        try:
            stranger.send(b"GET / HTTP/1.1\r\n\r\n")
            return stranger.recv(4096) != b""
        except (BrokenPipeError, ConnectionResetError):
            return False


def log_of(*options, journal=False):
    """The lines of a daemon that somebody attached to, and somebody of another language tried to."""
    with open(os.path.join(t.temp_dir(), "log"), "w+") as log:
        st = os.fstat(log.fileno())
        stream = f"{st.st_dev}:{st.st_ino}" if journal else f"{st.st_dev}:{st.st_ino + 1}"
        pool = f"log{os.getpid()}"
        read_fd, write_fd = os.pipe()
        process = subprocess.Popen([t.STOUPD, "--store", store, "--pool", pool, "--size", "8M", "--ready-fd", str(write_fd),
                                    *options], stderr=log, pass_fds=[write_fd], env=os.environ | {"JOURNAL_STREAM": stream})
        os.close(write_fd)
        with os.fdopen(read_fd) as ready:
            t.equal(ready.readline(), "ready\n", "ready")
        t.Worker(pool, name).finish()
        while not speaks_another(where(pool)):
            pass
        t.until(lambda: json.loads(t.run([t.STOUP, "stat", "--json", pool]).stdout)["counters"]["consumers"] == 0, "all left")
        process.terminate()
        t.equal(process.wait(60), 0, "the end")
        log.seek(0)
        lines = log.read().splitlines()
    for line in lines:
        t.true(re.match(rf"(<\d>)?stoupd\[{pool}\]: ", line), f"a line: {line!r}")
    return lines


def where(pool):
    import lib_wire
    return lib_wire.socket_path(pool)


def has(lines, mark, words):
    found = [line for line in lines if words in line]
    t.true(not found or all(line.startswith(mark) for line in found), f"marks: {found}")
    return len(found)


for journal in (False, True):
    marks = [f"<{level}>stoupd" if journal else "stoupd" for level in (4, 6, 7)]
    for options, expected in ((["--log-level", "debug"], (1, 1, 1)), ([], (1, 1, 0)), (["--log-level", "info"], (1, 1, 0)),
                              (["--quiet"], (1, 0, 0)), (["--log-level", "warning"], (1, 0, 0)), (["--log-level", "error"], (0, 0, 0))):
        lines = log_of(*options, journal=journal)
        found = (has(lines, marks[0], "warning: attach refused"), has(lines, marks[1], "serving 1 volume "),
                 min(has(lines, marks[2], "debug: consumer 0 attached: process"),
                     has(lines, marks[2], "debug: consumer 0 left (detaches): process")))
        t.equal(found, expected, f"lines with {options}: {lines}")
wrong = t.run([t.STOUPD, "--store", store, "--pool", "x", "--log-level", "loud"], expect=2)
t.true("not one of error, warning, info, debug" in wrong.stderr, wrong.stderr)

# ---- the unit ------------------------------------------------------------------------------------------
unit = text_of(os.environ["STOUP_BUILD_DIR"], "packages", "stoupd@.service")
t.true("@CMAKE" not in unit and '/bin/stoupd" --pool %i' in unit, "the unit was configured")
options = set(re.findall(r"--[a-z-]+", re.search(r"^ExecStart=.*$", unit, re.M).group()))
known = set(re.findall(r"--[a-z-]+", t.run([t.STOUPD, "--help"]).stdout))
t.true(options and options <= known, f"options of the unit: {options - known}")
root = t.temp_dir()
if shutil.which("systemd-analyze"):
    path = os.path.join(root, "stoupd@prices.service")
    with open(path, "w") as out:
        out.write(re.sub(r'^ExecStart="[^"]+"', f'ExecStart="{t.STOUPD}"', unit, flags=re.M))
    done = subprocess.run(["systemd-analyze", "--man=no", "verify", path], capture_output=True, text=True)
    t.true(done.returncode == 0 and "stoupd@" not in done.stderr, f"systemd-analyze verify: {done.stdout} {done.stderr}")
    help_text = t.run(["systemd-analyze", "--help"]).stdout
    if "--offline" in help_text:
        done = subprocess.run(["systemd-analyze", "security", "--no-pager", "--offline=yes", "--threshold=15", path],
                              capture_output=True, text=True)
        t.true(done.returncode == 0, f"exposure above 1.5: {done.stdout} {done.stderr}")
        print(done.stdout.strip().splitlines()[-1])
else:
    print("note: systemd-analyze is not installed: the unit is not verified")
if shutil.which("systemd-analyze") and shutil.which("strace") and not os.environ.get("STOUP_SANITIZED"):
    # Each call that a served pool makes is one that the unit's filter lets through.
    groups, group = {}, None
    for line in t.run(["systemd-analyze", "--no-pager", "syscall-filter"]).stdout.splitlines():
        if re.match(r"@|# ", line):
            group = groups.setdefault(line.strip(), set())
        elif line.strip() and not line.strip().startswith("#") and group is not None:
            group.add(line.strip())

    def calls_in(word):
        return set().union(*map(calls_in, groups[word])) if word in groups else {word}

    allowed = calls_in("@system-service")
    for word in re.search(r"^SystemCallFilter=~(.*)$", unit, re.M).group(1).split():
        allowed -= calls_in(word)
    trace = os.path.join(root, "trace")
    daemon = t.Daemon(store, "8M", prefix=["strace", "-f", "-qq", "-e", "signal=none", "-o", trace],
                      options=["--spin", "1ms", *(["--mlock"] if os.geteuid() == 0 else [])], wait=False)
    if daemon.ready == "ready\n":
        t.Worker(daemon.pool, name).finish()
        os.kill(daemon.stat()["daemon_pid"] if "daemon_pid" in daemon.stat() else daemon.stat()["pid"], signal.SIGTERM)
        daemon.process.wait(60)
        made = set(re.findall(r"^\d+ +(\w+)\(", text_of(trace), re.M))
        t.true("openat" in made and len(made) > 20, f"calls: {made}")
        # cachestat is younger than most filters, and asked for with another way at hand.
        t.equal(made - allowed - {"execve", "cachestat", "syscall_0x1c3"}, set(), "calls that the unit's filter refuses")
        print(len(made), "system calls, all within the filter")
    else:
        print("note: strace may not trace here:", daemon.ready, daemon.stderr())
if shutil.which("systemd-sysusers") and os.geteuid() == 0:
    os.makedirs(os.path.join(root, "etc"))
    t.run(["systemd-sysusers", f"--root={root}", os.path.join(PACKAGING, "systemd", "sysusers.conf")])
    group = re.search(r"^stoup:[^:]*:(\d+):", text_of(root, "etc/group"), re.M)
    user = re.search(r"^stoupd:[^:]*:(\d+):(\d+):", text_of(root, "etc/passwd"), re.M)
    t.true(group and user and user.group(2) == group.group(1) and int(user.group(1)) < 1000, "a system user of the group")
    if shutil.which("systemd-tmpfiles"):
        t.run(["systemd-tmpfiles", f"--root={root}", "--create", os.path.join(PACKAGING, "systemd", "tmpfiles.conf")])
        st = os.stat(os.path.join(root, "run/stoup"))
        t.equal((st.st_uid, st.st_gid, st.st_mode & 0o7777), (int(user.group(1)), int(group.group(1)), 0o755), "/run/stoup")

# ---- containers ----------------------------------------------------------------------------------------
profile = json.loads(text_of(PACKAGING, "container", "seccomp.json"))
denied = {call for rule in profile["syscalls"] if rule["action"] != "SCMP_ACT_ALLOW" for call in rule["names"]}
needed = {"io_uring_setup", "io_uring_enter", "io_uring_register", "memfd_create", "mlock", "pidfd_open", "madvise"}
t.equal((profile["defaultAction"], denied & needed), ("SCMP_ACT_ALLOW", set()), "the profile")
t.true({"mount", "unshare", "bpf", "ptrace", "kexec_load", "init_module"} <= denied, "what a container has no use for")
compose, image = (text_of(PACKAGING, "container", file) for file in ("compose.yaml", "Containerfile"))
size, shm = (int(re.search(pattern, compose).group(1)) for pattern in (r'"--size", "(\d+)G"', r"shm_size: (\d+)m"))
t.true(shm >= size * 1024 + 64, f"shm_size {shm}m for a pool of {size}G")
used = set(re.findall(r'"(--[a-z-]+)"', compose)) | set(re.findall(r" (--(?:store|pool|size|group))", image))
t.true(used <= known, f"options of the container files: {used - known}")
build = set(re.search(r"packages=\((.*?)\)", text_of(SOURCE, "test.sh"), re.S).group(1).split())
listed = set(re.search(r"AS build\nRUN apt-get update.*?recommends (.*?)\nCOPY", image, re.S).group(1).replace("\\", "").split())
t.true(listed <= build, f"packages to build with: {listed - build}")
print("ok", flush=True)
