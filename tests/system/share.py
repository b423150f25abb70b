# SPDX-License-Identifier: Apache-2.0
"""Workers share one decoded copy: right totals, each block loaded once, nothing left after the stop."""
import lib_stoup as t

symbols = {"AAA": 11, "BBB": 12, "C/D%": 13}
store, totals = t.make_store(60_000, symbols)
daemon = t.Daemon(store, "16M")
names = {"AAA": t.name_of("AAA"), "BBB": t.name_of("BBB"), "C/D%": t.name_of("C%2FD%25")}

# One reader: totals of every symbol.
for symbol, name in names.items():
    (found,) = t.Worker(daemon.pool, name).finish()
    totals[symbol].check(found, symbol)

# Eight readers at once, three passes each: equal checksums, and no block was loaded twice.
workers = [t.Worker(daemon.pool, names["AAA"], "--passes", 3) for _ in range(8)]
results = [line for worker in workers for line in worker.finish()]
t.equal(len(results), 24, "passes reported")
for number, found in enumerate(results):
    t.equal(found["rc"], 0, f"pass {number}")
t.equal(len({line["checksum"] for line in results if line["records"] == totals["AAA"].records}), 1,
        "checksums of first passes")
stat = daemon.stat()
blocks = sum(volume["blocks"] for volume in stat["volumes"])
t.equal(stat["counters"]["loads"], blocks, "blocks loaded")
t.equal(stat["counters"]["loads_max"], 1, "loads of any one block")
daemon.runs("state")
t.equal(stat["counters"]["attaches"], 11, "attaches")
t.until(lambda: daemon.counter("consumers") == 0, "all consumers gone")
t.equal(daemon.counter("detaches"), 11, "orderly detaches")
t.until(lambda: daemon.counter("leases") == 0, "leases")

# A key range: inclusive at its start, exclusive at its end.
rows = [row for row in t.mbo_records(60_000, symbols) if row[0] == 12]
low, high = rows[5_000][1], rows[15_000][1]
(found,) = t.Worker(daemon.pool, names["BBB"], "--from", low, "--to", high).finish()
t.equal(found["records"], 10_000, "records in range")
t.equal(found["first_key"], low, "first key in range")
t.equal(found["price"], sum(row[2] for row in rows[5_000:15_000]), "price in range")

# A second daemon of the name is refused and told who owns it.
second = t.Daemon(store, "16M", pool=daemon.pool, wait=False)
t.equal(second.process.wait(60), 1, "second daemon's status")
t.true(str(daemon.process.pid) in second.ready, f"owner is named in: {second.ready}")
t.true("served already" in second.ready, second.ready)

# An unknown series is an error that names near ones.
bad = t.run([t.WORKER, daemon.pool, t.name_of("AAB")], expect=1)
t.true("AAA" in bad.stdout, f"near names in: {bad.stdout}")

# cat prints exact decimals and ISO times.
out = t.run([t.STOUP, "cat", "--limit", "2", daemon.pool, names["AAA"]]).stdout.splitlines()
t.equal(len(out), 3, "lines of cat")
columns = dict(zip(out[0].split(","), out[1].split(",")))
ident, key, price, size = next(t.mbo_records(1, symbols))
t.equal(columns["size"], str(size), "size")
t.equal(round(float(columns["price"]) * 1e9), price, "price")
t.true(columns["ts_recv"].startswith("2023-11-14T22:13:20."), columns["ts_recv"])
t.equal(len(columns["ts_recv"]), 30, "nanoseconds in the time")

t.equal(daemon.stop(), 0, "exit status after SIGTERM")
t.equal(t.shm_names(daemon.pool), [], "names left in /dev/shm")
gone = t.run([t.STOUP, "stat", daemon.pool], expect=1)
t.true("there is no pool" in gone.stderr, gone.stderr)
