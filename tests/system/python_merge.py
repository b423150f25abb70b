# SPDX-License-Identifier: Apache-2.0
"""A merge goes on after an error where it stood, as a cursor does: it never ends as if it had been read to its end."""
import os

import lib_python as p
import lib_stoup as t
import numpy as np
import stoup

COUNT = 24_000
store, totals = t.make_store(COUNT, {"AAA": 11, "BBB": 12})
NAMES = [t.name_of("AAA"), t.name_of("BBB")]
daemon = t.Daemon(store, "1M")
with stoup.open(daemon.pool) as client:
    WHOLE = [client.read(name) for name in NAMES]
rows = sorted((int(key), i, n) for i in (0, 1) for n, key in enumerate(WHOLE[i]["ts_recv"]))
ORDER = [(i, int(WHOLE[i]["sequence"][n])) for _, i, n in rows]  # what a merge yields


def take(merge, cnt=None):
    """The next runs of a merge, as (series, sequence) of each record."""
    found = []
    for i, run in merge:
        found += [(i, int(n)) for n in run["sequence"]]
        if cnt is not None and len(found) >= cnt:
            break
    return found


# ---- the daemon dies, and another one comes later -----------------------------------------------------------------
client = stoup.open(daemon.pool, reconnect=0.2)
merge = client.merge(*NAMES)
found = take(merge, 500)
daemon.kill()
for _ in range(2):
    try:
        while True:
            i, run = next(merge)
            found += [(i, int(n)) for n in run["sequence"]]
    except stoup.Gone:
        pass
del run
t.true(500 <= len(found) < COUNT, f"what was in its hands: {len(found)}")
p.raises(stoup.Gone, lambda: take(merge))
daemon = t.Daemon(store, "1M", pool=daemon.pool)
found += take(merge)
t.true(found == ORDER, f"after Gone the same merge goes on: {len(found)} of {len(ORDER)}")
t.equal(take(merge), [], "and ends once")
t.equal(client.stats()["lease_cnt"], 0, "with no lease")

# ---- too much is held ---------------------------------------------------------------------------------------------
kept, cursor = [], client.scan(NAMES[0])
p.raises(stoup.Exhausted, lambda: kept.extend(iter(cursor)), "lease")
p.raises(stoup.Exhausted, lambda: client.merge(*NAMES), "a merge of 2 series holds", "--lease-bytes")
kept.clear()
cursor.close()
merge, found = client.merge(*NAMES), []
try:
    while True:
        for i, run in merge:
            kept.append(run)
            found += [(i, int(n)) for n in run["sequence"]]
        break
except stoup.Exhausted as error:
    t.true("lease" in str(error), f"{error}")
t.true(0 < len(found) < COUNT, f"runs of blocks that were passed count: {len(found)} of {COUNT}")
del run
kept.clear()
t.true(found + take(merge) == ORDER, "the same merge goes on, after arrays were let go")

# ---- ends ---------------------------------------------------------------------------------------------------------
merge = client.merge(*NAMES)
next(merge)
del merge
t.equal((client.stats()["lease_cnt"], p.stoup._lib.stoup_use_cnt(client._handle().it)), (0, 0), "a merge that is left")
with client.merge(*NAMES) as merge:
    _, run = next(merge)
    p.raises(stoup.Error, merge.skip, "did not fail")
    p.raises(TypeError, merge.__reduce__, "pickled")
p.raises(ValueError, lambda: next(merge), "closed")
t.equal(int(run["sequence"][0]), ORDER[0][1], "its arrays stay")
del run

good = stoup._view
merge = client.merge(*NAMES)
found = take(merge, 100)


def interrupted(held, schema):
    raise KeyboardInterrupt


stoup._view = interrupted
p.raises(KeyboardInterrupt, lambda: take(merge))
stoup._view = good
p.raises(stoup.Error, lambda: take(merge), "interrupted")
del merge
t.equal(client.stats()["lease_cnt"], 0, "interrupted, and no lease")

merge = client.merge(*NAMES)
next(merge)
client.close()
p.raises(ValueError, lambda: take(merge), "closed")
p.raises(ValueError, lambda: take(merge), "closed")
daemon.stop()

# ---- a damaged block of one of them -------------------------------------------------------------------------------
(volume,) = [name for name in os.listdir(store) if name.endswith(".stoup")]
with open(os.path.join(store, volume), "r+b") as out:
    out.seek(64 + 10)
    byte = out.read(1)[0]
    out.seek(64 + 10)
    out.write(bytes([byte ^ 0x40]))
daemon = t.Daemon(store, "4M")
with stoup.open(daemon.pool) as client:
    with client.scan(NAMES[0]) as cursor:
        p.raises(stoup.Damaged, lambda: next(cursor), volume)
        lost = set(WHOLE[0]["sequence"][:cursor.skip()].tolist())
    merge = client.merge(*NAMES)
    for _ in range(2):
        p.raises(stoup.Damaged, lambda: take(merge), volume)
    t.equal(merge.skip(), len(lost), "records left out")
    t.true(take(merge) == [row for row in ORDER if row[0] or row[1] not in lost], "all behind the damaged block")
    t.true(0 < len(lost) < len(WHOLE[0]) and np.all(WHOLE[0]["size"] > 0), "some were lost")
daemon.stop()
