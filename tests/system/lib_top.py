# SPDX-License-Identifier: Apache-2.0
"""`stoup top` under a pseudo-terminal, with a terminal emulator (pyte) that shows what a person would see."""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time

import lib_stoup as t

try:
    import pyte
except ImportError:
    print("python3-pyte is not installed: no terminal to look at")
    sys.exit(t.SKIP)

if "built without ncurses" in t.run([t.STOUP, "top", "any"], expect=1).stderr:
    print("built without ncurses: nothing is shown on a terminal")
    sys.exit(t.SKIP)


class Top:
    """One `stoup top` on a terminal of its own; `lines` is what stands on it."""

    def __init__(self, *argv, cols=80, rows=24, term="xterm-256color", locale="C.UTF-8", env=None):
        self.screen = pyte.Screen(cols, rows)
        self.stream = pyte.ByteStream(self.screen)
        self.master, self.slave = pty.openpty()  # our own end stays open: modes are read from it at the end
        self.resize(cols, rows, tell=False)
        self.before = termios.tcgetattr(self.slave)
        self.raw, self.status = b"", None
        self.pid = os.fork()
        if self.pid == 0:
            os.setsid()
            fcntl.ioctl(self.slave, termios.TIOCSCTTY, 0)
            for fd in (0, 1, 2):
                os.dup2(self.slave, fd)
            os.close(self.master)
            os.environ.update({"TERM": term, "LC_ALL": locale, **(env or {})})
            for name in ("COLUMNS", "LINES", "NO_COLOR"):
                if name not in (env or {}):
                    os.environ.pop(name, None)
            os.execv(t.STOUP, [t.STOUP, "top", *argv])

    def resize(self, cols, rows, tell=True):
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))
        if tell:
            self.screen.resize(rows, cols)

    def read(self, seconds=0.05):
        while self.master >= 0 and select.select([self.master], [], [], seconds)[0]:
            chunk = os.read(self.master, 65536)
            self.raw += chunk
            self.stream.feed(chunk)
            seconds = 0
        return self.screen.display

    @property
    def lines(self):
        return [line.rstrip() for line in self.read()]

    @property
    def text(self):
        return "\n".join(self.lines)

    def turns(self):
        """How often it has had a processor; None while it has one, or waits for one."""
        try:
            with open(f"/proc/{self.pid}/status", encoding="ascii", errors="replace") as status:
                text = status.read()
        except OSError:
            return "ended"
        return re.findall(r"^\w*voluntary_ctxt_switches:.*", text, re.M) if re.search(r"^State:\s+S", text, re.M) else None

    def until(self, pattern, what=None):
        """Wait for a text on the screen; returns the lines."""
        end = time.monotonic() + 120
        while True:
            before = self.turns()
            known = len(self.raw)
            seen = self.lines
            # A screen comes in pieces: it is whole when nothing comes and the program sleeps all the while.
            whole = before is not None and before == self.turns() and known == len(self.raw)
            if whole and re.search(pattern, "\n".join(seen), re.M):
                return seen
            if time.monotonic() > end or self.ended():
                t.fail(f"{what or pattern}: not seen on\n{self.text}")

    def press(self, keys, pattern=None):
        os.write(self.master, keys.encode())
        return self.until(pattern) if pattern else None

    def ended(self):
        if self.status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = status
        return self.status is not None

    def end(self, what, code=None, number=None):
        """Wait for its end by exit status or signal, and look at the terminal that it leaves."""
        def over():
            self.read()
            return self.ended()
        t.until(over, f"{what}: the end")
        self.read()
        t.equal((os.waitstatus_to_exitcode(self.status)), -number if number else code, f"{what}: status, with\n{self.text}")
        t.equal(termios.tcgetattr(self.slave), self.before, f"{what}: modes of the terminal")
        if b"\x1b[?1049h" in self.raw:
            t.true(self.raw.rindex(b"\x1b[?1049l") > self.raw.rindex(b"\x1b[?1049h"), f"{what}: back from the other screen")
            t.true(self.raw.rindex(b"\x1b[?12l\x1b[?25h") > self.raw.rindex(b"\x1b[?25l"), f"{what}: the cursor is seen again")
        os.close(self.master)
        os.close(self.slave)
        self.master = self.slave = -1

    def quit(self, what):
        self.press("q")
        self.end(what, code=0)

    def signal(self, number):
        os.kill(self.pid, number)


def row_of(lines, text):
    """Number of the first line that holds a text."""
    found = [i for i, line in enumerate(lines) if text in line]
    t.true(found, f"{text!r} on\n" + "\n".join(lines))
    return found[0]


__all__ = ["Top", "row_of", "signal"]
