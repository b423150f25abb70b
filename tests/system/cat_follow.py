# SPDX-License-Identifier: Apache-2.0
"""stoup cat --follow: what ingests add is printed once they are there, records, documents and bars, of one series and of
several; until Ctrl-C, or as many records as were asked for."""
import json
import os
import select
import signal
import subprocess
import time

import lib_stoup as t

NS = 1_000_000_000
work = t.temp_dir()
STORE = os.path.join(work, "ticks")


def iso(ns):
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(ns // NS)) + f".{ns % NS:09}Z"


def trades(symbol, begin, count):
    """Ingest trades, one each second from second `begin` on; their lines."""
    path = os.path.join(work, "in.csv")
    rows = [(t.T0 + n * NS, f"{100 + n % 7}.5", 1 + n % 5) for n in range(begin, begin + count)]
    with open(path, "w", encoding="ascii") as out:
        out.writelines(f"{key},{price},{size}\n" for key, price, size in rows)
    t.run([t.STOUP, "ingest", "--store", STORE, "--quiet", "--series", f"X/{symbol}/tick", "--columns",
           "ts:time,price:price,size:u32", path])
    return [f"{iso(key)},{price},{size}" for key, price, size in rows]


class Follower:
    def __init__(self, *arguments):
        self.process = subprocess.Popen([t.STOUP, "cat", *arguments, "--follow"], stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE)
        self.rest = b""

    def lines(self, count, what):
        """The next lines, which must come."""
        end = time.monotonic() + 120
        while self.rest.count(b"\n") < count:
            ready = select.select([self.process.stdout], [], [], max(0, end - time.monotonic()))[0]
            piece = os.read(self.process.stdout.fileno(), 65536) if ready else b""
            if not piece:
                self.process.kill()
                t.fail(f"{what}: {count} lines were to come: {self.rest!r} {self.process.communicate()[1]!r}")
            self.rest += piece
        *found, self.rest = self.rest.split(b"\n", count)
        return [line.decode() for line in found]

    def nothing(self, what):
        t.equal(self.rest, b"", what)
        t.equal(self.process.poll(), None, what + ": it goes on")

    def interrupt(self):
        self.process.send_signal(signal.SIGINT)
        out, err = self.process.communicate(timeout=60)
        t.equal((out, err, self.process.returncode), (b"", b"", -signal.SIGINT), "Ctrl-C")


first = trades("a", 0, 10)
trades("b", 0, 3)
daemon = t.Daemon(STORE, "16M")

# ---- records -----------------------------------------------------------------------------------------------------------
plain = Follower(daemon.pool, "X/a/tick")
tail = Follower(daemon.pool, "X/a/tick", "--last", "2", "--no-header", "--format", "csv")
some = Follower(daemon.pool, "X/a/tick", "--limit", "12", "--select", "size")
large = Follower(daemon.pool, "X/a/tick", "--where", "size = 5", "--after", iso(t.T0 + 3 * NS), "--format", "jsonl", "--select",
                 "ts")
both = Follower(daemon.pool, "X/*/tick", "--last", "1", "--no-header")
bars = Follower(daemon.pool, "X/a/tick", "--bars", "5s", "--select", "ts_close,count,partial", "--no-header")
t.equal(plain.lines(11, "what is there"), ["ts,price,size", *first], "what is there")
t.equal(tail.lines(2, "the last two"), first[-2:], "the last two")
t.equal(some.lines(11, "of the first twelve"), ["size", *(line.rsplit(",", 1)[1] for line in first)], "of the first twelve")
t.equal([json.loads(line)["ts"] for line in large.lines(2, "filtered")], [iso(t.T0 + n * NS) for n in (4, 9)], "filtered")
t.equal(both.lines(2, "of both"), [f"X/a/tick,{first[-1]}", f"X/b/tick,{iso(t.T0 + 2 * NS)},102.5,3"], "of both the last one")
# The grid of five seconds: T0 is a multiple of 10 s; the second bar is complete only when a later trade comes.
t.equal(bars.lines(1, "one bar"), [f"{iso(t.T0 + 5 * NS)},5,0"], "bars that are complete")
for follower in (plain, tail, some, large, both, bars):
    follower.nothing("nothing more is there")

second = trades("a", 10, 6)
t.equal(plain.lines(6, "added"), second, "what was added")
t.equal(tail.lines(6, "added"), second, "what was added behind the last two")
t.equal(some.lines(2, "added"), [line.rsplit(",", 1)[1] for line in second[:2]], "as many as were asked for")
t.equal(some.process.wait(timeout=60), 0, "and no more")
t.equal([json.loads(line)["ts"] for line in large.lines(1, "filtered")], [iso(t.T0 + 14 * NS)], "what was added, filtered")
t.equal(both.lines(6, "of both"), [f"X/a/tick,{line}" for line in second], "of both")
t.equal(bars.lines(2, "two bars"), [f"{iso(t.T0 + 10 * NS)},5,0", f"{iso(t.T0 + 15 * NS)},5,0"], "bars that were completed")
third = trades("b", 20, 1)
t.equal(both.lines(1, "of the other"), [f"X/b/tick,{third[0]}"], "of the other series")
for follower in (plain, tail, large, both, bars):
    follower.nothing("nothing more was added")
    follower.interrupt()

# ---- documents, read while none was there yet -----------------------------------------------------------------------------


def documents(begin, count):
    path = os.path.join(work, "in.jsonl")
    with open(path, "w", encoding="ascii") as out:
        out.writelines(f'{t.T0 + n} {{"n":{n},"e":"{"ab"[n % 2]}"}}\n' for n in range(begin, begin + count))
    t.run([t.STOUP, "ingest", "--store", STORE, "--quiet", "--series", "X/d/bipf", path])


documents(0, 4)
lines = Follower(STORE + "/", "X/d/bipf", "--format", "lines", "--where", "e = 'b'")
paths = Follower(STORE + "/", "X/d/bipf", "--path", "n", "--after", str(t.T0 + 3))
t.equal(lines.lines(2, "documents"), [f'{t.T0 + n} {{"n":{n},"e":"b"}}' for n in (1, 3)], "documents that are there")
t.equal(paths.lines(1, "a header"), ["key,n"], "the names come at once")
documents(4, 2)
t.equal(lines.lines(1, "documents"), [f'{t.T0 + 5} {{"n":5,"e":"b"}}'], "a document that was added")
t.equal(paths.lines(2, "paths"), [f"{iso(t.T0 + n)},{n}" for n in (4, 5)], "paths of those that were added")
lines.interrupt()

# ---- a reader that has gone, a daemon that ends -------------------------------------------------------------------------------
paths.process.stdout.close()
documents(6, 1)
t.equal(paths.process.wait(timeout=60), -signal.SIGPIPE, "a reader that has gone")
t.equal(paths.process.stderr.read(), b"", "is no failure to talk about")
# Also while nothing is added that could be written.
idle = Follower(daemon.pool, "X/b/tick", "--last", "1", "--no-header")
t.equal(len(idle.lines(1, "there")), 1, "what is there")
idle.process.stdout.close()
t.equal((idle.process.wait(timeout=60), idle.process.stderr.read()), (-signal.SIGPIPE, b""), "a reader that has gone meanwhile")
again = Follower(daemon.pool, "X/b/tick", "--last", "1", "--no-header")
t.equal(len(again.lines(1, "there")), 1, "what is there")
daemon.stop()
daemon = t.Daemon(STORE, "16M", pool=daemon.pool)
fourth = trades("b", 30, 2)
t.equal(again.lines(2, "after the daemon's end"), fourth, "what was added under another daemon")
again.interrupt()
daemon.stop()
print("ok", flush=True)
