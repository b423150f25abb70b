# SPDX-License-Identifier: Apache-2.0
"""Many files in one ingest: directories, threads, files that the store has, and looking without storing."""
import os
import signal
import subprocess
import sys
import zipfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import lib_stoup as t  # noqa: E402

WORK = t.temp_dir()
COLUMNS = ["--series", "FX/A/quotes", "--columns", "ts:time,bid:price,ask:price"]
HOUR = 3600 * 10**9


def quotes(path, first, cnt, bad=None):
    path = os.path.join(WORK, path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="ascii") as out:
        for i in range(cnt):
            bid = "x" if i == bad else f"1.{first + i:06d}"
            out.write(f"{1700000000 + first + i},{bid},2.5\n")
    return path


def ingest(store, *args, expect=0, columns=COLUMNS):
    return t.run([t.STOUP, "ingest", "--store", os.path.join(WORK, store), *columns, *args], expect=expect)


def rows(store):
    return t.run([t.STOUP, "cat", os.path.join(WORK, store) + "/", "FX/A/quotes", "--no-header"]).stdout


# ---- a directory: by suffix, in the order of numbers, and what is left out is told ----------------------------
for k in range(12):
    quotes(f"days/part{k}.csv", 100 * k, 100)
quotes("days/.hidden.csv", 5, 5)
quotes("days/old/part-a.tsv.txt", 5, 5)
with open(os.path.join(WORK, "days", "README.md"), "w", encoding="ascii") as out:
    out.write("not data\n")
told = ingest("all", os.path.join(WORK, "days"), "--quiet")
t.equal(told.stderr, f"{WORK}/days: 2 files were left out, whose names are of no format that is known: "
        "README.md part-a.tsv.txt\n", "what is left out")
t.equal(rows("all").count("\n"), 1200, "records of twelve files")
empty = os.path.join(WORK, "empty")
os.mkdir(empty)
t.true("no file below it has the name of a format" in ingest("e", empty, expect=1).stderr, "an empty directory")
t.true(not os.path.exists(os.path.join(WORK, "e")), "and no store")

# ---- the format is told by the last ending of the file's own name, not by an earlier one or a directory's ----------
for name in ("es.dbn.csv", "es.DBN.CSV", "x.jsonl.csv", "es.dbn.d/q.csv", "es.dbn.d/q.txt", "x.jsonl.d/q.csv"):
    ingest("named", "--dry-run", quotes(name, 0, 3))
for name in ("x.csv.d/q.jsonl", "x.csv.jsonl", "x.csv.d/q.txt", "x.dbn.d/q.JSONL"):
    path = quotes(name, 0, 0)
    with open(path, "w", encoding="ascii") as out:
        out.write('1700000000 {"p":1}\n')
    ingest("named", "--dry-run", path, columns=["--series", "FX/A/bipf"])
for name in ("q.csv.dbn", "q.csv.d/es.Dbn.part"):
    t.true("no DBN: it begins neither" in ingest("named", "--dry-run", quotes(name, 0, 3), expect=1,
                                                columns=["--series", "FX/A/mbo"]).stderr, name)

# ---- an option of another format is not ignored ------------------------------------------------------------------
plain, lines = quotes("options/q.csv", 0, 3), quotes("options/q.jsonl", 0, 0)
with open(lines, "w", encoding="ascii") as out:
    out.write('1700000000 {"p":1}\n')
for options, reason in (
        (["--raw"], "--raw is for ITCH 5.0"), (["--as", "text"], "--as is for JSON lines"), (["--hour", "3"], "--hour is for"),
        (["--frame-length", "u8"], "--frame-length is for messages"), (["--one-stream"], "--one-stream is for DBN"),
        (["--dataset", "X"], "--dataset is for DBN, Dukascopy ticks, ITCH 5.0, and this is CSV")):
    t.true(f"q.csv: {reason}" in ingest("options", *options, plain, expect=1).stderr, f"{options} of CSV")
