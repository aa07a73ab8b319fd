"""The log of a table: which Parquet files belong to which version of it. The format is Delta Lake's.

The package `deltalake` keeps the log, without Java; pyarrow or Spark may write the files.

- A file belongs to a version because the log says so, never because it lies in the folder. Files that a killed writer
  left, or that a copy brought back, belong to no version.
- No file name is used twice: a version, once committed, reads the same until its files are vacuumed.
- One commit is one change: a reader sees all of it or nothing.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast
from urllib.parse import unquote, urlsplit
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import CommitProperties, DeltaTable, Field, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.fs import DeltaStorageHandler
from deltalake.transaction import AddAction, RemoveAction
from pyarrow import fs

from kreassign.errors import DataError
from kreassign.pipeline.tables.access import BOUNDS, cause_of, for_log, for_spark, make_private_folder
from kreassign.pipeline.tables.arrow import ARROW_TYPES
from kreassign.pipeline.tables.schemas import Table

DataDir = Path | str
"""A directory, or an address of an object store, such as `s3a://bucket/data`."""

LOG_FOLDER = "_delta_log"
KEEP_DAYS = 7
"""Days for which files of old versions stay, and so how far back a version can be read."""
CONFIGURATION: dict[str, str | None] = {
    "delta.deletedFileRetentionDuration": f"interval {KEEP_DAYS} days",
    "delta.logRetentionDuration": f"interval {KEEP_DAYS} days",
    # A commit reads those since the last checkpoint; with 100, the default, a round costs three times as much.
    "delta.checkpointInterval": "10",
}
_READER_VERSION, _WRITER_VERSION = 1, 2
"""Delta protocol 1 and 2: no deletion vectors, column mapping and the like."""
_BOUNDED = ("taken_ms", "hour_ms", "load_ms", "snapshot_id", "cluster_id", "run_id", "label", "name")
"""Columns whose lowest and highest value the log has for every file."""
_OWN_NAME = re.compile(r"[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}")


@dataclass(frozen=True, slots=True)
class DataFile:
    """A Parquet file in the log of a table: path in the table's folder, bytes, rows, and bounds by column."""

    path: str
    size: int
    row_count: int
    part: str | None
    lows: Mapping[str, Any]
    highs: Mapping[str, Any]

    def may_have(self, name: str, value: object) -> bool:
        """False if the log's bounds rule out this value in this column."""
        low, high = self.lows.get(name), self.highs.get(name)
        return low is None or high is None or bool(low <= value <= high)

    def may_be_within(self, name: str, begin: float | None, end: float | None) -> bool:
        """False if the log's bounds rule out values from `begin` until before `end` in this column."""
        low, high = self.lows.get(name), self.highs.get(name)
        return (end is None or low is None or low < end) and (begin is None or high is None or high >= begin)


@dataclass(frozen=True, slots=True, eq=False)
class TableLog:
    """A table at one version."""

    table: Table
    data_dir: DataDir
    delta: DeltaTable
    _listed: dict[int, list[DataFile]] = field(default_factory=dict, init=False, repr=False)

    @property
    def version(self) -> int:
        """Number of the version."""
        return self.delta.version()

    @property
    def table_id(self) -> str:
        """Id that changes when a table is created again under the same name, with versions from 0."""
        return str(self.delta.metadata().id)

    def files(
        self,
        only: Mapping[str, object] | None = None,
        *,
        time: str | None = None,
        begin_ms: float | None = None,
        end_ms: float | None = None,
    ) -> list[DataFile]:
        """Files ordered by name, without those whose bounds rule out these values or this range."""
        found = self._all_files()
        part = self.table.partition_by
        wanted = only or {}
        if part is not None and part.column in wanted:
            value = part.value_of(dict(wanted))
            found = [file for file in found if file.part in (None, value)]
        return [
            file
            for file in found
            if all(file.may_have(name, value) for name, value in wanted.items())
            and (time is None or file.may_be_within(time, begin_ms, end_ms))
        ]

    def _all_files(self) -> list[DataFile]:
        """All files of the version, listed once: a load asks for those of each snapshot and of each window."""
        if self.version not in self._listed:
            found = _data_files(pa.table(self.delta.get_add_actions(flatten=True)))
            found.sort(key=lambda file: (file.path.rpartition("/")[2], file.path))
            self._listed[self.version] = found
        return self._listed[self.version]

    def place_of(self, file: DataFile) -> str:
        """Place of a file: a path of this machine, or an address for Spark."""
        return place(self.data_dir, self.table.name, file.path)


