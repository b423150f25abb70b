#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the contents of a volume as text: a second reader, written from docs/volume-format.md alone.

Shares no code with stoup, needs the standard library only, knows the codecs none and lz4 and the field
transform, and does not check the XXH3-64 hashes. It exists to show that the document is enough.

Usage: read_volume.py FILE
"""
import struct
import sys


def fail(words):
    sys.exit("read_volume.py: " + words)


def lz4_block(stored, raw_len):
    """One raw LZ4 block: sequences of token, literals, match offset, match length."""
    raw, at = bytearray(), 0
    while True:
        token = stored[at]
        at += 1
        cnt = token >> 4
        if cnt == 15:
            while True:
                cnt += stored[at]
                at += 1
                if stored[at - 1] != 255:
                    break
        raw += stored[at:at + cnt]
        at += cnt
        if at == len(stored):
            break
        off = stored[at] | stored[at + 1] << 8
        at += 2
        cnt = token & 15
        if cnt == 15:
            while True:
                cnt += stored[at]
                at += 1
                if stored[at - 1] != 255:
                    break
        if off == 0 or off > len(raw):
            fail("an lz4 match points before the block")
        for _ in range(cnt + 4):
            raw.append(raw[-off])
    if len(raw) != raw_len:
        fail(f"a block decodes to {len(raw)} bytes instead of {raw_len}")
    return bytes(raw)


class Fields:
    """A block under the field transform: planes to columns to records, one value at a time."""

    def __init__(self, stored, raw_len):
        self.stored, self.at = stored, 0
        self.stride, column_cnt, self.record_cnt, self.tile_cnt = (
            self.number(2), self.number(2), self.number(4), self.number(4))
        self.widths = [self.number(1) for _ in range(column_cnt)]
        if self.record_cnt * self.stride != raw_len or sum(self.widths) != self.stride:
            fail("the head of a transformed block does not fit the block")

    def take(self, length):
        self.at += length
        if self.at > len(self.stored):
            fail("a transformed block is too short")
        return self.stored[self.at - length:self.at]

    def number(self, length):
        return int.from_bytes(self.take(length), "little")

    def column(self, width):
        """Op, reference, tick, base, null, and per plane (kind, constant)."""
        op = self.number(1)
        ref = self.number(2) if op & 0x04 else None
        tick = self.number(width) if op & 0x08 else 1
        base = self.number(width) if op & 0x10 else 0
        null = self.number(width) if op & 0x20 else None
        bits = self.number((width + 3) // 4)
        kinds = [bits >> 2 * i & 3 for i in range(width)]
        return op & 3, ref, tick, base, null, [(kind, self.number(1) if kind == 0 else None) for kind in kinds]

    def planes(self, columns, cnt):
        """The bytes of each plane of the record, in order."""
        kinds = [plane for column in columns for plane in column[5]]
        lengths = [self.number(4) for kind, _ in kinds if kind == 2]
        planes, stream = [], b""
        for i, (kind, constant) in enumerate(kinds):
            if kind == 0:
                planes.append(bytes([constant]) * cnt)
            elif kind == 1:
                planes.append(self.take(cnt))
            else:
                if kind == 2:
                    more = 1
                    for later, _ in kinds[i + 1:]:
                        if later == 2:
                            break
                        more += later == 3
                    stream = lz4_block(self.take(lengths.pop(0)), more * cnt)
                planes.append(stream[:cnt])
                stream = stream[cnt:]
        return planes

    @staticmethod
    def values(column, width, planes, ref):
        mode, _, tick, base, null, _ = column
        out = []
        for i in range(len(planes[0])):
            u = sum(plane[i] << 8 * p for p, plane in enumerate(planes))
            if null is not None:
                if u == 0:
                    out.append(null)
                    continue
                u -= 1
            if mode == 0:
                value = base + u * tick
            else:
                step = (-(u >> 1) - 1 if u & 1 else u >> 1) * tick
                value = base + step
                if mode == 1 or step > 0:
                    base = value
            out.append((value + (ref[i] if ref else 0)) % (1 << 8 * width))
        return out

    def tile(self, cnt):
        columns = [self.column(width) for width in self.widths]
        planes = self.planes(columns, cnt)
        done, off = [], 0
        for column, width in zip(columns, self.widths):
            ref = done[column[1]] if column[1] is not None else None
            done.append(self.values(column, width, planes[off:off + width], ref))
            off += width
        return b"".join(b"".join(values[i].to_bytes(width, "little") for values, width in zip(done, self.widths))
                        for i in range(cnt))

    def records(self):
        raw, left = b"", self.record_cnt
        while left:
            cnt = min(left, self.tile_cnt)
            raw += self.tile(cnt)
            left -= cnt
        return raw


class Volume:
    SCHEMA = "<IIIIIIIIQQ"
    FIELD = "<36sIHBBb3sQ8s"
    SERIES = "<IIIIIIQqq"
    BLOCK = "<IIQIIIIQQ"
    SEGMENT = "<IIIIIIQqq"

    def __init__(self, file):
        self.file = file
        (magic, self.major, self.minor, self.flags, self.id, self.created, self.ingest,
         self.batch_idx, self.batch_cnt, self.checksum) = struct.unpack_from("<8sHHI16sqQIIQ", file)
        if magic != b"\x89STOUP\r\n" or self.major != 1:
            fail("not a volume of major version 1")
        (self.footer_off, footer_len, _, file_len, header_checksum, _, _, magic) = \
            struct.unpack_from("<QQQQQQQ8s", file, len(file) - 64)
        if magic != b"\x89STEND\r\n" or file_len != len(file) or header_checksum != self.checksum:
            fail("the trailer does not belong to this file")
        self.footer = file[self.footer_off:self.footer_off + footer_len]
        section_cnt, section_len = struct.unpack_from("<II", self.footer)
        self.sections = {}
        for i in range(section_cnt):
            kind, entry_len, off, length, cnt = struct.unpack_from(
                "<IIQQQ", self.footer, 16 + i * section_len)
            self.sections[kind] = (off, entry_len, cnt)
        self.schemas = self.table(2, self.SCHEMA)
        self.fields = self.table(3, self.FIELD)
        self.series = self.table(4, self.SERIES)
        self.blocks = self.table(5, self.BLOCK)
        self.segments = self.table(6, self.SEGMENT)
        self.superseded = [entry[0] for entry in self.table(7, "<16s")]
        self.raw = {}

    def table(self, kind, form):
        off, entry_len, cnt = self.sections[kind]
        return [struct.unpack_from(form, self.footer, off + i * entry_len) for i in range(cnt)]

    def string(self, off, length):
        start = self.sections[1][0] + off
        return self.footer[start:start + length]

    def block(self, idx):
        if idx not in self.raw:
            _, raw_len, off, stored_len, codec, transform, _, _, _ = self.blocks[idx]
            stored = self.file[off:off + stored_len]
            if transform not in (0, 1) or codec not in (0, 1):
                fail(f"codec {codec}, transform {transform}: not known here")
            if transform == 1:
                self.raw[idx] = Fields(stored, raw_len).records()
            else:
                self.raw[idx] = stored if codec == 0 else lz4_block(stored, raw_len)
        return self.raw[idx]


def text_of(padded):
    return padded.split(b"\0")[0]


def print_schemas(volume, out):
    for name_off, name_len, stride, align, key, flags, first, cnt, interval, digest in volume.schemas:
        out.write(b"schema %s stride %d align %d key %d flags 0x%x interval %d hash %016x\n" % (
            volume.string(name_off, name_len), stride, align, key, flags, interval, digest))
        for name, off, elements, kind, bits, exp10, _, null, unit in volume.fields[first:first + cnt]:
            out.write(b"field %s off %d cnt %d type %d flags 0x%x exp10 %d null %x unit '%s'\n" % (
                text_of(name), off, elements, kind, bits, exp10, null, text_of(unit)))


def print_messages(run, cnt, ordinal, out):
    table = len(run) - 4 * cnt
    for i in range(cnt):
        place = table + 4 * i
        head = place - struct.unpack_from("<I", run, place)[0]
        key, length, zero = struct.unpack_from("<qII", run, head)
        if zero:
            fail("a head's last bytes are not zero")
        out.write(b"record %d %d %s\n" % (ordinal + i, key, run[head + 16:head + 16 + length].hex().encode()))


def print_series(volume, out):
    for name_off, name_len, schema_idx, flags, first, cnt, records, key0, key1 in volume.series:
        schema = volume.schemas[schema_idx]
        stride, key_off = schema[2], schema[4]
        out.write(b"series %s schema %s flags 0x%x records %d keys %d %d\n" % (
            volume.string(name_off, name_len), volume.string(schema[0], schema[1]), flags, records,
            key0, key1))
        for _, block, raw_off, raw_len, record_cnt, _, ordinal, _, _ in \
                volume.segments[first:first + cnt]:
            raw = volume.block(block)[raw_off:raw_off + raw_len]
            if stride == 0:
                print_messages(raw, record_cnt, ordinal, out)
                continue
            for i in range(record_cnt):
                record = raw[i * stride:(i + 1) * stride]
                key, = struct.unpack_from("<q", record, key_off)
                out.write(b"record %d %d %s\n" % (ordinal + i, key, record.hex().encode()))


NUMBERS = {1: "<B", 2: "<b", 3: "<H", 4: "<h", 5: "<I", 6: "<i", 7: "<Q", 8: "<q", 9: "<f", 10: "<d", 11: "<B"}


def check_zones(volume):
    """Rows of zone maps: each allows all that its segment has."""
    if 8 not in volume.sections:
        return
    off, entry_len, cnt = volume.sections[8]
    end = off + entry_len * cnt
    while off < end:
        segment = volume.segments[struct.unpack_from("<I", volume.footer, off)[0]]
        schema = volume.schemas[volume.series[segment[0]][2]]
        fields = [field for field in volume.fields[schema[6]:schema[6] + schema[7]]
                  if field[2] == 1 and field[3] != 12 and not field[4] & 8]
        at = off + 8 + (len(fields) + 7) // 8 * 8
        raw = volume.block(segment[1])[segment[2]:segment[2] + segment[3]]
        for i, (name, place, _, kind, flags, _, _, null, _) in enumerate(fields):
            form = NUMBERS[kind]
            width = struct.calcsize(form)
            allowed = volume.footer[off + 8 + i]
            least, greatest = struct.unpack_from(form + form[1], volume.footer, at)
            at += 2 * width
            for start in range(place, len(raw), schema[2]):
                value, = struct.unpack_from(form, raw, start)
                if value != value or (flags & 1 and int.from_bytes(raw[start:start + width], "little") == null):
                    fine = allowed & 1
                else:
                    fine = allowed & 2 and least <= value <= greatest
                if not fine:
                    fail(f"a zone map excludes {value} of field {text_of(name)}")
        off = (at + 7) // 8 * 8


def main():
    if len(sys.argv) != 2:
        fail("usage: read_volume.py FILE")
    with open(sys.argv[1], "rb") as file:
        volume = Volume(file.read())
    out = sys.stdout.buffer
    out.write(b"volume %s\n" % volume.id.hex().encode())
    out.write(b"created %d ingest %d batch %d of %d\n" % (
        volume.created, volume.ingest, volume.batch_idx, volume.batch_cnt))
    for identity in volume.superseded:
        out.write(b"superseded %s\n" % identity.hex().encode())
    print_schemas(volume, out)
    print_series(volume, out)
    check_zones(volume)


main()
