"""What plans from tables, loaded when there are tables to plan from: they are slow to load, and a file needs none."""

from __future__ import annotations

from types import ModuleType


def table_inputs() -> ModuleType:
    """From tables to a problem."""
    from kreassign.operations import table_inputs as found  # noqa: PLC0415 - slow to load, and a file needs no tables

    return found
