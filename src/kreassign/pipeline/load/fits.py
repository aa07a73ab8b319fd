"""Fit the days of some weeks of a rate or size: its level, growth and scatter.

Let y[a] be the mean rate of day a, counted back from the last measured hour: y[0] are the last 24 hours. So any seven
days hold the same hours and weekdays, wherever the week begins.

    usual     ln of the median of the same weekday in the three weeks before, of at least two
    level     mean of the last seven days; an unmeasured day is replaced by the usual one at the level of the others, or
              by the same weekday of the week before, as much higher or lower as the others are, but no odd one; as it
              was where only one other was measured, and where there are two as much higher or lower as both. Where
              the last two to six days are all above, or all below, what was usual by far more than the days before
              them, there is a *new level*: the older days are lifted to it. A day of those before that is odd in the
              same way is replaced by the usual one. So a rate that has been 0 for two days is at 0, unless that is
              usual; its range reaches to the level before, and no growth is continued. No level is above the largest
              day; where a week of the past wrote nothing, or a decline speeds up, the range reaches to 0
    jump      the last measured day alone is odd, if need be beside the same weekday of the week before, and apart from
              the rest of its own week (weeks before may be the odd ones): one day proves no new level, and is not
              ignored. It is replaced, and the range reaches to a week at its level
    change    ln(y[a] / y[a + 7]), each day against the same weekday a week earlier, so that no rhythm of the week can
              look like growth
    growth    median change / 7, per day: the seasonal slope of Hirsch, Slack & Smith 1982 (Water Resources Research
              18), with neighbouring weeks as its pairs. A few odd days do not move it.
    spread    root of the mean square of (change - median change), each at most three times their usual size (1.48
              times the median one, or 0.02 if that is more): what a week does besides growing. One launch or holiday
              does not decide it

Growth makes a *trend* with 14 whole days or more, beyond its own 95% interval, if four fifths of the days have at
least a quarter of the median change, for after a step the older days show nothing, and if the last two days have half
of it: else it has *slowed*. Otherwise the forecast is *flat*, also
with fewer days, in which a weekend or a first week cannot be distinguished from decline or growth.

With too few days to measure the spread, a usual value is used: see `A_WEEK`, `LESS_THAN_A_WEEK` and
`LESS_THAN_A_DAY`.

Sizes: growth per day is the median difference to the same weekday of the week before / 7.

An array of days has a row per partition and a column per day, the last day first; NaN where a day is unknown. Pure.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from kreassign.pipeline.load.rates import Floats, Ints, Mask

DAYS_A_WEEK = 7
DAYS_OF_TREND = 14
CHANGES = 3 * DAYS_A_WEEK
"""Days that are compared with the same weekday of the week before, to see what partitions do together."""
T_975 = 2.447
"""Student's t for seven changes: neighbouring weeks share days, so more of them hardly count as more."""
A_WEEK = 0.2
"""Spread of a rate with one known week, whose changes from week to week are unknown."""
LESS_THAN_A_WEEK = 0.35
"""Spread where the mean of a week is unknown: weekends at a third of the other days are a mean of 0.8 of theirs."""
LESS_THAN_A_DAY = 0.6
"""Spread where the mean of a day is unknown, or the rate stops altogether on many days."""
LEAST_SPREAD = 0.02
_SHARE_OF_MEDIAN, _STRAGGLERS = 0.25, 0.2
_LATEST, _SHARE_OF_LATEST = 2, 0.5
_USUAL_FROM_MEDIAN = 1.4826
"""Standard deviation over the median distance from the median, of normal numbers."""
_FAR = 3.0
"""So many usual distances are far."""
_FASTER = 1.25
"""A decline of the last week that is so many times that of the weeks before may go on to 0."""
_STEP = math.log(1.25)
"""Least difference of a day, or of the days since a step, that is no noise."""
_ODD_DAY = 4.0
"""A weekday of the week before stands for one that was not measured within this factor of the measured days."""
_LEAST_BESIDE = 3
"""Days of a week that must be compared with usual ones before one of them is odd."""
_NOTHING = 1e-6
"""Share of the median rate as which 0 counts where a rate is compared with the usual one."""
_WEEKS_BACK = 4
"""Weeks to look back for a measured weekday; without any, the weekday is left out of the level."""


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """Per partition: whole days, level, growth per day and half of its 95% interval, whether it is a trend, spread.

    Growth and its error are NaN without enough days for a trend; the level is NaN without any day. `plain_level` is the
    level if there was no step, if odd last days go on, or if the rate may end. `has_slowed`: growth that would be a
    trend if the last days showed it, too. `has_jumped`: the last measured day alone is at another level.
    """

    days: Ints
    level: Floats
    plain_level: Floats
    growth: Floats
    error: Floats
    has_trend: Mask
    has_slowed: Mask
    has_jumped: Mask
    spread: Floats


