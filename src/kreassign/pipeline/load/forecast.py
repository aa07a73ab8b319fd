"""DataFrame → DataFrame. Where size and rate will be some days from now: table `forecast`.

    then = now + growth per day * days        never below 0

Growth counts only when it is sure: when its 95% interval does not hold 0. A size bounded by retention grows only while
it fills up, which a line through the last days cannot know.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql

from kreassign.pipeline.tables.schemas import FORECAST

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
