#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""arm64_run.py - run the tests of an arm64 build under user-mode emulation; tests/arm64.sh calls it.

    arm64_run.py --build DIR --probe PROGRAM --emulator QEMU --root DIR --work DIR

  1. the probe (arm64_probe.c) says what this emulator does
  2. ctest: unit, layout, race and fault tests, on a processor with atomic instructions of their own (LSE)
  3. ctest: the tests of the lease protocol again, on one whose exchanges are load-linked loops
  4. with stoupd: arm64_scan.py on both, and the system tests of SYSTEM

What an emulator cannot do is in the tables below, with the ability that the probe tried. A test is left out,
or may fail, only for an ability that the probe found absent; with a better emulator it must pass. Every test
that is left out is named. The last line is the count of Check's tests and of programs; exit status 0 when
none failed.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree

TESTS = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(TESTS)
LSE, LOOPS = "max", "cortex-a53"
PROTOCOL = r"^race_test_|^unit_test_consumer_|^fault_"
SKIP = 77

WHY = {
    "quiet_clone": "the emulator has no clone without a signal, by which libstoup starts an automatic daemon",
    "fork_advice": "the emulator's madvise says that WIPEONFORK and DONTFORK are done, and does nothing",
    "direct_io": "statx of the emulator does not tell the alignments of O_DIRECT",
    "robust_list": "the emulator takes no list of robust futexes, by which the kernel marks a thread's end",
    "own_start": "the emulator makes up /proc/self/stat, and with it the start time by which others know stoupd",
}
# Programs that would wait for what never comes, and single tests of Check that fail for want of an ability.
LEFT_OUT = {
    "unit_test_consumer_auto": "quiet_clone",
    "unit_test_consumer_fork": "fork_advice",
    "unit_test_alive": "robust_list",
}
MAY_FAIL = {
    "unit_test_consumer_held": ("fork_advice", [
        "a_child_without_leases_keeps_what_it_inherited_mapped"]),
    "unit_test_consumer_room": ("fork_advice", [
        "a_child_goes_on_with_the_merge_of_its_parent_and_so_does_the_parent"]),
    "unit_test_consumer_wait": ("fork_advice", [
        "a_forked_child_is_told_to_attach_anew_and_disturbs_nothing"]),
    "unit_test_reader": ("direct_io", [
        "random_reads_return_the_bytes_of_the_file",
        "a_read_into_callers_memory_stays_inside_its_room",
        "a_file_with_requests_is_busy_and_a_removed_one_unknown",
        "a_cold_direct_read_leaves_the_page_cache_cold",
        "a_scan_behind_a_warm_beginning_does_not_warm_the_rest"]),
    "unit_test_reader_script": ("direct_io", [
        "a_direct_read_that_is_refused_makes_the_file_buffered",
        "a_direct_read_is_widened_and_its_unaligned_rest_is_buffered"]),
}
# System tests: those that are run, and why others are not. An ability is looked up, words are words.
SYSTEM = ["backings", "backward", "cat_range", "codecs", "direct", "fork_copies", "hostile", "hostile_socket",
          "large_request", "limits", "messages", "odd_consumers", "pipes", "rescan", "rescan_places", "small_pool",
          "takeover", "waits", "write_fault"]
SYSTEM_NEEDS = {
    "share": "own_start", "death": "own_start", "damage": "own_start", "monitor": "own_start",
    "namespaces": "own_start", "removed_name": "own_start", "read_faults": "own_start", "small_machine": "own_start",
    "access": "quiet_clone", "automatic": "quiet_clone", "automatic_busy": "quiet_clone",
    "event64": "quiet_clone", "numpy_files": "quiet_clone", "far_offsets": "quiet_clone", "places": "quiet_clone", "reconnect": "quiet_clone", "shortage": "quiet_clone",
}
SYSTEM_NOT = {
    "memory": "it measures memory, and would measure the emulator's",
    "no_io_uring": "it needs seccomp inside of the emulation; the scan above had no io_uring",
    "rescan_store": "it needs seccomp inside of the emulation",
    "cut_off": "it needs seccomp inside of the emulation",
    "check": "it needs seccomp inside of the emulation", "check_pools": "about this machine's kernel, which is asked",
    "service": "about files and texts; its unit names this machine's programs",
    "quiet": "it counts system calls, and would count the emulator's",
    "read_ahead": "it counts read-ahead by programs that nothing delays; on a loaded machine it fails as well",
    "hostile_user": "it asks the kernel for refusals that the emulator gives in its place",
    "crash_hooks": "it needs a build with hooks", "crash_writers": "it needs a build with hooks",
    "full_disk": "about files alone", "system_user": "about files and users alone",
    "bench_codec": "about measurements", "bench_command": "about measurements", "bench_suite": "about measurements",
    "csv_files": "it needs real data", "real_files": "it needs real data",
    "python_sweep": "it measures memory, and would measure the emulator's",
    "arrow_stream": "this machine's Python would load the library of another",
    "man_pages": "about texts", "source_rules": "about texts",
}