@dataclass(frozen=True, slots=True, eq=False)
class SizeFit:
    """Per partition: growth per day, half of its 95% interval, and spread, in bytes; NaN without enough days."""

    growth: Floats
    error: Floats
    spread: Floats


def fit(rates: Floats) -> Fit:
    """Fit rates by partition and day."""
    logs = _logs(rates)
    week_to_week = _week_to_week(logs)
    changes = _Changes.of(week_to_week, LEAST_SPREAD)
    days = np.count_nonzero(~np.isnan(rates), axis=1)
    is_enough = (days >= DAYS_OF_TREND) & (changes.count >= DAYS_A_WEEK)
    growth, error = changes.growth(is_enough), changes.error(is_enough)
    paused = _paused(rates)
    week, settled, plain, has_jumped = _settled(rates, _last_week(rates))
    has_stopped = (paused >= DAYS_A_WEEK) | ((paused >= _LATEST) & (_mean_of_known(settled) == 0))
    is_growth = (np.abs(growth) > error) & changes.are_steady() & ~has_stopped
    has_slowed = is_growth & (
        _mean_of_known(week_to_week[:, :_LATEST]) * np.sign(growth) < _SHARE_OF_LATEST * np.abs(changes.median)
    )
    # A trend needs the days as they were, but for a last one that alone would raise or lower it.
    is_as_it_was = (is_growth & ~has_jumped)[:, None]
    most = np.fmax.reduce(rates, axis=1, initial=np.nan)
    level = np.where(has_stopped, 0.0, np.minimum(_mean_of_known(np.where(is_as_it_was, week, settled)), most))
    plain_level = np.fmax(
        np.minimum(_mean_of_known(np.where(is_as_it_was, week, plain)), most),
        np.where(has_stopped, _level_before(rates, paused), np.nan),
    )
    latest, older = (_mean_of_known(each) for each in np.hsplit(week_to_week, [DAYS_A_WEEK]))
    # A rate that falls in a straight line falls faster and faster as a share of what is left.
    may_end = _has_idle_week(rates) | (is_growth & (latest < _FASTER * older) & (older < 0))
    return Fit(
        days=days,
        level=level,
        plain_level=np.where(may_end & (plain_level <= level), 0.0, plain_level),
        growth=growth,
        error=error,
        has_trend=is_growth & ~has_slowed,
        has_slowed=has_slowed,
        has_jumped=has_jumped & ~has_stopped,
        spread=_spread(days, is_enough, changes.misfit, logs),
    )


def week_changes(rates: Floats, found: Fit) -> Floats:
    """Changes besides growing of the latest `CHANGES` days, in spreads; an unknown one is 0, of less than 14 days NaN.

    Odd ones count as in the spread.
    """
    week_to_week = _week_to_week(_logs(rates))
    of = _Changes.of(week_to_week, LEAST_SPREAD)
    away = (week_to_week - of.median[:, None])[:, :CHANGES]
    with np.errstate(all="ignore"):
        most = of.most[:, None]
        changes = np.nan_to_num(np.clip(away, -most, most) / found.spread[:, None])
    whole = np.pad(changes, ((0, 0), (0, CHANGES - changes.shape[1])))
    return np.where(np.isnan(found.growth)[:, None], np.nan, whole)


def _paused(rates: Floats) -> Ints:
    """Number of last days on which nothing was written; all days where nothing ever was."""
    return np.asarray(np.logical_and.accumulate(rates == 0, axis=1).sum(axis=1))


def _has_idle_week(rates: Floats) -> Mask:
    """True where no measured day of seven in a row wrote anything, and most were measured."""

    def of_seven(days: Mask) -> Ints:
        before = np.cumsum(np.pad(days, ((0, 0), (1, 0))), axis=1)
        return np.asarray(before[:, DAYS_A_WEEK:] - before[:, :-DAYS_A_WEEK])

    found: Mask = ((of_seven(rates > 0) == 0) & (2 * of_seven(rates == 0) > DAYS_A_WEEK)).any(axis=1)
    return found


