"""A Kafka topic of metrics → tables, as long as it is left running."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from kreassign.admin.properties import read_properties
from kreassign.clock import SystemClock
from kreassign.errors import InputError
from kreassign.executor.cluster.permissions import lacking_to_read
from kreassign.model.spark_options import LOCAL_SPARK, SparkOptions
from kreassign.operations.compaction_meanwhile import COMPACT_EVERY, Compaction
from kreassign.operations.connect import connect
from kreassign.operations.spark_jobs import spark_jobs, spark_log
from kreassign.operations.warnings import Warn, warn_program
from kreassign.pipeline.ingest.metric_batches import BatchCount
from kreassign.pipeline.ingest.metric_records import RecordForm
from kreassign.pipeline.spark.client_properties import by_reference

__all__ = ["MetricStream", "RecordForm", "SparkOptions", "stream_metrics"]

MAX_OFFSETS = 200_000
"""A batch of so many records takes about 100 MB of memory."""


@dataclass(frozen=True, slots=True)
class MetricStream:
    """A Kafka topic of metrics and how to read it; `jars` is a folder with those of Spark's Kafka source.

    `command_config` is a file of client properties, which Spark's consumers read where they run. A batch has at most
    `max_offsets_per_trigger` records.
    """

    bootstrap_server: str
    topic: str
    cluster: str
    form: RecordForm = RecordForm.JSON
    jars: Path | None = None
    command_config: Path | None = None
    max_offsets_per_trigger: int = MAX_OFFSETS


def _to_nobody(line: str) -> None:
    del line


def stream_metrics(
    source: MetricStream,
    data: Path | str,
    spark_options: SparkOptions = LOCAL_SPARK,
    say: Callable[[str], None] = _to_nobody,
    *,
    once: bool = False,
    compact_every: int = COMPACT_EVERY,
    warn: Warn = warn_program,
) -> Mapping[str, int]:
    """Read a topic of metrics into table `metrics`, each metric exactly once; how many records were treated how.

    Treatments are `good`, `late`, `quarantined`, `skipped` and `counted`, as in table `metric_batches`. With `once` it
    ends when all that is there is read. `say` gets a line for each batch. After so many batches as `compact_every` the
    files of the tables become one per table and date; `warn` hears where that failed. Raises InputError, also where
    records of the topic may not be read, ClusterError, DataError, and KreassignError without PySpark.
    """
    jobs = spark_jobs("reading a topic of metrics")
    stream = jobs.metric_stream
    file = source.command_config
    client = {} if file is None else by_reference(read_properties(file), file)
    topic = stream.MetricTopic(
        source.bootstrap_server, source.topic, source.form, source.cluster, client, source.max_offsets_per_trigger
    )
    files = () if source.jars is None else tuple(sorted(source.jars.glob("*.jar")))
    treated: Counter[str] = Counter()
    compaction = Compaction(data, stream.TABLES, compact_every, SystemClock(), warn)
    batches = count(1)

    def tell(batch: BatchCount) -> None:
        say(str(batch))
        for (treatment, _), records in batch.counts.items():
            treated[treatment] += records
        compaction.after(next(batches))

    if jobs.session.is_connect(spark_options.master):
        raise InputError("a stream cannot run on Spark Connect: each of its batches is committed by this process")
    _check_permission(source)
    with jobs.session.spark_session(
        spark_log(data), spark_options, name="kreassign stream-metrics", jars=files
    ) as spark:
        rows = stream.metrics_of(stream.kafka_records(spark, topic), topic)
        stream.run(rows, topic, data, tell, once=once)
    return treated


def _check_permission(source: MetricStream) -> None:
    """Before Spark is started, which takes its time and says it in many words. Raises InputError, ClusterError."""
    try:
        client = connect(source.bootstrap_server, source.command_config)
    except InputError:
        return  # Java's clients, which Spark uses, take properties that ours refuse.
    with client:
        if lacking := lacking_to_read(client, (source.topic,)):
            raise InputError("\n  - ".join((f"topic {source.topic} cannot be read:", *lacking)))
