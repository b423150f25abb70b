# SPDX-License-Identifier: Apache-2.0
"""The programs that docs/python.md shows of ranges and questions, as they stand there, over series of these names."""
import os
import re

import lib_python as p
import lib_stoup as t
import numpy as np
import stoup

work = t.temp_dir()
store = os.path.join(work, "ticks")
NS = 10**9
ROWS = [(t.T0 + n * NS, 4790 + n % 40, n % 30, "BA"[n % 2]) for n in range(3000)]


def ingest(name, lines, *options):
    path = os.path.join(work, "in.csv")
    with open(path, "w", encoding="ascii") as out:
        out.writelines(lines)
    t.run([t.STOUP, "ingest", "--store", store, "--quiet", "--series", name, *options, path])


ingest("GLBX.MDP3/ESH4/trades", (f"{k},{c},{'' if n == 1 else n},{s}\n" for k, c, n, s in ROWS), "--columns",
       "ts_recv:time,price:price,size:price,side:char")
ingest("GLBX.MDP3/ESH4/mbp-1", (f"{k + 5},{c},{c + 1}\n" for k, c, _, _ in ROWS), "--columns",
       "ts_recv:time,bid_px:price,ask_px:price")
ingest("GLBX.MDP3/ESH4/ohlcv", (f"{t.T0 // (60 * NS) * 60 * NS + n * 60 * NS},1,2,1,2,9\n" for n in range(9)), "--schema",
       "bar", "--interval", "1m", "--columns", "ts,open,high,low,close,volume")
daemon = t.Daemon(store)
client = stoup.open(daemon.pool)
trades, quotes, bars = (client[f"GLBX.MDP3/ESH4/{name}"] for name in ("trades", "mbp-1", "ohlcv"))
client.definition = lambda symbol, when: {}  # there are none in this store
seen = []


class Enough(Exception):
    """In the place of the Ctrl-C that ends a program which follows."""


def work_on(array):
    seen.append(len(array))
    raise Enough


known = {"stoup": stoup, "client": client, "series": trades, "trades": trades, "quotes": quotes, "bars": bars,
         "start": ROWS[0][0], "end": ROWS[-1][0], "when": ROWS[1500][0], "cursor": client.scan(trades), "total": 0,
         "handle": [seen.append] * 3, "on_records": [seen.append] * 2, "work": work_on}
with open(os.path.join(t.os.environ["STOUP_SOURCE_DIR"], "docs", "python.md"), encoding="utf-8") as doc:
    text = doc.read()
ranges = text[text.index("Which records:"):text.index("## 3.")]
questions = text[text.index("## 5. Questions"):text.index("## 6.")]
found = {}
blocks = re.findall(r"^```python\n(.*?)^```$", ranges + questions, re.M | re.S)
t.equal(len(blocks), 7, "programs")
for block in blocks:
    block = block.replace("speed=10.0", "speed=1e9").replace("max_gap=60", "max_gap=0.001")
    names = dict(known)
    try:
        exec(compile(block, block, "exec"), names)
        t.true("follow=True" not in block, "one that follows goes on")
    except Enough:
        t.true("follow=True" in block and seen[-1] == 100, f"{block}\n{seen[-1:]}")
    found.update({name: value for name, value in names.items() if name not in known or value is not known[name]})
t.equal(int(found["total"]), sum(n for _, c, n, s in ROWS if c > 4800 and s == "B") * 10 ** -trades.schema.field("size").exp10, "the filter's sum")
t.equal(int(found["quote"]["ts_recv"]), ROWS[998][0] + 5, "the quote before the last of a thousand trades")
t.equal(int(found["bars"]["count"].sum()),
        sum(ROWS[0][0] <= key < found["bars"]["ts_close"][-1] for key, _, _, _ in ROWS), "trades of the bars")
t.true(found["bars"].dtype.names[0] == "ts_open" and np.all(np.diff(found["bars"]["ts_open"]) > 0), "bars")
names = re.search(r"^Fields: (.*?)\. Prices", questions, re.M | re.S)[1]
t.equal(tuple(re.findall(r"`(\w+)`", names)), found["bars"].dtype.names, "the fields of bars that the text names")
