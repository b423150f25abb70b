# SPDX-License-Identifier: Apache-2.0
"""Ranges, as-of, merges, filters, bars and replays through stoup.hpp, by every C++ compiler of the machine, compared with
what plain Python says of the rows that went in."""
import os
import random

import lib_install as i
from lib_install import t

i.need("pkg-config", "cmake")
compilers = i.cxx_compilers()
prefix = i.Prefix()
work = t.temp_dir()
rng = random.Random(7)
NS, BASE = 10**9, 1_700_000_000 * 10**9
MIDDLE = BASE + 500 * NS
store = os.path.join(work, "store")


def ingest(name, columns, lines, *options):
    path = os.path.join(work, "in.csv")
    with open(path, "w", encoding="ascii") as out:
        out.writelines(lines)
    t.run([t.STOUP, "ingest", "--quiet", "--store", store, "--block", "64K", "--series", name, "--schema", columns, "--time",
           "ts", *options, path])


for schema, fields in (("trade", "price i64 scale=-2\nsize i64\nside char\n"), ("quote", "bid i64 scale=-2\nask i64 scale=-2\n")):
    with open(os.path.join(work, schema + ".schema"), "w", encoding="ascii") as out:
        out.write(f"schema {schema}\nkey ts\nts time\n{fields}")
ROWS = {}
for name, cnt in (("a", 6000), ("b", 2500)):
    key, ROWS[name] = BASE, []
    for _ in range(cnt):
        key += rng.choice((0, 0, 1, NS // 10, NS // 3))
        ROWS[name].append((key, rng.randrange(90_00, 110_00), rng.randrange(1, 50), rng.choice("BS")))
    ingest(f"X/{name.upper()}/trade", os.path.join(work, "trade.schema"),
           ["ts,price,size,side\n"] + [f"{k},{p // 100}.{p % 100:02},{n},{s}\n" for k, p, n, s in ROWS[name]])
QUOTES = sorted(rng.choice(ROWS["a"])[0] + rng.choice((0, 1, -1)) for _ in range(1500))
ingest("X/A/quote", os.path.join(work, "quote.schema"), ["ts,bid,ask\n"] + [f"{k},1.00,1.01\n" for k in QUOTES])
daemon = t.Daemon(store)


def digest(keys):
    keys, mix = list(keys), 0
    for key in keys:
        mix = (mix * 31 + key) % 2**64
    return f"{len(keys)} {mix}"


A, B = ([row[0] for row in ROWS[name]] for name in "ab")
times = [BASE + n * NS for n in range(-5, 1200, 7)]


def known(keys, when, strict=False):
    found = [key for key in keys if (key < when if strict else key <= when)]
    return found[-1] if found else 0


both = sorted([(key, 0) for key in A] + [(key, 1) for key in B])
mixed = sorted([(key, 0) for key in A] + [(key, 1) for key in QUOTES])
dear = [key for key, price, _, side in ROWS["a"] if price > 105_00 and side == "B"]
MINUTE = 60 * NS
opens = [first for first in dict.fromkeys(key // MINUTE * MINUTE for key in A) if first + MINUTE <= A[-1]]
volume = sum(n for key, _, n, _ in ROWS["a"] if key // MINUTE * MINUTE + MINUTE <= A[-1])
EXPECTED = [
    ("ordinals", digest(A[100:1100])), ("tail", digest(A[5000:])), ("nothing", digest([])),
    ("first", digest([key for key in A if key >= MIDDLE][:10])), ("last", digest([key for key in A if key < MIDDLE][-10:])),
    ("latest", digest([key for key in A if key <= MIDDLE][:-11:-1])), ("count", str(sum(key >= MIDDLE for key in A))),
    ("seek", digest(key for key in A if key >= MIDDLE)),
    ("asof", digest(known(A, when) for when in times)), ("before", digest(known(A, when, True) for when in times)),
    ("lookup", digest(known(keys, when) for when in times for keys in (A, B))),
    ("kept", str(known(A, BASE + 2 * NS))), ("all", digest(A)),
    ("merge", digest(key for key, _ in both)), ("sources", digest(place for _, place in both)),
    ("merge_backward", digest(key for key, _ in both[:-501:-1])), ("mixed", digest(key for key, _ in mixed)),
    ("mixed_backward", digest(key for key, _ in mixed[::-1])), ("where", digest(dear)), ("where", digest(dear)),
    ("bars", digest(opens)), ("volume", str(volume)), ("volume_f64", str(volume)),
    ("ticks", digest(both[at + 99][0] for at in range(0, len(both) - 99, 100))),
    ("replay", digest(key for key, _ in mixed)), ("paced", digest(A[:50])),
]
expected = "".join(f"{what} {value}\n" for what, value in EXPECTED)
flags = prefix.flags("--cflags", "--libs")
for compiler in compilers:
    for options in (["-O0"], ["-O2"]):
        program = os.path.join(work, "query")
        t.run([compiler, *i.CXX_STRICT, *options, os.path.join(i.PROGRAMS, "query.cc"), "-o", program, *flags])
        done = t.run([program, daemon.pool], expect=None)
        t.equal((done.stderr, done.returncode), ("", 0), f"{compiler} {options}: {done.stdout}")
        t.equal(done.stdout.splitlines(), expected.splitlines(), f"{compiler} {options}")
    # What has no name is gone before its answer is looked at; and all of it without exceptions.
    for what, inside in (("an as-of of a cursor without a name", "auto x = st.scan(st.find<stoup_mbo>(\"x\")).asof({});"),
                         ("a run of a merge without a name", "auto s = st.find<stoup_mbo>(\"x\"); auto x = st.merge(s, s).next();"),
                         ("a copied merge", "auto s = st.find<stoup_mbo>(\"x\"); auto x = st.merge(s, s); auto y = x;"),
                         ("too few callables", "auto s = st.find<stoup_mbo>(\"x\"); auto x = st.merge(s, s, s);"
                          "x.next().visit([](auto) {}, [](auto) {});")):
        path = os.path.join(work, "bad.cc")
        with open(path, "w", encoding="ascii") as out:
            out.write(f"#include <stoup.hpp>\nvoid f(stoup::client &st);\nvoid f(stoup::client &st) {{ {inside} }}\n")
        done = t.run([compiler, "-std=c++20", "-fsyntax-only", *prefix.flags("--cflags"), path], expect=None)
        t.true(done.returncode != 0 and len(done.stderr.splitlines()) < 100, f"{compiler} takes {what}: {done.stderr[:800]}")
    path = os.path.join(work, "quiet.cc")
    with open(path, "w", encoding="ascii") as out:
        out.write("""#include <stoup.hpp>
int main(int argc, char **argv)
{
        auto st = stoup::client::try_attach(argc > 1 ? argv[1] : "");
        if (!st)
                return 2;
        auto from = st->try_find("X/A/trade");
        if (!from)
                return 3;
        auto cnt = st->try_count(*from);
        return cnt && *cnt == 6000 ? 0 : 4;
}
""")
    t.run([compiler, *i.CXX_STRICT, "-fno-exceptions", "-fno-rtti", path, "-o", program, *flags])
    t.equal(t.run([program, daemon.pool], expect=None).returncode, 0, f"{compiler}: without exceptions")
daemon.stop()
