# SPDX-License-Identifier: Apache-2.0
"""`stoup warm`: what it loads is there when the workers come, and it says what it did in numbers that are right."""
import os
import pty
import re
import subprocess

import lib_stoup as t

SYMBOLS = {"AAA": 11, "BBB": 22}
store, totals = t.make_store(60_000, SYMBOLS)  # 3.4 MB in blocks of 64 KiB
name, other = t.name_of("AAA"), t.name_of("BBB")
SUM = re.compile(r"(\d+) blocks? of (\d+) series: (\d+) in pool '([^']*)' already \(([\d.]+) MiB\), "
                 r"(\d+) loaded \(([\d.]+) MiB( in [\d.]+ s, \d+ MiB/s)?\)\n")


def warm(pool, *words, expect=0):
    done = t.run([t.STOUP, "warm", pool, *words], expect=expect)
    found = SUM.match(done.stdout)
    t.true(found, f"the sum: {done.stdout!r} {done.stderr!r}")
    blocks, series, there, said, there_mib, loaded, loaded_mib, rate = found.groups()
    t.equal(said, pool, "the pool")
    return {"blocks": int(blocks), "series": int(series), "there": int(there), "loaded": int(loaded),
            "mib": float(loaded_mib), "there_mib": float(there_mib), "rate": rate, "stderr": done.stderr,
            "rest": done.stdout[found.end():]}


# All of one series: its blocks are loaded once, a worker then loads nothing.
daemon = t.Daemon(store, "16M")
all_blocks = daemon.stat()["volumes"][0]["blocks"]
first = warm(daemon.pool, name)
t.equal((first["series"], first["there"], first["loaded"]), (1, 0, first["blocks"]), "a cold pool")
t.true(first["rate"], "a rate")
stat = daemon.settled()
t.equal(stat["counters"]["loads"], first["blocks"], "loads")
t.equal(stat["counters"]["resident_blocks"], first["blocks"], "resident")
t.equal(round(stat["counters"]["load_raw_bytes"] / 2**20, 1), first["mib"], "decoded bytes")
t.equal((stat["counters"]["leases"], stat["counters"]["consumers"]), (0, 0), "it holds nothing")
# How many came before they were waited for is a matter of time; that they were asked for is not.
t.true(0 < stat["counters"]["ahead_asked"] < first["blocks"], f"it asks ahead: {stat['counters']}")
(found,) = t.Worker(daemon.pool, name).finish()
totals["AAA"].check(found, "a worker")
t.equal(daemon.counter("loads"), first["blocks"], "a worker loads nothing")

# Again: all of it is there. With a pattern: the rest of it is loaded.
again = warm(daemon.pool, name)
t.equal((again["there"], again["loaded"], again["mib"]), (first["blocks"], 0, 0.0), "a warm pool")
t.equal(again["rate"], None, "no rate of nothing")
both = warm(daemon.pool, "*/mbo", name)
t.equal(both["series"], 2, "a pattern, each series once")
t.equal(both["there"] + both["loaded"], both["blocks"], "blocks")
t.equal(both["blocks"], all_blocks, "each block once")
t.equal(daemon.counter("loads"), all_blocks, "loads of all")
daemon.stop()

