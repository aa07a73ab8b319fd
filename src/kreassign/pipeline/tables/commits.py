"""Commits beyond plain writes: publish a load, merge by key, compact, expire, vacuum; and changes between versions.

Each is one commit to the log of a table (`delta.py`): a kill leaves the table as it was, and readers see all or
nothing.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from deltalake.exceptions import CommitFailedError
from pyarrow import fs

from kreassign.errors import DataError, InvariantBroken
from kreassign.model.text import DAY_MS
from kreassign.pipeline.tables import delta, schemas
from kreassign.pipeline.tables.arrow import arrow_schema
from kreassign.pipeline.tables.parquet import Load, append_once, is_of_loads, kept_loads, last_load, loads_of, rows_in

# Table `loads`: the versions of the tables that belong to one load. A load exists once it is in this table.
#
# A load commits each of its tables by itself. Last it adds a row per table with its version to this table: one commit,
# so that a reader sees all of a load or nothing, and no reader uses what a killed load had written. Of two concurrent
# loads the second to finish is refused: its tables may rest on ones that the first has replaced.
#
# A load reads only what is new, so it needs the tables that the load before it knew (`STOOD_ON`). Version numbers mean
# nothing for a table that was created again or restored from a copy; hence the id of each, and `standing_on`.

STOOD_ON = (schemas.SAMPLES, schemas.LOAD_HOURS, schemas.OPEN_SAMPLES, schemas.QUARANTINE, schemas.LOAD_QUALITY)
ALL_AGAIN = "run `kreassign load --full`, which reads all samples that there are and nothing else"
"""Advice if a load cannot build on the one before. A full load drops all hours, which would count the same samples
twice; it is never automatic, because hours of expired samples are lost."""
CLOCK_MS = 3_600_000
"""Clocks are often corrected by less than this; the rules of samples tolerate as much."""
_IDENTITY = "load"
OPEN, CLOSED = "true", "false"
"""Parts of a table whose rows have `is_open`, or have not."""


@dataclass(frozen=True, slots=True)
class LoadedTable:
    """A table that a load read or made: its version, and number of rows by treatment; `log` if it is open already."""

    table: schemas.Table
    version: int
    good: int
    bad: int = 0
    late: int = 0
    log: delta.TableLog | None = field(default=None, compare=False, repr=False)

    def opened(self, data_dir: delta.DataDir) -> delta.TableLog:
        """The table at this version."""
        if self.log is not None and self.log.version == self.version:
            return self.log
        return delta.open_log(data_dir, self.table, self.version)


def standing_on(data_dir: delta.DataDir, before: Load) -> Load:
    """Return the load before if the next load can build on it.

    Raises DataError if one of its tables was replaced or restored from an older copy: version numbers no longer show
    what is new since then, and rows would be silently left out.
    """
    for table in STOOD_ON:
        if wrong := why_another(data_dir, before, table):
            raise DataError(
                f"table {table.name} in {data_dir} is not the one that load {before.number} knew: {wrong}; put it "
                f"back, or {ALL_AGAIN}"
            )
    return before


def why_another(data_dir: delta.DataDir, before: Load, table: schemas.Table) -> str | None:
    """Why the table is not the one that the load before knew; None if it is, so that its version number is valid."""
    if table.name not in before.versions:
        return "that load does not name it"
    if not delta.has_log(data_dir, table):
        return "it is gone"
    log, version = delta.open_log(data_dir, table), before.versions[table.name]
    if before.ids.get(table.name) != log.table_id:
        return "it was made again since"
    if log.version < version:
        return f"it is at version {log.version}, and was at {version}: an older copy was put in its place"
    return None


def time_of_load(now_ms: int, before: Load) -> int:
    """Time of a load from the clock, but later than the load before.

    Raises DataError if the clock is far behind that load. Samples collected since would be in the future: set aside,
    and never read again.
    """
    if now_ms < before.load_ms - CLOCK_MS:
        raise DataError(
            f"the clock of this machine says {schemas.utc(now_ms)}, and load {before.number} was begun "
            f"{schemas.utc(before.load_ms)} by its clock: put this one right; if the other was wrong, run "
            "`kreassign load --full`"
        )
    return max(now_ms, before.load_ms + 1)


def publish(data_dir: delta.DataDir, load_ms: int, tables: Iterable[LoadedTable], after: Load | None) -> None:
    """Make a load the last one; `after` is the load that was the last when this one began.

    Raises DataError if another load was finished meanwhile: that load stays, and nothing of this one becomes visible.
    """
    number = 1 if after is None else after.number + 1
    rows = [
        {
            "load_number": number,
            "load_ms": load_ms,
            "table_name": each.table.name,
            "version": each.version,
            "table_id": (each.log or delta.open_log(data_dir, each.table)).table_id if each.table in STOOD_ON else None,
            "good": each.good,
            "bad": each.bad,
            "late": each.late,
        }
        for each in tables
    ]
    if not append_once(data_dir, schemas.LOADS, rows, identity=_IDENTITY, number=number):
        winner = last_load(data_dir)
        begun = "" if winner is None else f", begun {schemas.utc(winner.load_ms)}"
        raise DataError(
            f"another load of {data_dir} was finished while this one ran{begun}: its tables stay, and nothing of this "
            "one is seen; run it again if samples came since"
        )
    log = delta.open_log(data_dir, schemas.LOADS)
    tended(data_dir, LoadedTable(schemas.LOADS, log.version, len(rows), log=log))


# Files that commits added to a table after a version. Compaction adds no rows.

_AT_ONCE = 16
"""Commits to read in parallel: an object store has latency for each, and a day of rounds is thousands."""

_Action = Mapping[str, Any]


def added_since(log: delta.TableLog, version: int) -> tuple[delta.DataFile, ...]:
    """Files with the rows added to a table after a version, and no older rows.

    Added rows that were compacted among themselves are in the compacted file. Raises DataError if the log no longer has
    one of the commits, or if a file that was compacted with older ones is gone.
    """
    system, root = delta.storage(log.data_dir, log.table)
    added: dict[str, delta.DataFile] = {}
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        commits = pool.map(lambda number: delta.commit_of(system, root, number), range(version + 1, log.version + 1))
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
    # The reader reports missing files that are in the table; the others may have been vacuumed.
    replaced = added.keys() - {file.path for file in log.files()}
    infos = system.get_file_info([f"{root}{path}" for path in replaced])
    if any(info.type is not fs.FileType.File for info in infos):
        raise DataError(_no_longer_known(log, version))
    return tuple(added.values())


def _no_longer_known(log: delta.TableLog, version: int) -> str:
    return (
        f"table {log.table.name} in {log.data_dir} no longer tells what was added to it since version {version}: its "
        f"log and the files that compaction replaced are kept for {delta.KEEP_DAYS} days; {ALL_AGAIN}"
    )


def _compact(added: dict[str, delta.DataFile], commit: Iterable[_Action]) -> None:
    """Replace added files by those that a compaction made of them, partition by partition.

    If an older file went into a compacted one, it holds older rows: then the added files are read as written, until
    vacuum deletes them.
    """
    merged: defaultdict[str | None, list[delta.DataFile]] = defaultdict(list)
    taken: defaultdict[str | None, list[str]] = defaultdict(list)
    for action in commit:
        if "add" in action and not action["add"].get("dataChange"):
            file = _file(action["add"])
            merged[file.part].append(file)
        elif "remove" in action and not action["remove"].get("dataChange"):
            path = unquote(action["remove"]["path"])
            taken[added[path].part if path in added else _part(action["remove"])].append(path)
    # The format does not require the partition of a removed file: without it, any partition may be affected.
    older = {part for part, paths in taken.items() if any(path not in added for path in paths)}
    if None in older:
        return
    for part, files in merged.items():
        if part in taken and part not in older:
            for path in taken[part]:
                del added[path]
            added.update({file.path: file for file in files})


def _file(action: _Action) -> delta.DataFile:
    stats = json.loads(action.get("stats") or "{}")
    return delta.DataFile(
        unquote(action["path"]),
        action["size"],
        stats.get("numRecords", 0),
        _part(action),
        stats.get("minValues", {}),
        stats.get("maxValues", {}),
    )


def _part(action: _Action) -> str | None:
    """Value of the partition column, if any; our tables have at most one."""
    return next(iter((action.get("partitionValues") or {}).values()), None)


# Add rows to a table only if it does not have their key yet, in one commit.
#
# So a writer that is killed and starts over adds each row once. It keeps no state: the table shows what was done. Of
# two concurrent writers Delta Lake lets one win; the other one checks again.

ATTEMPTS = 20
"""Largest number of retries. Before each, another writer has made progress."""


def merge_rows(data_dir: delta.DataDir, table: schemas.Table, rows: pa.Table, key: Sequence[str] = ()) -> int:
    """Add the rows whose `key` (default: the table's) the table does not have; returns their number.

    The table is partitioned by date. Raises DataError if others keep changing the table meanwhile.
    """
    if not rows.num_rows:
        return 0
    source = _with_date(_by_date(table), rows.cast(arrow_schema(table)))
    for _ in range(ATTEMPTS):
        # Another writer was first, and may have added the same rows.
        with delta.told(data_dir, table), suppress(CommitFailedError):
            return _merge(delta.log_to_write(data_dir, table), source, key or table.key)
    raise DataError(
        f"table {table.name} in {data_dir} is changed by other processes all the time: nothing was added; run it again"
    )


def rows_at(data_dir: delta.DataDir, table: schemas.Table, times_ms: pa.ChunkedArray) -> pa.Table:
    """Rows of a table, which may be missing, with any of these values in its partition's time column."""
    none = arrow_schema(table).empty_table()
    if not len(times_ms) or not delta.has_log(data_dir, table):
        return none
    log, time = delta.open_log(data_dir, table), _by_date(table).column
    bounds = pc.min_max(times_ms).as_py()
    files = log.files(time=time, begin_ms=bounds["min"], end_ms=bounds["max"] + 1)
    if not files:
        return none
    return rows_in(log, files, ds.field(time).isin(pc.unique(times_ms)))


def _merge(log: delta.TableLog, source: pa.Table, key: Sequence[str]) -> int:
    time = _by_date(log.table).column
    bounds = pc.min_max(source[time]).as_py()
    # The bounds let the log skip files; in parentheses, since `IS NOT DISTINCT FROM` takes all that follows.
    nullable = {column.name for column in log.table.columns if column.nullable}
    same = (
        f"(old.{name} IS NOT DISTINCT FROM new.{name})" if name in nullable else f"old.{name} = new.{name}"
        for name in key
    )
    predicate = " AND ".join([f"old.{time} BETWEEN {bounds['min']} AND {bounds['max']}", *same])
    merging = log.delta.merge(source, predicate, source_alias="new", target_alias="old")
    added: int = merging.when_not_matched_insert_all().execute()["num_target_rows_inserted"]
    return added


def _by_date(table: schemas.Table) -> schemas.Partitioning:
    if table.partition_by is None or not table.partition_by.is_date:
        raise InvariantBroken(f"table {table.name} is not partitioned by date")
    return table.partition_by


def _with_date(part: schemas.Partitioning, rows: pa.Table) -> pa.Table:
    times = pc.max_element_wise(pc.min_element_wise(rows[part.column], schemas.LAST_DATE_MS), 0)
    return rows.append_column(part.name, pc.cast(pc.cast(times, pa.timestamp("ms")), pa.date32(), safe=False))


# Maintain tables by the format's own means: few files per date, old dates dropped, unused files deleted.
#
# Each is one commit: readers and collectors may go on meanwhile, and a kill leaves the table as it was.
#
# - Tables of rounds, imports and streams get few files per date.
# - Tables of loads stay as the loads made them, since readers read the versions that a load names; files of old
#   versions are deleted once no load needs them that can still be asked for. Those to which each load adds files are
#   merged by the loads themselves, before they are published (`tended`), so that the thousandth load opens no more
#   files than the tenth.
# - A checkpoint lists every file of the table, and every file replaced in the last days: one per ten commits would take
#   more room than the rows. The newest stays, and one a day to open old versions by.

MOST_SMALL_FILES = 24
"""Small files that a table of loads may have before a load merges them: a load opens each, in every table."""
_SMALL_BYTES = 1 << 25
_UPKEEP = {"OPTIMIZE", "DELETE"}
_CHECKPOINT = re.compile(r"\d{20}\.checkpoint\.parquet")


def compact(data_dir: delta.DataDir, table: schemas.Table) -> int:
    """Merge the small files of each partition of a table; returns by how many the files decreased."""
    log = delta.log_to_write(data_dir, table)
    if is_of_loads(table) or len(log.files()) < 2:  # readers read tables of loads at the load's versions
        return 0
    with delta.told(data_dir, table):
        done = log.delta.optimize.compact()
        _thin_checkpoints(log)
    return int(done["numFilesRemoved"]) - int(done["numFilesAdded"])


def tended(data_dir: delta.DataDir, made: LoadedTable, window_days: int = 0) -> LoadedTable:
    """Merge small files of a table that a load has just made, and drop rows that are no longer kept; its version then.

    Rows in the window stay. Leaves the table as it is if another process changes it.
    """
    table = made.table
    if table.lifecycle != schemas.MERGED_BY_LOADS:
        return made
    log = made.log or delta.open_log(data_dir, table)
    with delta.told(data_dir, table):
        log.delta.update_incremental()
    if log.version != made.version:
        return made
    with delta.told(data_dir, table), suppress(CommitFailedError):
        closed = [file for file in log.files() if file.part != OPEN]
        is_due = sum(file.size < _SMALL_BYTES for file in closed) > MOST_SMALL_FILES
        if (since := _kept_since(log, window_days)) is not None and table.kept is not None:
            name = table.kept.column
            # Rows that share a file with younger ones wait until files are merged.
            if any((file.lows if is_due else file.highs).get(name, since) < since for file in closed):
                log.delta.delete(f"{name} < {since}")
        if is_due:
            part = [(table.partition_by.name, "=", CLOSED)] if table.partition_by else None
            log.delta.optimize.compact(partition_filters=part, target_size=_SMALL_BYTES)
    system, root = delta.storage(data_dir, table)
    commits = [delta.commit_of(system, root, number) for number in range(made.version + 1, log.version + 1)]
    is_upkeep = (any(one.get("commitInfo", {}).get("operation") in _UPKEEP for one in commit) for commit in commits)
    return replace(made, version=log.version, log=log) if all(is_upkeep) else made


def _kept_since(log: delta.TableLog, window_days: int) -> int | None:
    """Time from which rows are kept: counted back from the newest, or the oldest open one; None if all are.

    The oldest, since clusters may have been silent for long.
    """
    kept = log.table.kept
    bounded = [file for file in log.files() if kept and file.highs.get(kept.column) is not None]
    if kept is None or not bounded:
        return None
    begun = [int(file.lows[kept.column]) for file in bounded if file.part == OPEN]
    newest = min(begun) if begun else max(int(file.highs[kept.column]) for file in bounded)
    return newest - max(kept.days, window_days + 1) * DAY_MS


def expire(data_dir: delta.DataDir, table: schemas.Table, before: str) -> int:
    """Delete rows of dates before `before` (`2025-01-31`, UTC); returns the number of files removed."""
    part = table.partition_by
    if part is None or not part.is_date:
        return 0
    log = delta.log_to_write(data_dir, table)
    old = [file for file in log.files() if file.part is not None and file.part < before]
    if old:
        with delta.told(data_dir, table):
            log.delta.delete(f"{part.name} < '{before}'")
    return len(old)


_TRIES = 3
"""Times that rows are to be deleted which others write again meanwhile."""


def expire_parts(data_dir: delta.DataDir, table: schemas.Table, outdated: Callable[[], Collection[str]]) -> int:
    """Delete all rows of outdated values of the partition column; returns the number of files removed.

    `outdated` reads them when the table is open: where some are written again from then on, nothing is deleted, and
    all is read again. Raises DataError where that happens time after time: what is outdated is then still there.
    """
    for left in reversed(range(_TRIES)):
        log = delta.log_to_write(data_dir, table)
        parts = outdated()
        old = [file for file in log.files() if file.part in parts]
        if not old or table.partition_by is None:
            break
        values = ", ".join("'{}'".format(part.replace("'", "''")) for part in sorted(parts))
        with delta.told(data_dir, table):
            try:
                log.delta.delete(f"{table.partition_by.name} IN ({values})")
            except CommitFailedError:
                if not left:
                    raise
            else:
                return len(old)
    return 0


def repair(data_dir: delta.DataDir, table: schemas.Table) -> int:
    """Take missing files out of the table; returns their number."""
    log = delta.log_to_write(data_dir, table)
    with delta.told(data_dir, table):
        return len(log.delta.repair()["files_removed"])


def vacuum(data_dir: delta.DataDir, table: schemas.Table, now_ms: int) -> int:
    """Delete files that no version of the last days uses, and those of killed writers; returns their number.

    Files of a load that was the last one at some time in these days stay, however old.
    """
    log = delta.log_to_write(data_dir, table)
    with delta.told(data_dir, table):
        keep = _version_to_keep(data_dir, table, now_ms - delta.KEEP_DAYS * DAY_MS)
        unused = log.delta.vacuum(retention_hours=24 * delta.KEEP_DAYS, dry_run=True, full=True, keep_versions=keep)
        # The dry run also lists files deleted before, and a vacuum makes two commits.
        system, root = delta.storage(data_dir, table)
        infos = system.get_file_info([f"{root}{path}" for path in unused])
        count = sum(info.type is fs.FileType.File for info in infos)
        if count:
            log.delta.vacuum(retention_hours=24 * delta.KEEP_DAYS, dry_run=False, full=True, keep_versions=keep)
    return count


def _version_to_keep(data_dir: delta.DataDir, table: schemas.Table, since_ms: int) -> list[int] | None:
    """Version of the load that was the last one at `since_ms`; a killed load may have replaced its files long before.

    Files of later loads were replaced later, so their age protects them.
    """
    loads = kept_loads(loads_of(data_dir), since_ms) if is_of_loads(table) else []
    version = loads[0].versions.get(table.name) if loads else None
    try:
        return None if version is None else [delta.open_log(data_dir, table, version).version]
    except DataError:
        return None  # the log no longer has it


def _thin_checkpoints(log: delta.TableLog) -> None:
    """Keep the first checkpoint of each day, from which later commits are read, and the newest."""
    system, root = delta.storage(log.data_dir, log.table)
    found = system.get_file_info(fs.FileSelector(f"{root}{delta.LOG_FOLDER}"))
    checkpoints = sorted(
        (info for info in found if _CHECKPOINT.fullmatch(info.path.rpartition("/")[2])), key=lambda info: info.path
    )
    days: set[str] = set()
    for info in checkpoints[:-1]:
        day = schemas.date_of(delta.modified_ms(info))
        if day in days:
            system.delete_file(info.path)
        days.add(day)
