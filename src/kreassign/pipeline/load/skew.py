"""DataFrame → DataFrame. How unevenly the partitions of a topic are used: table `skew`.

Evenness is the entropy of the partitions' shares p of what is written, over the largest that so many can have:

    evenness = - sum(p * ln p) / ln n        (p = 0 adds 0; Pielou's evenness)

A key that is much more common than the others, or a producer that picks partitions by a poor rule, shows as a hot
partition that stays hot wherever it is moved: that is fixed at the producer or with more partitions, not by moving.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql

from kreassign.model.load_summary import HOT
from kreassign.pipeline.tables.schemas import SKEW

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
    return (
        joined.withColumn("hottest_partition", sql.when(sql.col("known_count") > 0, sql.col("largest")))
        .withColumn("hottest_ratio", _hottest_ratio())
        .withColumn("evenness", _evenness())
        .withColumns(
            {name: sql.coalesce(name, sql.lit(0)) for name in ("leader_broker_count", "most_leaders_on_a_broker")}
        )
        .withColumn("verdict", _verdict())
        .select(*SKEW.column_names)
    )


def _leaders(partitions: DataFrame) -> DataFrame:
    led = partitions.where(sql.col("leader") >= 0).groupBy(*_TOPIC_KEY, "leader").agg(sql.count("*").alias("led"))
    return led.groupBy(*_TOPIC_KEY).agg(
        sql.count("*").cast("int").alias("leader_broker_count"),
        sql.max("led").cast("int").alias("most_leaders_on_a_broker"),
    )


def _hottest_ratio() -> Column:
    total = sql.col("write_bytes_per_s")
    return sql.when(total > 0, sql.col("largest_rate") * sql.col("known_count") / total)


def _evenness() -> Column:
    """With p = w / W: - sum(p ln p) = ln W - sum(w ln w) / W, so that one pass is enough."""
    total, known = sql.col("write_bytes_per_s"), sql.col("known_count")
    entropy = sql.ln(total) - sql.coalesce("weighted_logs", sql.lit(0.0)) / total
    # Rounding can push what is exactly 0 or 1 a little out of bounds.
    bounded = sql.least(sql.greatest(entropy / sql.ln(known), sql.lit(0.0)), sql.lit(1.0))
    return sql.when((total > 0) & (known > 1), bounded)


def _verdict() -> Column:
    has_two = sql.col("known_count") > 1
    is_written = sql.coalesce(sql.col("write_bytes_per_s") > 0, sql.lit(col=False))
    is_hot = sql.coalesce(sql.col("hottest_ratio") > HOT, sql.lit(col=False))
    return (
        sql.when(~has_two, "too few")
        .when(has_two & ~is_written, "idle")
        .when(has_two & is_written & is_hot, "hot partition")
        .when(has_two & is_written & ~is_hot, "even")
    )
