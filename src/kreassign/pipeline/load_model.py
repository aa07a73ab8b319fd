"""DataFrame → DataFrame. From snapshots and samples to size and write rate per partition.

How the rates come about, for the samples of one partition since its log last began anew:

    write_records_per_s = (last end offset - first end offset) / (last time - first time)
    write_bytes_per_s   = write_records_per_s * bytes_per_record   (0 when there were no records)

and bytes_per_record is, by the first of these that can be told (`record_size_basis`),

    growth  sum of size differences / sum of end offset differences, over the pairs of neighbouring samples between
            which the log only grew: same leader, same start offset, size not smaller
    log     size / (end offset - start offset), at the last sample

What that is worth. The rate of records is exact for the span, up to the time that a round of questions takes: a tenth
of a second over a span of ten seconds is one per cent. Offsets count what a log holds, so markers of transactions
count as records. `growth` is the size of the records that just came, up to what came between the question for the
offset and that for the size; it is too small where the log is compacted and the cleaner ran meanwhile. `log` lags
behind when records have lately become larger or smaller (by any factor), is too large when records were deleted up to
an offset inside a segment or markers are gone, and too small when the log is compacted. Segments are on disk as they
were sent, so the bytes are compressed bytes, which is what replication and a move copy too.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as sql

from kreassign.pipeline.schemas import LOAD_MODEL, SAMPLES

_PARTITION_KEY = ("cluster_id", "topic", "partition")
_SNAPSHOT_KEY = ("cluster_id", "snapshot_id")


def latest_snapshots(clusters: DataFrame) -> DataFrame:
    """The last complete snapshot of each cluster: cluster_id, snapshot_id."""
    newest = sql.max(sql.struct("taken_ms", "snapshot_id")).alias("newest")
    return clusters.groupBy("cluster_id").agg(newest).select("cluster_id", sql.col("newest.snapshot_id"))


def in_snapshots(rows: DataFrame, snapshots: DataFrame) -> DataFrame:
    """The rows of a snapshot table that belong to the given snapshots."""
    return rows.join(snapshots, on=list(_SNAPSHOT_KEY), how="left_semi").select(*rows.columns)


def load_model(partitions: DataFrame, replicas: DataFrame, samples: DataFrame) -> DataFrame:
    """Table `load_model`: one row per given partition; `partitions` and `replicas` are of one snapshot per cluster."""
    sizes = partition_sizes(replicas)
    rates = sample_rates(samples)
    joined = partitions.join(sizes, on=[*_SNAPSHOT_KEY, "topic", "partition"], how="left").join(
        rates, on=list(_PARTITION_KEY), how="left"
    )
    return (
        joined.withColumn("sample_count", sql.coalesce("sample_count", sql.lit(0)))
        .withColumn("span_s", sql.coalesce("span_s", sql.lit(0.0)))
        .withColumn("reset_count", sql.coalesce("reset_count", sql.lit(0)))
        .withColumn("write_bytes_per_s", write_bytes_per_s())
        .withColumn("coverage", coverage())
        .select(*LOAD_MODEL.column_names)
    )


def partition_sizes(replicas: DataFrame) -> DataFrame:
    """Size per partition: of the leader's copy, else of the largest; keyed by snapshot, topic and partition."""
    leader_size = sql.max(sql.when(sql.col("is_leader"), sql.col("size_bytes")))
    return (
        replicas.groupBy(*_SNAPSHOT_KEY, "topic", "partition")
        .agg(sql.coalesce(leader_size, sql.max("size_bytes")).alias("size_bytes"))
        .select(*_SNAPSHOT_KEY, "topic", "partition", "size_bytes")
    )


def one_per_round(samples: DataFrame) -> DataFrame:
    """Samples without duplicates: a round that was stored twice, or copied, counts once."""
    key = ("cluster_id", "taken_ms", "topic", "partition")
    rest = [name for name in SAMPLES.column_names if name not in key]
    # Two rows that differ cannot both be right; the one that is ahead was seen.
    ahead = sql.max(sql.struct("end_offset", *(name for name in rest if name != "end_offset"))).alias("ahead")
    return samples.groupBy(*key).agg(ahead).select(*key, *(sql.col(f"ahead.{name}") for name in rest))


