"""Which load is meant: the last one at a time, or the one of a number."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LoadNumber:
    """A finished load by its number, counted from 1, as column `load_number` of table `loads` has it."""

    number: int

    def __str__(self) -> str:
        return f"load {self.number}"


AsOf = int | LoadNumber
"""A time, ms since the epoch: the last load that had begun by then. Or a number: that load."""
