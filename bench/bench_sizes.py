# SPDX-License-Identifier: Apache-2.0
"""B12, bytes per record on disk; and the data files of B6.

    real files ($STOUP_DATA) and simulated ones --stoup ingest--> store --> bytes of its volumes / records
                                                                    +--> dump --> npz-like, gzip CSV
"""
import glob
import json
import os
import shutil
import subprocess
import sys
import zlib

GZIP_LEVEL = 6  # of numpy.savez_compressed and of gzip

# (name, file, options of `stoup ingest`); real files below $STOUP_DATA.
REAL = [
    ("ES futures, orders (real)", "dbn/esh4-glbx-mdp3-20231225.mbo.dbn.zst", []),
    ("futures, best level (real)", "dbn/futures-20240701.mbp-1.dbn.zst", []),
    ("GBPUSD bars (real)", "csv/fxcm-gbpusd-m1-bid-2012.csv",
     ["--series", "FX/GBPUSD/bar", "--schema", "bar", "--interval", "1m", "--time", "timestamp"]),
    ("AUDUSD quotes (real)", "csv/quote_tick_data.csv",
     ["--series", "FX/AUDUSD/quote", "--columns", "ts:time,bid:price,ask:price,volume:u32", "--time-format",
      "%Y%m%d %H%M%S%f"]),
]
SIMULATED = [("orders of 1 symbol (simulated)", 500_000, 1), ("orders of 8 symbols (simulated)", 1_000_000, 8)]
ES_RECORDS = 68_792  # of the real file: the simulated ones that it is compared with are as many


def run(bin_dir, work, quick, row):
    tools = Tools(bin_dir, work)
    data = os.environ.get("STOUP_DATA", "")
    for name, path, options in REAL:
        full = os.path.join(data, path)
        if data and os.path.exists(full):
            tools.measure(row, name, full, options)
        elif not quick:
            row["notes"].append(f"{name}: not on this machine.")
    for name, records, symbols in SIMULATED[:1] if quick else SIMULATED:
        tools.measure(row, name, tools.simulate(20_000 if quick else records, symbols), [])
    real = os.path.join(data, REAL[0][1])
    if data and os.path.exists(real):
        row["values"].append({"case": "simulated against real", "values": {
            "real_zstd3": tools.zstd3(real), "simulated_zstd3": tools.zstd3(tools.simulate(ES_RECORDS, 1))}})
    row["notes"].append("stoup is `stoup ingest` without options, all bytes of its volumes; npz-like is deflate of the "
                        "raw records, as numpy.savez_compressed stores a structured array; gzip CSV is `stoup cat` "
                        "through deflate. No tool for Parquet was at hand.")
    return row


class Tools:
    def __init__(self, bin_dir, work):
        self.bin, self.work = bin_dir, work

    def call(self, program, *arguments):
        done = subprocess.run([os.path.join(self.bin, program), *map(str, arguments)], capture_output=True)
        if done.returncode != 0:
            sys.exit(f"{program} {' '.join(map(str, arguments))}: {done.stderr.decode()[-2000:]}")
        return done.stdout

    def simulate(self, records, symbols):
        path = os.path.join(self.work, f"sim-{records}-{symbols}.dbn.zst")
        if not os.path.exists(path):
            self.call("stoup-sim", "--records", records, "--symbols", symbols, "--out", path)
        return path

    def store(self, path, options=()):
        store = os.path.join(self.work, "store")
        shutil.rmtree(store, ignore_errors=True)
        self.call("stoup", "ingest", "--quiet", "--store", store, *options, path)
        return store

    def zstd3(self, path):
        """Bytes per record of the raw records under zstd -3, in blocks as a store has them."""
        sizes = json.loads(self.call("stoup-bench", "--sizes", self.store(path)))
        return sizes["zstd3_bytes"] / sizes["records"]

    def csv_bytes(self, store):
        """All series through `stoup cat` and deflate."""
        total = 0
        for series in json.loads(self.call("stoup", "ls", "--json", store))["series"]:
            text = self.call("stoup", "cat", store + "/", series["name"])
            total += len(zlib.compress(text, GZIP_LEVEL))
        return total

    def measure(self, row, name, path, options):
        store = self.store(path, options)
        sizes = json.loads(self.call("stoup-bench", "--sizes", store))
        records = sizes["records"]
        volumes = sum(os.path.getsize(volume) for volume in glob.glob(os.path.join(store, "*.stoup")))
        values = {"records": records, "bytes raw": sizes["raw_bytes"] / records, "bytes stoup": volumes / records}
        if path.endswith(".dbn.zst"):
            values["bytes .dbn.zst"] = os.path.getsize(path) / records
        values["bytes npz-like"] = len(zlib.compress(self.call("stoup-bench", "--dump", store), GZIP_LEVEL)) / records
        values["bytes gzip CSV"] = self.csv_bytes(store) / records
        values["zstd -3 of the blocks alone"] = sizes["zstd3_bytes"] / records
        row["values"].append({"case": name, "values": values})
        shutil.rmtree(store)


# ---- B6 -------------------------------------------------------------------------------------------

def codec_files(bin_dir, work, quick):
    """[(name, file)] for the codec's own program: a real file where there is one, and a simulated one."""
    real = os.path.join(os.environ.get("STOUP_DATA", "-"), REAL[0][1])
    tools = Tools(bin_dir, work)
    files = [(REAL[0][0], real)] if os.path.exists(real) else []
    return files + [("orders of 1 symbol (simulated)", tools.simulate(20_000 if quick else 150_000, 1))]


def add_codec_rows(row, name, found):
    for schema in found["schemas"]:
        for codec in schema["codecs"]:
            row["values"].append({"case": f"{name}, {schema['schema']}: {codec['codec']}", "values": {
                key: value for key, value in codec.items() if key != "codec"}})
