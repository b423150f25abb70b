# SPDX-License-Identifier: Apache-2.0
"""What was known of an instrument at a time: definitions of every DBN version as one struct, never of the future.

Records are written from the published layouts; each field gets a value of its own."""
import json
import os
import struct
import sys

import lib_dbn as d
import lib_stoup as t

if os.environ.get("STOUP_SANITIZED"):
    print("a sanitized library needs a sanitized interpreter: skipped")
    sys.exit(t.SKIP)
os.environ.setdefault("STOUP_LIB", os.environ["STOUP_LIB_DIR"])
sys.path.insert(0, os.path.join(os.environ["STOUP_SOURCE_DIR"], "consumer", "python"))
import stoup  # noqa: E402

WORK = t.temp_dir()
DATES = [d.date(d.DAY1 // d.DAY + i) for i in range(9)]
UNDEFINED = (1 << 63) - 1

# member: (struct code, offset in version 1, 2, 3); texts have their room there
FIELDS = {
    "min_price_increment": ("q", 24, 24, 24), "display_factor": ("q", 32, 32, 32), "expiration": ("Q", 40, 40, 40),
    "activation": ("Q", 48, 48, 48), "high_limit_price": ("q", 56, 56, 56), "low_limit_price": ("q", 64, 64, 64),
    "max_price_variation": ("q", 72, 72, 72), "unit_of_measure_qty": ("q", 88, 88, 80),
    "strike_price": ("q", 328, 112, 104), "raw_instrument_id": (("I", "I", "Q"), 120, 128, 112),
    "underlying_id": ("I", 116, 124, 140), "contract_multiplier": ("i", 160, 164, 176),
    "currency": ("4s", 186, 186, 224), "raw_symbol": (("22s", "71s", "71s"), 200, 200, 238),
    "group": ("21s", 222, 271, 309), "exchange": ("5s", 243, 292, 330), "asset": (("7s", "7s", "11s"), 248, 297, 335),
    "cfi": ("7s", 255, 304, 346), "security_type": ("7s", 262, 311, 353), "underlying": ("21s", 300, 349, 391),
    "instrument_class": ("c", 325, 374, 487), "security_update_action": ("c", 349, 382, 493),
}
LENGTHS = (360, 400, 520)


def definition(version, ident, key, seed=0, ts_out=False, **given):
    """A record whose fields have values that tell them apart; returns it and what must be found."""
    rec = bytearray(LENGTHS[version - 1])
    want = {"instrument_id": ident, "publisher_id": 1, "ts_event": key - 9, "key": key, "version": version}
    for i, (name, (code, *offs)) in enumerate(FIELDS.items()):
        code = code[version - 1] if isinstance(code, tuple) else code
        if name in given:
            value = given[name]
        elif code.endswith("s"):
            value = f"{name[:int(code[:-1]) - 3]}{seed}"[:int(code[:-1]) - 1]
        elif code == "c":
            value = "KFA"[i % 3]
        else:
            value = (i + 1) * 1_000_003 + seed * 7 if code in "Ii" else (i + 1) * 1_000_000_007 + seed
        want[name] = value
        struct.pack_into("<" + code, rec, offs[version - 1], value.encode() if isinstance(value, str) else value)
    rec[:24] = struct.pack("<BBHIQQ", (len(rec) + 8 * ts_out) // 4, 0x13, 1, ident, key - 9, key)
    return bytes(rec) + (struct.pack("<Q", key + 1) if ts_out else b""), want


def store_of(name, *files):
    paths = []
    for i, (version, ts_out, symbol, records) in enumerate(files):
        data = d.file(version, 9, [(symbol, [(DATES[0], DATES[8], 7)])], records, ts_out)
        paths.append(os.path.join(WORK, f"{name}{i}.dbn"))
        with open(paths[-1], "wb") as out:
            out.write(data)
    store = os.path.join(WORK, name)
    t.run([t.STOUP, "ingest", "--store", store, "--quiet", *paths])
    return store + "/"


def same(found, want, what):
    t.equal({name: found[name] for name in want}, want, what)


# Each version, its fields one by one, and sentinels as they are.
key = d.DAY1 + 1
for version in (1, 2, 3):
    for ts_out in (False, True):
        one, want = definition(version, 7, key, version, ts_out)
        undefined, bare = definition(version, 7, key + 5, 9, ts_out, strike_price=UNDEFINED, expiration=2**64 - 1,
                                     contract_multiplier=2**31 - 1, min_price_increment=UNDEFINED)
        store = store_of(f"v{version}{ts_out}", (version, ts_out, "ESH4", [one, undefined]))
        with stoup.open(store) as client:
            same(client.definition("TEST.SET/ESH4", key), want, f"version {version}")
            same(client.definition("TEST.SET/ESH4", key + 4), want, f"version {version}, before the next one")
            same(client.definition("TEST.SET/ESH4", key + 5), bare, f"version {version}: undefined values")
            same(client.definition("TEST.SET/ESH4"), bare, f"version {version}: the last of all")
        if version == 3:
            t.equal(bare["strike_price"], UNDEFINED, "a sentinel")

# Over versions the latest counts; a time before any has no answer, however many come later.
rows = {}
for version, day in ((1, 0), (1, 2), (2, 1), (2, 3), (3, 2), (3, 4)):
    rows[version, day] = definition(version, 7, d.DAY1 + day * d.DAY + 10, day)
mixed = store_of("mixed", *[(v, False, "ESH4", [rows[v, day][0] for w, day in rows if w == v]) for v in (1, 2, 3)])
with stoup.open(mixed) as client:
    for day, version in ((0, 1), (1, 2), (2, 3), (3, 2), (4, 3), (5, 3)):
        want = rows[version, min(day, 4)][1]
        same(client.definition("TEST.SET/ESH4", d.DAY1 + day * d.DAY + 10), want, f"day {day}")
        earlier = max((k for k in rows if rows[k][1]["key"] < d.DAY1 + day * d.DAY + 10), default=None,
                      key=lambda k: (rows[k][1]["key"], k[0]))
        if earlier:
            same(client.definition("TEST.SET/ESH4", d.DAY1 + day * d.DAY + 9), rows[earlier][1], f"just before day {day}")
    for when in (1, d.DAY1, d.DAY1 + 9):
        try:
            client.definition("TEST.SET/ESH4", when)
            t.fail("a definition from the future")
        except stoup.NotFound as error:
            t.true("no definition at or before" in str(error) and "2020-12-28T00:00:00.000000010Z" in str(error),
                   str(error))
    try:
        client.definition("TEST.SET/NQH4")
        t.fail("a definition of nothing")
    except stoup.NotFound as error:
        t.true("has no definitions" in str(error), str(error))
    for when in (0, -1, -(1 << 63)):
        try:
            client.definition("TEST.SET/ESH4", when)
            t.fail(f"time {when} was taken")
        except (stoup.Error, ValueError) as error:
            t.true("no time of a definition" in str(error), str(error))
    t.equal(client.stats()["lease_cnt"], 0, "nothing is held by lookups")

# Of equal times the last record, and the newest version.
first, _ = definition(3, 7, key, 1)
second, want = definition(3, 7, key, 2)
older, _ = definition(2, 7, key, 3)
tie = store_of("tie", (3, False, "ESH4", [first, second]), (2, False, "ESH4", [older]))
with stoup.open(tie) as client:
    same(client.definition("TEST.SET/ESH4", key), want, "a tie")

# The tool.
shown = json.loads(t.run([t.STOUP, "definition", mixed, "TEST.SET/ESH4", "--json", "--at", str(d.DAY1 + d.DAY + 10)]).stdout)
want = rows[2, 1][1]
t.equal((shown["version"], shown["raw_symbol"], shown["contract_multiplier"]),
        (2, want["raw_symbol"], want["contract_multiplier"]), "--json")
t.equal(shown["min_price_increment"], want["min_price_increment"] / 1e9, "a price")
t.equal(shown["ts_recv"], "2020-12-29T00:00:00.000000010Z", "a time")
text = t.run([t.STOUP, "definition", mixed, "TEST.SET/ESH4"]).stdout
t.true(f"exchange                    {rows[3, 4][1]['exchange']}\n" in text and "version                     3\n" in text, text)
bare = json.loads(t.run([t.STOUP, "definition", os.path.join(WORK, "v1False/"), "TEST.SET/ESH4", "--json"]).stdout)
t.equal((bare["expiration"], bare["strike_price"], bare["contract_multiplier"]), (None, None, None), "undefined is null")
done = t.run([t.STOUP, "definition", mixed, "TEST.SET/ESH4", "--at", "2020-12-28T00:00:00Z"], expect=1)
t.true("no definition at or before 2020-12-28T00:00:00" in done.stderr, done.stderr)
t.run([t.STOUP, "definition", mixed], expect=2)
t.run([t.STOUP, "definition", mixed, "TEST.SET/ESH4", "--at", "soon"], expect=2)

# Real files: the same instrument in three versions.
real = [os.path.join(t.DATA, "dbn", f"definition.v{v}.dbn.zst") for v in (1, 2, 3)] if t.DATA else []
if all(os.path.exists(path) for path in real) and real:
    store = os.path.join(WORK, "real")
    found = []
    for path in real:
        t.run([t.STOUP, "ingest", "--store", store + path[-9], "--quiet", path])
        with stoup.open(store + path[-9] + "/") as client:
            found.append(client.definition("XNAS.ITCH/MSFT", 1633331241618029519))
    for other in found[:2]:
        same(other, {name: value for name, value in found[2].items() if name not in
                     ("version", "raw_instrument_id", "leg_count", "leg_index")}, "a real instrument")
    t.equal((found[2]["raw_symbol"], found[2]["exchange"], found[2]["instrument_class"]), ("MSFT", "XNAS", "K"), "MSFT")
print("ok")
