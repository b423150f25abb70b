# SPDX-License-Identifier: Apache-2.0
"""What the tests of rescans share: a store of days, and who reads it when."""
import os
import signal

import lib_stoup as t

DAY = 10**12
NAME = t.name_of("AAA")
COUNT = 3_000


def rows_of(day, salt=0, count=COUNT):
    return [(ident, key + day * DAY, price + salt * 1_000_000, size + salt)
            for ident, key, price, size in t.mbo_records(count, {"AAA": 11})]


def ingest(store, day, *options, salt=0, count=COUNT, block="64K"):
    dbn = os.path.join(os.path.dirname(store), f"in-{os.path.basename(store)}.dbn")
    t.dbn_file(dbn, {"AAA": 11}, (t.mbo(*row, sequence=i) for i, row in enumerate(rows_of(day, salt, count))))
    t.run([t.STOUP, "ingest", "--store", store, "--block", block, "--codec", "lz4", "--quiet", *options, dbn])
    os.unlink(dbn)


def totals(days):
    """What a reader of these days finds: a day, or (day, salt), or (day, salt, count) each."""
    sums = t.Totals()
    for day in days:
        for _, key, price, size in rows_of(*(day if isinstance(day, tuple) else (day,))):
            sums.add(key, price, size)
    return sums


def check_new(daemon, days, what):
    (found,) = t.Worker(daemon.pool, NAME).finish()
    totals(days).check(found, what)


def stepped(daemon, *options):
    """A worker that is attached and has its series, but scans only when it is told."""
    worker = t.Worker(daemon.pool, NAME, "--steps", *options)
    t.equal(worker.line(), {"ready": True}, "attached")
    return worker


def volumes_of(store):
    return sorted(name for name in os.listdir(store) if name.endswith(".stoup"))


def deleted_files(daemon):
    """Volumes that the daemon has open although they have no name any more; also in its io_uring."""
    found = []
    for fd in os.listdir(f"/proc/{daemon.process.pid}/fd"):
        try:
            target = os.readlink(f"/proc/{daemon.process.pid}/fd/{fd}")
            with open(f"/proc/{daemon.process.pid}/fdinfo/{fd}", encoding="ascii", errors="replace") as info:
                text = info.read()
        except OSError:
            continue
        if target.endswith(".stoup (deleted)"):
            found.append(target)
        found += [line for line in text.splitlines() if ".stoup" in line and "(deleted)" in line]
    return found


def new_store():
    return os.path.join(t.temp_dir(), "store")


def hang_up(daemon):
    """SIGHUP, and wait for the rescan that it brings."""
    before = daemon.counter("rescans")
    daemon.process.send_signal(signal.SIGHUP)
    t.until(lambda: daemon.counter("rescans") > before, "SIGHUP rescans")


def errors(daemon):
    return " ".join(error["text"] for error in daemon.stat()["errors"])
