# SPDX-License-Identifier: Apache-2.0
"""README.md's Python program, as a reader pastes it, over the installed module and library: by a path and by a pool."""
import os
import re
import subprocess
import sys

SOURCE = os.environ["STOUP_SOURCE_DIR"]
sys.path.insert(0, os.path.join(SOURCE, "tests", "system"))
import lib_stoup as t  # noqa: E402

try:
    import numpy  # noqa: F401
except ImportError:
    print(f"{sys.executable} has no NumPy (Debian: apt-get install python3-numpy): skipped")
    sys.exit(t.SKIP)
if os.environ.get("STOUP_SANITIZED"):
    print("a sanitized library needs a sanitized interpreter: skipped")
    sys.exit(t.SKIP)

directory = t.temp_dir()
prefix = os.path.join(directory, "prefix")
t.run(["cmake", "--install", os.environ["STOUP_BUILD_DIR"], "--prefix", prefix])
module = os.path.join(prefix, "lib", "python3", "dist-packages")
t.equal(os.listdir(module), ["stoup.py"], "what is installed there")
environment = {name: value for name, value in os.environ.items() if name not in ("STOUPD", "STOUP_LIB")}
environment |= {"PATH": os.path.join(prefix, "bin") + ":" + os.environ["PATH"], "PYTHONPATH": module,
                "XDG_RUNTIME_DIR": t.temp_dir(), "PYTHONDONTWRITEBYTECODE": "1"}
os.environ.update(environment)

with open(os.path.join(SOURCE, "README.md"), encoding="utf-8") as readme:
    (program,) = re.findall(r"^```python\n(.*?)^```$", readme.read(), re.M | re.S)
t.true(len(program.strip().splitlines()) <= 10, "ten lines")
UNDEFINED = 2**63 - 1
rows = [(i, key, price if i % 7 else UNDEFINED, size)
        for i, (_, key, price, size) in enumerate(t.mbo_records(5_000, {"AAA": 11}))]
expected = sum(price // 10**6 * size for _, _, price, size in rows if price != UNDEFINED) / 1000
dbn = os.path.join(directory, "in.dbn")
t.dbn_file(dbn, {"AAA": 11}, (t.mbo(11, key, price, size, sequence=i) for i, key, price, size in rows))
store = os.path.join(directory, "ticks")
t.run(["stoup", "ingest", "--quiet", "--block", "64K", "--store", store, dbn], env=environment)
daemon = t.Daemon(store)
for target in (store + "/", daemon.pool):
    done = subprocess.run([sys.executable, "-W", "always", "-c", program, target, t.name_of("AAA")], env=environment,
                          capture_output=True, text=True, timeout=60)
    t.equal((done.returncode, done.stdout, done.stderr), (0, f"{expected}\n", ""), target)
daemon.stop()
