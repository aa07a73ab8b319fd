"""The faults that a twin injects, as options."""

from __future__ import annotations

import tomllib
from pathlib import Path

import click

from kreassign.cli.options.group import option_group
from kreassign.errors import InputError
from kreassign.twin.faults import PlannedFault, read_fault, read_faults

_OPTIONS = (
    click.option(
        "--fault",
        "texts",
        multiple=True,
        metavar="KIND:…@AT[+LASTS]",
        help="Inject a fault, for example crash:2@60s+30s; may be repeated.",
    ),
    click.option(
        "--faults",
        "fault_file",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        metavar="FILE",
        help="Load faults from a TOML file.",
    ),
)


def read_fault_options(texts: tuple[str, ...], fault_file: Path | None) -> tuple[PlannedFault, ...]:
    """The faults of the file, and those given one by one. Raises InputError."""
    found = _from_file(fault_file) if fault_file is not None else ()
    return (*found, *map(read_fault, texts))


fault_options = option_group("faults", _OPTIONS, read_fault_options)
"""Add `--fault` and `--faults`: keyword `faults: tuple[PlannedFault, ...]`."""


def _from_file(path: Path) -> tuple[PlannedFault, ...]:
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as reason:
        raise InputError(f"{path} is not TOML: {reason}") from None
    entries = document.get("faults")
    if not isinstance(entries, list):
        raise InputError(f"{path} has no tables [[faults]]")
    return read_faults(entries)
