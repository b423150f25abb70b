# SPDX-License-Identifier: Apache-2.0
"""Every `stoup` command that README.md, docs and the manual pages show runs as it stands there, over files of the kinds that it names.

Each document has a directory of its own, in which its commands run from top to bottom. A second way to ingest the same file is an
alternative: it overlaps what is there, and then goes to a store of its own.
"""
import csv
import datetime
import glob
import gzip
import io
import json
import lzma
import os
import re
import shutil
import struct
import subprocess
import sys
import zipfile

sys.path.insert(0, os.path.dirname(__file__))
import lib_dbn as d  # noqa: E402
import lib_itch as i  # noqa: E402
import lib_stoup as t  # noqa: E402

SOURCE = os.environ["STOUP_SOURCE_DIR"]
NS = 1_000_000_000
DOCUMENTS = ("README.md", "docs/presets.md", "docs/itch.md", "docs/schemas.md", "docs/hftbacktest.md", "docs/man")

# ---- files, by their names ---------------------------------------------------------------------------------------------


def table(rows, **form):
    out = io.StringIO()
    csv.writer(out, lineterminator="\n", **form).writerows(rows)
    return out.getvalue().encode()


def packed(name, data):
    if name.endswith(".gz"):
        return gzip.compress(data)
    if name.endswith(".zip"):
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(os.path.basename(name)[:-4] + ".csv", data)
        return out.getvalue()
    return data  # what a file is packed with is known by its bytes


def seconds(name, default):
    """Midnight of the date in a name."""
    found = re.search(r"(20\d\d)-?(\d\d)(?:-?(\d\d))?", name)
    if not found:
        return default
    day = datetime.datetime(*(int(part or 1) for part in found.groups()), tzinfo=datetime.timezone.utc)
    return int(day.timestamp())


def array(fields, rows):
    head = repr({"descr": fields, "fortran_order": False, "shape": (len(rows),)})
    head += " " * (-(len(head) + 11) % 64) + "\n"
    layout = "<" + "".join({"<i8": "q", "<u8": "Q", "<f8": "d"}[kind] for _, kind in fields)
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + b"".join(
        struct.pack(layout, *row) for row in rows)


def dbn(name, start):
    kind = next(kind for kind in ("definition", "trades", "mbo") if kind in name)
    records = [d.record(kind, 3, 17077, start * NS + n, n) for n in range(1, 20)]
    if kind == "mbo":
        records = [t.mbo(17077, start * NS + n * NS, 4800 * NS, 1 + n, order_id=n) for n in range(1, 20)]
    return d.file(3, d.KINDS[kind][0], [("ESH4", [(20200101, 20300101, 17077)])], records, dataset="GLBX.MDP3")


def capture(start, with_key=True):
    lines = []
    for n in range(20):
        message = {"stream": "btcusdt@trade", "data": {"e": "trade", "T": start * 1000 + n, "p": "61800.30", "q": "1.006"}}
        lines.append((f"{start * NS + n} " if with_key else "") + json.dumps(message, separators=(",", ":")) + "\n")
    return "".join(lines).encode()


def itch(_):
    ns = 34_200 * NS
    messages = [i.directory(1, ns, "AAPL")]
    messages += [i.add(1, ns + n, n, "B", 100, "AAPL", 1_500_000 + n * 100) for n in range(1, 20)]
    messages.append(i.executed(1, ns + 30, 1, 50, 7))
    return i.framed(messages)


def tardis(name, start):
    us = start * 1_000_000
    if "trades" in name:
        head, cells = ["id", "side", "price", "amount"], lambda n: [n, "buy", "60000.5", 10]
    else:
        head, cells = ["is_snapshot", "side", "price", "amount"], lambda n: ["false", "bid", 60000 - n, 10]
    return table([["exchange", "symbol", "timestamp", "local_timestamp", *head]] +
                 [["deribit", "BTC-PERPETUAL", us + n, us + n + 500, *cells(n)] for n in range(20)])


def binance(name, start):
    ms = start * 1000
    if "1m" in name:
        return table([ms + n * 60_000, "9.1", "9.3", "9.0", "9.2", "5.5", ms + n * 60_000 + 59_999, "50.1", 7, "2.5", "20.1", 0]
                     for n in range(20))
    if "bookTicker" in name:
        return table([["update_id", "best_bid_price", "best_bid_qty", "best_ask_price", "best_ask_qty", "transaction_time",
                       "event_time"]] + [[n, "9.1", "1.5", "9.2", "2.5", ms + n, ms + n] for n in range(1, 20)])
    return table([1000 + n, "9.2", "1.5", "13.8", ms + n, "True", "True"] for n in range(20))


def bars(names, form):
    return table([names] + [[form.format(n), "1.5", "1.75", "1.25", "1.5", 10 + n] for n in range(10, 40)])


EVENT64 = [("ev", "<u8"), ("exch_ts", "<i8"), ("local_ts", "<i8"), ("px", "<f8"), ("qty", "<f8"), ("order_id", "<u8"),
           ("ival", "<i8"), ("fval", "<f8")]


