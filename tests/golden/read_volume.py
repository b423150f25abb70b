#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the contents of a volume as text: a second reader, written from docs/volume-format.md alone.

Shares no code with stoup, needs the standard library only, knows the codecs none and lz4, and does
not check the XXH3-64 hashes. It exists to show that the document is enough.

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
            if transform != 0 or codec not in (0, 1):
                fail(f"codec {codec}, transform {transform}: not known here")
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
            for i in range(record_cnt):
                record = raw[i * stride:(i + 1) * stride]
                key, = struct.unpack_from("<q", record, key_off)
                out.write(b"record %d %d %s\n" % (ordinal + i, key, record.hex().encode()))


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


main()
