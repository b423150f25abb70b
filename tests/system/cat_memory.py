# SPDX-License-Identifier: Apache-2.0
"""The last bars, and the first ones backward, cost the memory of those that are printed, not of all bars."""
import os
import subprocess

import lib_stoup as t

BARS = 200_000
work = t.temp_dir()
path, store = os.path.join(work, "in.csv"), os.path.join(work, "ticks")
with open(path, "w", encoding="ascii") as out:
    out.writelines(f"{t.T0 + n * 1_000_000},{n % 97 + 1},{n % 7 + 1}\n" for n in range(BARS))
t.run([t.STOUP, "ingest", "--store", store, "--quiet", "--series", "B/X/tick", "--columns", "ts:time,price:price,size:u32", path])
daemon = t.Daemon(store, "32M")


def peak(*options):
    """Lines that were printed, and the most memory in bytes."""
    with open(os.path.join(work, "out"), "w+", encoding="ascii") as out:
        process = subprocess.Popen([t.STOUP, "cat", "--no-header", "--bars", "1t", "--select", "first_ordinal", *options,
                                    daemon.pool, "B/X/tick"], stdout=out)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        t.equal(process.returncode, 0, f"{options}")
        out.seek(0)
        return [int(line) for line in out], usage.ru_maxrss << 10


most = peak()[1] + (8 << 20)  # each bar is printed as it is made
for options, expected in ((["--last", "3"], [BARS - 3, BARS - 2, BARS - 1]), (["--first", "3", "--reverse"], [2, 1, 0]),
                          (["--limit", "2", "--reverse"], [BARS - 1, BARS - 2])):
    found, used = peak(*options)
    t.equal(found, expected, f"{options}")
    t.true(used < most or os.environ.get("STOUP_SANITIZED"), f"{options}: {used} bytes of memory, at most {most}")
daemon.stop()