def _level_before(rates: Floats, paused: Ints) -> Floats:
    """Mean of the seven days before a pause; NaN without any."""
    places = paused[:, None] + np.arange(DAYS_A_WEEK)
    padded = np.pad(rates, ((0, 0), (0, DAYS_A_WEEK)), constant_values=np.nan)
    return _mean_of_known(np.take_along_axis(padded, places, axis=1))


def _settled(rates: Floats, week: Floats) -> tuple[Floats, Floats, Floats, Mask]:
    """The last seven days; and odd ones replaced by usual ones, and those before a step lifted to the level after it.

    And the same as it is if there was no step, and the last days, if they are odd, will go on. And where the last day
    alone is odd.
    """
    nothing = _NOTHING * _ranked_median(np.where(rates > 0, rates, np.nan))[:, None]
    logs = _logs(np.maximum(rates, nothing))
    usual, of_week, week_before = _usual(logs), _of_days(logs, 0), _of_days(logs, 1)
    is_before = np.logical_and.accumulate(np.isnan(of_week)[:, ::-1], axis=1)[:, ::-1]
    # The latest measured day comes first, however many days were not measured since.
    places = (np.argmax(~np.isnan(of_week), axis=1)[:, None] + np.arange(DAYS_A_WEEK)) % DAYS_A_WEEK
    week, usual, of_week, week_before, is_before = (
        np.take_along_axis(each, places, axis=1) for each in (week, usual, of_week, week_before, is_before)
    )
    measured = of_week - usual
    # A day of this week that was not measured is at the level of the others, not at that of the week before.
    is_unknown, unscaled = np.isnan(of_week), week
    older = week * np.exp(np.nan_to_num(_agreed(of_week - week_before)))
    level = np.exp(_ranked_median(of_week))[:, None]
    has_some = np.count_nonzero(~is_unknown, axis=1)[:, None] >= _LEAST_BESIDE
    older = np.where(has_some, np.clip(older, level / _ODD_DAY, level * _ODD_DAY), older)
    as_others = np.exp(usual + _agreed(measured))
    week = np.where(is_unknown, np.where(np.isnan(as_others), older, as_others), week)
    of_week = _logs(np.maximum(week, nothing))
    apart = of_week - usual
    away, as_usual, is_odd = _odd(of_week, usual, is_unknown, nothing)
    # The weeks before may be the odd ones: a last day that has jumped is apart from all others of its own week as well.
    most, least = np.fmax.reduce(of_week[:, 1:], axis=1), np.fmin.reduce(of_week[:, 1:], axis=1)
    is_alone = np.isnan(usual[:, 0]) | (np.count_nonzero(~np.isnan(apart), axis=1) < _LEAST_BESIDE)
    is_apart = (of_week[:, 0] > most + _STEP) | (of_week[:, 0] < least - _STEP)
    is_alone &= is_apart  # One week judges no day but the last, and only if more cannot.
    for each, by_one in zip((away, as_usual, is_odd), _odd(of_week, week_before, is_unknown, nothing), strict=True):
        each[:, 0] = np.where(is_alone, by_one[:, 0], each[:, 0])
    has_jumped = is_odd[:, 0] & ~(is_odd[:, 1] & (away[:, 0] * away[:, 1] > 0)) & is_apart
    settled = np.where(is_odd, as_usual, week)
    plain = np.where(is_odd & ~np.logical_and.accumulate(is_odd, axis=1), as_usual, week)
    plain[:, 1:] = np.where(has_jumped[:, None], settled * np.exp(away[:, :1]), plain)[:, 1:]
    # Where all measured days are at a new level, it may have begun with them: days before may be at the level before.
    is_new = ~has_jumped & ((np.fmin.reduce(measured, axis=1) > _STEP) | (np.fmax.reduce(measured, axis=1) < -_STEP))
    plain = np.where(is_new[:, None] & is_before, unscaled, plain)
    for days in range(_LATEST, DAYS_A_WEEK):
        latest, before = measured[:, :days], measured[:, days:]
        (low, high), (low_before, high_before) = (
            [by.reduce(each, axis=1) for by in (np.fmin, np.fmax)] for each in (latest, before)
        )
        is_beyond = np.fmax(low - high_before, low_before - high) > _STEP
        is_step = (is_beyond & (np.count_nonzero(~np.isnan(latest), axis=1) >= _LATEST))[:, None]
        level = _ranked_median(latest)[:, None]
        raised = apart + level - _ranked_median(before)[:, None]
        # A day that is near the new level already is lifted no further.
        raised = np.clip(raised, (low - _STEP)[:, None], (high + _STEP)[:, None])
        raised[:, :days] = apart[:, :days]
        raised = np.where(is_unknown, level, raised)
        lifted = np.where(np.isnan(usual), week, np.exp(usual + raised))
        settled, plain = np.where(is_step, lifted, settled), np.where(is_step, unscaled, plain)
        has_jumped &= ~is_step[:, 0]
    # What was usual may have differed a little from the median.
    settled, plain = (np.where(each < 10 * nothing, 0.0, each) for each in (settled, plain))
    return week, settled, plain, has_jumped