# A range: the blocks that hold it, by the index.
daemon = t.Daemon(store, "16M")
span = ["--from", str(t.T0 + 20_000_000), "--to", str(t.T0 + 40_000_000)]
part = warm(daemon.pool, name, *span)
t.true(first["blocks"] // 4 <= part["blocks"] <= first["blocks"] // 2 + 1, f"a third: {part} of {first['blocks']}")
(found,) = t.Worker(daemon.pool, name, *span).finish()
t.equal(daemon.counter("loads"), part["blocks"], "the range is all there")
t.equal(warm(daemon.pool, name, "--from", "2030-01-01T00:00:00Z")["blocks"], 0, "a range without records")
t.equal(daemon.stop(), 0, "exit status")

# More than the pool: refused with numbers, or what fits.
daemon = t.Daemon(store, "1M")
refused = t.run([t.STOUP, "warm", daemon.pool, "*"], expect=1)
t.equal(refused.stdout, "", "nothing is said to be done")
found = re.search(r"(\d+) blocks of (\d+) bytes .* more than pool '.*' holds: 1048576 bytes \(1\.0 MiB\); mend: "
                  r"stoupd --size (\d+)", refused.stderr)
t.true(found and int(found[1]) == all_blocks and found[2] == found[3] and int(found[2]) % 4096 == 0, refused.stderr)
t.true("--best-effort" in refused.stderr, refused.stderr)
t.equal(daemon.counter("loads"), 0, "nothing was loaded")
for option in ("--best-effort", "--force"):
    some = warm(daemon.pool, option, "*")
    left_out = re.fullmatch(r"(\d+) blocks did not fit: left out\n", some["rest"])
    t.true(left_out and int(left_out[1]) + some["blocks"] == all_blocks, f"left out: {some}")
    t.true(some["blocks"] >= 14, f"what fits: {some}")
# With the size that it names it goes.
wanted = found[2]
t.equal(daemon.stop(), 0, "exit status")
daemon = t.Daemon(store, wanted)
t.equal(warm(daemon.pool, "*")["blocks"], all_blocks, "with the size that was named")
t.equal(daemon.settled()["counters"]["resident_blocks"], all_blocks, "all of it")
daemon.stop()

# Usage, and what is not there.
for words, part in (([], "a POOL is wanted"), (["p"], "at least one SERIES"), (["--all", "p"], "no such option here"),
                    (["p", "s", "--from", "2024-06-03", "--to", "2024-06-02"], "is later than"),
                    (["p", "s", "--from", "yesterday"], "yesterday")):
    said = t.run([t.STOUP, "warm", *words], expect=2).stderr
    t.true(part in said, said)
said = t.run([t.STOUP, "warm", "nosuchpool", name], expect=1).stderr
t.true("nosuchpool" in said, said)
daemon = t.Daemon(store, "16M")
for series, part in (("nosuch", "nosuch"), ("no*such", "no series matches 'no*such'")):
    said = t.run([t.STOUP, "warm", daemon.pool, series], expect=1).stderr
    t.true(part in said, said)

# Progress on a terminal, and none in a pipe.
master, slave = pty.openpty()
process = subprocess.Popen([t.STOUP, "warm", daemon.pool, "*"], stdout=subprocess.PIPE, stderr=slave)
os.close(slave)
shown = b""
try:
    while chunk := os.read(master, 4096):
        shown += chunk
except OSError:
    pass
text = process.communicate()[0].decode()
t.equal(process.wait(), 0, "exit status")
t.true(b"warm: " in shown and b" %" in shown and shown.endswith(b"\r\x1b[K"), f"progress: {shown}")
t.true(SUM.match(text), text)
t.equal(warm(daemon.pool, "*")["stderr"], "", "in a pipe")

# A daemon that ends meanwhile: said, exit status 1.
daemon.kill()
said = t.run([t.STOUP, "warm", daemon.pool, "*"], expect=1).stderr
t.true(daemon.pool in said, said)

# A store: its automatic daemon.
auto = t.run([t.STOUP, "warm", store + "/", name])
t.true(f"{first['blocks']} loaded" in auto.stdout, auto.stdout)

# A damaged block: the others come, and it is named.
path = next(os.path.join(store, file) for file in os.listdir(store) if file.endswith(".stoup"))
volume = bytearray(open(path, "rb").read())
volume[len(volume) // 3] ^= 0xFF
damaged = t.temp_dir() + "/store"
os.mkdir(damaged)
open(os.path.join(damaged, os.path.basename(path)), "wb").write(volume)
daemon = t.Daemon(damaged, "16M")
done = t.run([t.STOUP, "warm", daemon.pool, "*"], expect=1)
t.true("1 block failed, the first: " in done.stderr and "stoup verify" in done.stderr, done.stderr)
t.equal(int(SUM.match(done.stdout)[6]), all_blocks - 1, "the others")
daemon.stop()
