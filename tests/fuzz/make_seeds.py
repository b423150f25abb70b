# SPDX-License-Identifier: Apache-2.0
"""Write the first inputs of each fuzz target, from the published layouts alone; no real data.

usage: make_seeds.py DIRECTORY     makes DIRECTORY/NAME/seed-* for each target NAME

What libFuzzer finds from there, merged down to what adds coverage, lies beside them in corpus/.
"""
import os
import random
import struct
import sys
import zlib

OUT = sys.argv[1]


def seed(target, name, data):
    os.makedirs(os.path.join(OUT, target), exist_ok=True)
    with open(os.path.join(OUT, target, "seed-" + name), "wb") as out:
        out.write(data)


# ---- numbers and times -------------------------------------------------------------------------------
for i, text in enumerate(("1.12170", "-0.000000001", "9223372036854775807", "-9223372036854775808",
                          "18446744073709551615", "1.5e-8", "00012.3400e2", "+.5", "1e19",
                          "0.0000000000000000000000001e25", "9223372036854775.80700000000000000000")):
    seed("number", f"decimal-{i}", bytes([0, 9]) + text.encode())
    seed("number", f"integer-{i}", bytes([0, 18]) + text.encode())
for i, text in enumerate(("2013-01-01 22:00:00.295000+00:00", "2013-01-01T22:00:00Z", "2013-01-01", "20200101",
                          "20200101 170000065", "20200101-17:00:00.065", "2024-02-29t0930,5 -0530",
                          "1677-09-21T00:12:43.145224193Z", "2262-04-11T23:47:16.854775807Z")):
    seed("number", f"iso-{i}", bytes([1, 0, 0, 0]) + text.encode())
    seed("number", f"auto-{i}", bytes([4, 0, 60, 0]) + text.encode())
for i, (pattern, text) in enumerate((("%d/%m/%Y %H:%M", "31/12/2020 17:00"),
                                     ("%Y%m%d%H%M%S%f%z", "20201231170001123456789+01:00"),
                                     ("%Y-%m-%d %%", "2020-12-31 %"))):
    seed("number", f"pattern-{i}", bytes([2, len(pattern), 0, 0]) + (pattern + text).encode())
for i, text in enumerate(("1585699200.245", "1585699200245", "1585699200245000", "1585699200245000123")):
    for unit in range(5):
        seed("number", f"epoch-{i}-{unit}", bytes([3, unit, 0, 0]) + text.encode())
    seed("number", f"epoch-auto-{i}", bytes([4, 0, 0, 0]) + text.encode())

# ---- texts: two views, and specs of bars ---------------------------------------------------------------
for i, (first, second) in enumerate((("", ""), ("a,b,,c", "b,"), ("BTCUSDT", "btcusdt"), (" 61800.30 ", "61800.30"),
                                     ("-9223372036854775808", "18446744073709551615"), ("1200e-3", "12.5E-20"),
                                     ("2024-01-02T03:04:05.123456789Z", "1704164645123"), ("1m", "90s"),
                                     ("0.250v", "9223372036854775807ns"), ("1000000n", "100t"), ("0e99", "-0.000"),
                                     ("12345678901234567", "12345678901234568"))):
    seed("text", f"pair-{i}", bytes([len(first), ord(",")]) + (first + second).encode())

# ---- blocks ------------------------------------------------------------------------------------------
RECORDS = b"".join(struct.pack("<qqII", 1_700_000_000_000_000_000 + i * 1000, 100 + i % 7, i, 0)
                   for i in range(40))
LZ4 = b"\xf0\x05" + bytes(range(20))                              # 20 literals
LZ4_MATCH = b"\x1f" + b"a" + b"\x01\x00" + b"\x05" + b"\x50" + b"bcdef"  # a run, then literals
ZSTD_RAW = b"\x28\xb5\x2f\xfd\x20\x05" + struct.pack("<I", 5 << 3 | 1)[:3] + b"hello"
ZSTD_RLE = b"\x28\xb5\x2f\xfd\x20\x64" + struct.pack("<I", 100 << 3 | 3)[:3] + b"z"


def stored(codec, raw_len, data, what=0):
    return bytes([codec, what]) + struct.pack("<I", raw_len)[:3] + data


seed("block", "none", stored(0, 20, bytes(range(20))))
seed("block", "lz4", stored(1, 20, LZ4))
seed("block", "lz4-match", stored(1, 30, LZ4_MATCH))
seed("block", "zstd-raw", stored(2, 5, ZSTD_RAW))
seed("block", "zstd-rle", stored(2, 100, ZSTD_RLE))
seed("block", "zstd-skippable", stored(2, 5, b"\x50\x2a\x4d\x18\x03\x00\x00\x00abc" + ZSTD_RAW))
seed("block", "unknown", stored(3, 5, b"hello", 1))
for codec in range(4):
    seed("block", f"encode-{codec}", stored(codec, 0, RECORDS, 128))
    seed("block", f"encode-level-{codec}", stored(codec, 0x103, RECORDS[:300], 128))

