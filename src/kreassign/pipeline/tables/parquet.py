"""Read and write rows of tables, without Spark: row by row, or as arrays where there are a million rows.

The log of a table says which files belong to it (`delta.py`), so a killed writer leaves nothing that a reader sees.
Tables of a load are read at the versions of a finished load, never in between.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import reduce
from itertools import islice, zip_longest
from operator import and_
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from deltalake.transaction import AddAction
from pyarrow import fs

from kreassign.errors import DataError, InvariantBroken
from kreassign.model.load import LAST_LOAD, AsOf, LoadNumber
from kreassign.pipeline.tables import delta
from kreassign.pipeline.tables.arrow import ARROW_TYPES, arrow_schema
from kreassign.pipeline.tables.schemas import LOADS, QUARANTINE, TABLES, Column, Partitioning, Row, Table, utc

# Versions of tables for readers: those of a finished load, never in between.
#
# A load commits each of its tables by itself, and last of all its versions to table `loads`, in one commit
# (`commits.py`). A version not listed there is of a load that is unfinished or failed.

_READ = frozenset({"load_number", "load_ms", "table_name", "version", "table_id"})
_AS_THEY_ARE = (LOADS, QUARANTINE)
"""Read at the newest version: `loads` lists finished loads, and a load without a good row refers to `quarantine`."""


@dataclass(frozen=True, slots=True)
class TablesAt:
    """The tables of a directory at versions, by name; tables without a version are read as they are."""

    data_dir: delta.DataDir
    versions: Mapping[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        return str(self.data_dir)


Where = delta.DataDir | TablesAt
"""A directory of tables (read as of the last finished load), or the tables of a directory as of one load."""


@dataclass(frozen=True, slots=True)
class Load:
    """A finished load: its number, counted from 1, its start time, and the versions of tables by name.

    `ids` are those of the tables that the next load builds on.
    """

    number: int
    load_ms: int
    versions: Mapping[str, int]
    ids: Mapping[str, str] = field(default_factory=dict)


def last_load(data_dir: delta.DataDir, as_of: AsOf | None = None) -> Load | None:
    """The last load, or the load that `as_of` selects; None without any."""
    return _said(loads_of(data_dir), as_of)


def loads_of(data_dir: delta.DataDir) -> list[Load]:
    """All finished loads, in order."""
    rows = _loads(data_dir) if delta.has_log(data_dir, LOADS) else []
    own: dict[int, list[dict[str, Any]]] = {}
    for row in rows:
        own.setdefault(row["load_number"], []).append(row)
    return [
        Load(
            number,
            found[0]["load_ms"],
            {row["table_name"]: row["version"] for row in found},
            {row["table_name"]: row["table_id"] for row in found if row["table_id"] is not None},
        )
        for number, found in sorted(own.items())
    ]


def kept_loads(loads: Sequence[Load], since_ms: float) -> list[Load]:
    """Loads that were the last one at some time since `since_ms`: the last of all, and those replaced since."""
    return [load for load, after in zip_longest(loads, loads[1:]) if after is None or after.load_ms >= since_ms]


def tables_at(data_dir: delta.DataDir, as_of: AsOf | None = None) -> TablesAt:
    """Tables as of the last load, or of the load that `as_of` selects.

    So a command reads everything from the same load. Tables of snapshots and samples are read as they are: the load
    names its snapshot. Raises DataError if there is no such load.
    """
    loads = loads_of(data_dir)
    load = _said(loads, as_of)
    if load is not None:
        return tables_of(data_dir, load)
    if as_of is None or as_of == LAST_LOAD:
        return TablesAt(data_dir)
    if isinstance(as_of, LoadNumber):
        known = f"its loads are 1 to {loads[-1].number}" if loads else "there is none at all"
        raise DataError(f"{data_dir} has no {as_of}, {known}")
    first = f"the first began at {utc(min(load.load_ms for load in loads))}" if loads else "there is none at all"
    raise DataError(f"no load of {data_dir} had begun by {utc(as_of)}, {first}")


def tables_of(data_dir: delta.DataDir, load: Load) -> TablesAt:
    """Tables as the load made them."""
    own = {table.name for table in TABLES if is_of_loads(table)}
    return TablesAt(data_dir, {name: version for name, version in load.versions.items() if name in own})


def _said(loads: Sequence[Load], as_of: AsOf | None) -> Load | None:
    match as_of:
        case None | "last":
            found = list(loads)
        case LoadNumber():
            found = [load for load in loads if load.number == as_of.number]
        case _:
            found = [load for load in loads if load.load_ms <= as_of]
    return found[-1] if found else None


def is_of_loads(table: Table) -> bool:
    """True for tables that loads make, which are read as of a load."""
    return table.made_by == LOADS.made_by and table not in _AS_THEY_ARE


def log_of(where: Where, table: Table) -> delta.TableLog:
    """Log of a table at the version to read. Raises DataError for a table of loads without a finished load."""
    data_dir = data_dir_of(where)
    at = where if isinstance(where, TablesAt) else tables_at(data_dir) if is_of_loads(table) else TablesAt(data_dir)
    if table.name in at.versions:
        return delta.open_log(data_dir, table, at.versions[table.name])
    if not is_of_loads(table):
        return delta.open_log(data_dir, table)
    if delta.has_log(data_dir, table):
        raise DataError(
            f"no load that made table {table.name} in {data_dir} was finished; run `{table.made_by}`, and let it end"
        )
    return delta.open_log(data_dir, table)


def has_table(where: Where, table: Table) -> bool:
    """True if the table exists."""
    return delta.has_log(data_dir_of(where), table) and (
        not isinstance(where, TablesAt) or not is_of_loads(table) or table.name in where.versions
    )


def stored_rows(where: Where, tables: Iterable[Table]) -> int:
    """Number of rows of tables, from their logs; none of a table that is not there."""
    return sum(file.row_count for table in tables if has_table(where, table) for file in log_of(where, table).files())


def data_dir_of(where: Where) -> delta.DataDir:
    """Directory of the tables."""
    return where.data_dir if isinstance(where, TablesAt) else where


def _loads(data_dir: delta.DataDir) -> list[dict[str, Any]]:
    log = delta.open_log(data_dir, LOADS)
    system, root = delta.storage(data_dir, LOADS)
    return [
        row for file in log.files() for row in _load_rows(f"{root}{file.path}", system, data_dir, log.place_of(file))
    ]


def _load_rows(path: str, system: fs.FileSystem, data_dir: delta.DataDir, name: str) -> list[dict[str, Any]]:
    """Rows of a file. Raises DataError if it is unreadable, or has other columns than the schema."""
    what_to_do = f"restore it from a copy, or take table {LOADS.name} away and run `{LOADS.made_by}`"
    with delta.told(data_dir, LOADS):
        try:
            found = pq.ParquetFile(path, filesystem=system).read(use_threads=False)
        except pa.ArrowException as error:
            raise DataError(f"{name} cannot be read: {str(error).splitlines()[0]}; {what_to_do}") from error
    if wrong := [column.name for column in LOADS.columns if column.name in _READ and not _has_values(found, column)]:
        raise DataError(f"{name} lacks the columns {', '.join(wrong)}, or has them in another type; {what_to_do}")
    rows: list[dict[str, Any]] = found.to_pylist()
    return rows


def _has_values(found: pa.Table, column: Column) -> bool:
    """True if there is exactly one such column, with values where NULL is not allowed."""
    places = found.schema.get_all_field_indices(column.name)
    if len(places) != 1:
        return False
    values = found.column(places[0])
    kind = pa.string() if values.type in (pa.string_view(), pa.large_string()) else values.type
    return bool(kind == ARROW_TYPES[column.type]) and (column.nullable or not values.null_count)


# Read and write rows of tables: row by row, or columns as arrays.

ROWS_AT_ONCE = 50_000
_NOT_THERE = "is in the log of the table, but not there"


def write_rows(data_dir: delta.DataDir, table: Table, rows: Iterable[Row], *, file_stem: str) -> int:
    """Add rows to a table in one commit; returns the number of its new version. `rows` may be a generator.

    Replaces rows written with the same stem and not yet compacted; in a table that is not partitioned by date also all
    rows with the same value in the partition column.
    """
    found = _arrow_rows(table, rows)
    log = delta.log_to_write(data_dir, table)
    files = write_files(data_dir, table, found, file_stem)
    if not files:
        return log.version
    part = table.partition_by
    if part is not None and not part.is_date:
        return delta.commit(log, files, replace=True, parts=sorted(set(_part_values(part, found).to_pylist())))
    return delta.commit(log, files, removed=[file for file in log.files() if delta.is_of_stem(file, file_stem)])


def append_once(data_dir: delta.DataDir, table: Table, rows: Sequence[Row], *, identity: str, number: int) -> bool:
    """Add rows unless those of this or a later number of the identity are in the table; returns whether it did.

    The log remembers the last number of each identity, so this holds across kills, compaction and vacuum.
    """
    found = _arrow_rows(table, rows)
    log = delta.log_to_write(data_dir, table)
    return delta.commit_once(log, write_files(data_dir, table, found, identity), identity, number)


def write_files(data_dir: delta.DataDir, table: Table, rows: pa.Table, stem: str) -> list[AddAction]:
    """Write a file per value of the partition column; the files are in no version before a commit."""
    part = table.partition_by
    if not rows.num_rows:
        return []
    if part is None:
        return [_write_file(data_dir, table, rows, stem, None)]
    values = _part_values(part, rows)
    return [
        _write_file(data_dir, table, rows.filter(pc.equal(values, value)), stem, value)
        for value in sorted(values.unique().to_pylist())
    ]


def _part_values(part: Partitioning, rows: pa.Table) -> pa.Array:
    """Value of the partition column for each row."""
    given = rows.column(part.column).combine_chunks().dictionary_encode()
    values = [part.value_of({part.column: value}) for value in given.dictionary.to_pylist()]
    return pa.array(values, pa.string()).take(given.indices)


def _arrow_rows(table: Table, rows: Iterable[Row]) -> pa.Table:
    """Convert rows to a pyarrow table, batch by batch: a row takes half a kilobyte in Python."""
    schema, coming, parts = arrow_schema(table), iter(rows), list[pa.RecordBatch]()
    while part := list(islice(coming, ROWS_AT_ONCE)):
        _check_rows(table, part)
        parts.append(pa.RecordBatch.from_pylist(part, schema))
    return pa.Table.from_batches(parts, schema)


def _write_file(data_dir: delta.DataDir, table: Table, rows: pa.Table, stem: str, value: str | None) -> AddAction:
    part = table.partition_by
    folder = f"{part.name}={value}/" if part and part.is_date else ""
    path = f"{folder}{delta.new_name(stem)}"
    system, root = delta.storage(data_dir, table)
    with delta.told(data_dir, table):
        system.create_dir(f"{root}{folder}".rstrip("/") or ".", recursive=True)
        with system.open_output_stream(f"{root}{path}") as stream, pq.ParquetWriter(stream, rows.schema) as writer:
            writer.write_table(rows)
        if isinstance(system, fs.LocalFileSystem):
            with Path(f"{root}{path}").open("rb") as written:
                os.fsync(written.fileno())
    info = system.get_file_info(f"{root}{path}")
    with system.open_input_file(f"{root}{path}") as stream:
        metadata = pq.read_metadata(stream)
    return delta.described(table, path, info.size, delta.modified_ms(info), metadata, value)


def read_rows(where: Where, table: Table, *, only: Mapping[str, object] | None = None) -> list[Row]:
    """All rows of a table, in order of file name; with `only`, those that have these values in these columns.

    Raises DataError if the table is missing or empty, or if a file has other columns than the schema. Without rows of
    these values the list is empty.
    """
    rows: list[Row] = read_table(where, table, only=only).to_pylist()
    return rows


def read_table(
    where: Where, table: Table, *, only: Mapping[str, object] | None = None, columns: Sequence[str] | None = None
) -> pa.Table:
    """Read rows as `read_rows` does, as a pyarrow table, with some or all columns."""
    log = log_of(where, table)
    delta.refuse_wrong_columns(log)
    wanted = reduce(and_, (ds.field(name) == value for name, value in (only or {}).items()), ds.scalar(value=True))
    found = rows_in(log, log.files(only), wanted, columns)
    if not found.num_rows and not only:
        raise DataError(f"table {table.name} in {log.data_dir} has no rows; make it again with `{table.made_by}`")
    _refuse_nulls(log, found)
    return found


def _refuse_nulls(log: delta.TableLog, found: pa.Table) -> None:
    """Raise DataError for NULL in a required column: a file may be foreign in spite of its columns."""
    required = {column.name for column in log.table.columns if not column.nullable}
    for name in found.column_names:
        if name in required and (count := found.column(name).null_count):
            raise DataError(
                f"table {log.table.name} in {log.data_dir} has no {name} in {count:,} of its rows, where it must have "
                f"one; make it again with `{log.table.made_by}`"
            )


def rows_in(
    log: delta.TableLog, files: Sequence[delta.DataFile], wanted: ds.Expression, columns: Sequence[str] | None = None
) -> pa.Table:
    """Rows of these files that match `wanted`. Raises DataError if a file is unreadable."""
    with delta.told(log.data_dir, log.table):
        return _dataset_of(log, files).to_table(
            filter=wanted,
            columns=None if columns is None else list(columns),
            # Other addresses use a file system written in Python: a thread that still reads through it when the
            # interpreter ends aborts the process.
            use_threads=delta.local_place(log.data_dir) is not None,
        )


def all_rows(log: delta.TableLog, columns: Sequence[str]) -> pa.Table:
    """Some columns of all rows of a table at its version. Raises DataError if a file is unreadable."""
    return rows_in(log, log.files(), ds.scalar(value=True), columns)


def _dataset_of(log: delta.TableLog, files: Sequence[delta.DataFile]) -> ds.Dataset:
    """Files of a table as one dataset. Raises DataError if a file is unreadable."""
    for path, reason in why_not(log, files).items():
        if reason is _NOT_THERE and log.version < delta.open_log(log.data_dir, log.table).version:
            raise DataError(delta.no_longer_kept(log.data_dir, log.table, log.version))
        gone = "" if reason is _NOT_THERE else "delete it, "
        place = delta.place(log.data_dir, log.table.name, path)
        raise DataError(
            f"table {log.table.name}: {place} {reason}; restore it from a copy, or {gone}take it out of the "
            f"table with `kreassign compact --data {log.data_dir}` and run `{log.table.made_by}` again"
        )
    system, root = delta.storage(log.data_dir, log.table)
    return ds.dataset(
        [f"{root}{file.path}" for file in files], schema=arrow_schema(log.table), format="parquet", filesystem=system
    )


def rows_at(data_dir: delta.DataDir, table: Table, times_ms: Collection[int]) -> dict[tuple[object, ...], Row]:
    """Rows taken at these times by their keys, to prevent adding them twice; unreadable files are skipped.

    By times, not by range: the range may hold a hundred times the imported rows.
    """
    if not has_table(data_dir, table):
        return {}
    log = log_of(data_dir, table)
    files = log.files(time="taken_ms", begin_ms=min(times_ms), end_ms=max(times_ms) + 1)
    found = _readable(log, files, ds.field("taken_ms").isin(pa.array(sorted(times_ms), pa.int64())))
    return {tuple(row[name] for name in table.key): row for row in found}


def keys_with(data_dir: delta.DataDir, table: Table, column: str, value: object) -> set[tuple[object, ...]]:
    """Keys of rows with this value in a column; unreadable files are skipped."""
    if not has_table(data_dir, table):
        return set()
    log = log_of(data_dir, table)
    found = _readable(log, log.files({column: value}), ds.field(column) == value, table.key)
    return {tuple(row[name] for name in table.key) for row in found}


def _readable(
    log: delta.TableLog, files: Sequence[delta.DataFile], wanted: ds.Expression, columns: Sequence[str] | None = None
) -> list[Row]:
    unreadable = why_not(log, files)
    usable = [file for file in files if file.path not in unreadable]
    return rows_in(log, usable, wanted, columns).to_pylist() if usable else []


@dataclass(frozen=True, slots=True)
class Skipped:
    """A file in the folder of a table that is not read, with the reason."""

    file: str
    reason: str

    def __str__(self) -> str:
        return f"{self.file} {self.reason}"


def usable_files(log: delta.TableLog, files: Sequence[delta.DataFile]) -> tuple[list[delta.DataFile], list[Skipped]]:
    """Split these files of a table into readable ones and skipped ones, by their footers.

    Nullable columns may be missing. Files in the folder that are not of the table are also reported.
    """
    usable, skipped = readable_files(log, files)
    return usable, [*skipped, *strange_files(log)]


def readable_files(log: delta.TableLog, files: Sequence[delta.DataFile]) -> tuple[list[delta.DataFile], list[Skipped]]:
    """Split these files of a table as `usable_files` does, without a look at others in the folder."""
    reasons = why_not(log, files)
    skipped = [Skipped(log.place_of(file), reasons[file.path]) for file in files if file.path in reasons]
    return [file for file in files if file.path not in reasons], skipped


def strange_files(log: delta.TableLog) -> list[Skipped]:
    """Files in the folder of a table that were never in its log."""
    local = delta.local_place(log.data_dir)
    if local is None:
        return []
    folder = local / log.table.name
    # Nearly all others were in the log before, and stay until vacuum deletes them: their names alone say so.
    others = sorted(path for path in delta.visible_files(folder) if not delta.is_own_name(path.name))
    known = {file.path for file in log.files()} if others else set()
    return [Skipped(str(path), _why_strange(path)) for path in others if str(path.relative_to(folder)) not in known]


def _why_strange(file: Path) -> str:
    if file.suffix != ".parquet":
        return "is no file of a table: its name does not end in .parquet"
    return "is not in the log of the table; import it with `kreassign import-samples`"


_AT_ONCE = 16
"""Footers to read in parallel: an object store has latency for each."""


def why_not(log: delta.TableLog, files: Sequence[delta.DataFile]) -> dict[str, str]:
    """Why files are unreadable as part of a table, by path; without readable ones. Nullable columns may be missing."""
    system, root = delta.storage(log.data_dir, log.table)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        found = pool.map(lambda file: _why_not(system, f"{root}{file.path}", log.table), files)
        return {file.path: reason for file, reason in zip(files, found, strict=True) if reason}


def _why_not(system: fs.FileSystem, path: str, table: Table) -> str | None:
    try:
        with system.open_input_file(path) as stream:
            found = pq.read_schema(stream)
    except FileNotFoundError:
        return _NOT_THERE
    except pa.ArrowException as error:
        return f"is cut off, or not a Parquet file: {str(error).splitlines()[0]}"
    except OSError as error:
        return f"cannot be read: {error}"
    required = [column.name for column in table.columns if not column.nullable]
    if missing := [name for name in required if name not in found.names]:
        return f"lacks the columns {', '.join(missing)}"
    if twice := [name for name in dict.fromkeys(found.names) if found.names.count(name) > 1]:
        return f"has {', '.join(map(repr, twice))} more than once"
    wrong = [field for field in arrow_schema(table) if field.name in found.names and not _has_column(found, field)]
    told = (f"{field.name} as {found.field(field.name).type} in place of {field.type}" for field in wrong)
    return f"has {', '.join(told)}" if wrong else None


def _has_column(schema: pa.Schema, wanted: pa.Field) -> bool:
    found = schema.field(wanted.name).type if wanted.name in schema.names else None
    # `deltalake` writes texts with another type in memory; in the file they are the same.
    return bool(wanted.type == (pa.string() if found in (pa.string_view(), pa.large_string()) else found))


def _check_rows(table: Table, rows: Sequence[Row]) -> None:
    names = set(table.column_names)
    required = [column.name for column in table.columns if not column.nullable]
    for row in rows:
        if row.keys() != names:
            raise InvariantBroken(f"table {table.name}: a row has the columns {sorted(row)}, not {sorted(names)}")
        missing = [name for name in required if row[name] is None]
        if missing:
            raise InvariantBroken(f"table {table.name}: a row has no value for {', '.join(missing)}")


@dataclass(frozen=True, slots=True, eq=False)
class Dictionary:
    """A column of texts: `codes` are indices into the sorted `names`, -1 for NULL."""

    names: tuple[str, ...]
    codes: npt.NDArray[np.int32]

    def codes_in(self, names: Sequence[str]) -> npt.NDArray[np.int64]:
        """Indices of the texts among other names, -1 where they lack one."""
        number = {name: code for code, name in enumerate(names)}
        return np.array([number.get(name, -1) for name in self.names], np.int64)[self.codes]


def dictionary(column: ColumnArray) -> Dictionary:
    """Narrow a column of texts."""
    assert isinstance(column, Dictionary)
    return column


def places_of_keys(keys: npt.NDArray[np.int64], wanted: npt.NDArray[np.int64]) -> npt.NDArray[np.intp]:
    """Index of each wanted key among the keys, of equal ones the first; -1 if missing."""
    if not len(keys):
        return np.full(len(wanted), -1, np.intp)
    order = np.argsort(keys, kind="stable")
    place = order[np.minimum(np.searchsorted(keys, wanted, sorter=order), len(keys) - 1)]
    return np.where(keys[place] == wanted, place, -1)


ColumnArray = npt.NDArray[np.int64] | npt.NDArray[np.float64] | npt.NDArray[np.bool_] | Dictionary


def read_columns(
    where: Where, table: Table, names: tuple[str, ...], *, only: Mapping[str, object] | None = None
) -> dict[str, ColumnArray]:
    """Read some columns of a table, of the rows that have the values in `only`.

    Nullable integers become floats, with NaN for NULL. Raises DataError as `read_rows` does.
    """
    return column_arrays(read_table(where, table, only=only, columns=names))


def column_arrays(rows: pa.Table) -> dict[str, ColumnArray]:
    """Columns of these rows as arrays, as in `read_columns`."""
    return {name: _array(rows.column(name).combine_chunks()) for name in rows.column_names}


def _array(column: pa.Array) -> ColumnArray:
    if pa.types.is_string(column.type):
        coded = column.dictionary_encode()
        names = coded.dictionary.to_pylist()
        order = np.argsort(np.array(names, dtype=object)) if names else np.zeros(0, np.int64)
        rank = np.empty(len(names) + 1, np.int32)
        rank[order] = np.arange(len(names), dtype=np.int32)
        rank[-1] = -1  # the code of NULL
        return Dictionary(tuple(names[place] for place in order), rank[coded.indices.fill_null(len(names)).to_numpy()])
    array: ColumnArray = column.to_numpy(zero_copy_only=False)
    return array
