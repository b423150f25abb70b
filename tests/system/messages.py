# SPDX-License-Identifier: Apache-2.0
"""What the store commands say: one line that helps, no zeros that read as results, sums of values alone."""
import os

import lib_stoup as t

directory = t.temp_dir()
store = os.path.join(directory, "store")


def csv_file(name, *rows):
    path = os.path.join(directory, name)
    with open(path, "w", encoding="ascii") as out:
        out.write("\n".join(rows) + "\n")
    return path


def ingest(path, *options, expect=0, into=store):
    return t.run([t.STOUP, "ingest", "--store", into, *options, path], expect=expect)


def refused(text, *argv, expect=2):
    done = t.run([t.STOUP, *argv], expect=expect)
    t.equal(done.stderr.count("\n"), 1, f"lines of {done.stderr!r}")
    t.true(text in done.stderr, f"{text!r} in {done.stderr!r}")
    t.equal(done.stdout, "", f"stdout of {argv}")


# ---- sums: of what is there -------------------------------------------------------------------------
quotes = csv_file("quotes.csv", "1700000000,1.5,2.5", "1700000001,1.25,2.5")
quoted = ingest(quotes, "--series", "FX/A/quotes", "--columns", "ts:time,bid:price,ask:price").stdout
(row,) = [line.split() for line in quoted.splitlines() if line.startswith("FX/A/quotes")]
t.equal(row[1:2] + row[4:], ["2", "-", "-"], "no price, no size")
t.true(f"volume {store}/00000001-00-" in quoted and ": decoded 48 B, stored " in quoted, quoted)

trades = csv_file("trades.csv", "1700000000,1.5,", "1700000001,-1.5,")
traded = ingest(trades, "--series", "FX/A/trades", "--columns", "ts:time,price:price,size:price").stdout
(row,) = [line.split() for line in traded.splitlines() if line.startswith("FX/A/trades")]
t.equal(row[1:2] + row[4:], ["2", "0", "-"], "prices that cancel out are a sum, undefined sizes are none")

# ---- the same file again, and another one that overlaps ------------------------------------------------
again = ingest(quotes, "--series", "FX/A/quotes", "--columns", "ts:time,bid:price,ask:price", "--again", expect=1)
t.true("the same file again? Else --replace" in again.stderr, again.stderr)
later = csv_file("later.csv", "1700000000.5,1.5,2.5", "1700000002,1.25,2.5")
other = ingest(later, "--series", "FX/A/quotes", "--columns", "ts:time,bid:price,ask:price", expect=1)
t.true("--replace puts it in their place" in other.stderr and "again" not in other.stderr, other.stderr)
t.true("1 older volume was rewritten into it\n" in
       ingest(later, "--series", "FX/A/quotes", "--columns", "ts:time,bid:price,ask:price", "--replace").stdout,
       "one volume in the singular")

# ---- a series of the longest usual name does not push the advice out of the text -----------------------
name = "GLBX.MDP3/" + "N" * 60 + "/quotes"
columns = ("--columns", "ts:time,bid:price,ask:price")
ingest(quotes, "--series", name, *columns)
for path, advice in ((quotes, "Else --replace\n"), (later, "in their place\n")):
    said = ingest(path, "--series", name, *columns, "--again", expect=1).stderr
    t.true(said.endswith(advice), said)

# ---- wrong usage: one line that points to the help -----------------------------------------------------
refused("stoup ingest: --codec lzma: not one of default, fast, small, none, lz4, lz4hc, zstd; see `stoup help ingest`",
        "ingest", "--store", store, "--codec", "lzma", quotes)
LEVELS = "(default and lz4hc have 1 to 12, small and zstd 1 to 22, lz4 1 to 65537); see"
refused("--level 23: no level of zstd " + LEVELS, "ingest", "--store", store, "--codec", "zstd", "--level", "23", quotes)
refused("--level 13: no level of default " + LEVELS, "ingest", "--store", store, "--level", "13", quotes)
refused("--level 1: no level of fast " + LEVELS, "ingest", "--store", store, "--codec", "fast", "--level", "1", quotes)
refused("stoup ingest: no FILE is given; see `stoup help ingest`", "ingest", "--store", store)
refused("stoup: there is no command 'list'; see `stoup help`", "list")
refused("stoup: there is no command 'list'; see `stoup help`", "help", "list")
refused("stoup ls: STORE is missing; see `stoup help ls`", "ls")
refused("stoup verify: STORE or FILE is missing; see `stoup help verify`", "verify")
refused("stoup verify: nodir: No such file or directory", "verify", "nodir", expect=1)
for argv in ([], ["ticks/"], ["--first", "ticks/", "A/B/c"], ["--fast", "ticks/", "A/B/c"]):
    said = t.run([t.STOUP, "cat", *argv], expect=2).stderr
    t.true(said.endswith("\nSee `stoup help cat`.\n") and said.count("\n") == 2, f"cat {argv}: {said}")
nothing = t.temp_dir()
for command in ("ls", "verify"):
    refused(f"stoup {command}: '{nothing}' holds no volumes: is it a store?", command, nothing, expect=1)
refused("did you mean bar?", "ingest", "--store", store, "--series", "X/Y/bars", "--schema", "bars", "--interval",
        "1m", quotes, expect=1)

# ---- the help explains the words of the tables ---------------------------------------------------------
text = " ".join(t.run([t.STOUP, "help", "ingest"]).stdout.split())
t.true('"sum of price" (of the field price, else close)' in text, "sum of price")
t.true('"sum of size" (of size, volume, qty, quantity or amount)' in text, "sum of size")
text = " ".join(t.run([t.STOUP, "help", "ls"]).stdout.split())
t.true("ratio (decoded bytes / stored bytes of the series' blocks)" in text, "ratio")
