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
the high end assumes that all writes are kept.
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

from kreassign.pipeline.load.fits import DAYS_A_WEEK, DAYS_OF_TREND, LESS_THAN_A_DAY, T_975, Fit, fit, mean_of_last_week
from kreassign.pipeline.load.hours import DAY_S, Columns, floats, mask, rows_of_columns
from kreassign.pipeline.load.rates import Floats, Mask
from kreassign.pipeline.tables.arrow import arrow_schema
from kreassign.pipeline.tables.schemas import BACKTESTS, FORECAST

DAMPING = 0.95
MOST_GROWTH = math.log(2) / DAYS_A_WEEK
"""Most growth per week that is continued: a doubling."""
_MOST_WIDENING = 4.0
"""Upper bound of the widening; beyond it an interval is meaningless."""
_HELD = 0.95
_MIDDLE_OF_WEEK = DAYS_A_WEEK / 2
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
KNOWN = (*_KEY, *_OF_RATES, *_OF_SIZES, "has_trend", "has_slowed", "day_count")
TESTED = ("cluster_id", "backtest_error", "backtest_sigmas")
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
    past, came = fit(rates[:, DAYS_A_WEEK:]), mean_of_last_week(rates)
    said = Curve.of(past)
    is_known = (past.days >= DAYS_A_WEEK) & ~np.isnan(came)
    error, sigmas = _distance(said.at(_MIDDLE_OF_WEEK), came), _sigmas(said, came, _MIDDLE_OF_WEEK)
    return Backtest(np.where(is_known, error, np.nan), np.where(is_known, sigmas, np.nan))


def backtests(loads: DataFrame) -> DataFrame:
    """Table `backtests`, from table `load_model`: one row per cluster."""
    tested = loads.select(*TESTED).groupBy("cluster_id")
    return tested.applyInArrow(backtests_of, from_arrow_schema(arrow_schema(BACKTESTS)))


def backtests_of(loads: pa.Table) -> pa.Table:
    """Row of table `backtests` of a cluster, from rows of `TESTED`."""
    error, sigmas = (each[~np.isnan(each)] for each in map(floats, (loads["backtest_error"], loads["backtest_sigmas"])))
    is_tested = len(sigmas) > 0
    figures = {
        "cluster_id": loads["cluster_id"][:1],
        "partition_count": np.array([len(sigmas)]),
        "median_error": np.array([np.median(error) if is_tested else np.nan]),
        "p95_error": np.array([np.quantile(error, _HELD) if is_tested else np.nan]),
        "covered_share": np.array([np.mean(sigmas <= T_975) if is_tested else np.nan]),
        "widening": np.array([widening_of(sigmas) if is_tested else 1.0]),
    }
    return pa.Table.from_batches([rows_of_columns(BACKTESTS, figures)])


def widening_of(sigmas: Floats) -> float:
    """Factor by which the ranges of a cluster are widened, from the distances of its backtests."""
    return float(min(max(np.quantile(sigmas, _HELD) / T_975, 1.0), _MOST_WIDENING))


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


def _forecast(loads: pa.Table, days: float) -> Columns:
    of = {name: floats(loads[name]) for name in (*_OF_RATES, *_OF_SIZES, "widening")}
    has_trend, is_measured = mask(loads["has_trend"]), floats(loads["day_count"]) >= DAYS_OF_TREND
    curve = Curve(
        of["recent_write_bytes_per_s"],
        of["plain_write_bytes_per_s"],
        of["growth_per_day"],
        has_trend,
        has_trend | mask(loads["has_slowed"]),
        of["week_spread"],
    )
    then = curve.at(days)
    widening = np.where(is_measured, of["widening"], 1.0)
    low, high = curve.between(days, widening)
    basis = np.where(np.isnan(curve.level), "unknown", np.where(has_trend, "trend", "flat"))
    return {
        **{name: loads[name] for name in _KEY},
        "horizon_days": np.full(len(loads), float(days)),
        "write_bytes_per_s": then,
        "low_write_bytes_per_s": low,
        "high_write_bytes_per_s": high,
        "p95_write_bytes_per_s": then * of["week_p95_ratio"],
        "peak_write_bytes_per_s": then * of["week_peak_ratio"],
        "basis": pa.array(basis.tolist(), pa.string()),
        **_sizes(of, days, T_975 * widening, high),
    }


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

    @classmethod
    def of(cls, found: Fit) -> Curve:
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
        margin = T_975 * widening * self.spread * _reach(days)
        factor = np.exp(np.minimum(margin, MOST_GROWTH * (DAYS_A_WEEK + days)))
        return least / factor, largest * factor

    def _after(self, days_of_growth: float) -> Floats:
        bounded = np.clip(self.growth, -MOST_GROWTH, MOST_GROWTH)
        grown = self.level * np.exp(bounded * (_MIDDLE_OF_WEEK + days_of_growth))
        return np.where(self.may_grow, grown, self.level)


def _damped(days: float) -> float:
    """Sum of f + f² + … + f^days, also between whole days."""
    return DAMPING * (1 - math.pow(DAMPING, days)) / (1 - DAMPING)


def _reach(days: float) -> float:
    return math.sqrt(1 + days / DAYS_A_WEEK)


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
    return np.where(is_between, 0.0, np.fmin(beyond / (said.spread * _reach(days)), _MOST_WIDENING * T_975))


def _sizes(of: dict[str, Floats], days: float, sigmas: Floats, high_rate: Floats) -> dict[str, Floats]:
    """Columns of sizes; NaN where the present size is."""
    now, growth, spread = of["size_bytes"], of["size_growth_bytes_per_day"], of["size_spread_bytes"]
    has_trend = np.abs(growth) > of["size_growth_error_bytes_per_day"]
    then = np.where(has_trend, np.maximum(now + growth * days, 0.0), now)
    margin = sigmas * spread * _reach(days)
    usual = np.where(np.isnan(of["week_spread"]), LESS_THAN_A_DAY, of["week_spread"])
    shrunk = now / np.exp(sigmas * usual * _reach(days))
    all_kept = now + np.nan_to_num(high_rate) * (days * DAY_S)
    is_known = ~np.isnan(margin)
    return {
        "size_bytes": then,
        "low_size_bytes": np.where(is_known, np.maximum(np.minimum(now, then) - margin, 0.0), shrunk),
        "high_size_bytes": np.where(is_known, np.maximum(now, then) + margin, all_kept),
    }
