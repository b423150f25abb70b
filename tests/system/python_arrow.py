# SPDX-License-Identifier: Apache-2.0
"""Scans as Arrow streams by Python's capsule protocol, taken as a consumer takes them: the struct is moved out of the
capsule, by the interface alone."""
import ctypes as c
import gc

import lib_python as p
import lib_stoup as t
import numpy as np
import stoup
from lib_arrow import Array, Schema, Stream

pointer = c.pythonapi.PyCapsule_GetPointer
pointer.restype, pointer.argtypes = c.c_void_p, [c.py_object, c.c_char_p]


def take(source):
    """The stream, moved out of its capsule: what was there is marked as gone."""
    capsule = source.__arrow_c_stream__()
    inside = Stream.from_address(pointer(capsule, b"arrow_array_stream"))
    stream = Stream()
    c.memmove(c.byref(stream), c.byref(inside), c.sizeof(Stream))
    c.memset(c.addressof(inside) + Stream.release.offset, 0, Stream.release.size)
    return stream


def formats(stream):
    schema = Schema()
    t.equal(stream.get_schema(stream, schema), 0, "schema")
    found = {schema.children[i].contents.name.decode(): schema.children[i].contents.format.decode()
             for i in range(schema.n_children)}
    schema.release(schema)
    return found


def columns(stream, wanted):
    """All batches' values of 8-byte columns, by name; the stream is ended."""
    names = list(formats(stream))
    found = {name: [] for name in wanted}
    while True:
        batch = Array()
        t.equal(stream.get_next(stream, batch), 0, stream.get_last_error(stream))
        if not batch.release:
            break
        for name in wanted:
            child = batch.children[names.index(name)].contents
            values = c.string_at(child.buffers[1] + 8 * child.offset, 8 * child.length)
            found[name] += np.frombuffer(values, "i8").tolist()
        batch.release(batch)
    stream.release(stream)
    return found


CNT = 30_000
store, _ = t.make_store(CNT, {"AAA": 11}, codec="none")
daemon = t.Daemon(store, "16M")
name = t.name_of("AAA")
rows = list(t.mbo_records(CNT, {"AAA": 11}))

with stoup.open(daemon.pool) as client:
    found = columns(take(client.scan(name).arrow(price="int", time="int")), ("ts_recv", "price"))
    t.equal(found["ts_recv"], [row[1] for row in rows], "times")
    t.equal(found["price"], [row[2] for row in rows], "prices")

    # A range; the default forms; a series as it is.
    low, high = rows[1000][1], rows[20_000][1]
    found = columns(take(client.scan(name, low, high).arrow(time="int", price="int")), ("ts_recv",))
    t.equal(found["ts_recv"], [row[1] for row in rows if low <= row[1] < high], "a range")
    for source in (client[name], client.scan(name)):
        stream = take(source)
        t.equal({key: formats(stream)[key] for key in ("ts_recv", "price")},
                {"ts_recv": "tsn:UTC", "price": "d:38,9"}, "default forms")
        stream.release(stream)
    stream = take(client.scan(name).arrow(price="float"))
    t.equal(formats(stream)["price"], "g", "floats")
    stream.release(stream)

    # Records without a copy hold leases; each goes with its batch.
    stream = take(client.scan(name).arrow(records=True))
    batch = Array()
    t.equal(stream.get_next(stream, batch), 0, "a batch")
    t.equal(batch.n_children, 1, "one column")
    t.until(lambda: p.leases(daemon) >= 1, "its lease")
    batch.release(batch)
    stream.release(stream)
    p.no_leases(daemon, "released")

    # Once, of a fresh forward scan only; forms by name.
    cursor = client.scan(name)
    stream = take(cursor)
    stream.release(stream)
    p.raises(ValueError, cursor.__arrow_c_stream__, "closed")
    p.raises(ValueError, lambda: next(cursor), "closed")
    cursor = client.scan(name)
    next(cursor)
    p.raises(ValueError, cursor.__arrow_c_stream__, "begun")
    del cursor
    cursor = client.scan(name, backward=True)
    p.raises(stoup.Error, cursor.__arrow_c_stream__, "backward")
    t.equal(sum(len(array) for array in cursor), CNT, "a refused scan is still there")
    p.raises(ValueError, lambda: client.scan(name).arrow(price="cents"), "price='cents'", "'decimal', 'int', 'float'")

    # A capsule that nobody takes gives its cursor back, and says nothing.
    before = client.stats()["lease_cnt"]
    for _ in range(100):
        client[name].__arrow_c_stream__()
    gc.collect()
    t.equal(len(stoup._streams), 0, "no stream is kept")
    t.equal(client.stats()["lease_cnt"], before, "leases")
    late = take(client[name])

# The client is closed: a stream goes on like an array, and the attachment goes with it.
t.equal(len(columns(late, ("price",))["price"]), CNT, "all records after the close")
t.until(lambda: not daemon.stat()["consumers"], "nobody is attached")

out = p.script("""
import sys, stoup
client = stoup.open(sys.argv[1])
kept = client[sys.argv[2]].__arrow_c_stream__()
print("ends with a capsule")
""", daemon.pool, name)
t.equal(out, "ends with a capsule\n", "an interpreter's end")
t.until(lambda: not daemon.stat()["consumers"], "nobody is attached")
daemon.stop()
