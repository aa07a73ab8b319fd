"""Keeping tables in order by the format's own means: few files per date, old dates gone, unused files deleted.

Each is one commit: readers and collectors may go on meanwhile, and a kill leaves the table as it was before.

- Tables of rounds, imports and streams get few files per date.
- Tables of loads stay as the loads made them, since readers read the versions that a load names; what their old
  versions had is deleted, once no load that may be asked for has it.
- A checkpoint names every file of the table, and every one that was replaced in the last days: with one after every
  ten commits, they would take more room than the rows. One a day stays, to open old versions by, and the newest.
"""

from __future__ import annotations

import re

from pyarrow import fs

from kreassign.errors import DataError
from kreassign.pipeline.tables.delta import (
    KEEP_DAYS,
    LOG_FOLDER,
    DataDir,
    TableLog,
    log_to_write,
    modified_ms,
    open_log,
    storage,
    told,
)
from kreassign.pipeline.tables.published import is_of_loads, kept_loads, loads_of
from kreassign.pipeline.tables.schemas import Table, date_of

DAY_MS = 86_400_000
_CHECKPOINT = re.compile(r"\d{20}\.checkpoint\.parquet")


def compact(data_dir: DataDir, table: Table) -> int:
    """Put the small files of each part of a table into one; returns how many files less there are."""
    log = log_to_write(data_dir, table)
    if is_of_loads(table) or len(log.files()) < 2:  # of loads, readers read what the load made
        return 0
    with told(data_dir, table):
        done = log.delta.optimize.compact()
        _thin_checkpoints(log)
    return int(done["numFilesRemoved"]) - int(done["numFilesAdded"])


def expire(data_dir: DataDir, table: Table, before: str) -> int:
    """Delete the rows of the dates before this one (`2025-01-31`, UTC); returns how many files are gone."""
    part = table.partition_by
    if part is None or not part.is_date:
        return 0
    log = log_to_write(data_dir, table)
    old = [file for file in log.files() if file.part is not None and file.part < before]
    if old:
        with told(data_dir, table):
            log.delta.delete(f"{part.name} < '{before}'")
    return len(old)


def repair(data_dir: DataDir, table: Table) -> int:
    """Take files out of the table that are no longer there; returns how many that were."""
    log = log_to_write(data_dir, table)
    with told(data_dir, table):
        return len(log.delta.repair()["files_removed"])


def vacuum(data_dir: DataDir, table: Table, now_ms: int) -> int:
    """Delete files that no version of the last days has, and what killed writers left; returns how many.

    What a load made that was the last one at some time in these days stays, however old it is.
    """
    log = log_to_write(data_dir, table)
    with told(data_dir, table):
        keep = _version_to_keep(data_dir, table, now_ms - KEEP_DAYS * DAY_MS)
        unused = log.delta.vacuum(retention_hours=24 * KEEP_DAYS, dry_run=True, full=True, keep_versions=keep)
        # Those that were deleted before are named again, and each time is two commits.
        system, root = storage(data_dir, table)
        infos = system.get_file_info([f"{root}{path}" for path in unused])
        count = sum(info.type is fs.FileType.File for info in infos)
        if count:
            log.delta.vacuum(retention_hours=24 * KEEP_DAYS, dry_run=False, full=True, keep_versions=keep)
    return count


def _version_to_keep(data_dir: DataDir, table: Table, since_ms: int) -> list[int] | None:
    """What the load made that was the last one then; a load that was killed may have replaced its files long before.

    The files of later loads were replaced later still.
    """
    loads = kept_loads(loads_of(data_dir), since_ms) if is_of_loads(table) else []
    version = loads[0].versions.get(table.name) if loads else None
    try:
        return None if version is None else [open_log(data_dir, table, version).version]
    except DataError:
        return None  # the log no longer has it


def _thin_checkpoints(log: TableLog) -> None:
    """Leave the first checkpoint of each day, with which the commits after it are read, and the newest."""
    system, root = storage(log.data_dir, log.table)
    found = system.get_file_info(fs.FileSelector(f"{root}{LOG_FOLDER}"))
    checkpoints = sorted(
        (info for info in found if _CHECKPOINT.fullmatch(info.path.rpartition("/")[2])), key=lambda info: info.path
    )
    days: set[str] = set()
    for info in checkpoints[:-1]:
        day = date_of(modified_ms(info))
        if day in days:
            system.delete_file(info.path)
        days.add(day)
