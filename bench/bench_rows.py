# SPDX-License-Identifier: Apache-2.0
"""The rows: questions, published references, targets, and the verdict of each from what was measured.

A check is one target on one number: met, missed, or absent (not measurable here, with the reason). A row is
missed when one of its checks is; it is not measurable here when none of its checks is measurable; else met.
"""
import os

import bench_stats as stats

MET, MISSED, ABSENT = "met", "missed", "not measurable here"
LATER = "comes with a later issue"

QUESTIONS = {
    "B1": "How many records a second does a loop over a resident series take in?",
    "B2": "How fast is a scan of a series that is not in the pool, its file in the page cache?",
    "B3": "What do 1 to 64 processes over the same data cost: memory, CPU, time to the first record?",
    "B4": "What does a lease cost: acquire and release of a resident block? How many as-of lookups a second?",
    "B5": "How long from a request for a block that is not there to its first record, less read and decode?",
    "B6": "How small and how fast are the codecs?",
    "B7": "How fast do DBN, CSV and raw keys become a store?",
    "B8": "What does a text field cost?",
    "B9": "How fast is a field of a nested document found?",
    "B10": "How many messages of variable length a second?",
    "B11": "Does a strategy run as fast over the pool as over the best that one could write oneself?",
    "B12": "How many bytes does a record take on disk?",
    "B13": "Does looking cost anything: a scan while a monitor looks a hundred times a second?",
}
TARGETS = {
    "B1": "pool at least 0.97 of the private array in every case (the interval reaches it)",
    "B2": "at least 0.85 of the decoder alone on one core; default at least 3.5 x private zstd -3; a decode worker at "
          "least 90 % busy",
    "B3": "PSS at most the pool + 1 MiB per worker; each block decoded once (a quarter's pool: at most twice); "
          "first record of a further worker at most 5 ms after exec",
    "B4": "at most 10 ns, and at most 1.3 x that with a second process; as-of in order at least 5 x 2.0 M/s",
    "B5": "p50 at most 30 us with both asleep, at most 3 us with both spinning",
    "B6": "default: at least 1.9 x the ratio of lz4 at 1.3 x its decode speed; small: at least 1.6 x the ratio of "
          "zstd 3 at 1.5 x its decode speed",
    "B7": "DBN at least 2 M records/s; 8-byte keys at least the published 56.98, 52.72, 31.06 M/s",
    "B8": "view at least 10 x allocate and copy at 1120 bytes",
    "B9": "at least 20 x jansson and 2 x the better way of simdjson, per core",
    "B10": "at least the published 1,059,076 messages a second of one stream and 2,540,948 of ten",
    "B11": "pool first, or within 2 % of the best",
    "B12": "smallest, default codec; simulated data within 15 % of real ES under zstd 3",
    "B13": "at least 0.99 of the same scan while nobody looks",
}
# Other machines: shown beside the rows, no verdict but where a target names them.
PUBLISHED = {
    "B1": [("QuestDB, iterating 8-byte timestamps", 125_410_570), ("a time-series store: none", 98_872_850),
           ("a time-series store: second figure", 38_303_900), ("a time-series store: third figure", 34_292_380),
           ("a time-series store: fourth figure", 34_494_650)],
    "B4": [("as-of lookups in order", 2_000_000)],
    "B7": [("8-byte keys, none", 56_980_000), ("8-byte keys, fast", 52_720_000), ("8-byte keys, high", 31_060_000)],
    "B9": [("a parser, messages of 748 bytes in 5 s", 91_761), ("in place, the same in 0.85 s", 539_768)],
    "B10": [("one stream", 1_059_076), ("ten streams", 2_540_948)],
}
WIDE = 0.1  # of the median: on a machine of one's own the intervals of 41 pairs are within some percent
BESIDE_LEAST = 0.5  # B4: a second process that does less than that beside ours was not at work all the time
DATA_VOID = 0.15  # simulated rows count while the simulator's bytes are that near to real ones


def number(value):
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"


