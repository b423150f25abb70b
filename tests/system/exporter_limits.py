# SPDX-License-Identifier: Apache-2.0
"""The exporter at its limits: without a descriptor left it says of a pool what it is and does not leave it out; connections do
not take those that a look needs; sockets of dead daemons are no pools that were left out; a header that stands twice is refused."""
import os
import resource
import signal
import socket
import subprocess

import lib_exporter as x
import lib_stoup as t

alone = t.alone()
sockets = os.environ["XDG_RUNTIME_DIR"] = t.temp_dir()
store, _ = t.make_store(3_000)
daemon = t.Daemon(store, "4M")


def exchange(connection, request):
    connection.settimeout(120)
    connection.sendall(request)
    found = b""
    while chunk := connection.recv(65536):
        found += chunk
    head, _, body = found.decode().partition("\r\n\r\n")
    return int(head.split()[1]), body


# ---- names that are none ---------------------------------------------------------------------------------
if alone:
    os.makedirs(f"{sockets}/stoup", exist_ok=True)
    for i in range(300):
        path = f"{sockets}/stoup/old{i}.sock"
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as old:
            old.bind(path)
    metrics = x.Metrics(t.run([t.STOUP, "exporter", "--once"]).stdout)
    t.equal((metrics.value("stoup_exporter_pools"), metrics.value("stoup_exporter_pools_left_out")), (1, 0), "one pool, and old sockets")
    for name in ("stat", "holders"):
        t.equal(t.run([t.STOUP, name]).stderr, f"stoup {name}: of pool '{daemon.pool}', the only one\n", "which")
else:
    print("note: no mounts: what others' pools leave out is not counted")

# ---- no descriptors --------------------------------------------------------------------------------------
if not x.built_with_http():
    print("built without libmicrohttpd: HTTP is not tried")
    raise SystemExit(0)
done = t.run(["prlimit", "--nofile=20:20", t.STOUP, "exporter", "--listen", "127.0.0.1:0"], expect=1)
t.true("at most 20 files may be open" in done.stderr and "ulimit -n" in done.stderr and done.stdout == "", f"told at the start: {done}")

exporter = x.Exporter()
pool = {"pool": daemon.pool}


def sockets_of():
    links, cnt = f"/proc/{exporter.process.pid}/fd", 0
    for fd in os.listdir(links):
        try:
            cnt += os.readlink(f"{links}/{fd}").startswith("socket:")
        except FileNotFoundError:  # closed meanwhile
            pass
    return cnt


def accepted(hard):
    """A connection that the exporter has, and then no descriptor to be had beside."""
    t.until(lambda: sockets_of() == 1, "earlier ones are closed, it listens")
    client = socket.create_connection((exporter.host, exporter.port))
    t.until(lambda: sockets_of() == 2, "it is accepted")
    resource.prlimit(exporter.process.pid, resource.RLIMIT_NOFILE, (3, hard))
    return client


_, hard = resource.prlimit(exporter.process.pid, resource.RLIMIT_NOFILE)
client = accepted(hard)  # before the first look
status, body = exchange(client, b"GET /metrics HTTP/1.0\r\n\r\n")
t.equal((status, "descriptors" in body), (503, True), f"pools that could not be looked for are not none: {body[:300]}")
client.close()
resource.prlimit(exporter.process.pid, resource.RLIMIT_NOFILE, (hard, hard))
t.equal(exporter.metrics().value("stoup_up", **pool), 1, "there are descriptors again")
client = accepted(hard)
status, body = exchange(client, b"GET /metrics HTTP/1.0\r\n\r\n")
t.equal((status, x.Metrics(body).value("stoup_up", **pool)), (200, 1), "a pool that is known stays")
client.close()
resource.prlimit(exporter.process.pid, resource.RLIMIT_NOFILE, (hard, hard))

# ---- a header twice ----------------------------------------------------------------------------------------
for twice, expected in (("Host: localhost\r\nHost: evil.example", 400), ("Host: evil.example\r\nHost: localhost", 400),
                        ("Host: localhost\r\nContent-Length: 0\r\nContent-Length: 5", 400), ("Host: localhost\r\nContent-Length: 0", 200)):
    with socket.create_connection((exporter.host, exporter.port)) as client:
        status, _ = exchange(client, f"GET /healthz HTTP/1.1\r\n{twice}\r\n\r\n".encode())
    t.equal(status, expected, twice)
t.equal(exporter.stop(), "", "nothing was complained of")

# ---- an address that could not be told -----------------------------------------------------------------------
with open("/dev/full", "w", encoding="utf-8") as full, subprocess.Popen(
        [t.STOUP, "exporter", "--listen", "127.0.0.1:0", daemon.pool], stdout=full, stderr=subprocess.PIPE, text=True) as untold:
    def blocks_sigterm():
        """Its other thread does; the first one waits for the signal."""
        for task in os.listdir(f"/proc/{untold.pid}/task"):
            with open(f"/proc/{untold.pid}/task/{task}/status", encoding="utf-8") as status:
                blocked = next(line for line in status if line.startswith("SigBlk:"))
            if int(blocked.split()[1], 16) >> (signal.SIGTERM - 1) & 1:
                return True
        return False

    t.until(blocks_sigterm, "it takes SIGTERM as its end")
    untold.terminate()
    t.equal((untold.wait(60), untold.stderr.read()), (1, "stoup: writing the output failed\n"), "no reason is made up")

# ---- more connections than files -----------------------------------------------------------------------------
os.environ["STOUP_REAL"], t.STOUP, real = t.STOUP, os.path.join(t.temp_dir(), "few"), t.STOUP
with open(t.STOUP, "w", encoding="utf-8") as script:
    script.write('#!/bin/sh\nulimit -n 40 && exec "$STOUP_REAL" "$@"\n')
os.chmod(t.STOUP, 0o755)
exporter = x.Exporter()
t.STOUP = real
first = socket.create_connection((exporter.host, exporter.port))
others = [socket.create_connection((exporter.host, exporter.port)) for _ in range(60)]
t.until(lambda: sockets_of() >= 9, "as many as it takes are accepted: 8, and the one at which it listens")
status, body = exchange(first, b"GET /metrics HTTP/1.0\r\n\r\n")
t.equal((status, x.Metrics(body).value("stoup_up", **pool)), (200, 1), "a look has its descriptors")
for client in [first, *others]:
    client.close()
t.equal(exporter.stop(), "", "nothing was complained of")
daemon.stop()
