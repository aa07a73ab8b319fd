"""Forecast rates and sizes from some weeks of history, with a range that past forecasts have tested.

`fits.py` defines level, growth, trend and spread. With a trend the forecast is

    forecast(h) = level * exp(growth * (3.5 + f + f² + … + f^h))      h days from the end, f = 0.95

else it stays at the level. This is the damped multiplicative trend of Taylor 2003 (International Journal of
Forecasting 19), damped as in Gardner & McKenzie 1985 (Management Science 31), because no growth goes on for ever; 3.5
days lie between the middle of the last week and its end. It is the mean of a whole week around that day. Peak and
95th percentile are those of the hours of such a week: the forecast times the factors of the hours of the last week,
each of its weekday and hour.

    range(h) = from the least to the largest of {level, forecast, the same damped half as much, plain level}
               divided and multiplied by exp(2.447 * w * spread * sqrt(1 + h / 7)), which is 2^(1 + h / 7) at most

So it covers growth that ends today and growth that goes on, also where it has slowed; and a new level or an odd week
that is none. No range says more than a doubling a week. The spread adds up from week to week as in a random walk,
and 2.447 is Student's t, because it is estimated from few changes.

The *backtest* forecasts the last seven days from the days before them, for every partition with two whole weeks, and
compares. w is the factor, at least 1, with which the ranges would have held for 95 % of the partitions of a cluster:
a conformal interval (Lei et al. 2018, JASA 113) over partitions. It is for those with 14 days: the spread of others is
not their own. It speaks for one week; for more it rests on the root above. Days are held out; forecasts of past loads
are not kept to be compared: forecasts of 30 days would only be tested after a month, with the rules and options of
then.

A size continues its growth undamped, because a log that is filling up fills at its write rate until retention stops
it, which no line can know: the low end of the range is the present size. With fewer than 14 days the size stays, and
the high end assumes that all writes are kept. No size grows by more than that, however its past scatters.

The total of a cluster has its range from joint draws of what its partitions do (`joint_range`), not from the sum of
their ends, which only partitions that all err to the same side would reach.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.pandas.types import from_arrow_schema

from kreassign.pipeline.load import fits
from kreassign.pipeline.load.hours import DAY_S, Columns, codes, floats, mask, rows_of_columns
from kreassign.pipeline.load.rates import Floats, Mask
from kreassign.pipeline.tables.arrow import arrow_schema
from kreassign.pipeline.tables.schemas import BACKTESTS, FORECAST

DAMPING = 0.95
MOST_GROWTH = math.log(2) / fits.DAYS_A_WEEK
"""Most growth per week that is continued: a doubling."""
_MOST_WIDENING = 4.0
"""Upper bound of the widening; beyond it an interval is meaningless."""
_HELD = 0.95
JUMPED = "jumped"
"""Basis of a forecast that goes on from before the last day, which alone is at another level."""
_MIDDLE_OF_WEEK = fits.DAYS_A_WEEK / 2
_KEY = ("cluster_id", "snapshot_id", "topic", "partition")
_OF_RATES = (
    "recent_write_bytes_per_s",
    "plain_write_bytes_per_s",
    "growth_per_day",
    "week_spread",
    "week_p95_ratio",
    "week_peak_ratio",
)
_OF_SIZES = ("size_bytes", "size_growth_bytes_per_day", "size_growth_error_bytes_per_day", "size_spread_bytes")
KNOWN = (*_KEY, *_OF_RATES, *_OF_SIZES, "has_trend", "has_slowed", "has_jumped", "day_count")
TESTED = ("cluster_id", "backtest_error", "backtest_sigmas", "week_changes", *KNOWN[len(_KEY) :])
NEEDED = tuple(dict.fromkeys((*KNOWN, *TESTED)))
"""Columns of table `load_model` that the tables are made of."""


@dataclass(frozen=True, slots=True, eq=False)
class Backtest:
    """Error of each partition's forecast of the last seven days; NaN without a forecast.

    `error` is the difference as a share of the larger rate; `sigmas` the distance outside the range, in spreads.
    """

    error: Floats
    sigmas: Floats


def backtest(rates: Floats) -> Backtest:
    """Forecast the last seven days from the days before them, and compare. Needs all seven, and seven earlier days."""
    past, came = fits.fit(rates[:, fits.DAYS_A_WEEK :]), fits.mean_of_last_week(rates)
    said = Curve.of(past)
    is_known = (past.days >= fits.DAYS_A_WEEK) & ~np.isnan(came)
    error, sigmas = _distance(said.at(_MIDDLE_OF_WEEK), came), _sigmas(said, came, _MIDDLE_OF_WEEK)
    return Backtest(np.where(is_known, error, np.nan), np.where(is_known, sigmas, np.nan))


def backtests(loads: DataFrame, horizon_days: float) -> DataFrame:
    """Table `backtests`, from table `load_model`: one row per cluster."""

    def row_of(tested: pa.Table) -> pa.Table:
        return backtests_of(tested, horizon_days)

    return loads.select(*TESTED).groupBy("cluster_id").applyInArrow(row_of, from_arrow_schema(arrow_schema(BACKTESTS)))


def backtests_of(loads: pa.Table, horizon_days: float) -> pa.Table:
    """Row of table `backtests` of a cluster, from rows of `TESTED`."""
    error, sigmas = (each[~np.isnan(each)] for each in map(floats, (loads["backtest_error"], loads["backtest_sigmas"])))
    is_tested = len(sigmas) > 0
    widening = widening_of(sigmas) if is_tested else 1.0
    figures = {
        "cluster_id": loads["cluster_id"][:1],
        "partition_count": np.array([len(sigmas)]),
        "median_error": np.array([np.median(error) if is_tested else np.nan]),
        "p95_error": np.array([np.quantile(error, _HELD) if is_tested else np.nan]),
        "covered_share": np.array([np.mean(sigmas <= fits.T_975) if is_tested else np.nan]),
        "widening": np.array([widening]),
        "horizon_days": np.array([float(horizon_days)]),
        **{name: np.array([value]) for name, value in _totals(loads, horizon_days, widening).items()},
    }
    return pa.Table.from_batches([rows_of_columns(BACKTESTS, figures)])


def widening_of(sigmas: Floats) -> float:
    """Factor by which the ranges of a cluster are widened, from the distances of its backtests."""
    return float(min(max(np.quantile(sigmas, _HELD) / fits.T_975, 1.0), _MOST_WIDENING))


def forecast(loads: DataFrame, tested: DataFrame, horizon_days: float) -> DataFrame:
    """Table `forecast` of the partitions in table `load_model`; `tested` is table `backtests`."""
    widening = sql.broadcast(tested.select("cluster_id", "widening"))
    known = loads.select(*KNOWN).join(widening, on=["cluster_id"], how="inner")
    made = partial(forecasts, horizon_days=horizon_days)
    return known.mapInArrow(made, from_arrow_schema(arrow_schema(FORECAST)))


def forecasts(batches: Iterable[pa.RecordBatch], horizon_days: float) -> Iterator[pa.RecordBatch]:
    """Rows of table `forecast`, from rows of `KNOWN` with the `widening` of their cluster."""
    for batch in batches:
        yield rows_of_columns(FORECAST, _forecast(pa.Table.from_batches([batch]), horizon_days))


def forecast_tables(loads: pa.Table, horizon_days: float) -> tuple[pa.Table, pa.Table]:
    """Tables `backtests` and `forecast` without Spark, from columns `NEEDED` of table `load_model`."""
    clusters = codes(loads["cluster_id"])
    each = (loads.take(np.flatnonzero(clusters == number)) for number in range(clusters.max(initial=-1) + 1))
    tested = pa.concat_tables([backtests_of(of_cluster, horizon_days) for of_cluster in each])
    widened = loads.append_column("widening", tested["widening"].take(clusters))
    return tested, pa.Table.from_batches([rows_of_columns(FORECAST, _forecast(widened, horizon_days))])


def _forecast(loads: pa.Table, days: float) -> Columns:
    curve, widening = _curve(loads), _own_widening(loads, floats(loads["widening"]))
    then = curve.at(days)
    low, high = curve.between(days, widening)
    sizes = _Sizes.of(loads, days, fits.T_975 * widening, high)
    has_jumped = mask(loads["has_jumped"])
    followed = np.where(has_jumped, JUMPED, np.where(curve.has_trend, "trend", "flat"))
    basis = np.where(np.isnan(curve.level), "unknown", followed)
    return {
        **{name: loads[name] for name in _KEY},
        "horizon_days": np.full(len(loads), float(days)),
        "write_bytes_per_s": then,
        "low_write_bytes_per_s": low,
        "high_write_bytes_per_s": high,
        "p95_write_bytes_per_s": then * floats(loads["week_p95_ratio"]),
        "peak_write_bytes_per_s": then * floats(loads["week_peak_ratio"]),
        "basis": pa.array(basis.tolist(), pa.string()),
        "size_bytes": sizes.then,
        "low_size_bytes": np.maximum(sizes.least - sizes.below, 0.0),
        "high_size_bytes": sizes.largest + sizes.above,
    }


def _curve(loads: pa.Table) -> Curve:
    level, plain, growth, spread = (floats(loads[name]) for name in _OF_RATES[:4])
    has_trend = mask(loads["has_trend"])
    return Curve(level, plain, growth, has_trend, has_trend | mask(loads["has_slowed"]), spread)


def _own_widening(loads: pa.Table, widening: Floats | float) -> Floats:
    """The widening of those with 14 days; 1 for others, whose spread is not their own."""
    return np.where(floats(loads["day_count"]) >= fits.DAYS_OF_TREND, widening, 1.0)


def _totals(loads: pa.Table, days: float, widening: float) -> dict[str, float]:
    """Columns of table `backtests` with the totals of a cluster; NaN where no partition is known."""
    curve, own = _curve(loads), _own_widening(loads, widening)
    is_known = ~np.isnan(curve.level)
    share = _common_shares(loads, curve)
    _, high = curve.between(days, own)
    sizes = _Sizes.of(loads, days, fits.T_975 * own, high)
    is_sized = ~np.isnan(sizes.then)
    rates = curve.where(is_known).total(days, own[is_known], share[is_known])
    totals = {"write_bytes_per_s": (rates, is_known), "size_bytes": (sizes.total(is_sized, share), is_sized)}
    return {
        "known_count": float(is_known.sum()),
        "common_share": float(share[is_known].min(initial=1.0)),
        **{
            f"{end}{name}": value if chosen.any() else np.nan
            for name, (values, chosen) in totals.items()
            for end, value in zip(("", "low_", "high_"), values, strict=True)
        },
    }


def _common_shares(loads: pa.Table, curve: Curve) -> Floats:
    """Share of what each partition does that all do; 1 where changes do not show it."""
    lists = loads["week_changes"].combine_chunks()
    is_measured = np.asarray(lists.is_valid()) & ~np.isnan(curve.level)
    changes = np.zeros((len(loads), fits.CHANGES))
    changes[np.asarray(lists.is_valid())] = np.asarray(lists.flatten(), np.float64).reshape(-1, fits.CHANGES) / 100
    amounts = (curve.level * curve.spread)[is_measured]
    return np.where(is_measured, common_share(amounts, changes[is_measured]), 1.0)


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """Future rates: a level, with a damped trend if there is one. NaN without a level.

    `plain_level` is that of `Fit`; a rate whose growth has slowed may grow.
    """

    level: Floats
    plain_level: Floats
    growth: Floats
    has_trend: Mask
    may_grow: Mask
    spread: Floats

    def where(self, chosen: Mask) -> Curve:
        """Curves of the chosen partitions."""
        return Curve(*(getattr(self, name)[chosen] for name in self.__slots__))

    def total(self, days: float, widening: Floats | float, share: Floats | float) -> tuple[float, float, float]:
        """Sum of the rates `days` from the end, and both ends of its range; all must be known."""
        then, (least, largest), (low, high) = self.at(days).sum(), self.edges(days), self.between(days, widening)
        deviation, most = widening * self.spread * _reach(days), MOST_GROWTH * (fits.DAYS_A_WEEK + days)
        drawn = joint_range(least, largest, deviation, np.broadcast_to(share, deviation.shape), most)
        # Never beyond the sum of the ends, nor short of the forecast.
        return then, min(max(drawn[0], low.sum()), then), max(min(drawn[1], high.sum()), then)

    @classmethod
    def of(cls, found: fits.Fit) -> Curve:
        """Curves of fitted days."""
        return cls(
            found.level,
            found.plain_level,
            found.growth,
            found.has_trend,
            found.has_trend | found.has_slowed,
            found.spread,
        )

    def at(self, days: float) -> Floats:
        """Rates `days` from the end."""
        return np.where(self.has_trend, self._after(_damped(days)), self.level)

    def edges(self, days: float) -> tuple[Floats, Floats]:
        """Least and largest of the rates that are likely: as it is, as it was, with growth as it is and damped less."""
        ways = (self.level, self.plain_level, self._after(_damped(days)), self._after(min(days, 2 * _damped(days))))
        return np.fmin.reduce(ways, axis=0), np.fmax.reduce(ways, axis=0)

    def between(self, days: float, widening: Floats | float) -> tuple[Floats, Floats]:
        """Low and high end of the rates' ranges."""
        least, largest = self.edges(days)
        margin = fits.T_975 * widening * self.spread * _reach(days)
        factor = np.exp(np.minimum(margin, MOST_GROWTH * (fits.DAYS_A_WEEK + days)))
        return least / factor, largest * factor

    def _after(self, days_of_growth: float) -> Floats:
        bounded = np.clip(self.growth, -MOST_GROWTH, MOST_GROWTH)
        grown = self.level * np.exp(bounded * (_MIDDLE_OF_WEEK + days_of_growth))
        return np.where(self.may_grow, grown, self.level)


