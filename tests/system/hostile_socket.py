# SPDX-License-Identifier: Apache-2.0
"""Peers of the attach socket that would make the daemon wait: descriptors slow to let go of, silence, floods.

A TCP socket that lingers makes whoever closes it last wait for its peer, here ten minutes. Passed along with a hello, or
left in a socket unread, it must not be the conductor who does.
"""
import errno
import os
import shutil
import socket
import signal
import struct

import lib_stoup as t
import lib_wire as w

store, totals = t.make_store(30_000)
name = t.name_of("AAA")
daemon = t.Daemon(store, "1M")
kept = []  # the other ends, which never read


def lingering():
    """A TCP socket with bytes that nobody takes: closing it last waits ten minutes."""
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    listener.bind(("127.0.0.1", 0))
    listener.listen(1)
    sock = socket.create_connection(listener.getsockname())
    sock.setblocking(False)
    try:
        while True:
            sock.send(bytes(65536))
    except BlockingIOError:
        pass
    sock.setblocking(True)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 600))
    kept.append(listener)
    return sock


def served(what):
    """Others attach and read, and the daemon's heart beats, as if nothing were the matter."""
    (found,) = t.Worker(daemon.pool, name, "--timeout", 60_000).finish()
    totals["AAA"].check(found, what)
    daemon.settled()


def leave_behind(message, attach):
    """Send such a socket while the daemon is stopped, and close it here: what the daemon has not received yet is
    its last copy."""
    sock = lingering()
    if attach:
        peer = w.Peer(daemon.pool)
        t.equal(peer.hello()["error"], 0, "attach")
    daemon.process.send_signal(signal.SIGSTOP)
    if not attach:  # its time to say hello begins when the daemon goes on
        peer = w.Peer(daemon.pool)
    peer.send(message, [sock.fileno()])
    sock.close()
    daemon.process.send_signal(signal.SIGCONT)
    return peer


hello = struct.pack("<QIIIIQQ", w.HELLO_MAGIC, w.HELLO, *w.abi(daemon.pool)[:2], 0, w.abi(daemon.pool)[2], 0)
fork = struct.pack("<QIiQ", w.HELLO_MAGIC, w.FORK, 0, 0)
for message, attach in ((hello, False), (fork, True), (b"", True), (b"x" * 4096, True)):
    peer = leave_behind(message, attach)
    t.until(peer.hung_up, "who passes descriptors is hung up on")
    served(f"descriptors with {len(message)} bytes, {'attached' if attach else 'not attached'}")
    peer.close()

# Questions without number, answers never read; hellos cut short.
peers = []
for _ in range(16):
    peer = w.Peer(daemon.pool)
    t.equal(peer.hello()["error"], 0, "attach")
    peer.sock.setblocking(False)
    try:
        for _ in range(100):
            peer.send(struct.pack("<QIiIIIIQ", w.HELLO_MAGIC, w.VOLUMES, 0, 0, 0, 0, 0, 0))
    except (BlockingIOError, BrokenPipeError, ConnectionResetError):
        pass
    peers.append(peer)
    half = w.Peer(daemon.pool)
    try:
        half.send(b"\x31\x53")
    except BrokenPipeError:  # hung up on for being late
        pass
    peers.append(half)
served("questions whose answers nobody reads")
for peer in peers:
    peer.close()
t.until(lambda: daemon.counter("consumers") == 0, "all of them are gone")
t.equal(daemon.settled()["counters"]["leases"], 0, "leases")
t.equal(daemon.stop(), 0, "the daemon's end, in time")
t.equal(t.shm_names(daemon.pool), [], "names left")

# ---- a peer that is refused in many ways hides no error of the daemon's ------------------------------------------
damaged = t.temp_dir() + "/store"
shutil.copytree(store, damaged)
with open(f"{damaged}/torn.stoup", "wb") as out:
    out.write(b"not a volume")
daemon = t.Daemon(damaged, "1M")
(major, minor, fingerprint) = w.abi(daemon.pool)
before = [error["text"] for error in daemon.stat()["errors"]]
t.true(any("torn.stoup" in text for text in before), f"an error of its own: {before}")
refused = daemon.counter("attaches_refused")
for number in range(200):
    peer = w.Peer(daemon.pool, layout=(major + 1, number, fingerprint))
    reply = peer.hello()
    t.equal(reply["error"], -errno.EPROTO, "another ABI")
    peer.sock.close()
t.equal(daemon.counter("attaches_refused"), refused + 200, "each is counted")
after = daemon.stat()["errors"]
t.equal([error["text"] for error in after][-len(before):], before, "the daemon's own errors, which are older")
t.true(len(after) - len(before) <= 16, f"errors of peers: {len(after) - len(before)}")
# Who gives up before the answer is nobody who was refused.
for _ in range(20):
    peer = w.Peer(daemon.pool)
    try:
        peer.send(struct.pack("<QIIIIQQ", w.HELLO_MAGIC, w.HELLO, *peer.abi[:2], 0, peer.abi[2], 0), [])
    except BrokenPipeError:  # hung up on for being late
        pass
    peer.sock.close()
t.until(lambda: daemon.counter("consumers") == 0, "they are gone")
served("after many were refused")
t.equal(daemon.counter("attaches_refused"), refused + 200, "who gave up was not refused")
t.equal(daemon.stop(), 0, "exit status")
