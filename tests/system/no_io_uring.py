# SPDX-License-Identifier: Apache-2.0
"""io_uring refused by a real seccomp filter: everything works on the pread pool, and stat says why."""
import os

import lib_stoup as t

filter_program = os.path.join(t.BIN, "helper_seccomp")
store, totals = t.make_store(60_000)
name = t.name_of("AAA")
for code, words in (("EPERM", "not permitted"), ("ENOSYS", "not implemented")):
    for options in ((), ("--cached", "off")):
        daemon = t.Daemon(store, "1M", prefix=[filter_program, code], options=options)
        stat = daemon.stat()
        t.equal(stat["reader"], "pread", f"reader under {code}")
        t.true("io_uring" in stat["reader_reason"] and words in stat["reader_reason"],
               f"the reason: {stat['reader_reason']}")
        workers = [t.Worker(daemon.pool, name) for _ in range(3)]
        for worker in workers:
            (found,) = worker.finish()
            totals["AAA"].check(found, code)
        t.equal(daemon.stop(), 0, "exit status")

# Where io_uring is to be had, a scan past the page cache keeps at least eight reads in flight.
store, totals = t.make_store(200_000, block="256K", codec="none")


def deepest():
    """Of one scan; where it had no processor when the reads came, fewer were in flight."""
    daemon = t.Daemon(store, "64M", options=["--cached", "off"])
    (found,) = t.Worker(daemon.pool, name).finish()
    totals["AAA"].check(found, "io_uring")
    stat = daemon.settled()
    t.equal(daemon.stop(), 0, "exit status")
    if stat["reader"] != "io_uring":
        print("io_uring is not to be had here:", stat["reader_reason"])
        return True
    print("reads in flight:", stat["counters"]["reads_in_flight_max"])
    return stat["counters"]["reads_in_flight_max"] >= 8


t.until(deepest, "at least eight reads in flight")
