"""PURE. What a load keeps for the next one: hours that are closed, and the samples after them, as arrays.

An hour of a partition is closed once nothing that may still come can change it. What may still come are samples that
are less than `ALLOWED_LATENESS_MS` older than the latest of their partition. They, and those that are judged by them,
are open: `_RIGHT` samples that count see to it, for a sample is judged by

    the four intervals after it         is it a gap?
    two clean samples after each end    does one that goes back or ahead come back? (second rules of `series_rules.py`)
    three samples after each of them    the same, among all samples (first rules)

So a load adds hours that are closed now to those of before, replaces the open ones, and leaves behind, for the next
load, the samples of open hours and the last ones before them as neighbours: three samples, one that is clean, and five
that count (four intervals). Whatever the parts in which samples come, and in which order within the allowed lateness,
the hours are the same as if all had come at once: every figure is a sum of whole numbers, and histograms are counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from kreassign.pipeline.load.histograms import bins_of, counted
from kreassign.pipeline.load.rates import TWICE, Rates, Samples, Verdict
from kreassign.pipeline.load.series import Floats, Ints, Mask, run_starts

HOUR_MS = 3_600_000
HOURS_A_DAY = 24
DAY_S = 86_400.0
MICRO = 1_000_000
ALLOWED_LATENESS_MS = 2 * HOUR_MS
_RIGHT = 4 + 2 + 3
_LEFT_SAMPLES, _LEFT_COUNTING = 3, 5


@dataclass(frozen=True, slots=True)
class Opened:
    """Of each sample: where the open hours of its partition begin, NaN if nowhere, and whether its hour is one.

    `is_neighbour` are those in closed hours that open ones need.
    """

    open_from_ms: Floats
    is_open: Mask
    is_neighbour: Mask


def opened(samples: Samples, rates: Rates) -> Opened:
    """Which hours stay open."""
    series, taken_ms = samples.series, samples.taken_ms
    latest_ms = series.largest(np.where(rates.counts, taken_ms, np.nan))
    right_ms = series.after_among(rates.counts, taken_ms, _RIGHT)
    can_change = ~samples.is_closed & ~(right_ms < latest_ms - ALLOWED_LATENESS_MS)
    first_ms = series.least(np.where(can_change, taken_ms, np.nan))
    # Also where there is no sample yet, one may come.
    begin_ms = np.floor(np.fmin(first_ms, latest_ms - ALLOWED_LATENESS_MS) / HOUR_MS) * HOUR_MS
    # Never earlier than it was: where the latest sample turned out to be odd, what was closed would count once more.
    open_from_ms: Floats = np.fmax(begin_ms, series.largest(samples.open_from_before))

    def reaches(right_ms: Floats) -> Mask:
        return ~(right_ms < open_from_ms)

    is_open = taken_ms >= open_from_ms
    is_near = (
        reaches(series.after(taken_ms, _LEFT_SAMPLES))
        | (rates.is_clean & reaches(series.after_among(rates.is_clean, taken_ms)))
        | (rates.counts & reaches(series.after_among(rates.counts, taken_ms, _LEFT_COUNTING)))
    )
    return Opened(open_from_ms, is_open, ~is_open & is_near)


@dataclass(frozen=True, slots=True)
class Hours:
    """What the samples of each hour of an epoch of a partition add up to.

    `figures` are by the names of the columns of table `load_hours`, in their units, with NaN for NULL; and how many new
    samples count (`new_count`) or are there twice (`new_twice_count`). `first` is the place of the first sample of the
    hour, `last` that of the last one that counts, or -1. The histogram of hour i is `rate_bins[ends[i]:ends[i + 1]]`,
    and `rate_counts` of the same.
    """

    first: Ints
    last: Ints
    figures: Mapping[str, Floats | Ints]
    ends: Ints
    rate_bins: Ints
    rate_counts: Ints


def hours(samples: Samples, rates: Rates, is_open: Mask, is_new: Mask) -> Hours | None:
    """The hours of the samples that are judged now; None without any. An interval belongs to the hour it ends in."""
    places = np.flatnonzero(~samples.is_closed)
    if not len(places):
        return None
    taken_ms, counts, verdict = samples.taken_ms[places], rates.counts[places], rates.verdict[places]
    hour = taken_ms // HOUR_MS
    begins = run_starts(samples.series.begin[places], rates.epoch[places], hour, is_open[places])
    first = np.flatnonzero(begins)
    seconds, new_records = rates.seconds[places], rates.new_records[places]
    is_good, has_grown = verdict == Verdict.GOOD, ~np.isnan(new_records)
    good_records = np.where(is_good, new_records, np.nan)
    # By sums of whole numbers the order in which rows come makes no difference.
    milliseconds = np.rint(seconds * 1000)
    good_ms = np.where(is_good, milliseconds, np.nan)
    with np.errstate(all="ignore"):
        rate = np.where(is_good & (seconds > 0), new_records / seconds, np.nan)
        size = np.where(counts, samples.size_bytes[places], np.nan)
        mean_size = _sums(size, first) / _sums(~np.isnan(size), first)
    last = np.maximum.reduceat(np.where(counts, np.arange(len(places)), -1), first)
    seen_ms = np.where(counts, taken_ms, np.nan)
    new = is_new[places]
    figures: dict[str, Floats | Ints] = {
        "hour_ms": hour[first] * HOUR_MS,
        "seconds": _sums(np.where(has_grown, milliseconds, np.nan), first) / 1000.0,
        "good_seconds": _sums(good_ms, first) / 1000.0,
        "squared_seconds": np.add.reduceat(np.nan_to_num(good_ms * good_ms), first) / 1_000_000.0,
        "good_records": _sums(good_records, first),
        "rate_sum": _sums(np.rint(rate * MICRO), first),
        "new_records": _sums(new_records, first),
        "most_new_records": np.maximum.reduceat(np.nan_to_num(new_records), first),
        "sized_records": _sums(rates.sized_records[places], first),
        "new_bytes": _sums(rates.new_bytes[places], first),
        "mean_size_bytes": mean_size,
        "sample_count": _sums(counts, first),
        "odd_count": _sums(verdict == Verdict.ODD, first),
        "first_ms": np.fmin.reduceat(seen_ms, first),
        "last_ms": np.fmax.reduceat(seen_ms, first),
        "new_count": _sums(new & counts, first),
        "new_twice_count": _sums(new & (rates.reason[places] == TWICE), first),
    }
    bins = _histograms(rate, np.cumsum(begins) - 1, len(first))
    return Hours(places[first], np.where(last >= 0, places[last], -1), figures, *bins)


def _sums(values: Floats | Mask, first: Ints) -> Ints:
    """The sums of runs that begin at these places, of whole numbers; what is not known is 0."""
    whole = np.nan_to_num(values).astype(np.int64)
    return np.add.reduceat(whole, first)


def _histograms(rate: Floats, run: Ints, run_count: int) -> tuple[Ints, Ints, Ints]:
    """Where the bins of each run begin, and after the last end; the bins, in their order; and their counts."""
    known = ~np.isnan(rate)
    each = bins_of(rate[known])
    owners, bins, counts = counted(run[known], each, np.ones_like(each))
    return np.searchsorted(owners, np.arange(run_count + 1)), bins, counts
