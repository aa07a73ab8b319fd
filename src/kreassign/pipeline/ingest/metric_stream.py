"""Read a Kafka topic of metrics into table `metrics`, batch after batch, each metric exactly once.

Spark notes a batch's offsets in the checkpoint before it begins, so an interrupted batch comes again, and all of them
after the checkpoint is lost. The tables stay free of duplicates because rows are merged by their key
(`tables/commits.py`), not because of the checkpoint. So there is no state, and no watermark: a record is judged by
itself, however late it comes and whatever the clocks of other brokers say.

The counts of a batch are stored first, and only once: if the job is killed between counts and metrics, the repeated
batch still sees the metrics as new. In the other order it would find them stored, and count them as sent twice.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from urllib.parse import quote

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.errors import StreamingQueryException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql import types as spark_types

from kreassign.pipeline.ingest.metric_records import (
    BATCH_KEY,
    CLOCK_AHEAD,
    METRIC_RULES,
    NO_VALUE,
    BatchCount,
    MetricBatch,
    RecordForm,
    count_rows,
    decode,
    sort_records,
)
from kreassign.pipeline.load.checks import first_broken, is_broken
from kreassign.pipeline.spark_session import reading_kafka
from kreassign.pipeline.tables.arrow import arrow_schema
from kreassign.pipeline.tables.commits import merge_rows, rows_at
from kreassign.pipeline.tables.delta import DataDir, place
from kreassign.pipeline.tables.schemas import BIGINT, INT, METRIC_BATCHES, METRICS, METRICS_QUARANTINE, STRING
from kreassign.pipeline.tables.spark_io import struct_type

# Records of a topic of metrics → the columns of table `metrics`, with the reason for bad records.
#
# JSON records are objects with the columns of table `metrics`; `cluster_id`, `topic` and `partition` are optional. They
# are read as variants, which keep JSON's types: a Spark schema would turn a number into a text, and would not say which
# column it could not read. Binary records are decoded in Arrow batches.

RECORD = ("source_partition", "source_offset", "written_ms", "record")
"""Columns kept of each record beside its metric: its place, time and bytes."""
JUDGED = (*METRICS.column_names, "reason", "is_ahead", *RECORD)
"""Columns of judged records. `reason` is NULL for a good one; `is_ahead` says that `CLOCK_AHEAD` is true of it."""

_LARGEST = {BIGINT: 2**63 - 1, INT: 2**31 - 1}
_NUMBERS = ("BIGINT", "DOUBLE", "FLOAT")
# Half of a surrogate pair, which is no character; Spark would replace it by a question mark.
_HALF = r"\\u[dD][89a-fA-F]"
_FIELDS = tuple(column for column in METRICS.columns if column.name != "cluster_id")


def judged_metrics(records: DataFrame, form: RecordForm, cluster_id: str) -> DataFrame:
    """Compute columns `JUDGED` from columns `RECORD`; `cluster_id` is for records that do not name a cluster."""
    read = _json_metrics(records, cluster_id) if form is RecordForm.JSON else _binary_metrics(records, cluster_id)
    reason = sql.coalesce("reason", first_broken(METRIC_RULES))
    is_ahead = sql.coalesce(is_broken(CLOCK_AHEAD), sql.lit(col=False))
    return read.withColumns({"reason": reason, "is_ahead": is_ahead}).select(*JUDGED)


def _json_metrics(records: DataFrame, cluster_id: str) -> DataFrame:
    text = sql.col("record").cast("string")
    # Wrapped in a list: for a bare object, trailing text would be ignored.
    parsed = records.withColumn("_json", sql.try_parse_json(sql.concat(sql.lit("["), text, sql.lit("]"))))
    named = sql.nullif(_field("cluster_id", STRING), sql.lit(""))
    columns = {column.name: _field(column.name, column.type) for column in _FIELDS}
    return parsed.select(
        sql.coalesce(named, sql.lit(cluster_id)).alias("cluster_id"),
        *(value.alias(name) for name, value in columns.items()),
        sql.coalesce(_not_an_object(text), *_wrong_fields(text)).alias("reason"),
        *RECORD,
    )


def _field(name: str, kind: str) -> Column:
    return sql.try_variant_get("_json", f"$[0].{name}", kind)


def _kind(path: str) -> Column:
    """JSON type of a part of the document; NULL if it is missing."""
    return sql.schema_of_variant(sql.try_variant_get("_json", path, "variant"))


def _not_an_object(text: Column) -> Column:
    is_json = sql.is_valid_utf8(text) & sql.col("_json").isNotNull() & _kind("$[1]").isNull()
    return sql.coalesce(
        sql.when(sql.col("record").isNull(), NO_VALUE),
        sql.when(~is_json, "a record is not JSON"),
        sql.when(
            ~sql.coalesce(_kind("$[0]").startswith("OBJECT"), sql.lit(col=False)), "a record is not a JSON object"
        ),
    )


def _wrong_fields(text: Column) -> Iterator[Column]:
    has_half = text.rlike(_HALF)
    for column in METRICS.columns:
        kind = _kind(f"$[0].{column.name}")
        is_absent = sql.coalesce(kind, sql.lit("VOID")) == "VOID"
        if not column.nullable and column.name != "cluster_id":
            yield sql.when(is_absent, f"{column.name} is missing")
        if column.type == STRING:
            is_text = (kind == "STRING") & ~(has_half & _field(column.name, STRING).contains("?"))
            yield sql.when(~is_absent & ~is_text, f"{column.name} is not a text")
        elif column.type in _LARGEST:
            largest = _LARGEST[column.type]
            is_whole = (kind == "BIGINT") & (_field(column.name, BIGINT).between(0, largest))
            yield sql.when(~is_absent & ~is_whole, f"{column.name} is not a whole number from 0 to {largest}")
        else:
            is_number = kind.isin(*_NUMBERS) | kind.startswith("DECIMAL")
            yield sql.when(~is_absent & ~is_number, f"{column.name} is not a number")


def _binary_metrics(records: DataFrame, cluster_id: str) -> DataFrame:
    fields = [field for field in struct_type(METRICS).fields if field.name != "cluster_id"]
    loose = [spark_types.StructField(field.name, field.dataType) for field in fields]
    reason = spark_types.StructField("reason", spark_types.StringType())
    kept = [records.schema[name] for name in RECORD]
    decoded = records.select(*RECORD).mapInArrow(_decoded, spark_types.StructType([*loose, reason, *kept]))
    return decoded.withColumn("cluster_id", sql.lit(cluster_id))


def _decoded(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    types = {field.name: field.type for field in arrow_schema(METRICS)} | {"reason": pa.string()}
    for batch in batches:
        found = decode(batch.column("record"))
        columns = {name: found.column(name).cast(types[name]) for name in found.schema.names}
        yield pa.RecordBatch.from_pydict(columns | {name: batch.column(name) for name in RECORD})


CHECKPOINTS = "_metrics_checkpoint"
"""Folder beside the tables with a checkpoint per topic."""
TABLES = (METRICS, METRICS_QUARANTINE, METRIC_BATCHES)
"""Tables that a stream writes."""
TRIGGER = "10 seconds"


@dataclass(frozen=True, slots=True)
class MetricTopic:
    """Address, topic, record format and cluster; `client` has further Kafka consumer properties, e.g. for security.

    `max_offsets_per_trigger` bounds the number of records in a batch, and so its memory.
    """

    bootstrap_servers: str
    topic: str
    form: RecordForm
    cluster_id: str
    client: Mapping[str, str] = field(default_factory=dict, repr=False)
    max_offsets_per_trigger: int = 200_000

    @property
    def options(self) -> dict[str, str]:
        """Options for Spark's Kafka source; `bootstrap_servers` wins over `client`."""
        client = {**self.client, "bootstrap.servers": self.bootstrap_servers}
        return {
            **{f"kafka.{name}": value for name, value in client.items()},
            "subscribe": self.topic,
            "startingOffsets": "earliest",
            "maxOffsetsPerTrigger": str(self.max_offsets_per_trigger),
        }

    def checkpoint(self, data_dir: DataDir) -> str:
        """Folder in which Spark notes the offsets read of this topic."""
        names = (f"cluster={quote(self.cluster_id, safe='')}", f"topic={quote(self.topic, safe='')}")
        return place(data_dir, CHECKPOINTS, *names)


