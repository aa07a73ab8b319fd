"""Which versions of the tables a reader gets. What a load makes is read as of a load that was finished, never between.

A load commits each of its tables by itself, and last of all says in table `loads`, by one commit, which versions belong
together (`loads.py`). A version that no row there names is of a load that goes on, or that never ended.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import zip_longest
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from kreassign.errors import DataError
from kreassign.model.as_of import AsOf, LoadNumber
from kreassign.pipeline.tables.arrow import ARROW_TYPES
from kreassign.pipeline.tables.delta import DataDir, TableLog, has_log, open_log, storage, told
from kreassign.pipeline.tables.schemas import LOADS, QUARANTINE, TABLES, Column, Table

_READ = frozenset({"load_number", "load_ms", "table_name", "version", "table_id"})
_AS_THEY_ARE = (LOADS, QUARANTINE)
"""`loads` says itself which loads were finished, and a load that finds no good row refers to `quarantine`."""


@dataclass(frozen=True, slots=True)
class TablesAt:
    """The tables of a directory at versions, by name; those that have none here as they are."""

    data_dir: DataDir
    versions: Mapping[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        return str(self.data_dir)


Where = DataDir | TablesAt
"""A directory of tables, or the tables of a directory as of one load; without a load it is the last finished one."""


@dataclass(frozen=True, slots=True)
class Load:
    """A load that was finished: its number, counted from 1, when it was begun, and the versions of tables by name.

    `ids` are those of the tables on which the next load stands; an older kreassign did not keep them.
    """

    number: int
    load_ms: int
    versions: Mapping[str, int]
    ids: Mapping[str, str] = field(default_factory=dict)


def last_load(data_dir: DataDir, as_of: AsOf | None = None) -> Load | None:
    """The last load, or the one that `as_of` says; None if there is none."""
    return _said(loads_of(data_dir), as_of)


def loads_of(data_dir: DataDir) -> list[Load]:
    """All loads that were finished, in order."""
    rows = _loads(data_dir) if has_log(data_dir, LOADS) else []
    own: dict[int, list[dict[str, Any]]] = {}
    for row in rows:
        own.setdefault(row["load_number"], []).append(row)
    return [
        Load(
            number,
            found[0]["load_ms"],
            {row["table_name"]: row["version"] for row in found},
            {row["table_name"]: row["table_id"] for row in found if row.get("table_id") is not None},
        )
        for number, found in sorted(own.items())
    ]


def kept_loads(loads: Sequence[Load], since_ms: float) -> list[Load]:
    """The loads of which one was the last at some time since then: the last of all, and those replaced since."""
    return [load for load, after in zip_longest(loads, loads[1:]) if after is None or after.load_ms >= since_ms]


def tables_at(data_dir: DataDir, as_of: AsOf | None = None) -> TablesAt:
    """The tables as the last load made them, or the one that `as_of` says.

    So a command reads all that it reads of a load from the same one. Tables of snapshots and samples are as they are:
    the load names the snapshot that it is about. DataError when there is no such load.
    """
    loads = loads_of(data_dir)
    load = _said(loads, as_of)
    if load is not None:
        return tables_of(data_dir, load)
    if as_of is None:
        return TablesAt(data_dir)
    if isinstance(as_of, LoadNumber):
        known = f"its loads are 1 to {loads[-1].number}" if loads else "there is none at all"
        raise DataError(f"{data_dir} has no {as_of}, {known}")
    first = f"the first began at {_utc(min(load.load_ms for load in loads))}" if loads else "there is none at all"
    raise DataError(f"no load of {data_dir} had begun by {_utc(as_of)}, {first}")


def tables_of(data_dir: DataDir, load: Load) -> TablesAt:
    """The tables as a load made them."""
    own = {table.name for table in TABLES if is_of_loads(table)}
    return TablesAt(data_dir, {name: version for name, version in load.versions.items() if name in own})


def _said(loads: Sequence[Load], as_of: AsOf | None) -> Load | None:
    match as_of:
        case None:
            found = list(loads)
        case LoadNumber():
            found = [load for load in loads if load.number == as_of.number]
        case _:
            found = [load for load in loads if load.load_ms <= as_of]
    return found[-1] if found else None


def is_of_loads(table: Table) -> bool:
    """Whether loads make the table, so that it is read as of one of them."""
    return table.made_by == LOADS.made_by and table not in _AS_THEY_ARE


def log_of(where: Where, table: Table) -> TableLog:
    """The log of a table at the version to read. DataError for a table of loads when none of them was finished."""
    data_dir = data_dir_of(where)
    at = where if isinstance(where, TablesAt) else tables_at(data_dir) if is_of_loads(table) else TablesAt(data_dir)
    if table.name in at.versions:
        return open_log(data_dir, table, at.versions[table.name])
    if not is_of_loads(table):
        return open_log(data_dir, table)
    if has_log(data_dir, table):
        raise DataError(
            f"no load that made table {table.name} in {data_dir} was finished; run `{table.made_by}`, and let it end"
        )
    return open_log(data_dir, table)


def has_table(where: Where, table: Table) -> bool:
    """Whether there is such a table, for readers that can do without."""
    return has_log(data_dir_of(where), table) and (
        not isinstance(where, TablesAt) or not is_of_loads(table) or table.name in where.versions
    )


def data_dir_of(where: Where) -> DataDir:
    """The directory."""
    return where.data_dir if isinstance(where, TablesAt) else where


def _loads(data_dir: DataDir) -> list[dict[str, Any]]:
    log = open_log(data_dir, LOADS)
    system, root = storage(data_dir, LOADS)
    return [row for file in log.files() for row in _rows(f"{root}{file.path}", system, data_dir, log.place_of(file))]


def _rows(path: str, system: fs.FileSystem, data_dir: DataDir, name: str) -> list[dict[str, Any]]:
    """The rows of a file; DataError where it cannot be read, or has other columns than the schema."""
    what_to_do = f"restore it from a copy, or take table {LOADS.name} away and run `{LOADS.made_by}`"
    with told(data_dir, LOADS):
        try:
            found = pq.ParquetFile(path, filesystem=system).read(use_threads=False)
        except pa.ArrowException as error:
            raise DataError(f"{name} cannot be read: {str(error).splitlines()[0]}; {what_to_do}") from error
    if wrong := [column.name for column in LOADS.columns if column.name in _READ and not _has(found, column)]:
        raise DataError(f"{name} lacks the columns {', '.join(wrong)}, or has them in another type; {what_to_do}")
    rows: list[dict[str, Any]] = found.to_pylist()
    return rows


def _has(found: pa.Table, column: Column) -> bool:
    """Whether there is such a column, with values where none may be missing; one that may be NULL may be missing."""
    if (places := found.schema.get_all_field_indices(column.name)) and len(places) == 1:
        values = found.column(places[0])
        kind = pa.string() if values.type in (pa.string_view(), pa.large_string()) else values.type
        return bool(kind == ARROW_TYPES[column.type]) and (column.nullable or not values.null_count)
    return column.nullable and not places


def _utc(time_ms: int) -> str:
    return f"{datetime.fromtimestamp(time_ms / 1000, UTC):%Y-%m-%d %H:%M:%S}Z"