def check(what, target, found, ok, spread=None):
    """One measured check; `spread` is what interval was looked at."""
    return {"what": what, "target": target, "found": found, "verdict": MET if ok else MISSED, "spread": spread or ""}


def absent(what, target, why):
    return {"what": what, "target": target, "found": "", "verdict": ABSENT, "spread": "", "why": why}


def against(what, target_text, measured, unit, by_median, by_interval):
    """Met when the interval reaches the target; but a median that does not, in an interval that holds anything,
    decides nothing."""
    found = f"{number(measured['median'])}{unit}"
    spread = f"{number(measured['low'])} to {number(measured['high'])}, {measured['count']} samples"
    result = check(what, target_text, found, by_interval, spread)
    if by_interval and not by_median and measured["high"] - measured["low"] > WIDE * measured["median"]:
        result |= {"verdict": ABSENT, "why": "the interval is too wide to tell: others used the machine"}
    return result


def at_least(what, target, measured, unit=""):
    """The interval of a ratio or rate reaches the target from below."""
    return against(what, f"at least {number(target)}{unit}", measured, unit, measured["median"] >= target,
                   measured["high"] >= target)


def at_most(what, target, measured, unit=""):
    return against(what, f"at most {number(target)}{unit}", measured, unit, measured["median"] <= target,
                   measured["low"] <= target)


def ratio_check(case, numerator, denominator, target):
    what = f"{case['case']}: {numerator} / {denominator}"
    for name in (numerator, denominator):
        if name in case["absent"]:
            return absent(what, f"at least {target}", case["absent"][name])
    return at_least(what, target, stats.ratios(case, numerator, denominator))


def rate_of(case, contender=None):
    """Millions a second of a contender; None: of the case's reference."""
    measured = stats.times(case, contender or case["reference"])
    return {"median": case["records"] * 1e3 / measured["median"], "low": case["records"] * 1e3 / measured["high"],
            "high": case["records"] * 1e3 / measured["low"], "count": measured["count"]}


def case_named(row, name):
    return next((case for case in row["cases"] if case["case"] == name), None)


def absents(row, target=""):
    return [absent(item["case"], target, item["why"]) for item in row["absents"]]


# ---- one function per row -------------------------------------------------------------------------

def b1(row):
    return [ratio_check(case, "stoup pool", "private array", 0.97) for case in row["cases"]]


def b2(row):
    checks = []
    for case in row["cases"]:
        checks += [ratio_check(case, f"stoup cold, {role}", f"decoder alone, {role}", 0.85)
                   for role in ("default", "small")]
        checks.append(ratio_check(case, "stoup cold, default", "private zstd -3", 3.5))
    for item in row["values"]:
        busy = item["values"]["decode busy / scan"]
        checks.append(check(f"{item['case']}: decoding, part of the scan's time", "at least 0.9", f"{busy:.3g}",
                            busy >= 0.9))
    return checks


def b3(row):
    checks = []
    for item in row["values"]:
        v = item["values"]
        if "pool_mib" not in v:
            continue
        total = v["pss_mib"] + v["daemon_pool_pss_mib"]
        limit = v["pool_mib"] + v["workers"]
        if "quarter" in item["case"]:
            checks.append(check(f"{item['case']}: decodes per block", "at most 2", f"{v['decodes_per_block']:.3g}",
                                v["decodes_per_block"] <= 2))
        else:
            checks.append(check(f"{item['case']}: PSS of the workers and of the daemon's pool",
                                f"at most {limit:,.1f} MiB", f"{total:,.1f} MiB", total <= limit))
            checks.append(check(f"{item['case']}: decodes per block", "1", f"{v['decodes_per_block']:.3g}",
                                v["decodes_per_block"] == 1))
    for item in row["latencies"]:
        checks.append(check(f"{item['case']}, p50", "at most 5 ms", f"{item['p50'] / 1e6:.3g} ms",
                            item["p50"] <= 5e6, f"p99 {item['p99'] / 1e6:.3g} ms, {item['count']} samples"))
    return checks


