"""`kreassign stream-metrics`: a Kafka topic of metrics, by Spark's Structured Streaming, as a table."""

from __future__ import annotations

from pathlib import Path

import click

from kreassign.cli.options.data_dir import data_option
from kreassign.cli.spark_jobs import spark_jobs
from kreassign.pipeline.ingest.metric_records import RecordForm

_COUNT_EVERY_S = 60


@click.command("stream-metrics")
@click.option(
    "--bootstrap-server", required=True, metavar="HOST:PORT,...", help="Brokers of the cluster with the topic."
)
@data_option
@click.option("--topic", required=True, metavar="NAME", help="The topic of metrics.")
@click.option("--form", type=click.Choice([form.value for form in RecordForm]), default=RecordForm.JSON.value,
              show_default=True, help="What its records are.")  # fmt: skip
@click.option("--cluster", required=True, metavar="ID", help="The cluster that the metrics are of.")
@click.option("--jars", type=click.Path(exists=True, file_okay=False, path_type=Path), metavar="DIR",
              help="Folder with the jars of Spark's Kafka source, where Spark does not have them.")  # fmt: skip
@click.option("--once", is_flag=True, help="Read what is there and end.")
@click.option(
    "--watermark", default="10 minutes", show_default=True, metavar="TIME", help="How late a metric may come."
)
@click.option("--master", metavar="URL", help="Spark master; local[*] by default, or what spark-submit decides.")
def stream_metrics(
    bootstrap_server: str, data: Path, jars: Path | None, master: str | None, once: bool, **source: str
) -> None:
    """Read a Kafka topic of metrics into table `metrics` in DIR, each record exactly once.

    It may be killed at any time and started again. Records that say nothing go to table `metrics_quarantine`, the
    counts of good, bad and late ones to `metric_batches`. Spark's log goes to DIR/spark.log.
    """
    jobs = spark_jobs("reading a topic of metrics")
    stream = jobs.metric_stream
    topic = stream.MetricTopic(bootstrap_server, source["topic"], RecordForm(source["form"]), source["cluster"])
    files = () if jars is None else tuple(sorted(jars.glob("*.jar")))
    with jobs.session.spark_session(data / "spark.log", master, name="kreassign stream-metrics", jars=files) as spark:
        rows = stream.metrics_of(stream.kafka_records(spark, topic), topic, source["watermark"])
        query = stream.start(rows, data, click.echo, once=once)
        late = stream.watch(query, spark, data, _COUNT_EVERY_S)
        click.echo(f"{late} rows came later than the watermark")