MBO = b"".join(struct.pack("<BBHIQQqIBBccQiI", 14, 160, 1, 17077, 1_703_546_220_765_740_755 + i * i * 977,
                           6_412_777_275_647 + i * (1 if i % 3 else -700), (4_808_000 + i % 7 * 250) * 1_000_000
                           if i % 9 else (1 << 63) - 1, 1 + i % 5, 130, 0, b"ACM"[i % 3:i % 3 + 1], b"AB"[i & 1:][:1],
                           1_703_546_220_765_831_825 + i * i * 977 + i % 11 * 13, 15_261 - i % 17 * 100, 25_608 + i)
               for i in range(100))
# Types of the fields of MBO as fuzz_block.c takes them: type - 1, flags (1: a null, 2: a time, 16: a scale).
LAYOUT = b"".join(bytes(field) for field in (
    (0, 0), (0, 0), (2, 0), (4, 0), (6, 2), (6, 0), (7, 0x11), b"\xff\xff\xff\xff\xff\xff\xff\x7f", (4, 0), (0, 0), (0, 0),
    (10, 0), (10, 0), (6, 2), (5, 0), (4, 0)))
for codec, level in enumerate(("fast", "default", "small"), 4):
    seed("block", f"encode-{level}", stored(codec, 0, bytes([15]) + LAYOUT + MBO, 128))
    seed("block", f"encode-{level}-short", stored(codec, 0, bytes([15]) + LAYOUT + MBO[:56 * 37], 128))


def fields(codec, stride, widths, tile_cnt, tiles, records):
    head = struct.pack("<HHII", stride, len(widths), records, tile_cnt) + bytes(widths)
    return stored(codec, stride * records, head + tiles, 1)


# Planes: 0 const, 1 raw, 2 packed, 3 more. Ops: 0 offset, 1 step, 2 peak; 4 reference, 8 tick, 16 base, 32 null.
RUN = bytes(i % 5 for i in range(40))
seed("block", "fields-const", fields(0, 3, [1, 2], 4, b"\0\0\7" + b"\0\0\1\2", 4))
seed("block", "fields-raw", fields(0, 3, [1, 2], 40, b"\0\1" + b"\x11\x01\0\1\0" + RUN + RUN, 40))
seed("block", "fields-ops", fields(0, 16, [4, 4, 8], 40, b"\x19" + struct.pack("<IIB", 250, 1000, 1) + b"\0\0\0" +
                                   b"\x26\0\0" + struct.pack("<IB", 0xffffffff, 1) + b"\0\0\0" +
                                   b"\x38" + struct.pack("<QQQH", 1 << 40, 1 << 63, 7, 5) + bytes(6) + RUN * 4, 40))
seed("block", "fields-lz4", fields(1, 2, [1, 1], 20, b"\0\2" + b"\1\1" + struct.pack("<I", len(LZ4)) + LZ4 + bytes(20), 20))
seed("block", "fields-zstd", fields(2, 2, [2], 50, b"\1\x0e" + struct.pack("<I", len(ZSTD_RLE)) + ZSTD_RLE, 50))
seed("block", "fields-tiles", fields(0, 1, [1], 3, b"\0\1abc" + b"\0\1def" + b"\0\0z", 7))

# ---- packed files ------------------------------------------------------------------------------------


def frames(packing, payloads, place=0, mask=0, cut=0):
    body = b"".join(bytes([kind, len(data)]) + data for kind, data in payloads)
    return bytes([packing, 7]) + struct.pack("<HBH", place, mask, cut) + body


for packing in (4, 5, 6):
    some = [(0, b"ts,price\n"), (1, b"abc"), (2, b""), (0x13, b"z" * 200), (6, b"1,2\n" * 20)]
    seed("input", f"frames-{packing}", frames(packing, some))
    seed("input", f"damaged-{packing}", frames(packing, some, 30, 4))
    seed("input", f"cut-{packing}", frames(packing, some, 0, 0, 40))
seed("input", "plain", bytes([0, 1]) + b"ts,price\n1,2\n")
seed("input", "zstd", bytes([0, 0]) + ZSTD_RAW + ZSTD_RLE)
seed("input", "gzip", bytes([0, 3]) + b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03" +
     zlib.compress(b"abc" * 50)[2:-4] + struct.pack("<II", zlib.crc32(b"abc" * 50), 150))
seed("input", "zip", bytes([0, 5]) + b"PK\x03\x04\x0a\x00\x00\x00\x00\x00" + bytes(4) +
     struct.pack("<IIIHH", zlib.crc32(b"abc"), 3, 3, 1, 0) + b"a" + b"abc" + b"PK\x01\x02")

# ---- CSV and schema files ----------------------------------------------------------------------------
SCHEMA = b"""schema quotes.l1   # words
key ts
align 8
ts     i64 time
bid    i64 scale=-5 null=max unit=USD
ask    price
size   u32 null=max at=24
side   char null=78
field venue  char[4]
last   f64 null=nan
flags  i8 null=-1 hidden
age    i32 null=min duration
"""
seed("csv", "schema", b"\x00" + SCHEMA)
seed("csv", "schema-bar", b"\x00schema b\nbar 1m\nkey t\nt time\npx price\nn u64\nx bytes[8] hidden\nstride 64\nalign 64\n")
seed("csv", "columns", b"\x07series=a/b\ncolumns=ts:time,bid:price,n:u32,x:f64,s:char[4],-,f:u8,g:f32,h:i16\n\n"
     b"2024-01-02T03:04:05.5Z,1.1217,7,0.1,abc,?,true,1e-3,-5\n"
     b'1704164646,"1.2", 8 ,1e300,"a,""",,0,-0.5,\n')
