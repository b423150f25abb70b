# SPDX-License-Identifier: Apache-2.0
"""DBN files of every version and kind, written from the published layout, and taken apart again."""
import struct

DAY = 86_400_000_000_000
DAY1 = 1_609_113_600_000_000_000  # 2020-12-28T00:00:00Z

# name: (schema number, rtype, lengths in versions 1 to 3, offset of the key)
KINDS = {
    "mbo": (0, 0xA0, (56, 56, 56), 40), "mbp-1": (1, 0x01, (80, 80, 80), 32),
    "mbp-10": (2, 0x0A, (368, 368, 368), 32), "tbbo": (3, 0x01, (80, 80, 80), 32),
    "trades": (4, 0x00, (48, 48, 48), 32), "ohlcv-1s": (5, 0x20, (56, 56, 56), 8),
    "ohlcv-1m": (6, 0x21, (56, 56, 56), 8), "ohlcv-1h": (7, 0x22, (56, 56, 56), 8),
    "ohlcv-1d": (8, 0x23, (56, 56, 56), 8), "definition": (9, 0x13, (360, 400, 520), 16),
    "statistics": (10, 0x18, (64, 64, 80), 16), "status": (11, 0x12, (40, 40, 40), 16),
    "imbalance": (12, 0x14, (112, 112, 112), 16), "ohlcv-eod": (13, 0x24, (56, 56, 56), 8),
    "cmbp-1": (14, 0xB1, (0, 80, 80), 32), "cbbo-1s": (15, 0xC0, (0, 80, 80), 32),
    "cbbo-1m": (16, 0xC1, (0, 80, 80), 32), "tcbbo": (17, 0xC2, (0, 80, 80), 32),
    "bbo-1s": (18, 0xC3, (80, 80, 80), 32), "bbo-1m": (19, 0xC4, (80, 80, 80), 32),
    "error": (0xFFFF, 0x15, (80, 320, 320), 8), "symbol-mapping": (0xFFFF, 0x16, (80, 176, 176), 8),
    "system": (0xFFFF, 0x17, (80, 320, 320), 8),
}
MIXED = 0xFFFF


def record(kind, version, ident, key, seed=0, ts_out=False):
    """A record of a pattern, with its key."""
    _, rtype, lengths, key_off = KINDS[kind]
    body = bytearray((i * 7 + rtype + seed * 13) & 0xFF for i in range(lengths[version - 1]))
    if kind == "symbol-mapping":
        body[16:] = bytes(len(body) - 16)
    length = len(body) + (8 if ts_out else 0)
    body[:16] = struct.pack("<BBHIQ", length // 4, rtype, 1, ident, key - 500)
    body[key_off:key_off + 8] = struct.pack("<Q", key)
    return bytes(body) + (struct.pack("<Q", key + 77) if ts_out else b"")


def date(day):
    import datetime
    return int((datetime.date(1970, 1, 1) + datetime.timedelta(days=day)).strftime("%Y%m%d"))


def file(version, schema, mappings, records, ts_out=False, dataset="TEST.SET", stype_in=1):
    """mappings: [(symbol, [(first YYYYMMDD, end YYYYMMDD, instrument), ...]), ...]"""
    size = 22 if version == 1 else 71

    def cstr(text):
        return text.encode().ljust(size, b"\0")

    meta = bytearray()  # tables of megabytes are appended to in place
    meta += struct.pack("<16sHQQQ", dataset.encode(), schema, DAY1, 2**64 - 1, 0)
    if version == 1:
        meta += struct.pack("<Q", 2**64 - 1)
    meta += struct.pack("<BBB", stype_in, 0, ts_out)
    meta += bytes(47) if version == 1 else struct.pack("<H53s", size, b"")
    meta += struct.pack("<II", 0, len(mappings)) + b"".join(cstr(s) for s, _ in mappings) + bytes(8)
    meta += struct.pack("<I", len(mappings))
    for symbol, intervals in mappings:
        meta += cstr(symbol) + struct.pack("<I", len(intervals))
        for first, end, ident in intervals:
            meta += struct.pack("<II", first, end) + cstr(str(ident))
    if version == 3:
        meta += bytes(-len(meta) % 8)
    return b"DBN" + bytes([version]) + struct.pack("<I", len(meta)) + meta + b"".join(records)


class Parsed:
    """What a DBN file says, read from the published layout."""

    def __init__(self, data):
        self.version = data[3]
        size = struct.unpack_from("<I", data, 4)[0]
        base = 58 if self.version == 1 else 50
        self.dataset = data[8:24].rstrip(b"\0").decode()
        self.schema, self.start, self.end, self.limit = struct.unpack_from("<HQQQ", data, 24)
        self.stype_in, self.stype_out, self.ts_out = data[base], data[base + 1], data[base + 2]
        length = 22 if self.version == 1 else struct.unpack_from("<H", data, base + 3)[0]
        self.symbol_len = length
        at = 112

        def u32():
            nonlocal at
            at += 4
            return struct.unpack_from("<I", data, at - 4)[0]

        def cstr():
            nonlocal at
            at += length
            return data[at - length:at].rstrip(b"\0").decode()

        self.symbols = [cstr() for _ in range(u32())]
        self.partial, self.not_found = u32(), u32()
        self.mappings = []
        for _ in range(u32()):
            symbol = cstr()
            rows = []
            for _ in range(u32()):
                first, end = u32(), u32()
                rows.append((first, end, cstr()))
            self.mappings.append((symbol, rows))
        self.padding = data[at:8 + size]
        self.body_off = 8 + size
        self.body = data[8 + size:]

    def records(self):
        at, out = 0, []
        while at < len(self.body):
            size = self.body[at] * 4
            out.append(self.body[at:at + size])
            at += size
        return out
