# SPDX-License-Identifier: Apache-2.0
"""Medians and their intervals, without assumptions about the distribution of times."""
import math

PAIRS = 41  # the least number of pairs behind a ratio that decides


def median(values):
    ordered = sorted(values)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def interval(values, level=0.95):
    """Order statistics that hold the median with at least this probability; min and max where there are too
    few values for that."""
    ordered = sorted(values)
    count = len(ordered)
    below = 0.0
    rank = 0  # the rank-th smallest and largest
    for k in range(count // 2):
        below += math.comb(count, k) / 2 ** count
        if below > (1 - level) / 2:
            break
        rank = k
    return ordered[rank], ordered[count - 1 - rank]


def of(values):
    low, high = interval(values)
    return {"median": median(values), "low": low, "high": high, "count": len(values)}


def ratios(case, numerator, denominator):
    """Ratios of the *rates* of two contenders, pair by pair: how many times as fast the first is."""
    first, second = case["ns"].get(numerator), case["ns"].get(denominator)
    if not first or not second:
        return None
    pairs = [b / a for a, b in zip(first, second) if a and b]
    return of(pairs) if pairs else None


def times(case, contender):
    """ns of one pass."""
    samples = [ns for ns in case["ns"].get(contender, []) if ns]
    return of(samples) if samples else None
