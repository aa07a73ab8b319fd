"""Size and load per partition, table `load_model`; per replica, table `plan_inputs`; and the skew of topics.

Each task gets all hours of some partitions, because their load depends on all of them, and applies `partition_loads`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.pandas.types import from_arrow_schema

from kreassign.model.load import HOT
from kreassign.model.text import HOUR_MS
from kreassign.pipeline.load.hours import HOURS_A_DAY
from kreassign.pipeline.load.measured import nothing_measured
from kreassign.pipeline.load.partition_loads import HOUR_COLUMNS, IS_COMPACTED, LOADS, WINDOW_DAYS, partition_loads
from kreassign.pipeline.load.rates import PARTITION_KEY
from kreassign.pipeline.tables.schemas import LOAD_MODEL, PLAN_INPUTS, SKEW
from kreassign.pipeline.tables.spark_io import dealt

_SNAPSHOT_KEY = ("cluster_id", "snapshot_id")
_WITHOUT_SAMPLES = {
    "sample_count": 0,
    "reset_count": 0,
    "day_count": 0,
    "span_s": 0.0,
    "covered_share": 0.0,
    "has_trend": False,
    "has_slowed": False,
    "has_jumped": False,
    "coverage": "no samples",
    "verdict": "unknown",
}


def load_model(
    partitions: DataFrame,
    replicas: DataFrame,
    hours: DataFrame,
    hour_count: int,
    window_days: int = WINDOW_DAYS,
) -> DataFrame:
    """Table `load_model`: one row per given partition; `partitions` and `replicas` are of one snapshot per cluster.

    `hours` are rows of table `load_hours`, at most about `hour_count`, filtered by `in_window`.
    """
    of_topics = hours.join(sql.broadcast(_compacted(partitions)), on=["cluster_id", "topic"], how="left")
    together = dealt(of_topics.select(*HOUR_COLUMNS), hour_count, *PARTITION_KEY)
    loads = together.mapInArrow(partial(partition_loads, window_days=window_days), from_arrow_schema(LOADS))
    joined = partitions.join(partition_sizes(replicas), on=[*_SNAPSHOT_KEY, "topic", "partition"], how="left").join(
        loads, on=list(PARTITION_KEY), how="left"
    )
    known = {name: sql.coalesce(name, sql.lit(value)) for name, value in _WITHOUT_SAMPLES.items()}
    return joined.withColumns(known | nothing_measured()).select(*LOAD_MODEL.column_names)


def _compacted(partitions: DataFrame) -> DataFrame:
    """Topics known to be compacted, also those from which old records are deleted, too."""
    compacted = partitions.where(sql.contains("cleanup_policy", sql.lit("compact")))
    return compacted.select("cluster_id", "topic").distinct().withColumn(IS_COMPACTED, sql.lit(col=True))


def partition_sizes(replicas: DataFrame) -> DataFrame:
    """Size per partition: of the leader's copy, else of the largest; keyed by snapshot, topic and partition."""
    leader_size = sql.max(sql.when(sql.col("is_leader"), sql.col("size_bytes")))
    return (
        replicas.groupBy(*_SNAPSHOT_KEY, "topic", "partition")
        .agg(sql.coalesce(leader_size, sql.max("size_bytes")).alias("size_bytes"))
        .select(*_SNAPSHOT_KEY, "topic", "partition", "size_bytes")
    )


def in_window(hours: DataFrame, latest_ms: Mapping[str, int], window_days: int = WINDOW_DAYS) -> DataFrame:
    """Hours that a load uses: the last `window_days` of each cluster, counted back from its latest hour."""
    spanned_ms = (window_days * HOURS_A_DAY - 1) * HOUR_MS
    begins = [column for cluster, ms in latest_ms.items() for column in (sql.lit(cluster), sql.lit(ms - spanned_ms))]
    return hours.where(sql.col("hour_ms") >= sql.create_map(*begins)[sql.col("cluster_id")])


_KEY = ("cluster_id", "snapshot_id", "topic", "partition")
_RATES = ("write_bytes_per_s", "p95_write_bytes_per_s", "p99_write_bytes_per_s", "peak_write_bytes_per_s")
_INTERVALS = tuple(f"{end}_{name}" for name in _RATES[:2] for end in ("low", "high"))