seed("csv", "map", b"\x09time=timestamp\nmap=bid:price=Bid,n:i32=#3\ntime-format=ms\ntime-zone=+01:00\n\n"
     b"\xef\xbb\xbftimestamp,Bid,n,rest\r\n1704164646123,1.25,-3,x\r\n\r\n1704164646124,,4,\"y\r\nz\"\r\n")
seed("csv", "bars", b"\x05schema=bar\ninterval=1m\ntime=t\nmap=volume=vol,open=o,high=h,low=l,close=c\ndelimiter=tab\n\n"
     b"t\to\th\tl\tc\tvol\n2024-01-02 03:04\t1\t2\t0.5\t1.5\t100\n")
seed("csv", "schema-file", b"\x0bschema=@\ncolumns=ts,bid,ask,size\nheader=no\ndelimiter=;\n\n"
     b"schema q\nkey ts\nts i64 time\nbid i64 scale=-2\nask price\nsize u8 null=max\n\n"
     b"20240102 030405;1.25;1.26;3\n20240102 030406;1.25;;\n")
seed("csv", "rows", b"\x06,a,\"b\"\"\n\",c\r\n\n1,,3\n")
seed("csv", "pattern", b"\x01columns=ts:time,v:i64\ntime-format=%d/%m/%Y %H:%M\nscale=2\n\n31/12/2020 17:00,9\n")
# Presets: the file is called "fuzz".
seed("csv", "binance", b"\x05format=binance-trades\nsymbol=B\n\n"
     b"1,2.5,0.25,0.625,1704067200000,True,False\n2,-2,1e-8,1,1735689600000001,0,1\n")
seed("csv", "klines", b"\x05symbol=B\n\n"
     b"1502942400000,4261.48,4261.48,4261.48,4261.48,1.775183,1502942459999,7564.9,3,0.075183,320.3,7958\n")
seed("csv", "tardis", b"\x09x=y\n\nexchange,symbol,timestamp,local_timestamp,is_snapshot,side,price,amount\n"
     b"d,A,1585699200245000,1585699200355684,true,ask,6421.5,18640\n"
     b"d,B/%,1585699200245000,1585699200355684,false,bid,6421.5,0\n")
seed("csv", "book", b"\x09format=tardis-book\n\nexchange,symbol,timestamp,local_timestamp,asks[0].price,"
     b"asks[0].amount,bids[0].price,bids[0].amount\nd,A,1585699200245000,1585699200355684,1.5,2,,\n")
seed("csv", "lobster", b"\x05format=lobster\nsymbol=A\nday=15512\n\n34200.004241176,1,16,18,5853300,1\n")
seed("csv", "lobster-book", b"\x05format=lobster-book\nsymbol=A\nday=15512\n\n"
     b"34200.5,5859400,200,5853300,18,9999999999,0,-9999999999,0\n")
seed("csv", "databento", b"\x05x=y\n\nts_event,rtype,publisher_id,instrument_id,open,high,low,close,volume,symbol\n"
     b"1609160400000000000,33,1,5482,1,9223372036854775807,3,4,353,ES\n")

# ---- catalogs ----------------------------------------------------------------------------------------


def field(name, off, type_, flags=0, cnt=1, exp10=0, null=0):
    return struct.pack("<36sIHBBb3xQ8s", name, off, cnt, type_, flags, exp10, null, b"")


def catalog(flags, schemas, fields, series, blocks, segments, strings, change=(0, 0), cut=0):
    head = bytes([flags, len(schemas), len(fields), len(series), len(blocks), len(segments)])
    head += struct.pack("<HHB", len(strings), *change)
    data = head + b"".join(schemas + fields + series + blocks + segments) + strings
    return data[:len(data) - cut]


STRINGS = b"/data/a.stoup\0A/A\0B/B\0C\0"
SCHEMAS = [struct.pack("<32sIIIIQQII", b"pair", 16, 8, 0, 0, 0, 1, 0, 2),
           struct.pack("<32sIIIIQQII", b"wide", 24, 8, 8, 0, 0, 2, 2, 2)]
FIELDS = [field(b"ts", 0, 8, 6), field(b"value", 8, 7), field(b"x", 0, 10), field(b"ts", 8, 8, 6)]


def series(name_off, name_len, schema, first, cnt, records):
    return struct.pack("<IIIIIIQqq", name_off, name_len, schema, 0, first, cnt, records, 1, 99)


def segment(block, off, cnt, of, ordinal):
    return struct.pack("<IIIIQqq", block, off, cnt, of, ordinal, 1, 99)


