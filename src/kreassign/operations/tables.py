"""Keep the tables of a directory: compute and show the load per partition, compact, and define for catalogs.

Showing the load needs no Spark, and changes nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any

from kreassign.clock import SYSTEM_CLOCK
from kreassign.errors import DataError, requires
from kreassign.model.load import (
    LOCAL_SPARK,
    AsOf,
    LoadBefore,
    LoadNumber,
    LoadSummary,
    PartitionLoad,
    SparkOptions,
    spark_log,
)
from kreassign.model.text import DAY_MS
from kreassign.pipeline.load.rules import load_accounts, quality_lines
from kreassign.pipeline.load.summary import (
    LoadColumns,
    backtest_results,
    busiest_partitions,
    charts,
    load_columns,
    loaded_clusters,
    partition_counts,
    summary,
    totals,
    windows,
)
from kreassign.pipeline.tables import schemas
from kreassign.pipeline.tables.access import dbt_sources, ddl
from kreassign.pipeline.tables.commits import compact, expire, expire_parts, repair, vacuum
from kreassign.pipeline.tables.delta import no_table
from kreassign.pipeline.tables.parquet import (
    Load,
    TablesAt,
    has_table,
    last_load,
    read_rows,
    read_table,
    stored_rows,
    tables_at,
    tables_of,
)
from kreassign.report.page import render_load

# The tables of a directory: load per partition, compaction.

ALL_TABLES = (
    *schemas.TABLES,
    *schemas.METRIC_TABLES,
    *schemas.AUDIT_TABLES,
    *schemas.RUN_TABLES,
    *schemas.AUDITED_RUN_TABLES,
)

# Counts shown of the load model, and their columns.
_SUMMARY = {"rates": "coverage", "history to plan by": "verdict"}


@dataclass(frozen=True, slots=True)
class Compacted:
    """Files of one table after compaction: merged, expired, missing, and vacuumed because unused."""

    table: str
    merged: int
    expired: int
    missing: int
    vacuumed: int


def load(
    data: Path | str,
    spark_options: SparkOptions = LOCAL_SPARK,
    horizon_days: float = 30.0,
    say: Callable[[str], None] = lambda _: None,
    *,
    window_days: int = 28,
    quality: bool = False,
    is_full: bool = False,
    watch: Callable[[str], None] | None = None,
) -> Mapping[str, Mapping[str, int]]:
    """Compute the load model from snapshots and samples in `data`, a directory or an address that Spark understands.

    Samples that the last load has read are read again only with `is_full`. The forecast looks `horizon_days` ahead and
    rests on the last `window_days`. `say` gets what each step did, how good the forecasts of the last week were, and
    with `quality` how the rows of this load and of those before it were treated. `watch` gets what goes on now, such as
    `load_hours: 3 of 20 tasks`, twice a second and from another thread. Returns how many partitions have which
    kind of rates, and which verdict. Raises DataError for tables that are missing, KreassignError without PySpark.
    """
    with requires("the load job", "PySpark", "spark"):
        from kreassign.pipeline.load.job import rows_to_read, run_load
        from kreassign.pipeline.spark_session import SMALL_ROWS, pages_of, spark_session

    now_ms = SYSTEM_CLOCK.now_ms()
    is_small = rows_to_read(data, is_full=is_full) <= SMALL_ROWS
    say(f"starting Spark; its log is {spark_log(data)}")
    with spark_session(spark_log(data), spark_options, is_small=is_small) as spark:
        if pages := pages_of(spark):
            say(f"Spark's pages: {pages}")
        with _watched(spark, watch) as on_begin:
            run_load(
                spark,
                data,
                lambda step: say(str(step)),
                horizon_days=horizon_days,
                window_days=window_days,
                now_ms=now_ms,
                is_full=is_full,
                on_begin=on_begin,
            )
    for sentence in backtest_results(data):
        say(sentence)
    for line in quality_lines(read_rows(data, schemas.LOAD_QUALITY)) if quality else ():
        say(line)
    return {what: partition_counts(data, column) for what, column in _SUMMARY.items()}


@contextmanager
def _watched(session: Any, watch: Callable[[str], None] | None) -> Iterator[Callable[[schemas.Table], None]]:
    """Report the step in progress; yields a function to call at the start of each table."""
    from kreassign.pipeline.spark_session import watched

    doing = "snapshots"

    def begin(table: schemas.Table) -> None:
        nonlocal doing
        doing = table.name

    if watch is None:
        yield begin
        return
    with watched(session, lambda tasks: watch(f"{doing}: {tasks}")):
        yield begin


def compact_tables(data: Path | str, keep_days: float | None = None) -> Iterator[Compacted]:
    """Merge small files, delete what is older than `keep_days` and files that are in no use; tables that changed.

    Older are dates, runs that ended before, and readings of records whose topics were read again before. Raises
    DataError if there are no tables.
    """
    tables = [table for table in ALL_TABLES if has_table(data, table)]
    if not tables:
        raise DataError(no_table(data, schemas.CLUSTERS))
    now_ms = SYSTEM_CLOCK.now_ms()
    oldest_ms = now_ms - round((keep_days or 0) * DAY_MS)
    repaired = {table: repair(data, table) for table in tables}
    for table in sorted(tables, key=_deleted_last):
        missing = repaired[table]
        expired = 0 if keep_days is None else expire(data, table, schemas.date_of(oldest_ms))
        part = None if table.partition_by is None else table.partition_by.name
        if keep_days is not None and part in _PART_AGES:
            expired += expire_parts(data, table, partial(_outdated_parts, data, part, oldest_ms))
        merged = compact(data, table)
        vacuumed = vacuum(data, table, now_ms)
        if missing or expired or merged or vacuumed:
            yield Compacted(table.name, merged, expired, missing, vacuumed)


def _outdated_parts(data: Path | str, part: str, oldest_ms: int) -> set[str]:
    ages, outdated_parts = _PART_AGES[part]
    return outdated_parts(data, oldest_ms) if stored_rows(data, [ages]) else set()


def _outdated_runs(data: Path | str, oldest_ms: int) -> set[str]:
    """Runs that ended before. A run that has not ended stays."""
    ended = read_table(data, schemas.RUNS, columns=["run_id", "ended_ms"]).to_pylist()
    return {run["run_id"] for run in ended if run["ended_ms"] is not None and run["ended_ms"] < oldest_ms}


def _outdated_readings(data: Path | str, oldest_ms: int) -> set[str]:
    """Readings of which every topic was read again before. Until then one is still to be compared with the next.

    Topics of one name with other ids were created again; without an id they may be it. Each cluster has its own topics.
    """
    columns = ["cluster_id", "topic", "topic_id", "label"]
    rows = read_table(data, schemas.AUDITED_PARTITIONS, columns=[*columns, "taken_ms"])
    readings = rows.group_by(columns).aggregate([("taken_ms", "max")]).sort_by([("taken_ms_max", "descending")])
    read_again: defaultdict[tuple[str, str], dict[str | None, int]] = defaultdict(dict)
    kept = set()
    for each in readings.to_pylist():
        later, topic_id = read_again[each["cluster_id"], each["topic"]], each["topic_id"]
        is_same = later.keys() if topic_id is None else later.keys() & {topic_id, None}
        if min((later[one] for one in is_same), default=oldest_ms) >= oldest_ms:
            kept.add(each["label"])
        later[topic_id] = each["taken_ms_max"]
    return set(readings["label"].to_pylist()) - kept


_PART_AGES = {
    "run": (schemas.RUNS, _outdated_runs),
    "reading": (schemas.AUDITED_PARTITIONS, _outdated_readings),
}
"""By partition column: the table that says when its parts were, and which parts are older than a time."""


def _deleted_last(table: schemas.Table) -> tuple[bool, bool]:
    """Dated tables first, so that a damaged table of runs keeps none of them.

    What says how old parts are goes last, so that a kill leaves no part of unknown age.
    """
    is_parted = table.partition_by is not None and table.partition_by.name in _PART_AGES
    return is_parted, any(table is ages for ages, _ in _PART_AGES.values())


# The tables for other catalogs: statements of SQL, and sources of dbt.

SCHEMA = "kreassign"


class DefinitionForm(StrEnum):
    """Engine that the definitions are written for."""

    DDL = "ddl"
    DBT = "dbt"


def define_tables(
    location: str, form: DefinitionForm = DefinitionForm.DDL, schema: str = SCHEMA, *, with_columns: bool = True
) -> str:
    """The definitions of every table below an address, in a schema of a catalog. Reads nothing and changes nothing.

    Statements without columns leave them to the log of each table.
    """
    if form is DefinitionForm.DBT:
        return dbt_sources(ALL_TABLES, location, schema)
    return ddl(ALL_TABLES, location, schema, with_columns=with_columns)


# Show the tables of the last load, compared with the load before. Reads without Spark, and changes nothing.
#
# `data` is a directory, or an address of an object store. All tables are read as of one finished load.

SHOWN = 5
"""Number of partitions and topics in a list."""
CHARTED = 8
"""Number of them with a chart on a page."""


@dataclass(frozen=True, slots=True)
class _Shown:
    """The load shown, with its tables; None for tables that were never part of a finished load."""

    load: Load | None
    tables: TablesAt


def show_load(
    data: Path | str, cluster: str | None = None, top: int = SHOWN, *, as_of: AsOf | None = None
) -> tuple[LoadSummary, ...]:
    """Summarize the last load of each cluster, or of one; lists have `top` entries at most.

    With `as_of` it is the last load that had begun by then, ms since the epoch, or the load of a number. Raises
    DataError when there is none, or when its tables are missing, or hold nothing of the cluster.
    """
    shown = _last(data, as_of)
    return tuple(_summary(shown, loads, top) for loads in _loads(shown.tables, cluster))


def partition_rows(
    data: Path | str, cluster: str | None = None, top: int | None = None, *, as_of: AsOf | None = None
) -> Iterator[tuple[str, PartitionLoad]]:
    """Cluster id and partition, the busiest first; all of each cluster, or `top`. Raises as `show_load` does."""
    # Read now, not at the first row: an error comes before any output.
    loads = _loads(_last(data, as_of).tables, cluster)
    return ((each.cluster_id, one) for each in loads for one in busiest_partitions(each, top))


def quality_text(data: Path | str, as_of: AsOf | None = None) -> Iterator[str]:
    """Treatment of rows in the last loads, as a table of text. Raises DataError when the table is missing."""
    return quality_lines(read_rows(_last(data, as_of).tables, schemas.LOAD_QUALITY))


def load_page(data: Path | str, cluster: str | None = None, top: int = CHARTED, *, as_of: AsOf | None = None) -> str:
    """Render the last load as a page in HTML, with charts, and the treatment of rows, load after load.

    Of each cluster or of one; charts and lists are of the first `top`. Raises as `show_load` does.
    """
    shown = _last(data, as_of)
    loads = _loads(shown.tables, cluster)
    has_accounts = has_table(shown.tables, schemas.LOAD_QUALITY)
    accounts = load_accounts(read_rows(shown.tables, schemas.LOAD_QUALITY)) if has_accounts else ()
    found = [(_summary(shown, each, top), charts(shown.tables, each, top)) for each in loads]
    return render_load(found, accounts)


def _last(data: Path | str, as_of: AsOf | None) -> _Shown:
    """The last finished load, or the requested one. A load that finishes meanwhile is not mixed in."""
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
    """Totals of the load of this number; None if there is none with this cluster, or its files are gone."""
    load = last_load(data, LoadNumber(number))
    if load is None:
        return None
    tables = tables_of(data, load)
    try:
        return LoadBefore(load.number, load.load_ms, totals(tables, load_columns(tables, cluster_id)))
    except DataError:
        return None