def b4(row):
    checks = []
    for case in row["cases"]:
        if case["case"].startswith("as-of"):
            if case["case"].startswith("as-of in order") and "100th" not in case["case"]:
                checks.append(at_least(f"{case['case']}: lookups/s", 5 * PUBLISHED["B4"][0][1] / 1e6,
                                       rate_of(case), " M"))
            continue
        measured = stats.times(case, "lease, alone")
        per_op = {key: measured[key] / case["records"] for key in ("median", "low", "high")}
        per_op["count"] = measured["count"]
        checks.append(at_most("acquire + release, alone", 10, per_op, " ns"))
        what = "the same with a second process on the block: times as long"
        beside = {item["case"]: item["values"]["its operations / ours"] for item in row["values"]}
        if beside["lease, second process on the block"] < BESIDE_LEAST:
            checks.append(absent(what, "at most 1.3", "the two processes did not run at the same time: too few cores, "
                                                      "or others used them"))
        else:
            slower = stats.ratios(case, "lease, alone", "lease, second process on the block")
            checks.append(at_most(what, 1.3, slower))
    return checks


def b5(row):
    checks = []
    for item in row["latencies"]:
        if not item["case"].endswith("less read and decode"):
            continue
        limit = {"both asleep": 30, "both spinning": 3}.get(item["case"].split(":")[0])
        if limit:
            checks.append(check(f"{item['case']}, p50", f"at most {limit} us", f"{item['p50'] / 1e3:.3g} us",
                                item["p50"] <= limit * 1e3,
                                f"p99 {item['p99'] / 1e3:.3g} us, {item['count']} samples"))
    return checks + absents(row, "at most 3 us")


def b6(row):
    """Each value is one codec on one data set: ratio, decode_gb_s."""
    checks, sets = [], {}
    for item in row["values"]:
        data, _, codec = item["case"].rpartition(": ")
        sets.setdefault(data, {})[codec] = item["values"]
    for data, codecs in sets.items():
        for name, base, size, speed in (("default", "lz4", 1.9, 1.3), ("small", "zstd-3", 1.6, 1.5)):
            if name not in codecs or base not in codecs:
                checks.append(absent(f"{data}: {name} against {base}", f"{size} x the ratio at {speed} x the speed",
                                     f"codec {name} is not built"))
                continue
            for key, target, what in (("ratio", size, "ratio"), ("decode_gb_s", speed, "decode speed")):
                found = codecs[name][key] / codecs[base][key]
                checks.append(check(f"{data}: {name} / {base}, {what}", f"at least {target}", f"{found:.3g}",
                                    found >= target))
    return checks + absents(row)


def b7(row):
    targets = {"DBN": 2e6, "DBN in zstd": 2e6, "keys, none": 56.98e6, "keys, fast": 52.72e6, "keys, high": 31.06e6}
    checks = []
    for case in row["cases"]:
        if case["case"] not in targets:
            continue
        checks.append(at_least(f"{case['case']}: records/s", targets[case["case"]] / 1e6, rate_of(case), " M"))
    return checks


def b8(row):
    return [ratio_check(case, "view", "allocate and copy", 10) for case in row["cases"] if case["case"] == "1120 bytes"]


def b9(row):
    checks, own = [], "stoup, filter over spans"
    for case in row["cases"]:
        if case["case"] != "one process":
            continue
        checks.append(ratio_check(case, own, "jansson", 20))
        checks += [ratio_check(case, own, name, 2) for name in ("simdjson, message by message", "simdjson, iterate_many")]
    return checks


def b10(row):
    targets = {"one stream": 1.059076, "ten streams": 2.540948}
    return [at_least(f"{case['case']}, stoup pool: messages/s", targets[case["case"]], rate_of(case, "stoup pool"), " M")
            for case in row["cases"]]


