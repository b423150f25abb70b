# SPDX-License-Identifier: Apache-2.0
"""Values at their edges: single records, columns and frames without a key, floats of large integers, undefined floats,
and arguments that are none."""
import ast
import decimal
import gc
import inspect
import os
import pathlib
import pickle
import random
import re
import shutil
import time

import lib_python as p
import lib_stoup as t
import numpy as np
import stoup

directory = t.temp_dir()
store = os.path.join(directory, "störe")
SCHEMA = """schema %s
key ts
ts time
late time
f f64 null=nan
price i64 scale=-9 null=max
q i64 scale=2
u u64 scale=-3
side char
"""
rng = random.Random(5)
LARGE = [2**53 + 1, 9007199254740993, 2**63 - 2, -(2**53) - 1, 0, -1, 1] + \
    [rng.randrange(-2**63, 2**63 - 1) >> rng.randrange(12) for _ in range(500)]
rows = ["ts,late,f,price,q,u,side"]
for i, value in enumerate(LARGE):
    at = f"2024-01-02T00:{i // 60:02}:{i % 60:02}Z"
    rows.append(f"{at},{at if i else ''},{i if i % 2 else ''},{decimal.Decimal(value).scaleb(-9):f},{value >> 7}00,"
                f"{decimal.Decimal(abs(value)).scaleb(-3):f},B")
rows.append("2024-01-02T02:00:00Z,,,,0,0,S")
with open(os.path.join(directory, "in.csv"), "w") as out:
    out.write("\n".join(rows) + "\n")
for name in ("one", "two"):  # two schemas of the same layout
    with open(os.path.join(directory, name + ".schema"), "w") as out:
        out.write(SCHEMA % name)
    t.run([t.STOUP, "ingest", "--store", store, "--series", f"T/A/{name}", "--schema", out.name, "--time", "ts",
           "--quiet", os.path.join(directory, "in.csv")])
with open(os.path.join(directory, "types.csv"), "w") as out:
    out.write("1700000000,200,-7,65000,ab\n")
t.run([t.STOUP, "ingest", "--store", store, "--series", "T/A/types", "--columns", "ts:time,a:u8,b:i8,c:u16,d:char[3]",
       "--quiet", out.name])
daemon = t.Daemon(store, "1M")
client = stoup.open(daemon.pool)
SERIES = client["T/A/one"]
whole = client.read(SERIES)
t.equal(whole["price"].tolist(), LARGE + [2**63 - 1], "the integers")

# ---- the nearest float to each decimal: Python divides integers exactly -----------------------------------------
t.equal(stoup.prices(whole)[:-1].tolist(), [value / 10**9 for value in LARGE], "the nearest float")
t.true(np.isnan(stoup.prices(whole)[-1]), "undefined")
t.equal(stoup.prices(whole, "q")[:-1].tolist(), [float((value >> 7) * 100) for value in LARGE], "a scale above one")
t.equal(stoup.prices(whole, "u")[:-1].tolist(), [abs(value) / 1000 for value in LARGE], "unsigned")

# ---- every field is of its own type; no name of the module is given twice ------------------------------------------
(record,) = client.read("T/A/types")
t.equal((int(record["a"]), int(record["b"]), int(record["c"]), record["d"]), (200, -7, 65000, b"ab"), "types")
t.equal([field.format for field in client["T/A/types"].schema.fields], ["<i8", "<u1", "<i1", "<u2", "S3"], "formats")
names = [name.id for node in ast.parse(inspect.getsource(stoup)).body if isinstance(node, ast.Assign)
         for name in ast.walk(node) if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)]
t.equal(sorted(name for name in set(names) if names.count(name) > 1), [], "names that are given twice")

# ---- single records, as asof gives them --------------------------------------------------------------------------
for record, where in ((client.asof(SERIES, SERIES.last_key), -1), (client.asof(SERIES, SERIES.first_key), 0),
                      (whole[3], 3)):
    price = stoup.prices(record)
    t.true(isinstance(price, np.float64), "one float")
    t.true(price == stoup.prices(whole)[where] or np.isnan(price) and where == -1, f"price of record {where}")
    t.true(stoup.times(record) == stoup.times(whole)[where], "its time")
    late = stoup.times(record, "late")
    t.true(late == stoup.times(whole, "late")[where] or np.isnat(late) and where in (0, -1), "one that may be undefined")
t.true(np.isnat(stoup.times(client.asof(SERIES, SERIES.first_key), "late")), "NaT")
del record
t.equal(client.stats()["lease_cnt"], 0, "values keep no lease")

# ---- an undefined float means the same in two schemas of one layout ----------------------------------------------
client["T/A/two"].scan().close()
copied = pickle.loads(pickle.dumps(whole))  # its dtype is equal to two schemas'
values = stoup.prices(copied, "f").tolist()
t.equal(values[1:len(LARGE):2], [float(i) for i in range(1, len(LARGE), 2)], "floats")
t.true(all(value != value for value in values[::2]), "NaN where there is none")

# ---- what is no array of records ----------------------------------------------------------------------------------
p.raises(TypeError, lambda: stoup.prices(whole["price"]), "array of records", "column")
p.raises(TypeError, lambda: stoup.times([1, 2]), "array of records", "list")
p.raises(ValueError, lambda: stoup.prices(whole, "side"), "'side' is text")
p.raises(stoup.NotFound, lambda: stoup.prices(whole, "bid"), "has no field 'bid'", "side")
try:
    import pandas
