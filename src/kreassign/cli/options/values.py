"""How the values of options are read: amounts, durations, numbers within bounds, and whatever else a function reads.

What a type of this module refuses, click tells with the name of the option.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from kreassign.errors import InputError
from kreassign.model.amount import parse_amount
from kreassign.model.as_of import AsOf, LoadNumber
from kreassign.model.printable import shortened
from kreassign.model.whole_number import LARGEST_ID, signed_number

_UNIT_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "": 1.0}
LONGEST_S = 366 * 86_400
"""A year: no interval or measurement is longer, and waiting for much more is beyond the system's clock."""

_DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|m|h|)\s*", re.ASCII)


def parse_quantity(text: str) -> int:
    """Bytes, or bytes per second: `20MB/s`, `512KiB`, `1.5 GB` or a plain count. For `click.option(type=…)`."""
    try:
        return parse_amount(text)
    except InputError as error:
        raise click.BadParameter(str(error)) from error


def parse_speed(text: str) -> int:
    """The same, for what nothing ends without: more than 0."""
    found = parse_quantity(text)
    if not found:
        raise click.BadParameter(f"{text!r} is no speed; specify more than 0, for example 20MB/s")
    return found


def parse_duration(text: str) -> float:
    """Seconds: `5s`, `500ms`, `1.5m`, `2h` or a plain number of seconds. For `click.option(type=…)`."""
    match = _DURATION.fullmatch(text)
    if match is None:
        raise click.BadParameter(f"{shortened(text)!r} is not a duration; write for example 5s, 500ms or 1m")
    seconds = float(match[1]) * _UNIT_SECONDS[match[2]]
    if seconds > LONGEST_S:
        raise click.BadParameter(f"{shortened(text)!r} is too long; the longest duration is {LONGEST_S / 3600:.0f}h")
    return seconds


def parse_age(text: str) -> float | None:
    """The same, or None for `none`: any age."""
    return None if text == "none" else parse_interval(text)


def parse_moment(text: str) -> int:
    """A date and time as ISO 8601 writes it, in UTC unless it says otherwise, in ms since the epoch."""
    try:
        found = datetime.fromisoformat(text.strip())
    except ValueError as error:
        raise click.BadParameter(f"{shortened(text)!r} is not a time; write for example 2027-01-31T06:00") from error
    utc = found if found.tzinfo is not None else found.replace(tzinfo=UTC)
    return round(utc.timestamp() * 1000)


def parse_as_of(text: str) -> AsOf:
    """The number of a load, or a date and time as `parse_moment` reads it. For `click.option(type=…)`."""
    # A date without dashes has eight digits.
    if re.fullmatch(r"[1-9][0-9]{0,6}", text.strip()):
        return LoadNumber(int(text))
    try:
        return parse_moment(text)
    except click.BadParameter as error:
        raise click.BadParameter(f"{error}, or the number of a load, for example 12") from error


def parse_interval(text: str) -> float:
    """The same, for a time between two of something: more than 0."""
    seconds = parse_duration(text)
    if not seconds:
        raise click.BadParameter(f"{text!r} is no interval; specify more than 0, for example 60s")
    return seconds


class FiniteRange(click.FloatRange):
    """A number within bounds. Unlike click's own it takes neither `nan`, which is within any bounds, nor `inf`."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number. Raises click.BadParameter."""
        try:
            number = float(value)
        except ValueError:
            self.fail(f"{shortened(str(value))!r} is not a number", param, ctx)
        if not math.isfinite(number):
            self.fail(f"{shortened(str(value))!r} is not a finite number", param, ctx)
        found: float = super().convert(number, param, ctx)
        return found


class WholeRange(click.IntRange):
    """A whole number within bounds, and within those of Kafka's ids and counts."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The number. Raises click.BadParameter."""
        number = signed_number(str(value).strip())
        if number is None or abs(number) > LARGEST_ID:
            self.fail(f"{shortened(str(value))!r} is not a whole number up to {LARGEST_ID}", param, ctx)
        found: int = super().convert(number, param, ctx)
        return found


BROKER_ID = WholeRange(min=0)
"""The id of a broker."""


class ReadBy(click.ParamType[Any]):
    """A text that a function of ours reads; what it refuses (InputError, ValueError) is the user's mistake."""

    def __init__(self, name: str, read: Callable[[str], Any]) -> None:
        self.name = name
        self._read = read

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """What the function makes of it; a default that is no text stays. Raises click.BadParameter."""
        if not isinstance(value, str):
            return value
        try:
            return self._read(value)
        except (InputError, ValueError) as error:
            self.fail(str(error), param, ctx)


def checked(check: Callable[[str], object]) -> Callable[[str], str]:
    """For `ReadBy`: the text itself, once the function has read it."""

    def read(text: str) -> str:
        check(text)
        return text

    return read


def pattern(text: str) -> str:
    """A regular expression. Raises ValueError where it is none."""
    try:
        re.compile(text)
    except (re.error, RecursionError, OverflowError) as error:
        raise ValueError(f"{shortened(text)!r} is not a regular expression: {error}") from None
    return text


REGEX = ReadBy("regular expression", pattern)


class Place(click.Path):
    """A path whose place is there: of a file its directory, of a directory all that it is below.

    Else what was computed, or read from a cluster, would be lost when it is to be written.
    """

    def __init__(self, *, is_file: bool, needs_directory: bool = True, takes_both: bool = False) -> None:
        super().__init__(dir_okay=takes_both or not is_file, file_okay=is_file, path_type=Path)
        self._needs_directory = is_file and needs_directory

    @staticmethod
    def check_directory(path: Path, option: str) -> None:
        """Raise click.BadParameter where the directory of a file is not there."""
        if not path.parent.is_dir():
            raise click.BadParameter(f"there is no directory {shortened(str(path.parent))!r}", param_hint=option)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path. Raises click.BadParameter."""
        path = Path(value)
        try:
            is_there = not self._needs_directory or path.parent.is_dir()
            with suppress(FileNotFoundError):
                path.stat()
        except OSError as error:
            self.fail(f"{shortened(str(value))!r} cannot be a path: {error.strerror}", param, ctx)
        if not is_there:
            self.fail(f"there is no directory {shortened(str(path.parent))!r}", param, ctx)
        return super().convert(value, param, ctx)


OUTPUT_FILE = Place(is_file=True)
DIRECTORY = Place(is_file=False)
FILE_OR_DIRECTORY = Place(is_file=True, takes_both=True)