def b11(row):
    checks = []
    for case in row["cases"]:
        others = [(stats.ratios(case, "stoup pool", name), name) for name in case["ns"]
                  if name not in ("stoup pool", "stoup direct")]
        worst, name = min(((r, n) for r, n in others if r), key=lambda item: item[0]["median"])
        checks.append(at_least(f"{case['case']}: stoup pool / the best other form ({name})", 0.98, worst))
        if "stoup direct" in case["absent"]:
            checks.append(absent(f"{case['case']}: stoup pool / stoup direct", "at least 0.98",
                                 case["absent"]["stoup direct"]))
        else:
            checks.append(ratio_check(case, "stoup pool", "stoup direct", 0.98))
    return checks


def b12(row):
    checks = []
    for item in row["values"]:
        sizes = {name[len("bytes "):]: value for name, value in item["values"].items() if name.startswith("bytes ")}
        own = sizes.get("stoup")
        if own is None:
            continue
        rest = {name: value for name, value in sizes.items() if not name.startswith("stoup")}
        name = min(rest, key=rest.get)
        checks.append(check(f"{item['case']}: bytes per record, default codec", f"below {rest[name]:.4g} ({name})",
                            f"{own:.4g}", own <= rest[name]))
    void = data_void(row)
    if void is None:
        checks.append(absent("simulated orders / real ES, bytes per record under zstd 3", "0.85 to 1.15",
                             "the real ES file is not on this machine ($STOUP_DATA)"))
    else:
        checks.append(check("simulated orders / real ES, bytes per record under zstd 3", "0.85 to 1.15",
                            f"{void:.3g}", abs(void - 1) <= DATA_VOID))
    return checks + absents(row)


def b13(row):
    checks = [ratio_check(case, "stoup stat --watch 0.01", "nobody looks", 0.99) for case in row["cases"]]
    for item in row["values"]:
        looks = item["values"]["looks beside a sample"]
        checks.append(check(f"{item['case']}: looks beside a sample", "at least 1", number(looks), looks >= 1))
    return checks


def data_void(row):
    """Simulated bytes per record over real ones, or None."""
    for item in row["values"]:
        if item["case"] == "simulated against real":
            return item["values"]["simulated_zstd3"] / item["values"]["real_zstd3"]
    return None


CHECKS = {"B1": b1, "B2": b2, "B3": b3, "B4": b4, "B5": b5, "B6": b6, "B7": b7, "B8": b8, "B9": b9, "B10": b10, "B11": b11, "B12": b12, "B13": b13}


# ---- verdicts -------------------------------------------------------------------------------------

def reasons_read(path):
    """{row: reason}: lines `B1: text`; lines that begin with a blank go on; # begins a comment."""
    reasons, row = {}, None
    if not os.path.exists(path):
        return reasons
    with open(path, encoding="utf-8") as source:
        for line in source:
            if not line.strip() or line.startswith("#"):
                continue
            if line[0].isspace():
                if row is None:
                    raise ValueError(f"{path}: the first line of a reason begins with its row")
                reasons[row] = f"{reasons[row]} {line.strip()}".strip()
            else:
                row, colon, text = line.partition(":")
                if not colon or row not in QUESTIONS:
                    raise ValueError(f"{path}: '{line.strip()}' does not begin with a row such as B1:")
                reasons[row] = text.strip()
    return reasons


def verdict_of(name, row, reasons):
    if name not in CHECKS:
        return {"verdict": ABSENT, "why": LATER, "checks": []}
    checks = CHECKS[name](row) if row else []
    found = [item["verdict"] for item in checks]
    result = {"checks": checks, "why": ""}
    if MISSED in found:
        result["verdict"] = MISSED
        result["why"] = reasons.get(name, "")
    elif MET in found:
        result["verdict"] = MET
    else:
        result["verdict"] = ABSENT
        result["why"] = "; ".join(sorted({item["why"] for item in checks})) or "nothing was measured"
    return result


def verdicts(results, reasons):
    return {name: verdict_of(name, results["rows"].get(name), reasons) for name in QUESTIONS}
