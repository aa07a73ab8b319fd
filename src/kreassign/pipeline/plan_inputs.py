"""DataFrame → DataFrame. What the planner reads: one row per replica, with the load of its partition."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from kreassign.pipeline.schemas import PLAN_INPUTS

_KEY = ("cluster_id", "snapshot_id", "topic", "partition")


def plan_inputs(partitions: DataFrame, replicas: DataFrame, load_model: DataFrame) -> DataFrame:
    """Table `plan_inputs`. Every replica carries the size of the whole partition: what it takes, or will take.

    All three are of the same snapshot per cluster. A replica whose partition is unknown has no row.
    """
    moving = (sql.size("adding") > 0) | (sql.size("removing") > 0)
    states = partitions.select(*_KEY, moving.alias("is_reassigning"))
    loads = load_model.select(*_KEY, "size_bytes", "write_bytes_per_s", "coverage")
    return (
        replicas.select(*_KEY, "broker", "position", "is_leader")
        .join(states, on=list(_KEY), how="inner")
        .join(loads, on=list(_KEY), how="inner")
        .select(*PLAN_INPUTS.column_names)
    )
