# SPDX-License-Identifier: Apache-2.0
"""Every `stoup` command that running text of docs/operating.md, trouble.md, metrics.md, counters.md and stat-json.md shows runs, with a pool, a store and a series
in place of their words. What changes a store or ends something comes last.
"""
import os
import re
import shutil
import subprocess

import lib_stoup as t

SOURCE = os.environ["STOUP_SOURCE_DIR"]
ELSEWHERE = {  # run by the tests that are named
    r"stoup exporter --listen \S+": "exporter_http.py",
    r"stoup top POOL": "top_screen.py",
}
FRAGMENT = r"stoup \w+( --?[\w-]+)*"  # a name alone, or an option of it, for the eye
LATE = r"^stoup (rm|compact|unpin)|--repair|--replace"

commands = []
for name in ("operating.md", "trouble.md", "metrics.md", "counters.md", "stat-json.md"):
    with open(os.path.join(SOURCE, "docs", name), encoding="utf-8") as text:
        text = re.sub(r"^ *```.*?^ *```", "", text.read(), flags=re.M | re.S)
    commands += [" ".join(found.split()) for found in re.findall(r"`(stoup [^`]+)`", text)]
commands = sorted(dict.fromkeys(commands), key=lambda command: re.search(LATE, command) is not None)

store, _ = t.make_store(20_000)
directory = os.path.dirname(store)
shutil.copytree(store, os.path.join(directory, "copy"))
os.symlink(store, os.path.join(directory, "ticks"))
source = os.path.join(directory, "again.dbn")
t.dbn_file(source, {"AAA": 11}, (t.mbo(*row, sequence=n) for n, row in enumerate(t.mbo_records(20_000, {"AAA": 11}))))
daemon = t.Daemon(store, "16M", options=["--pin-max", "50%"])
env = dict(os.environ, PATH=os.path.dirname(t.STOUP) + ":" + os.environ["PATH"])
total = 0
for command in commands:
    if any(re.fullmatch(pattern, command) for pattern in ELSEWHERE):
        continue
    if re.fullmatch(FRAGMENT, command) and command != "stoup exporter --once":
        continue
    ready = command.replace("[", "").replace("]", "").replace("--watch", "--watch --count 2")
    times = iter(("2023-11-14", "2033-11-15"))
    ready = re.sub(r"\bTIME\b", lambda _: next(times), ready).replace(" A B", " STORE COPY")
    for word, value in (("POOL", daemon.pool), ("SERIES...", t.name_of("AAA")), ("SERIES", t.name_of("AAA")), ("COPY", f"{directory}/copy"),
                        ("STORE", store), ("PATH", f"{directory}/new"), ("FILE", source), ("SIZE", "128K"), ("NAME", "fast")):
        ready = re.sub(rf"(?<![\w-]){re.escape(word)}(?!\w)", value, ready)
    done = subprocess.run(["bash", "-c", ready], cwd=directory, env=env, capture_output=True, text=True, timeout=60)
    # A check of this machine may well find something; it must not find fault with how it was called.
    t.true(done.returncode in ((0, 1) if " check " in ready else (0,)),
           f"`{command}` as `{ready}` gave {done.returncode}: {done.stderr}")
    total += 1
t.equal(daemon.stop(), 0, "the daemon's end")
t.true(total >= 20, f"commands: {total}")
print(f"ok, {total} commands", flush=True)
