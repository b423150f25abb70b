# SPDX-License-Identifier: Apache-2.0
"""What the system tests share: DBN bytes from the published layout, stores, daemons, workers.

Every test runs real programs: stoup, stoupd and helper_worker from $STOUP_BIN_DIR. Each gets a
directory of its own and a pool name of its own, so that tests run side by side.
"""
import atexit
import glob
import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

BIN = os.environ["STOUP_BIN_DIR"]
STOUP = os.path.join(BIN, "stoup")
STOUPD = os.path.join(BIN, "stoupd")
WORKER = os.path.join(BIN, "helper_worker")
DATA = os.environ.get("STOUP_DATA", "")
T0 = 1_700_000_000_000_000_000
SKIP = 77

os.environ["STOUPD"] = STOUPD

_dirs = []
_daemons = []


def temp_dir():
    path = tempfile.mkdtemp(prefix="stoup-test-")
    _dirs.append(path)
    return path


@atexit.register
def _clean():
    for daemon in _daemons:
        daemon.kill()
        for path in glob.glob(f"/dev/shm/stoup.*.{daemon.pool}.ctl"):  # a killed one leaves what it knew
            try:
                os.unlink(path)
            except OSError:
                pass
    for path in _dirs:
        shutil.rmtree(path, ignore_errors=True)


def fail(text):
    print("FAILED:", text, flush=True)
    sys.exit(1)


def equal(found, expected, what):
    if found != expected:
        fail(f"{what}: found {found!r}, expected {expected!r}")


def true(condition, what):
    if not condition:
        fail(what)


def until(condition, what, seconds=120.0):
    """Wait for a condition that must come true; the limit only bounds a broken program."""
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            fail(f"{what}: not within {seconds} s")
        time.sleep(0.02)


# ---- DBN bytes, version 1 -------------------------------------------------------------------------

def cstr(text, length=22):
    return text.encode().ljust(length, b"\0")


def dbn_file(path, symbols, records, schema=0, dataset="XTST.TEST"):
    """Write a DBN v1 file: symbols is {symbol: instrument_id}, records an iterable of bytes."""
    meta = struct.pack("<16sHQQQQBB?47s", dataset.encode(), schema, T0, 2**64 - 1, 0, 2**64 - 1, 1, 0,
                       False, bytes(47))
    meta += struct.pack("<I", 0)
    meta += struct.pack("<I", len(symbols)) + b"".join(cstr(s) for s in symbols)
    meta += struct.pack("<I", 0) + struct.pack("<I", 0)
    meta += struct.pack("<I", len(symbols))
    for symbol, ident in symbols.items():
        meta += cstr(symbol) + struct.pack("<III", 1, 20200101, 20300101) + cstr(str(ident))
    with open(path, "wb") as out:
        out.write(b"DBN\x01" + struct.pack("<I", len(meta)) + meta)
        for record in records:
            out.write(record)


def mbo(ident, key, price, size, order_id=1, sequence=0):
    return struct.pack("<BBHIQQqIBBccQiI", 14, 0xA0, 1, ident, key - 1000, order_id, price, size, 128, 0,
                       b"A", b"B", key, 1000, sequence & 0xFFFFFFFF)


def mbo_records(count, symbols, step=1000, noise=True):
    """A deterministic run of records: (ident, key, price, size), symbols in turn."""
    state = 12345
    idents = list(symbols.values())
    for i in range(count):
        state = (state * 6364136223846793005 + 1442695040888963407) & (2**64 - 1)
        r = state >> 33
        price = 5_000_000_000_000 + (r % 2001 - 1000) * 250_000_000 if noise else 1_000_000_000
        yield idents[i % len(idents)], T0 + i * step + (r % 700 if noise else 0), price, 1 + r % 50


class Totals:
    """What a reader of one symbol must find."""

    def __init__(self):
        self.records = self.price = self.size = 0
        self.first_key = self.last_key = 0

    def add(self, key, price, size):
        if not self.records:
            self.first_key = key
        self.last_key = key
        self.records += 1
        self.price += price
        self.size += size

    def check(self, found, what):
        for name in ("records", "price", "size", "first_key", "last_key"):
            equal(found[name], getattr(self, name), f"{what}: {name}")


def make_store(count, symbols=None, block="64K", codec="lz4", directory=None):
    """Ingest `count` records; returns (store path, {symbol: Totals})."""
    symbols = symbols or {"AAA": 11}
    directory = directory or temp_dir()
    names = {ident: symbol for symbol, ident in symbols.items()}
    totals = {symbol: Totals() for symbol in symbols}
    rows = list(mbo_records(count, symbols))
    dbn = os.path.join(directory, "in.dbn")
    dbn_file(dbn, symbols, (mbo(*row, sequence=i) for i, row in enumerate(rows)))
    for ident, key, price, size in rows:
        totals[names[ident]].add(key, price, size)
    store = os.path.join(directory, "store")
    run([STOUP, "ingest", "--store", store, "--block", block, "--codec", codec, "--quiet", dbn])
    os.unlink(dbn)
    return store, totals


def can_mount():
    """Can mount namespaces be made here? Not in a container that forbids it, nor in a chroot that is no mount."""
    return os.geteuid() == 0 and subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode == 0


