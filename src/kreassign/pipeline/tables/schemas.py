"""The tables of the data directory, and the types that describe them.

`schemas.json` is the only place that names columns and their types. Its `shared` columns mean the same in every table
that names them so. Spark's schema (`spark_io.py`), pyarrow's (`arrow.py`) and the reference page
(`scripts/tables_page.py`) follow from it. No engine is imported here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from kreassign.model.text import packaged_text

Row = dict[str, Any]
"""A row of any table outside an engine: column name → value."""


class ColumnType(StrEnum):
    """Type of a column, written as SQL writes it."""

    STRING = "string"
    INT = "int"
    BIGINT = "bigint"
    DOUBLE = "double"
    BOOLEAN = "boolean"
    INTS = "array<int>"


STRING, INT, BIGINT, DOUBLE, BOOLEAN, INTS = ColumnType


@dataclass(frozen=True, slots=True)
class Column:
    """A column. Nullable columns are NULL exactly when the comment says so."""

    name: str
    type: ColumnType
    comment: str
    nullable: bool = False


MERGED_BY_LOADS = "merged by loads"
"""Lifecycle of tables to which each load adds files."""


@dataclass(frozen=True, slots=True)
class Kept:
    """Days for which rows stay, counted back from the newest, by this column of times in ms since the epoch."""

    column: str
    days: int


LAST_DATE_MS = 253_402_214_400_000
"""Start of 9999-12-31, the last date that engines agree on, ms since the epoch."""


@dataclass(frozen=True, slots=True)
class Partitioning:
    """The column by which the log of a table groups its files, so that a reader skips files without matching rows.

    Only the log has it, under its `name`; it is computed from `column` of the rows. With `is_date`, `column` is a time
    in ms since the epoch, and the value its UTC date.
    """

    name: str
    column: str
    is_date: bool = False

    def value_of(self, row: Row) -> str:
        """Partition value of a row."""
        value = row[self.column]
        return date_of(value) if self.is_date else str(value).lower() if isinstance(value, bool) else str(value)


def date_of(time_ms: int) -> str:
    """UTC date of a time. Times outside 1970 to 9999 count as the first or the last date."""
    return f"{datetime.fromtimestamp(min(max(time_ms, 0), LAST_DATE_MS) // 1000, UTC):%Y-%m-%d}"


def utc(time_ms: int) -> str:
    """UTC time for messages, as `2025-01-31 12:00:00Z`."""
    return f"{datetime.fromtimestamp(time_ms / 1000, UTC):%Y-%m-%d %H:%M:%S}Z"


@dataclass(frozen=True, slots=True)
class Table:
    """A Delta table, in the folder of the same name.

    `made_by` is the command that writes it, `key` the columns that identify a row, `partition_by` groups its files.
    `lifecycle` says in a word how its files and rows come and go, `kept` how long its rows stay, if not for ever.
    """

    name: str
    comment: str
    made_by: str
    key: tuple[str, ...]
    columns: tuple[Column, ...]
    partition_by: Partitioning | None = None
    lifecycle: str = "dated"
    kept: Kept | None = None

    @property
    def column_names(self) -> tuple[str, ...]:
        """Names of the columns, in order."""
        return tuple(column.name for column in self.columns)


def _column(name: str, text: str) -> Column:
    """Read a column from its form in the file: `type: comment`, or `type, nullable: comment`."""
    kind, _, comment = text.partition(": ")
    return Column(name, ColumnType(kind.removesuffix(", nullable")), comment, kind.endswith(", nullable"))


def _table(name: str, parts: Mapping[str, Any], shared: Mapping[str, str]) -> Table:
    columns = tuple(
        _column(column, shared[column] if text == "shared" else text)
        for names, text in parts["columns"].items()
        for column in names.split()
    )
    partitioning = None
    if "partition_by" in parts:
        by, column = parts["partition_by"]
        partitioning = Partitioning(by, column, is_date=by == "date")
    kept = Kept(*parts["kept"]) if "kept" in parts else None
    named = name, parts["comment"], parts["made_by"], tuple(parts["key"])
    return Table(*named, columns, partitioning, parts["lifecycle"], kept)


_FILE = json.loads(packaged_text(__name__, "schemas.json"))
_TABLES = {
    group: {name: _table(name, parts, _FILE["shared"]) for name, parts in tables.items()}
    for group, tables in _FILE.items()
    if group != "shared"
}

TABLES = tuple(_TABLES["tables"].values())
(
    CLUSTERS,
    BROKERS,
    LOG_DIRS,
    PARTITIONS,
    REPLICAS,
    SAMPLES,
    THROTTLES,
    OPEN_SAMPLES,
    LOAD_HOURS,
    LOAD_MODEL,
    BACKTESTS,
    FORECAST,
    SKEW,
    LOADS,
    LOAD_QUALITY,
    METRIC_HOURS,
    BROKER_LOADS,
    PLAN_INPUTS,
    QUARANTINE,
) = TABLES

METRIC_TABLES = tuple(_TABLES["metric_tables"].values())
METRICS, METRICS_QUARANTINE, METRIC_BATCHES, IMPORT_QUARANTINE = METRIC_TABLES

AUDIT_TABLES = tuple(_TABLES["audit_tables"].values())
RECORD_DIGESTS, AUDITED_PARTITIONS, DATA_AUDIT = AUDIT_TABLES

RUNS, RUN_MOVES, RUN_COPY_PROGRESS, RUN_ETA_HISTORY, RUN_CALLS, RUN_GUARD_BREACHES = _TABLES["run_tables"].values()
RUN_TABLES = (RUNS, RUN_MOVES, RUN_COPY_PROGRESS, RUN_ETA_HISTORY, RUN_CALLS, RUN_GUARD_BREACHES)
"""Tables from journals: one file per run in each."""

AUDITED_RUN_TABLES = tuple(_TABLES["audited_run_tables"].values())
"""Tables computed from journals and snapshots."""
AUDIT_RUNS, AUDIT_MOVES, AUDIT_BROKERS = AUDITED_RUN_TABLES
