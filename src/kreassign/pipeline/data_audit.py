"""Compare two readings of partitions record by record, to find records lost or altered in between.

A reading hashes each record with its timestamp, key, value and headers by xxHash64 (Spark's `xxhash64`): 64 bits
detect accidents, not forgery. The records come through Spark's Kafka source.

The comparison separates records that may be gone from lost ones: those before the log's start now (retention), and
in compacted topics those with a later record of the same key, or without a value. Appended records are no difference.
Every other record must be at its offset with its content. Where readings differ, contents are matched regardless of
offsets, as multisets: matches are displaced (records in another order, or moved up by a missing one), the rest is
lost or new if on one side, altered if on both.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.types import StructType

from kreassign.errors import DataError
from kreassign.pipeline.spark_session import reading_kafka
from kreassign.pipeline.tables.delta import DataDir
from kreassign.pipeline.tables.schemas import AUDITED_PARTITIONS, DATA_AUDIT, RECORD_DIGESTS, Row
from kreassign.pipeline.tables.spark_io import read_table, struct_type, write_table

_PLACE = ("topic", "partition")
_PROBLEMS = ("lost", "duplicated", "added", "altered", "displaced")


@contextmanager
def data_audit(partitions: DataFrame, digests: DataFrame, before: str, after: str) -> Iterator[DataFrame]:
    """Compute table `data_audit` of two readings, from tables `audited_partitions` and `record_digests`.

    The differing offsets stay cached within the context: they are used four times.
    """
    spans = _spans(partitions, before, after)
    both = _of(digests, before, is_first=True).unionByName(_of(digests, after, is_first=False))
    rows = both.join(sql.broadcast(spans), list(_PLACE))
    differing = _differing(rows).persist()
    try:
        found = spans
        for counts in (_counted(rows), _placed(differing), _matched(differing.where("not is_explained"), rows)):
            found = found.join(counts, list(_PLACE), "left")
        yield found.fillna(0, [name for name in _COUNTS if name not in ("compared_from", "compared_to")]).select(
            sql.lit(before).alias("before"), sql.lit(after).alias("after"), *_PLACE, _verdict().alias("verdict"),
            *_COUNTS, "first_offset",
        ).select(*DATA_AUDIT.column_names)  # fmt: skip
    finally:
        differing.unpersist()


_COUNTS = (
    "compared_from", "compared_to", "record_count", "expired", "compacted", "appended", "lost", "duplicated", "added",
    "altered", "displaced",
)  # fmt: skip


def _spans(partitions: DataFrame, before: str, after: str) -> DataFrame:
    """Offsets of the first reading to compare, per partition."""
    told = partitions.select(*_PLACE, "label", "start_offset", "end_offset", "topic_id", "cleanup_policy")
    first = told.where(sql.col("label") == before)
    second = told.where(sql.col("label") == after).select(
        *_PLACE,
        sql.col("start_offset").alias("start_after"),
        sql.col("topic_id").alias("id_after"),
        sql.col("cleanup_policy").alias("policy_after"),
    )
    return first.join(second, list(_PLACE), "left").select(
        *_PLACE,
        sql.coalesce(sql.greatest("start_offset", "start_after"), "start_offset").alias("compared_from"),
        sql.col("end_offset").alias("compared_to"),
        sql.coalesce(
            sql.contains(sql.concat("cleanup_policy", "policy_after"), sql.lit("compact")), sql.lit(col=False)
        ).alias("is_compacted"),
        sql.col("start_after").isNull().alias("is_gone"),
        sql.coalesce(sql.col("topic_id") != sql.col("id_after"), sql.lit(col=False)).alias("is_another"),
    )


def _of(digests: DataFrame, label: str, *, is_first: bool) -> DataFrame:
    return digests.where(sql.col("label") == label).drop("label").withColumn("is_first", sql.lit(is_first))


def _counted(rows: DataFrame) -> DataFrame:
    """Count the records of each partition by where they are in the span to compare."""
    return rows.groupBy(*_PLACE).agg(
        sql.count_if(sql.col("is_first") & _inside()).alias("record_count"),
        sql.count_if(sql.col("is_first") & (sql.col("offset") < sql.col("compared_from"))).alias("expired"),
        sql.count_if(_is_later()).alias("appended"),
    )


def _inside() -> Column:
    return (sql.col("offset") >= sql.col("compared_from")) & (sql.col("offset") < sql.col("compared_to"))


def _is_later() -> Column:
    return ~sql.col("is_first") & (sql.col("offset") >= sql.col("compared_to"))


def _differing(rows: DataFrame) -> DataFrame:
    """Offsets where the readings differ, with both contents and whether compaction explains the missing record."""
    offsets = (
        rows.where(_inside())
        .groupBy(*_PLACE, "offset")
        .agg(
            *(_only(name, sql.col("is_first")).alias(name) for name in ("content", "key_hash", "is_tombstone")),
            _only("content", ~sql.col("is_first")).alias("content_after"),
            sql.any_value("is_compacted").alias("is_compacted"),
        )
    )
    differ = offsets.where(~sql.col("content").eqNullSafe(sql.col("content_after")))
    after = rows.where(~sql.col("is_first") & sql.col("is_compacted"))
    last = after.groupBy(*_PLACE, "key_hash").agg(sql.max("offset").alias("last_of_key"))
    superseded = sql.col("last_of_key") > sql.col("offset")
    explained = sql.col("is_compacted") & sql.col("content_after").isNull() & (superseded | sql.col("is_tombstone"))
    return differ.join(last, [*_PLACE, "key_hash"], "left").withColumn(
        "is_explained", sql.coalesce(explained, sql.lit(col=False))
    )


def _only(column: str, where: Column) -> Column:
    """Value of a column in the one reading of an offset, NULL if it has no such record."""
    return sql.max(sql.when(where, sql.col(column)))


def _placed(differing: DataFrame) -> DataFrame:
    """Count the records that compaction took, and find the first offset that nothing explains, per partition."""
    return differing.groupBy(*_PLACE).agg(
        sql.count_if("is_explained").alias("compacted"),
        sql.min(sql.when(~sql.col("is_explained"), sql.col("offset"))).alias("first_offset"),
    )


def _matched(wrong: DataFrame, rows: DataFrame) -> DataFrame:
    """Compare contents of the differing offsets as multisets; missing ones may also match appended records.

    Counts lost, added, altered, displaced and duplicated records per partition. Only records of partitions with
    differences are looked at again.
    """
    there = rows.join(sql.broadcast(wrong.select(*_PLACE).distinct()), list(_PLACE), "left_semi")
    contents = (
        _contents(wrong, "content", "missing")
        .unionAll(_contents(wrong, "content_after", "surplus"))
        .unionAll(_contents(there.where(_is_later()), "content", "later"))
        .unionAll(_contents(there.where("is_first"), "content", "known"))
    )
    kinds = ("missing", "surplus", "later", "known")
    both = (
        contents.groupBy(*_PLACE, "content")
        .agg(*(sql.count_if(sql.col("kind") == kind).alias(kind) for kind in kinds))
        .where("missing > 0 or surplus > 0")
        .withColumn("over", sql.greatest(sql.col("surplus") - sql.col("missing"), sql.lit(0)))
        .withColumn("displaced", sql.least(sql.col("missing"), sql.col("surplus") + sql.col("later")))
    )
    is_known = sql.col("known") > 0
    counts = both.groupBy(*_PLACE).agg(
        sql.sum("displaced").alias("displaced"),
        sql.sum(sql.col("missing") - sql.col("displaced")).alias("missing"),
        sql.sum(sql.when(is_known, sql.col("over")).otherwise(0)).alias("duplicated"),
        sql.sum(sql.when(is_known, 0).otherwise(sql.col("over"))).alias("strange"),
    )
    altered = sql.least("missing", "strange")
    return counts.select(
        *_PLACE,
        "displaced",
        "duplicated",
        altered.alias("altered"),
        (sql.col("missing") - altered).alias("lost"),
        (sql.col("strange") - altered).alias("added"),
    )


def _contents(rows: DataFrame, column: str, kind: str) -> DataFrame:
    """Contents of one kind, a row for each record."""
    content = sql.col(column).alias("content")
    return rows.where(sql.col(column).isNotNull()).select(*_PLACE, content, sql.lit(kind).alias("kind"))


def _verdict() -> Column:
    words = [sql.when(sql.col(name) > 0, sql.lit(name)) for name in _PROBLEMS]
    gone = sql.when(sql.col("is_gone"), sql.lit("not read again"))
    another = sql.when(sql.col("is_another"), sql.lit("another topic of the same name"))
    said = sql.concat_ws(", ", gone, another, *words)
    return sql.when(said == "", sql.lit("same")).otherwise(said)


SOURCE = "kafka"
_TOLD = 9  # columns of `audited_partitions` that come from the cluster; the others are counted


@dataclass(frozen=True, slots=True)
class AuditedPartition:
    """A partition to read, from its first offset up to its end offset (exclusive)."""

    topic: str
    partition: int
    start_offset: int
    end_offset: int
    cleanup_policy: str
    topic_id: str | None = None


def kafka_records(spark: SparkSession, partitions: Iterable[AuditedPartition], client: Mapping[str, str]) -> DataFrame:
    """Read the records of these partitions, with headers, through Spark's Kafka source.

    `client` has properties of a Kafka consumer, at least `bootstrap.servers`. Raises DataError if the source is not on
    the class path.
    """
    wanted: dict[str, list[AuditedPartition]] = defaultdict(list)
    for one in partitions:
        if one.end_offset > one.start_offset:
            wanted[one.topic].append(one)
    if not wanted:
        return spark.createDataFrame([], _SOURCE_COLUMNS)

    def offsets(end: str) -> str:
        return json.dumps(
            {topic: {str(one.partition): getattr(one, end) for one in its} for topic, its in wanted.items()}
        )

    reader = (
        spark.read.format(SOURCE)
        .options(**{f"kafka.{name}": value for name, value in client.items()})
        .option("includeHeaders", "true")
        .option("assign", json.dumps({topic: [one.partition for one in its] for topic, its in wanted.items()}))
        .option("startingOffsets", offsets("start_offset"))
        .option("endingOffsets", offsets("end_offset"))
    )
    with reading_kafka(spark):
        return reader.load()


def record_digests(records: DataFrame, label: str) -> DataFrame:
    """Table `record_digests` of one reading."""
    content = sql.xxhash64("timestamp", "timestampType", "key", "value", sql.to_json("headers"))
    return records.select(
        sql.lit(label).alias("label"),
        "topic",
        "partition",
        "offset",
        content.alias("content"),
        sql.when(sql.col("key").isNotNull(), sql.xxhash64("key")).alias("key_hash"),
        sql.col("value").isNull().alias("is_tombstone"),
    ).select(*RECORD_DIGESTS.column_names)


def audited_partitions(
    digests: DataFrame, partitions: Iterable[AuditedPartition], label: str, taken_ms: int, cluster_id: str
) -> DataFrame:
    """Table `audited_partitions` of one reading: one row per partition, also for empty ones."""
    placed = sql.xxhash64("offset", "content").cast("decimal(38,0)")
    read = digests.groupBy("topic", "partition").agg(
        sql.count("*").alias("record_count"), sql.sum(placed).cast("string").alias("checksum")
    )
    told = digests.sparkSession.createDataFrame(
        [
            (
                label,
                taken_ms,
                cluster_id,
                one.topic,
                one.topic_id,
                one.cleanup_policy,
                one.partition,
                one.start_offset,
                one.end_offset,
            )
            for one in partitions
        ],
        StructType(struct_type(AUDITED_PARTITIONS).fields[:_TOLD]),
    )
    whole = told.join(read, ["topic", "partition"], "left").fillna({"record_count": 0, "checksum": "0"})
    return whole.select(*AUDITED_PARTITIONS.column_names)


_SOURCE_COLUMNS = (
    "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, timestampType int, "
    "headers array<struct<key: string, value: binary>>"
)


def read_records(
    spark: SparkSession,
    data_dir: DataDir,
    label: str,
    partitions: Sequence[AuditedPartition],
    *,
    client: Mapping[str, str],
    taken_ms: int,
    cluster_id: str,
) -> int:
    """Make the part of `record_digests` and `audited_partitions` with this label; how many records were read.

    A reading of the same label is replaced; if this one breaks off after that, there is none. Raises DataError when the
    cluster cannot be read through Spark.
    """
    found = record_digests(kafka_records(spark, partitions, client), label)
    write_table(found, data_dir, RECORD_DIGESTS, parts=[label], sealed_by=AUDITED_PARTITIONS)
    digests = read_table(spark, data_dir, RECORD_DIGESTS).where(sql.col("label") == label)
    audited = audited_partitions(digests, partitions, label, taken_ms, cluster_id)
    write_table(audited, data_dir, AUDITED_PARTITIONS, parts=[label])
    return digests.count()


def compare_readings(spark: SparkSession, data_dir: DataDir, before: str, after: str) -> list[Row]:
    """Make table `data_audit` of two readings; its rows by topic and partition.

    Raises DataError when there is no reading of one of the labels.
    """
    partitions = read_table(spark, data_dir, AUDITED_PARTITIONS)
    labels = {row["label"] for row in partitions.select("label").distinct().collect()}
    for label in (before, after):
        if label not in labels:
            raise DataError(
                f"there is no reading {label!r}, only {', '.join(sorted(labels))}; make it with "
                f"`kreassign audit records --label {label}`; a reading made now shows only the present"
            )
    with data_audit(partitions, read_table(spark, data_dir, RECORD_DIGESTS), before, after) as found:
        write_table(found, data_dir, DATA_AUDIT)
    rows = read_table(spark, data_dir, DATA_AUDIT).orderBy("topic", "partition").collect()
    return [row.asDict() for row in rows]