def with_epoch(samples: DataFrame) -> DataFrame:
    """Samples with what they add to the one before.

    `epoch` is how often the log of the partition had begun anew by then; `new_records` and `new_bytes` are how far it
    grew since the sample before, NULL where something else happened to it too.
    """
    grew = only_grew()
    return samples.withColumn("is_reset", is_reset()).select(
        *SAMPLES.column_names,
        sql.sum("is_reset").over(_up_to_here()).cast("int").alias("epoch"),
        sql.when(grew, sql.col("end_offset") - _before("end_offset")).alias("new_records"),
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


def sample_rates(samples: DataFrame) -> DataFrame:
    """Rates per partition since its log last began anew; see the top of this module."""
    span_s = (sql.col("last.taken_ms") - sql.col("first.taken_ms")) / 1000.0
    written = sql.col("last.end_offset") - sql.col("first.end_offset")
    kept = sql.col("last.end_offset") - sql.col("last.start_offset")
    has_grown = (sql.col("new_records") > 0) & (sql.col("new_bytes") > 0)
    by_growth = sql.when(has_grown, sql.col("new_bytes") / sql.col("new_records"))
    by_log = sql.when(kept > 0, sql.col("last.size_bytes") / kept)
    basis = sql.coalesce(sql.when(by_growth.isNotNull(), "growth"), sql.when(by_log.isNotNull(), "log"))
    return latest_epochs(with_epoch(one_per_round(samples))).select(
        *_PARTITION_KEY,
        sql.coalesce(by_growth, by_log).alias("bytes_per_record"),
        basis.alias("record_size_basis"),
        sql.when(span_s > 0, written / span_s).alias("write_records_per_s"),
        "sample_count",
        span_s.alias("span_s"),
        sql.col("epoch").alias("reset_count"),
    )


def latest_epochs(samples: DataFrame) -> DataFrame:
    """First and last sample, their count and the growth between them in the latest epoch of each partition."""
    seen = sql.struct("taken_ms", "start_offset", "end_offset", "size_bytes")
    figures = {
        "first": sql.min(seen),
        "last": sql.max(seen),
        "sample_count": sql.count("*").cast("int"),
        "new_records": sql.sum("new_records"),
        "new_bytes": sql.sum("new_bytes"),
    }
    per_epoch = samples.groupBy(*_PARTITION_KEY, "epoch").agg(*(each.alias(name) for name, each in figures.items()))
    latest = sql.max(sql.struct("epoch", *figures)).alias("latest")
    return per_epoch.groupBy(*_PARTITION_KEY).agg(latest).select(*_PARTITION_KEY, "latest.*")


def write_bytes_per_s() -> Column:
    """Records per second times their size; 0 without records, however large they would be."""
    records, size = sql.col("write_records_per_s"), sql.col("bytes_per_record")
    return sql.when(records == 0, 0.0).when(records != 0, records * size)


def coverage() -> Column:
    """What the rates rest on, in the words of the schema; the cases exclude each other and leave none out."""
    several = sql.col("sample_count") > 1
    one = sql.col("sample_count") == 1
    has_bytes = sql.col("write_bytes_per_s").isNotNull()
    return (
        sql.when(several & has_bytes, "measured")
        .when(several & ~has_bytes, "no size")
        .when(one & (sql.col("reset_count") > 0), "reset")
        .when(one & (sql.col("reset_count") == 0), "one sample")
        .when(sql.col("sample_count") == 0, "no samples")
    )


def _history() -> WindowSpec:
    return Window.partitionBy(*_PARTITION_KEY).orderBy("taken_ms")


def _up_to_here() -> WindowSpec:
    return _history().rowsBetween(Window.unboundedPreceding, Window.currentRow)


def _before(name: str) -> Column:
    return sql.first(name).over(_history().rowsBetween(-1, -1))
