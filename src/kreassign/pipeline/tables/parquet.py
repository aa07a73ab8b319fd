"""Tables in Parquet files, without Spark: row by row, or columns as arrays where there are a million rows.

A file appears under its name only when it is complete, so a killed writer leaves nothing that a reader would see
(pyarrow and Spark skip names that begin with a dot).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import reduce
from operator import and_
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from kreassign.errors import DataError, InvariantBroken
from kreassign.pipeline.tables.schemas import BIGINT, BOOLEAN, DOUBLE, INT, INTS, STRING, Row, Table

_ARROW_TYPES = {
    STRING: pa.string(),
    INT: pa.int32(),
    BIGINT: pa.int64(),
    DOUBLE: pa.float64(),
    BOOLEAN: pa.bool_(),
    INTS: pa.list_(pa.int32()),
}


def write_rows(
    data_dir: Path, table: Table, rows: Sequence[Row], *, file_stem: str, taken_ms: int | None = None
) -> Path:
    """Write rows as one file of a table; a file of the same stem is replaced. Returns its path.

    With `taken_ms` the file goes into a folder of that date and hour, so that old ones are found by their name.
    """
    _check_rows(table, rows)
    folder = data_dir / table.name / ("" if taken_ms is None else hour_folder(taken_ms))
    folder.mkdir(parents=True, exist_ok=True)
    finished = folder / f"{file_stem}.parquet"
    unfinished = folder / f".{file_stem}.{os.getpid()}.unfinished"
    with unfinished.open("wb") as stream:
        pq.write_table(pa.Table.from_pylist(list(rows), schema=arrow_schema(table)), stream)
        stream.flush()
        os.fsync(stream.fileno())
    return unfinished.replace(finished)


def read_rows(data_dir: Path, table: Table, *, only: Mapping[str, object] | None = None) -> list[Row]:
    """All rows of a table, in order of file name; with `only`, those that have these values in these columns.

    Raises DataError when the table is missing or empty or a file has other columns than the schema. That no row
    has the values asked for is no error.
    """
    rows: list[Row] = read_table(data_dir, table, only=only).to_pylist()
    return rows


def read_table(
    data_dir: Path, table: Table, *, only: Mapping[str, object] | None = None, columns: Sequence[str] | None = None
) -> pa.Table:
    """What `read_rows` reads, as pyarrow has it, with some of its columns or all."""
    wanted = reduce(and_, (ds.field(name) == value for name, value in (only or {}).items()), ds.scalar(value=True))
    found = dataset_of(table, _files(data_dir, table)).to_table(
        filter=wanted, columns=None if columns is None else list(columns)
    )
    if not found.num_rows and not only:
        raise DataError(f"table {table.name} in {data_dir} has no rows; make it again with `{table.made_by}`")
    return found


def dataset_of(table: Table, files: Sequence[Path]) -> ds.Dataset:
    """Files of a table as one; DataError when one of them has other columns than the schema."""
    for file in files:
        _check_columns(table, file)
    return ds.dataset(list(files), schema=arrow_schema(table), format="parquet")


def keys_between(data_dir: Path, table: Table, first_ms: int, last_ms: int) -> set[tuple[object, ...]]:
    """The keys of the rows that were taken in this time, so that nobody adds them twice; of files that can be read."""
    return _keys(data_dir, table, (ds.field("taken_ms") >= first_ms) & (ds.field("taken_ms") <= last_ms))


def keys_with(data_dir: Path, table: Table, column: str, value: object) -> set[tuple[object, ...]]:
    """The keys of the rows with this value in a column, likewise."""
    return _keys(data_dir, table, ds.field(column) == value)


def _keys(data_dir: Path, table: Table, wanted: ds.Expression) -> set[tuple[object, ...]]:
    files, _ = usable_files(data_dir, table) if has_table(data_dir, table) else ([], [])
    if not files:
        return set()
    stored = ds.dataset(files, schema=arrow_schema(table), format="parquet")
    found = stored.to_table(filter=wanted, columns=list(table.key))
    return set(zip(*(found.column(name).to_pylist() for name in table.key), strict=True))


def hour_folder(time_ms: int) -> str:
    """Date and hour (UTC) as folders, as Hive names partitions."""
    return f"{datetime.fromtimestamp(time_ms // 1000, UTC):date=%Y-%m-%d/hour=%H}"


def has_table(data_dir: Path, table: Table) -> bool:
    """Whether there is such a table, for readers that can do without."""
    return (data_dir / table.name).is_dir()


def check_columns(data_dir: Path, table: Table) -> None:
    """Raise DataError unless every file of a table has its columns: Spark looks at one file and fills in NULL."""
    for file in _files(data_dir, table):
        _check_columns(table, file)


@dataclass(frozen=True, slots=True)
class Skipped:
    """A file in the folder of a table that is not read, and why."""

    file: Path
    reason: str

    def __str__(self) -> str:
        return f"{self.file} {self.reason}"


def usable_files(data_dir: Path, table: Table) -> tuple[list[Path], list[Skipped]]:
    """The files of a table that can be read, by their footers, and those that cannot; hidden ones are neither.

    A column that may be NULL may be missing. None at all is no error here.
    """
    folder = data_dir / table.name
    files = sorted(path for path in folder.rglob("*") if path.is_file() and not _is_hidden(path.relative_to(folder)))
    skipped = [Skipped(file, reason) for file in files if (reason := _why_not(table, file))]
    unusable = {each.file for each in skipped}
    return [file for file in files if file not in unusable], skipped


def _why_not(table: Table, file: Path) -> str | None:
    if file.suffix != ".parquet":
        return "is no file of a table: its name does not end in .parquet"
    try:
        found = pq.read_schema(file)
    except pa.ArrowException as error:
        return f"is cut off, or not a Parquet file: {str(error).splitlines()[0]}"
    except OSError as error:
        return f"cannot be read: {error}"
    required = [column.name for column in table.columns if not column.nullable]
    if missing := [name for name in required if name not in found.names]:
        return f"lacks the columns {', '.join(missing)}"
    wrong = [field for field in arrow_schema(table) if field.name in found.names and not _has(found, field)]
    told = (f"{field.name} as {found.field(field.name).type} in place of {field.type}" for field in wrong)
    return f"has {', '.join(told)}" if wrong else None


def arrow_schema(table: Table) -> pa.Schema:
    """The schema for pyarrow; NULL in columns that are not nullable is refused when rows are written."""
    return pa.schema([pa.field(column.name, _ARROW_TYPES[column.type]) for column in table.columns])


def _files(data_dir: Path, table: Table) -> list[Path]:
    folder = data_dir / table.name
    files = sorted(
        (path for path in folder.rglob("*.parquet") if not _is_hidden(path.relative_to(folder))),
        key=lambda path: path.name,
    )
    if not files:
        refuse_former(data_dir, [table])
        raise DataError(f"there is no table {table.name} in {data_dir}; make it with `{table.made_by}`")
    return files


def refuse_former(data_dir: Path, tables: Iterable[Table]) -> None:
    """Raise DataError if one of them is there by the name that an older kreassign gave it, with what to do.

    Nothing reads such a table any more: without this its rows would be missing, and nobody would be told.
    """
    for table in tables:
        if table.former_name is not None and (data_dir / table.former_name).is_dir():
            raise DataError(
                f"{data_dir} has the table {table.former_name} of an older kreassign, which is {table.name} now; "
                f"remove it and run `{table.made_by}` again"
            )


def _is_hidden(path: Path) -> bool:
    """Whether it, or a folder that holds it, is not part of the table, as its name says."""
    return any(part.startswith((".", "_")) for part in path.parts)


def _check_columns(table: Table, file: Path) -> None:
    try:
        found = pq.read_schema(file)
    except pa.ArrowException as error:
        raise DataError(f"{file} is not a Parquet file: {error}; remove it and run `{table.made_by}` again") from error
    # Written with other list field names, lists are the same type to a reader: equality of types ignores them.
    wrong = [field.name for field in arrow_schema(table) if not _has(found, field)]
    if wrong:
        raise DataError(
            f"table {table.name}: {file} lacks the columns {', '.join(wrong)} of this version of kreassign, or has "
            f"them in another type; remove it and run `{table.made_by}` again"
        )


def _has(schema: pa.Schema, wanted: pa.Field) -> bool:
    return wanted.name in schema.names and schema.field(wanted.name).type == wanted.type


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
    """A column of texts: `codes` are indices into the sorted `names`, -1 where the value is NULL."""

    names: tuple[str, ...]
    codes: npt.NDArray[np.int32]


ColumnArray = npt.NDArray[np.int64] | npt.NDArray[np.float64] | npt.NDArray[np.bool_] | Dictionary


def read_columns(
    data_dir: Path, table: Table, names: tuple[str, ...], *, only: Mapping[str, object] | None = None
) -> dict[str, ColumnArray]:
    """Some columns of a table, of the rows that have the values in `only`.

    Integers that may be NULL become floats, with NaN for NULL. Raises DataError as `read_rows` does.
    """
    found = read_table(data_dir, table, only=only, columns=names)
    return {name: _array(found.column(name).combine_chunks()) for name in names}


def _array(column: pa.Array) -> ColumnArray:
    if pa.types.is_string(column.type):
        coded = column.dictionary_encode()
        names = coded.dictionary.to_pylist()
        order = np.argsort(np.array(names, dtype=object)) if names else np.zeros(0, np.int64)
        rank = np.empty(len(names) + 1, np.int32)
        rank[order] = np.arange(len(names), dtype=np.int32)
        rank[-1] = -1  # the place of NULL
        return Dictionary(tuple(names[place] for place in order), rank[coded.indices.fill_null(len(names)).to_numpy()])
    array: ColumnArray = column.to_numpy(zero_copy_only=False)
    return array