def place(data_dir: DataDir, *names: str) -> str:
    """Path of an entry in the directory, in the form for Spark."""
    if isinstance(data_dir, Path):
        return str(data_dir.joinpath(*names))
    return for_spark("/".join((data_dir.rstrip("/"), *filter(None, names))))


def local_place(data_dir: DataDir) -> Path | None:
    """The directory as a local path; None for an object store."""
    if isinstance(data_dir, Path):
        return data_dir
    return Path(unquote(urlsplit(data_dir).path)) if data_dir.startswith("file:") else None


def storage(data_dir: DataDir, table: Table) -> tuple[fs.FileSystem, str]:
    """File system of a table, and the prefix of its paths there."""
    local = local_place(data_dir)
    if local is not None:
        return fs.LocalFileSystem(), f"{(local / table.name).absolute()}/"
    with told(data_dir, table):
        return fs.PyFileSystem(cast("Any", DeltaStorageHandler(table_uri(data_dir, table), options(data_dir)))), ""


def options(data_dir: DataDir) -> dict[str, str] | None:
    """Options for `deltalake`, beside those of the environment; None for local tables."""
    return None if local_place(data_dir) is not None else BOUNDS


def has_log(data_dir: DataDir, table: Table) -> bool:
    """True if the table exists. Raises DataError for Parquet files without a log."""
    local = local_place(data_dir)
    if local is None:
        with told(data_dir, table):
            return DeltaTable.is_deltatable(table_uri(data_dir, table), options(data_dir))
    if (local / table.name / LOG_FOLDER).is_dir():
        return True
    _refuse_files_without_log(data_dir, table)
    return False


def open_log(data_dir: DataDir, table: Table, version: int | None = None) -> TableLog:
    """Open a table, now or at a version. Raises DataError if it is missing, or has features of other writers."""
    with told(data_dir, table):
        uri = table_uri(data_dir, table)
        try:
            found = TableLog(table, data_dir, DeltaTable(uri, version=version, storage_options=options(data_dir)))
        except (DeltaError, TableNotFoundError) as error:
            if version is None or not has_log(data_dir, table):
                raise
            raise DataError(no_longer_kept(data_dir, table, version)) from error
    _refuse_features(found)
    return found


def no_longer_kept(data_dir: DataDir, table: Table, version: int) -> str:
    """Message for a version that was deleted."""
    return (
        f"version {version} of table {table.name} in {data_dir} is no longer there: old versions are kept for "
        f"{KEEP_DAYS} days; choose a later load, or none"
    )


def log_to_write(data_dir: DataDir, table: Table) -> TableLog:
    """Open the table for a commit, creating it if missing. Raises DataError if it has other columns."""
    if not has_log(data_dir, table):
        where = table_uri(data_dir, table)
        if isinstance(data_dir, Path):
            make_private_folder(data_dir)
        try:
            with told(data_dir, table):
                DeltaTable.create(
                    where,
                    schema=log_schema(table),
                    partition_by=[table.partition_by.name] if table.partition_by else [],
                    name=table.name,
                    description=table.comment,
                    configuration=CONFIGURATION,
                    storage_options=options(data_dir),
                )
        except DataError:
            if not has_log(data_dir, table):  # otherwise another process created it at the same time
                raise
    log = open_log(data_dir, table)
    _refuse_other_parts(log)
    if new := _new_columns(log):
        try:
            with told(data_dir, table):
                log.delta.alter.add_columns([Field.from_arrow(log_schema(table).field(name)) for name in new])
        except DataError:
            if _new_columns(open_log(data_dir, table)):  # otherwise another process added them at the same time
                raise
        log = open_log(data_dir, table)
    refuse_wrong_columns(log)
    return log