SERIES = [series(14, 3, 0, 0, 2, 12), series(18, 3, 1, 2, 1, 4), series(22, 1, 0, 3, 0, 0)]
BLOCKS = [struct.pack("<IIIIQ", 192, 100, 1, 0, 64), struct.pack("<IIIIQ", 96, 96, 0, 1, 192)]
SEGMENTS = [segment(0, 0, 8, 0, 0), segment(0, 128, 4, 0, 8), segment(1, 0, 4, 1, 0)]
seed("catalog", "good", catalog(0, SCHEMAS, FIELDS, SERIES, BLOCKS, SEGMENTS, STRINGS))
seed("catalog", "short", catalog(1, SCHEMAS, FIELDS, SERIES, BLOCKS, SEGMENTS, STRINGS))
seed("catalog", "header", catalog(2, SCHEMAS, FIELDS, SERIES, BLOCKS, SEGMENTS, STRINGS, (40, 1)))
seed("catalog", "cut", catalog(0, SCHEMAS, FIELDS, SERIES, BLOCKS, SEGMENTS, STRINGS, cut=9))
seed("catalog", "empty", catalog(0, [], [], [], [], [], b""))
# A segment of the series of short records, claimed by the series of long ones.
seed("catalog", "borrowed-segment", catalog(0, SCHEMAS, FIELDS, [series(14, 3, 1, 0, 1, 12)] + SERIES[1:],
                                            BLOCKS, [segment(0, 0, 12, 2, 0), segment(0, 0, 12, 2, 0), SEGMENTS[2]], STRINGS))

# ---- control objects ---------------------------------------------------------------------------------
for what, word in enumerate(("stat", "all", "json", "holders", "log-json", "holders-json", "histograms", "log", "metrics")):
    # consumers, buffers and volumes: 2 each; a consumer and a volume with odd texts
    changes = struct.pack("<I", 4096)[:3] + b"\x10" + struct.pack("<IIII", 1, 7, 0, 3)
    changes += struct.pack("<I", 4096 + 96)[:3] + b"\x10" + b'"\\\x01\xff\xfe-command' + b"abc"
    changes += struct.pack("<I", 4096 + 2 * 128 + 2 * 64)[:3] + b"\x04" + struct.pack("<I", 1)
    changes += struct.pack("<I", 1024)[:3] + b"\x08" + struct.pack("<II", 2, 2)
    seed("control", word, bytes([1, 1, 1, what]) + changes)
    # the tables of minor 2: far away, and of rows that are longer
    for name, values in (("far", (2**64 - 8, 4096, 6, 2752, 512, 192)), ("long", (8192, 8192, 64, 2760, 65536, 65536))):
        seed("control", f"{word}-{name}", bytes([1, 1, 1, what]) + struct.pack("<I", 992)[:3] + b"\x20" + struct.pack("<QQIIII", *values))
    # the table of minor 3: far away, nowhere, of rows that are longer or odd
    for name, values in (("quota-far", (2**62, 2**64 - 8, 16, 128)), ("quota-none", (0, 0, 0, 0)), ("quota-long", (1, 4096, 1024, 4096)),
                         ("quota-odd", (1, 4096, 4, 132))):
        seed("control", f"{word}-{name}", bytes([1, 1, 1, what]) + struct.pack("<I", 1408)[:3] + b"\x18" + struct.pack("<QQII", *values))
    seed("control", word + "-magic", bytes([0, 0, 0, what, 0, 0, 0, 8]) + bytes(8))

# ---- a consumer's page, and the attach socket --------------------------------------------------------
# Steps of fuzz_page.c: 0-7 the hostile one, 8-9 a turn, 10 time, 11-12 request, 13 hit, 14-15 release, 15 from 128 on pins.
REQUEST = bytes([2, 3, 9, 3, 0, 5, 8, 0, 0, 1])
seed("page", "rescan", bytes([11, 1, 9, 0, 11, 0x22, 13, 0x22, 2, 3, 9, 3, 2, 5, 8, 2, 0, 1, 4, 8, 0, 9, 0, 8, 0,
                              11, 4, 9, 0, 9, 0, 14, 0, 14, 1, 9, 0, 9, 0, 11, 0x21]))
seed("page", "laggard", bytes([0, 136, 0, 8]) + bytes(8) + bytes([9, 0] * 12 + [11, 0x22, 9, 0, 8, 0, 11, 2]))
seed("page", "legal", bytes([11, 1, 13, 1, 12, 0x12, 14, 0, 15, 1, 11, 2, 8, 0]))
seed("page", "request", REQUEST + bytes([4, 8, 0, 9, 0, 11, 1, 8, 0]))
seed("page", "cells", bytes([1, 0xff, 0, 0, 0, 8, 0, 11, 4, 10, 200, 10, 200, 8, 0, 8, 0]))
seed("page", "bytes", bytes([0, 0, 4, 64]) + bytes(range(64)) + bytes([4, 8, 0, 11, 5]))
seed("page", "large", bytes([11, 3, 11, 0x13, 11, 2, 14, 0]))
seed("page", "pins", bytes([15, 0x80, 11, 1, 11, 2, 14, 0, 14, 1, 11, 0x13, 11, 0x14, 14, 0, 14, 1, 11, 3, 15, 0xf0, 11, 5]))
seed("page", "pins-rescan", bytes([15, 0xa0, 11, 0x22, 14, 0, 9, 0, 9, 0, 11, 0x21, 14, 0, 15, 0xa8, 9, 0, 11, 1, 11, 2, 11, 4, 11, 6]))
seed("page", "pins-held", bytes([15, 0x85, 11, 5, 11, 6, 11, 8, 11, 0x11, 11, 0x15, 14, 0, 14, 1, 14, 2, 14, 3, 11, 0x18, 15, 0x9c, 11, 9]))
seed("page", "detach", REQUEST + bytes([5, 2, 8, 0, 10, 60, 8, 0, 0, 11, 6]))
seed("page", "hang-up", REQUEST + bytes([4, 8, 0, 6, 0, 8, 0, 2, 11, 7, 6, 1, 0, 10, 100]))
# Steps of fuzz_quota.c: member << 4 | what, argument; before them the pages of both quotas, less one.
QUOTA = {"ask": 0, "hurry": 3, "release": 4, "give-up": 7, "dismiss": 8, "leave": 9, "copy": 10, "child": 11, "turn": 12, "rest": 13,
         "time": 14, "bury": 15}


