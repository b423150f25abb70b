# SPDX-License-Identifier: Apache-2.0
"""Adversarial stores for query.py: what is hard about a series, and a text of what was put into it.

Blocks are at least 64 KiB, so that records are made wide: 16 KiB make four to a block, 65,528 bytes one.
"""
import json
import os
import shutil
import struct

import lib_stoup as t

T0 = 1_700_000_000_000_000_000
TOP = 2**63 - 1
SCHEMAS = {"tick": None, "q16": 16_384 - 40, "q64": 65_528 - 40, "q1": 1024 - 56}


class Store:
    def __init__(self, path, codec):
        self.path, self.codec = path, codec
        self.expect = path + ".expect"
        self.small = "3M"
        os.makedirs(self.expect)

    def kept(self):
        """Its path, for who looks at a failure."""
        return f"{self.path}, and {self.expect}"

    def remove(self):
        shutil.rmtree(self.path)
        shutil.rmtree(self.expect)

    def file_of(self, name):
        return os.path.join(self.expect, name.replace("/", "+"))

    def ingest(self, name, path, *options, block="64K"):
        codec = () if self.codec is None else ("--codec", self.codec)
        t.run([t.STOUP, "ingest", "--store", self.path, "--series", name, "--block", block, "--quiet",
               *codec, *options, path])


def bytes_of(text):
    return int(text[:-1]) << {"K": 10, "M": 20}[text[-1]]


def schema_file(directory, name, pad):
    path = os.path.join(directory, f"{name}.schema")
    floats = "ratio f64 null=nan\nsmall f32\n" if name == "q1" else ""
    if not os.path.exists(path):
        with open(path, "w", encoding="ascii") as out:
            out.write(f"schema {name}\nkey ts\nts i64 time\nprice i64 scale=-2 null=max\nseq u64\nsize u32\n"
                      f"side char\n{floats}pad bytes[{pad}] hidden\n")
    return path


# ---- keys -----------------------------------------------------------------------------------------

def runs(chance, count, key, longest):
    """Runs of equal keys, most of one, some of hundreds."""
    keys = []
    while len(keys) < count:
        length = chance.choice((1, 1, 1, 2, 3, chance.randint(1, longest)))
        keys += [key] * length
        key += chance.choice((1, 1, 2, 1000, 10**6, 10**12))  # and gaps
    return keys[:count]