def npz(start):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("data.npy", array(EVENT64, [((3 << 30) | (1 << 29) | 2, start * NS + n, start * NS + n + 500, 60000.5, 1.5,
                                                      0, 0, 0.0) for n in range(20)]))
    return out.getvalue()


def feed(command):
    key = t.T0 if ":ns" in command else t.T0 // 1000
    body = b"hello"
    if "--frame-time-first" in command:
        return b"".join(struct.pack("<QI", key + n, len(body)) + body for n in range(20))
    return b"".join(struct.pack(">H", len(body) + 8) + body + struct.pack(">Q", key + n) for n in range(20))


QUOTES = [["time", "bid", "ask"], ["2022-12-31T00:00:00Z", "1.2082", "1.2084"], ["2023-01-02T00:00:00Z", "1.2083", "1.2085"]]
DAY = [f"2024-01-02T00:00:00.{n:09}Z" for n in range(1, 20)]
MBO = ("ts_recv,ts_event,rtype,publisher_id,instrument_id,action,side,price,size,channel_id,order_id,flags,ts_in_delta,sequence,"
       "symbol").split(",")

FILES = (  # the first that fits; the start is used where the name has no date
    (r"\.dbn\.zst$", lambda name, start, _: dbn(name, start)),
    (r"NASDAQ_ITCH50", lambda name, *_: itch(name)),
    (r"\.bi5$", lambda *_: lzma.compress(b"".join(struct.pack(">IIIff", n * 1000, 111409, 111405, 1.5, 2.5) for n in range(20)),
                                         format=lzma.FORMAT_ALONE)),
    (r"feed\.bin$", lambda _, __, command: feed(command)),
    (r"capture\.jsonl", lambda _, start, __: capture(start)),
    (r"messages\.jsonl", lambda _, start, __: capture(start + 1000, False)),
    (r"btc.*\.npz$", lambda _, start, __: npz(start)),
    (r"quotes\.npy$", lambda *_: array([("ts", "<i8"), ("bid", "<f8")], [(t.T0 + n, 1.5) for n in range(20)])),
    (r"bars\.npy$", lambda *_: array([("ts", "<i8"), *((name, "<i8") for name in ("open", "high", "low", "close")), ("volume", "<u8")],
                                     [(t.T0 + n * 60 * NS, 5, 7, 3, 5, 10) for n in range(20)])),
    (r"deribit_|trades\.csv|incremental", lambda name, start, _: tardis(name, start)),
    (r"(BTC|ETH)USDT-", lambda name, start, _: binance(name, start)),
    (r"message_10\.csv$", lambda *_: table([f"34200.{n:09}", 1, 100 + n, 50, 5853300, 1] for n in range(1, 20))),
    (r"glbx.*\.mbo\.csv", lambda *_: table([MBO] + [[at, at, 160, 1, 17077, "A", "B", "4800.250000000", 1, 0, 5, 128, 0, 1, "ESH4"]
                                                    for at in DAY])),
    (r"acme\.csv$", lambda *_: table([["Trade Time", "Price", "Volume"]] + [[f"2025-03-03 09:30:{n}.037", "99.99", n] for n in range(10, 30)],
                                      delimiter=";")),
    (r"gbpusd_m1\.csv$", lambda *_: table([["Date", "Time", "Open", "High", "Low", "Close", "Vol"]] +
                                          [["2024.03.04", f"09:{n}", "1.5", "1.75", "1.25", "1.5", n] for n in range(10, 40)])),
    (r"broker_export\.csv$", lambda *_: table([["Date/Time", "Symbol", "Qty", "T. Price", "Proceeds"]] +
                                              [[f"2024-03-04, 14:30:{n}", "ES", f"1,3{n}", "5,134.00", "-11,489,332.50"] for n in range(10, 40)])),
    (r"acme_all\.csv$", lambda *_: table([["Trade Time", "Instrument", "Side", "Price", "Volume"]] +
                                           [[f"04.03.2024 09:00:{n}.364", "ACME", "SELL", "50.25", n] for n in range(10, 40)], delimiter=";")),
    (r"(^|/)q(uotes)?\.csv$", lambda *_: table(QUOTES)),
    (r"bars\.csv\.gz$", lambda *_: bars(["Time", "O", "H", "L", "C", "V"], "2024-01-02T00:{}:00Z")),
    (r"fxcm-.*\.csv$", lambda *_: bars(["timestamp", "open", "high", "low", "close", "volume"], "2012-01-02 00:{}:00+00:00")),
    (r"6EH4-", lambda *_: bars(["timestamp_utc", "open", "high", "low", "close", "volume"], "2024-01-02 00:{}:00")),
    (r"truefx-", lambda *_: table([["timestamp", "bid", "ask"]] + [[f"2020-01-01 00:00:{n}.123456", "109.1", "109.2"]
                                                                   for n in range(10, 40)])),
    (r"quote_tick_data", lambda *_: table([f"20200101 170{n:03}065", "1.1", "1.2", 0] for n in range(20))),
)


