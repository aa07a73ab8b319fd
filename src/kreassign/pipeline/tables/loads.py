"""Table `loads`: which versions of the tables belong to one load. A load is there once this table says so.

A load commits each of its tables by itself. Last it adds one row for each of them to this table, with the version: one
commit, so that a reader sees all of a load or nothing of it, and whatever a killed load had written before is in no
version that anybody reads. Of two loads at the same time the second to finish is refused: what it made may rest on what
the first has replaced.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from kreassign.errors import DataError
from kreassign.pipeline.tables.delta import DataDir
from kreassign.pipeline.tables.parquet import append_once
from kreassign.pipeline.tables.published import Load, last_load
from kreassign.pipeline.tables.schemas import LOADS, Table

__all__ = ["Load", "LoadedTable", "last_load", "publish"]

_IDENTITY = "load"


@dataclass(frozen=True, slots=True)
class LoadedTable:
    """A table that a load read or made, its version, and how many of its rows were treated how."""

    table: Table
    version: int
    good: int
    bad: int = 0
    late: int = 0


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
    begun = "" if winner is None else f", begun {datetime.fromtimestamp(winner.load_ms / 1000, UTC):%Y-%m-%d %H:%M:%S}Z"
    return (
        f"another load of {data_dir} was finished while this one ran{begun}: its tables stay, and nothing of this one "
        "is seen; run it again if samples came since"
    )
