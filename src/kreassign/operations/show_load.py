"""What the tables of the last load say, against the load before it. Reads them without Spark, and changes nothing.

`data` is a directory, or an address of an object store. All tables are read as of one finished load.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from kreassign.errors import DataError
from kreassign.model.as_of import AsOf, LoadNumber
from kreassign.model.load_summary import LoadBefore, LoadSummary, PartitionLoad
from kreassign.pipeline.load.curves import charts
from kreassign.pipeline.load.quality import load_accounts, quality_lines
from kreassign.pipeline.load.summary import (
    LoadColumns,
    busiest_partitions,
    load_columns,
    loaded_clusters,
    summary,
    totals,
)
from kreassign.pipeline.load.windows import windows
from kreassign.pipeline.tables.parquet import TablesAt, has_table, read_rows
from kreassign.pipeline.tables.published import Load, last_load, tables_at, tables_of
from kreassign.pipeline.tables.schemas import LOAD_QUALITY
from kreassign.report.load_page import render_load

__all__ = ["CHARTED", "SHOWN", "LoadNumber", "load_page", "partition_rows", "quality_text", "show_load"]

SHOWN = 5
"""How many partitions and topics a list has."""
CHARTED = 8
"""How many of them have a chart on a page."""


@dataclass(frozen=True, slots=True)
class _Shown:
    """The load that is shown, with its tables; None for tables that were never part of a finished load."""

    load: Load | None
    tables: TablesAt


def show_load(
    data: Path | str, cluster: str | None = None, top: int = SHOWN, *, as_of: AsOf | None = None
) -> tuple[LoadSummary, ...]:
    """What the last load says of each cluster, or of one; lists have `top` entries at most.

    With `as_of` it is the last load that had begun by then, ms since the epoch, or the load of a number. Raises
    DataError when there is none, or when its tables are missing, or hold nothing of the cluster.
    """
    shown = _last(data, as_of)
    return tuple(_summary(shown, loads, top) for loads in _loads(shown.tables, cluster))


def partition_rows(
    data: Path | str, cluster: str | None = None, top: int | None = None, *, as_of: AsOf | None = None
) -> Iterator[tuple[str, PartitionLoad]]:
    """Id of the cluster and partition, the busiest first; all of each cluster, or `top`. Raises as `show_load` does."""
    # Now, not when the first row is asked for: an error comes before any output.
    loads = _loads(_last(data, as_of).tables, cluster)
    return ((each.cluster_id, one) for each in loads for one in busiest_partitions(each, top))


def quality_text(data: Path | str, as_of: AsOf | None = None) -> Iterator[str]:
    """How the rows of the last loads were treated, as a table of text. Raises DataError when the table is missing."""
    return quality_lines(read_rows(_last(data, as_of).tables, LOAD_QUALITY))


def load_page(data: Path | str, cluster: str | None = None, top: int = CHARTED, *, as_of: AsOf | None = None) -> str:
    """What the last load says as a page in HTML, with charts, and how rows were treated, load after load.

    Of each cluster or of one; charts and lists are of the first `top`. Raises as `show_load` does.
    """
    shown = _last(data, as_of)
    loads = _loads(shown.tables, cluster)
    has_accounts = has_table(shown.tables, LOAD_QUALITY)
    accounts = load_accounts(read_rows(shown.tables, LOAD_QUALITY)) if has_accounts else ()
    found = [(_summary(shown, each, top), charts(shown.tables, each, top)) for each in loads]
    return render_load(found, accounts)


def _last(data: Path | str, as_of: AsOf | None) -> _Shown:
    """The last finished load, or the one that is asked for. One that is finished meanwhile is not mixed in."""
    load = last_load(data, as_of)
    return _Shown(load, tables_at(data, as_of) if load is None else tables_of(data, load))


def _loads(tables: TablesAt, cluster: str | None) -> tuple[LoadColumns, ...]:
    return tuple(load_columns(tables, each) for each in (loaded_clusters(tables) if cluster is None else (cluster,)))


def _summary(shown: _Shown, loads: LoadColumns, top: int) -> LoadSummary:
    load, measured = shown.load, windows(shown.tables, loads)
    if load is None:
        return replace(summary(shown.tables, loads, top, load_ms=None, before=None), windows=measured)
    before = _before(shown.tables.data_dir, load.number - 1, loads.cluster_id)
    found = summary(shown.tables, loads, top, load_ms=load.load_ms, before=before)
    return replace(found, load_number=load.number, windows=measured)


def _before(data: Path | str, number: int, cluster_id: str) -> LoadBefore | None:
    """The totals of the load of this number; None if there is none with this cluster, or its files are gone."""
    load = last_load(data, LoadNumber(number))
    if load is None:
        return None
    tables = tables_of(data, load)
    try:
        return LoadBefore(load.number, load.load_ms, totals(tables, load_columns(tables, cluster_id)))
    except DataError:
        return None