for options in (["--exchange", "X"], ["--symbol", "X"], ["--date", "2020-01-01"], ["--size-scale", "3"]):
    t.true(f"q.csv: {options[0]} is for CSV of a feed" in ingest("options", *options, plain, expect=1).stderr,
           f"{options} where columns are told")
for options in (["--raw"], ["--date", "2020-01-01"], ["--symbol", "X"], ["--size-scale", "3"], ["--point", "5"]):
    said = ingest("options", *options, lines, expect=1, columns=["--series", "FX/A/bipf"]).stderr
    t.true(f"q.jsonl: {options[0]} is for " in said and "and this is JSON lines" in said, said)
t.true(not os.path.exists(os.path.join(WORK, "options", "00000001")), "nothing is stored")
# Of several files it may be for one; where it is for none, nothing is stored either.
said = ingest("options", "--raw", plain, quotes("options/r.csv", 3, 3), expect=1).stderr
t.equal(said, "stoup ingest: --raw is for ITCH 5.0, and none of the files is such\n", "an option for none of the files")
both = ["--format", "frames", "--series", "X/Y/frames", "--frame-length", "u8", "--frame-time", "0:u32le:s"]
t.true("in the message or before it, not both" in
       ingest("options", "--frame-time-first", "u32le:s", plain, expect=2, columns=both).stderr, "two places of a time")

# ---- threads change nothing: neither records nor which error is told ------------------------------------------
files = [os.path.join(WORK, "days", f"part{k}.csv") for k in range(12)]
for threads in ("1", "2", "16"):
    ingest("t" + threads, "--threads", threads, "--quiet", *files)
    t.equal(rows("t" + threads), rows("all"), f"records by {threads} threads")
worse = [quotes(f"bad/part{k}.csv", 1000 * k, 1000, bad=900 if k == 3 else 5 if k == 4 else None) for k in range(6)]
for threads in ("1", "2", "16"):
    said = ingest("bad", "--threads", threads, *worse, expect=1).stderr
    t.true("part3.csv: line 901" in said and said.count("\n") == 1, f"the first file's error: {said}")
    t.true(not os.path.exists(os.path.join(WORK, "bad", "00000001")), "nothing is stored")

# ---- a file that is there twice, also by another path -----------------------------------------------------------
os.symlink(files[0], os.path.join(WORK, "link.csv"))
said = ingest("twice", files[0], os.path.join(WORK, "link.csv"), expect=1).stderr
t.true("are one file: its records would be there twice" in said, said)

# ---- files that the store has are left out, whatever their names ------------------------------------------------
days = os.path.join(WORK, "days")
again = ingest("all", days)
t.true("part0.csv and 11 more: the store has them already (in 00000001-00-" in again.stderr, again.stderr)
t.equal(again.stdout, "nothing new: the store has all of the files already\n", "said on stdout")
quotes("days/part12.csv", 1200, 100)
os.rename(os.path.join(WORK, "days", "part11.csv"), os.path.join(WORK, "days", "renamed.csv"))
ingest("all", days, "--quiet")
t.equal(rows("all").count("\n"), 1300, "only the new file was read")
t.equal(ingest("all", days, "--quiet", "--codec", "none").stdout, "", "how it is stored does not matter")
t.true("overlaps" in ingest("all", days, "--again", expect=1).stderr, "--again reads them")
other = ["--series", "FX/B/quotes", "--columns", "ts:time,bid:price,ask:price"]
ingest("all", files[0], "--quiet", columns=other)
with open(files[1], "a", encoding="ascii") as out:
    out.write("1700000199,1.5,2.5\n")
t.true("overlaps" in ingest("all", files[1], expect=1).stderr, "a file that changed is another file")
ingest("all", files[1], "--replace", "--quiet")
t.equal(rows("all").count("\n"), 1301, "replaced by the longer one")
t.true("overlaps" in ingest("all", files[0], expect=1).stderr,
       "a volume that was rewritten does not say any more that it has all of a file")
t.run([t.STOUP, "verify", os.path.join(WORK, "all")])

