# SPDX-License-Identifier: Apache-2.0
"""An automatic daemon keeps to the directory that its pool's name stands for, wherever its path leads later.

Its name is a number of the file system. While the daemon lives, no other directory may get that number, and what it
serves is that directory: else another store's readers would be given this one's records, or none.
"""
import json
import os
import shutil

import lib_stoup as t

runtime = t.temp_dir()
os.environ["XDG_RUNTIME_DIR"] = runtime
place = t.temp_dir()
name = t.name_of("AAA")


def stat(path):
    return json.loads(t.run([t.STOUP, "stat", "--json", path]).stdout)


def daemon_dirs(pid):
    found = []
    for fd in os.listdir(f"/proc/{pid}/fd"):
        try:
            seen = os.stat(f"/proc/{pid}/fd/{fd}")
        except OSError:
            continue
        found.append((seen.st_dev, seen.st_ino))
    return found


store, first = t.make_store(3_000, directory=place)
seen = os.stat(store)
keeper = t.Worker(store + "/", name, "--wait")
keeper.wait_scanned()
served = stat(store + "/")
pid = served["pid"]

# 1. Another store takes its path: a monitor sees that the daemon goes on with what it has.
away = os.path.join(place, "away")
os.rename(store, away)
second_path, second = t.make_store(5_000, directory=place)
t.equal(second_path, store, "the same path")
rescans = served["counters"]["rescans"]
os.kill(pid, 1)
t.until(lambda: stat(away + "/")["counters"]["rescans"] > rescans, "it looks at its store")
now = stat(away + "/")
t.equal((now["pid"], now["counters"]["snapshot"]), (pid, served["counters"]["snapshot"]), "nothing new in its own directory")

# 2. The directory goes while somebody still reads: its number does not come again.
shutil.rmtree(away)
os.kill(pid, 1)
t.true((seen.st_dev, seen.st_ino) in daemon_dirs(pid), "the directory is kept")
made = [os.path.join(place, f"d{n}") for n in range(200)]
for path in made:
    os.mkdir(path)
t.equal([path for path in made if os.stat(path).st_ino == seen.st_ino], [], "its number is in use")

# 3. Who comes by the path means the store that is there.
(found,) = t.Worker(store + "/", name).finish()
second["AAA"].check(found, "the store in its place")
keeper.finish()

# 4. A session's own directory is another one for a job of cron than for a login: both share one daemon.
other_path, other = t.make_store(4_000, directory=t.temp_dir())
without = {key: value for key, value in os.environ.items() if key != "XDG_RUNTIME_DIR"}
keeper = t.Worker(other_path + "/", name, "--wait", env=without)
keeper.wait_scanned()
pid = stat(other_path + "/")["pid"]
(found,) = t.Worker(other_path + "/", name).finish()
other["AAA"].check(found, "from another session")
t.equal(stat(other_path + "/")["pid"], pid, "the same daemon")
keeper.finish()