def quota_seed(name, pages, *steps):
    # A block by its pages: 1, 8, 4, 11 (more than is served), 7, 3, 10, 6, 2, 9, 5.
    parts = bytearray(page - 1 for page in pages)
    for member, what, *rest in steps:
        arg = rest[0] if rest else 0
        if what in ("ask", "hurry"):
            arg |= (rest[1] - 1) * 8 % 11 << 2  # 7 * 8 = 1 modulo 11
        parts += bytes([member << 4 | QUOTA[what], arg])
    seed("quota", name, bytes(parts))


ENTER = [(0, "ask", 0, 1), (1, "ask", 0, 1), (2, "ask", 0, 1)]  # the first step of each attaches it, to the first quota
quota_seed("beyond", (12, 12), *ENTER, (0, "ask", 0, 8), (1, "ask", 0, 8), (2, "ask", 0, 3), (0, "rest"), (0, "release", 0), (0, "rest"))
quota_seed("given-up", (12, 12), *ENTER, (0, "ask", 0, 8), (0, "rest"), (1, "ask", 0, 8), (2, "ask", 0, 3), (0, "rest"), (1, "give-up", 0),
           (0, "rest"))
quota_seed("dismissed", (12, 12), *ENTER, (0, "ask", 0, 8), (0, "rest"), (1, "ask", 0, 8), (2, "ask", 0, 3), (1, "dismiss"), (0, "rest"))
quota_seed("copied", (21, 12), *ENTER, (0, "ask", 0, 8), (0, "rest"), (0, "copy"), (1, "ask", 0, 8), (0, "rest"), (4, "child"),
           (4, "release", 0), (0, "rest"))
quota_seed("one-block", (2, 2), *ENTER, (0, "ask", 0, 10), (1, "ask", 0, 9), (2, "ask", 0, 1), (0, "rest"), (0, "release", 0), (0, "rest"))
quota_seed("dead", (12, 12), *ENTER, (0, "ask", 0, 8), (0, "rest"), (1, "ask", 0, 8), (0, "leave", 0), (0, "rest"), (0, "bury"))
quota_seed("time", (12, 12), *ENTER, (0, "ask", 0, 8), (0, "rest"), (1, "hurry", 0, 8), (2, "ask", 0, 8), (0, "time", 60), (0, "rest"))
for number in range(16):
    chance = random.Random(number)
    quota_seed(f"chance-{number}", [chance.choice((3, 6, 10, 13, 21)) for _ in range(2)], *((member, "ask", member % 3, 1) for member in range(6)),
               *((chance.randrange(6), chance.choices(list(QUOTA), (18, 2, 12, 2, .4, .6, 1, 1.5, 3, 4, 1, .7))[0], chance.randrange(256) & ~60,
                  chance.choice((1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11))) for _ in range(150)))
# Steps of fuzz_hello.c: peer << 4 | what.
HELLO = bytes([3, 3, 0, 0, 0])  # connect; say: flags, how it is changed, descriptors
FORK = bytes([7, 0, 0, 0])      # ticket, change, descriptors
seed("hello", "attach", HELLO + bytes([15, 6, 0, 0, 0, 0, 15, 13, 1]))
seed("hello", "volumes-unread", HELLO + bytes([15, 6, 0, 0, 0, 0, 6, 1, 0, 0, 0, 0, 10]))
seed("hello", "monitor", bytes([3, 3, 1, 0, 0, 15]))
seed("hello", "fork", HELLO + bytes([15, 14, 3, 2]) + FORK + bytes([15, 0x13, 0x13, 2, 1, 0, 0, 0x1f, 13, 0]))
seed("hello", "fork-given-up", HELLO + bytes([15]) + FORK + bytes([15, 7, 1, 0, 0, 15]))
seed("hello", "fork-expired", HELLO + bytes([15]) + FORK + bytes([15, 2, 255, 2, 255, 0, 0x13, 0x13, 2, 1, 0, 0, 0x1f]))
seed("hello", "descriptors", bytes([3, 3, 0, 0, 0xe5, 15, 0x13, 0x14, 0, 0, 0xff, 0x1f]))
seed("hello", "raw", bytes([3, 8, 9, 0]) + b"GET / HTT" + bytes([0, 15, 2, 200, 0]))
seed("hello", "changed", bytes([3, 3, 0, 1, 8, 4, 9, 9, 9, 9, 0, 15, 0x13, 0x13, 0, 2, 39, 0, 0, 0x1f]))
seed("hello", "silent", bytes([3, 0x13, 0x23, 0x33, 0, 2, 255, 0, 11, 1, 0, 2, 255, 0]))
seed("hello", "hang-up", HELLO + bytes([11, 2, 15, 13, 0]) + HELLO + bytes([15, 12, 2, 0, 0, 2, 30, 0]))

