#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A parameter sweep over N processes that share one copy of the data, with the memory that it takes.

    stoup ingest --store ticks --to event64 --codec none trades.csv.gz incremental_book_L2.csv.gz
    sweep.py ticks/ deribit/BTC-PERPETUAL/event64 --workers 1,2,4,8,16

Each worker is a process of its own (spawned, not forked), attaches by itself, and gets all events of the series as
one read-only NumPy array: the volume's own file, mapped. The parameters are dealt out; results do not depend on how many
workers there are. While all of them hold their array each reads its memory from /proc/self/smaps:

    PSS        proportional set size: each page counts by its share, so the sum is what the machine spends
    data       of that, the array's own pages
    anonymous  pages of no file: what the interpreter, NumPy and the strategy have for themselves

Where hftbacktest can be imported it runs the strategy; else a stand-in does, a moving-average crossover over the trades in
plain NumPy, piece by piece, so that its temporary arrays stay small. Both take the array as it is:

    asset = BacktestAsset().data(array)     # by its pointer: no copy

Do not use hftbacktest's `latency_offset` with such an array: it writes into the data, which is read-only here (SIGSEGV).
Say the latency when the events are made (docs/hftbacktest.md).
"""
import argparse
import json
import multiprocessing
import os
import sys
import threading
import time

import numpy as np

import stoup

try:
    import hftbacktest
except ImportError:
    hftbacktest = None

PIECE = 1 << 16  # events that the stand-in looks at at once: 4 MiB of shared memory, some 1 MiB of its own
TRADE, LOCAL = 2, 1 << 30


# ---- strategies --------------------------------------------------------------------------------------------

def trades(events):
    """Prices of the trades, in the order in which they became known, piece by piece."""
    for begin in range(0, len(events), PIECE):
        piece = events[begin:begin + PIECE]
        kind = piece["ev"] & 0xFF
        known = (kind == TRADE) & ((piece["ev"] & LOCAL) != 0)
        yield piece["px"][known]


def stand_in(events, window):
    """Hold one lot long or short by the sign of price - exponential average; the profit in price units."""
    average, position, last, profit, changes = None, 0, 0.0, 0.0, 0
    weight = 2.0 / (window + 1)
    for prices in trades(events):
        for price in prices.tolist():
            if average is None:
                average = last = price
            profit += position * (price - last)
            average += weight * (price - average)
            side = (price > average) - (price < average)
            changes += side != position
            position, last = side, price
    return {"window": window, "profit": round(profit, 9), "changes": changes}


def hftbacktest_run(events, window):
    """The same idea with hftbacktest's exchange: one resting order at the better side of the average."""
    asset = (hftbacktest.BacktestAsset().data(events).linear_asset(1.0)
             .constant_order_latency(10_000_000, 10_000_000).risk_adverse_queue_model().no_partial_fill_exchange()
             .trading_value_fee_model(0.0, 0.0).tick_size(0.5).lot_size(1.0))
    market = hftbacktest.HashMapMarketDepthBacktest([asset])
    average, order_id, weight = None, 0, 2.0 / (window + 1)
    while market.elapse(1_000_000_000) == 0:
        depth = market.depth(0)
        middle = (depth.best_bid + depth.best_ask) / 2
        if not np.isfinite(middle):
            continue
        average = middle if average is None else average + weight * (middle - average)
        position = market.position(0)
        market.clear_inactive_orders(0)
        order_id += 1
        if middle > average and position <= 0:
            market.submit_buy_order(0, order_id, depth.best_bid, 1.0, hftbacktest.GTX, hftbacktest.LIMIT, False)
        elif middle < average and position >= 0:
            market.submit_sell_order(0, order_id, depth.best_ask, 1.0, hftbacktest.GTX, hftbacktest.LIMIT, False)
    state = market.state_values(0)
    result = {"window": window, "profit": round(float(state.balance), 9), "changes": int(state.num_trades)}
    market.close()
    return result


# ---- memory ------------------------------------------------------------------------------------------------

def memory(address):
    """KiB of this process: all of its PSS, that of the mapping at `address`, and what is of no file, so that no other
    program has a share in it."""
    pss = anonymous = data = 0
    inside = False
    with open("/proc/self/smaps", encoding="ascii", errors="replace") as maps:
        for line in maps:
            name, _, rest = line.partition(" ")
            if name[-1] != ":":
                begin, end = (int(part, 16) for part in name.split("-"))
                inside = begin <= address < end
            elif name == "Pss:":
                pss += int(rest.split()[0])
                data += int(rest.split()[0]) if inside else 0
            elif name == "Anonymous:":
                anonymous += int(rest.split()[0])
    return {"pss": pss, "data": data, "anonymous": anonymous}


