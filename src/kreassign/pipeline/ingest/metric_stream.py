"""A Kafka topic of metrics → table `metrics`, batch after batch, each record exactly once.

Spark notes in the checkpoint which offsets a batch has before it begins, so that a batch that was broken off comes
again with the same offsets and the same number. The tables remember the number of the last batch: done twice it is as
good as done once. What producers sent twice is left out within the watermark; what comes later than the watermark is
left out, too, and counted. How many of each, table `metric_batches` tells.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql import types as spark_types
from pyspark.sql.streaming.query import StreamingQuery

from kreassign.errors import InputError
from kreassign.pipeline.ingest.metric_records import RecordForm, read_record
from kreassign.pipeline.tables.parquet import arrow_schema
from kreassign.pipeline.tables.schemas import METRIC_BATCHES, METRICS, METRICS_QUARANTINE, Row
from kreassign.pipeline.tables.spark_io import struct_type, write_batch

CHECKPOINT = "_metrics_checkpoint"
AHEAD_MS = 3_600_000
"""A metric that claims to be further ahead of its record is bad: it would take the watermark with it."""
_KEY = METRICS.key
_STREAM = "kreassign stream-metrics"
_EXTRA = ("reason", "raw")


@dataclass(frozen=True, slots=True)
class MetricTopic:
    """Where the records are, what they are, and whose; `client` are properties of a Kafka consumer, as for security."""

    bootstrap_servers: str
    topic: str
    form: RecordForm
    cluster_id: str
    client: Mapping[str, str] = field(default_factory=dict)

    @property
    def options(self) -> dict[str, str]:
        """What Spark's Kafka source has to know; the addresses win over those among the properties."""
        client = {**self.client, "bootstrap.servers": self.bootstrap_servers}
        return {
            **{f"kafka.{name}": value for name, value in client.items()},
            "subscribe": self.topic,
            "startingOffsets": "earliest",
        }


@dataclass(frozen=True, slots=True)
class BatchCount:
    """Records of one batch by what became of them."""

    number: int
    good: int
    bad: int

    def __str__(self) -> str:
        return f"batch {self.number}: {self.good} rows, {self.bad} bad (see table {METRICS_QUARANTINE.name})"


def kafka_records(spark: SparkSession, source: MetricTopic) -> DataFrame:
    """The topic as a stream of value and timestamp, from its begin; needs the jars of Spark's Kafka source."""
    return spark.readStream.format("kafka").options(**source.options).load().select("value", "timestamp")


def metrics_of(records: DataFrame, source: MetricTopic, watermark: str) -> DataFrame:
    """Columns of `metrics` with `reason` and `raw` for bad records; what comes twice or late is left out."""
    extra = [spark_types.StructField(name, spark_types.StringType(), nullable=True) for name in _EXTRA]
    loose = [
        spark_types.StructField(field.name, field.dataType, nullable=True) for field in struct_type(METRICS).fields
    ]
    at = spark_types.StructField("at_ms", spark_types.LongType(), nullable=True)
    read = records.select("value", sql.unix_millis("timestamp").alias("written_ms")).mapInArrow(
        partial(_read, form=source.form, cluster_id=source.cluster_id), spark_types.StructType([*loose, *extra, at])
    )
    timed = read.withColumn("at", sql.timestamp_millis("at_ms")).withWatermark("at", watermark)
    return timed.dropDuplicatesWithinWatermark([*_KEY, "raw"]).select(*METRICS.column_names, *_EXTRA)


def start(rows: DataFrame, data_dir: Path, tell: Callable[[BatchCount], None], *, once: bool) -> StreamingQuery:
    """Start storing; with `once` the query ends when it has read what was there at its begin."""

    def store(batch: DataFrame, number: int) -> None:
        tell(store_batch(batch, data_dir, number))

    writer = rows.writeStream.foreachBatch(store).option("checkpointLocation", str(data_dir / CHECKPOINT))
    return (writer.trigger(availableNow=True) if once else writer.trigger(processingTime="10 seconds")).start()


def store_batch(batch: DataFrame, data_dir: Path, number: int) -> BatchCount:
    """Add the rows of a batch to the tables, unless they are there."""
    kept = batch.persist()
    is_bad = sql.col("reason").isNotNull()
    bad = kept.where(is_bad).select(
        sql.lit(METRICS.name).alias("table_name"), "reason", sql.col("raw").alias("row_json")
    )
    good = kept.where(~is_bad).select(*METRICS.column_names)
    identity = _identity(batch.sparkSession)
    write_batch(bad, data_dir, METRICS_QUARANTINE, identity, number)
    write_batch(good, data_dir, METRICS, identity, number)
    told = BatchCount(number, good.count(), bad.count())
    kept.unpersist()
    _write_counts(batch.sparkSession, data_dir, f"{identity}, stored", number, {"good": told.good, "bad": told.bad})
    return told


def _late_counts(query: StreamingQuery) -> dict[int, int]:
    """By batch, how many rows came later than the watermark; of the batches that Spark remembers."""
    return {
        progress["batchId"]: sum(operator["numRowsDroppedByWatermark"] for operator in progress["stateOperators"])
        for progress in query.recentProgress
    }


def watch(query: StreamingQuery, spark: SparkSession, data_dir: Path, every_s: int) -> int:
    """Until the query ends, write down what was late, now and then; how many rows that were in all."""
    late: dict[int, int] = {}
    is_over = False
    while not is_over:
        is_over = bool(query.awaitTermination(every_s))
        for number, count in _late_counts(query).items():
            if number not in late:
                _write_counts(spark, data_dir, f"{_STREAM} {query.id}, late", number, {"late": count})
                late[number] = count
    return sum(late.values())


def _identity(spark: SparkSession) -> str:
    """The stream whose batch this is: with another checkpoint its numbers begin again."""
    return f"{_STREAM} {spark.sparkContext.getLocalProperty('sql.streaming.queryId')}"


def _write_counts(spark: SparkSession, data_dir: Path, identity: str, number: int, counts: Mapping[str, int]) -> None:
    rows = spark.createDataFrame([(number, *count) for count in counts.items()], struct_type(METRIC_BATCHES))
    write_batch(rows, data_dir, METRIC_BATCHES, identity, number)


def _read(batches: Iterable[pa.RecordBatch], form: RecordForm, cluster_id: str) -> Iterator[pa.RecordBatch]:
    texts = [pa.field(name, pa.string()) for name in _EXTRA]
    schema = pa.schema([*arrow_schema(METRICS), *texts, pa.field("at_ms", pa.int64())])
    for batch in batches:
        pairs = zip(batch.column("value").to_pylist(), batch.column("written_ms").to_pylist(), strict=True)
        rows = (_row(value, written_ms, form, cluster_id) for value, written_ms in pairs)
        yield pa.RecordBatch.from_pylist([row for row in rows if row is not None], schema)


def _row(value: bytes | None, written_ms: int, form: RecordForm, cluster_id: str) -> Row | None:
    try:
        row = read_record(value, form, cluster_id, latest_ms=written_ms + AHEAD_MS)
    except InputError as error:
        return {"reason": str(error), "raw": (value or b"").hex(), "at_ms": written_ms}
    return None if row is None else row | {"at_ms": row["taken_ms"]}
