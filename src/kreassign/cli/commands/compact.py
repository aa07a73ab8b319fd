"""`kreassign compact`: fewer, larger files, and none that are too old."""

from __future__ import annotations

from pathlib import Path

import click

from kreassign.cli.options.data_dir import data_option
from kreassign.cli.options.number import FiniteRange
from kreassign.cli.output import examples
from kreassign.operations.tables import compact_tables


@click.command(
    epilog=examples(
        "kreassign compact --data ./data",
        "kreassign compact --data ./data --keep-days 30",
    )
)
@data_option
@click.option(
    "--keep-days",
    type=FiniteRange(min=0, min_open=True),
    metavar="DAYS",
    help="Delete data older than this.  [default: keep everything]",
)
def compact(data: Path, keep_days: float | None) -> None:
    """Compact table files; delete expired ones.

    Merges the files of every past hour, in the tables that grow with time. Collectors may run meanwhile, `kreassign
    load` should not. It may be killed at any time; run it again to continue.
    """
    for done in compact_tables(data, keep_days):
        click.echo(f"{done.table}: {done.merged} files merged, {done.expired} deleted, {done.repaired} hours repaired")
