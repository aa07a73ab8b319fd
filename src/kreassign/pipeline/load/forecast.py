"""DataFrame → DataFrame. From the days of some weeks to a forecast, with a range that past forecasts have tested.

Let y[a] be the mean rate of day a, counted back from the last hour that was measured: y[0] are the last 24 hours. So
every seven days hold the same hours and weekdays, wherever the week begins.

    level     mean of the last seven days; a day that was not measured is the same weekday of the week before
    change    ln(y[a] / y[a + 7]), each day against the same weekday a week earlier, so that no rhythm of the week can
              look like growth
    growth    median change / 7, per day: the seasonal slope of Hirsch, Slack & Smith 1982 (Water Resources Research
              18), with neighbouring weeks as its pairs. A few odd days do not move it.
    spread    root of the mean square of (change - median change): what a week does besides growing

Growth makes a *trend* when there are 14 whole days or more, when it is beyond its own 95% interval, and when four
fifths of the days have at least a quarter of the median change: after a step the older days show nothing. Else the
forecast is *flat*, and so it is with fewer days, in which a weekend or a first week cannot be distinguished from
decline or growth.

    forecast(h) = level * exp(growth * (3.5 + f + f² + … + f^h))      h days from the end, f = 0.95

This is the damped multiplicative trend of Taylor 2003 (International Journal of Forecasting 19), damped as in Gardner &
McKenzie 1985 (Management Science 31), because growth goes on for ever nowhere; 3.5 days lie between the middle of the
last week and its end. It is the mean of a whole week around that day. Peak and 95th percentile are those of the hours
of such a week: the forecast times the factors of the hours of the last week, each of its weekday and hour.

    range(h) = from the least to the largest of {level, forecast, the same damped half as much}
               divided and multiplied by exp(2.447 * w * spread * sqrt(1 + h / 7))

So it holds growth that ends today and growth that goes on. The spread adds up from week to week as in a random walk,
and 2.447 is Student's t, for it is known from few changes.
Where too few days were seen to know it, it is what is usual: see `A_WEEK`, `LESS_THAN_A_WEEK` and `LESS_THAN_A_DAY`.

The *backtest* makes the forecast of the last seven days from the days before them, for every partition with two whole
weeks, and compares it with what came. w is the factor that would have made the ranges of 95 % of the partitions of a
cluster hold what came, at least 1: a conformal interval (Lei et al. 2018, JASA 113) over partitions. That speaks
for one week; for more it rests on the root above.

Sizes: growth per day is the median difference to the same weekday of the week before / 7. It is not damped, because a
log that is filling up fills by what is written, until retention ends it, which no line knows: the low end of the range
is the present size. With fewer than 14 days the size stays, and the high end is that all is kept that is written.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql

from kreassign.pipeline.tables.schemas import BACKTESTS, FORECAST

DAY_S = 86_400.0
DAYS_A_WEEK = 7
DAYS_OF_TREND = 14
DAMPING = 0.95
MOST_GROWTH = math.log(2) / DAYS_A_WEEK
"""More than a doubling in a week is not continued."""
A_WEEK = 0.2
"""Spread of a rate of which one week is known and its changes from week to week are not."""
LESS_THAN_A_WEEK = 0.35
"""Spread where the mean of a week is unknown: weekends at a third of the other days are a mean of 0.8 of theirs."""
LESS_THAN_A_DAY = 0.6
"""Spread where the mean of a day is unknown, or the rate stops altogether on many days."""
LEAST_SPREAD = 0.02
_T_975 = 2.447
"""Student's t for seven changes: neighbouring weeks share days, so that more of them hardly count as more."""
_MOST_WIDENING = 4.0
"""More would be an interval that says nothing."""
_SHARE_OF_MEDIAN, _STRAGGLERS = 0.25, 0.2
_MIDDLE_OF_WEEK = DAYS_A_WEEK / 2
_WEEKS_BACK = 4
"""A weekday that was not measured for longer is left out of the level."""
_Change = Callable[[Column, Column], Column]


