"""What the tables of the last load say. Reads them without Spark, and changes nothing.

`data` is a directory, or an address of an object store.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from kreassign.model.load_summary import LoadSummary, PartitionLoad
from kreassign.pipeline.load.curves import charts
from kreassign.pipeline.load.quality import load_accounts, quality_lines
from kreassign.pipeline.load.summary import LoadColumns, busiest_partitions, load_columns, loaded_clusters, summary
from kreassign.pipeline.tables.parquet import has_table, read_rows
from kreassign.pipeline.tables.schemas import LOAD_QUALITY
from kreassign.report.load_page import render_load

SHOWN = 5
"""How many partitions and topics a list has."""
CHARTED = 8
"""How many of them have a chart on a page."""


def show_load(data: Path | str, cluster: str | None = None, top: int = SHOWN) -> tuple[LoadSummary, ...]:
    """What the last load says of each cluster, or of one; lists have `top` entries at most.

    Raises DataError when the tables are missing, or hold nothing of the cluster.
    """
    return tuple(summary(data, loads, top) for loads in _loads(data, cluster))


def partition_rows(
    data: Path | str, cluster: str | None = None, top: int | None = None
) -> Iterator[tuple[str, PartitionLoad]]:
    """Id of the cluster and partition, the busiest first; all of each cluster, or `top`. Raises as `show_load` does."""
    loads = _loads(data, cluster)  # now, not when the first row is asked for: an error comes before any output
    return ((each.cluster_id, one) for each in loads for one in busiest_partitions(each, top))


def quality_text(data: Path | str) -> Iterator[str]:
    """How the rows of the last loads were treated, as a table of text. Raises DataError when table is missing."""
    return quality_lines(read_rows(data, LOAD_QUALITY))


def load_page(data: Path | str, cluster: str | None = None, top: int = CHARTED) -> str:
    """What the last load says as a page in HTML, with charts, and how rows were treated, load after load.

    Of each cluster or of one; charts and lists are of the first `top`. Raises as `show_load` does.
    """
    loads = _loads(data, cluster)
    accounts = load_accounts(read_rows(data, LOAD_QUALITY)) if has_table(data, LOAD_QUALITY) else ()
    return render_load([(summary(data, each, top), charts(data, each, top)) for each in loads], accounts)


def _loads(data: Path | str, cluster: str | None) -> tuple[LoadColumns, ...]:
    return tuple(load_columns(data, each) for each in (loaded_clusters(data) if cluster is None else (cluster,)))
