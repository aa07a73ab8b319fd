"""The options by which a twin is told what shall break."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import click

from kreassign.errors import InputError
from kreassign.twin.faults import PlannedFault, read_fault, read_faults


def fault_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add `--fault` and `--faults`; the command gets what they say as `faults`."""

    @click.option(
        "--fault",
        "texts",
        multiple=True,
        metavar="KIND:…@AT[+LASTS]",
        help="Let something break, for example crash:2@60s+30s. May be given several times.",
    )
    @click.option(
        "--faults",
        "fault_file",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        metavar="FILE",
        help="Let happen what the tables [[faults]] of a TOML file say.",
    )
    @wraps(command)
    def with_faults(*, texts: tuple[str, ...], fault_file: Path | None, **others: Any) -> None:
        found = _from_file(fault_file) if fault_file is not None else ()
        command(faults=(*found, *map(read_fault, texts)), **others)

    return with_faults


def _from_file(path: Path) -> tuple[PlannedFault, ...]:
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as reason:
        raise InputError(f"{path} is not TOML: {reason}") from None
    entries = document.get("faults")
    if not isinstance(entries, list):
        raise InputError(f"{path} has no tables [[faults]]")
    return read_faults(entries)