def _agreed(apart: Floats) -> Floats:
    """Median of each row, as a column; of two days what both reach, so that no odd day decides it; NaN of one."""
    count = np.count_nonzero(~np.isnan(apart), axis=1)
    by_both = np.clip(0.0, np.fmin.reduce(apart, axis=1), np.fmax.reduce(apart, axis=1))
    agreed = np.where(count >= _LEAST_BESIDE, _ranked_median(apart), by_both)
    return np.where(count > 1, agreed, np.nan)[:, None]


def _odd(of_week: Floats, usual: Floats, is_unknown: Mask, nothing: Floats) -> tuple[Floats, Floats, Mask]:
    """Distance of each day from what was usual at the level of this week, the usual rate, and whether it is odd."""
    apart = of_week - usual
    level = _ranked_median(apart)[:, None]
    away, as_usual = apart - level, np.exp(usual + level)
    # Days that were not measured show no scatter; two that were cannot tell it from one odd day.
    has_scatter = np.count_nonzero(~is_unknown, axis=1)[:, None] >= _LEAST_BESIDE
    scatter = _ranked_median(np.where(is_unknown & has_scatter, np.nan, np.abs(away)))
    far = np.fmax(_STEP, _FAR * _USUAL_FROM_MEDIAN * scatter)[:, None]
    # What begins to write may go on: only where something is usual a day is odd.
    return away, as_usual, (np.abs(away) > far) & (as_usual >= 10 * nothing)


def _of_days(logs: Floats, weeks_back: int) -> Floats:
    """Each weekday of the last seven days, or so many weeks earlier; NaN where it is unknown."""
    padded = np.pad(logs, ((0, 0), (0, max(0, 2 * DAYS_A_WEEK - logs.shape[1]))), constant_values=np.nan)
    return padded[:, weeks_back * DAYS_A_WEEK :][:, :DAYS_A_WEEK]


def _usual(logs: Floats) -> Floats:
    """Median of each weekday of the last seven days in the three weeks before; NaN with less than two of them."""
    padded = np.pad(logs, ((0, 0), (0, max(0, _WEEKS_BACK * DAYS_A_WEEK - logs.shape[1]))), constant_values=np.nan)
    weeks = padded[:, DAYS_A_WEEK : _WEEKS_BACK * DAYS_A_WEEK].reshape(len(logs), _WEEKS_BACK - 1, DAYS_A_WEEK)
    ordered = np.sort(weeks, axis=1)
    count = np.count_nonzero(~np.isnan(ordered), axis=1)
    agree = (count == _WEEKS_BACK - 1) | ((count == _WEEKS_BACK - 2) & (ordered[:, 1] - ordered[:, 0] < _STEP))
    return np.where(agree, np.where(count == _WEEKS_BACK - 1, ordered[:, 1], ordered[:, 0]), np.nan)


