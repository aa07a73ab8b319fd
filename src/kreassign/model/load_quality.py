"""How the rows that a load read were treated: those that are good, quarantined and late add up to what was read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ReasonCount:
    """How many rows of a table were treated in one way for one reason; of a skipped file 1."""

    table_name: str
    treatment: str
    reason: str
    row_count: int


@dataclass(frozen=True, slots=True)
class LoadAccount:
    """One load: when it was begun, rows by table and treatment (every treatment has a count), and the reasons."""

    load_ms: int
    tables: Mapping[str, Mapping[str, int]]
    reasons: tuple[ReasonCount, ...]

    def count(self, treatment: str) -> int:
        """Rows of all tables that were treated so."""
        return sum(counts[treatment] for counts in self.tables.values())