# Question 1 with bit 16: operation, series, from, to, then how it is changed, descriptors.
PIN = HELLO + bytes([15, 6, 0, 16, 1, 1, 0, 5, 0, 0, 15])
seed("hello", "pin", PIN + bytes([6, 0, 16, 4, 0, 0, 0, 0, 0, 15, 6, 0, 16, 2, 1, 0, 0, 0, 0, 15]))
seed("hello", "pin-too-much", HELLO + bytes([15, 6, 0, 16, 1, 1, 0, 0, 0, 0, 15]))
seed("hello", "pin-same", PIN + bytes([6, 0, 16, 1, 1, 0, 5, 0, 0, 15, 6, 0, 16, 3, 1, 0, 5, 0, 0, 15]))
seed("hello", "pin-changed", PIN + bytes([6, 0, 16, 1, 1, 9, 3, 1, 88, 8, 255, 255, 255, 255, 255, 255, 255, 255, 0, 15]))
seed("hello", "pin-cut", PIN + bytes([6, 0, 16, 1, 1, 0, 5, 2, 32, 0, 0, 15]))
seed("hello", "pin-unread", PIN + bytes([6, 0, 16, 4, 0, 0, 0, 0, 0, 6, 0, 16, 4, 0, 0, 0, 0, 0, 0, 15]))

# ---- a daemon's answers ------------------------------------------------------------------------------


def change(target, off, data):
    return struct.pack("<BHB", target, off, len(data)) + data


seed("reply", "good", bytes(4))
seed("reply", "asked", bytes([1, 0, 0, 0]))
seed("reply", "renewed", bytes([4, 0, 0, 0]))
seed("reply", "renewed-other", bytes([5, 0, 0, 0]) + change(4, 256 + 16, b"\x18") + change(1, 32, struct.pack("<Q", 3)))
seed("reply", "granted", bytes([2, 0, 0, 3]))
seed("reply", "granted-nowhere", bytes([2, 0, 0, 9]))
for error in (5, 16, 27, 74, 105, 110, 116):
    seed("reply", f"failed-{error}", bytes([2, error, 1, 0]))
seed("reply", "refused", bytes(4) + change(0, 12, struct.pack("<i", -13)) + change(0, 80, b"no"))
seed("reply", "cut", bytes(4) + struct.pack("<BHB", 7, 100, 0))
seed("reply", "claims-more", bytes(4) + change(0, 64, struct.pack("<II", 9, 2)))
seed("reply", "no-end-of-volumes", bytes([1, 0, 0, 0]) + change(1, 24, struct.pack("<I", 900)))
for which in range(6):
    for kind in range(5):
        seed("reply", f"descriptor-{which}-{kind}", bytes(4) + struct.pack("<BHB", 6, which, kind))
seed("reply", "control", bytes(4) + change(2, 88, struct.pack("<Q", 1 << 40)))
seed("reply", "page", bytes(4) + change(3, 60, struct.pack("<I", 1024)))
seed("reply", "buffer", bytes(4) + change(2, 4096 + 256, struct.pack("<QI", 8 * 4096 - 16, 4096)))
seed("reply", "segment", bytes(4) + change(4, 256 + 72 + 128 + 96 + 96, struct.pack("<III", 0, 4080, 2)))
seed("reply", "stride", bytes(4) + change(5, 256 + 32, struct.pack("<II", 4096, 64)))
seed("reply", "residency", bytes(4) + change(4, 4096, struct.pack("<Q", 7 << 22 | 3 << 20)))

# ---- DBN records and their series --------------------------------------------------------------------


def symbol(*letters):
    return bytes([len(letters)]) + bytes(letters)


def mapping(by_id, instrument, name, *days):
    """A row with one interval for each (first day, days); a choice goes before all but some of them."""
    row = bytes([instrument, len(days)]) + name
    for i, pair in enumerate(days):
        chooses = i + 1 < len(days) if by_id else True
        row += (b"\0" if chooses else b"") + bytes(pair)
    return row


for version in range(3):
    for by_id in (0, 8):
        # Two symbols of instrument 7 that share days, one of instrument 9; then records of all kinds.
        rows = bytes([3]) + mapping(by_id, 7, symbol(0, 9), (0, 3), (4, 5))
        rows += mapping(by_id, 7, symbol(1, 10), (1, 4)) + mapping(by_id, 9, symbol(2), (0, 2))
        records = b"".join(bytes([kind, 7 + kind % 3, kind % 9]) + (symbol(3, 4) if kind == 10 else b"")
                           for kind in range(12))
        records += bytes([0, 11, 1, 10, 11, 1]) + symbol(5) + bytes([0, 11, 1, 0, 11, 2, 0, 7, 1, 0, 7, 1])
        seed("route", f"kinds-v{version + 1}-{by_id}", bytes([version | by_id, 128]) + rows + records)
        seed("route", f"ts-out-v{version + 1}-{by_id}", bytes([version | by_id | 4, 1]) + rows + records)
seed("route", "one-stream", bytes([16, 0, 0]) + bytes([0, 1, 2, 1, 3, 4]))

# ---- NumPy headers -----------------------------------------------------------------------------------
EVENT64 = [("ev", "<u8"), ("exch_ts", "<i8"), ("local_ts", "<i8"), ("px", "<f8"), ("qty", "<f8"), ("order_id", "<u8"),
           ("ival", "<i8"), ("fval", "<f8")]
