# SPDX-License-Identifier: Apache-2.0
"""Messages of variable length in Python: in place, with their keys, with and without NumPy, and who keeps what."""
import gc
import json
import os

import lib_python as p
import lib_stoup as t
import numpy as np
import stoup

HELPER = os.path.join(t.BIN, "helper_messages")
KEY0 = 1_700_000_000_000_000_000
CNT = 20_000
JSON, FRAMES, KEPT = "X/btc/json", "X/btc/frames", "X/kept/frames"

store = os.path.join(t.temp_dir(), "store")
t.run([HELPER, "put", store, "lz4", "65536", "refuse", JSON, "json", "1", "0", str(CNT), FRAMES, "frames", "2", "0",
       str(CNT)])
daemon = t.Daemon(store, "16M")
# What `cat` prints, which another test holds against the bytes that went in.
told = [json.loads(line) for line in
        t.run([t.STOUP, "cat", "--format", "jsonl", daemon.pool, JSON]).stdout.splitlines()]
KEYS = [KEY0 + i // 3 * 1000 for i in range(CNT)]

client = stoup.open(daemon.pool)
series = client[JSON]
t.true(series.schema.messages and series.schema.stride == 0 and series.schema.dtype is None, "a schema of messages")
t.equal(repr(series), f"<stoup.Series {JSON}: {CNT} messages>", "its repr")
i = 0
for messages in series.scan():
    t.true(isinstance(messages, stoup.Messages) and len(messages) > 1, "a span")
    keys, lengths = messages.keys(), messages.lengths()
    t.equal((keys.dtype, lengths.dtype), (np.dtype("i8"), np.dtype("u4")), "types")
    t.true(keys.flags.writeable, "keys are a copy")
    t.equal(keys.tolist(), KEYS[i:i + len(messages)], "keys")
    t.equal(lengths.tolist(), [len(one) for one in messages], "lengths")
    for key, view in messages.items():
        t.equal((key, json.loads(bytes(view))), (KEYS[i], told[i]["message"]), f"message {i}")
        i += 1
t.equal(i, CNT, "all of them")
t.true(view.readonly and view.format == "B", "bytes that cannot be written")
p.raises(TypeError, lambda: view.__setitem__(0, 1))
# Slices, borders, search.
t.equal(messages[-1], messages[len(messages) - 1], "from the end")
part = messages[3:9]
t.equal((len(part), part.keys().tolist(), bytes(part[0])), (6, messages.keys().tolist()[3:9], bytes(messages[3])), "slice")
t.equal((len(messages[9:3]), len(messages[5:10**9]), messages[9:3].keys().tolist()), (0, len(messages) - 5, []), "slices")
t.equal([bytes(one) for one in reversed(part)], [bytes(one) for one in part][::-1], "backward")
p.raises(IndexError, lambda: messages[len(messages)], "message")
p.raises(IndexError, lambda: messages[-len(messages) - 1])
p.raises(ValueError, lambda: messages[::2], "step")
for key in (0, messages.key(0), messages.key(0) + 1, messages.key(5), messages.key(-1), messages.key(-1) + 1):
    t.equal(messages.bound(key), int(np.searchsorted(messages.keys(), key)), f"first at or after {key}")

# ---- the other calls ------------------------------------------------------------------------------------------
frames = client.read(FRAMES)
t.equal([key for key, _ in frames], KEYS, "read: keys")
t.true(any(len(data) == 0 for _, data in frames) and max(len(data) for _, data in frames) == 70_000, "read: all lengths")
t.equal(client.read(FRAMES, KEY0 + 1000, KEY0 + 3000), frames[3:9], "a range")
t.equal([bytes(one) for one in next(iter(client.scan(FRAMES, backward=True)))][-1], frames[-1][1], "backward")
key, data = client.asof(FRAMES, KEY0 + 1500)
t.equal((key, bytes(data)), frames[5], "as-of: the last of equal keys")
t.equal(client.asof(FRAMES, KEY0, strict=True), None, "as-of: none before the first")
for n in (0, 1, 5, 3000):
    t.equal(client.last(FRAMES, n), frames[CNT - n:], f"the last {n}")
t.equal(client.last(FRAMES, 2, before=KEY0 + 2000), frames[4:6], "the last before a time")
runs = [(i, key) for i, run in client.merge(FRAMES, JSON) for key in run.keys().tolist()]
t.equal(runs, sorted([(i, key) for i in (0, 1) for key in KEYS], key=lambda one: (one[1], one[0])), "merged")
p.raises(stoup.Error, lambda: client.scan(JSON, direct=True), "compressed")

# ---- who keeps what --------------------------------------------------------------------------------------------
del messages, part, view, data
p.no_leases(daemon, "after the scans")
cursor = client.scan(JSON)
messages = next(cursor)
one, expected = messages[7], bytes(messages[7])
del messages
cursor.close()
gc.collect()
t.until(lambda: p.leases(daemon) == 1, "one message keeps its block")
pid = os.fork()
if pid == 0:
    os._exit(0 if bytes(one) == expected else 1)
t.equal(os.waitpid(pid, 0)[1], 0, "a child reads it")
client.close()
daemon.kill()
t.equal(bytes(one), expected, "it outlives cursor, client and daemon")
del one

# ---- without NumPy ------------------------------------------------------------------------------------------------
daemon = t.Daemon(store, "16M")
said = p.script(f"""
import sys
sys.modules["numpy"] = None
import stoup
with stoup.open({daemon.pool!r}) as client:
    keys, total = [], 0
    for messages in client.scan({FRAMES!r}):
        keys += messages.keys()
        total += sum(messages.lengths())
        assert [len(one) for one in messages] == messages.lengths()
    assert keys == [{KEY0} + i // 3 * 1000 for i in range({CNT})]
    assert total == sum(len(data) for _, data in client.read({FRAMES!r}))
    assert [key for i, run in client.merge({JSON!r}, {FRAMES!r}) for key in run.keys()] == sorted(keys + keys)
    print(stoup.np, total)
""")
t.equal(said, f"None {sum(len(data) for _, data in frames)}\n", "without NumPy")
