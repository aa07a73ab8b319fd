"""Keeping tables in order: the many small files of an hour become one, and old hours go.

The files of an hour are replaced by renaming folders, with names that readers pass over while it is not done:

    .hour=09.merged     the one file, being written
    .hour=09.old        the many, once the one is whole

What a kill leaves behind is put right before anything else is done. For an instant between two renames the hour cannot
be seen, so no load job should run meanwhile; collectors may, for only hours that are over are touched.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow.parquet as pq

from kreassign.pipeline.tables.parquet import dataset_of
from kreassign.pipeline.tables.schemas import Table

_MERGED, _OLD = ".merged", ".old"


def repair(data_dir: Path, table: Table) -> int:
    """Put right what a killed `compact` left of a table; returns how many hours that was."""
    left = sorted((data_dir / table.name).glob("date=*/.hour=*"))
    for folder in left:
        hour = folder.with_name(folder.name.removeprefix(".").removesuffix(_MERGED).removesuffix(_OLD))
        if folder.name.endswith(_OLD) and not hour.exists():
            folder.rename(hour)
        else:
            shutil.rmtree(folder)
    return len(left)


def compact(data_dir: Path, table: Table, *, ended_before_ms: int) -> int:
    """Put the files of each hour that ended before this time into one; returns how many files are gone."""
    return sum(
        _merge(table, hour)
        for hour, end_ms in _hours(data_dir, table)
        if end_ms <= ended_before_ms and len(_files(hour)) > 1
    )


def expire(data_dir: Path, table: Table, *, ended_before_ms: int) -> int:
    """Remove the hours that ended before this time; returns how many files are gone."""
    gone = 0
    for hour, end_ms in _hours(data_dir, table):
        if end_ms <= ended_before_ms:
            gone += len(_files(hour))
            shutil.rmtree(hour)
            if not any(hour.parent.iterdir()):
                hour.parent.rmdir()
    return gone


def _hours(data_dir: Path, table: Table) -> Iterator[tuple[Path, int]]:
    """The folders of hours, and when each hour ended."""
    for folder in sorted((data_dir / table.name).glob("date=*/hour=*")):
        begin = datetime.strptime(f"{folder.parent.name} {folder.name}", "date=%Y-%m-%d hour=%H").replace(tzinfo=UTC)
        yield folder, round((begin + timedelta(hours=1)).timestamp() * 1000)


def _files(hour: Path) -> list[Path]:
    return sorted(path for path in hour.glob("*.parquet") if not path.name.startswith((".", "_")))


def _merge(table: Table, hour: Path) -> int:
    files = _files(hour)
    merged, old = (hour.with_name(f".{hour.name}{suffix}") for suffix in (_MERGED, _OLD))
    rows = dataset_of(table, files).to_table()
    merged.mkdir()
    with (merged / f"{files[0].stem}-and-{len(files) - 1}-more.parquet").open("wb") as stream:
        pq.write_table(rows, stream)
        stream.flush()
        os.fsync(stream.fileno())
    hour.rename(old)
    merged.rename(hour)
    shutil.rmtree(old)
    return len(files) - 1
