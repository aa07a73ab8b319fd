"""What is in the records of topics, as hashes: read through Spark's Kafka source.

A record is hashed with its timestamp, key, value and headers by xxHash64 (Spark's `xxhash64`): 64 bits against
accidents, not against somebody who means harm.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.types import StructType

from kreassign.errors import DataError
from kreassign.pipeline.tables.audit_schemas import AUDITED_PARTITIONS, RECORD_DIGESTS
from kreassign.pipeline.tables.spark_io import struct_type

SOURCE = "kafka"
_TOLD = 8  # columns of `audited_partitions` that the cluster tells; the others are counted


@dataclass(frozen=True, slots=True)
class AuditedPartition:
    """A partition to read, from its first offset to that after the last one."""

    topic: str
    partition: int
    start_offset: int
    end_offset: int
    cleanup_policy: str
    topic_id: str | None = None


def kafka_records(spark: SparkSession, partitions: Iterable[AuditedPartition], client: Mapping[str, str]) -> DataFrame:
    """The records of these partitions as Spark's Kafka source gives them, headers too.

    `client` are properties of a Kafka consumer, at least `bootstrap.servers`. Raises DataError when the source is not
    on the class path.
    """
    wanted = [one for one in partitions if one.end_offset > one.start_offset]
    if not wanted:
        return spark.createDataFrame([], _SOURCE_COLUMNS)
    reader = (
        spark.read.format(SOURCE)
        .options(**{f"kafka.{name}": value for name, value in client.items()})
        .option("includeHeaders", "true")
        .option("assign", _assigned(wanted))
        .option("startingOffsets", _offsets({(one.topic, one.partition): one.start_offset for one in wanted}))
        .option("endingOffsets", _offsets({(one.topic, one.partition): one.end_offset for one in wanted}))
    )
    try:
        return reader.load()
    except AnalysisException as error:
        if "Failed to find data source" not in str(error):
            raise
        raise DataError("Spark has no Kafka source; name the folder of its jars with --jars") from error


def record_digests(records: DataFrame, label: str) -> DataFrame:
    """Table `record_digests` of a reading."""
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
    digests: DataFrame, partitions: Iterable[AuditedPartition], label: str, taken_ms: int
) -> DataFrame:
    """Table `audited_partitions` of a reading: one row for each partition, also for empty ones."""
    placed = sql.xxhash64("offset", "content").cast("decimal(38,0)")
    read = digests.groupBy("topic", "partition").agg(
        sql.count("*").alias("record_count"), sql.sum(placed).cast("string").alias("checksum")
    )
    told = digests.sparkSession.createDataFrame(
        [
            (
                label,
                taken_ms,
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


def _assigned(partitions: Iterable[AuditedPartition]) -> str:
    numbers: dict[str, list[int]] = {}
    for one in partitions:
        numbers.setdefault(one.topic, []).append(one.partition)
    return json.dumps(numbers)


def _offsets(offsets: Mapping[tuple[str, int], int]) -> str:
    by_topic: dict[str, dict[str, int]] = {}
    for (topic, partition), offset in offsets.items():
        by_topic.setdefault(topic, {})[str(partition)] = offset
    return json.dumps(by_topic)


_SOURCE_COLUMNS = (
    "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, timestampType int, "
    "headers array<struct<key: string, value: binary>>"
)