def _refuse_other_parts(log: TableLog) -> None:
    part = log.table.partition_by
    found, wanted = log.delta.metadata().partition_columns, [part.name] if part else []
    if list(found) != wanted:
        raise DataError(
            f"table {log.table.name} in {log.data_dir} groups its files by {', '.join(found) or 'nothing'}, and this "
            f"version of kreassign by {', '.join(wanted) or 'nothing'}; move its folder away and make it again with "
            f"`{log.table.made_by}`"
        )


def log_schema(table: Table) -> pa.Schema:
    """Schema in the log: the columns, and the partition column."""
    columns = [
        pa.field(column.name, ARROW_TYPES[column.type], column.nullable, metadata={"comment": column.comment})
        for column in table.columns
    ]
    part = table.partition_by
    extra = [] if part is None else [pa.field(part.name, pa.date32() if part.is_date else pa.string())]
    return pa.schema([*columns, *extra])


def new_name(stem: str) -> str:
    """Unique file name, with letters that need no quoting in any address."""
    return f"{_plain(stem)}.{uuid4()}.parquet"


def is_of_stem(file: DataFile, stem: str) -> bool:
    """True if the file was named by this stem."""
    return re.sub(rf"\.{_OWN_NAME.pattern}\.parquet$", "", file.path.rpartition("/")[2]) == _plain(stem)


def modified_ms(info: fs.FileInfo) -> int:
    """Modification time of a file, ms since the epoch."""
    return int(info.mtime_ns) // 1_000_000


def is_own_name(name: str) -> bool:
    """True for names as in Delta tables: if in no log, the file was in one before, or was never finished."""
    return _OWN_NAME.search(name) is not None


def described(
    table: Table, path: str, size: int, modified_ms: int, metadata: pq.FileMetaData, part: str | None
) -> AddAction:
    """Describe a written file for `commit`. `part` is its value of the partition column."""
    return AddAction(
        path=path,
        size=size,
        partition_values={table.partition_by.name: part} if table.partition_by else {},
        modification_time=modified_ms,
        data_change=True,
        stats=json.dumps(stats_of(metadata)),
    )


def commit(
    log: TableLog,
    files: Sequence[AddAction],
    *,
    replace: bool = False,
    parts: Sequence[str] | None = None,
    removed: Sequence[DataFile] = (),
) -> int:
    """Add files to a table; returns the number of the version with them.

    With `replace` they replace all files, or all in these `parts`. The `removed` files go in the same commit, which
    must add files, too. Raises DataError if a conflicting commit was made meanwhile.
    """
    if replace and parts is not None and not parts:
        return log.version
    gone = [
        RemoveAction(
            path=file.path,
            data_change=True,
            deletion_timestamp=max(each.modification_time for each in files),
            size=file.size,
            partition_values={log.table.partition_by.name: file.part} if log.table.partition_by else {},
        )
        for file in removed
    ]
    before = log.version
    with told(log.data_dir, log.table):
        _commit(log, [*files, *gone], replace=replace, parts=parts)
    return _version_with(log, before, files)


def commit_once(log: TableLog, files: Sequence[AddAction], identity: str, number: int) -> bool:
    """Add files unless those of this or a later number of the identity were added; returns whether it did.

    Each identity has its own numbers; the log remembers the last of each.
    """
    known = log.delta.transaction_version(identity)
    if known is not None and known >= number:
        return False
    with told(log.data_dir, log.table):
        try:
            _commit(log, files, transaction=Transaction(identity, number))
        except CommitFailedError as error:
            if "Concurrent transaction" not in str(error):
                raise
            return False  # another process was first
    return True


def undo_after(log: TableLog, version: int) -> None:
    """Restore the table to a version by a new commit; no later file is deleted.

    Files of that version that no longer exist stay out: they may have been taken out on purpose.
    """
    if log.version != version:
        with told(log.data_dir, log.table):
            # Restores without checking that files exist, so that missing ones must be taken out again.
            log.delta.restore(version, ignore_missing_files=True)
            log.delta.repair()
            log.delta.update_incremental()


