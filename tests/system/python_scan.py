# SPDX-License-Identifier: Apache-2.0
"""The Python module against plain Python: ranges and all ways to say a time, backward, as-of, last, merge, values, a
pool, a path, direct mode, and the same without NumPy."""
import datetime
import errno
import os
import pickle
import random
import subprocess
import sys

import lib_python as p
import lib_stoup as t
import numpy as np
import stoup

COUNT = 30_000
SYMBOLS = {"AAA": 11, "BBB": 12, "CCC": 13}
directory = t.temp_dir()
rows = sorted(t.mbo_records(COUNT, SYMBOLS, step=300), key=lambda row: row[1])
# Ties within a series and between series, and some prices that are undefined.
rows = [(ident, key - key % 1000, price if i % 97 else 2**63 - 1, size)
        for i, (ident, key, price, size) in enumerate(rows)]
dbn = os.path.join(directory, "in.dbn")
t.dbn_file(dbn, SYMBOLS, (t.mbo(*row, sequence=i) for i, row in enumerate(rows)))
stores = {codec: os.path.join(directory, codec) for codec in ("lz4", "none")}
for codec, store in stores.items():
    t.run([t.STOUP, "ingest", "--store", store, "--block", "64K", "--codec", codec, "--quiet", dbn])
mine = {symbol: [(i, row[1], row[2], row[3]) for i, row in enumerate(rows) if row[0] == ident]
        for symbol, ident in SYMBOLS.items()}
NAMES = {symbol: t.name_of(symbol) for symbol in SYMBOLS}
FIRST, LAST = rows[0][1], rows[-1][1]
rng = random.Random(4)


def sequences(views):
    return [int(value) for view in views for value in view["sequence"]]


def expected(symbol, low, high):
    return [row[0] for row in mine[symbol] if (low is None or row[1] >= low) and (high is None or row[1] < high)]


def check_reading(client, **how):
    for symbol, name in NAMES.items():
        t.equal(sequences(client.scan(name, **how)), expected(symbol, None, None), f"{symbol}: all")
        for _ in range(12):
            low, high = sorted(rng.randrange(FIRST - 5000, LAST + 5000) for _ in range(2))
            low, high = rng.choice([low, low - low % 1000]), rng.choice([high, high - high % 1000 + 1000])
            t.equal(sequences(client.scan(name, low, high, **how)), expected(symbol, low, high), f"{symbol} {low}")
            backward = [view.copy() for view in client.scan(name, low, high, backward=True, **how)]
            t.equal(sequences(backward[::-1]), expected(symbol, low, high), f"{symbol} backward")
            keys = [int(view["ts_recv"][0]) for view in backward]
            t.true(keys == sorted(keys, reverse=True), "backward: the latest first")
        t.equal(sequences(client.scan(name, LAST + 1, **how)), [], "behind the last")
        t.equal(sequences(client.scan(name, None, 0, **how)), [], "before all times")
        t.equal(sequences(client.scan(name, -5, FIRST, **how)), [], "before the first")
        t.equal(sequences(client.scan(name, 2**63, **how)), [], "later than any key")