def make(directory, name, command):
    path = os.path.join(directory, name)
    if os.path.exists(path) and not name.endswith(".bin"):
        return
    os.makedirs(os.path.dirname(path), exist_ok=True)
    builder = next((build for pattern, build in FILES if re.search(pattern, name)), None)
    t.true(builder, f"what is {name}? `{command}` is shown, and this test can not make its file")
    with open(path, "wb") as out:
        out.write(packed(name, builder(name, seconds(name, t.T0 // NS), command)))


# ---- commands ----------------------------------------------------------------------------------------------------------


def shown(document):
    """Commands of shell blocks, of the table of formats, and of a manual page's examples; without comments."""
    if document == "docs/man":  # the examples of all commands, those that put data into the store first
        blocks = []
        order = {"stoup-ingest.1": 0, "stoup-compact.1": 2, "stoup-diff.1": 2, "stoup-rm.1": 3}
        for name in sorted(glob.glob(os.path.join(SOURCE, document, "stoup*.1")),
                           key=lambda name: (order.get(os.path.basename(name), 1), name)):
            with open(name, encoding="utf-8") as text:
                found = re.findall(r"^\.SH EXAMPLES\n\.nf\n(.*?)^\.fi$", text.read(), re.M | re.S)
            blocks += [block.replace("\\-", "-").replace("\\(aq", "'").replace("\\e\n", "\\\n") for block in found]
    else:
        with open(os.path.join(SOURCE, document), encoding="utf-8") as text:
            text = text.read()
        blocks = re.findall(r"^```sh\n(.*?)^```$", text, re.M | re.S)
        blocks += ["stoup ingest --store ticks " + line if line.startswith("--") else line
                   for line in re.findall(r"\| (?:yes: )?`((?:stoup ingest|--series|--format) [^`.]*[^`]*)` \|", text)]
    for block in blocks:
        for line in block.replace("\\\n", " ").splitlines():
            line = re.sub(r"\s+#\s.*$", "", line).strip()
            # What goes on in the background is the exporter: exporter_http.py runs it.
            if re.match(r"(sed .*\| )?stoup ", line) and not line.endswith(("...", "&")):
                yield re.sub(r"\s+", " ", line)


def files_of(command):
    words = [re.sub(r"^['\"]|['\"]$", "", word) for word in command.split()]
    return [word for word in words[1:] if re.search(r"\.(zst|zip|gz|csv|npz|npy|bin|bi5|jsonl|NASDAQ_ITCH50)$", word)
            and not re.search(r"[*,>]", word)] if "stoup ingest " in command else []


def downloads(directory):
    for name in ("esh4-20231224.mbo.dbn.zst", "esh4-20231224.definition.dbn.zst", "esh4-20231224.trades.dbn.zst",
                 "ETHUSDT-trades-2025-01.zip"):
        make(directory, os.path.join("downloads", name), "downloads")


def run(command, directory, env):
    return subprocess.run(["bash", "-c", command], cwd=directory, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                          text=True, errors="replace")


total = 0
for document in DOCUMENTS:
    directory, daemon = t.temp_dir(), None
    env = dict(os.environ, PATH=os.path.dirname(t.STOUP) + ":" + os.environ["PATH"])
    downloads(directory)
    commands = list(dict.fromkeys(shown(document)))
    if document == "README.md":  # what stands in the table comes before what reads it
        commands.sort(key=lambda line: not line.startswith("stoup ingest") or "replace" in line or "20231226" in line)
        t.true(len(commands) > 15, f"the commands of README.md: {commands}")
    else:
        t.true(len(commands) > 2, f"the commands of {document}: {commands}")
    if document == "docs/man":
        make(directory, os.path.join("downloads", "capture.jsonl.gz"), "downloads")
    for at, command in enumerate(commands):
        ready = command.replace("--store DIR", "--store ticks")
        for name in files_of(ready):
            make(directory, name, command)
        if "/backup/ticks" in ready:
            shutil.copytree(os.path.join(directory, "ticks"), os.path.join(directory, "backup", "ticks"))
            ready = ready.replace("/backup/ticks", "backup/ticks")
        if ready.split()[1] in ("stat", "top", "holders", "log", "warm", "pin", "unpin"):
            daemon = daemon or t.Daemon(os.path.join(directory, "ticks"))
            ready = ready.replace("prices", daemon.pool)
        done = run(ready, directory, env)
        if done.returncode == 1 and "overlaps" in done.stderr and "--store ticks" in ready:
            done = run(ready.replace("--store ticks", f"--store other-{at}"), directory, env)
        t.true(done.returncode == 0, f"{document}: `{command}` gave {done.returncode}: {done.stderr}")
        total += 1
    if daemon:
        daemon.stop()
t.true(total > 50, f"commands: {total}")
print(f"ok, {total} commands", flush=True)
