"""Folders of Parquet files, as an older kreassign wrote them → Delta tables, in place.

A table is converted by one commit, which names the files that lie in its folder. Only files that one value of the
partitioning does not describe, or whose name an address cannot hold as it is, are written once more before. A kill
leaves the folder as it was.
"""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from pathlib import Path

import pyarrow.dataset as ds
import pyarrow.parquet as pq
from deltalake.schema import Schema
from deltalake.transaction import AddAction, create_table_with_add_actions

from kreassign.pipeline.tables.arrow import arrow_schema
from kreassign.pipeline.tables.delta import (
    CONFIGURATION,
    described,
    has_files_without_log,
    log_schema,
    stats_of,
    table_uri,
    told,
    visible_files,
)
from kreassign.pipeline.tables.parquet import Skipped, is_of_loads, why_not, write_files
from kreassign.pipeline.tables.schemas import LOAD_QUALITY, QUARANTINE, Table

_REWRITTEN = "converted"
_PLAIN = re.compile(r"[A-Za-z0-9._=/-]+")


@dataclass(frozen=True, slots=True)
class Converted:
    """What became of a folder: rows and files of the table, and files that cannot be read and stay outside.

    Of a table that the next load makes again nothing is kept, and both are 0.
    """

    table: str
    rows: int
    files: int
    skipped: tuple[Skipped, ...] = ()


def convert(data_dir: Path, table: Table) -> Converted | None:
    """Convert a table; None when there is nothing to convert."""
    if not has_files_without_log(data_dir, table):
        return None
    folder = data_dir / table.name
    if (is_of_loads(table) or table is QUARANTINE) and table is not LOAD_QUALITY:
        shutil.rmtree(folder)
        return Converted(table.name, 0, 0)
    skipped, actions, rows = [], [], 0
    for file in sorted(visible_files(folder, "*.parquet")):
        path = file.relative_to(folder).as_posix()
        if file.name.startswith(f"{_REWRITTEN}."):
            file.unlink()  # of a conversion that was killed
        elif reason := why_not(data_dir, table, path):
            skipped.append(Skipped(str(file), reason))
        else:
            metadata = pq.read_metadata(file)
            rows += metadata.num_rows
            actions += _actions(data_dir, table, path, metadata)
    with told(data_dir, table):
        create_table_with_add_actions(
            table_uri(data_dir, table),
            Schema.from_arrow(log_schema(table)),
            actions,
            partition_by=[table.partition_by.name] if table.partition_by else [],
            name=table.name,
            description=table.comment,
            configuration=CONFIGURATION,
        )
    return Converted(table.name, rows, len(actions), tuple(skipped))


def _actions(data_dir: Path, table: Table, path: str, metadata: pq.FileMetaData) -> list[AddAction]:
    """A file as it is, if one value of the partitioning describes it; else its rows, written once more."""
    file = data_dir / table.name / path
    values = _values(table, metadata)
    if metadata.num_rows and len(values) == 1 and _PLAIN.fullmatch(path):
        state = file.stat()
        (value,) = values
        return [described(table, path, state.st_size, state.st_mtime_ns // 1_000_000, metadata, value)]
    rows = ds.dataset(file, schema=arrow_schema(table), format="parquet").to_table()
    return write_files(data_dir, table, rows, _REWRITTEN)


def _values(table: Table, metadata: pq.FileMetaData) -> set[str | None]:
    """The values of the partitioning at the bounds of a file; none if they are not known."""
    part = table.partition_by
    if part is None:
        return {None}
    stats = stats_of(metadata)
    bounds = [stats[kind].get(part.column) for kind in ("minValues", "maxValues")]
    return {part.value_of({part.column: bound}) for bound in bounds if bound is not None}
