# SPDX-License-Identifier: Apache-2.0
"""A consumer that writes to a mapped block faults alone; others' bytes stay right."""
import os
import signal

import lib_stoup as t

# The kernel's signal is the answer here, also where a sanitizer would turn it into a report.
os.environ["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "") + ":handle_segv=0"

store, totals = t.make_store(30_000)
name = t.name_of("AAA")
for backing in ("posix", "memfd"):
    daemon = t.Daemon(store, "8M", options=["--backing", backing])
    (before,) = t.Worker(daemon.pool, name).finish()
    writer = t.Worker(daemon.pool, name, "--write")
    writer.process.stdin.close()
    t.equal(writer.process.wait(60), -signal.SIGSEGV, f"{backing}: the writer's end")
    (after,) = t.Worker(daemon.pool, name).finish()
    t.equal(after["checksum"], before["checksum"], f"{backing}: checksum")
    totals["AAA"].check(after, backing)
    t.until(lambda: daemon.counter("deaths") == 1, "its death is seen")
    t.equal(daemon.stat()["backing"], backing, "backing")
    daemon.stop()
