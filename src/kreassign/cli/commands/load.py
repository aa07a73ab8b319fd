"""`kreassign load`: the Spark job that turns snapshots and samples into load per partition."""

from __future__ import annotations

from pathlib import Path

import click

from kreassign.cli.options.data_dir import data_or_address_option
from kreassign.cli.spark_jobs import spark_jobs

# What is told at the end, and the column of table `load_model` that says it.
_SUMMARY = {"rates": "coverage", "enough to plan by": "verdict"}


@click.command()
@data_or_address_option
@click.option("--master", metavar="URL", help="Spark master; local[*] by default, or what spark-submit decides.")
@click.option(
    "--horizon-days", type=click.FloatRange(min=0), default=30.0, show_default=True, help="How far to look ahead."
)
def load(data: Path | str, master: str | None, horizon_days: float) -> None:
    """Turn snapshots and samples into load per partition.

    Makes tables `rates`, `load_hours`, `load_model`, `forecast`, `skew` and `plan_inputs` in DIR from the latest
    snapshot and all samples; bad rows go to table `quarantine`, the counts of all steps to `step_counts`. Doing it
    again makes the same tables again. Spark's log goes to DIR/spark.log. DIR may be an address that Spark understands,
    such as s3a://bucket/data; then the log goes to the working directory.
    """
    session, job, *_ = spark_jobs("the load job")
    log_file = (data if isinstance(data, Path) else Path()) / "spark.log"
    click.echo(f"starting Spark; its log is {log_file}")
    with session.spark_session(log_file, master) as spark:
        job.run_load(spark, data, click.echo, horizon_days=horizon_days)
        found = {what: job.partition_counts(spark, data, column) for what, column in _SUMMARY.items()}
    for what, counts in found.items():
        click.echo(f"{what}: " + ", ".join(f"{count} {value}" for value, count in counts.items()))