counts = {"passed": 0, "failed": 0, "skipped": 0}


def count(what, number, text=None):
    counts[what] += number
    if text:
        print(f"{what}: {text}", flush=True)


class Emulation:
    def __init__(self, args):
        self.build, self.work = os.path.abspath(args.build), os.path.abspath(args.work)
        self.command = [args.emulator, "-L", os.path.abspath(args.root)]
        self.able = {}
        self.probe = os.path.abspath(args.probe)
        self.tmp = os.path.join(self.work, "tmp")
        os.makedirs(self.tmp, exist_ok=True)

    def env(self, cpu):
        return dict(os.environ, QEMU_CPU=cpu, TMPDIR=self.tmp, QEMU_LD_PREFIX=self.command[2])

    def look(self, cpu):
        """{ability: yes} on a processor."""
        out = subprocess.run([*self.command, self.probe, self.probe], env=self.env(cpu), check=True,
                             capture_output=True, text=True).stdout
        for line in out.splitlines():
            print(f"{cpu}: {line}", flush=True)
        return {line.split()[0]: line.split()[1] == "yes" for line in out.splitlines()}

    def lacks(self, ability):
        return not self.able.get(ability, False)

    def wrappers(self, cpu):
        """A directory of programs that run those of the build, for scripts that start them by name."""
        folder = os.path.join(self.work, f"bin-{cpu}")
        os.makedirs(folder, exist_ok=True)
        for name in os.listdir(os.path.join(self.build, "bin")):
            path = os.path.join(folder, name)
            with open(path, "w", encoding="utf-8") as out:
                out.write("#!/bin/sh\nexec '" + "' '".join([*self.command, "-cpu", cpu,
                                                            os.path.join(self.build, "bin", name)]) + "' \"$@\"\n")
            os.chmod(path, 0o755)
        return folder


# ---- ctest --------------------------------------------------------------------------------------------
def judge(emulation, case):
    """Count a program of Check by its own words; its failures are excused by MAY_FAIL alone."""
    name, status = case.get("name"), case.get("status")
    out = case.findtext("system-out") or ""
    ran = re.search(r"^\d+%: Checks: (\d+), Failures: (\d+), Errors: (\d+)$", out, re.M)
    if status == "disabled" or case.find("skipped") is not None:
        count("skipped", 1, f"{name}: {out.strip().splitlines()[-1] if out.strip() else 'it says so itself'}")
        return
    if not ran:
        count("passed" if status == "run" else "failed", 1,
              None if status == "run" else f"{name}: {status}, no result of Check\n{out[-3000:]}")
        return
    total, bad = int(ran.group(1)), int(ran.group(2)) + int(ran.group(3))
    ability, tests = MAY_FAIL.get(name, (None, []))
    excused = {}
    for text in re.findall(r"^\S+:\d+:[FE]:\w+:\w+:\d+: .*$", out, re.M):
        test = text.split(":")[4]
        if test in tests and emulation.lacks(ability):
            excused[test] = excused.get(test, 0) + 1
        else:
            print(f"failed: {name}: {text}", flush=True)
    for test in excused:
        print(f"skipped: {name}: {test}: {WHY[ability]}", flush=True)
    # A case that returned before it began, where the reader of its turn is not to be had.
    idle = out.count("case left out")
    if idle:
        print(f"skipped: {name}: {idle} cases: {re.search('.*case left out.*', out).group()}", flush=True)
    count("passed", total - bad - idle)
    count("skipped", sum(excused.values()) + idle)
    count("failed", bad - sum(excused.values()))
    if bad == 0 and status != "run":
        count("failed", 1, f"{name}: {status} after its last test\n{out[-3000:]}")


