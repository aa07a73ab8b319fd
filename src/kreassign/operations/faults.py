"""Faults that a twin shall inject, as people write them: in short texts, or in the tables of a TOML file."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from pathlib import Path

from kreassign.errors import InputError
from kreassign.twin.faults import PlannedFault, read_fault, read_faults

__all__ = ["PlannedFault", "faults_of"]


def faults_of(texts: Iterable[str], fault_file: Path | None = None) -> tuple[PlannedFault, ...]:
    """The faults in the tables `[[faults]]` of a TOML file, and those given one by one. Raises InputError."""
    found = _faults_in(fault_file) if fault_file is not None else ()
    return (*found, *map(read_fault, texts))


def _faults_in(path: Path) -> tuple[PlannedFault, ...]:
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as reason:
        raise InputError(f"{path} is not TOML: {reason}") from None
    entries = document.get("faults")
    if not isinstance(entries, list):
        raise InputError(f"{path} has no tables [[faults]]")
    return read_faults(entries)
