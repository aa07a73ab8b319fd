"""`kreassign load`: the Spark job that turns snapshots and samples into load per partition."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import click

from kreassign.cli.data_dir import data_option
from kreassign.errors import KreassignError


@click.command()
@data_option
@click.option("--master", metavar="URL", help="Spark master; local[*] by default, or what spark-submit decides.")
def load(data: Path, master: str | None) -> None:
    """Turn snapshots and samples into load per partition.

    Makes tables `load_model` and `plan_inputs` in DIR from the latest snapshot and all samples; bad rows go to table
    `quarantine`. Doing it again makes the same tables again. Spark's log goes to DIR/spark.log.
    """
    job, session = _engine()
    log_file = data / "spark.log"
    click.echo(f"starting Spark; its log is {log_file}")
    with session.spark_session(log_file, master) as spark:
        job.run_load(spark, data, click.echo)
        counts = job.coverage_counts(spark, data)
    click.echo("rates: " + ", ".join(f"{count} {coverage}" for coverage, count in counts.items()))


def _engine() -> tuple[ModuleType, ModuleType]:
    try:
        from kreassign.pipeline import job, session  # noqa: PLC0415 - PySpark is an extra, and --help must not need it
    except ImportError as error:
        raise KreassignError(f"the load job needs PySpark ({error}): pip install 'kreassign[spark]'") from error
    return job, session
