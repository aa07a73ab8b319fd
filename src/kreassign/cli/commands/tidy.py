"""`kreassign tidy`: fewer, larger files, and none that are too old."""

from __future__ import annotations

from pathlib import Path

import click

from kreassign.cli.options.data_dir import data_option
from kreassign.clock import SystemClock
from kreassign.pipeline.tables.compaction import compact, expire, repair
from kreassign.pipeline.tables.schemas import METRIC_TABLES, TABLES

_HOUR_MS = 3_600_000
_DAY_MS = 24 * _HOUR_MS


@click.command()
@data_option
@click.option("--keep-days", type=click.FloatRange(min=0, min_open=True), metavar="DAYS", help="Remove what is older.")
def tidy(data: Path, keep_days: float | None) -> None:
    """Put the files of every past hour together, and with --keep-days remove the hours that are older.

    Concerns the tables that grow with time. Collectors may run meanwhile, `kreassign load` should not. It may be killed
    at any time; done again, it goes on.
    """
    now_ms = SystemClock().now_ms()
    for table in (*TABLES, *METRIC_TABLES):
        repaired = repair(data, table)
        expired = 0 if keep_days is None else expire(data, table, ended_before_ms=now_ms - round(keep_days * _DAY_MS))
        merged = compact(data, table, ended_before_ms=now_ms - _HOUR_MS)
        if repaired or expired or merged:
            click.echo(f"{table.name}: {merged} files put into others, {expired} removed, {repaired} hours repaired")
