# SPDX-License-Identifier: Apache-2.0
"""A client of the attach socket in plain Python: hello, questions, the page it is given.

It knows the layouts of shm/wire.h and shm/page.h alone, so that it shows what any process can do.
"""
import array
import mmap
import os
import socket
import struct
import time

HELLO, REPLY, VOLUMES, FORK, FILE, PIN = 1, 2, 3, 4, 6, 7
PIN_ADD, PIN_DROP, PIN_DROP_SAME, PIN_LIST = 1, 2, 3, 4
MONITOR, CHILD = 1, 2
STATE, CELL_HIGH, PENDING, SLOTS, CELLS = 128, 132, 512, 1024, 5120
REFUSED = 304  # cells, bytes, requests
TICKET_BIT, IDLE_BIT = 1 << 62, 1 << 63
HELLO_MAGIC = 0x4F4C5055544F5331
HELLO_TIMEOUT = 2.0  # then the daemon hangs up on who has said nothing


def socket_path(pool):
    own = os.environ.get("XDG_RUNTIME_DIR")
    own = f"{own}/stoup" if own else f"/tmp/stoup-{os.geteuid()}"
    for directory in (own, "/run/stoup"):
        if os.path.exists(f"{directory}/{pool}.sock"):
            return f"{directory}/{pool}.sock"
    raise FileNotFoundError(pool)


def abi(pool, uid=None):
    """(ABI major, minor, fingerprint), as the control object has them."""
    uid = os.geteuid() if uid is None else uid
    with open(f"/dev/shm/stoup.{uid}.{pool}.ctl", "rb") as control:
        return struct.unpack("<QIIQ", control.read(24))[1:]


def buffer_bytes(fds, word):
    """The bytes of the buffer that a lease's word names, through the descriptors of a reply."""
    with mmap.mmap(fds[0], 0, prot=mmap.PROT_READ) as control:
        (table,) = struct.unpack_from("<Q", control, 136)
        off, length = struct.unpack_from("<QI", control, table + (word & (1 << 22) - 1) * 64)
    with mmap.mmap(fds[1], 0, prot=mmap.PROT_READ) as data:
        return data[off:off + length]


class Peer:
    def __init__(self, pool, layout=None, path=None):
        self.abi = layout or abi(pool)
        self.path = path or socket_path(pool)
        self.connect()

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.sock.settimeout(120)
        self.began = time.monotonic()
        self.sock.connect(self.path)

    def hello(self, flags=0, ticket=0, fds=()):
        """The reply; its error is None when the daemon hung up instead, and not because this process was late."""
        message = struct.pack("<QIIIIQQ", HELLO_MAGIC, HELLO, *self.abi[:2], flags, self.abi[2], ticket)
        while True:
            try:
                self.send(message, fds)
                data, found = self.receive()
            except BrokenPipeError:
                data, found = b"", []
            if data:
                break
            if time.monotonic() - self.began < HELLO_TIMEOUT:
                return {"error": None}
            self.sock.close()
            self.connect()
        head = struct.unpack_from("<QIiIIQ16sQIIIIQ", data)
        return {"kind": head[1], "error": head[2], "instance": head[6], "attach_no": head[7], "consumer": head[8],
                "volume_cnt": head[9], "volume_here": head[10], "snapshot_seq": head[12], "fds": found,
                "text": data[80:].split(b"\0")[0].decode()}

    def send(self, message, fds=()):
        control = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        self.sock.sendmsg([message], control)

    def receive(self):
        try:
            data, control, _, _ = self.sock.recvmsg(4096, 4096)
        except ConnectionResetError:
            return b"", []
        fds = array.array("i")
        for _, _, part in control:
            fds.frombytes(part[:len(part) - len(part) % 4])
        return data, list(fds)

    def ask_fork(self, ticket=0):
        self.send(struct.pack("<QIiQ", HELLO_MAGIC, FORK, 0, ticket))

    def fork(self, ticket=0):
        """(error, ticket), or None when the daemon hung up."""
        self.ask_fork(ticket)
        data, _ = self.receive()
        return struct.unpack("<QIiQ", data)[2:] if data else None

    def file(self, volume, ident):
        """(error, volume, descriptors), or None when the daemon hung up."""
        self.send(struct.pack("<QIiII16s", HELLO_MAGIC, FILE, 0, volume, 0, ident))
        data, fds = self.receive()
        return (*struct.unpack("<QIiII16s", data)[2:4], fds) if data else None

    def pin(self, op, series=b"", begin=0, end=0, idx=0):
        """(error, the numbers, text), or None when the daemon hung up."""
        form = "<QIiIIIIqqQQQQII512s"
        self.send(struct.pack(form, HELLO_MAGIC, PIN, 0, op, idx, 0, 0, begin, end, 0, 0, 0, 0, 0, 0, series))
        data, fds = self.receive()
        if not data:
            return None
        found = struct.unpack(form, data)
        names = ("idx", "cnt", "left", "from", "to", "blocks", "bytes", "all", "cap", "pins", "lost")
        return found[2], dict(zip(names, found[4:15])), found[15].split(b"\0")[0].decode(errors="replace")

    def hung_up(self):
        try:
            return self.sock.recv(1) == b""
        except ConnectionResetError:
            return True

    def close(self):
        self.sock.close()


class Page:
    """A consumer page, written like the library does it; one thread."""

    def __init__(self, fds):
        self.map = mmap.mmap(fds[2], 0)
        self.words = memoryview(self.map).cast("Q")
        self.halves = memoryview(self.map).cast("I")
        self.bell = fds[3]

    def cell(self, idx):
        return self.words[CELLS // 8 + idx]

    def release(self, idx):
        self.words[CELLS // 8 + idx] |= IDLE_BIT

    def write_request(self, slot, cell, volume, block, seq=1):
        at = SLOTS + slot * 64
        ticket = TICKET_BIT | seq << 22 | slot
        self.halves[CELL_HIGH // 4] = max(self.halves[CELL_HIGH // 4], cell + 1)
        struct.pack_into("<IIQIIIIIIiiQQ", self.map, at, 1, 1, seq, cell, volume, block, 0, 0, 0, 0, 0, 0, 2**63)
        self.words[CELLS // 8 + cell] = ticket

    def post(self, mask):
        """Requests of the slots in `mask`, all at once."""
        self.words[PENDING // 8] |= mask
        os.write(self.bell, struct.pack("<Q", 1))

    def request(self, slot, cell, volume, block, seq=1):
        """Post a demand; the cell becomes a word when it is granted."""
        self.write_request(slot, cell, volume, block, seq)
        self.post(1 << slot)

    def slot_done(self, slot):
        return self.halves[(SLOTS + slot * 64) // 4] == 3

    def slot_error(self, slot):
        return struct.unpack_from("<i", self.map, SLOTS + slot * 64 + 44)[0]

    def detach(self):
        self.halves[STATE // 4] = 2
