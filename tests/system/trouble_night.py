# SPDX-License-Identifier: Apache-2.0
"""The steps of docs/trouble.md, "What a step of the night leads to", lead there: a damaged block is mended under a daemon that serves, by
a backup, by its source, and by repair; a full disk changes nothing; a starved pool gets on when the holder that is named ends.
"""
import os
import resource
import shutil
import subprocess

import lib_stoup as t

SERIES = t.name_of("AAA")


def volume_of(store):
    (name,) = [name for name in os.listdir(store) if name.endswith(".stoup")]
    return os.path.join(store, name)


def damage(path):
    with open(path, "r+b") as file:
        file.seek(64 + 10)
        byte = file.read(1)[0]
        file.seek(64 + 10)
        file.write(bytes([byte ^ 0x40]))


def broken(directory):
    """A daemon whose store has one damaged block; the backup, what the scan says, and its file."""
    store, totals = t.make_store(5_200, directory=directory)
    backup = os.path.join(directory, "backup")
    shutil.copytree(store, backup)
    path = volume_of(store)
    damage(path)
    daemon = t.Daemon(store, "4M")
    refused = t.run([t.STOUP, "cat", daemon.pool, SERIES], expect=1)
    t.true("stoup verify" in refused.stderr and os.path.basename(path) in refused.stderr, refused.stderr)
    t.true(os.path.basename(path) in t.run([t.STOUP, "log", daemon.pool]).stdout, "the log names the file")
    t.run([t.STOUP, "verify", store], expect=1)
    return daemon, store, backup, path, totals["AAA"]


def whole(daemon, totals, what):
    def served():
        done = t.run([t.WORKER, daemon.pool, SERIES], expect=None)
        return done.returncode == 0
    t.until(served, what)
    (found,) = t.Worker(daemon.pool, SERIES).finish()
    totals.check(found, what)
    t.equal(daemon.stop(), 0, "the daemon's end")


# 3: a backup, copied beside under a name with a dot and renamed.
daemon, store, backup, path, totals = broken(t.temp_dir())
beside = os.path.join(store, ".back")
shutil.copy(volume_of(backup), beside)
os.rename(beside, path)
whole(daemon, totals, "the volume of the backup")

# 4: the source again.
directory = t.temp_dir()
daemon, store, backup, path, totals = broken(directory)
source = os.path.join(directory, "again.dbn")
t.dbn_file(source, {"AAA": 11}, (t.mbo(*row, sequence=n) for n, row in enumerate(t.mbo_records(5_200, {"AAA": 11}))))
t.run([t.STOUP, "ingest", "--store", store, "--replace", "--quiet", source])
whole(daemon, totals, "the source, ingested again")

# 5: neither.
daemon, store, backup, path, totals = broken(t.temp_dir())
t.run([t.STOUP, "verify", "--repair", store], expect=None)
t.run([t.STOUP, "verify", store])
t.true([name for name in os.listdir(store) if name.endswith(".damaged")], f"the old file is kept: {os.listdir(store)}")
t.until(lambda: t.run([t.WORKER, daemon.pool, SERIES], expect=None).returncode == 0, "what is left is served")
t.true(0 < int(t.run([t.STOUP, "cat", daemon.pool, SERIES, "--count"]).stdout.split()[-1].replace(",", "")) < 5_200, "and less than there was")
t.equal(daemon.stop(), 0, "the daemon's end")

# A disk that takes no more (here: a largest size of files) leaves the store as it was, and its daemon serves.
directory = t.temp_dir()
store, totals = t.make_store(5_200, directory=directory)
before = sorted(os.listdir(store))
daemon = t.Daemon(store, "4M")
source = os.path.join(directory, "more.dbn")
t.dbn_file(source, {"BBB": 12}, (t.mbo(*row, sequence=n) for n, row in enumerate(t.mbo_records(5_200, {"BBB": 12}))))
full = subprocess.run([t.STOUP, "ingest", "--store", store, "--codec", "none", source], capture_output=True, text=True,
                      preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000)))
t.equal(full.returncode, 1, full.stderr)
t.true("the store is unchanged" in full.stderr, full.stderr)
t.equal(sorted(os.listdir(store)), before, "the store")
t.run([t.STOUP, "ingest", "--store", store, "--quiet", source])
t.until(lambda: t.run([t.WORKER, daemon.pool, t.name_of("BBB")], expect=None).returncode == 0, "and then the command again")
whole(daemon, totals["AAA"], "what was there before")

# A starved pool: the first row of holders is who to end, and then the others go on.
store, totals = t.make_store(40_000, {"AAA": 11, "BBB": 12})
daemon = t.Daemon(store, "512K", options=["--lease-bytes", "512K"])
holder = t.Worker(daemon.pool, SERIES, "--hold", 6, "--wait", "--gate")
for span in range(6):
    t.equal(holder.line(), {"ready": True}, f"span {span}")
    if span < 5:
        holder.step()
t.until(lambda: "starved" in t.run([t.WORKER, "--hold", "3", "--timeout", "3000", daemon.pool, t.name_of("BBB")], expect=None).stdout,
        "a worker starves")
rows = t.run([t.STOUP, "holders", daemon.pool]).stdout
t.true(str(holder.pid) in rows, f"who holds: {rows}")
holder.kill()
t.until(lambda: t.run([t.WORKER, daemon.pool, t.name_of("BBB")], expect=None).returncode == 0, "the others go on")
t.equal(daemon.stop(), 0, "the daemon's end")
print("ok", flush=True)
