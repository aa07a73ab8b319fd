"""Keeping tables in order by the format's own means: few files per date, old dates gone, unused files deleted.

Each is one commit: readers and collectors may go on meanwhile, and a kill leaves the table as it was before.
"""

from __future__ import annotations

from kreassign.pipeline.tables.delta import KEEP_DAYS, DataDir, log_to_write, told
from kreassign.pipeline.tables.published import is_of_loads, last_load
from kreassign.pipeline.tables.schemas import Table


def compact(data_dir: DataDir, table: Table) -> int:
    """Put the small files of each part of a table into one; returns how many files less there are."""
    log = log_to_write(data_dir, table)
    if is_of_loads(table) or len(log.files()) < 2:  # of loads, readers read what the load made
        return 0
    with told(data_dir, table):
        done = log.delta.optimize.compact()
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


def vacuum(data_dir: DataDir, table: Table) -> int:
    """Delete files that no version of the last days has, and what killed writers left; returns how many.

    What the last finished load made stays, however old it is.
    """
    log = log_to_write(data_dir, table)
    load = last_load(data_dir) if is_of_loads(table) else None
    version = None if load is None else load.versions.get(table.name)
    keep = None if version is None else [version]
    with told(data_dir, table):
        gone = log.delta.vacuum(retention_hours=24 * KEEP_DAYS, dry_run=False, full=True, keep_versions=keep)
    return len(gone)
