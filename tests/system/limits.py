# SPDX-License-Identifier: Apache-2.0
"""Each limit: its text names limit, value and option; its counter counts; stat shows the pool's and each consumer's."""
import errno
import os

import lib_stoup as t
import lib_wire as w

store, totals = t.make_store(60_000)
name = t.name_of("AAA")


def me(daemon):
    return next(c for c in daemon.settled()["consumers"] if c["pid"] == os.getpid())


# Consumers.
daemon = t.Daemon(store, "1M", options=["--consumers", "2"])
two = [w.Peer(daemon.pool) for _ in range(2)]
for peer in two:
    t.equal(peer.hello()["error"], 0, "attach")
third = w.Peer(daemon.pool).hello()
t.equal(third["error"], -errno.EUSERS, "one too many")
t.true("has its 2 consumers already" in third["text"] and "--consumers N" in third["text"], third["text"])
t.equal(daemon.counter("limit_consumers"), 1, "times that all places were taken")
words = t.run([t.STOUP, "stat", daemon.pool]).stdout
t.true("limit met 1 time: consumers, 2 (stoupd --consumers)" in words, words)
daemon.stop()

# Requests in flight: what the conductor refuses, and what the pages say of their own.
daemon = t.Daemon(store, "1M", options=["--requests", "2"])
t.equal(daemon.stat()["requests_max"], 2, "the limit in stat")
peer = w.Peer(daemon.pool)
page = w.Page(peer.hello()["fds"])
for slot in range(3):
    page.write_request(slot, slot, 0, slot)
page.post(0b111)
t.until(lambda: all(page.slot_done(slot) for slot in range(3)), "all are answered")
t.equal([page.slot_error(slot) for slot in range(3)], [0, 0, -errno.EBUSY], "the third is refused")
t.equal(daemon.counter("limit_requests"), 1, "requests refused")
for offset, value in ((0, 3), (8, 4), (16, 5)):
    page.words[(w.REFUSED + offset) // 8] = value
t.until(lambda: daemon.counter("limit_requests") == 6, "the page's are added")
own = me(daemon)
t.equal((own["limit_cells"], own["limit_bytes"], own["limit_requests"]), (3, 4, 5), "of it")
t.equal((daemon.counter("limit_cells"), daemon.counter("limit_bytes")), (3, 4), "of the pool")
words = t.run([t.STOUP, "stat", daemon.pool]).stdout
for line in ("limit met 3 times: leases of one consumer, 1024 (stoupd --cells)", "(stoupd --lease-bytes)",
             "limit met 6 times: requests of one consumer, 2 (stoupd --requests)",
             f"{os.getpid()} met its limits, of leases: 3, of bytes: 4, of requests: 5 times"):
    t.true(line in words, f"{line!r} in {words}")

# A page that counts nonsense spoils no more than its own part of it.
page.words[w.REFUSED // 8] = 2**64 - 1
t.until(lambda: me(daemon)["limit_cells"] == 2**32 - 1, "so much is believed")
page.words[(w.REFUSED + 16) // 8] = 2
page.detach()
peer.close()
t.until(lambda: daemon.counter("consumers") == 0, "it is gone")
t.until(lambda: daemon.counter("limit_cells") == 0, "a gauge of those that are attached")
t.equal(daemon.counter("limit_requests"), 6, "a counter never falls")
daemon.stop()

# Bytes: the library keeps to the share that it was told.
daemon = t.Daemon(store, "1M", options=["--lease-bytes", "128K"])
t.equal(daemon.stat()["lease_bytes_max"], 131072, "the share")
held = t.run([t.WORKER, "--hold", "200", daemon.pool, name], expect=1)
t.true(f"{-errno.EDQUOT}" in held.stdout, held.stdout)
t.equal(daemon.counter("quota_dropped"), 0, "nobody was disconnected for it")
daemon.stop()

# Wrong values are wrong usage.
for option, value in (("--requests", "0"), ("--requests", "65"), ("--consumers", "257"), ("--cells", "1025")):
    said = t.run([t.STOUPD, "--store", store, "--pool", "x", option, value], expect=2).stderr
    t.true(f"{option} '{value}': a number from 1 to" in said, said)
for option, value, reason in (("--lease-bytes", "0", "a size is wanted"), ("--takeover-wait", "x", "a duration is wanted"),
                              ("--request-timeout", "0", "more than 0 is wanted"), ("--direct", "x", "not one of auto")):
    said = t.run([t.STOUPD, "--store", store, "--pool", "x", option, value], expect=2).stderr
    t.true(f"{option} '{value}': {reason}" in said, said)
said = t.run([t.STOUPD, "--store", store, "--pool", "x", "--ready-fd", "777"], expect=2).stderr
t.true("--ready-fd 777: no such descriptor is open" in said, said)
