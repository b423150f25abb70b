# SPDX-License-Identifier: Apache-2.0
"""Questions from Python against plain Python: ends of ranges, record numbers, limits, seeks, counts, as-of, merges,
filters and bars; the same without NumPy."""
import os
import pickle
import random

import lib_python as p
import lib_stoup as t
import numpy as np
import stoup

NS, SEED = 10**9, 20240603
rng = random.Random(SEED)
work = t.temp_dir()
store = os.path.join(work, "ticks")


def ingest(name, lines, *options):
    path = os.path.join(work, "in.csv")
    with open(path, "w", encoding="ascii") as out:
        out.writelines(lines)
    t.run([t.STOUP, "ingest", "--store", store, "--quiet", "--block", "64K", "--series", name, *options, path])


# ---- trades of two symbols, with ties over all borders; two volumes each; bars of a minute; trades in floats ---------------
ROWS = {}  # (key, cents, size or None, side)
for symbol, count in (("A", 9000), ("B", 4000)):
    key, rows = t.T0, []
    for volume in range(2):
        key += 300 * NS
        part = []
        for _ in range(count // 2):
            key += rng.choice((0, 0, 0, 1, 1000, NS // 50))
            part.append((key, rng.randrange(90_00, 110_00), rng.choice((None, *range(1, 40))), rng.choice("BSA")))
        ingest(f"X/{symbol}/trades", (f"{k},{c // 100}.{c % 100:02},{'' if n is None else n},{s}\n" for k, c, n, s in part),
               "--columns", "ts:time,price:price,size:price,side:char")
        rows += part
    ROWS[f"X/{symbol}/trades"] = rows
A, B, BAR, FLOAT = "X/A/trades", "X/B/trades", "X/A/bars", "X/F/float"
MINUTE = 60 * NS
OPEN0 = t.T0 // MINUTE * MINUTE
BARS = [(OPEN0 + n * MINUTE, 100 + n) for n in range(12)]
ingest(BAR, (f"{k},1,2,0.5,1.5,{v}\n" for k, v in BARS), "--schema", "bar", "--interval", "1m", "--columns",
       "ts,open,high,low,close,volume")
FLOATS = [(t.T0 + n * NS // 3, 100 + rng.random(), float(rng.randrange(1, 9))) for n in range(2000)]
ingest(FLOAT, (f"{k},{x!r},{n}\n" for k, x, n in FLOATS), "--columns", "ts:time,price:f64,size:f64")
daemon = t.Daemon(store, "2M")
client = stoup.open(daemon.pool)
COUNT = {name: len(rows) for name, rows in ROWS.items()}
SIZE = client[A].schema.field("size")
NULL = SIZE.null


def rows_of(array):
    """As in ROWS."""
    one = 10 ** -SIZE.exp10
    return [(int(k), int(c) // 10**7, None if n == NULL else int(n) // one, s.decode())
            for k, c, n, s in zip(array["ts"], array["price"], array["size"], array["side"])]


def all_of(arrays, backward=False):
    """Rows of arrays in the order of the scan."""
    return [row for array in arrays for row in (rows_of(array)[::-1] if backward else rows_of(array))]


def a_time(name):
    return rng.choice(ROWS[name])[0] + rng.choice((-1, 0, 0, 1, -NS, NS))


ENDS = {"left": (lambda k, t0: k >= t0, lambda k, t1: k < t1), "both": (lambda k, t0: k >= t0, lambda k, t1: k <= t1),
        "right": (lambda k, t0: k > t0, lambda k, t1: k <= t1), "neither": (lambda k, t0: k > t0, lambda k, t1: k < t1)}

# ---- ranges ------------------------------------------------------------------------------------------------------------
for i in range(300):
    name = rng.choice((A, B))
    rows, backward, how = ROWS[name], rng.random() < 0.5, {}
    if i % 3 == 0:
        low, high = (rng.choice((None, rng.randrange(-COUNT[name] - 5, COUNT[name] + 5))) for _ in "ab")
        want = rows[low:high]
        how["ordinals"] = slice(low, high) if rng.random() < 0.5 else (low, high)
    else:
        low, high = sorted(a_time(name) for _ in "ab")
        low, high = rng.choice((None, low)), rng.choice((None, high, low))
        high = None if low is not None and high is not None and high < low else high
        how = {"start": low, "end": high, "inclusive": rng.choice(list(ENDS))}
        after, before = ENDS[how["inclusive"]]
        want = [row for row in rows if (low is None or after(row[0], low)) and (high is None or before(row[0], high))]
    whole = len(want)
    want = want[::-1] if backward else want
    if rng.random() < 0.6:
        n = rng.choice((1, 2, 1000, 100_000))
        which = rng.choice(("limit", "last"))
        how[which] = n
        want = want[:n] if which == "limit" else want[-n:]
    what = f"seed {SEED}, {i}: {name} {how} backward {backward}"
    t.true(all_of(client.scan(name, backward=backward, **how), backward) == want, what)
    t.equal(client.count(name, **how), len(want), what)
    near = client.estimate(name, **how)
    t.true(near.record_min <= len(want) <= near.record_max and (not near.exact or near.record_min == near.record_max), what)
    if not backward:
        t.true(rows_of(client.read(name, **how)) == want, what + ": read")
t.true(all_of(client[A][5:9]) == ROWS[A][5:9] and all_of(client[A][-3:]) == ROWS[A][-3:], "slices of a series")
t.true(all_of(client[B]) == ROWS[B], "a series is iterated over by arrays")
near = client.estimate(A)
t.equal((near.record_min, near.record_max, near.exact, near.volumes, near.first_key, near.last_key),
        (COUNT[A], COUNT[A], True, 2, ROWS[A][0][0], ROWS[A][-1][0]), "all of it, from the index")
# Bars by when they were known.
for when in (OPEN0, OPEN0 + MINUTE, OPEN0 + 5 * MINUTE, OPEN0 + 5 * MINUTE - 1):
    for available in (False, True):
        shift = MINUTE if available else 0
        want = [k for k, _ in BARS if k + shift >= when]
        found = client.read(BAR, when, available=available)["ts"].tolist() if want else []
        t.equal(found, want, f"bars from {when}, available {available}")
        t.equal(client.count(BAR, None, when, available=available), len(BARS) - len(want), "the others")
for wrong in ({"limit": 0}, {"limit": 2**32}, {"last": -1}, {"limit": 1, "last": 1}, {"inclusive": "none"},
              {"ordinals": slice(0, 9, 2)}, {"ordinals": (1, 2), "start": 5}, {"index": True}, {"follow": -1}):
    p.raises(ValueError, lambda: client.scan(A, **wrong))
p.raises(TypeError, lambda: client[A][5], "series[n:n + 1]")
p.raises(stoup.Error, lambda: client.scan(A, follow=True, backward=True), "STOUP_FOLLOW")

# ---- seek ----------------------------------------------------------------------------------------------------------------
for backward in (False, True):
    for limit in (None, 700):
        cursor = client.scan(A, backward=backward, limit=limit)
        for i in range(40):
            when = a_time(A)
            cursor.seek(when)
            want = [row for row in ROWS[A] if (row[0] <= when if backward else row[0] >= when)]
            want = (want[::-1] if backward else want)[:limit]
            if i % 4 == 3:
                t.true(all_of(cursor, backward) == want, f"from {when} to the end, backward {backward}, limit {limit}")
            elif want:
                t.true(all_of([next(cursor)], backward)[:5] == want[:5], f"seek {when}, backward {backward}")
        cursor.close()
        p.raises(ValueError, lambda: cursor.seek(0), "closed")
with client.merge(A, B) as merge:
    for when in (a_time(A), a_time(B), 0):
        merge.seek(when)
        found = [(int(k), i) for i, run in merge for k in run["ts"]]
        t.true(found == sorted((row[0], i) for i, name in enumerate((A, B)) for row in ROWS[name] if row[0] >= when), "merge")

# ---- as of ----------------------------------------------------------------------------------------------------------------
at = {name: client.scan(name) for name in (A, B, BAR)}


def known(name, when, strict):
    rows = BARS if name == BAR else ROWS[name]
    shift = MINUTE if name == BAR else 0
    found = [row for row in rows if (row[0] + shift < when if strict else row[0] + shift <= when)]
    return found[-1] if found else None


def one(record):
    if record is None:
        return None
    return rows_of(np.atleast_1d(record))[0] if "side" in record.dtype.names else (int(record["ts"]), int(record["volume"]))


ONE_BAR = 10 ** -client[BAR].schema.field("volume").exp10
times = sorted(a_time(A) for _ in range(200))
for i, when in enumerate(times + rng.sample(times, 60) + [0, -5, 2**63, OPEN0 + MINUTE, OPEN0 + MINUTE - 1]):
    strict = rng.random() < 0.5
    want = [known(name, when, strict) for name in (A, B, BAR)]
    want[2] = want[2] and (want[2][0], want[2][1] * ONE_BAR)
    t.equal([one(at[name].asof(when, strict)) for name in (A, B, BAR)], want, f"cursor.asof({when}, {strict})")
    if i % 5 == 0:
        t.equal([one(client.asof(name, when, strict)) for name in (A, B, BAR)], want, "client.asof")
        t.equal([one(found) for found in client.asof_all([at[A], B, client[BAR]], when, strict)], want, "asof_all")
t.equal(client.asof_all([], 5), [], "of nothing")
t.true(all_of(at[B]) == ROWS[B], "lookups do not move the scan")
t.equal(one(at[B].asof(t.T0 + 400 * NS)), known(B, t.T0 + 400 * NS, False), "nor does its end end them")
kept = at[A].asof(times[50])
for cursor in at.values():
    cursor.close()
t.equal(one(kept), known(A, times[50], False), "a record that is kept")
del kept
p.raises(stoup.Error, lambda: client.scan(A, limit=5).asof(0), "limit")
t.equal(client.stats()["lease_cnt"], 0, "no lease is left")

# ---- merges ----------------------------------------------------------------------------------------------------------------
NAMES = [A, BAR, B]


def merged(low, high, inclusive, at_open):
    after, before = ENDS[inclusive]
    shift = 0 if at_open else MINUTE
    places = [(row[0] + (shift if name == BAR else 0), i, row[0]) for i, name in enumerate(NAMES)
              for row in (BARS if name == BAR else ROWS[name])]
    return sorted(row for row in places if (low is None or after(row[0], low)) and (high is None or before(row[0], high)))


for i in range(24):
    low, high = sorted(a_time(B) for _ in "ab")
    low, high, inclusive, at_open = rng.choice((None, low)), rng.choice((None, high)), rng.choice(list(ENDS)), i % 3 == 0
    backward, limit = i % 2 == 1, rng.choice((None, 1, 777))
    want = [(place, key) for _, place, key in merged(low, high, inclusive, at_open)][::-1 if backward else 1][:limit]
    found = [(place, int(key)) for place, run in client.merge(*NAMES, start=low, end=high, inclusive=inclusive, limit=limit,
                                                              backward=backward, at_open=at_open)
             for key in (run["ts"][::-1] if backward else run["ts"])]
    t.true(found == want, f"seed {SEED}, merge {i}")
with stoup.open(daemon.pool) as other:
    p.raises(ValueError, lambda: client.merge(client[A], other[B]), "several clients")

# ---- filters ---------------------------------------------------------------------------------------------------------------
ASKED = (("price > 100.25 and side = 'B'", lambda k, c, n, s: c > 10025 and s == "B"),
         ("size is null", lambda k, c, n, s: n is None),
         ("not size > 5 or price = 95", lambda k, c, n, s: (n is not None and n <= 5) or c == 9500),
         ("size in (3, 7, 11) and price between 99 and 101.5", lambda k, c, n, s: n in (3, 7, 11) and 9900 <= c <= 10150),
         (f"ts > '{np.datetime64(ROWS[A][7000][0], 'ns')}Z'", lambda k, c, n, s: k > ROWS[A][7000][0]),
         ("price > 1000", lambda k, c, n, s: False), ("price > 0", lambda k, c, n, s: True))
for text, holds in ASKED:
    for backward in (False, True):
        low, high = sorted(a_time(A) for _ in "ab")
        for start, end in ((None, None), (low, high)):
            want = [row for row in ROWS[A] if (start is None or row[0] >= start) and (end is None or row[0] < end) and holds(*row)]
            arrays = list(client.scan(A, start, end, backward=backward, where=text))
            t.equal(client.stats()["lease_cnt"], 0, "arrays of matches keep no lease")
            t.true(all(len(array) and array.flags.writeable for array in arrays), "none is empty; copies")
            t.true(all_of(arrays, backward) == want[::-1 if backward else 1], f"{text} {start} {backward}")
            found, view = [], None
            for view, numbers in client.scan(A, start, end, backward=backward, where=text, index=True):
                t.true(not view.flags.writeable and numbers.dtype == np.dtype("u4"), "a view and numbers")
                found += rows_of(view[numbers])[::-1 if backward else 1]
            del view
            t.true(found == want[::-1 if backward else 1], f"{text}: by index")
            for limit in (1, 5, 3000):
                t.true(all_of(client.scan(A, start, end, backward=backward, where=text, limit=limit), backward) ==
                       want[::-1 if backward else 1][:limit], f"{text}: the first {limit}, backward {backward}")
            t.equal(client.count(A, start, end, where=text), len(want), f"{text}: count")
            t.true(rows_of(client.read(A, start, end, where=text)) == want, f"{text}: read")
where = stoup.Where(client[A], "side = 'S'")
whole = client.read(A)
t.true(rows_of(whole[where.select(whole)]) == [row for row in ROWS[A] if row[3] == "S"], "of a copy")
t.equal((len(where.select(whole[:0])), where.select(whole[:1]).tolist()), (0, [0] if ROWS[A][0][3] == "S" else []), "few")
again = pickle.loads(pickle.dumps(where))
t.equal((repr(again), again.select(whole).tolist()), (repr(where), where.select(whole).tolist()), "pickled")
p.raises(ValueError, lambda: where.select(whole[::2]), "in one piece")
p.raises(ValueError, lambda: where.select(client.read(FLOAT)), "schema")
p.raises(ValueError, lambda: client.scan(A, where="prise > 5"), "prise", "price")
p.raises(ValueError, lambda: client.scan(A, where="price >"), "column")
p.raises(ValueError, lambda: client.scan(A, where=where, last=5), "backward")
p.raises(ValueError, lambda: client.scan(A, where=where).arrow().__arrow_c_stream__(), "where")
p.raises(stoup.Error, lambda: client.scan(FLOAT, where=where), "another schema")
cursor = client.scan(A, where=where, limit=5)
t.equal(len(all_of(cursor)), 5, "five")
cursor.seek(ROWS[A][8000][0])
t.true(all_of(cursor) == [row for row in ROWS[A] if row[0] >= ROWS[A][8000][0] and row[3] == "S"][:5], "five more")

# ---- bars ------------------------------------------------------------------------------------------------------------------
SIDES = {"B": 1, "S": -1, "A": -1}


def bar_of(rows, first, last):
    volume = sum(n or 0 for _, _, n, _ in rows)
    return (first, last, rows[0][1], max(r[1] for r in rows), min(r[1] for r in rows), rows[-1][1], volume, len(rows))


def minutes(rows, known_to):
    groups = {}
    for row in rows:
        groups.setdefault(row[0] // MINUTE * MINUTE, []).append(row)
    return [bar_of(group, first, first + MINUTE) for first, group in groups.items() if first + MINUTE <= known_to]


def bars_of(array):
    one = 10 ** -SIZE.exp10
    return [(int(b["ts_open"]), int(b["ts_close"]), *(int(b[name]) // 10**7 for name in ("open", "high", "low", "close")),
             int(b["volume"]) // one, int(b["count"])) for b in array]


for names in ([A], [A, B]):
    rows = sorted((row for name in names for row in ROWS[name]), key=lambda row: row[0])
    found = client.bars(names if len(names) > 1 else A, "1m").read()
    t.equal(bars_of(found), minutes(rows, rows[-1][0]), f"bars of {names}")
    t.true(found.flags.writeable and found.dtype.names[0] == "ts_open", "a structured array, one's own")
with client.bars(A, "1m", complete=ROWS[A][-1][0] + 2 * MINUTE) as made:
    last = made.read()
    t.equal(bars_of(last), minutes(ROWS[A], ROWS[A][-1][0] + 2 * MINUTE), "complete: the last one too")
    t.equal(stoup.prices(last, "close", schema=made.schema).tolist(), [b[5] / 100 for b in bars_of(last)], "as floats")
ticks = [ROWS[A][i:i + 3] for i in range(0, COUNT[A], 3)]
arrays = list(client.bars(A, "3t", start=None))
t.true(len(arrays) > 1 and max(map(len, arrays)) == stoup.Bars._CAP, "several arrays")
t.true([b for array in arrays for b in bars_of(array)] == [bar_of(rows, rows[0][0], rows[-1][0]) for rows in ticks], "3t")
found = client.bars(A, "7t", partial=True).read()
t.equal((int(found["partial"].sum()), int(found["count"].sum())), (1 if COUNT[A] % 7 else 0, COUNT[A]), "the pending bar")
floats = client.bars(FLOAT, "100t").read()
t.equal([(b["open"], b["high"], b["low"], b["close"], b["volume"]) for b in floats],
        [(r[0][1], max(x for _, x, _ in r), min(x for _, x, _ in r), r[-1][1], sum(n for _, _, n in r))
         for r in (FLOATS[i:i + 100] for i in range(0, 2000, 100))], "bars of floats")
low = ROWS[A][4000][0]
t.equal(bars_of(client.bars(A, "1m", low, low + 3 * MINUTE).read()),
        minutes([row for row in ROWS[A] if low <= row[0] < low + 3 * MINUTE],
                max(row[0] for row in ROWS[A] if row[0] < low + 3 * MINUTE)), "of a range")
p.raises(ValueError, lambda: client.bars(A, "1 fortnight"), "fortnight")
p.raises(ValueError, lambda: client.bars(A, "1m", price="prise"), "prise")
p.raises(ValueError, lambda: client.bars([], "1m"), "no series")
p.raises(ValueError, lambda: client.bars(BAR, "5m"), "bar")
made = client.bars(A, "1t")
next(made)
made.close()
p.raises(ValueError, lambda: next(made), "closed")
del made
t.equal((client.stats()["lease_cnt"], stoup._lib.stoup_use_cnt(client._handle().it)), (0, 0), "nothing is left")
client.close()

# ---- without NumPy -------------------------------------------------------------------------------------------------------------
said = p.script("""
import sys
sys.modules["numpy"] = None
import stoup
pool, name = sys.argv[1:]
with stoup.open(pool) as client:
    schema = client[name].schema
    at = [schema.names.index(field) for field in ("ts", "price", "side")]
    def rows(views):
        return [tuple(row[i] for i in at) for view in views for row in schema.unpack(view)]
    where = "side = 'B' and price < 95"
    matches = rows(client.scan(name, where=where))
    by_index = []
    for view, numbers in client.scan(name, where=where, index=True):
        assert type(view) is memoryview and type(numbers) is list
        by_index += rows(view[i * schema.stride:(i + 1) * schema.stride] for i in numbers)
    assert by_index == matches and rows([client.read(name, where=where)]) == matches
    assert client.count(name, where=where) == len(matches)
    found = stoup.Where(client[name], where)
    assert [len(found.select(view)) for view in client.scan(name) if found.select(view)] == \\
        [len(numbers) for _, numbers in client.scan(name, where=where, index=True)]
    cursor, (first, *_) = client.scan(name), matches
    asof = rows([cursor.asof(first[0])]), rows(client.asof_all([name, cursor], first[0], strict=True))
    bars = client.bars(name, "3t")
    made = list(bars.schema.unpack(bars.read()))
    names = sorted((field for field in bars.schema.fields if not field.hidden), key=lambda field: field.offset)
    count = [field.name for field in names].index("count")
    replayed = rows(run for i, run in client.replay(name, speed=float("inf")))
    assert replayed == rows(client.scan(name))
    print(repr((matches, asof, len(made), sum(bar[count] for bar in made), rows(client[name][-2:]))))
""", daemon.pool, B)
matches, (asof, before), made, traded, last = eval(said)


def plain(rows):
    return [(k, c * 10**7, s.encode()) for k, c, _, s in rows]


t.equal(matches, plain(row for row in ROWS[B] if row[3] == "B" and row[1] < 9500), "where")
t.equal(asof, plain([known(B, matches[0][0], False)]), "as of")
t.equal(before, plain([known(B, matches[0][0], True)] * 2), "before")
t.equal((made, traded), (COUNT[B] // 3, COUNT[B] // 3 * 3), "bars")
t.equal(last, plain(ROWS[B][-2:]), "a slice")
daemon.stop()
