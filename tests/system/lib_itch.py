# SPDX-License-Identifier: Apache-2.0
"""ITCH 5.0 bytes from the published layout, a day of them with an independent naive book, and a reader of
what `stoup cat --format npy` writes."""
import ast
import random
import struct

NONE64 = 2**64 - 1
NONE32 = 2**32 - 1
MBO = struct.Struct("<qQQQQIIIII4sHHcccx")
TRADE = struct.Struct("<qQQQQI4sHHcccc")


def head(kind, locate, ns, tracking=0):
    return kind.encode() + struct.pack(">HH", locate, tracking) + ns.to_bytes(6, "big")


def alpha(text, length):
    return text.encode().ljust(length)


def system(ns, event, tracking=0):
    return head("S", 0, ns, tracking) + event.encode()


def directory(locate, ns, stock, lot=100, leverage=0, tracking=0):
    return head("R", locate, ns, tracking) + alpha(stock, 8) + b"QN" + struct.pack(">I", lot) + b"NCZ P" \
        + b"N 1N" + struct.pack(">I", leverage) + b"N"


def add(locate, ns, ref, side, shares, stock, price, mpid=None, tracking=0):
    return head("F" if mpid else "A", locate, ns, tracking) + struct.pack(">Q", ref) + side.encode() \
        + struct.pack(">I", shares) + alpha(stock, 8) + struct.pack(">I", price) \
        + (alpha(mpid, 4) if mpid else b"")


def executed(locate, ns, ref, shares, match, tracking=0):
    return head("E", locate, ns, tracking) + struct.pack(">QIQ", ref, shares, match)


def executed_at(locate, ns, ref, shares, match, printable, price, tracking=0):
    return head("C", locate, ns, tracking) + struct.pack(">QIQ", ref, shares, match) + printable.encode() \
        + struct.pack(">I", price)


def cancel(locate, ns, ref, shares, tracking=0):
    return head("X", locate, ns, tracking) + struct.pack(">QI", ref, shares)


def delete(locate, ns, ref, tracking=0):
    return head("D", locate, ns, tracking) + struct.pack(">Q", ref)


def replace(locate, ns, old, new, shares, price, tracking=0):
    return head("U", locate, ns, tracking) + struct.pack(">QQII", old, new, shares, price)


def trade(locate, ns, ref, side, shares, stock, price, match, tracking=0):
    return head("P", locate, ns, tracking) + struct.pack(">Q", ref) + side.encode() + struct.pack(">I", shares) \
        + alpha(stock, 8) + struct.pack(">IQ", price, match)


def cross(locate, ns, shares, stock, price, match, kind, tracking=0):
    return head("Q", locate, ns, tracking) + struct.pack(">Q", shares) + alpha(stock, 8) \
        + struct.pack(">IQ", price, match) + kind.encode()


def broken(locate, ns, match, tracking=0):
    return head("B", locate, ns, tracking) + struct.pack(">Q", match)


def imbalance(locate, ns, stock, paired, shares, direction, far, near, reference, kind="O", variation="L", tracking=0):
    return head("I", locate, ns, tracking) + struct.pack(">QQ", paired, shares) + direction.encode() \
        + alpha(stock, 8) + struct.pack(">III", far, near, reference) + (kind + variation).encode()


def framed(messages, end=True):
    return b"".join(struct.pack(">H", len(m)) + m for m in messages) + (b"\0\0" if end else b"")