def _commit(
    log: TableLog,
    actions: Sequence[AddAction | RemoveAction],
    *,
    replace: bool = False,
    parts: Sequence[str] | None = None,
    transaction: Transaction | None = None,
) -> None:
    part = log.table.partition_by
    log.delta.create_write_transaction(
        list(actions),
        mode="overwrite" if replace else "append",
        schema=log.delta.schema(),
        partition_by=[part.name] if part else [],
        partition_filters=[(part.name, "in", list(parts))] if replace and part and parts is not None else None,
        commit_properties=CommitProperties(app_transactions=[transaction]) if transaction else None,
    )


def _version_with(log: TableLog, before: int, files: Sequence[AddAction]) -> int:
    """Version that a commit made: the next one, unless other commits came between."""
    with told(log.data_dir, log.table):
        log.delta.update_incremental()
    if log.version == before + 1 or not files:
        return log.version
    system, root = storage(log.data_dir, log.table)
    for version in range(before + 1, log.version):
        if any(action.get("add", {}).get("path") == files[0].path for action in commit_of(system, root, version)):
            return version
    return log.version


def commit_of(system: fs.FileSystem, root: str, version: int) -> list[dict[str, Any]]:
    """Actions of a commit. Raises FileNotFoundError if the log no longer has it."""
    with system.open_input_stream(f"{root}{LOG_FOLDER}/{version:020}.json") as stream:
        return [json.loads(line) for line in stream.readall().splitlines()]


@contextmanager
def told(data_dir: DataDir, table: Table) -> Iterator[None]:
    """Turn what `deltalake` raises into a DataError of one line with advice."""
    try:
        yield
    except TableNotFoundError as error:
        _refuse_files_without_log(data_dir, table)
        raise DataError(no_table(data_dir, table)) from error
    except CommitFailedError as error:
        raise DataError(
            f"table {table.name} in {data_dir} was changed by another process meanwhile, which won ({_line(error)}); "
            "nothing of this one was added: run it again"
        ) from error
    except (DeltaError, pa.ArrowException, OSError) as error:
        # The first line of a store's message of many lines says nothing.
        cause = cause_of(str(error)) if local_place(data_dir) is None else _line(error)
        raise DataError(f"table {table.name} in {data_dir}: {cause}") from error


def no_table(data_dir: DataDir, table: Table) -> str:
    """Message for a missing table; about the folder where that is missing, or has no tables at all."""
    folder = local_place(data_dir)
    if folder is None or any(folder.glob(f"*/{LOG_FOLDER}")):
        return f"there is no table {table.name} in {data_dir}; make it with `{table.made_by}`"
    if (folder / LOG_FOLDER).is_dir():
        return f"{folder} is itself a table; name the folder that has it, {folder.absolute().parent}"
    if inner := sorted(folder.glob(f"*/*/{LOG_FOLDER}")):
        return f"there are no tables in {folder}, but in {inner[0].parents[1]}; name that folder"
    missing = f"there are no tables in {folder}" if folder.is_dir() else f"there is no folder {folder}"
    fill = _FIRST if table.made_by in _AFTER_FIRST else table.made_by
    return f"{missing}; correct the name, or fill it with `{fill}`"


_FIRST = "kreassign collect"
_AFTER_FIRST = ("kreassign load", "kreassign snapshot")
"""Commands that make tables of which a load needs more, or that read those of `collect`."""


def _refuse_files_without_log(data_dir: DataDir, table: Table) -> None:
    """Raise DataError if a table's folder has a Parquet file, but no log."""
    local = local_place(data_dir)
    if local is None or (local / table.name / LOG_FOLDER).is_dir():
        return
    folder = local / table.name
    if (file := next((file for file in visible_files(folder) if file.suffix == ".parquet"), None)) is not None:
        raise DataError(
            f"{file} belongs to no table: {folder} has no {LOG_FOLDER}; restore that from a copy, or move the folder "
            f"away and run `{table.made_by}`"
        )


