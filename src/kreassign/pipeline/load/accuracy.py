"""Error intervals of a partition's mean write rate and of its 95th percentile.

They hold for the time T from the first to the last sample, but at least a day: after two hours of samples the
question is still about days. With m the measured mean and q the measured quantiles, the intervals are

    mean    m (1 - u (1 - quiet)) / (1 + e)    to    m (1 + u (busy - 1)) (1 + e)
    p95     q(low) / (1 + e') / exp(2 j)       to    q(high) (1 + e') exp(2 j)

*Unmeasured time.* u is the unknown part of T: before the first sample of the day, and at truncations. Hours of the
day that were seen on other days are taken to be between the quietest and the busiest hour of the day that were seen,
r m and R m; those never seen, the part w of u, to write nothing or four times the mean:

    quiet = (1 - w) r        busy = (1 - w) R + 4 w        w = (hours of the day never seen / 24) / u, at most 1

A percentile of T is another quantile of the measured time. The time above it is τ = 0.05 of T. With v the part of T
that is not measured, gaps included (only their mean is known), this is τ / (1 - v) of the measured time if all of it
was measured: this gives q(low), and is certain. At least, it is (τ - v) / (1 - v), which is certain, too; and
τ c / (1 - v) if each hour of the day was measured for the part c of its time. The larger of the two gives q(high),
the second one times D, because it infers from other days: D is the rate of the busiest over that of the quietest
day, the mean of all hours of the day. If both are 0, q(high) is the larger of the largest interval and six times the
mean. Each side is widened by one interval, because rates may jump just there. Intervals of different lengths, as
where rounds are lost, hide peaks in longer ones: for the part (coefficient of variation of the lengths)² of their
time, as for gaps, only the mean counts as known.

*Other errors.* e and e' add up

    0.005               the time that a round of questions takes; for e' also 0.01, the bins of the histogram and their
                        shift by the size of the records of each hour (`hours.py`)
    0.5 s / T           a round begins and ends at some time
    o                   o is the part of the samples that was set aside: for each of these, another may have passed;
                        and truncations by up to three rounds look like odd samples
    2 s (1 - f)         f is the part of the records whose size was measured, s how much the mean size differs from
                        hour to hour, as a share, at least 0.1; for e' instead of 1 - f the part of the hours without
                        sizes, over τ: these count as not measured, too
                        where a size contradicted the records written even once, or the log holds less than its growth
                        says (`held_share`) in a topic not known to be compacted, 2 s if that is more: others may have
                        been wrong, too
    d                   for e: where an hour has two samples at most, by how much the mean size of records would be
                        another without that hour, if more than 0.05: one step of the size may be a replica's move
    c                   for the upper ends of a topic known to be compacted: by how much records of the median hour
                        weigh more than the mean; a cleaner that takes less than comes never shrinks the log; more than
                        0.1 is a contradiction, too
    0.2, for e' 2       where the size is only known from the whole log (`log`): it may be another at the peak

*Clock.* A round with a wrong time makes one interval's rate too high and the next one's too low: the mean stays, the
percentile rises with the scatter j of the rates. In k neighbouring intervals, with n records written in s seconds each,

    mean of n/s = (sum of n / sum of s) (1 + j² (1 - 1/k²))    where times are wrong (errors in variables: Fuller 1987,
                                                               Measurement Error Models); else j is 0

The 1/k² is for the first and the last time, whose errors the sum of s has, too. j² is the mean over all groups of
neighbouring hours with four intervals or so, each in relation to its own rate. So rounds may be rarer by night, when
less is written: over all intervals alike, this would look like a wrong clock, and rarer rounds by day would hide one.
Nor is an hour by day a neighbour of the one by night before a gap.
Readings may be of another time, too, while their own times are right: an exporter repeats its last answer, a round
takes its time, a follower answers in turn. What one interval has too much the next has too little, so that j² also is

    2 (minus the mean product of the relative deviations of neighbouring rates from the mean of their hour)

beyond what a random order of these rates makes of it and two standard errors, so that bursts are no wrong clock. Writes
in batches of a short period look like repeated answers, and are as uncertain. The larger of both counts.
The 95th percentile of values that scatter by j is too high by exp(1.645 j), and where it is the least of the bursts too
low by as much; 2 j allows for tails.

The numbers 4, 6, 0.2, 2 and 0.005 are judgement. `python -m bench load-truth` checks the intervals on cohorts of
partitions with known writes (`docs/reference/figures.md`). Pure: arrays only.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kreassign.model.text import HOUR_MS
from kreassign.pipeline.load.hours import DAY_S, HOURS_A_DAY, MICRO, LatestHours
from kreassign.pipeline.load.rates import Floats, Ints, Mask, run_starts

TOLD_ERROR = 0.1
"""Largest relative error of a load that is still `enough` to plan by."""
UNSEEN, UNSEEN_PEAK = 4.0, 6.0
"""Factors over the mean that hours never seen are allowed, for the mean and for the 95th percentile."""
ROUND, ROUND_S = 0.005, 0.5
LOG_SIZE, LOG_SIZE_OF_PEAK = 0.2, 2.0
RESOLUTION = 0.01
_TAIL = 0.05
_MOST_UNEQUAL, _MOST_SCATTER = 0.9, 2.0
_FEW, _MUCH = 2, 0.05
"""Samples an hour that no others of the hour confirm; change of the mean size by one hour that is an error."""
_NEAR = 4
"""Intervals among which lengths and rates are unrelated; with less of them, less of a wrong clock shows."""
_DECIMALS = 6


@dataclass(frozen=True, slots=True, eq=False)
class ErrorFigures:
    """Figures for the errors of each partition's rates, from its hours; names follow the formulas above.

    `is_by_log`: the size of records is only known from the whole log, and something is written. `is_doubted`: some
    size contradicted the records, so that none counts as measured.
    """

    is_by_log: Mask
    is_doubted: Mask
    meant_s: Floats
    unknown: Floats
    not_good: Floats
    unseen: Floats
    least_good: Floats
    quietest: Floats
    busiest: Floats
    day_ratio: Floats
    odd: Floats
    sized: Floats
    unsized_time: Floats
    size_spread: Floats
    of_one: Floats
    cleaned: Floats
    scatter: Floats
    unequal: Floats
    rate_count: Floats

    def mean_factors(self) -> tuple[Floats, Floats]:
        """Factors of the mean for the lower and upper end of its interval."""
        never = np.fmin(_ratio(self.unseen, self.unknown), 1.0)
        quiet = (1 - never) * np.minimum(self.quietest, 1.0)
        busy = (1 - never) * np.maximum(self.busiest, 1.0) + UNSEEN * never
        # Where no size was seen it may be another than in all hours that saw one.
        unsized = 1 - _bounded(self.sized)
        spread = 2 * self.size_spread * np.where(self.is_doubted, 1.0, unsized)
        of_unsized = np.where(self.is_by_log, 0.0, LOG_SIZE * unsized)
        sizes = self._if_by_log(LOG_SIZE) + np.maximum(spread, of_unsized) + self.of_one
        error = 1 + ROUND + self._common() + sizes
        return (1 - self.unknown * (1 - quiet)) / error, (1 + self.unknown * (busy - 1)) * (error + self.cleaned)

    def p95_places(self) -> tuple[Floats, Floats]:
        """Quantiles that, times `p95_factors`, are the ends of the interval of the 95th percentile."""
        known = np.maximum(1 - self._not_seen(), 1e-6)
        one = 1 / self.rate_count
        return _bounded(1 - _TAIL / known - one), _bounded(1 - self._least_tail() / known + one)

    def is_peak_seen(self) -> Mask:
        """True if some time above the 95th percentile must have been measured."""
        seen: Mask = self._least_tail() > 0
        return seen

    def p95_factors(self) -> tuple[Floats, Floats]:
        """Factors for the quantiles at `p95_places`, lower and upper."""
        unsized = np.minimum(self.unsized_time / _TAIL, 1.0)
        sizes = 2 * self.size_spread * unsized + self._if_by_log(LOG_SIZE_OF_PEAK)
        error = 1 + ROUND + RESOLUTION + self._common() + sizes
        is_of_other_days = self.not_good > _TAIL * (1 - self.least_good)
        busiest_day = np.where(is_of_other_days, self.day_ratio, 1.0)
        clock = np.exp(2 * self.scatter)
        return 1 / error / clock, (error + self.cleaned) * busiest_day * clock

    def _least_tail(self) -> Floats:
        least_good = self.least_good * (1 - self.unequal)
        return np.maximum(_TAIL * least_good, _TAIL - self._not_seen())

    def _not_seen(self) -> Floats:
        return 1 - (1 - self.not_good) * (1 - self.unequal)

    def _common(self) -> Floats:
        return ROUND_S / self.meant_s + self.odd

    def _if_by_log(self, error: float) -> Floats:
        return np.where(self.is_by_log, error, 0.0)


def held_share(hours: LatestHours) -> Floats:
    """Part that the log holds of what was measured to be written to its offsets; NaN where it is not judged.

    A size that steps up between two samples of one start counts as growth; if it steps back while retention moves the
    start, no sample shows it. What the log holds does, once its start is among measured offsets. A log that was cleaned
    holds less, too, so a log that shrank at a start that stayed is not judged. Retention hides that, too, if segments
    are so short that the start moves in each hour: `partition_loads.py` looks at the cleanup policy.
    """
    size, start, end = (hours[f"last_{name}"] for name in ("size_bytes", "start_offset", "end_offset"))
    per_record = _ratio(hours["new_bytes"], np.where(hours["new_bytes"] > 0, hours["sized_records"], 0.0))
    usual = _ratio(*(hours.sums(hours[name]) for name in ("new_bytes", "sized_records")))[hours.owner]
    written = np.cumsum(_known(hours["new_records"] * _known(per_record, usual), 0.0))
    first, number = hours.starts[hours.owner], np.arange(len(end))
    below = _last_not_after(hours.owner, end, start)
    above = np.minimum(below + 1, number)
    part = _known(_ratio(start - end[below], end[above] - end[below]), 0.0)
    held = written - written[below] - part * (written[above] - written[below])
    before = np.maximum(number - 1, first)
    went_back = (end < end[before]) | ((size < size[before]) & (start == start[before]))
    share = np.where((below >= first) & (held > 0), _ratio(size, held), np.nan)
    return np.where(hours.sums(np.where(went_back, 1.0, 0.0)) == 0, hours.middle(share), np.nan)


def _last_not_after(owner: Ints, knots: Floats, values: Floats) -> Ints:
    """Index of the last knot of all that is not after each value; one of an earlier owner if all its own are."""
    count = len(knots)
    is_value = np.repeat([False, True], count)
    order = np.lexsort((is_value, np.concatenate([knots, values]), np.tile(owner, 2)))
    places = np.empty(2 * count, np.int64)
    places[order] = np.cumsum(~is_value[order]) - 1
    return np.maximum(places[count:], 0)


def evidence(hours: LatestHours, is_by_log: Mask, is_less: Mask, is_compacted: Mask) -> ErrorFigures:
    """Compute the evidence from the hours. Figures are rounded, so that the order of summation does not show.

    `is_less` is where the log holds less than its growth says; of topics not known to be compacted, `is_compacted` is
    false.
    """
    known_ms, good_ms = (hours.sums(hours.milliseconds(name)) for name in ("seconds", "good_seconds"))
    sums = {name: hours.sums(hours[name]) for name in (
        "new_records", "odd_count", "sample_count", "sized_records", "new_bytes", "squared_seconds")}  # fmt: skip
    is_sized = (hours["sized_records"] > 0) & (hours["new_bytes"] > 0)
    is_unsized = (hours["new_records"] > 0) & ~is_sized
    bytes_squared = hours.sums(np.where(is_sized, _ratio(hours["new_bytes"] ** 2, hours["sized_records"]), 0.0))
    size = _ratio(sums["new_bytes"], sums["sized_records"])
    usual = hours.middle(np.where(is_sized, _ratio(hours["new_bytes"], hours["sized_records"]), np.nan))
    cleaned = np.where(is_compacted, _known(np.fmax(_ratio(usual, size) - 1, 0.0), 0.0), 0.0)
    # A size that was another's once may have been so at other times: then no size is sure.
    is_doubted = (hours.sums(hours["contradicted_count"]) > 0) | is_less | (cleaned > TOLD_ERROR)
    # Records of hours without sizes may be larger: they say no more of the largest rates than hours never measured.
    is_missing = is_unsized & ~(is_by_log | is_doubted)[hours.owner]
    rated_ms = np.where(is_missing, 0.0, hours.milliseconds("good_seconds"))
    by_hour = hours.interval_counts().astype(np.float64)
    intervals = hours.sums(by_hour)
    span_s = (hours.largest(hours["last_ms"]) - hours.least(hours["first_ms"])) / 1000.0
    meant_s = np.fmax(span_s, DAY_S)
    mean = _ratio(sums["new_records"], known_ms)
    size_variance = _ratio(_ratio(bytes_squared, sums["sized_records"]), size * size) - 1
    others = [sums[name][hours.owner] - hours[name] for name in ("new_bytes", "sized_records")]
    moved = _ratio(_ratio(*others), size[hours.owner])
    of_one = np.fmax(moved, _ratio(np.ones_like(moved), moved)) - 1
    of_one = hours.largest(np.where(is_sized & (hours["sample_count"] <= _FEW) & (of_one > _MUCH), of_one, 0.0))
    lengths = _ratio(sums["squared_seconds"] * intervals, (good_ms / 1000.0) ** 2) - 1
    scatter = np.fmax(_squared_scatter(hours, by_hour), _squared_reversals(hours, by_hour))
    figures = {
        "meant_s": meant_s,
        "unknown": _bounded(1 - known_ms / 1000.0 / meant_s),
        "not_good": _bounded(1 - hours.sums(rated_ms) / 1000.0 / meant_s),
        **_daily(hours, mean, meant_s, rated_ms),
        "odd": _ratio(sums["odd_count"], sums["odd_count"] + sums["sample_count"]),
        "sized": _known(_ratio(sums["sized_records"], sums["new_records"]), 1.0),
        "unsized_time": np.where(
            is_doubted,
            1.0,
            _known(_ratio(hours.sums(np.where(is_unsized, hours.milliseconds("seconds"), 0)), known_ms), 0),
        ),
        "size_spread": np.sqrt(np.fmax(size_variance, 0.0)),
        "of_one": _known(of_one, 0.0),
        "cleaned": cleaned,
        "scatter": np.sqrt(np.fmin(np.fmax(scatter, 0.0), _MOST_SCATTER**2)),
        "unequal": np.fmin(np.fmax(lengths, 0.0), _MOST_UNEQUAL),
        "rate_count": np.maximum(intervals, 1.0),
    }
    return ErrorFigures(is_by_log, is_doubted, **{name: np.round(each, _DECIMALS) for name, each in figures.items()})


def _squared_scatter(hours: LatestHours, intervals: Floats) -> Floats:
    """j² of each partition, given the intervals of each hour; NaN without records or neighbouring intervals."""
    so_far = np.cumsum(intervals) - intervals
    spans = np.cumsum(_follow_a_gap(hours)) - 1
    first = np.flatnonzero(run_starts(spans))
    begins = np.flatnonzero(run_starts(spans, (so_far - so_far[first][spans]) // _NEAR))
    if not len(begins):
        return np.zeros(0)
    count, rate_sum, records, good_ms = (
        np.add.reduceat(np.nan_to_num(values), begins)
        for values in (intervals, hours["rate_sum"], hours["good_records"], hours.milliseconds("good_seconds"))
    )
    excess = _ratio(rate_sum / MICRO * good_ms, records * 1000.0) - count
    seen = np.where(np.isnan(excess), 0.0, count - _ratio(np.ones_like(count), count))
    owner = hours.owner[begins]
    return _ratio(*(np.bincount(owner, np.nan_to_num(each), len(hours)).astype(np.float64) for each in (excess, seen)))


def _squared_reversals(hours: LatestHours, intervals: Floats) -> Floats:
    """j² of each partition by neighbouring rates that take each other back; NaN without three in any hour."""
    reversals = hours["reversal_sum"] / MICRO
    # The mean of an hour takes a part of its reversals with it.
    of_hour = _ratio(np.fmax(intervals - 1, 0.0) * np.fmax(intervals - 2, 0.0), intervals)
    seen = hours.sums(np.where(np.isnan(reversals), 0.0, of_hour))
    return _ratio(2 * (hours.sums(reversals) - 2 * np.sqrt(hours.sums(reversals**2))), seen)


def _follow_a_gap(hours: LatestHours) -> Mask:
    """True for the first hour of each partition, and for hours whose good intervals do not reach back to the last."""
    since_ms = np.diff(hours["last_ms"], prepend=np.nan)
    return run_starts(hours.owner) | (since_ms > hours.milliseconds("good_seconds"))


def _daily(hours: LatestHours, mean: Floats, meant_s: Floats, rated_ms: Floats) -> dict[str, Floats]:
    """Figures by hour of the day. The least good hour counts only if all 24 are there."""
    count, slot = len(hours) * HOURS_A_DAY, hours.owner * HOURS_A_DAY + hours.hour_of_day()
    known_ms = hours.milliseconds("seconds")

    def by_hour_of_day(values: Floats) -> Floats:
        return np.bincount(slot, np.nan_to_num(values), count).astype(np.float64).reshape(-1, HOURS_A_DAY)

    rate = _ratio(by_hour_of_day(hours["new_records"]), by_hour_of_day(known_ms))
    # Over less than half an hour, a rate is momentary.
    hour_rate = np.where(known_ms * 2 >= HOUR_MS, _ratio(hours["new_records"], known_ms), np.nan)
    has_rate = ~np.isnan(hour_rate)
    least, most = np.full(count, np.inf), np.full(count, -np.inf)
    np.minimum.at(least, slot[has_rate], hour_rate[has_rate])
    np.maximum.at(most, slot[has_rate], hour_rate[has_rate])
    is_repeated = by_hour_of_day(has_rate.astype(np.float64)) > 1
    of_days = np.where(is_repeated, _ratio(most, least).reshape(-1, HOURS_A_DAY), np.nan)
    is_whole_day = (np.bincount(slot, minlength=count).reshape(-1, HOURS_A_DAY) > 0).all(axis=1)
    of_days = _ratio(np.nansum(of_days, axis=1), np.count_nonzero(~np.isnan(of_days), axis=1))
    least_good_ms = np.where(is_whole_day, by_hour_of_day(rated_ms).min(axis=1), 0.0)
    return {
        "unseen": 1 - np.count_nonzero(~np.isnan(rate), axis=1) / HOURS_A_DAY,
        "quietest": _known(_ratio(np.fmin.reduce(rate, axis=1), mean), 1.0),
        "busiest": _known(_ratio(np.fmax.reduce(rate, axis=1), mean), 1.0),
        # The busiest day over the quietest, averaged over hours of the day seen on two days.
        "day_ratio": _known(of_days, 1.0),
        "least_good": _bounded(HOURS_A_DAY * least_good_ms / 1000.0 / meant_s),
    }


def _ratio(above: Floats, below: Floats) -> Floats:
    """Quotient; NaN for a divisor of 0."""
    with np.errstate(all="ignore"):
        return np.where(below != 0, above / below, np.nan)


def _known(values: Floats, otherwise: Floats | float) -> Floats:
    return np.where(np.isnan(values), otherwise, values)


def _bounded(share: Floats) -> Floats:
    return np.fmin(np.fmax(share, 0.0), 1.0)