def kafka_records(spark: SparkSession, source: MetricTopic) -> DataFrame:
    """Stream the topic from its beginning; DataError without the jars of Spark's Kafka source."""
    with reading_kafka(spark):
        return spark.readStream.format("kafka").options(**source.options).load()


def metrics_of(records: DataFrame, source: MetricTopic) -> DataFrame:
    """Compute columns `JUDGED` (the metric of each record, or the reason against it) from Spark's Kafka columns."""
    placed = records.select(
        sql.col("partition").alias("source_partition"),
        sql.col("offset").alias("source_offset"),
        sql.unix_millis("timestamp").alias("written_ms"),
        sql.col("value").alias("record"),
    )
    return judged_metrics(placed, source.form, source.cluster_id)


def run(
    rows: DataFrame, source: MetricTopic, data_dir: DataDir, tell: Callable[[BatchCount], None], *, once: bool
) -> None:
    """Store batches until the stream is ended; with `once`, until all records present at the start are stored."""
    failures: list[Exception] = []

    def store(rows_of_batch: DataFrame, number: int) -> None:
        try:
            records = rows_of_batch.toArrow()
            if records.num_rows:
                # The id that Spark gave the checkpoint when creating it.
                checkpoint_id = rows_of_batch.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
                batch = MetricBatch(source.cluster_id, source.topic, checkpoint_id or "", number)
                tell(store_batch(records, data_dir, batch))
        except Exception as error:
            failures.append(error)
            raise

    # py4j would log the trace of the error that is raised below.
    logging.getLogger("py4j.clientserver").setLevel(logging.CRITICAL + 1)
    writer = rows.writeStream.foreachBatch(store).option("checkpointLocation", source.checkpoint(data_dir))
    timed = writer.trigger(availableNow=True) if once else writer.trigger(processingTime=TRIGGER)
    try:
        timed.start().awaitTermination()
    except StreamingQueryException:
        if failures:
            raise failures[0] from None
        raise


def store_batch(records: pa.Table, data_dir: DataDir, batch: MetricBatch) -> BatchCount:
    """Add a batch to the tables, unless they have it already; return its counts by treatment."""
    times = records.filter(pc.is_null(records["reason"]))["taken_ms"]
    found = sort_records(records, rows_at(data_dir, METRICS, times), batch)
    counts = pa.Table.from_pylist(count_rows(batch, found), arrow_schema(METRIC_BATCHES))
    merge_rows(data_dir, METRIC_BATCHES, counts, BATCH_KEY)
    merge_rows(data_dir, METRICS_QUARANTINE, found.quarantined)
    merge_rows(data_dir, METRICS, found.metrics)
    return BatchCount(batch.number, found.counts)
