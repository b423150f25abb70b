# SPDX-License-Identifier: Apache-2.0
"""What the tests of the Python module share: the module from the source tree over the library from the build, and
children whose every word on stderr is a failure."""
import os
import subprocess
import sys

import lib_stoup as t

MODULE = os.path.join(os.environ["STOUP_SOURCE_DIR"], "consumer", "python")
os.environ["STOUP_LIB"] = os.environ["STOUP_LIB_DIR"]
os.environ["PYTHONPATH"] = os.pathsep.join([MODULE, os.path.dirname(os.path.abspath(__file__))])
os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
sys.path.insert(0, MODULE)

if os.environ.get("STOUP_SANITIZED"):
    print("a sanitized library needs a sanitized interpreter: skipped")
    sys.exit(t.SKIP)
try:
    import numpy  # noqa: F401
except ImportError:
    print(f"{sys.executable} has no NumPy (Debian: apt-get install python3-numpy): skipped")
    sys.exit(t.SKIP)
import stoup  # noqa: E402


def script(text, *arguments, expect=0, options=(), env=None):
    """Run a Python program of its own, with all warnings; its stdout. Nothing may come on stderr when it succeeds."""
    done = subprocess.run([sys.executable, "-W", "always", *options, "-c", text, *map(str, arguments)],
                          capture_output=True, text=True, timeout=250, env=env)
    if done.returncode != expect or (expect == 0 and done.stderr):
        t.fail(f"exit status {done.returncode}, expected {expect}\n{text}\n"
               f"stdout: {done.stdout[-2000:]}\nstderr: {done.stderr[-2000:]}")
    return done.stdout if expect == 0 else done.stderr


def raises(kind, call, *words):
    """The exception that a call must raise, with these words in its text."""
    try:
        call()
    except kind as error:
        for word in words:
            t.true(word in str(error), f"'{word}' is not in: {error}")
        return error.with_traceback(None)  # whose frames would keep what they saw
    return t.fail(f"no {kind.__name__} was raised")


def leases(daemon):
    """Leases that the daemon sees in the cells of all consumers, now."""
    return sum(consumer["leases"] for consumer in daemon.stat()["consumers"])


def no_leases(daemon, what):
    t.until(lambda: leases(daemon) == 0, f"{what}: leases given back")
