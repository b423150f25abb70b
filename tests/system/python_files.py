# SPDX-License-Identifier: Apache-2.0
"""Ten lines of Python sum price x size of real files, and find the totals that an independent reader found."""
import os
import sys

import lib_python as p
import lib_stoup as t

if not t.DATA:
    print("no real data (STOUP_DATA): skipped")
    sys.exit(t.SKIP)

TEN_LINES = """
import sys, stoup

with stoup.open(sys.argv[1]) as client:
    for series in client.series():
        records = price = size = product = 0
        for a in client.scan(series):
            good = a[a[sys.argv[2]] != 2**63 - 1]
            records, price, size = records + len(a), price + int(good[sys.argv[2]].sum()), size + int(a[sys.argv[3]].sum())
            product += int((good[sys.argv[2]] // 10**6 * good[sys.argv[3]]).sum())
        print(records, price, size, product, series.first_key, series.last_key)
"""

# File, price field, size field, and what ../shared/data/README.md says: records, price, size, first and last key.
FILES = (
    ("esh4-glbx-mdp3-20231225.mbo", "price", "size", 68_792, 330362247500000000, 192312, 1703462400000000000,
     1703548799446821072),
    ("futures-20240701.mbp-1", "price", "size", 2_288, 12650284250000000, 3147, 1719878281218485389,
     1719878519824434324),
    ("futures-20240701.trades", "price", "size", 120, 663482000000000, 253, 1719878281218485389, 1719878512813670786),
    ("futures-20240701.ohlcv-1m", "close", "volume", 60, 766407250000000, 2742, 1719877200000000000,
     1719878940000000000),
    ("trades.v3", "price", "size", 2, 7440500000000, 26, 1609160400099150057, 1609160400108142648),
)
for name, price, size, *expected in FILES:
    path = os.path.join(t.DATA, "dbn", name + ".dbn.zst")
    if not os.path.exists(path):
        print(f"{path} is absent: skipped")
        continue
    store = os.path.join(t.temp_dir(), "store")
    t.run([t.STOUP, "ingest", "--store", store, "--quiet", path])
    rows = [list(map(int, line.split())) for line in p.script(TEN_LINES, store + "/", price, size).splitlines()]
    t.true(rows, f"{name}: series")
    # A file may have several instruments, each a series; the README sums over all.
    found = [sum(row[0] for row in rows), sum(row[1] for row in rows), sum(row[2] for row in rows),
             min(row[4] for row in rows), max(row[5] for row in rows)]
    t.equal(found, expected, f"{name}: records, price, {size}, first and last key")
    # Price x size, by the tool's text.
    product = 0
    for line in t.run([t.STOUP, "ls", store]).stdout.splitlines():
        series = next((word for word in line.split() if word.count("/") >= 2), None)
        if series is None:
            continue
        printed = t.run([t.STOUP, "cat", store + "/", series]).stdout.splitlines()
        header = printed[0].split(",")
        for record in printed[1:]:
            values = record.split(",")
            text = values[header.index(price)]
            if text:
                whole, _, part = text.partition(".")
                scaled = int(whole + part.ljust(9, "0"))
                product += scaled // 10**6 * int(values[header.index(size)])
    t.equal(sum(row[3] for row in rows), product, f"{name}: {price} x {size}")