MIXED = [("t", "<M8[ns]"), ("d", "<m8[ns]"), ("", "|V3"), ("b", "|b1"), ("s", "|S4"), ("raw", "|V7"), ("i", "<i2"),
         ("u", "|u1"), ("f", "<f4"), ("[0].x-y", "<u4")]
for name, descr, shape in (("event64", EVENT64, "(10,)"), ("mixed", MIXED, "(18446744073709551615L,)"),
                           ("plain", "<f8", "(3,)"), ("big", [("a", ">f8")], "(3,)"), ("flat", [("a", "<i8")], "()"),
                           ("two", [("a", "<i8")], "(3, 4)"), ("nested", [("a", [("b", "<i8")])], "(3,)"),
                           ("shaped", [("a", "<i8", (2,))], "(3,)"), ("title", [(("t", "a"), "<i8")], "(3,)"),
                           ("long", [("n" * 40, "<i8")], "(3,)"), ("text", [("a", "<U4"), ("o", "|O")], "(3,)"), ("micro", [("a", "<M8[us]")], "(3,)")):
    header = f"{{'descr': {descr!r}, 'fortran_order': False, 'shape': {shape}, }}".encode()
    seed("npy", name, b"\1" + header)
    seed("npy", name + "-v1", b"\0\x93NUMPY\1\0" + struct.pack("<H", len(header)) + header)
    seed("npy", name + "-v3", b"\0\x93NUMPY\3\0" + struct.pack("<I", len(header)) + header)
seed("npy", "long-cut", b"\1{'descr': [('" + b"n" * 36 + b"'")


# ---- message runs ------------------------------------------------------------------------------------
def message_run(*messages):
    """A run of (key, bytes), as in docs/volume-format.md, section 8."""
    run, places = b"", []
    for key, data in messages:
        places.append(len(run))
        run += struct.pack("<qII", key, len(data), 0) + data + bytes(-len(data) % 8)
    run += bytes(4 * (len(messages) % 2))
    return run + b"".join(struct.pack("<I", len(run) + 4 * i - place) for i, place in enumerate(places))


def message_seed(name, how, cnt, run, first=0, last=0, front=b""):
    place = (len(front) + len(run)) // 4 - cnt
    seed("message", name, struct.pack("<BHHqq", how, cnt, place % 65536, first, last) + front + run)


THREE = message_run((5, b'{"a":[1,2.5e-3,"\\u00e9"]}'), (5, b""), (9, b"true"))
message_seed("three", 0, 3, THREE, 5, 9)
message_seed("three-own-keys", 4, 3, THREE)
message_seed("three-table", 6, 3, THREE, front=bytes(16))
message_seed("kept", 5, 3, message_run((5, b"x"), (3, b"12345678"), (4, b"y" * 30)))
message_seed("count-high", 4, 4, THREE)
message_seed("count-low", 4, 2, THREE)
message_seed("step-back", 4, 2, message_run((5, b"x"), (3, b"y")))
message_seed("one", 4, 1, message_run((1, b"[]")))
message_seed("cut", 4, 3, THREE[:-8])
for i, at in enumerate((0, 8, 12, 16, 60, len(THREE) - 12, len(THREE) - 4)):
    broken = bytearray(THREE)
    broken[at] ^= 0x40
    message_seed(f"broken-{i}", 4, 3, bytes(broken))
for i, text in enumerate((b'{"a":{"b":[[[{}]]]},"c":null}', b"-0.10e+5", b'"\\ud83d\\ude00\xc3\xa9"', b"[1,]", b"[" * 600)):
    seed("message", f"json-{i}", bytes(21) + text)

# ---- ITCH 5.0 ----------------------------------------------------------------------------------------
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))
import lib_itch  # noqa: E402

for number, options in enumerate((0, 1, 2, 4, 8, 16, 31)):
    day = lib_itch.Day(number, 18, ["AAPL", "Z", "MSFT"], 0)
    seed("itch", f"day-{number}", bytes([options]) + lib_itch.framed(day.messages))
    seed("itch", f"bare-{number}", bytes([options]) + b"".join(day.messages))
ITCH_TAILS = {"H": 14, "Y": 9, "L": 15, "V": 24, "W": 1, "K": 17, "J": 24, "h": 10, "N": 9, "O": 37, "~": 20}
seed("itch", "kinds", b"\4" + lib_itch.framed(
    [lib_itch.system(1, "O")] + [lib_itch.head(kind, 3, 9) + b"A" * length for kind, length in ITCH_TAILS.items()]))
ITCH_DIRECTORY = lib_itch.directory(1, 5, "AAPL")
seed("itch", "little", b"\0" + b"".join(struct.pack("<H", 39) + ITCH_DIRECTORY for _ in range(3)))
seed("itch", "soup", b"\0" + b"".join(struct.pack(">H", 40) + b"S" + ITCH_DIRECTORY for _ in range(3)))
seed("itch", "gzip", b"\0" + zlib.compress(lib_itch.framed([ITCH_DIRECTORY] * 3), wbits=31))

