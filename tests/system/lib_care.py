# SPDX-License-Identifier: Apache-2.0
"""What the tests of compact, rm, repair and diff share: stores of several series, damage, comparisons."""
import hashlib
import json
import os
import shutil
import struct
import subprocess

import lib_stoup as t

DAY = 10**12
SYMBOLS = {"AAA": 11, "BBB": 22, "CCC": 33}


def rows_of(day, salt=0, count=3_000, symbols=None):
    return [(ident, key + day * DAY, price + salt * 1_000_000, size + salt)
            for ident, key, price, size in t.mbo_records(count, symbols or SYMBOLS)]


def ingest_rows(store, rows, *options, symbols=None, quiet=True):
    """One ingest of these rows; returns the completed process."""
    dbn = store.rstrip("/") + ".in.dbn"
    t.dbn_file(dbn, symbols or SYMBOLS, (t.mbo(*row, sequence=i) for i, row in enumerate(rows)))
    done = t.run([t.STOUP, "ingest", "--store", store, "--block", "64K", "--codec", "lz4",
                  *(["--quiet"] if quiet else []), *options, dbn])
    os.unlink(dbn)
    return done


def ingest(store, day, *options, salt=0, count=3_000):
    ingest_rows(store, rows_of(day, salt, count), *options)


def new_store(days=(), *options, **more):
    store = os.path.join(t.temp_dir(), "store")
    for day in days:
        ingest(store, day, *options, **more)
    return store


def copy_of(store):
    copy = os.path.join(t.temp_dir(), "store")
    shutil.copytree(store, copy)
    return copy


def volumes_of(store):
    return sorted(name for name in os.listdir(store) if name.endswith(".stoup"))


def stoup(*argv, expect=0):
    return t.run([t.STOUP, *argv], expect=expect)


def info(path, *pattern):
    return json.loads(stoup("info", "--json", path, *pattern).stdout)


def same(a, b, *pattern):
    """Do two stores hold the same records?"""
    done = stoup("diff", "--quiet", a, b, *pattern, expect=None)
    t.true(done.returncode in (0, 1) and not done.stderr, f"diff {a} {b}: {done.returncode} {done.stderr}")
    return done.returncode == 0


def must_be_same(a, b, what, *pattern):
    done = stoup("diff", a, b, *pattern, expect=None)
    t.true(done.returncode == 0, f"{what}: {done.stdout} {done.stderr}")


def flip(path, offset):
    """Damage one byte."""
    with open(path, "r+b") as volume:
        volume.seek(offset)
        byte = volume.read(1)[0]
        volume.seek(offset)
        volume.write(bytes([byte ^ 0x55]))


def footer_offset(path):
    with open(path, "rb") as volume:
        volume.seek(-64, 2)
        return struct.unpack("<Q", volume.read(8))[0]


def bytes_of(store):
    """A hash of every file of a store but the lock."""
    found = {}
    for name in sorted(os.listdir(store)):
        with open(os.path.join(store, name), "rb") as volume:
            found[name] = hashlib.sha256(volume.read()).hexdigest()
    found.pop(".lock", None)
    return found


def records_of(store, series):
    """The records of a series, decoded by the tool, one line each."""
    pool = t.Daemon(store, "8M")
    out = subprocess.run([t.STOUP, "cat", "--no-header", pool.pool, series], capture_output=True, text=True, timeout=60)
    t.equal(out.returncode, 0, out.stderr)
    pool.stop()
    return out.stdout.splitlines()


def leftovers(store):
    return [name for name in os.listdir(store) if name.startswith(".tmp-")]
