"""`kreassign stream-metrics`: a Kafka topic of metrics, by Spark's Structured Streaming, as a table."""

from __future__ import annotations

from pathlib import Path

import click

from kreassign.cli.options.cluster import ClusterOptions, cluster_options
from kreassign.cli.options.data_dir import data_option, master_option
from kreassign.cli.output import examples
from kreassign.operations import tables
from kreassign.operations.tables import MetricStream, RecordForm


@click.command(
    "stream-metrics",
    epilog=examples(
        "kreassign stream-metrics --bootstrap-server localhost:9092 --topic metrics --cluster prod --data ./data",
        "kreassign stream-metrics --bootstrap-server localhost:9092 --topic metrics --cluster prod --data data --once",
        "kreassign stream-metrics --bootstrap-server localhost:9093 --command-config client.properties --topic metrics "
        "--cluster prod --data ./data",
    ),
)
@cluster_options
@data_option
@click.option("--topic", required=True, metavar="NAME", help="Topic of metrics.")
@click.option("--form", type=click.Choice([form.value for form in RecordForm]), default=RecordForm.JSON.value,
              show_default=True, help="Format of its records.")  # fmt: skip
@click.option("--cluster", "cluster_id", required=True, metavar="ID", help="Cluster that the metrics are from.")
@click.option("--jars", type=click.Path(exists=True, file_okay=False, path_type=Path), metavar="DIR",
              help="Jars of Spark's Kafka source, unless Spark has them.")  # fmt: skip
@click.option("--once", is_flag=True, help="Read what is there and exit.")
@click.option(
    "--watermark", default="10 minutes", show_default=True, metavar="TIME", help="How late a metric may arrive."
)
@master_option
def stream_metrics(
    cluster: ClusterOptions,
    data: Path,
    topic: str,
    form: str,
    cluster_id: str,
    jars: Path | None,
    once: bool,
    watermark: str,
    master: str | None,
) -> None:
    """Stream a Kafka topic of metrics into table `metrics` in DIR, each record exactly once.

    It may be killed at any time and started again. Unusable records go to table `metrics_quarantine`, the counts of
    good, bad and late ones to `metric_batches`. Spark's log goes to DIR/spark.log.
    """
    bootstrap, config = str(cluster.bootstrap_server), cluster.command_config
    source = MetricStream(bootstrap, topic, cluster_id, RecordForm(form), watermark, jars, config)
    late = tables.stream_metrics(source, data, master, click.echo, once=once)
    click.echo(f"{late} rows came later than the watermark")
