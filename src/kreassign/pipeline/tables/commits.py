"""Commits beyond plain writes: publish a load, merge by key, compact, expire, vacuum; and changes between versions.

Each is one commit to the log of a table (`delta.py`): a kill leaves the table as it was, and readers see all or
nothing.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from deltalake.exceptions import CommitFailedError
from pyarrow import fs

from kreassign.errors import DataError, InvariantBroken
from kreassign.pipeline.tables.arrow import arrow_schema
from kreassign.pipeline.tables.delta import (
    KEEP_DAYS,
    LOG_FOLDER,
    DataDir,
    DataFile,
    TableLog,
    commit_of,
    has_log,
    log_to_write,
    modified_ms,
    open_log,
    storage,
    told,
)
from kreassign.pipeline.tables.parquet import Load, append_once, is_of_loads, kept_loads, last_load, loads_of, rows_in
from kreassign.pipeline.tables.schemas import (
    LAST_DATE_MS,
    LOAD_HOURS,
    LOAD_QUALITY,
    LOADS,
    OPEN_SAMPLES,
    QUARANTINE,
    SAMPLES,
    Table,
    date_of,
)

# Table `loads`: the versions of the tables that belong to one load. A load exists once this table has it.
#
# A load commits each of its tables by itself. Last it adds one row for each of them to this table, with the version:
# one commit, so that a reader sees all of a load or nothing of it, and whatever a killed load had written before is in
# no version that anybody reads. Of two loads at the same time the second to finish is refused: what it made may rest on
# what the first has replaced.
#
# A load reads what came since the one before it, so it stands on tables as that one knew them (`STOOD_ON`). A number of
# a version says nothing about a table that was made again or put back from a copy; hence the id of each, and
# `standing_on`.

STOOD_ON = (SAMPLES, LOAD_HOURS, OPEN_SAMPLES, QUARANTINE, LOAD_QUALITY)
ALL_AGAIN = "run `kreassign load --full`, which reads all samples that there are and nothing else"
"""What to do where a load cannot stand on the one before. It reads all samples and drops all hours, both or neither:
closed hours would count the same samples a second time, and hours of samples that expired would be lost unasked."""
CLOCK_MS = 3_600_000
"""Clocks are put right by less than this all the time; the rules of samples forgive them as much."""
_IDENTITY = "load"


@dataclass(frozen=True, slots=True)
class LoadedTable:
    """A table that a load read or made, its version, and how many of its rows were treated how."""

    table: Table
    version: int
    good: int
    bad: int = 0
    late: int = 0


def standing_on(data_dir: DataDir, before: Load) -> Load:
    """The load before, on which the next one may stand.

    DataError when a table that it read or made is another one now, or an older copy of itself: what is new since then
    cannot be told from the numbers of versions, and rows would be left out without a word.
    """
    for table in STOOD_ON:
        if wrong := _why_another(data_dir, before, table):
            raise DataError(
                f"table {table.name} in {data_dir} is not the one that load {before.number} knew: {wrong}; put it "
                f"back, or {ALL_AGAIN}"
            )
    return before


def is_as_known(data_dir: DataDir, before: Load, table: Table) -> bool:
    """Whether a table is the one that the load before knew, so that the number of its version means something."""
    return _why_another(data_dir, before, table) is None


def _why_another(data_dir: DataDir, before: Load, table: Table) -> str | None:
    if table.name not in before.versions:
        return "that load does not name it"
    if not has_log(data_dir, table):
        return "it is gone"
    log, version = open_log(data_dir, table), before.versions[table.name]
    if before.ids.get(table.name) != log.table_id:
        return "it was made again since"
    if log.version < version:
        return f"it is at version {log.version}, and was at {version}: an older copy was put in its place"
    return None


def time_of_load(now_ms: int, before: Load) -> int:
    """The time of a load that stands on the one before, from the clock: later than that one.

    DataError when the clock is far behind it. What was collected since would be in the future: set aside, and never
    read again.
    """
    if now_ms < before.load_ms - CLOCK_MS:
        raise DataError(
            f"the clock of this machine says {_utc(now_ms)}, and load {before.number} was begun {_utc(before.load_ms)} "
            "by its clock: put this one right; if the other was wrong, run `kreassign load --full`"
        )
    return max(now_ms, before.load_ms + 1)


def publish(data_dir: DataDir, load_ms: int, tables: Iterable[LoadedTable], after: Load | None) -> None:
    """Make a load the last one; `after` is the one that was the last when it began.

    DataError when another load was finished meanwhile: that one stays, and nothing of this one is seen.
    """
    number = 1 if after is None else after.number + 1
    rows = [
        {
            "load_number": number,
            "load_ms": load_ms,
            "table_name": each.table.name,
            "version": each.version,
            "table_id": open_log(data_dir, each.table).table_id if each.table in STOOD_ON else None,
            "good": each.good,
            "bad": each.bad,
            "late": each.late,
        }
        for each in tables
    ]
    if not append_once(data_dir, LOADS, rows, identity=_IDENTITY, number=number):
        raise DataError(_lost(data_dir))


def _lost(data_dir: DataDir) -> str:
    winner = last_load(data_dir)
    begun = "" if winner is None else f", begun {_utc(winner.load_ms)}"
    return (
        f"another load of {data_dir} was finished while this one ran{begun}: its tables stay, and nothing of this one "
        "is seen; run it again if samples came since"
    )


def _utc(time_ms: int) -> str:
    return f"{datetime.fromtimestamp(time_ms / 1000, UTC):%Y-%m-%d %H:%M:%S}Z"


# Files that commits added to a table after a version. Compaction adds nothing.

_AT_ONCE = 16
"""Commits read side by side: an object store takes its time for each, and a day of rounds is thousands."""

_Action = Mapping[str, Any]


def added_since(log: TableLog, version: int) -> tuple[DataFile, ...]:
    """The files that hold the rows added to a table after a version; none of them holds an older row.

    Rows that were compacted with others that were added, and with no others, are in the file that came of it.
    DataError when the log no longer has one of the commits, or a file that was compacted with older ones is gone.
    """
    system, root = storage(log.data_dir, log.table)
    added: dict[str, DataFile] = {}
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        commits = pool.map(lambda number: commit_of(system, root, number), range(version + 1, log.version + 1))
        try:
            for commit in commits:
                _compact(added, commit)
                for action in commit:
                    if action.get("add", {}).get("dataChange"):
                        file = _file(action["add"])
                        added[file.path] = file
                    elif action.get("remove", {}).get("dataChange"):
                        added.pop(unquote(action["remove"]["path"]), None)
        except FileNotFoundError as error:
            raise DataError(_no_longer_known(log, version)) from error
    # Of the table's own files the reader says which are lost; others were vacuumed.
    replaced = added.keys() - {file.path for file in log.files()}
    infos = system.get_file_info([f"{root}{path}" for path in replaced])
    if any(info.type is not fs.FileType.File for info in infos):
        raise DataError(_no_longer_known(log, version))
    return tuple(added.values())


def _no_longer_known(log: TableLog, version: int) -> str:
    return (
        f"table {log.table.name} in {log.data_dir} no longer tells what was added to it since version {version}: its "
        f"log and the files that compaction replaced are kept for {KEEP_DAYS} days; {ALL_AGAIN}"
    )


def _compact(added: dict[str, DataFile], commit: Iterable[_Action]) -> None:
    """Put files that a commit made by compaction in the place of added ones, part by part of the table.

    Where an older file went into them they hold rows that were there before: there, what was added is read as it was
    written, until vacuum deletes it.
    """
    merged: defaultdict[str | None, list[DataFile]] = defaultdict(list)
    taken: defaultdict[str | None, list[str]] = defaultdict(list)
    for action in commit:
        if "add" in action and not action["add"].get("dataChange"):
            file = _file(action["add"])
            merged[file.part].append(file)
        elif "remove" in action and not action["remove"].get("dataChange"):
            path = unquote(action["remove"]["path"])
            taken[added[path].part if path in added else _part(action["remove"])].append(path)
    # The format leaves it open whether a commit says of which part a removed file was: it may be of any then.
    older = {part for part, paths in taken.items() if any(path not in added for path in paths)}
    if None in older:
        return
    for part, files in merged.items():
        if part in taken and part not in older:
            for path in taken[part]:
                del added[path]
            added.update({file.path: file for file in files})


def _file(action: _Action) -> DataFile:
    stats = json.loads(action.get("stats") or "{}")
    return DataFile(
        unquote(action["path"]),
        action["size"],
        stats.get("numRecords", 0),
        _part(action),
        stats.get("minValues", {}),
        stats.get("maxValues", {}),
    )


def _part(action: _Action) -> str | None:
    """The value of the only column that a table of ours is partitioned by, if any."""
    return next(iter((action.get("partitionValues") or {}).values()), None)


# Add rows to a table only where it does not have their key yet, in one commit.
#
# This is how a writer that may be killed, and then does what it did again, adds each row once. It needs no memory of
# its own: what was done is what the table has. Where two do so at the same time, Delta Lake lets one of them win; the
# other one looks again.

ATTEMPTS = 20
"""How often to look again. Each time another writer has got further."""


def merge_rows(data_dir: DataDir, table: Table, rows: pa.Table, key: Sequence[str] = ()) -> int:
    """Add those rows of which the table has no row with the same `key` (that of the table); how many they were.

    The table is partitioned by date. DataError when others change the table again and again meanwhile.
    """
    if not rows.num_rows:
        return 0
    source = _with_date(table, rows.cast(arrow_schema(table)))
    for _ in range(ATTEMPTS):
        # Another writer was first: what it added may be what we are about to add.
        with told(data_dir, table), suppress(CommitFailedError):
            return _merge(log_to_write(data_dir, table), source, key or table.key)
    raise DataError(
        f"table {table.name} in {data_dir} is changed by other processes all the time: nothing was added; run it again"
    )


def rows_at(data_dir: DataDir, table: Table, times_ms: pa.ChunkedArray) -> pa.Table:
    """The rows of a table, which may be missing, with any of these values in the column that it is partitioned by."""
    none = arrow_schema(table).empty_table()
    if not len(times_ms) or not has_log(data_dir, table):
        return none
    log, time = open_log(data_dir, table), _time_column(table)
    bounds = pc.min_max(times_ms).as_py()
    files = log.files(time=time, begin_ms=bounds["min"], end_ms=bounds["max"] + 1)
    if not files:
        return none
    return rows_in(log, files, ds.field(time).isin(pc.unique(times_ms)))


def _merge(log: TableLog, source: pa.Table, key: Sequence[str]) -> int:
    time = _time_column(log.table)
    bounds = pc.min_max(source[time]).as_py()
    # The bounds let the log pass over files; in parentheses, since `IS NOT DISTINCT FROM` takes all that follows.
    nullable = {column.name for column in log.table.columns if column.nullable}
    same = (
        f"(old.{name} IS NOT DISTINCT FROM new.{name})" if name in nullable else f"old.{name} = new.{name}"
        for name in key
    )
    predicate = " AND ".join([f"old.{time} BETWEEN {bounds['min']} AND {bounds['max']}", *same])
    merging = log.delta.merge(source, predicate, source_alias="new", target_alias="old")
    added: int = merging.when_not_matched_insert_all().execute()["num_target_rows_inserted"]
    return added


def _time_column(table: Table) -> str:
    if table.partition_by is None or not table.partition_by.is_date:
        raise InvariantBroken(f"table {table.name} is not partitioned by date")
    return table.partition_by.column


def _with_date(table: Table, rows: pa.Table) -> pa.Table:
    if table.partition_by is None:
        raise InvariantBroken(f"table {table.name} is not partitioned by date")
    times = pc.max_element_wise(pc.min_element_wise(rows[_time_column(table)], LAST_DATE_MS), 0)
    return rows.append_column(
        table.partition_by.name, pc.cast(pc.cast(times, pa.timestamp("ms")), pa.date32(), safe=False)
    )


# Keep tables in order by the format's own means: few files per date, old dates gone, unused files deleted.
#
# Each is one commit: readers and collectors may go on meanwhile, and a kill leaves the table as it was before.
#
# - Tables of rounds, imports and streams get few files per date.
# - Tables of loads stay as the loads made them, since readers read the versions that a load names; what their old
#   versions had is deleted, once no load that may be asked for has it.
# - A checkpoint names every file of the table, and every one that was replaced in the last days: with one after every
#   ten commits, they would take more room than the rows. One a day stays, to open old versions by, and the newest.

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