def with_fit(rows: DataFrame, rates: str, name: str) -> DataFrame:
    """Add a struct `name`: days, level, growth, growth_error, spread, has_trend, of an array of rates by age in days.

    NULL in the array where a day is unknown. growth and growth_error are NULL without enough days for a trend.
    """
    values, changes, weekly = sql.col(rates), sql.col("_changes"), sql.col("_weekly")
    staged = rows.withColumn("_changes", _sorted_changes(values, _log_ratio)).withColumn("_weekly", _median(changes))
    days = sql.size(sql.filter(values, lambda rate: rate.isNotNull()))
    is_enough = (days >= DAYS_OF_TREND) & (sql.size(changes) >= DAYS_A_WEEK)
    misfit = _misfit(changes, weekly)
    growth, error = sql.when(is_enough, weekly / DAYS_A_WEEK), sql.when(is_enough, _error_per_day(misfit))
    has_trend = (sql.abs(growth) > error) & _is_steady(changes, weekly)
    fit = sql.struct(
        days.alias("days"),
        _level(values).alias("level"),
        growth.alias("growth"),
        error.alias("growth_error"),
        _spread(days, is_enough, misfit, values).alias("spread"),
        sql.coalesce(has_trend, sql.lit(col=False)).alias("has_trend"),
    )
    return staged.withColumn(name, fit).drop("_changes", "_weekly")


def with_size_fit(rows: DataFrame, sizes: str, name: str) -> DataFrame:
    """Add a struct `name`: growth, growth_error, spread, in bytes; NULL without enough days for a trend."""
    changes, weekly = sql.col("_changes"), sql.col("_weekly")
    staged = rows.withColumn("_changes", _sorted_changes(sql.col(sizes), lambda new, old: new - old))
    staged = staged.withColumn("_weekly", _median(changes))
    is_enough = sql.size(changes) >= DAYS_A_WEEK
    misfit = _misfit(changes, weekly)
    fit = sql.struct(
        sql.when(is_enough, weekly / DAYS_A_WEEK).alias("growth"),
        sql.when(is_enough, _error_per_day(misfit)).alias("growth_error"),
        sql.when(is_enough, misfit).alias("spread"),
    )
    return staged.withColumn(name, fit).drop("_changes", "_weekly")


def with_backtest(rows: DataFrame, rates: str, days: int) -> DataFrame:
    """Add how the forecast of the last seven days, made from those before, compares: backtest_error, backtest_sigmas.

    Both NULL where the last seven days are not all known, or less than seven before them.
    """
    values = sql.col(rates)
    past = rows.withColumn("_before", sql.slice(values, DAYS_A_WEEK + 1, max(days, DAYS_A_WEEK)))
    past = with_fit(past, "_before", "_past").withColumn("_came", _mean_if_all(sql.slice(values, 1, DAYS_A_WEEK)))
    said, came = Curve.of_struct("_past"), sql.col("_came")
    then = said.at(_MIDDLE_OF_WEEK)
    is_known = (sql.col("_past.days") >= DAYS_A_WEEK) & came.isNotNull()
    return past.withColumns(
        {
            "backtest_error": sql.when(is_known, _distance(then, came)),
            "backtest_sigmas": sql.when(is_known, _sigmas(said, came, _MIDDLE_OF_WEEK)),
        }
    ).drop("_before", "_past", "_came")


def backtests(loads: DataFrame) -> DataFrame:
    """Table `backtests`, from table `load_model`: one row per cluster."""
    sigmas = sql.col("backtest_sigmas")
    widening = sql.percentile(sigmas, 0.95) / _T_975
    bounded = sql.least(sql.greatest(widening, sql.lit(1.0)), sql.lit(_MOST_WIDENING))
    figures = {
        "partition_count": sql.count(sigmas).cast("int"),
        "median_error": sql.percentile("backtest_error", 0.5),
        "p95_error": sql.percentile("backtest_error", 0.95),
        "covered_share": sql.avg((sigmas <= _T_975).cast("double")),
        "widening": sql.coalesce(bounded, sql.lit(1.0)),
    }
    told = loads.groupBy("cluster_id").agg(*(each.alias(name) for name, each in figures.items()))
    return told.select(*BACKTESTS.column_names)