def _damped(days: float) -> float:
    """Sum of f + f² + … + f^days, also between whole days."""
    return DAMPING * (1 - math.pow(DAMPING, days)) / (1 - DAMPING)


def _reach(days: float) -> float:
    return math.sqrt(1 + days / fits.DAYS_A_WEEK)


def _distance(then: Floats, came: Floats) -> Floats:
    """Difference of two rates as a share of the larger: 0 to 1, also if one is 0."""
    larger = np.maximum(then, came)
    with np.errstate(all="ignore"):
        return np.where(larger > 0, np.abs(then - came) / larger, 0.0)


def _sigmas(said: Curve, came: Floats, days: float) -> Floats:
    """Distance of the actual rates outside the forecast's edges, in spreads; 0 between them."""
    least, largest = said.edges(days)
    with np.errstate(all="ignore"):
        # From or to a rate of 0 the logarithm is infinite.
        beyond = np.where(came > largest, np.log(came / largest), np.log(least / came))
    is_between = (came >= least) & (came <= largest)
    return np.where(is_between, 0.0, np.fmin(beyond / (said.spread * _reach(days)), _MOST_WIDENING * fits.T_975))


@dataclass(frozen=True, slots=True, eq=False)
class _Sizes:
    """Sizes then; the least and the largest that are likely; how far the range goes below and above. NaN if unknown.

    No log grows by more than what is written: that bounds all but what is below. Without rate or growth nothing does.
    """

    then: Floats
    least: Floats
    largest: Floats
    below: Floats
    above: Floats

    @classmethod
    def of(cls, loads: pa.Table, days: float, sigmas: Floats, high_rate: Floats) -> _Sizes:
        now, growth, error, spread = (floats(loads[name]) for name in _OF_SIZES)
        usual = floats(loads["week_spread"])
        usual = np.where(np.isnan(usual), fits.LESS_THAN_A_DAY, usual)
        all_kept = now + high_rate * (days * DAY_S)
        most = np.where(np.isnan(high_rate), np.inf, all_kept)
        then = np.where(np.abs(growth) > error, np.maximum(np.minimum(now + growth * days, most), 0.0), now)
        shrunk = now / np.exp(sigmas * usual * _reach(days))
        is_known = ~np.isnan(spread)
        largest = np.where(is_known, np.maximum(now, then), all_kept)
        margin = np.where(is_known, sigmas * spread * _reach(days), 0.0)
        return cls(
            then,
            np.where(is_known, np.minimum(now, then), shrunk),
            largest,
            margin,
            np.minimum(margin, most - largest),
        )

    def total(self, chosen: Mask, share: Floats) -> tuple[float, float, float]:
        """Sum of the chosen sizes, and both ends of its range; no upper end if one of them has none."""
        below, above = (joint_margin(each[chosen], share[chosen]) for each in (self.below, self.above))
        then, least, largest = (float(each[chosen].sum()) for each in (self.then, self.least, self.largest))
        return then, max(least - below, 0.0), largest + above


