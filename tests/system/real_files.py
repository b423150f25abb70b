# SPDX-License-Identifier: Apache-2.0
"""The real DBN files: records, sums and keys through a daemon equal totals made by another reader."""
import glob
import json
import os
import sys

import lib_stoup as t

if not t.DATA:
    print("STOUP_DATA is not set: skipped")
    sys.exit(t.SKIP)

# file: (records, sum of price, sum of size, first key, last key); None: not in the table
DAY = (1609160400000704060, 1609160400000711344)
TOTALS = {
    "esh4-glbx-mdp3-20231225.mbo": (68792, 330362247500000000, 192312, 1703462400000000000,
                                    1703548799446821072),
    "futures-20240701.mbp-1": (2288, 12650284250000000, 3147, 1719878281218485389, 1719878519824434324),
    "futures-20240701.trades": (120, 663482000000000, 253, 1719878281218485389, 1719878512813670786),
    "futures-20240701.ohlcv-1m": (60, 766407250000000, 2742, 1719877200000000000, 1719878940000000000),
    "mbo": (2, 7445750000000, 2, *DAY),
    "mbp-1": (2, 7441000000000, 2, 1609160400006136329, 1609160400006246513),
    "mbp-10": (2, 7442750000000, 2, 1609160400000704060, 1609160400000750544),
    "trades": (2, 7440500000000, 26, 1609160400099150057, 1609160400108142648),
    "tbbo": (2, 7440500000000, 26, 1609160400099150057, 1609160400108142648),
    "ohlcv-1m": (2, 744250000000000, 505, 1609160400000000000, 1609160460000000000),
    "bbo-1s": (4, 14810000000000, 6, None, None),
    "definition": (2, None, None, 1633331241618018154, 1633417621703109854),
    "statistics": (2, None, None, None, None),
    "status": (4, None, None, None, None),
}
RECORD_LEN = {"definition.v1": 360, "definition.v2": 400, "definition.v3": 520, "statistics.v3": 80,
              "status.v3": 40}


def scan(pool, series, schema):
    bars = schema.startswith("ohlcv")
    sums = ["--price", "close" if bars else "price", "--size", "volume" if bars else "size"]
    # The table's key of a definition is ts_event; the series is ordered by ts_recv, as all kinds that have it.
    if schema.startswith("definition"):
        sums += ["--key", "ts_event"]
    (found,) = t.Worker(pool, series, *sums).finish()
    return found


printed = {}
files = sorted(glob.glob(os.path.join(t.DATA, "dbn", "*.dbn*")))
t.true(len(files) >= 29, f"files: {len(files)}")
for path in files:
    base = os.path.basename(path).removesuffix(".zst").removesuffix(".dbn")
    kind = base.removesuffix(".v1").removesuffix(".v2").removesuffix(".v3")
    records, price, size, first, last = TOTALS[kind]
    store = os.path.join(t.temp_dir(), "store")
    t.run([t.STOUP, "ingest", "--quiet", "--store", store, path])
    listing = json.loads(t.run([t.STOUP, "ls", "--json", store]).stdout)["series"]
    daemon = t.Daemon(store, "16M")
    found = [scan(daemon.pool, entry["name"], entry["schema"]) for entry in listing]
    t.equal(sum(line["records"] for line in found), records, f"{base}: records")
    if price is not None:
        t.equal(sum(line["price"] for line in found), price, f"{base}: sum of price")
        t.equal(sum(line["size"] for line in found), size, f"{base}: sum of size")
    if first is not None:
        t.equal(min(line["first_key"] for line in found), first, f"{base}: first key")
        t.equal(max(line["last_key"] for line in found), last, f"{base}: last key")
    if base in RECORD_LEN:
        raw = sum(volume["raw_bytes"] for volume in daemon.stat()["volumes"])
        t.equal(raw, records * RECORD_LEN[base], f"{base}: bytes per record")
    lines = [t.run([t.STOUP, "cat", "--format", "jsonl", daemon.pool, entry["name"]]).stdout
             for entry in listing]
    printed.setdefault(kind, {})[base[len(kind):]] = [json.loads(line) for text in lines
                                                      for line in text.splitlines()]
    daemon.stop()
    print("ok", base, flush=True)

# The three versions of one day hold the same records.
for kind in ("mbo", "mbp-1", "mbp-10", "tbbo", "trades", "ohlcv-1m"):
    versions = printed[kind]
    t.equal(set(versions), {".v1", ".v2", ".v3"}, f"{kind}: versions")
    t.equal(versions[".v1"], versions[".v3"], f"{kind}: v1 and v3")
    t.equal(versions[".v2"], versions[".v3"], f"{kind}: v2 and v3")
versions = printed["definition"]
for old in (".v1", ".v2"):
    for row, new in zip(versions[old], versions[".v3"]):
        common = set(row) & set(new) - {"length"}
        t.true(len(common) > 50, f"definition{old}: fields in common: {len(common)}")
        for field in common:
            t.equal(row[field], new[field], f"definition{old}: {field}")
