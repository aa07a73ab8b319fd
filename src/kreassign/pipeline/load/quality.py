"""PURE. Table `load_quality`: its rows, and how a terminal shows them over time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby
from operator import itemgetter

from kreassign.pipeline.load.rules import Treatment
from kreassign.pipeline.tables.schemas import Row

GOOD = "good"
_KINDS = (GOOD, *Treatment)
_LOADS_SHOWN = 10


@dataclass(frozen=True, slots=True)
class Judged:
    """How many rows of a table were treated in one way for one reason; `reason` is None for good ones."""

    table_name: str
    treatment: str
    reason: str | None
    row_count: int


def quality_rows(load_ms: int, judged: Iterable[Judged]) -> list[Row]:
    """Rows of table `load_quality` of one load; what did not happen has none, but of good rows there is one always."""
    return [
        {
            "load_ms": load_ms,
            "table_name": each.table_name,
            "treatment": str(each.treatment),
            "reason": each.reason,
            "row_count": each.row_count,
        }
        for each in judged
        if each.row_count or each.treatment == GOOD
    ]


def quality_lines(rows: Iterable[Row]) -> Iterator[str]:
    """The latest loads, oldest first, as a table of text; then the reasons of the last one."""
    by_load = [(load_ms, list(of_load)) for load_ms, of_load in groupby(_sorted(rows), itemgetter("load_ms"))]
    shown = by_load[-_LOADS_SHOWN:]
    yield f"{'load (UTC)':<20} {'table':<12}" + "".join(f" {kind:>12}" for kind in _KINDS)
    for load_ms, of_load in shown:
        begun = f"{datetime.fromtimestamp(load_ms / 1000, UTC):%Y-%m-%d %H:%M:%S}"
        for name, of_table in groupby(of_load, itemgetter("table_name")):
            found = list(of_table)
            sums = (sum(row["row_count"] for row in found if row["treatment"] == kind) for kind in _KINDS)
            yield f"{begun:<20} {name:<12}" + "".join(f" {count:>12,}" for count in sums)
    for row in shown[-1][1] if shown else ():
        if row["reason"] is not None:
            yield f"{row['table_name']}: {row['row_count']:,} {row['treatment']}: {row['reason']}"


def _sorted(rows: Iterable[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: (row["load_ms"], row["table_name"], row["treatment"], row["reason"] or ""))