# The range of a cluster's total, from what its partitions may do together and each by itself.
#
# Partitions that vary independently cancel out in their total; those of one source do not. So the total is drawn:
#
#     error of partition p = deviation of p * (sqrt(r) * Z + sqrt(1 - r) * E of p)
#
# Z, the same for all, and each E are Student's t with six degrees of freedom, as in the ranges of partitions. r is the
# share of the variance that partitions have in common: it is seen in how they changed from week to week on the same
# days. With v(x) the mean square of x over these days, and c the change of a partition in bytes per second,
#
#     r = (v(sum of c) - sum of v(c)) / ((sum of sqrt(v(c)))^2 - sum of v(c)), from 0 to 1
#
# Where no changes are known, r is 1: they may all err to the same side. Whether growth ends or goes on is not drawn:
# the low end has all partitions at the least of what is likely, the high end at the largest, before errors.
#
# Errors are of mean 1, because a forecast is a mean.

_DRAWS, _SEED = 2000, 32
_GROUPS = 1000
"""Partitions that are drawn by themselves; of more, those with like deviations go together."""
_DEGREES = 6
_LOW, _HIGH = 0.025, 0.975


def common_share(amounts: Floats, changes: Floats) -> float:
    """Share of the variance that partitions have in common; 1 where it cannot be seen.

    `changes` have a row per partition and a column per day; times `amounts` they are in one unit.
    """
    moved = amounts[:, None] * changes
    own = (moved**2).mean(axis=1)
    most, apart = np.sqrt(own).sum() ** 2, own.sum()
    if most <= apart * (1 + 1e-9):
        return 1.0
    together = (moved.sum(axis=0) ** 2).mean()
    return float(np.clip((together - apart) / (most - apart), 0.0, 1.0))