except ImportError:
    print("no pandas here: frames are not tried")
else:
    p.raises(TypeError, lambda: stoup.to_pandas(whole["price"]), "array of records")
    gc.disable()
    view = next(client.scan(SERIES))
    frame = stoup.to_pandas(view)
    del view
    t.equal(client.stats()["lease_cnt"], 0, "a frame keeps no lease, and needs no collector for it")
    gc.enable()
    t.equal((frame.index.name, len(frame), frame["price"].iloc[0]), ("ts", len(whole), LARGE[0] / 10**9), "a frame")
    t.equal(str(frame["late"].dtype), "datetime64[ns, UTC]", "times")
    frame = stoup.to_pandas(whole[["price", "q"]], schema=SERIES.schema)
    t.equal((list(frame.columns), list(frame.index[:3])), (["price", "q"], [0, 1, 2]), "a frame without the key")
    frame = stoup.to_pandas(client.asof(SERIES, SERIES.last_key))
    t.equal((len(frame), frame.index[0]), (1, pandas.Timestamp("2024-01-02T02:00Z")), "a frame of a record")
    t.equal(client.stats()["lease_cnt"], 0, "frames keep no lease")

# ---- arguments ----------------------------------------------------------------------------------------------------
for wrong in (None, 5, b"T/A/one", SERIES.schema, [SERIES]):
    for call in (client.scan, client.read, client.last, client.merge, lambda one: client.asof(one, 0)):
        p.raises(TypeError, lambda: call(wrong), "series", type(wrong).__name__)
p.raises(TypeError, lambda: client.find(5), "int")
p.raises(ValueError, lambda: client.find("T/A/one\0more"), "NUL")
p.raises(ValueError, lambda: stoup.open(daemon.pool + "\0more"), "NUL")
p.raises(ValueError, lambda: client.merge(SERIES, direct="yes"), "direct")
p.raises(ValueError, lambda: client.last(SERIES, -1), "n=-1")
p.raises(TypeError, lambda: client.last(SERIES, 1.5), "float")
t.equal((len(client.last(SERIES, 0)), len(client.last(SERIES, np.int64(2)))), (0, 2), "counts")
for name in ("timeout", "reconnect"):
    p.raises(TypeError, lambda: stoup.open(daemon.pool, **{name: None}), name, "seconds", "NoneType")
    p.raises(TypeError, lambda: stoup.open(daemon.pool, **{name: "1"}), name, "str")
    for wrong in (-1, float("nan")):
        p.raises(ValueError, lambda: stoup.open(daemon.pool, **{name: wrong}), name)
    stoup.open(daemon.pool, **{name: float("inf")}).close()
for name in ("read_ahead", "pool_bytes"):
    p.raises(ValueError, lambda: stoup.open(daemon.pool, **{name: -1}), name, "negative")
    p.raises(TypeError, lambda: stoup.open(daemon.pool, **{name: 1.5}), name, "int")
p.raises(ValueError, lambda: stoup.to_ns("2024-01-02T10:00+99:00"), "zone")
p.raises(ValueError, lambda: stoup.to_ns("2024-01-02T10:00+01:60"), "zone")
t.equal(stoup.to_ns("2024-01-02T10:00+14:00"), stoup.to_ns("2024-01-01T20:00Z"), "the easternmost zone")

# Series go by their own client; paths may be bytes.
with stoup.open(os.fsencode(store), pool_bytes=1 << 20) as other:
    t.equal(other.target, store, "a path of bytes")
    own = other.read(SERIES)
    t.equal((other.stats()["record_cnt"], len(own)), (0, len(whole)), "read by the client that it is of")
client.close()

# ---- how long it waited, in all ------------------------------------------------------------------------------------
client = stoup.open(daemon.pool, reconnect=2.5)
cursor = client.scan(SERIES.name)
daemon.kill()
for call in (client.refresh, lambda: next(cursor)):
    begun = time.monotonic()
    waited = float(re.search(r"\(waited (\d+\.\d) s in all\)$", str(p.raises(stoup.Gone, call)))[1])
    t.true(2.5 <= waited <= time.monotonic() - begun + 0.1, f"the sum of all that it waited: {waited}")
del client, cursor

# ---- the daemon of the same installation ----------------------------------------------------------------------------
prefix = os.path.join(directory, "prefix")
for folder, name in (("lib", "libstoup.so.1"), ("bin", "stoupd")):
    os.makedirs(os.path.join(prefix, folder))
    shutil.copy(os.path.join(os.environ["STOUP_BIN_DIR" if folder == "bin" else "STOUP_LIB_DIR"], name),
                os.path.join(prefix, folder))
environment = {name: value for name, value in os.environ.items() if name not in ("STOUPD", "PATH")}
environment.update(STOUP_LIB=os.path.join(prefix, "lib"), PATH="/nonexistent")
FOUND = "import sys, stoup\nwith stoup.open(sys.argv[1], pool_bytes=1 << 20) as client: print(len(client.series()))"
# Another store than that of above, whose daemon may still run.
shutil.copytree(store, os.path.join(directory, "second"))
t.equal(p.script(FOUND, pathlib.Path(directory, "second"), env=environment), "3\n", "stoupd beside the library")
shutil.copytree(store, os.path.join(directory, "third"))
said = p.script(FOUND, os.path.join(directory, "third"), env={**environment, "STOUPD": "/nonexistent/stoupd"}, expect=1)
t.true("/nonexistent/stoupd" in said, f"$STOUPD goes first: {said}")