def forecast(loads: DataFrame, tested: DataFrame, horizon_days: float) -> DataFrame:
    """Table `forecast` of the partitions of table `load_model`; `tested` is table `backtests`."""
    widening = sql.broadcast(tested.select("cluster_id", "widening"))
    rate = Curve(sql.col("recent_write_bytes_per_s"), sql.col("growth_per_day"), sql.col("has_trend"),
                 sql.col("week_spread"))  # fmt: skip
    low, high = rate.between(horizon_days, _T_975 * sql.col("widening"))
    then = rate.at(horizon_days)
    joined = loads.join(widening, on=["cluster_id"], how="inner").withColumns(
        {
            "horizon_days": sql.lit(float(horizon_days)),
            "low_write_bytes_per_s": low,
            "high_write_bytes_per_s": high,
            "p95_write_bytes_per_s": then * sql.col("week_p95_ratio"),
            "peak_write_bytes_per_s": then * sql.col("week_peak_ratio"),
            "basis": _basis(),
            "_then": then,
        }
    )
    sized = joined.withColumns(_sizes(horizon_days))
    return sized.withColumns({"write_bytes_per_s": sql.col("_then"), "size_bytes": sql.col("_size")}).select(
        *FORECAST.column_names
    )


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """A rate that goes on from a level, by a damped trend if it has one."""

    level: Column
    growth: Column
    has_trend: Column
    spread: Column

    @staticmethod
    def of_struct(name: str) -> Curve:
        """The curve of a struct that `with_fit` made."""
        return Curve(*(sql.col(f"{name}.{field}") for field in ("level", "growth", "has_trend", "spread")))

    def at(self, days: float) -> Column:
        """The rate so many days from the end; NULL without a level."""
        return self._after(_damped(days))

    def edges(self, days: float) -> tuple[Column, Column]:
        """The least and the largest of: no growth from now on, the forecast, growth that goes on."""
        ways = (self.level, self.at(days), self._after(min(days, 2 * _damped(days))))
        return sql.least(*ways), sql.greatest(*ways)

    def between(self, days: float, sigmas: Column) -> tuple[Column, Column]:
        """The range in which the rate will be."""
        least, largest = self.edges(days)
        margin = sql.exp(sigmas * self.spread * _reach(days))
        return least / margin, largest * margin

    def _after(self, days_of_growth: float) -> Column:
        bounded = sql.greatest(sql.least(self.growth, sql.lit(MOST_GROWTH)), sql.lit(-MOST_GROWTH))
        grown = self.level * sql.exp(bounded * (_MIDDLE_OF_WEEK + days_of_growth))
        return sql.when(self.has_trend, grown).otherwise(self.level)


def _damped(days: float) -> float:
    """Sum of f + f² + … + f^days, also between whole days."""
    return DAMPING * (1 - math.pow(DAMPING, days)) / (1 - DAMPING)


def _reach(days: float) -> float:
    return math.sqrt(1 + days / DAYS_A_WEEK)


def _log_ratio(new: Column, old: Column) -> Column:
    return sql.when((new > 0) & (old > 0), sql.ln(new / old))


def _sorted_changes(values: Column, change: _Change) -> Column:
    """What each day changed against the same weekday a week earlier, sorted; only what is known."""
    # zip_with fills the shorter one up with NULL.
    each = sql.zip_with(values, sql.slice(values, DAYS_A_WEEK + 1, 10_000), change)
    return sql.array_sort(sql.filter(each, lambda known: known.isNotNull()))


def _median(ordered: Column) -> Column:
    """Of a sorted array; NULL of an empty one."""
    count = sql.size(ordered)
    lower, upper = sql.floor((count - 1) / 2).cast("int"), sql.floor(count / 2).cast("int")
    return (sql.get(ordered, lower) + sql.get(ordered, upper)) / 2


def _misfit(changes: Column, weekly: Column) -> Column:
    squares = sql.aggregate(changes, sql.lit(0.0), lambda total, change: total + (change - weekly) * (change - weekly))
    return sql.when(sql.size(changes) > 0, sql.sqrt(squares / sql.size(changes)))


def _error_per_day(misfit: Column) -> Column:
    return _T_975 * misfit / math.sqrt(DAYS_A_WEEK) / DAYS_A_WEEK


def _is_steady(changes: Column, weekly: Column) -> Column:
    """Whether all changes but the least fifth go the same way as their median, a quarter as far at least."""
    last = sql.size(changes) - 1
    skipped = sql.floor(last * _STRAGGLERS).cast("int")
    weakest = sql.when(weekly > 0, sql.get(changes, skipped)).otherwise(-sql.get(changes, last - skipped))
    return weakest >= _SHARE_OF_MEDIAN * sql.abs(weekly)


def _level(values: Column) -> Column:
    """The mean of the seven weekdays, each as it was last seen."""
    known = sql.filter(_last_week(values), lambda rate: rate.isNotNull())
    total = sql.aggregate(known, sql.lit(0.0), lambda so_far, rate: so_far + rate)
    return sql.when(sql.size(known) > 0, total / sql.size(known))