def joint_margin(margins: Floats, share: Floats) -> float:
    """Margin of a sum from margins of its parts, of which each has a `share` of its variance in common."""
    return math.hypot((np.sqrt(share) * margins).sum(), math.sqrt(((1 - share) * margins**2).sum()))


def joint_range(least: Floats, largest: Floats, deviation: Floats, share: Floats, most: float) -> tuple[float, float]:
    """95 % range of the sum of rates that are known from `least` to `largest` up to a factor.

    `deviation` is that of the factor's logarithm, which is at most `most`.
    """
    least, largest, deviation, share = _grouped(least, largest, deviation, share)
    chance = np.random.default_rng(_SEED)
    common = chance.standard_t(_DEGREES, (_DRAWS, 1))
    errors = np.sqrt(share) * common + np.sqrt(1 - share) * chance.standard_t(_DEGREES, (_DRAWS, len(share)))
    factors = np.exp(np.clip(deviation * errors, -most, most))
    factors /= factors.mean(axis=0)
    return float(np.quantile(factors @ least, _LOW)), float(np.quantile(factors @ largest, _HIGH))


def _grouped(least: Floats, largest: Floats, deviation: Floats, share: Floats) -> tuple[Floats, ...]:
    """Sums of amounts, and means of the others, by groups of like share and deviation."""
    order = np.lexsort((deviation, share))
    begins = np.unique(np.arange(_GROUPS) * len(order) // _GROUPS) if len(order) else order
    counts = np.diff(np.append(begins, len(order)))
    sums = (np.add.reduceat(each[order], begins) if len(order) else each for each in (least, largest, deviation, share))
    low, high, deviations, shares = sums
    return low, high, deviations / counts, shares / counts
