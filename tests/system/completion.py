# SPDX-License-Identifier: Apache-2.0
"""Completion for bash knows exactly the commands and options that the programs tell, offers values that they take,
and finds stores, pools and series; in a bash without any other completion."""
import os
import pty
import re
import shlex
import shutil
import subprocess

import lib_stoup as t

SOURCE = os.environ["STOUP_SOURCE_DIR"]
SCRIPT = os.path.join(SOURCE, "docs", "completion", "stoup.bash")
OPTION = r"(?<![\w-])--[a-z][a-z-]*"
work = t.temp_dir()
os.environ["PATH"] = t.BIN + ":" + os.environ["PATH"]
os.environ["XDG_RUNTIME_DIR"] = os.path.join(work, "run")
os.mkdir(os.environ["XDG_RUNTIME_DIR"], 0o700)

if not shutil.which("bash"):
    print("bash is not installed")
    raise SystemExit(t.SKIP)


def complete(*words, program=None):
    """What is offered for the last word."""
    program = program or words[0]
    line = " ".join(map(shlex.quote, words))
    script = f""". {shlex.quote(SCRIPT)}
COMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; COMP_LINE={shlex.quote(line)}; COMP_POINT=${{#COMP_LINE}}
_{program}; printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    done = subprocess.run(["bash", "--norc", "--noprofile", "-u", "-c", script], capture_output=True, text=True,
                          cwd=work, timeout=60)
    # compopt is for a completion that bash itself began: elsewhere it says so and nothing else.
    t.equal((done.returncode, done.stderr), (0, ""), f"completing {words}")
    return {line for line in done.stdout.splitlines() if line}


def words_of(function, *arguments):
    done = subprocess.run(["bash", "--norc", "--noprofile", "-c", f'. "$0"; {function} "$@"', SCRIPT, *arguments],
                          capture_output=True, text=True, check=True)
    return done.stdout.split()


# ---- commands and options: those of the help texts, no more and no fewer -------------------------------------
text = t.run([t.STOUP, "help"]).stdout
commands = re.findall(r"^  (\w+)", text, re.M)
t.equal(complete("stoup", ""), {*commands, "help", "version", "--help", "--version"}, "commands")
t.equal(complete("stoup", "help", ""), set(commands), "commands to help with")
t.equal(complete("stoup", "he"), {"help"}, "the beginning of a command")
options = {}
for command in commands:
    options[command] = set(re.findall(OPTION, t.run([t.STOUP, "help", command]).stdout)) | {"--help"}
    t.equal(complete("stoup", command, "--"), options[command], f"options of stoup {command}")
    t.run([t.STOUP, command, "--help"])
options["stoupd"] = set(re.findall(OPTION, t.run([t.STOUPD, "--help"]).stdout))
t.equal(complete("stoupd", "--"), options["stoupd"], "options of stoupd")
t.equal(complete("stoupd", "--mon"), {"--monitor-user", "--monitor-group"}, "the beginning of an option")

# ---- values: an option has one where its help says so -----------------------------------------------------------
for command, known in options.items():
    shown = t.run([t.STOUPD, "--help"] if command == "stoupd" else [t.STOUP, "help", command]).stdout
    with_value = set(re.findall(rf"(?:^ +|, )({OPTION}) (?:[A-Z]+\b|[a-z]+\||[a-z]\w+ {{2,}})", shown, re.M))
    for option in known:
        t.equal(bool(words_of("_stoup_values", command, option)), option in with_value,
                f"{command} {option} is followed by a value")

# ---- values: each that is offered is taken, and another is not --------------------------------------------------
schemas = set(re.findall(r'(?:SCHEMA|BARS)\("([^"]+)"|\.name = "(event64)"', open(
    os.path.join(SOURCE, "shm", "schema_builtin.c"), encoding="utf-8").read()))
schemas = {name for pair in schemas for name in pair if name}
t.equal(set(words_of("_stoup_values", "ingest", "--schema")) - {"<file>"}, schemas, "built-in schemas")
csv = os.path.join(work, "in.csv")
with open(csv, "w", encoding="ascii") as out:
    out.write("1700000000000000000,1\n")


def refused(command, option, value):
    """Does the program refuse the value as such: usage, exit status 2?"""
    if command == "stoupd":
        argv = [t.STOUPD, "--store", work + "/absent", "--pool", "c" + str(os.getpid()), option, value]
    elif command in ("cat", "replay"):
        argv = [t.STOUP, command, option, value, work + "/absent/", "A/b"]
    elif command == "check":
        argv = [t.STOUP, command, option, value, work + "/absent/"]
    elif command == "compact":
        argv = [t.STOUP, "compact", option, value, work + "/absent/"]
    elif command == "export":
        argv = [t.STOUP, "export", "--format", "dbn", option, value, work + "/absent/", "A/b"]
    else:
        argv = [t.STOUP, command, "--store", work + "/absent/absent", option, value, work + "/absent.csv"]
    return t.run(argv, expect=None).returncode == 2


tried = 0
for command, known in options.items():
    for option in known - {"--schema", "--store"}:
        values = [value for value in words_of("_stoup_values", command, option) if not value.startswith("<")]
        for value in values:
            t.true(not refused(command, option, value), f"{command} refuses {option} {value}")
            tried += 1
        if values and option not in ("--time-format", "--delimiter"):  # these take texts of one's own
            t.true(refused(command, option, "bogus"), f"{command} takes {option} bogus")
            # And the other way round: of the words beside the option in the help text, those that it takes.
            shown = t.run([t.STOUPD, "--help"] if command == "stoupd" else [t.STOUP, "help", command]).stdout
            beside = re.search(rf"^ +{option} (.*(?:\n {{12,}}.*)*)", shown, re.M).group(1)
            for word in set(re.findall(r"\b[a-z][a-z0-9_]+\b", beside)) - set(values):
                t.true(refused(command, option, word), f"{command} takes {option} {word}, which is not offered")
t.true(tried > 25, f"values tried: {tried}")
t.equal(complete("stoup", "ingest", "--codec", ""), {"default", "fast", "small", "none", "lz4", "lz4hc", "zstd"}, "codecs")
t.equal(complete("stoup", "ingest", "--codec", "lz"), {"lz4", "lz4hc"}, "codecs from lz on")
t.equal(complete("stoup", "ingest", "--level", ""), set(), "levels cannot be guessed")
t.equal(complete("stoupd", "--backing", "m"), {"memfd"}, "backings")

# ---- files, stores, pools, series ----------------------------------------------------------------------------------
symbols = {"AAA": 11, "ABB": 12}
store, _ = t.make_store(200, symbols, directory=os.path.join(work))
t.equal(complete("stoup", "ingest", "--store", "st"), {"store"}, "stores are directories")
t.equal(complete("stoup", "ingest", "--store", "store", "in"), {"in.csv"}, "files to ingest")
t.equal(complete("stoup", "ls", ""), {"run", "store"}, "stores to list")
names = {t.name_of(symbol) for symbol in symbols}
t.equal(complete("stoup", "ls", "--json", "store", ""), names, "series of a store")
t.equal(complete("stoup", "cat", "store/", "XTST.TEST/AA"), {t.name_of("AAA")}, "series of a store, begun")
t.equal(complete("stoup", "cat", "--merge", "store/", t.name_of("AAA"), "XTST.TEST/AB"), {t.name_of("ABB")}, "one more series")
t.equal(complete("stoup", "cat", "--limit", "5", "store/", "XTST.TEST/AB"), {t.name_of("ABB")}, "behind options")
daemon = t.Daemon(store)
t.true(daemon.pool in complete("stoup", "stat", daemon.pool[:3]), "the pool that runs")
t.true({"store", daemon.pool} <= complete("stoup", "cat", ""), "pools and stores")
t.equal(complete("stoup", "cat", daemon.pool, ""), names, "series of a pool")
t.equal(complete("stoup", "bench", daemon.pool, "--series", "XTST.TEST/AB"), {t.name_of("ABB")}, "series to measure")
t.equal(complete("stoup", "log", daemon.pool, ""), set(), "log has one argument")
daemon.stop()
t.true("root" in complete("stoupd", "--allow-user", "ro"), "users")
t.equal(complete("stoup", "nonsense", "--"), set(), "an unknown command")

# ---- the key itself, in an interactive shell on a terminal ------------------------------------------------------------
def press(typed):
    """The line that stands on a terminal after keys were pressed, as `echo` repeats it."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(work)
        os.environ |= {"PS1": "$ ", "TERM": "dumb", "INPUTRC": "/dev/null"}
        os.execvp("bash", ["bash", "--norc", "--noprofile", "-i"])
    os.write(terminal, f". {shlex.quote(SCRIPT)}; stoup() {{ printf '<%s>' \"$@\"; echo; }}\n{typed}\nexit\n".encode())
    seen = b""
    try:
        while chunk := os.read(terminal, 4096):
            seen += chunk
    except OSError:  # the terminal's other end is closed
        pass
    os.waitpid(pid, 0)
    found = re.findall(r"^(<.*>)\r$", seen.decode(), re.M)
    t.true(found, f"nothing was printed: {seen!r}")
    return found[-1]


try:
    os.close(os.open("/dev/ptmx", os.O_RDWR | os.O_NOCTTY))
except OSError:
    print("note: no terminals here (/dev/pts is not mounted): no keys are pressed")
else:
    t.equal(press("stoup ing\t--codec sm\t--store st\t in.c\t"),
            "<ingest><--codec><small><--store><store/><in.csv>", "keys on a terminal")

if shutil.which("shellcheck"):
    t.equal(t.run(["shellcheck", SCRIPT], expect=None).stdout, "", "shellcheck")