_READS = ("read_bytes_per_s", "read_basis", "read_error_share", "cpu_share", "follower_cpu_share")


def plan_inputs(partitions: DataFrame, replicas: DataFrame, load_model: DataFrame, forecast: DataFrame) -> DataFrame:
    """Table `plan_inputs`. Every replica carries the size of the whole partition: what it occupies, or will occupy.

    All inputs are of the same snapshot per cluster. A replica of an unknown partition has no row.
    """
    moving = (sql.size("adding") > 0) | (sql.size("removing") > 0)
    states = partitions.select(*_KEY, moving.alias("is_reassigning"))
    loads = load_model.select(*_KEY, "size_bytes", *_RATES, *_INTERVALS, *_READS, "coverage", "verdict")
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


# Table `skew`: how unevenly the partitions of a topic are used.
#
# Evenness is the entropy of the partitions' shares p of writes, over its maximum for n partitions:
#
#     evenness = - sum(p * ln p) / ln n        (p = 0 adds 0; Pielou's evenness)
#
# A very common key, or a producer with a poor partitioner, shows as a hot partition that stays hot wherever it is
# moved: fix it at the producer or with more partitions, not by moving.

_TOPIC_KEY = ("cluster_id", "snapshot_id", "topic")


def skew(loads: DataFrame, partitions: DataFrame) -> DataFrame:
    """Table `skew` from table `load_model` and the partitions of the same snapshots."""
    rate = sql.col("write_bytes_per_s")
    per_topic = loads.groupBy(*_TOPIC_KEY).agg(
        sql.count("*").cast("int").alias("partition_count"),
        sql.count(rate).cast("int").alias("known_count"),
        sql.sum(rate).alias("write_bytes_per_s"),
        sql.max_by("partition", sql.struct(rate, -sql.col("partition"))).alias("largest"),
        sql.max(rate).alias("largest_rate"),
        sql.sum(sql.when(rate > 0, rate * sql.ln(rate))).alias("weighted_logs"),
    )
    joined = per_topic.join(_leaders(partitions), on=list(_TOPIC_KEY), how="left")
    total = sql.col("write_bytes_per_s")
    return (
        joined.withColumn("hottest_partition", sql.when(sql.col("known_count") > 0, sql.col("largest")))
        .withColumn("hottest_ratio", sql.when(total > 0, sql.col("largest_rate") * sql.col("known_count") / total))
        .withColumn("evenness", _evenness())
        .withColumns(
            {name: sql.coalesce(name, sql.lit(0)) for name in ("leader_broker_count", "most_leaders_on_a_broker")}
        )
        .withColumn("verdict", _skew_verdict())
        .select(*SKEW.column_names)
    )


def _leaders(partitions: DataFrame) -> DataFrame:
    led = partitions.where(sql.col("leader") >= 0).groupBy(*_TOPIC_KEY, "leader").agg(sql.count("*").alias("led"))
    return led.groupBy(*_TOPIC_KEY).agg(
        sql.count("*").cast("int").alias("leader_broker_count"),
        sql.max("led").cast("int").alias("most_leaders_on_a_broker"),
    )


def _evenness() -> Column:
    """Evenness in one pass: with p = w / W, - sum(p ln p) = ln W - sum(w ln w) / W."""
    total, known = sql.col("write_bytes_per_s"), sql.col("known_count")
    entropy = sql.ln(total) - sql.coalesce("weighted_logs", sql.lit(0.0)) / total
    # Rounding can push an exact 0 or 1 out of bounds.
    bounded = sql.least(sql.greatest(entropy / sql.ln(known), sql.lit(0.0)), sql.lit(1.0))
    return sql.when((total > 0) & (known > 1), bounded)


def _skew_verdict() -> Column:
    is_written = sql.coalesce(sql.col("write_bytes_per_s") > 0, sql.lit(col=False))
    return (
        sql.when(sql.col("known_count") < 2, "too few")
        .when(~is_written, "idle")
        .when(sql.col("hottest_ratio") > HOT, "hot partition")
        .otherwise("even")
    )
