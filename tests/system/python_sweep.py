# SPDX-License-Identifier: Apache-2.0
"""The example sweep: 1 to 16 processes over one copy of the events. Memory is flat: beyond what as many interpreters take
without data, the data once and at most 1 MiB a worker; and what is found does not depend on the number of workers."""
import json
import os
import subprocess
import sys

import lib_stoup as t

SOURCE = os.environ["STOUP_SOURCE_DIR"]
MODULE = os.path.join(SOURCE, "consumer", "python")
EXAMPLE = os.path.join(MODULE, "examples", "sweep.py")
ENVIRONMENT = os.environ | {"PYTHONPATH": MODULE, "STOUP_LIB": os.environ["STOUP_LIB_DIR"]}
EVENTS = 500_000

if os.environ.get("STOUP_SANITIZED"):
    print("a sanitized library needs the sanitizer's runtime in front of Python: not run here")
    sys.exit(t.SKIP)
if not os.path.exists(os.path.join(MODULE, "stoup.py")):
    print("consumer/python/stoup.py is absent: the example is not run")
    sys.exit(t.SKIP)
for python in (sys.executable, "/usr/bin/python3"):
    if subprocess.run([python, "-c", "import numpy"], capture_output=True).returncode == 0:
        break
else:
    print("python3-numpy is not installed: the example is not run")
    sys.exit(t.SKIP)

work = t.temp_dir()
array = os.path.join(work, "events.npy")
make = f"""
import numpy as np
n = {EVENTS}
events = np.zeros(n, [("ev", "<u8"), ("exch_ts", "<i8"), ("local_ts", "<i8"), ("px", "<f8"), ("qty", "<f8"),
                      ("order_id", "<u8"), ("ival", "<i8"), ("fval", "<f8")])
events["ev"] = (3 << 30) | np.where(np.arange(n) % 8 == 0, 2, 1)
events["exch_ts"] = {t.T0} + np.arange(n) * 1000
events["local_ts"] = events["exch_ts"] + 500
events["px"] = 100 + np.cumsum((np.arange(n) * 2654435761 >> 7) % 3 - 1) * 0.5
np.save({array!r}, events)
"""
subprocess.run([python, "-c", make], check=True)
store = os.path.join(work, "store")
t.run([t.STOUP, "ingest", "--store", store, "--series", "X/Y/event64", "--codec", "none", "--quiet", array])
done = subprocess.run([python, "-B", EXAMPLE, store + "/", "X/Y/event64", "--workers", "1,4,16", "--parameters", "4",
                       "--json"], capture_output=True, text=True, env=ENVIRONMENT, timeout=250)
t.equal((done.returncode, done.stderr), (0, ""), "the example runs, without a warning")
runs = [json.loads(line) for line in done.stdout.splitlines()]
t.equal([run["workers"] for run in runs], [1, 4, 16], "counts")
data = EVENTS * 64 // 1024
for run in runs:
    count = run["workers"]
    t.equal(run["bytes"], EVENTS * 64, "all events in one array")
    t.equal(run["results"], runs[0]["results"], f"{count} workers find what one does")
    t.true(abs(run["data"] - data) <= 64 + 4 * count, f"{count} workers share {run['data']} KiB of {data}")
    # Not by PSS: what an interpreter's files count depends on who else has one running, between the two runs.
    more = run["anonymous"] - run["idle_anonymous"]
    t.true(more <= 1024 * count, f"{count} workers take {more} KiB more than their interpreters and the data once: {run}")
t.true(any(result["changes"] > 100 for result in runs[0]["results"]), f"the strategy trades: {runs[0]['results']}")

# The table, and a series that is in parts: told.
done = subprocess.run([python, "-B", EXAMPLE, store + "/", "X/Y/event64", "--workers", "2", "--parameters", "1"],
                      capture_output=True, text=True, env=ENVIRONMENT, timeout=250)
t.true(done.returncode == 0 and "PSS sum" in done.stdout and "best: " in done.stdout, done.stdout + done.stderr)
later = os.path.join(work, "later.npy")
subprocess.run([python, "-c", f"import numpy as np; a = np.load({array!r})[:9]; a['exch_ts'] += 10**15; "
                              f"a['local_ts'] += 10**15; np.save({later!r}, a)"], check=True)
t.run([t.STOUP, "ingest", "--store", store, "--series", "X/Y/event64", "--codec", "none", "--quiet", later])
done = subprocess.run([python, "-B", EXAMPLE, store + "/", "X/Y/event64", "--workers", "2"], capture_output=True, text=True,
                      env=ENVIRONMENT, timeout=250)
t.true(done.returncode == 1 and "lies in 2 parts" in done.stderr and "--replace" in done.stderr,
       f"{done.returncode}: {done.stderr}")
