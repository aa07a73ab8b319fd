"""DataFrame → DataFrame. What the planner reads: one row per replica, with the load of its partition."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from kreassign.pipeline.tables.schemas import PLAN_INPUTS

_KEY = ("cluster_id", "snapshot_id", "topic", "partition")
_RATES = ("write_bytes_per_s", "p95_write_bytes_per_s", "p99_write_bytes_per_s", "peak_write_bytes_per_s")


def plan_inputs(partitions: DataFrame, replicas: DataFrame, load_model: DataFrame, forecast: DataFrame) -> DataFrame:
    """Table `plan_inputs`. Every replica carries the size of the whole partition: what it takes, or will take.

    All are of the same snapshot per cluster. A replica whose partition is unknown has no row.
    """
    moving = (sql.size("adding") > 0) | (sql.size("removing") > 0)
    states = partitions.select(*_KEY, moving.alias("is_reassigning"))
    loads = load_model.select(*_KEY, "size_bytes", *_RATES, "coverage", "verdict")
    ahead = forecast.select(
        *_KEY,
        sql.col("size_bytes").alias("forecast_size_bytes"),
        sql.col("write_bytes_per_s").alias("forecast_write_bytes_per_s"),
    )
    return (
        replicas.select(*_KEY, "broker", "position", "is_leader")
        .join(states, on=list(_KEY), how="inner")
        .join(loads, on=list(_KEY), how="inner")
        .join(ahead, on=list(_KEY), how="inner")
        .select(*PLAN_INPUTS.column_names)
    )