def run_ctest(emulation, cpu, title, *select):
    print(f"\n---- {title}", flush=True)
    absent = [name for name, ability in LEFT_OUT.items() if emulation.lacks(ability)]
    listed = subprocess.run(["ctest", "--test-dir", emulation.build, "-N", *select], check=True,
                            capture_output=True, text=True).stdout
    for name in absent:
        if re.search(rf": {name}$", listed, re.M):
            count("skipped", 1, f"{name}: {WHY[LEFT_OUT[name]]}")
    # The models are programs of this machine, the storm and scripts are not programs of the build.
    leave = "|".join(f"^{name}$" for name in [*absent, "race_model"])
    result = os.path.join(emulation.work, f"ctest-{cpu}.xml")
    subprocess.run(["ctest", "--test-dir", emulation.build, "-j", str(os.cpu_count()), "--no-tests=error",
                    *select, "-E", leave, "--output-junit", result, "--test-output-size-failed", "1000000",
                    "--test-output-size-passed", "100000"],
                   env=emulation.env(cpu), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    cases = list(xml.etree.ElementTree.parse(result).getroot().iter("testcase"))
    if not cases:
        count("failed", 1, f"ctest ran nothing: see {result}")
    before = dict(counts)
    for case in cases:
        judge(emulation, case)
    print(f"{len(cases)} programs on {cpu}: {counts['passed'] - before['passed']} tests passed, "
          f"{counts['failed'] - before['failed']} failed, {counts['skipped'] - before['skipped']} skipped", flush=True)


# ---- scripts --------------------------------------------------------------------------------------------
def run_script(emulation, cpu, *command):
    env = dict(emulation.env(cpu), STOUP_BIN_DIR=emulation.wrappers(cpu),
               STOUP_LIB_DIR=os.path.join(emulation.build, "lib"), STOUP_BUILD_DIR=emulation.build,
               STOUP_SOURCE_DIR=SOURCE)
    env.pop("STOUP_DATA", None)
    name = os.path.splitext(os.path.basename(command[0]))[0]
    try:
        done = subprocess.run([sys.executable, "-B", *command], env=env, capture_output=True, text=True, timeout=600)
    except subprocess.TimeoutExpired:
        count("failed", 1, f"{name} on {cpu}: not within 600 s")
        return ""
    if done.returncode == SKIP:
        count("skipped", 1, f"{name}: {done.stdout.strip().splitlines()[-1:]}")
    elif done.returncode != 0:
        count("failed", 1, f"{name} on {cpu}: exit status {done.returncode}\n"
                           f"{done.stdout[-3000:]}{done.stderr[-3000:]}")
    else:
        count("passed", 1)
        print(f"{name} on {cpu}: passed", flush=True)
    return done.stdout


def run_system(emulation):
    reader = "pread" if emulation.lacks("io_uring") else "io_uring"
    print(f"\n---- ingest, stoupd and stoup cat from end to end, by {reader}", flush=True)
    for cpu in (LSE, LOOPS):
        print(run_script(emulation, cpu, os.path.join(TESTS, "arm64_scan.py"), reader), end="", flush=True)
    print("\n---- system tests", flush=True)
    for path in sorted(os.listdir(os.path.join(TESTS, "system"))):
        name, ending = os.path.splitext(path)
        if ending != ".py" or name.startswith("lib_"):
            continue
        ability = SYSTEM_NEEDS.get(name)
        if name in SYSTEM or (ability and not emulation.lacks(ability)):
            run_script(emulation, LSE, os.path.join(TESTS, "system", path))
        else:
            count("skipped", 1, f"{name}: {WHY[ability] if ability else SYSTEM_NOT.get(name, 'not tried here yet')}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, words in (("build", "the arm64 build"), ("probe", "arm64_probe.c, compiled for arm64"),
                        ("emulator", "qemu-aarch64"), ("root", "where arm64's ld.so and libraries are"),
                        ("work", "a directory for what the tests write")):
        parser.add_argument(f"--{name}", required=True, help=words)
    emulation = Emulation(parser.parse_args())

    print("---- what the emulator does")
    emulation.able = emulation.look(LSE)
    loops = emulation.look(LOOPS)
    for cpu, right in ((LSE, emulation.able.get("lse")), (LOOPS, loops.get("lse") is False)):
        count("passed" if right else "failed", 1,
              None if right else f"{cpu}: the emulated processor is not the one that the passes below are for")
    run_ctest(emulation, LSE, "unit, layout, race and fault tests, atomic instructions of their own", "-L",
              "^(unit|layout|race|fault)$")
    run_ctest(emulation, LOOPS, "tests of the lease protocol, load-linked loops", "-R", PROTOCOL)
    if os.path.exists(os.path.join(emulation.build, "bin", "stoupd")):
        run_system(emulation)
    else:
        count("skipped", 1, "scans and system tests: stoupd was not built")
    shutil.rmtree(emulation.tmp, ignore_errors=True)  # what tests that ended early have left
    print(f"\nemulation: {counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