def check_times(client):
    """All ways to say one time, exactly: FIRST + some whole microseconds, and nanoseconds where they can."""
    name, when = NAMES["AAA"], mine["AAA"][4321][1]
    want = expected("AAA", when, None)
    whole = datetime.datetime.fromtimestamp(when // 10**9, datetime.timezone.utc) + datetime.timedelta(
        microseconds=when % 10**9 // 1000)
    zone = datetime.timezone(datetime.timedelta(hours=-5, minutes=-30))
    iso = whole.strftime("%Y-%m-%dT%H:%M:%S") + f".{when % 10**9:09}"
    for said in (when, np.int64(when), np.datetime64(when, "ns"), np.datetime64(when // 1000, "us"), whole,
                 whole.replace(tzinfo=None), whole.astimezone(zone), iso + "Z", iso, iso.replace("T", " ") + "+00:00",
                 whole.astimezone(zone).strftime("%Y-%m-%dT%H:%M:%S") + f".{when % 10**9:09}-05:30"):
        t.equal(stoup.to_ns(said), when, repr(said))
        t.equal(sequences(client.scan(name, said)), want, repr(said))
    t.equal(stoup.to_ns("2024-01-02"), 1704153600 * 10**9, "a day")
    t.equal(stoup.to_ns(datetime.date(2024, 1, 2)), 1704153600 * 10**9, "a date")
    t.equal(stoup.to_ns("2024-01-02T03:04"), 1704164640 * 10**9, "minutes")
    t.equal(stoup.to_ns("2024-01-02T03:04:05.000000001Z"), 1704164645 * 10**9 + 1, "one nanosecond")
    t.equal(stoup.to_ns("2024-01-02T03:04:05+0530"), 1704144845 * 10**9, "a zone")
    t.equal(stoup.to_ns(np.datetime64("2024-01")), 1704067200 * 10**9, "a month")
    t.equal(stoup.to_ns(np.datetime64(1704067 * 10**12 + 7000, "ps")), 1704067 * 10**9 + 7, "picoseconds")
    t.equal(stoup.to_ns(np.datetime64(3, "10s")), 30 * 10**9, "units of ten seconds")
    t.equal(stoup.to_ns(np.datetime64("3000-01-01", "D")), 32503680000 * 10**9, "beyond datetime64[ns]")
    for said in (1.7e18, np.float64(1.7e18), None, True, b"2024-01-02", [1]):
        p.raises(TypeError, lambda: stoup.to_ns(said), "a time must be")
    for said in ("yesterday", "2024-13-01", "2024-01-02T25:00", "2024-01-02T03:04:05.1234567890", "1700000000000000000",
                 "2024-01-02T03:04:05+05:77", np.datetime64("NaT"), np.datetime64(1, "ps")):
        p.raises(ValueError, lambda: stoup.to_ns(said))
    p.raises(stoup.Error, lambda: client.scan(name, 10, 5), "before it begins")


def check_asof(client):
    for symbol, name in NAMES.items():
        keys = [row[1] for row in mine[symbol]]
        for when in [keys[0], keys[0] - 1, keys[-1], keys[-1] + 1, *(rng.choice(keys) + rng.randrange(-1, 2)
                                                                     for _ in range(60))]:
            for strict in (False, True):
                before = [row for row in mine[symbol] if row[1] < when + (0 if strict else 1)]
                found = client.asof(name, when, strict)
                t.equal(None if found is None else int(found["sequence"]), before[-1][0] if before else None,
                        f"{symbol}: as of {when} strict {strict}")
        for n in (1, 2, 5, 1400, 3000, len(keys), len(keys) + 5):
            for before in (None, keys[700], keys[-1]):
                want = [row[0] for row in mine[symbol] if before is None or row[1] < before][-n:]
                found = client.last(name, n, before)
                t.equal(sequences([found]), want, f"{symbol}: last {n} before {before}")
                t.true(not found.flags.writeable, "read-only")
    t.equal(len(client.last(NAMES["AAA"], 0)), 0, "the last none")
    t.equal(len(client.last(NAMES["AAA"], 3, 5)), 0, "none before 1970")


def check_merge(client, **how):
    for names in (["AAA", "BBB", "CCC"], ["CCC", "AAA"], ["BBB"], ["AAA", "AAA"]):
        for low, high in ((None, None), (mine["AAA"][900][1], mine["AAA"][4000][1])):
            want = sorted((row[1], i, row[0]) for i, symbol in enumerate(names) for row in mine[symbol]
                          if (low is None or row[1] >= low) and (high is None or row[1] < high))
            found, most = [], 0
            for i, view in client.merge(*(NAMES[name] for name in names), start=low, end=high, **how):
                found += [(int(key), i, int(number)) for key, number in zip(view["ts_recv"], view["sequence"])]
                most = max(most, client.stats()["lease_cnt"])
            t.equal(found, want, f"merge of {names}")
            # A span of each series, and what the cursors stand on.
            t.true(most <= 2 * len(names), f"leases while merging {names}: {most}")
    t.equal(list(client.merge()), [], "a merge of nothing")


def check_values(client):
    series = client[NAMES["BBB"]]
    whole = client.read(series)
    t.equal(whole.dtype.names, series.schema.names, "names")
    t.true(whole.dtype["side"] == np.dtype("S1") and whole["side"][0] == b"B", "a char is bytes")
    t.equal([f.name for f in series.schema.fields if f.hidden], ["length"], "hidden fields are in no dtype")
    whole["size"][0] = 7  # a copy is one's own
    for view in client.scan(series):
        when = stoup.times(view)
        t.true(when.dtype == np.dtype("M8[ns]") and np.shares_memory(when, view), "times are a view")
        t.true((when.view("i8") == view["ts_recv"]).all(), "times")
        t.true(stoup.times(view[5:9], "ts_event").base is not None, "of a slice")
        cents, exp10 = stoup.prices(view, exact=True)
        t.true(exp10 == -9 and np.shares_memory(cents, view) and (cents == view["price"]).all(), "exact prices")
        floats = stoup.prices(view)
        undefined = view["price"] == 2**63 - 1
        t.true(undefined.any() and np.isnan(floats[undefined]).all(), "an undefined price is NaN")
        t.equal(floats[~undefined].tolist(), [int(v) / 10**9 for v in view["price"][~undefined]], "prices")
        for write in (lambda: view.__setitem__(0, view[1]), lambda: view["price"].fill(0), lambda: when.fill(0),
                      lambda: view.setflags(write=True), lambda: view["size"].setflags(write=True),
                      lambda: view[0].__setitem__("price", 1), lambda: cents.__setitem__(0, 1)):
            p.raises(ValueError, write)
    p.raises(stoup.NotFound, lambda: stoup.prices(view, "prise"), "prise", "price", "ts_recv")
    p.raises(ValueError, lambda: stoup.times(view, "price"), "no time")
    p.raises(ValueError, lambda: stoup.times(np.zeros(2, "i8,i8")), "schema=")
    # An undefined time becomes NaT, in a copy.
    odd = whole.copy()
    odd["ts_recv"][3] = 2**64 - 1
    when = stoup.times(odd, schema=series.schema)
    t.true(np.isnat(when[3]) and not np.isnat(when[2]), "NaT")


def check_series(client):
    t.equal([series.name for series in client.series()], sorted(NAMES.values()), "series")
    t.equal([series.name for series in client.series("*/B*/mbo")], [NAMES["BBB"]], "a pattern")
    series = client[NAMES["AAA"]]
    t.equal((len(series), series.first_key, series.last_key), (len(mine["AAA"]), mine["AAA"][0][1], mine["AAA"][-1][1]),
            "a series")
    t.true(NAMES["AAA"] in client and "XTST.TEST/AAB/mbo" not in client, "in")
    error = p.raises(stoup.NotFound, lambda: client["XTST.TEST/AAB/mbo"], "near", NAMES["AAA"])
    t.equal((error.errno, isinstance(error, OSError), isinstance(error, KeyError)), (errno.ENOENT, True, True), "errno")
    copy = pickle.loads(pickle.dumps(error))
    t.equal((type(copy), copy.errno, str(copy)), (stoup.NotFound, error.errno, str(error)), "a pickled error")
    p.raises(TypeError, lambda: pickle.dumps(client.scan(series)), "pickle the series")
    p.raises(ValueError, lambda: client.scan(series, direct="yes"), "direct")
    again = pickle.loads(pickle.dumps(series))
    t.true(again.client is not client and sequences(again.scan()) == expected("AAA", None, None), "a pickled series")


CHECKS = (check_reading, check_times, check_asof, check_merge, check_values, check_series)
for codec, store in stores.items():
    daemon = t.Daemon(store, "1M")  # smaller than the data
    with stoup.open(daemon.pool) as client:
        for check in CHECKS:
            check(client)
    stoup.open(daemon.pool).close()
    stoup._reopened.clear()
    t.until(lambda: not daemon.stat()["consumers"], "a closed client is gone")
    if codec == "none":
        with stoup.open(daemon.pool) as client:
            check_reading(client, direct=True)
            check_merge(client, direct=True)
            t.true(client.stats()["direct_cnt"] > 100, "spans of files")
            keep = next(client.scan(NAMES["AAA"], direct="auto"))
        daemon.stop()
        t.equal(int(keep["sequence"][0]), mine["AAA"][0][0], "a direct array outlives client and daemon")
    else:
        with stoup.open(daemon.pool) as client:
            p.raises(stoup.Error, lambda: client.scan(NAMES["AAA"], direct=True), "compressed")
            check_reading(client, direct="auto")
        daemon.stop()

p.raises(stoup.NotFound, lambda: stoup.open("no.such.pool"), "no.such.pool")
p.raises(stoup.NotFound, lambda: stoup.open(os.path.join(directory, "nothing") + "/"), "nothing")
closed = stoup.open(stores["lz4"] + "/")
cursor = closed.scan(NAMES["AAA"])
closed.close()
closed.close()
p.raises(ValueError, lambda: closed.series(), "closed")
p.raises(ValueError, lambda: next(cursor), "closed")

# ---- pandas --------------------------------------------------------------------------------------------------
try:
    import pandas
except ImportError:
    print("note: no pandas here (Debian: python3-pandas): to_pandas is not tried")
else:
    with stoup.open(stores["lz4"] + "/") as client:
        for view in client.scan(NAMES["AAA"]):
            frame = stoup.to_pandas(view)
            t.equal(list(frame.columns), [name for name in view.dtype.names if name != "ts_recv"], "columns")
            t.true((frame.index.view("i8") == view["ts_recv"]).all() and str(frame.index.tz) == "UTC", "the index")
            t.true((frame["price"].isna() == (view["price"] == 2**63 - 1)).all(), "undefined")
            t.true((frame["size"] == view["size"]).all() and set(frame["side"]) == {"B"}, "values")
            t.equal(stoup.to_ns(frame.index[7]), int(view["ts_recv"][7]), "a Timestamp")
        with_ns = pandas.Timestamp(mine["AAA"][77][1])
        t.equal(sequences(client.scan(NAMES["AAA"], with_ns)), expected("AAA", mine["AAA"][77][1], None), "from it")

# ---- without NumPy, and by path ----------------------------------------------------------------------------
WITHOUT = """
import sys
sys.modules["numpy"] = None
import stoup
assert stoup.np is None
client = stoup.open(sys.argv[1])
schema = client[sys.argv[2]].schema
assert schema.dtype is None
at = schema.names.index
found = []
for view in client.scan(sys.argv[2]):
    assert type(view) is memoryview and view.readonly and len(view) % schema.stride == 0
    try:
        view[0] = 1
        raise SystemExit("written")
    except TypeError:
        pass
    found += [(r[at("sequence")], r[at("ts_recv")], r[at("price")], r[at("size")]) for r in schema.unpack(view)]
    try:
        stoup.times(view)
        raise SystemExit("times without NumPy")
    except ImportError as error:
        assert "python3-numpy" in str(error)
merged = []
for i, view in client.merge(*sys.argv[2:]):
    merged += [(r[at("ts_recv")], i, r[at("sequence")]) for r in schema.unpack(view)]
last = [r[at("sequence")] for r in schema.unpack(client.last(sys.argv[2], 3))]
(asof,) = schema.unpack(client.asof(sys.argv[2], found[1000][1], strict=True))
whole = list(schema.unpack(client.read(sys.argv[2])))
client.close()
view[:8].tobytes()
print(repr((found, merged, last, asof[at("sequence")], len(whole))))
"""
found, merged, last, asof, whole = eval(p.script(WITHOUT, stores["lz4"] + "/", NAMES["AAA"], NAMES["CCC"]))
t.equal(found, mine["AAA"], "without NumPy")
t.equal(merged, sorted((row[1], i, row[0]) for i, symbol in enumerate(("AAA", "CCC")) for row in mine[symbol]), "merged")
t.equal(last, [row[0] for row in mine["AAA"][-3:]], "the last three")
t.equal(asof, [row for row in mine["AAA"] if row[1] < mine["AAA"][1000][1]][-1][0], "as of")
t.equal(whole, len(mine["AAA"]), "read")

# ---- which library --------------------------------------------------------------------------------------------
IMPORT = "import stoup"
t.true("no such file" in p.script(IMPORT, expect=1, env=os.environ | {"STOUP_LIB": "/no/such.so"}).lower(), "no library")
t.true("older than this module" in p.script(IMPORT, expect=1, env=os.environ | {"STOUP_LIB": "libc.so.6"}), "another one")
stub = os.path.join(directory, "libstoup.so.1")
calls = [line.strip(" ;\t\n") for line in open(os.path.join(t.os.environ["STOUP_SOURCE_DIR"], "consumer/libstoup.map"))
         if line.startswith("\tstoup_")]
for version, length, words in (("0.9.7", "80", "0.9.7"), ("0.1.0", "80", "bytes")):
    source = "".join(f"long {call}(void) {{ return {length}; }}\n" for call in calls if call != "stoup_version")
    source += f'const char *stoup_version(void) {{ return "{version}"; }}\n'
    subprocess.run(["cc", "-shared", "-fPIC", "-w", "-x", "c", "-o", stub, "-"], input=source, text=True, check=True)
    said = p.script(IMPORT, expect=1, env=os.environ | {"STOUP_LIB": directory})
    t.true("ImportError" in said and words in said and "install the two together" in said, said)
said = p.script("import stoup, pydoc; print(pydoc.render_doc(stoup, renderer=pydoc.plaintext))")
for word in ("market data that one daemon decoded once", "asof(", "merge(", "class Damaged", "datetime64", "lease"):
    t.true(word in said, f"help(stoup) says nothing of {word}")
