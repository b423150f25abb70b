# SPDX-License-Identifier: Apache-2.0
"""`stoup stat`, `top`, `holders` and `log` without a POOL: the only one whose daemon lives; of more they are listed, exit status 2."""
import json
import signal
import sys

import lib_stoup as t

if not t.alone():
    print("needs root, and mount namespaces, to see no pools of others: skipped")
    sys.exit(t.SKIP)
store, _ = t.make_store(3_000)


def asked(command, *options, expect):
    return t.run([t.STOUP, command, *options], expect=expect)


# None: what makes one is told.
for command in ("stat", "top", "holders", "log"):
    done = asked(command, expect=2)
    t.equal((done.stdout, done.stderr),
            ("", f"stoup {command}: a POOL is wanted, and there is none of this user or of the system; mend: stoupd --store STORE "
                 "--pool NAME, or the path of a store with a slash\n"), "none")

# One: it, named on stderr, so that what is printed stays what it is with a name.
first = t.Daemon(store, "4M")
worker = t.Worker(first.pool, t.name_of("AAA"), "--hold", 1, "--wait")
worker.wait_scanned()
t.until(lambda: first.counter("leases") == 1, "it holds")
for command, options in (("stat", ()), ("top", ("--once",)), ("holders", ()), ("log", ())):
    done = asked(command, *options, expect=0)
    t.equal(done.stderr, f"stoup {command}: of pool '{first.pool}', the only one\n", "which")
    t.true(first.pool in done.stdout, done.stdout)
t.equal(json.loads(asked("stat", "--json", expect=0).stdout)["pool"], first.pool, "JSON")
t.equal(json.loads(asked("holders", "--json", expect=0).stdout)["holders"][0]["pid"], worker.pid, "JSON of holders")
t.equal(len(asked("stat", "--watch=0.01", "--count", "2", "--json", expect=0).stdout.splitlines()), 2, "--watch")
t.equal(asked("stat", "--watch", "0.01", "--count", "2", expect=0).stderr, f"stoup stat: of pool '{first.pool}', the only one\n",
        "a lone number after --watch is the seconds")
numbered = t.Daemon(store, "1M", pool="7")
t.equal(json.loads(asked("stat", "--watch", "7", "--count", "1", "--json", expect=0).stdout)["pool"], "7", "unless a pool is called so")
numbered.stop()
for series, held in ((t.name_of("AAA"), [worker.pid]), ("*/AAA/*", [worker.pid]), (t.name_of("BBB"), [])):
    done = asked("holders", "--json", series, expect=0)
    t.equal(done.stderr, f"stoup holders: of pool '{first.pool}', the only one\n", f"{series} is a series")
    t.equal([h["pid"] for h in json.loads(done.stdout)["holders"]], held, series)
for path in ("none/at/all/", "./none", "/none/at"):
    t.true("No such file" in asked("holders", path, expect=1).stderr, f"{path} is a path")

# Two: listed, none is guessed.
second = t.Daemon(store, "8M")
for command in ("stat", "top", "holders", "log"):
    done = asked(command, expect=2)
    t.equal(done.stdout, "", "nothing is shown")
    lines = done.stderr.splitlines()
    t.equal(lines[0], f"stoup {command}: a POOL is wanted, one of these:", "what is wanted")
    t.equal(sorted(lines[1:]), sorted([f"  running    {first.pool}: 4.0 MiB, 1 consumer, store {store}",
                                       f"  running    {second.pool}: 8.0 MiB, 0 consumers, store {store}"]), "which there are")
second.process.send_signal(signal.SIGSTOP)
t.until(lambda: f"  suspended  {second.pool}: " in asked("stat", expect=2).stderr, "one that is stopped lives")
second.process.send_signal(signal.SIGCONT)

# One lives, and others were killed: the one; a few of the dead are named where there is a choice.
second.kill()
t.equal(asked("stat", expect=0).stderr, f"stoup stat: of pool '{first.pool}', the only one whose daemon lives\n", "the living")
for _ in range(9):
    t.Daemon(store, "1M").kill()
first.kill()
lines = asked("stat", expect=2).stderr.splitlines()
t.equal((len(lines), [line.split()[0] for line in lines[1:9]], lines[-1]),
        (10, ["dead"] * 8, "  and 3 more, whose daemons ended"), "of eleven dead ones eight are shown")
worker.finish()

# Usage stays usage.
t.true("one POOL is wanted" in asked("top", "a", "b", expect=2).stderr, "two")
t.true("one POOL is wanted, and at most one SERIES" in asked("holders", "a", "b", "c", expect=2).stderr, "three")
t.true("--count: only with --watch" in asked("stat", "--count", "2", expect=2).stderr, "before a pool is looked for")
for option in ("--counters", "--histograms", "--all"):
    t.true("--watch shows rates" in asked("stat", "--watch", option, expect=2).stderr, f"--watch {option}")
for command in ("stat", "top", "holders", "log", "check"):
    for name in ("", "a b", "-x" if command == "check" else ".x", "x" * 100):
        t.true(asked(command, "--", name, expect=2).stderr.startswith(f"stoup {command}: '{name[:50]}"), f"{command} {name!r}")