def _ranked_median(values: Floats) -> Floats:
    """Median of the known values of each row; NaN without any."""
    ordered = np.sort(np.pad(values, ((0, 0), (0, 1)), constant_values=np.nan), axis=1)
    count = np.count_nonzero(~np.isnan(ordered), axis=1)
    return (_at(ordered, (count - 1) // 2) + _at(ordered, count // 2)) / 2


def size_fit(sizes: Floats) -> SizeFit:
    """Fit sizes by partition and day."""
    changes = _Changes.of(_week_to_week(sizes))
    is_enough = changes.count >= DAYS_A_WEEK
    return SizeFit(changes.growth(is_enough), changes.error(is_enough), np.where(is_enough, changes.misfit, np.nan))


@dataclass(frozen=True, slots=True, eq=False)
class _Changes:
    """Sorted changes of each day against the same weekday a week earlier, unknown ones last."""

    ordered: Floats
    count: Ints
    median: Floats
    most: Floats
    misfit: Floats

    @classmethod
    def of(cls, changes: Floats, least_usual: float = 0.0) -> _Changes:
        """`least_usual`: the usual size counts as no less; if it is 0, changes are not bounded."""
        # One more column, so that the array is never empty.
        ordered = np.sort(np.pad(changes, ((0, 0), (0, 1)), constant_values=np.nan), axis=1)
        count = np.count_nonzero(~np.isnan(ordered), axis=1)
        median = _ranked_median(changes)
        away = np.abs(ordered - median[:, None])
        usual = np.fmax(_USUAL_FROM_MEDIAN * _ranked_median(away), least_usual)
        most = np.where(usual > 0, _FAR * usual, np.inf)
        squares = np.nansum(np.minimum(away.T, most) ** 2, axis=0)
        with np.errstate(all="ignore"):
            return cls(ordered, count, median, most, np.sqrt(squares / count))

    def growth(self, chosen: Mask) -> Floats:
        return np.where(chosen, self.median / DAYS_A_WEEK, np.nan)

    def error(self, chosen: Mask) -> Floats:
        return np.where(chosen, T_975 * self.misfit / math.sqrt(DAYS_A_WEEK) / DAYS_A_WEEK, np.nan)

    def are_steady(self) -> Mask:
        """True if all but the least fifth change in the direction of the median, by at least a quarter of it."""
        last = self.count - 1
        skipped = np.floor(np.maximum(last, 0) * _STRAGGLERS).astype(np.int64)
        weakest = np.where(self.median > 0, _at(self.ordered, skipped), -_at(self.ordered, last - skipped))
        found: Mask = weakest >= _SHARE_OF_MEDIAN * np.abs(self.median)
        return found


def _logs(rates: Floats) -> Floats:
    """Logarithm; also NaN for rates of 0."""
    with np.errstate(all="ignore"):
        return np.log(np.where(rates > 0, rates, np.nan))


def _week_to_week(values: Floats) -> Floats:
    return values[:, : max(values.shape[1] - DAYS_A_WEEK, 0)] - values[:, DAYS_A_WEEK:]


def _at(ordered: Floats, places: Ints) -> Floats:
    """Value at one place of each row; NaN for negative places."""
    found = np.take_along_axis(ordered, np.maximum(places, 0)[:, None], axis=1)[:, 0]
    return np.where(places >= 0, found, np.nan)


def _last_week(rates: Floats) -> Floats:
    """The seven weekdays, each from the latest week that measured it."""
    week = np.full((len(rates), DAYS_A_WEEK), np.nan)
    for back in range(_WEEKS_BACK):
        older = rates[:, back * DAYS_A_WEEK : (back + 1) * DAYS_A_WEEK]
        known = week[:, : older.shape[1]]
        week[:, : older.shape[1]] = np.where(np.isnan(known), older, known)
    return week


def _mean_of_known(values: Floats) -> Floats:
    count = np.count_nonzero(~np.isnan(values), axis=1)
    with np.errstate(all="ignore"):
        return np.asarray(np.nansum(values, axis=1) / count, np.float64)


def mean_of_last_week(rates: Floats) -> Floats:
    """Mean of the last seven days; NaN unless all are known."""
    if rates.shape[1] < DAYS_A_WEEK:
        return np.full(len(rates), np.nan)
    return np.asarray(rates[:, :DAYS_A_WEEK].sum(axis=1) / DAYS_A_WEEK, np.float64)


def _spread(days: Ints, is_enough: Mask, misfit: Floats, logs: Floats) -> Floats:
    is_a_week, is_less = (days >= DAYS_A_WEEK) & (days < DAYS_OF_TREND), (days > 0) & (days < DAYS_A_WEEK)
    # NaN if nothing was ever written.
    day_to_day = np.sqrt(_mean_of_known((logs - _mean_of_known(logs)[:, None]) ** 2))
    cases = (
        (is_enough, np.fmax(misfit, LEAST_SPREAD)),
        (is_a_week, np.fmax(day_to_day, A_WEEK)),
        (is_less, np.full(len(days), LESS_THAN_A_WEEK)),
    )
    return np.select([chosen for chosen, _ in cases], [spread for _, spread in cases], LESS_THAN_A_DAY)
