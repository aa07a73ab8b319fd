"""DataFrame → DataFrame. From hours to the peak hour and to what a forecast needs of some weeks.

Days are counted back from the last hour in which a partition was measured: day 0 is the last 24 hours. Seven of them
are a week, whatever day it begins with.

The peak is the busiest hour of the last week over the mean of its hours. Where there is a trend, its share is taken
out: hours of the last day are not large only because they are the last.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sql

from kreassign.pipeline.load.forecast import DAY_S, DAYS_A_WEEK, with_backtest, with_fit, with_size_fit
from kreassign.pipeline.load.hours import HOUR_MS
from kreassign.pipeline.load.rates import EPOCH_KEY, PARTITION_KEY

HOURS_A_DAY = 24
HOURS_A_WEEK = HOURS_A_DAY * DAYS_A_WEEK
WHOLE = 0.9
"""A day counts as whole when at least this part of it was measured."""
WINDOW_DAYS = 28
"""Days of history that the forecast rests on: four weeks show a rhythm of the week, and are still recent."""


def hour_of_day() -> Column:
    """The hour of the day (UTC) of table `load_hours`."""
    return (sql.col("hour_ms") / HOUR_MS % HOURS_A_DAY).cast("int").alias("hour_of_day")


def peak_hours(hours: DataFrame) -> DataFrame:
    """The busiest hour of the day by partition and epoch: peak_hour (UTC), peak_records_per_s.

    Of partitions that were seen in every hour of the day; who was not may have been busier when nobody looked.
    """
    daily = (
        _measured(hours)
        .groupBy(*EPOCH_KEY, hour_of_day())
        .agg((sql.sum("new_records") / sql.sum("seconds")).alias("records_per_s"))
        .select(*EPOCH_KEY, "hour_of_day", "records_per_s")
    )
    peak = sql.max(sql.struct("records_per_s", "hour_of_day"))
    return (
        daily.groupBy(*EPOCH_KEY)
        .agg(peak.alias("peak"), sql.count("*").alias("hours_seen"))
        .where(sql.col("hours_seen") == HOURS_A_DAY)
        .select(
            *PARTITION_KEY,
            "epoch",
            sql.col("peak.hour_of_day").alias("peak_hour"),
            sql.col("peak.records_per_s").alias("peak_records_per_s"),
        )
    )


def trends(hours: DataFrame, window_days: int = WINDOW_DAYS) -> DataFrame:
    """What the last days say, by partition and epoch: level, growth, spread, peaks and backtest; see `forecast.py`.

    The level is in records per second; growth, spread and peaks are shares and ratios; growth of the size is in bytes.
    """
    days = _days(_recent(_measured(hours), window_days), window_days)
    fitted = with_backtest(with_size_fit(with_fit(days, "rates", "fit"), "sizes", "size_fit"), "rates", window_days)
    return fitted.withColumn("ordered", sql.array_sort(_without_trend("last_hours"))).select(
        *EPOCH_KEY,
        sql.col("fit.days").alias("day_count"),
        # What was never measured for a whole day has the mean of all that there is.
        sql.coalesce("fit.level", "mean_records_per_s").alias("recent_records_per_s"),
        sql.col("fit.growth").alias("growth_per_day"),
        sql.col("fit.growth_error").alias("growth_error_per_day"),
        sql.col("fit.has_trend").alias("has_trend"),
        sql.col("fit.spread").alias("week_spread"),
        _ratio_to_mean("ordered", 1.0).alias("week_peak_ratio"),
        _ratio_to_mean("ordered", 0.95).alias("week_p95_ratio"),
        sql.col("size_fit.growth").alias("size_growth_bytes_per_day"),
        sql.col("size_fit.growth_error").alias("size_growth_error_bytes_per_day"),
        sql.col("size_fit.spread").alias("size_spread_bytes"),
        "backtest_error",
        "backtest_sigmas",
    )


def _measured(hours: DataFrame) -> DataFrame:
    """Those in which an interval ended of which something is known."""
    return hours.where(sql.col("seconds") > 0)


def _recent(hours: DataFrame, window_days: int) -> DataFrame:
    """The hours of the window, with their age in hours: 0 is the last."""
    last_ms = sql.max("hour_ms").over(Window.partitionBy(*EPOCH_KEY))
    age = ((last_ms - sql.col("hour_ms")) / HOUR_MS).cast("int")
    return hours.withColumn("age_hours", age).where(sql.col("age_hours") < window_days * HOURS_A_DAY)


def _days(recent: DataFrame, window_days: int) -> DataFrame:
    """One row per partition and epoch: rates and sizes by age in days, NULL where a day is not whole, and last_hours.

    last_hours are age in hours and rate of the hours of the last week. Partitions stay where the window has put them:
    all of it needs one exchange.
    """
    age = sql.floor(sql.col("age_hours") / HOURS_A_DAY).cast("int").alias("age")
    is_whole = sql.sum("seconds") >= WHOLE * DAY_S
    hour = sql.struct("age_hours", (sql.col("new_records") / sql.col("seconds")).alias("rate"))
    is_recent = sql.col("age_hours") < HOURS_A_WEEK
    days = recent.groupBy(*EPOCH_KEY, age).agg(
        sql.sum(sql.when(is_recent, sql.col("seconds"))).alias("seconds"),
        sql.sum(sql.when(is_recent, sql.col("new_records"))).alias("new_records"),
        sql.when(is_whole, sql.sum("new_records") / sql.sum("seconds")).alias("rate"),
        sql.when(is_whole, sql.avg("mean_size_bytes")).alias("size"),
        # `collect_list` passes over NULL.
        sql.collect_list(sql.when(is_recent, hour)).alias("hours"),
    )
    by_age = sql.map_from_entries(sql.collect_list(sql.struct("age", sql.struct("rate", "size")))).alias("by_age")
    mean = (sql.sum("new_records") / sql.sum("seconds")).alias("mean_records_per_s")
    whole = days.groupBy(*EPOCH_KEY).agg(by_age, mean, sql.flatten(sql.collect_list("hours")).alias("last_hours"))
    arrays = (_array("rate", window_days).alias("rates"), _array("size", window_days).alias("sizes"))
    return whole.select(*EPOCH_KEY, "mean_records_per_s", "last_hours", *arrays)


def _array(field: str, window_days: int) -> Column:
    ages = sql.sequence(sql.lit(0), sql.lit(window_days - 1))
    return sql.transform(ages, lambda age: sql.element_at("by_age", age)[field])


def _without_trend(hours: str) -> Column:
    """The rates of these hours as if all were as old as the last."""
    growth = sql.when(sql.col("fit.has_trend"), sql.col("fit.growth")).otherwise(sql.lit(0.0))
    return sql.transform(hours, lambda hour: hour["rate"] * sql.exp(growth * hour["age_hours"] / HOURS_A_DAY))


def _ratio_to_mean(ordered: str, quantile: float) -> Column:
    """A quantile of a sorted array over its mean; NULL with less than a day of hours, or when nothing was written."""
    rates = sql.col(ordered)
    count = sql.size(rates)
    total = sql.aggregate(rates, sql.lit(0.0), lambda so_far, rate: so_far + rate)
    found = sql.get(rates, sql.ceil(quantile * count).cast("int") - 1)
    return sql.when((count >= HOURS_A_DAY) & (total > 0), found * count / total)