def _last_week(values: Column) -> Column:
    weeks = range(_WEEKS_BACK)
    return sql.array(
        *(
            sql.coalesce(*(sql.get(values, sql.lit(day + DAYS_A_WEEK * back)) for back in weeks))
            for day in range(DAYS_A_WEEK)
        )
    )


def _mean_if_all(week: Column) -> Column:
    known = sql.filter(week, lambda rate: rate.isNotNull())
    total = sql.aggregate(known, sql.lit(0.0), lambda so_far, rate: so_far + rate)
    return sql.when(sql.size(known) == DAYS_A_WEEK, total / DAYS_A_WEEK)


def _spread(days: Column, is_enough: Column, misfit: Column, values: Column) -> Column:
    return (
        sql.when(is_enough, sql.greatest(misfit, sql.lit(LEAST_SPREAD)))
        .when((days >= DAYS_A_WEEK) & (days < DAYS_OF_TREND), sql.greatest(_day_to_day(values), sql.lit(A_WEEK)))
        .when((days > 0) & (days < DAYS_A_WEEK), sql.lit(LESS_THAN_A_WEEK))
        .otherwise(sql.lit(LESS_THAN_A_DAY))
    )


def _day_to_day(values: Column) -> Column:
    """The standard deviation of the logarithms of days; NULL when nothing was ever written."""
    logs = sql.transform(sql.filter(values, lambda rate: rate > 0), sql.ln)
    count = sql.size(logs)
    total = sql.aggregate(logs, sql.lit(0.0), lambda so_far, log: so_far + log)
    squares = sql.aggregate(logs, sql.lit(0.0), lambda so_far, log: so_far + log * log)
    # Rounding can push the variance of equal days below zero.
    variance = sql.greatest(squares / count - total / count * (total / count), sql.lit(0.0))
    return sql.when(count > 0, sql.sqrt(variance))


def _distance(then: Column, came: Column) -> Column:
    """How far apart two rates are, as a share of the larger: 0 to 1, also when one is 0."""
    larger = sql.greatest(then, came)
    return sql.when(larger > 0, sql.abs(then - came) / larger).otherwise(sql.lit(0.0))


def _sigmas(said: Curve, came: Column, days: float) -> Column:
    """By how many spreads a rate was beyond the edges of what was said; 0 between them."""
    least, largest = said.edges(days)
    most = sql.lit(_MOST_WIDENING * _T_975)
    beyond = sql.when(came > largest, sql.when(largest > 0, sql.ln(came / largest))).when(
        came < least, sql.when(came > 0, sql.ln(least / came))
    )
    is_between = (came >= least) & (came <= largest)
    # `least` passes over NULL: from nothing or to nothing is further than any spread.
    return sql.when(is_between, 0.0).otherwise(sql.least(beyond / (said.spread * _reach(days)), most))


def _basis() -> Column:
    is_known = sql.col("recent_write_bytes_per_s").isNotNull()
    has_trend = sql.col("has_trend")
    return sql.when(~is_known, "unknown").when(is_known & has_trend, "trend").when(is_known & ~has_trend, "flat")


def _sizes(days: float) -> dict[str, Column]:
    """The columns low_size_bytes, high_size_bytes and _size; NULL where the present size is."""
    now = sql.col("size_bytes").cast("double")
    growth, error = sql.col("size_growth_bytes_per_day"), sql.col("size_growth_error_bytes_per_day")
    has_trend = sql.coalesce(sql.abs(growth) > error, sql.lit(col=False))
    then = sql.when(has_trend, sql.greatest(now + growth * days, sql.lit(0.0))).otherwise(now)
    sigmas = _T_975 * sql.col("widening")
    margin = sigmas * sql.col("size_spread_bytes") * _reach(days)
    shrunk = now / sql.exp(sigmas * sql.coalesce("week_spread", sql.lit(LESS_THAN_A_DAY)) * _reach(days))
    all_kept = now + sql.coalesce("high_write_bytes_per_s", sql.lit(0.0)) * (days * DAY_S)
    low = sql.when(margin.isNotNull(), sql.greatest(sql.least(now, then) - margin, sql.lit(0.0))).otherwise(shrunk)
    high = sql.when(margin.isNotNull(), sql.greatest(now, then) + margin).otherwise(all_kept)
    is_known = now.isNotNull()
    # `least` and `greatest` pass over NULL, but what is unknown stays so.
    return {
        "_size": sql.when(is_known, then),
        "low_size_bytes": sql.when(is_known, low),
        "high_size_bytes": sql.when(is_known, high),
    }