# ---- workers -----------------------------------------------------------------------------------------------

def attach(target, series):
    """The client, and all events as one array; an error with advice where they are several."""
    client = stoup.open(target)
    arrays = list(client.scan(series, direct=True))
    if len(arrays) > 1:
        raise SystemExit(f"sweep: {series} lies in {len(arrays)} parts; ingest it in one go: --codec none --replace")
    array = arrays[0] if arrays else np.empty(0)
    if array.dtype.itemsize != 64 or array.ctypes.data % 64:
        raise SystemExit(f"sweep: {series} does not hold events of 64 bytes: ingest it with --to event64")
    return client, array


def work(target, series, windows, barrier, results):
    """One process of the sweep. Without a series it only imports what the others do: what an interpreter costs."""
    client, array = attach(target, series) if series else (None, None)
    run = hftbacktest_run if hftbacktest else stand_in
    found = [run(array, window) for window in windows] if series else []
    if series:
        array.view(np.uint8)[::4096].max()  # every page once, also where nothing was to be run
    barrier.wait()
    used = memory(array.ctypes.data if series else 0)
    barrier.wait()  # nobody leaves before all have looked
    results.put({"results": found, "memory": used, "bytes": array.nbytes if series else 0})
    del array, client


def sweep(target, series, windows, count):
    """Run `count` workers; what they found, sorted, and the sums of their memory in KiB."""
    context = multiprocessing.get_context("spawn")
    barrier, results = context.Barrier(count), context.Queue()
    begun = time.monotonic()
    workers = [context.Process(target=work, args=(target, series, windows[i::count], barrier, results))
               for i in range(count)]
    for worker in workers:
        worker.start()
    # A worker that fails breaks the barrier, so that nobody waits for it.
    watch = threading.Thread(target=lambda: [w.join() for w in workers] and any(w.exitcode for w in workers)
                             and results.put(None), daemon=True)
    watch.start()
    said = []
    while len(said) < count:
        said.append(results.get())
        if said[-1] is None:
            raise SystemExit("sweep: a worker failed: see above")
    for worker in workers:
        worker.join()
    total = {key: sum(one["memory"][key] for one in said) for key in ("pss", "data", "anonymous")}
    found = sorted((one for each in said for one in each["results"]), key=lambda one: one["window"])
    return {"workers": count, "seconds": round(time.monotonic() - begun, 2), "bytes": said[0]["bytes"], **total,
            "results": found}


# ---- the command -------------------------------------------------------------------------------------------

def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("target", help="a pool's name, or the path of a store with a slash")
    parser.add_argument("series", help="of event64, ingested with --codec none")
    parser.add_argument("--workers", default="1,2,4,8,16", help="process counts to run (default: %(default)s)")
    parser.add_argument("--parameters", type=int, default=16, help="windows to try (default: %(default)s)")
    parser.add_argument("--json", action="store_true", help="a line of JSON per count")
    options = parser.parse_args()
    windows = [10 * (i + 1) for i in range(options.parameters)]
    with stoup.open(options.target):  # an automatic daemon stays up from run to run
        if not options.json:
            print(f"strategy: {'hftbacktest' if hftbacktest else 'moving average (NumPy stand-in)'}, "
                  f"{options.parameters} parameters; MiB")
            print("workers   PSS sum   data   interpreters   more than interpreters + data   if each had a copy   seconds")
        for count in [int(text) for text in options.workers.split(",")]:
            idle = sweep(options.target, None, [], count)
            busy = sweep(options.target, options.series, windows, count)
            busy["idle_pss"], busy["idle_anonymous"] = idle["pss"], idle["anonymous"]
            if options.json:
                print(json.dumps(busy), flush=True)
                continue
            mib = [value / 1024 for value in (busy["pss"], busy["data"], idle["pss"],
                                              busy["pss"] - busy["data"] - idle["pss"],
                                              idle["pss"] + count * busy["bytes"] / 1024)]
            print(f"{count:7} {mib[0]:9.1f} {mib[1]:6.1f} {mib[2]:14.1f} {mib[3]:31.1f} {mib[4]:20.1f} "
                  f"{busy['seconds']:9.1f}", flush=True)
    if not options.json:
        best = max(busy["results"], key=lambda one: one["profit"], default=None)
        print(f"best: {best}")


if __name__ == "__main__":
    sys.exit(main())