_HIDDEN = (".", "_")


def visible_files(folder: Path) -> Iterator[Path]:
    """Files in a folder and below it, without hidden ones and the contents of hidden folders."""
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(_HIDDEN)]
        yield from (Path(place, name) for name in names if not name.startswith(_HIDDEN))


def _plain(stem: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]", "_", stem)


def table_uri(data_dir: DataDir, table: Table) -> str:
    """Address of a table for `deltalake`. Raises DataError for a path that it cannot use."""
    local = local_place(data_dir)
    if local is None:
        return for_log(place(data_dir, table.name))
    path = str((local / table.name).absolute())
    if re.search(r"%[0-9A-Fa-f]{2}|\\", path):
        raise DataError(f"the path {path} has a `%` with digits or a backslash; tables need one without these")
    return path


def _refuse_features(log: TableLog) -> None:
    found = log.delta.protocol()
    if found.min_reader_version > _READER_VERSION or found.min_writer_version > _WRITER_VERSION:
        features = {*(found.reader_features or ()), *(found.writer_features or ())}
        raise DataError(
            f"table {log.table.name} in {log.data_dir} was given features of Delta Lake that kreassign does not know "
            f"(reader {found.min_reader_version}, writer {found.min_writer_version}"
            f"{': ' if features else ''}{', '.join(sorted(features))}); "
            "make it again without them, or drop them with `ALTER TABLE … DROP FEATURE`"
        )


def refuse_wrong_columns(log: TableLog) -> None:
    """Raise DataError unless the table has all its columns, with their types."""
    found = _types(log)
    wrong = [column.name for column in log.table.columns if found.get(column.name) != ARROW_TYPES[column.type]]
    if wrong:
        made_by, are_new = log.table.made_by, wrong == _new_columns(log)
        raise DataError(
            f"table {log.table.name} in {log.data_dir} lacks the columns {', '.join(wrong)} of this version of "
            f"kreassign{'' if are_new else ', or has them in another type'}; "
            + (f"`{made_by}` adds them" if are_new else f"move its folder away and make it again with `{made_by}`")
        )


def _new_columns(log: TableLog) -> list[str]:
    """Columns that the table lacks, and its rows may lack: of a later version than its writer's."""
    found = _types(log)
    return [column.name for column in log.table.columns if column.nullable and column.name not in found]


def _types(log: TableLog) -> dict[str, pa.DataType]:
    return {field.name: field.type for field in pa.schema(log.delta.schema().to_arrow())}


def stats_of(metadata: pq.FileMetaData) -> dict[str, Any]:
    """Statistics of a file in Delta Lake's form: rows, and the bounds of the columns that readers filter by."""
    names = [metadata.schema.column(place).path for place in range(metadata.num_columns)]
    lows, highs, nulls = {}, {}, {}
    for place_of, name in enumerate(names):
        if name not in _BOUNDED:
            continue
        told_by = [metadata.row_group(group).column(place_of).statistics for group in range(metadata.num_row_groups)]
        if told_by and all(each is not None and each.has_min_max and each.has_null_count for each in told_by):
            lows[name] = min(each.min for each in told_by)
            highs[name] = max(each.max for each in told_by)
            nulls[name] = sum(each.null_count for each in told_by)
    return {"numRecords": metadata.num_rows, "minValues": lows, "maxValues": highs, "nullCount": nulls}


def _data_files(actions: pa.Table) -> list[DataFile]:
    parts = [name for name in actions.column_names if name.startswith("partition.")]
    bounded = {kind: [name for name in actions.column_names if name.startswith(f"{kind}.")] for kind in ("min", "max")}
    return [
        DataFile(
            unquote(row["path"]),
            row["size_bytes"],
            row["num_records"] or 0,
            str(row[parts[0]]) if parts and row[parts[0]] is not None else None,
            {name[4:]: row[name] for name in bounded["min"]},
            {name[4:]: row[name] for name in bounded["max"]},
        )
        for row in actions.to_pylist()
    ]


def _line(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__
