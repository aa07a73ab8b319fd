"""The tables of a directory: load per partition, compaction."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from kreassign.clock import SystemClock
from kreassign.errors import DataError
from kreassign.model.spark_options import LOCAL_SPARK, SparkOptions
from kreassign.operations.spark_jobs import spark_jobs, spark_log
from kreassign.pipeline.load.quality import quality_lines
from kreassign.pipeline.load.results import backtest_results, partition_counts
from kreassign.pipeline.tables.audit_schemas import AUDIT_TABLES, AUDITED_RUN_TABLES, RUN_TABLES
from kreassign.pipeline.tables.compaction import compact, expire, repair, vacuum
from kreassign.pipeline.tables.convert import Converted, convert
from kreassign.pipeline.tables.parquet import has_table, read_rows
from kreassign.pipeline.tables.schemas import LOAD_QUALITY, METRIC_TABLES, TABLES, Table, date_of

__all__ = [
    "Compacted",
    "Converted",
    "compact_tables",
    "convert_tables",
    "load",
    "spark_log",
]

DAY_MS = 86_400_000
ALL_TABLES = (*TABLES, *METRIC_TABLES, *AUDIT_TABLES, *RUN_TABLES, *AUDITED_RUN_TABLES)

# What is shown of the load model, and the column that says it.
_SUMMARY = {"rates": "coverage", "enough to plan by": "verdict"}


@dataclass(frozen=True, slots=True)
class Compacted:
    """What became of the files of one table: how many are fewer, expired, were missing, and were in no use."""

    table: str
    merged: int
    expired: int
    missing: int
    vacuumed: int


def _to_nobody(line: str) -> None:
    del line


def load(
    data: Path | str,
    spark_options: SparkOptions = LOCAL_SPARK,
    horizon_days: float = 30.0,
    say: Callable[[str], None] = _to_nobody,
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
    jobs = spark_jobs("the load job")
    now_ms = SystemClock().now_ms()
    is_small = jobs.job.rows_to_read(data, is_full=is_full) <= jobs.session.SMALL_ROWS
    with jobs.session.spark_session(spark_log(data), spark_options, is_small=is_small) as spark:
        if pages := jobs.session.pages_of(spark):
            say(f"Spark's pages: {pages}")
        how = {"horizon_days": horizon_days, "window_days": window_days, "now_ms": now_ms, "is_full": is_full}
        with _watched(jobs.watching, spark, watch) as on_begin:
            jobs.job.run_load(spark, data, say, **how, on_begin=on_begin)
    for sentence in backtest_results(data):
        say(sentence)
    for line in quality_lines(read_rows(data, LOAD_QUALITY)) if quality else ():
        say(line)
    return {what: partition_counts(data, column) for what, column in _SUMMARY.items()}


@contextmanager
def _watched(
    watching: ModuleType, session: Any, watch: Callable[[str], None] | None
) -> Iterator[Callable[[Table], None]]:
    """Tell what goes on; yields whom to tell of each table that is begun."""
    doing = "snapshots"

    def begin(table: Table) -> None:
        nonlocal doing
        doing = table.name

    if watch is None:
        yield begin
        return
    with watching.watched(session, lambda tasks: watch(f"{doing}: {tasks}")):
        yield begin


def compact_tables(data: Path | str, keep_days: float | None = None) -> Iterator[Compacted]:
    """Merge small files, delete dates older than `keep_days` and files that are in no use; tables that changed."""
    now_ms = SystemClock().now_ms()
    oldest_ms = now_ms - round((keep_days or 0) * DAY_MS)
    for table in ALL_TABLES:
        if not has_table(data, table):
            continue
        missing = repair(data, table)
        expired = 0 if keep_days is None else expire(data, table, date_of(oldest_ms))
        merged = compact(data, table)
        vacuumed = vacuum(data, table, now_ms)
        if missing or expired or merged or vacuumed:
            yield Compacted(table.name, merged, expired, missing, vacuumed)


def convert_tables(data: Path | str) -> Iterator[Converted]:
    """Make Delta tables of the folders of Parquet files that an older kreassign wrote; those that there were.

    DataError for an address: they are converted where they are files, and then copied.
    """
    if not isinstance(data, Path):
        raise DataError(f"{data} is an address; convert the tables in a directory, and copy it there")
    for table in ALL_TABLES:
        if (converted := convert(data, table)) is not None:
            yield converted
