# SPDX-License-Identifier: Apache-2.0
"""The kill matrix: every hook in the code, who passes it, and what must be so after a death there.

crash_hooks.py kills consumers and daemons, crash_writers.py and crash_care.py writers of a store; source_rules.py compares
these lists with the code and with the rows of docs/crash-states.md.
"""
import os
import sys

import lib_stoup as t

# Of a consumer, in a plain scan; and of one that waits in vain, goes on with another daemon, pins, or forks.
SCAN = ["lease.high", "lease.named", "lease.idle", "request.ticket", "request.pending", "request.done",
        "detach.said"]
WAIT = ["request.cancelled"]
RENEW = ["renew.retired", "renew.attached"]
PIN = ["pin.asked"]
FORK = ["fork.prepared", "fork.parted", "fork.joined"]
# Of the daemon.
START = ["start.locked", "start.control", "region.named", "start.bound", "start.announced"]
SERVE = ["attach.page", "attach.replied", "drop.page", "load.decoded", "grant.cell", "grant.done",
         "evict.cleared", "evict.retired"]
COPY = ["fork.copied", "fork.answered"]
QUOTA = ["quota.waits", "quota.left"]
PINNED = ["pin.shown"]
RESCAN = ["rescan.born", "rescan.retired", "volume.closed", "volume.emptied"]
STOP = ["stop.marked", "stop.unlinked"]
# Of a writer of a store.
WRITE = ["ingest.locked", "ingest.created", "ingest.headed", "ingest.synced", "ingest.renamed",
         "ingest.published"]
SWEEP = ["sweep.member", "sweep.temporary", "sweep.superseded"]
REPAIR = ["repair.kept", "repair.marked"]

ALL = SCAN + WAIT + RENEW + PIN + FORK + START + SERVE + COPY + QUOTA + PINNED + RESCAN + STOP + WRITE + SWEEP + REPAIR


def need_hooks():
    if "hooks" not in t.run([t.STOUPD, "--version"]).stdout:
        print("built without hooks: skipped")
        sys.exit(t.SKIP)


def hooked(hook):
    return {**os.environ, "STOUP_HOOK": hook}


def whole(daemon, what):
    """Nobody is there: no lease is left, and every byte of the pool is in a block or free."""
    def settled():
        stat = daemon.stat()
        count = stat["counters"]
        # Blocks take whole pages.
        slack = count["resident_blocks"] * 4095
        kept = count["resident_bytes"] + count["free_bytes"]
        return (count["leases"] == count["leased_bytes"] == count["consumers"] == 0
                and kept <= stat["size"] <= kept + slack)

    t.until(settled, f"{what}: no lease, no consumer, the pool in full size")


def after(pool, store, name, totals, what, size="1M"):
    """The next daemon of the name: it starts, serves the store as it must be, and leaves nothing."""
    t.run([t.STOUP, "verify", store])
    daemon = t.Daemon(store, size, pool=pool)
    (found,) = t.Worker(pool, name).finish()
    totals.check(found, f"after {what}")
    whole(daemon, f"after {what}")
    t.equal(daemon.stop(), 0, f"{what}: the next daemon's end")
    t.equal(t.shm_names(pool), [], f"{what}: names left")