# ---- bi5 and frames -----------------------------------------------------------------------------------
BI5_ROWS = b"".join(struct.pack(">IIIff", n * 900, 111500 + n, 111490, 1.5, 0.75) for n in range(5))
seed("bi5", "rows", b"\0" + BI5_ROWS)
seed("bi5", "cut", b"\x20" + BI5_ROWS[:-7])
seed("bi5", "back", b"\x40" + BI5_ROWS + BI5_ROWS)
seed("bi5", "little", b"\0" + struct.pack("<IIIff", 5, 111500, 111490, 1.5, 0.75))
seed("bi5", "html", b"\0<html>404</html>")
for known in (False, True):
    import lzma
    packed = lzma.compress(BI5_ROWS, format=lzma.FORMAT_ALONE, preset=0)
    if known:
        packed = packed[:5] + struct.pack("<Q", len(BI5_ROWS)) + packed[13:]
    seed("bi5", f"lzma-{known:d}", b"\0" + packed)
for choice, code in ((2, ">H"), (4, "<H"), (6, ">I"), (8, "<I"), (10, ">Q"), (12, "<Q")):
    body = b"abc" + struct.pack(">Q", 10**18) + b"def"
    seed("bi5", f"frames-{choice}", bytes([1 | choice]) + (struct.pack(code, len(body)) + body) * 3)
    first = struct.pack("<I", 10**9) + struct.pack(code, 3) + b"def"
    seed("bi5", f"first-{choice}", bytes([1 | 16 | 128 | choice]) + first * 3)

# ---- documents ----------------------------------------------------------------------------------------


def value(kind, payload):
    tag, out = len(payload) << 3 | kind, b""
    while tag >= 0x80:
        out += bytes([tag & 0x7f | 0x80])
        tag >>= 7
    return out + bytes([tag]) + payload


def text(string):
    return value(0, string.encode())


LEVEL = value(4, text("58710.20") + text("0.014"))
NUMBERS = [value(2, struct.pack("<i", -1)), value(3, struct.pack("<d", 0.1)), value(7, b"\1" + struct.pack("<q", 2**40)),
           value(7, b"\2" + struct.pack("<Q", 2**63)), value(7, b"\x030.123456789012345678901")]
DOCUMENTS = {
    "trade": value(5, text("e") + text("trade") + text("m") + value(6, b"\0") + text("T") + NUMBERS[2] + text("z") +
                   value(6, b"")),
    "book": value(5, text("b") + value(4, LEVEL * 3) + text("a") + value(4, b"")),
    "numbers": value(4, b"".join(NUMBERS)),
    "buffer": value(4, value(1, b"\xde\xad") + value(6, b"\1") + value(6, b"\2")),
    "long": value(5, text("x" * 20) + text("y" * 300)),
    "liar": b"\x25\x08a\x28xyz",
}
for name, data in DOCUMENTS.items():
    seed("doc", name, b"\0" + data)
    for i, path in enumerate(("b[1][0]", "z", ".")):
        seed("doc", f"{name}-path-{i}", b"\2" + bytes([len(path)]) + path.encode() + data)
for i, json in enumerate(('{"a":[1,-0,1.50,1e5,2147483648,18446744073709551615,0.1000000000000000055],"b":{}}',
                          '["\\u00e9\\ud83d\\ude00\\n\u00e9", true ,false,null, ""]', '[1e400,5e-324,1e23,9007199254740993.0]',
                          '{"type":"Buffer","data":[222,173]}', '["\\ud800"]', '[1,]', '{"a" 1}', '"abc',
                          "[" * 40 + "]" * 40)):
    seed("doc", f"json-{i}", b"\1" + json.encode())
for i, question in enumerate(('e = "trade" and (T >= 1.5e12 or not m = true)', "b[1][0] > 5 and z exists", "[3] < 1e400 or . != null",
                              "[1] = 0.1 and [4] != '0.1'", "((a = 05")):
    seed("doc", f"filter-{i}", b"\3" + bytes([len(question)]) + question.encode() + DOCUMENTS[("trade", "book", "numbers", "numbers",
                                                                                             "long")[i]])

for i, question in enumerate(('e = "trade" or b[0][1] < 5', "not z exists and (T > 0 or m = false)", "x exists")):
    seed("doc", f"run-{i}", b"\4" + bytes([len(question)]) + question.encode() +
         b"".join(struct.pack("<H", len(data)) + data for data in DOCUMENTS.values()))

# ---- JSON lines ---------------------------------------------------------------------------------------
TIME = "1723161255030314667"
for i, (options, path, content) in enumerate((
        (0, 0, f'{TIME} {{"a":1}}\n\r\n  {TIME}\t[1]\r\n2024-08-08 23:54:15 null'), (1, 0, f'{TIME} "x"\n{TIME} {{"a" 1}}\n'),
        (2, 0, f'{TIME} {{}}\n{TIME} {{"a":'), (0, 1, '{"T":1723161255030}\n{"T":"2024-08-08T23:54:15Z"}\n{"T":1.5e9}\n'),
        (4, 2, '{"s":"a/b","d":{"T":1723161255}}\n{"d":{"T":1723161256}}\n'), (12, 0, f'{TIME} {{"s":"abc"}}\n{TIME} {{}}\n'),
        (0, 3, "[1723161255]\n[]\n"), (1, 4, "1723161255\n"))):
    seed("jsonl", f"{i}", bytes([options, path]) + content.encode())
seed("jsonl", "mark", b"\0\0\xef\xbb\xbf" + TIME.encode() + b" {}\n")
seed("jsonl", "wide", b"\0\0" + (TIME + " {}\n").encode("utf-16"))