def alone():
    """Go on in a mount namespace where no pool of others is seen: neither objects nor sockets, and XDG_RUNTIME_DIR is the test's own.
    False where that can not be had."""
    if not can_mount():
        return False
    if "STOUP_TEST_INSIDE" not in os.environ:
        done = subprocess.run(["unshare", "-m", sys.executable, "-B", sys.argv[0]], env={**os.environ, "STOUP_TEST_INSIDE": "1"})
        sys.exit(done.returncode)
    sockets = f"/tmp/stoup-{os.geteuid()}"  # the last place that is looked at
    os.makedirs(sockets, mode=0o700, exist_ok=True)
    os.environ["XDG_RUNTIME_DIR"] = temp_dir()
    return all(subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=700" if place == sockets else "mode=1777", "tmpfs", place]).returncode == 0
               for place in ("/dev/shm", "/run", sockets))


def name_of(symbol, dataset="XTST.TEST"):
    return f"{dataset}/{symbol}/mbo"


# ---- programs -------------------------------------------------------------------------------------

def run(argv, expect=0, env=None, stdin=None):
    done = subprocess.run(argv, capture_output=True, text=True, env=env, stdin=stdin, timeout=250)
    if expect is not None and done.returncode != expect:
        fail(f"{' '.join(argv)}: exit status {done.returncode}, expected {expect}\n"
             f"stdout: {done.stdout[-2000:]}\nstderr: {done.stderr[-2000:]}")
    return done


def answered(ask):
    """What a program ended with that asks a daemon through its socket: again where that had no processor within the second for which
    it is waited."""
    end = time.monotonic() + 120
    while True:
        done = ask()
        if "did not answer within" not in done.stderr or time.monotonic() > end:
            return done


class Daemon:
    """A stoupd of its own pool."""

    count = 0

    def __init__(self, store, size="16M", options=(), pool=None, prefix=(), wait=True):
        Daemon.count += 1
        self.pool = pool or f"t{os.getpid()}.{Daemon.count}"
        read_fd, write_fd = os.pipe()
        self.log = tempfile.TemporaryFile("w+")
        argv = [*prefix, STOUPD, "--store", store, "--pool", self.pool, "--size", str(size), "--quiet",
                "--ready-fd", str(write_fd), *options]
        self.process = subprocess.Popen(argv, pass_fds=[write_fd], stderr=self.log,
                                        stdin=subprocess.DEVNULL)
        os.close(write_fd)
        # One line, or a text up to the end: a program in front may keep the descriptor open longer.
        with os.fdopen(read_fd) as ready:
            self.ready = ready.readline()
            if self.ready == "held\n":
                self.ready += ready.read()
        _daemons.append(self)
        if wait and self.ready != "ready\n":
            self.process.wait()
            fail(f"stoupd did not start: {self.ready} {self.stderr()}")

    def stderr(self):
        self.log.seek(0)
        return self.log.read()

    def stat(self):
        done = answered(lambda: run([STOUP, "stat", "--json", self.pool], expect=None))
        true(done.returncode == 0, f"stoup stat: exit status {done.returncode}: {done.stderr}")
        return json.loads(done.stdout)

    def runs(self, what):
        """It is shown as one that runs: a heartbeat that was late comes again."""
        until(lambda: self.stat()["state"] == "running", what)

    def counter(self, name):
        return self.stat()["counters"][name]

    def settled(self):
        """What stat shows after a tick that began after this call: gauges and consumers are written at ticks."""
        start = time.monotonic_ns()
        while True:
            now = time.monotonic_ns()
            stat = self.stat()
            if now - stat["heartbeat_age_ns"] > start:
                return stat
            if now - start > 60_000_000_000:
                fail(f"no tick for 60 s: {stat}")
            time.sleep(0.005)

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            fail("stoupd did not stop within 60 s of SIGTERM")

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


class Worker:
    """A helper_worker; `lines` are the JSON lines it printed."""

    def __init__(self, pool, series, *options, env=None):
        self.process = subprocess.Popen([WORKER, *map(str, options), pool, series], env=env,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    @property
    def pid(self):
        return self.process.pid

    def line(self):
        text = self.process.stdout.readline()
        if not text:
            fail(f"worker {self.pid} ended without a word, status {self.process.wait()}")
        return text if text in ("scanned\n", "mark\n") else json.loads(text)

    def step(self):
        """Let a worker with --steps make its next pass."""
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def wait_scanned(self):
        results = []
        while True:
            line = self.line()
            if line == "scanned\n":
                return results
            results.append(line)

    def finish(self, expect=0):
        self.process.stdin.close()
        rest = [json.loads(line) for line in self.process.stdout if line.startswith("{")]
        status = self.process.wait(120)
        if expect is not None:
            equal(status, expect, f"worker's exit status ({rest})")
        return rest

    def kill(self):
        self.process.kill()
        self.process.wait()


def output(argv):
    """What a program writes to stdout, as bytes; its stderr where it fails."""
    done = subprocess.run(argv, capture_output=True)
    if done.returncode != 0:
        fail(f"{' '.join(argv)}: exit status {done.returncode}: {done.stderr.decode(errors='replace')}")
    return done.stdout


def shm_names(pool):
    return [name for name in os.listdir("/dev/shm") if f".{pool}." in name]
