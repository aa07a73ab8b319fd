"""How the values of options are read: amounts, durations, and numbers within bounds."""

from __future__ import annotations

import math
import re
from typing import Any

import click

from kreassign.errors import InputError
from kreassign.model.amount import parse_amount

_UNIT_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "": 1.0}
LONGEST_S = 366 * 86_400
"""A year: no interval or measurement is longer, and waiting for much more is beyond the system's clock."""

_DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|m|h|)\s*")


def parse_quantity(text: str) -> int:
    """Bytes, or bytes per second: `20MB/s`, `512KiB`, `1.5 GB` or a plain count. For `click.option(type=…)`."""
    try:
        return parse_amount(text)
    except InputError as error:
        raise click.BadParameter(str(error)) from error


def parse_duration(text: str) -> float:
    """Seconds: `5s`, `500ms`, `1.5m`, `2h` or a plain number of seconds. For `click.option(type=…)`."""
    match = _DURATION.fullmatch(text)
    if match is None:
        raise click.BadParameter(f"{text!r} is not a duration; write for example 5s, 500ms or 1m")
    seconds = float(match[1]) * _UNIT_SECONDS[match[2]]
    if seconds > LONGEST_S:
        raise click.BadParameter(f"{text[:40]!r} is too long; the longest duration is {LONGEST_S / 3600:.0f}h")
    return seconds


class FiniteRange(click.FloatRange):
    """A number within bounds. Unlike click's own it takes neither `nan`, which is within any bounds, nor `inf`."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number. Raises click.BadParameter."""
        found: float = super().convert(value, param, ctx)
        if not math.isfinite(found):
            self.fail(f"{value!r} is not a finite number", param, ctx)
        return found