class Day:
    """A random day, and what an order-by-order book in plain dictionaries says of each message."""

    def __init__(self, seed, count, stocks, midnight, begin_ns=4 * 3600 * 10**9):
        self.rng = random.Random(seed)
        self.midnight, self.ns = midnight, begin_ns
        self.messages, self.orders = [], {}
        self.mbo = {s: [] for s in stocks}
        self.trades = {s: [] for s in stocks}
        self.stocks = {i + 1: s for i, s in enumerate(stocks)}
        self.next_ref, self.next_match = 1, 500
        self.say(system(self.ns, "O"))
        for locate, stock in self.stocks.items():
            self.say(directory(locate, self.tick(), stock))
        for _ in range(count):
            self.step()
        self.say(system(self.tick(), "C"))

    def tick(self):
        self.ns += self.rng.choice([0, 0, 1, 999, 12345, 1_000_000])
        return self.ns

    def say(self, message):
        self.messages.append(message)

    def event(self, kind, locate, tracking, ref, side, price, order_price, size, left, before, mpid,
              prev=NONE64, match=NONE64, printable=b"\0"):
        self.mbo[self.stocks[locate]].append(
            (self.midnight + self.ns, len(self.messages), ref, prev, match, price, order_price, size, left, before,
             mpid, locate, tracking, kind.encode(), side.encode(), printable))

    def traded(self, kind, locate, tracking, match, ref, size, price, mpid=b"\0\0\0\0", side=b"\0", printable=b"Y",
               crossing=b"\0"):
        self.trades[self.stocks[locate]].append(
            (self.midnight + self.ns, len(self.messages), match, ref, size, price, mpid, locate, tracking,
             kind.encode(), side, printable, crossing))

    def step(self):
        rng = self.rng
        ns, tracking = self.tick(), rng.randrange(65536)
        if not self.orders or rng.random() < 0.4:
            self.open_order(rng.choice(list(self.stocks)), ns, tracking)
        elif rng.random() < 0.06:
            self.other(rng.choice(list(self.stocks)), ns, tracking)
        else:
            self.change(rng.choice(list(self.orders)), ns, tracking)

    def open_order(self, locate, ns, tracking):
        rng = self.rng
        ref, side, shares, price = self.next_ref, rng.choice("BS"), rng.randrange(1, 900), rng.randrange(1, 2 * 10**9)
        mpid = rng.choice([None, None, "GSCO", "X"])
        self.next_ref += rng.choice([1, 4, 1 << 33])
        self.say(add(locate, ns, ref, side, shares, self.stocks[locate], price, mpid, tracking))
        text = (mpid or "").encode().ljust(4, b"\0")
        self.orders[ref] = [locate, side, price, shares, text]
        self.event("F" if mpid else "A", locate, tracking, ref, side, price, price, shares, shares, 0, text)

    def change(self, ref, ns, tracking):
        rng = self.rng
        locate, side, price, left, mpid = self.orders[ref]
        kind = rng.choice("EEECXDU")
        some = rng.randrange(1, left + 1)
        if kind == "D":
            self.say(delete(locate, ns, ref, tracking))
            self.event("D", locate, tracking, ref, side, price, price, left, 0, left, mpid)
            del self.orders[ref]
        elif kind == "U":
            new, shares, at = self.next_ref, rng.randrange(1, 900), rng.randrange(1, 2 * 10**9)
            self.next_ref += 1
            self.say(replace(locate, ns, ref, new, shares, at, tracking))
            self.event("U", locate, tracking, new, side, at, price, shares, shares, left, mpid, prev=ref)
            del self.orders[ref]
            self.orders[new] = [locate, side, at, shares, mpid]
        elif kind == "X":
            self.say(cancel(locate, ns, ref, some, tracking))
            self.event("X", locate, tracking, ref, side, price, price, some, left - some, left, mpid)
            self.shrink(ref, some)
        else:
            match, at, printable = self.next_match, price, b"Y"
            self.next_match += 1
            if kind == "C":
                at, printable = rng.randrange(1, 2 * 10**9), rng.choice([b"Y", b"N"])
                self.say(executed_at(locate, ns, ref, some, match, printable.decode(), at, tracking))
            else:
                self.say(executed(locate, ns, ref, some, match, tracking))
            self.event(kind, locate, tracking, ref, side, at, price, some, left - some, left, mpid, match=match,
                       printable=printable)
            self.traded(kind, locate, tracking, match, ref, some, at, mpid, side.encode(), printable)
            self.shrink(ref, some)

    def shrink(self, ref, shares):
        self.orders[ref][3] -= shares
        if self.orders[ref][3] == 0:
            del self.orders[ref]

    def other(self, locate, ns, tracking):
        rng = self.rng
        kind, stock, match = rng.choice("PQBI"), self.stocks[locate], self.next_match
        self.next_match += 1
        if kind == "P":
            self.say(trade(locate, ns, 0, "B", 77, stock, 1234500, match, tracking))
            self.traded("P", locate, tracking, match, 0, 77, 1234500, side=b"B")
        elif kind == "Q":
            self.say(cross(locate, ns, 2**33, stock, 990000, match, "O", tracking))
            self.traded("Q", locate, tracking, match, NONE64, 2**33, 990000, crossing=b"O")
        elif kind == "B":
            self.say(broken(locate, ns, match - 1, tracking))
            self.traded("B", locate, tracking, match - 1, NONE64, NONE64, NONE32, printable=b"\0")
        else:
            self.say(imbalance(locate, ns, stock, 10, 20, "B", 1, 2, 3, tracking=tracking))

    def levels(self, stock):
        """Open shares by (side, price)."""
        book = {}
        for locate, side, price, left, _ in self.orders.values():
            if self.stocks[locate] == stock:
                book[side, price] = book.get((side, price), 0) + left
        return book


def npy_rows(data):
    """(names, itemsize, bytes) of a .npy file."""
    length = struct.unpack_from("<H", data, 8)[0]
    header = ast.literal_eval(data[10:10 + length].decode())
    rows = data[10 + length:]
    count = header["shape"][0]
    return [name for name, _ in header["descr"] if name], len(rows) // count if count else 0, rows
