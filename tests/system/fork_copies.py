# SPDX-License-Identifier: Apache-2.0
"""Leases copied for a child: a ticket, whoever shows it, and what becomes of copies that nobody wants.

The client here is plain Python that speaks the socket's protocol: see lib_wire.py.
"""
import errno
import os
import signal

import lib_stoup as t
import lib_wire as w

store, totals = t.make_store(60_000)
name = t.name_of("AAA")


def consumers(daemon, state):
    return [c for c in daemon.stat()["consumers"] if c["state"] == state]


def with_leases(daemon, count):
    """A peer that holds blocks 0 to count - 1 in the cells of these numbers."""
    peer = w.Peer(daemon.pool)
    reply = peer.hello()
    t.equal(reply["error"], 0, f"attach: {reply['text']}")
    page = w.Page(reply["fds"])
    for cell in range(count):
        page.request(cell, cell, 0, cell)
        t.until(lambda: page.slot_done(cell), "the grant")
        t.equal(page.slot_error(cell), 0, "its error")
    return peer, reply, page


def told(story):
    """A copy that nobody fetches is gone after ten seconds: the story is told anew where it took longer than that."""
    for _ in range(5):
        daemon = t.Daemon(store, "1M")
        try:
            return story(daemon)
        except SystemExit:
            if daemon.counter("forks_expired") == 0:
                raise
            print("told anew", flush=True)
            daemon.stop()
    return t.fail("told five times")


def of_a_parent_that_dies(daemon):
    """A parent in a process of its own takes leases, has them copied, and is killed."""
    read_fd, write_fd = os.pipe()
    parent = os.fork()
    if parent == 0:
        os.close(read_fd)
        signal.alarm(60)  # it never outlives a test that failed
        peer, reply, page = with_leases(daemon, 4)
        page.release(3)
        error, ticket = peer.fork()
        words = [page.cell(i) for i in range(4)]
        checksum = [hash(w.buffer_bytes(reply["fds"], word)) for word in words[:3]]
        os.write(write_fd, repr((error, ticket, words, reply["attach_no"], checksum)).encode())
        signal.pause()
    os.close(write_fd)
    with os.fdopen(read_fd) as pipe:
        # The parent holds its end open: one write, one read.
        error, ticket, words, parent_no, _ = eval(os.read(pipe.fileno(), 4096))
    t.equal(error, 0, "the copy")
    t.true(ticket != 0, "a ticket")
    t.equal(daemon.counter("forks"), 1, "copies")
    t.equal([c["leases"] for c in daemon.settled()["consumers"] if c["state"] == "forking"], [3],
            "the released one is not copied")
    os.kill(parent, signal.SIGKILL)
    os.waitpid(parent, 0)
    t.until(lambda: daemon.counter("deaths") == 1, "the parent's death is seen")
    t.until(lambda: daemon.counter("leases") == 3, "the copy's leases outlive the parent")

    # The pool is scanned several times over: what the copy names is not evicted.
    for _ in range(3):
        (found,) = t.Worker(daemon.pool, name).finish()
        totals["AAA"].check(found, "beside a copy")
    t.true(daemon.counter("evictions") > 0, "others were evicted")

    # A wrong ticket; then the right one, once.
    wrong = w.Peer(daemon.pool).hello(w.CHILD, ticket ^ 1)
    t.equal(wrong["error"], -errno.ENOENT, "a wrong ticket")
    t.true("no leases wait under this ticket" in wrong["text"] and "mend: attach anew" in wrong["text"], wrong["text"])
    child = w.Peer(daemon.pool)
    reply = child.hello(w.CHILD, ticket)
    t.equal((reply["error"], len(reply["fds"]), reply["volume_here"]), (0, 4, 0), f"the child: {reply['text']}")
    t.true(reply["attach_no"] != parent_no, "a page of its own")
    page = w.Page(reply["fds"])
    t.equal([page.cell(i) for i in range(4)], words[:3] + [0], "its cells")
    again = w.Peer(daemon.pool).hello(w.CHILD, ticket)
    t.equal(again["error"], -errno.ENOENT, "the same ticket again")
    t.equal(consumers(daemon, "forking"), [], "no copy waits")
    t.equal([c["pid"] for c in consumers(daemon, "attached")], [os.getpid()], "it is this process now")
    t.equal(daemon.counter("attaches_refused"), 2, "refusals")

    # It is a consumer like any other: it asks, and its bytes are those of a scan.
    page.request(0, 7, 0, 5)
    t.until(lambda: page.slot_done(0), "the child's own grant")
    t.true(page.cell(7) != 0 and page.cell(7) < w.TICKET_BIT, "its word")
    first = w.buffer_bytes(reply["fds"], page.cell(0))
    other, _, other_page = with_leases(daemon, 1)
    t.equal(other_page.cell(0), page.cell(0), "block 0 is where the copy held it")
    t.true(len(first) > 0, "bytes")
    page.detach()
    child.close()
    t.until(lambda: daemon.counter("leases") == 1, "the child's leases are gone")
    other_page.detach()
    other.close()
    t.equal(daemon.stop(), 0, "the daemon's end, copies or not")
    t.equal(t.shm_names(daemon.pool), [], "names left")


def of_copies_that_nobody_wants(daemon):
    """Given up by who had it made; by nobody else; and never twice."""
    other, _, other_page = with_leases(daemon, 1)
    error, ticket = other.fork()
    t.equal(error, 0, "a copy")
    stranger = w.Peer(daemon.pool)
    stranger.hello()
    t.equal(stranger.fork(ticket), (-errno.ENOENT, ticket), "a stranger gives it up")
    t.equal(len(consumers(daemon, "forking")), 1, "it waits on")
    t.equal(other.fork(ticket), (0, ticket), "its parent gives it up")
    t.equal(other.fork(ticket), (-errno.ENOENT, ticket), "twice")
    t.equal(daemon.counter("forks_expired"), 1, "copies that nobody wanted")

    # Nobody comes: the copy goes after its time.
    t.equal(other.fork()[0], 0, "a copy")
    t.until(lambda: daemon.counter("forks_expired") == 2, "it expires")
    t.until(lambda: daemon.counter("leases") == 1, "the parent keeps its own lease")

    # Who asks again without reading the answers is hung up on.
    for _ in range(3):
        try:
            stranger.ask_fork()
        except BrokenPipeError:
            break
    t.until(lambda: stranger.receive()[0] == b"", "the hang-up")
    other_page.detach()
    other.close()
    t.equal(daemon.stop(), 0, "the daemon's end, copies or not")
    t.equal(t.shm_names(daemon.pool), [], "names left")


told(of_a_parent_that_dies)
told(of_copies_that_nobody_wants)

# No free place: an error of the fork, none of the parent's.
daemon = t.Daemon(store, "1M", options=["--consumers", "2"])
parent, _, _ = with_leases(daemon, 2)
t.equal(parent.fork()[0], 0, "the second place")
t.equal(parent.fork()[0], -errno.EUSERS, "no third")
t.equal(daemon.counter("limit_consumers"), 1, "the limit was met")
(said,) = daemon.stat()["errors"]
t.true("--consumers N" in said["text"] and "2 consumers" in said["text"], said["text"])
t.equal(daemon.stop(), 0, "the daemon's end")
