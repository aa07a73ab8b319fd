"""Table `loads`: which versions of the tables belong to one load. A load is there once this table says so.

A load commits each of its tables by itself. Last it adds one row for each of them to this table, with the version: one
commit, so that a reader sees all of a load or nothing of it, and whatever a killed load had written before is in no
version that anybody reads. Of two loads at the same time the second to finish is refused: what it made may rest on what
the first has replaced.

A load reads what came since the one before it, so it stands on tables as that one knew them (`STOOD_ON`). A number of a
version says nothing about a table that was made again or put back from a copy; hence the id of each, and `standing_on`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from kreassign.errors import DataError
from kreassign.pipeline.tables.delta import DataDir, has_log, open_log
from kreassign.pipeline.tables.parquet import append_once
from kreassign.pipeline.tables.published import Load, last_load
from kreassign.pipeline.tables.schemas import (
    LOAD_HOURS,
    LOAD_QUALITY,
    LOADS,
    OPEN_SAMPLES,
    QUARANTINE,
    SAMPLES,
    Table,
)

__all__ = ["Load", "LoadedTable", "is_as_known", "last_load", "publish", "standing_on", "time_of_load"]

STOOD_ON = (SAMPLES, LOAD_HOURS, OPEN_SAMPLES, QUARANTINE, LOAD_QUALITY)
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
        if table.name in before.versions and (wrong := _why_another(data_dir, before, table)):
            raise DataError(
                f"table {table.name} in {data_dir} is not the one that load {before.number} knew: {wrong}; put it "
                "back, or run `kreassign load --full`, which reads all samples that there are and nothing else"
            )
    return before


def is_as_known(data_dir: DataDir, before: Load, table: Table) -> bool:
    """Whether a table is the one that the load before knew, so that the number of its version means something."""
    return table.name in before.versions and _why_another(data_dir, before, table) is None


def _why_another(data_dir: DataDir, before: Load, table: Table) -> str | None:
    if not has_log(data_dir, table):
        return "it is gone"
    log, version = open_log(data_dir, table), before.versions[table.name]
    if before.ids.get(table.name, log.table_id) != log.table_id:
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
