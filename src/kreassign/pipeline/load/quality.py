"""PURE. Table `load_quality`: its rows, and how a terminal shows them over time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby
from operator import itemgetter

from kreassign.model.load_quality import LoadAccount, ReasonCount
from kreassign.pipeline.load.rules import Treatment
from kreassign.pipeline.tables.schemas import Row

GOOD = "good"
TREATMENTS = (GOOD, *map(str, Treatment))
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


def load_accounts(rows: Iterable[Row]) -> tuple[LoadAccount, ...]:
    """Rows of table `load_quality`, load by load, oldest first."""
    by_load = groupby(_sorted(rows), itemgetter("load_ms"))
    return tuple(_account(load_ms, list(of_load)) for load_ms, of_load in by_load)


def quality_lines(rows: Iterable[Row]) -> Iterator[str]:
    """The latest loads, oldest first, as a table of text; then the reasons of the last one."""
    shown = load_accounts(rows)[-_LOADS_SHOWN:]
    yield f"{'load (UTC)':<20} {'table':<12}" + "".join(f" {kind:>12}" for kind in TREATMENTS)
    for load in shown:
        begun = f"{datetime.fromtimestamp(load.load_ms / 1000, UTC):%Y-%m-%d %H:%M:%S}"
        for name, counts in load.tables.items():
            yield f"{begun:<20} {name:<12}" + "".join(f" {count:>12,}" for count in map(counts.__getitem__, TREATMENTS))
    for each in shown[-1].reasons if shown else ():
        yield f"{each.table_name}: {each.row_count:,} {each.treatment}: {each.reason}"


def _account(load_ms: int, rows: list[Row]) -> LoadAccount:
    tables: dict[str, dict[str, int]] = {}
    for row in rows:
        counts = tables.setdefault(row["table_name"], dict.fromkeys(TREATMENTS, 0))
        counts[row["treatment"]] = counts.get(row["treatment"], 0) + row["row_count"]
    reasons = (row for row in rows if row["reason"] is not None)
    told = (ReasonCount(row["table_name"], row["treatment"], row["reason"], row["row_count"]) for row in reasons)
    return LoadAccount(load_ms, tables, tuple(told))


def _sorted(rows: Iterable[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: (row["load_ms"], row["table_name"], row["treatment"], row["reason"] or ""))