# ---- a range of time --------------------------------------------------------------------------------------------
cut = ingest("range", files[0], "--from", "2023-11-14T22:13:30Z", "--to", "1700000020000000000")
t.true("90 records outside --from and --to left out" in cut.stdout, cut.stdout)
t.equal(rows("range").splitlines()[0].split(",")[0], "2023-11-14T22:13:30.000000000Z", "first key")
t.equal(rows("range").count("\n"), 10, "ten seconds")
t.true("is not a time" in ingest("range", files[0], "--from", "noon", expect=2).stderr, "a time that is none")
t.true("has no symbols" in ingest("range", files[2], "--symbols", "A*", expect=1).stderr,
       "symbols of data without symbols")

# ---- an archive of several files: its data in order, the rest told -----------------------------------------------
def archive(path, members):
    path = os.path.join(WORK, path)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as out:
        for name, data in members:
            out.writestr(name, data)
    return path


def text_of(first, cnt):
    with open(quotes("member.csv", first, cnt), encoding="ascii") as found:
        return found.read()


several = archive("several.zip", [("days/a.csv", text_of(0, 50)), ("report.txt", "50 rows"),
                                  ("days/b.csv", text_of(50, 7))])
told = ingest("zip", several, "--quiet")
t.equal(told.stderr, f"{several}: 1 file was left out, whose names are of no format that is known: report.txt\n",
        "what is left out of an archive")
t.equal(rows("zip").count("\n"), 57, "both of its tables")
t.equal(ingest("zip", several).stdout, "nothing new: the store has all of the files already\n", "known by members")
twins = archive("twins.zip", [("a.csv", text_of(0, 5)), ("b.csv", text_of(0, 5))])
said = ingest("twins", twins, expect=1).stderr
t.true("twins.zip/b.csv:1: 2023-11-14T22:13:20.000000000Z is before" in said, said)
said = ingest("none", archive("none.zip", [("a.pdf", "x"), ("b.pdf", "y")]), expect=1).stderr
t.true("none.zip is a zip archive of several files (a.pdf, b.pdf)" in said, said)
with open(several, "r+b") as out:
    out.seek(60)
    out.write(b"\xff\xfe\xfd")
said = ingest("broken", several, expect=1).stderr
t.true("several.zip/days/a.csv: zip data damaged" in said, said)

# ---- Ctrl-C in the middle: ended by the signal, and nothing is left ----------------------------------------------
pipe = os.path.join(WORK, "pipe")
os.mkfifo(pipe)
half = subprocess.Popen([t.STOUP, "ingest", "--store", os.path.join(WORK, "half"), *COLUMNS, pipe],
                        stderr=subprocess.PIPE, text=True, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
try:
    with open(pipe, "w", encoding="ascii") as out:
        for i in range(100_000_000):  # until nobody reads any more, well before the end
            if i == 200000:
                half.send_signal(signal.SIGINT)
            out.write(f"{1700000000 + i},1.5,2.5\n")
except BrokenPipeError:
    pass
t.equal(half.wait(60), -signal.SIGINT, "the shell sees the signal")
t.equal(half.stderr.read(), "stoup ingest: ended by Ctrl-C: the store is as it was\n", "and the user why")
t.true(not os.path.exists(os.path.join(WORK, "half")), "no store is left")

# ---- looking only -----------------------------------------------------------------------------------------------
seen = ingest("dry", "--dry-run", files[0])
t.true(not os.path.exists(os.path.join(WORK, "dry")), "no store is made")
t.true("ts=2023-11-14T22:13:20.000000000Z  bid=1  ask=2.5" in seen.stdout, seen.stdout)
t.true(seen.stdout.endswith("dry run: nothing was stored\n"), seen.stdout)
before = sorted(os.listdir(os.path.join(WORK, "all")))
t.true("overlaps" in ingest("all", "--dry-run", "--again", files[2], expect=1).stderr, "an overlap is told")
ingest("all", "--dry-run", quotes("new.csv", 5000, 10))
t.equal(sorted(os.listdir(os.path.join(WORK, "all"))), before, "the store is as it was")

print("ok", flush=True)
