"""DataFrame → DataFrame. From samples to what was written between them: table `rates`.

A sample is a reading of counters that only grow while a log lives. What spoils the difference of two readings, and what
is done about it:

    the same round twice        one of both counts
    clocks that disagree        a reading that is behind the one before, and the next is not, was taken with another
                                clock or from a leader that was behind; it is left out
    a log that restarted        the topic has another id, or its end went back for good: no difference, a new epoch
    a gap                       rounds are missing: the difference is right on average, but says nothing of peaks
    a change of leader          offsets go on; sizes are of another copy, so no bytes are known for that time

Restarts of brokers need no rule: offsets and sizes are on their disks, and a broker that is down leaves a gap.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as sql

from kreassign.pipeline.tables.schemas import RATES, SAMPLES

PARTITION_KEY = ("cluster_id", "topic", "partition")
GAP = 3.0
"""A gap is an interval more than so many times the usual one of its cluster."""


def rates(samples: DataFrame) -> DataFrame:
    """Table `rates`: one row per sample that counts, with what was written since the one before."""
    usual = usual_intervals(samples)
    known = with_epoch(in_order(one_per_round(samples))).join(sql.broadcast(usual), on=["cluster_id"], how="left")
    return known.withColumn("verdict", verdict()).select(*RATES.column_names)


def one_per_round(samples: DataFrame) -> DataFrame:
    """Samples without duplicates: a round that was stored twice, or copied, counts once.

    Two rows that differ cannot both be right; the one that is ahead was seen. The window is sorted as the other
    windows of this module need it, so that Spark sorts once for all.
    """
    after = Window.partitionBy(*PARTITION_KEY).orderBy("taken_ms", "end_offset").rowsBetween(1, 1)
    next_ms = sql.first("taken_ms").over(after)
    marked = samples.withColumn("is_last", sql.coalesce(next_ms != sql.col("taken_ms"), sql.lit(col=True)))
    return marked.where("is_last").select(*SAMPLES.column_names)


def usual_intervals(samples: DataFrame) -> DataFrame:
    """The median time from round to round of each cluster: cluster_id, usual_s."""
    in_time = Window.partitionBy("cluster_id").orderBy("taken_ms").rowsBetween(-1, -1)
    interval_s = (sql.col("taken_ms") - sql.first("taken_ms").over(in_time)) / 1000.0
    intervals = samples.select("cluster_id", "taken_ms").distinct().select("cluster_id", interval_s.alias("interval_s"))
    return (
        intervals.groupBy("cluster_id").agg(sql.median("interval_s").alias("usual_s")).select("cluster_id", "usual_s")
    )


def in_order(samples: DataFrame) -> DataFrame:
    """Samples without those that are behind both of their neighbours."""
    after = Window.partitionBy(*PARTITION_KEY).orderBy("taken_ms").rowsBetween(1, 1)
    next_end, next_id = sql.first("end_offset").over(after), sql.first("topic_id").over(after)
    is_behind = sql.col("end_offset") < _before("end_offset")
    comes_back = (next_end >= _before("end_offset")) & next_id.eqNullSafe(_before("topic_id"))
    same_topic = sql.col("topic_id").eqNullSafe(_before("topic_id"))
    marked = samples.withColumn("is_odd", sql.coalesce(is_behind & comes_back & same_topic, sql.lit(col=False)))
    return marked.where(~sql.col("is_odd")).select(*SAMPLES.column_names)


def with_epoch(samples: DataFrame) -> DataFrame:
    """Samples with what they add to the one before.

    `epoch` is how often the log of the partition had restarted by then; `new_records` and `new_bytes` are how far it
    grew since the sample before, NULL where something else happened to it too.
    """
    grew = only_grew()
    same_log = sql.col("is_reset") == 0
    return samples.withColumn("is_reset", is_reset()).select(
        *SAMPLES.column_names,
        sql.sum("is_reset").over(_up_to_here()).cast("int").alias("epoch"),
        ((sql.col("taken_ms") - _before("taken_ms")) / 1000.0).alias("seconds"),
        sql.when(same_log, sql.col("end_offset") - _before("end_offset")).alias("new_records"),
        sql.when(grew, sql.col("end_offset") - _before("end_offset")).alias("sized_records"),
        sql.when(grew, sql.col("size_bytes") - _before("size_bytes")).alias("new_bytes"),
    )


def is_reset() -> Column:
    """1 where a sample is of another log than the one before: other topic id, or an end offset that went back."""
    other_topic = sql.col("topic_id") != _before("topic_id")
    went_back = sql.col("end_offset") < _before("end_offset")
    return sql.coalesce(sql.when(other_topic | went_back, 1), sql.lit(0))


def only_grew() -> Column:
    """Whether, since the sample before, nothing happened to the log but that records were added."""
    same_leader = sql.col("leader") == _before("leader")
    nothing_removed = (sql.col("start_offset") == _before("start_offset")) & (
        sql.col("size_bytes") >= _before("size_bytes")
    )
    return same_leader & nothing_removed & (is_reset() == 0)


def verdict() -> Column:
    """What an interval is good for, in the words of the schema; the cases exclude each other and leave none out."""
    has_before = sql.col("seconds").isNotNull()
    same_log = sql.col("new_records").isNotNull()
    is_gap = sql.coalesce(sql.col("seconds") > GAP * sql.col("usual_s"), sql.lit(col=False))
    return (
        sql.when(~has_before, "first")
        .when(has_before & ~same_log, "reset")
        .when(same_log & is_gap, "gap")
        .when(same_log & ~is_gap, "good")
    )


def _history() -> WindowSpec:
    return Window.partitionBy(*PARTITION_KEY).orderBy("taken_ms")


def _up_to_here() -> WindowSpec:
    return _history().rowsBetween(Window.unboundedPreceding, Window.currentRow)


def _before(name: str) -> Column:
    return sql.first(name).over(_history().rowsBetween(-1, -1))
