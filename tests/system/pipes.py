# SPDX-License-Identifier: Apache-2.0
"""Input that can be read once (pipes, FIFOs, standard input) is stored whole; closed descriptors do no harm."""
import json
import os
import subprocess

import lib_stoup as t

ROWS = 20_000
# 64 bytes a row: whatever would be lost of a pipe's 64 KiB would be whole rows, and nobody would notice.
lines = [f"{t.T0 + i},{i:043d}\n" for i in range(ROWS)]
t.equal(len(lines[0]), 64, "bytes of a row")
text = "".join(lines).encode()
directory = t.temp_dir()
OPTIONS = ["--quiet", "--series", "A/B/c", "--columns", "ts:time,n:u64"]


def rows_of(store):
    listing = json.loads(t.run([t.STOUP, "ls", "--json", store]).stdout)
    return sum(series["records"] for series in listing["series"])


def ingest(number, argument, options=OPTIONS, data=text, **more):
    store = os.path.join(directory, f"store{number}")
    done = subprocess.run([t.STOUP, "ingest", "--store", store, *options, argument], capture_output=True,
                          input=data, timeout=60, **more)
    t.equal(done.returncode, 0, f"{argument}: {done.stderr}")
    return store


# Standard input by two names, a pipe by its descriptor, a FIFO.
t.equal(rows_of(ingest(1, "-")), ROWS, "rows of -")
t.equal(rows_of(ingest(2, "/dev/stdin")), ROWS, "rows of /dev/stdin")
fifo = os.path.join(directory, "fifo")
os.mkfifo(fifo)
writer = subprocess.Popen(["sh", "-c", 'cat > "$0"', fifo], stdin=subprocess.PIPE)
pid = os.fork()
if pid == 0:
    writer.stdin.write(text)
    writer.stdin.close()
    os._exit(0)
writer.stdin.close()
t.equal(rows_of(ingest(3, fifo)), ROWS, "rows of a FIFO")
os.waitpid(pid, 0)
writer.wait()

# DBN in a pipe is known by its bytes.
symbols = {"AAA": 11}
dbn = os.path.join(directory, "in.dbn")
t.dbn_file(dbn, symbols, (t.mbo(*row) for row in t.mbo_records(3_000, symbols)))
with open(dbn, "rb") as source:
    t.equal(rows_of(ingest(4, "-", ["--quiet"], source.read())), 3_000, "records of DBN in a pipe")

# A file size limit is an error with a text, and leaves nothing behind.
store = os.path.join(directory, "limited")
done = subprocess.run(["sh", "-c", 'ulimit -f 8; exec "$0" ingest --store "$1" --quiet --series A/B/c '
                       '--columns ts:time,n:u64 --codec none -', t.STOUP, store], input=text,
                      capture_output=True)
t.equal(done.returncode, 1, f"over the file size limit: {done.stderr}")
t.true(store.encode() in done.stderr, f"the file is named: {done.stderr}")
t.true(not os.path.exists(store), "the store that did not come to be is gone")

# With standard output closed nothing else is written to in its place.
closed = subprocess.run(["sh", "-c", '"$0" ls "$1" >&-', t.STOUP, os.path.join(directory, "store1")],
                        capture_output=True, text=True)
t.true(closed.returncode in (0, 1), f"ls with closed output: {closed}")