def keys_of(chance, kind, count, key=T0):
    if kind == "equal":
        return [key - 1] + [key] * (count - 2) + [key + 1]
    if kind == "runs":
        return runs(chance, count, key, 300)
    if kind == "pairs":  # each border lies within a pair
        return [key + (i + 1) // 2 for i in range(count)]
    if kind == "steps":
        return [key + i * 1000 for i in range(count)]
    if kind == "back":  # for an order that is kept
        keys = runs(chance, count, key, 9)
        for i in range(0, count - 1, 3):
            j = min(count - 1, i + chance.randint(1, 20))
            keys[i], keys[j] = keys[j], keys[i]
        return keys
    if kind == "extremes":
        return ([1] * 3 + [2, 3] + sorted(chance.randrange(4, TOP - 4) for _ in range(max(0, count - 10))) +
                [TOP - 2, TOP - 1] + [TOP - 1] * 3)
    raise ValueError(kind)


# ---- series ---------------------------------------------------------------------------------------

class Rows:
    """The rows of a series over all of its volumes."""

    def __init__(self, chance, keys):
        self.rows = []
        price = 10_000
        for seq, key in enumerate(keys):
            price += chance.choice((-25, 0, 0, 1, 25))
            self.rows.append((key, price, seq, chance.choice((0, 1, 7, 100, 2**32 - 2)), chance.choice("ABN")))


def put_records(store, chance, name, schema, keys, cuts=(), keep=False):
    """A series of a fixed layout, in len(cuts) + 1 volumes."""
    rows = Rows(chance, keys).rows
    pad = SCHEMAS[schema]
    columns = "ts,price,seq,size,side" if pad else "ts,price,size,flags"
    floats = schema == "q1"
    if floats:
        columns += ",ratio,small"
    for first, last in zip((0, *cuts), (*cuts, len(rows))):
        path = os.path.join(store.expect, ".csv")
        with open(path, "w", encoding="ascii") as out:
            out.write(columns + "\n")
            for key, price, seq, size, side in rows[first:last]:
                text = f"{price // 100}.{price % 100:02}"
                more = f",{chance.choice(('', seq % 7 / 4, -0.5))},{seq % 5 / 8}" if floats else ""
                out.write(f"{key},{text},{seq},{size},{side}{more}\n" if pad else f"{key},{text},{size},{seq}\n")
        options = ["--time", "ts", "--time-format", "ns", "--header", "yes"]
        if pad:
            options += ["--schema", schema_file(store.expect, schema, pad), "--map", "pad=-"]
        else:
            options += ["--schema", "tick"]
        if keep:
            options += ["--order", "keep"]
        store.ingest(name, path, *options)
        os.unlink(path)
    with open(store.file_of(name), "w", encoding="ascii") as out:
        if pad:
            out.write("ts price seq size side\n")
            out.writelines(f"{r[0]} {r[1]} {r[2]} {r[3]} {ord(r[4])}\n" for r in rows)
        else:
            out.write("ts price size flags\n")
            out.writelines(f"{r[0]} {r[1] * 10_000_000} {r[3]} {r[2]}\n" for r in rows)


def put_bars(store, chance, name, keys, interval, cuts=()):
    price = 500
    rows = []
    for key in keys:
        prices = [price + chance.randint(-9, 9) for _ in range(4)]
        rows.append((key, prices[0], max(prices), min(prices), prices[3], chance.randrange(1000)))
    for first, last in zip((0, *cuts), (*cuts, len(rows))):
        path = os.path.join(store.expect, ".csv")
        with open(path, "w", encoding="ascii") as out:
            out.writelines(",".join(map(str, row)) + "\n" for row in rows[first:last])
        store.ingest(name, path, "--schema", "bar", "--interval", interval, "--columns",
                     "ts,open,high,low,close,volume", "--time-format", "ns", "--header", "no")
        os.unlink(path)
    with open(store.file_of(name), "w", encoding="ascii") as out:
        out.write("ts open high low close volume\n")
        out.writelines(" ".join(str(v * (10**9 if 0 < i < 5 else 1)) for i, v in enumerate(row)) + "\n"
                       for row in rows)


def fnv(data):
    value = 0xcbf29ce484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001b3 & (2**64 - 1)
    return value


def put_messages(store, chance, name, keys, longest, cuts=(), keep=False):
    texts = [json.dumps({"n": i, "p": chance.choice((None, "1.25", 7)), "x": "y" * chance.randrange(longest)},
                        separators=(",", ":")) for i in range(len(keys))]
    for first, last in zip((0, *cuts), (*cuts, len(keys))):
        path = os.path.join(store.expect, ".jsonl")
        with open(path, "w", encoding="ascii") as out:
            out.writelines(f"{keys[i]} {texts[i]}\n" for i in range(first, last))
        store.ingest(name, path, "--format", "jsonl", "--as", "text", "--time-format", "ns",
                     *(("--order", "keep") if keep else ()))
        os.unlink(path)
    with open(store.file_of(name), "w", encoding="ascii") as out:
        out.write("key len hash\n")
        out.writelines(f"{key} {len(text)} {fnv(text.encode())}\n" for key, text in zip(keys, texts))


# ---- stores ---------------------------------------------------------------------------------------

def apart(keys, cuts):
    """The same without some: two volumes of one key each would be taken for the same file, given twice. Of an order that is
    kept, the key of a record is the greatest up to it."""
    bounds = [(keys[a], max(keys[a:b])) for a, b in zip((0, *cuts), (*cuts, len(keys)))]
    return tuple(cuts) if len(set(bounds)) == len(bounds) else apart(keys, cuts[1:])


def cuts_of(chance, keys, most=4):
    return apart(keys, sorted(chance.sample(range(1, len(keys)), chance.randint(0, min(most, len(keys) - 1)))))


def cuts_kept(chance, keys):
    """Of an order that is kept: where no later key is below the ones before."""
    low, places = TOP, []
    for i in range(len(keys) - 1, 0, -1):
        low = min(low, keys[i])
        if low >= max(keys[:i]):
            places.append(i)
    return apart(keys, sorted(chance.sample(places, min(2, len(places)))))


def make(path, chance, codec):
    store = Store(path, codec)
    for kind in ("equal", "runs", "pairs", "steps", "extremes"):
        keys = keys_of(chance, kind, chance.randint(60, 120))
        put_records(store, chance, f"Q/{kind}/q16", "q16", keys, cuts_of(chance, keys))
        keys = keys_of(chance, kind, chance.randint(20, 40))
        put_records(store, chance, f"Q/{kind}/q64", "q64", keys, cuts_of(chance, keys))
    keys = keys_of(chance, "runs", 900)
    put_records(store, chance, "Q/runs/q1", "q1", keys, apart(keys, (300, 301, 600)))
    keys = keys_of(chance, "runs", 9000)
    put_records(store, chance, "Q/runs/tick", "tick", keys, apart(keys, (1, 2, 5000)))
    put_records(store, chance, "Q/equal/tick", "tick", keys_of(chance, "equal", 6000), (1500, 4000))
    for schema, count in (("q16", 90), ("tick", 6000), ("q64", 20)):
        keys = keys_of(chance, "back", count)
        put_records(store, chance, f"Q/kept/{schema}", schema, keys, cuts_kept(chance, keys), keep=True)
    put_records(store, chance, "Q/one/q64", "q64", [T0 + 5])
    put_records(store, chance, "Q/one/tick", "tick", [1])
    put_bars(store, chance, "Q/minutes/bar", [T0 // 60 * 60 + i * 60 * 10**9 for i in range(4000)], "1m", (2000, 2001))
    put_bars(store, chance, "Q/holes/bar", keys_of(chance, "steps", 3000), "1m", (1500,))
    put_bars(store, chance, "Q/extremes/bar", keys_of(chance, "extremes", 200), "1d", (50,))
    for kind, count, longest in (("runs", 120, 30_000), ("equal", 400, 3000), ("pairs", 3000, 60)):
        keys = keys_of(chance, kind, count)
        put_messages(store, chance, f"Q/{kind}/json", keys, longest, cuts_of(chance, keys))
    keys = keys_of(chance, "back", 200)
    put_messages(store, chance, "Q/kept/json", keys, 5000, cuts_kept(chance, keys), keep=True)
    put_shared(store, chance)
    return store


def mbo(chance, ident, key, price, size):
    """An event of an order, some of them trades."""
    return struct.pack("<BBHIQQqIBBccQiI", 14, 0xA0, 1, ident, key - 1000, 1, price, size, 128, 0,
                       chance.choice((b"A", b"C", b"F", b"T", b"T")), chance.choice((b"A", b"B", b"N")), key, 1000, 0)


def put_shared(store, chance):
    """Many small series in blocks that they share: segments of one record and of few."""
    symbols = {f"S{i:02}": 100 + i for i in range(70)}
    rows = {ident: [] for ident in symbols.values()}
    base = T0
    for _ in range(3):  # volumes
        records = []
        for _ in range(500):
            base += chance.choice((0, 0, 0, 1, 10**9))
            ident = chance.choice(list(symbols.values()))
            row = (ident, base, 100 * 10**9 + chance.randint(-3, 3) * 250_000_000, chance.randint(1, 50))
            records.append(row)
        path = os.path.join(store.expect, ".dbn")
        t.dbn_file(path, symbols, (mbo(chance, *row) for row in records))
        t.run([t.STOUP, "ingest", "--store", store.path, "--block", "64K", "--codec", store.codec, "--quiet", path])
        os.unlink(path)
        for row in records:
            rows[row[0]].append(row)
    for symbol, ident in symbols.items():
        with open(store.file_of(t.name_of(symbol)), "w", encoding="ascii") as out:
            out.write("ts_recv price size\n")
            out.writelines(f"{r[1]} {r[2]} {r[3]}\n" for r in rows[ident])
    gone = "XTST.TEST/S00/mbo"
    t.run([t.STOUP, "rm", "--quiet", "--yes", store.path, gone])
    os.unlink(store.file_of(gone))


def real(path, data):
    """The files of $STOUP_DATA, in small blocks."""
    store = Store(path, "lz4")
    store.small = "2M"
    directory = os.path.join(data, "dbn")
    for name in sorted(os.listdir(directory)) if os.path.isdir(directory) else ():
        if ".v1." not in name and ".v2." not in name:
            t.run([t.STOUP, "ingest", "--store", path, "--block", "64K", "--quiet", os.path.join(directory, name)],
                  expect=None)
    for name in ("binance-usdm-btcusdt-20240808.jsonl.gz",):
        source = os.path.join(data, "json", name)
        if os.path.exists(source):
            t.run([t.STOUP, "ingest", "--store", path, "--series", "BINANCE/BTCUSDT/bipf", "--quiet", source])
    return store
