# SPDX-License-Identifier: Apache-2.0
"""A reader of documents, written from docs/document-format.md alone.

Values: str, bytes, Decimal for every number, list, ("object", [(key, value), ...]), None, False, True.
"""
import struct
from decimal import Decimal


class Broken(Exception):
    pass


def read(data, at=0, end=None, depth=0):
    """The value at `at`: (value, offset behind it)."""
    end = len(data) if end is None else end
    tag = shift = 0
    while True:
        if at == end or shift == 35:
            raise Broken(f"tag at {at}")
        tag |= (data[at] & 0x7f) << shift
        shift += 7
        at += 1
        if data[at - 1] < 0x80:
            break
    length, kind = tag >> 3, tag & 7
    if length > end - at:
        raise Broken(f"length at {at}")
    return payload(kind, data, at, at + length, depth), at + length


def payload(kind, data, at, end, depth):
    raw = data[at:end]
    if kind == 0:
        return raw.decode("utf-8")
    if kind == 1:
        return raw
    if kind == 2:
        return Decimal(struct.unpack("<i", raw)[0])
    if kind == 3:
        return Decimal(repr(struct.unpack("<d", raw)[0]))
    if kind == 6:
        return {b"": None, b"\0": False, b"\1": True}[raw]
    if kind == 7:
        return {1: lambda: Decimal(struct.unpack("<q", raw[1:])[0]), 2: lambda: Decimal(struct.unpack("<Q", raw[1:])[0]),
                3: lambda: Decimal(raw[1:].decode("ascii"))}[raw[0]]()
    if depth == 128:
        raise Broken("depth")
    items = []
    while at < end:
        item, at = read(data, at, end, depth + 1)
        items.append(item)
    if kind == 4:
        return items
    if len(items) % 2 or not all(isinstance(key, str) for key in items[::2]):
        raise Broken("members")
    return "object", list(zip(items[::2], items[1::2]))


def document(data):
    value, at = read(data)
    if at != len(data):
        raise Broken("more behind it")
    return value
