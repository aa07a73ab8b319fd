"""`kreassign load`: the Spark job that turns snapshots and samples into load per partition."""

from __future__ import annotations

from pathlib import Path

import click

from kreassign.cli.options.data_dir import data_or_address_option, master_option
from kreassign.cli.options.number import FiniteRange
from kreassign.cli.output import examples
from kreassign.operations import tables


@click.command(
    epilog=examples(
        "kreassign load --data ./data",
        "kreassign load --data s3a://bucket/data --master spark://host:7077",
    )
)
@data_or_address_option
@master_option
@click.option(
    "--horizon-days",
    type=FiniteRange(min=0),
    default=30.0,
    show_default=True,
    metavar="DAYS",
    help="How far ahead to forecast.",
)
def load(data: Path | str, master: str | None, horizon_days: float) -> None:
    """Compute load per partition from snapshots and samples.

    Makes tables `rates`, `load_hours`, `load_model`, `forecast`, `skew` and `plan_inputs` in DIR from the latest
    snapshot and all samples; bad rows go to table `quarantine`, the counts of all steps to `step_counts`. Running it
    again makes the same tables again. Spark's log goes to DIR/spark.log. DIR may be an address that Spark understands,
    such as s3a://bucket/data; then the log goes to the working directory.
    """
    click.echo(f"starting Spark; its log is {tables.load_log(data)}")
    for what, counts in tables.load(data, master, horizon_days, click.echo).items():
        click.echo(f"{what}: " + ", ".join(f"{count} {value}" for value, count in counts.items()))
