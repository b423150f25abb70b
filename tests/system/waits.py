# SPDX-License-Identifier: Apache-2.0
"""How both sides wait: modes of the library, --spin and --cpus of the daemon, and what these cost in wake-ups."""
import glob
import mmap
import os

import lib_stoup as t

NAME = t.name_of("AAA")
ASLEEP = 1152  # in struct stoup_control
store, totals = t.make_store(60_000, block="64K", codec="zstd")
cpus = sorted(os.sched_getaffinity(0))


def scan(daemon, *options):
    (result,) = t.Worker(daemon.pool, NAME, *options).finish()
    totals["AAA"].check(result, f"{options}")
    return result


def doorbells(daemon, of_a_sleeper):
    """Rung by a reader for one block after the other: each when the conductor is seen asleep, or as fast as it can."""
    with open(f"/dev/shm/stoup.{os.geteuid()}.{daemon.pool}.ctl", "rb") as control:
        words = mmap.mmap(control.fileno(), 0, prot=mmap.PROT_READ)
    worker = t.Worker(daemon.pool, NAME, "--ahead", -1, "--gate")
    while "ready" in (line := worker.line()):
        if of_a_sleeper:
            t.until(lambda: words[ASLEEP] == 1, "the conductor falls asleep")
        worker.step()
    totals["AAA"].check(line, "one block after the other")
    worker.finish()
    return line["doorbells"]


# ---- what the library may do while it waits: spin and then sleep, spin, sleep at once ------------------------
daemon = t.Daemon(store, "1M")
for mode in (0, 1, 2):
    t.true(scan(daemon, "--wait-mode", mode, "--ahead", -1)["misses"] > 50, "nothing was in the pool")
refused = t.Worker(daemon.pool, NAME, "--wait-mode", 3).finish(expect=1)[0]
t.true("options.wait 3" in refused["text"], refused["text"])
# It wakes by itself now and then, and may just do so.
asleep = doorbells(daemon, True)
t.true(asleep >= 10, f"a conductor that sleeps is woken: {asleep} doorbells")
daemon.stop()

# ---- a conductor that spins is asked without a system call ----------------------------------------------------
daemon = t.Daemon(store, "1M", options=["--spin", "1s"])
t.equal(daemon.stat()["spin_ns"], 1_000_000_000, "shown")
# It falls asleep where the reader has no processor for a second.
spun = doorbells(daemon, False)
t.true(spun <= 25, f"{spun} doorbells of a conductor that spins, {asleep} of one that sleeps")
print(f"{asleep} doorbells of a conductor that sleeps, {spun} of one that spins")
for mode in (1, 2):
    scan(daemon, "--wait-mode", mode)
t.true("polls for 1000000.0 us" in t.run([t.STOUP, "stat", daemon.pool]).stdout, "shown in words")
t.equal(daemon.stop(), 0, "a conductor that spins hears SIGTERM")

# ---- decode workers stay where they are put -------------------------------------------------------------------
for options, expected in ((["--cpus", str(cpus[-1])], [cpus[-1]]),
                          (["--cpus", ",".join(map(str, cpus[::-1]))], cpus[::-1]),
                          (["--cpus", str(cpus[0]), "--threads", "2", "--spin", "50us"], [cpus[0]] * 2)):
    daemon = t.Daemon(store, "1M", options=options)
    found, others = [], None
    for task in glob.glob(f"/proc/{daemon.process.pid}/task/*"):
        with open(f"{task}/comm", encoding="ascii") as comm, open(f"{task}/status", encoding="ascii") as status:
            allowed = [line.split()[1] for line in status if line.startswith("Cpus_allowed_list")]
            if comm.read() == "stoup-decode\n":
                found += allowed
            elif task.endswith(f"/{daemon.process.pid}"):
                others = allowed[0]
    t.equal(sorted(found), sorted(map(str, expected)), f"{options}: where the workers are")
    free = sorted(set(cpus) - set(expected))
    if len(cpus) == 2:
        t.equal(others, str(free[0]) if free else f"{cpus[0]}-{cpus[-1]}", f"{options}: where the conductor is")
    t.equal(daemon.stat()["decode_threads"], len(expected), f"{options}: workers")
    t.true(str(expected[0]) in daemon.stat()["decode_cpus"], "shown")
    t.true(" on processors " in t.run([t.STOUP, "stat", daemon.pool]).stdout, "shown in words")
    scan(daemon)
    daemon.stop()

daemon = t.Daemon(store, "1M")
t.equal((daemon.stat()["decode_cpus"], daemon.stat()["spin_ns"]), ("", 0), "neither pinned nor spinning by default")
daemon.stop()

for value, words in (("x", "a list of processors is wanted"), ("", "a list of processors is wanted"),
                     (f"{cpus[0]},{cpus[0]}", "named twice"), ("9999", "processor 9999 is none")):
    done = t.run([t.STOUPD, "--store", store, "--pool", "nopool", "--cpus", value], expect=2)
    t.true(words in done.stderr and "--cpus" in done.stderr, done.stderr)
for value in ("2s", "-1us", "fast"):
    done = t.run([t.STOUPD, "--store", store, "--pool", "nopool", "--spin", value], expect=2)
    t.true("--spin" in done.stderr, done.stderr)
