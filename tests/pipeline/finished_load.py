"""Rows of tables that a load makes, written as values, as if the load had been finished then."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kreassign.pipeline.tables.commits import LoadedTable, last_load, publish
from kreassign.pipeline.tables.delta import has_log, open_log
from kreassign.pipeline.tables.parquet import is_of_loads
from kreassign.pipeline.tables.parquet import write_rows as add_rows
from kreassign.pipeline.tables.schemas import TABLES, Row, Table


def write_rows(data: Path, table: Table, rows: Sequence[Row], *, file_stem: str, load_ms: int = 1) -> None:
    """Add rows to a table; of one that loads make they are seen at once."""
    add_rows(data, table, rows, file_stem=file_stem)
    if is_of_loads(table):
        finish_load(data, load_ms)


def finish_load(data: Path, load_ms: int = 1) -> None:
    """Make all that is in the tables of loads a load."""
    made = [table for table in TABLES if is_of_loads(table) and has_log(data, table)]
    publish(data, load_ms, [LoadedTable(each, open_log(data, each).version, 0) for each in made], last_load(data))
