"""A Kafka topic of metrics → table `metrics`, batch after batch, each metric exactly once.

Spark notes in the checkpoint which offsets a batch has before it begins, so a batch that was broken off comes again,
and after a lost checkpoint all of them do. That nothing is twice in the tables is not the checkpoint's work: rows are
merged into them by their key (`tables/merge.py`). So there is no state, and no watermark: a record is judged by itself,
however late it comes and whatever the clocks of other brokers say.

The counts of a batch are stored first, and never again: what was killed between them and the metrics finds, when it
comes again, the same metrics missing. In the other order it would find them all there, and count them as sent twice.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import quote

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from kreassign.pipeline.ingest.metric_batches import BATCH_KEY, Batch, BatchCount, count_rows, sort_records
from kreassign.pipeline.ingest.metric_columns import judged_metrics
from kreassign.pipeline.ingest.metric_records import RecordForm
from kreassign.pipeline.tables.arrow import arrow_schema
from kreassign.pipeline.tables.delta import DataDir, place
from kreassign.pipeline.tables.merge import merge_rows, rows_at
from kreassign.pipeline.tables.schemas import METRIC_BATCHES, METRICS, METRICS_QUARANTINE

CHECKPOINTS = "_metrics_checkpoint"
"""The folder beside the tables with a checkpoint for each topic."""
TABLES = (METRICS, METRICS_QUARANTINE, METRIC_BATCHES)
"""What a stream writes."""
TRIGGER = "10 seconds"


@dataclass(frozen=True, slots=True)
class MetricTopic:
    """Where the records are, what they are, and whose; `client` are properties of a Kafka consumer, as for security.

    `max_offsets_per_trigger` bounds how many records a batch has, and so the memory that it takes.
    """

    bootstrap_servers: str
    topic: str
    form: RecordForm
    cluster_id: str
    client: Mapping[str, str] = field(default_factory=dict, repr=False)
    max_offsets_per_trigger: int = 200_000

    @property
    def options(self) -> dict[str, str]:
        """What Spark's Kafka source has to know; the addresses win over those among the properties."""
        client = {**self.client, "bootstrap.servers": self.bootstrap_servers}
        return {
            **{f"kafka.{name}": value for name, value in client.items()},
            "subscribe": self.topic,
            "startingOffsets": "earliest",
            "maxOffsetsPerTrigger": str(self.max_offsets_per_trigger),
        }

    def checkpoint(self, data_dir: DataDir) -> str:
        """The folder in which Spark notes what was read of this topic."""
        names = (f"cluster={quote(self.cluster_id, safe='')}", f"topic={quote(self.topic, safe='')}")
        return place(data_dir, CHECKPOINTS, *names)


def kafka_records(spark: SparkSession, source: MetricTopic) -> DataFrame:
    """The topic as a stream, from its begin; needs the jars of Spark's Kafka source."""
    return spark.readStream.format("kafka").options(**source.options).load()


def metrics_of(records: DataFrame, source: MetricTopic) -> DataFrame:
    """What each record says, and why it is no metric: the columns `JUDGED`, from those of Spark's Kafka source."""
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
    """Store batches until the stream is ended; with `once` until all is stored that was there at its begin."""
    failures: list[Exception] = []

    def store(rows_of_batch: DataFrame, number: int) -> None:
        try:
            records = rows_of_batch.toArrow()
            if records.num_rows:
                # The id that Spark gave the checkpoint when it made it.
                checkpoint_id = rows_of_batch.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
                batch = Batch(source.cluster_id, source.topic, checkpoint_id or "", number)
                tell(store_batch(records, data_dir, batch))
        except Exception as error:
            failures.append(error)
            raise

    # Which would print the trace of what is raised below.
    logging.getLogger("py4j.clientserver").setLevel(logging.CRITICAL + 1)
    writer = rows.writeStream.foreachBatch(store).option("checkpointLocation", source.checkpoint(data_dir))
    timed = writer.trigger(availableNow=True) if once else writer.trigger(processingTime=TRIGGER)
    try:
        timed.start().awaitTermination()
    except StreamingQueryException:
        if failures:
            raise failures[0] from None
        raise


def store_batch(records: pa.Table, data_dir: DataDir, batch: Batch) -> BatchCount:
    """Add what a batch has to the tables, unless they have it; how many of its records became what."""
    times = records.filter(pc.is_null(records["reason"]))["taken_ms"]
    found = sort_records(records, rows_at(data_dir, METRICS, times), batch)
    counts = pa.Table.from_pylist(count_rows(batch, found), arrow_schema(METRIC_BATCHES))
    merge_rows(data_dir, METRIC_BATCHES, counts, BATCH_KEY)
    merge_rows(data_dir, METRICS_QUARANTINE, found.quarantined)
    merge_rows(data_dir, METRICS, found.metrics)
    return BatchCount(batch.number, found.counts)
