"""DataFrame → DataFrame. From rates to hours, from hours to peak hour and growth, from growth to a forecast.

Growth is the slope b of a straight line through the means of whole days, by least squares over n days:

    b = Sxy / Sxx        error = t(0.975, n - 2) * sqrt((Syy / Sxx - b²) / (n - 2))

so that the true slope is within b ± error in 19 of 20 cases, if days scatter about the line independently of each
other. Weeks have a rhythm of their own: with less than two of them a weekend looks like a trend, and the error says so
only in part.

    forecast = now + growth per day * days        never below 0

Growth counts only when it is significant: when its 95% interval does not contain 0. A size bounded by retention grows
only while it fills up, which a line through the last days cannot know.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql

from kreassign.pipeline.load.rates import PARTITION_KEY
from kreassign.pipeline.tables.schemas import FORECAST, LOAD_HOURS

HOUR_MS = 3_600_000
HOURS_A_DAY = 24
DAY_S = 86_400.0
WHOLE = 0.9
"""A day counts as whole when at least this part of it was measured."""
DAYS_OF_TREND = 3
_T_975 = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip
_T_MANY = 1.960


def load_hours(rates: DataFrame) -> DataFrame:
    """Table `load_hours`: an interval belongs to the hour in which it ends, and only known intervals count."""
    known = rates.where(sql.col("new_records").isNotNull())
    hour = (sql.floor(sql.col("taken_ms") / HOUR_MS) * HOUR_MS).cast("bigint").alias("hour_ms")
    return (
        known.groupBy(*PARTITION_KEY, "epoch", hour)
        .agg(
            sql.sum("seconds").alias("seconds"),
            sql.sum("new_records").alias("new_records"),
            sql.avg("size_bytes").alias("mean_size_bytes"),
        )
        .select(*LOAD_HOURS.column_names)
    )


def peak_hours(hours: DataFrame) -> DataFrame:
    """The busiest hour of the day by partition and epoch: peak_hour (UTC), peak_records_per_s.

    Of partitions that were seen in every hour of the day; who was not may have been busier when nobody looked.
    """
    hour_of_day = (sql.col("hour_ms") / HOUR_MS % HOURS_A_DAY).cast("int").alias("hour_of_day")
    daily = (
        hours.groupBy(*PARTITION_KEY, "epoch", hour_of_day)
        .agg((sql.sum("new_records") / sql.sum("seconds")).alias("records_per_s"))
        .select(*PARTITION_KEY, "epoch", "hour_of_day", "records_per_s")
    )
    peak = sql.max(sql.struct("records_per_s", "hour_of_day"))
    return (
        daily.groupBy(*PARTITION_KEY, "epoch")
        .agg(peak.alias("peak"), sql.count("*").alias("hours_seen"))
        .where(sql.col("hours_seen") == HOURS_A_DAY)
        .select(
            *PARTITION_KEY,
            "epoch",
            sql.col("peak.hour_of_day").alias("peak_hour"),
            sql.col("peak.records_per_s").alias("peak_records_per_s"),
        )
    )


def trends(hours: DataFrame) -> DataFrame:
    """Growth by partition and epoch with its error, of records per second and of the size, both per day."""
    day = sql.floor(sql.col("hour_ms") / (HOUR_MS * HOURS_A_DAY)).cast("double").alias("day")
    days = (
        hours.groupBy(*PARTITION_KEY, "epoch", day)
        .agg(
            sql.sum("seconds").alias("seconds"),
            (sql.sum("new_records") / sql.sum("seconds")).alias("records_per_s"),
            sql.avg("mean_size_bytes").alias("size_bytes"),
        )
        .where(sql.col("seconds") >= WHOLE * DAY_S)
    )
    fitted = days.groupBy(*PARTITION_KEY, "epoch").agg(
        sql.count("*").cast("int").alias("day_count"), *_sums("records_per_s"), *_sums("size_bytes")
    )
    return fitted.select(
        *PARTITION_KEY,
        "epoch",
        "day_count",
        _slope("records_per_s").alias("growth_records_per_s_per_day"),
        _error("records_per_s").alias("growth_error_records_per_s_per_day"),
        _slope("size_bytes").alias("size_growth_bytes_per_day"),
        _error("size_bytes").alias("size_growth_error_bytes_per_day"),
    )


def _sums(name: str) -> tuple[Column, Column, Column]:
    return (
        sql.regr_sxx(name, "day").alias(f"{name}_sxx"),
        sql.regr_sxy(name, "day").alias(f"{name}_sxy"),
        sql.regr_syy(name, "day").alias(f"{name}_syy"),
    )


def _enough() -> Column:
    return sql.col("day_count") >= DAYS_OF_TREND


def _slope(name: str) -> Column:
    return sql.when(_enough(), sql.col(f"{name}_sxy") / sql.col(f"{name}_sxx"))


def _error(name: str) -> Column:
    freedom = sql.col("day_count") - 2
    # Rounding can push what is left of a perfect line below zero.
    unexplained = sql.greatest(sql.col(f"{name}_syy") / sql.col(f"{name}_sxx") - _slope(name) ** 2, sql.lit(0.0))
    quantile = sql.coalesce(sql.get(sql.array(*map(sql.lit, _T_975)), freedom - 1), sql.lit(_T_MANY))
    return sql.when(_enough(), quantile * sql.sqrt(unexplained / freedom))


_RATE = ("write_bytes_per_s", "growth_bytes_per_s_per_day", "growth_error_bytes_per_s_per_day")
_SIZE = ("size_bytes", "size_growth_bytes_per_day", "size_growth_error_bytes_per_day")


def forecast(loads: DataFrame, horizon_days: float) -> DataFrame:
    """Table `forecast` of the partitions of table `load_model`."""
    return loads.select(
        "cluster_id",
        "snapshot_id",
        "topic",
        "partition",
        sql.lit(float(horizon_days)).alias("horizon_days"),
        _then(*_SIZE, horizon_days).alias("size_bytes"),
        _then(*_RATE, horizon_days).alias("write_bytes_per_s"),
        _at_most(*_SIZE, horizon_days).alias("high_size_bytes"),
        _at_most(*_RATE, horizon_days).alias("high_write_bytes_per_s"),
        _basis().alias("basis"),
    ).select(*FORECAST.column_names)


def _then(now: str, growth: str, error: str, days: float) -> Column:
    sure = sql.coalesce(sql.when(_is_sure(growth, error), sql.col(growth)), sql.lit(0.0))
    return _not_below_zero(sql.col(now) + sure * days)


def _at_most(now: str, growth: str, error: str, days: float) -> Column:
    highest = sql.coalesce(sql.greatest(sql.col(growth) + sql.col(error), sql.lit(0.0)), sql.lit(0.0))
    return _not_below_zero(sql.col(now) + highest * days)


def _is_sure(growth: str, error: str) -> Column:
    return sql.abs(growth) > sql.col(error)


def _not_below_zero(value: Column) -> Column:
    # `greatest` passes over NULL, but what is unknown stays so.
    return sql.when(value.isNotNull(), sql.greatest(value.cast("double"), sql.lit(0.0)))


def _basis() -> Column:
    _, growth, error = _RATE
    is_told = sql.col(growth).isNotNull()
    is_sure = sql.coalesce(_is_sure(growth, error), sql.lit(col=False))
    return sql.when(~is_told, "no trend").when(is_told & is_sure, "trend").when(is_told & ~is_sure, "flat")
