"""PURE. What a file of measures holds, whatever its format: readings of series, and what is none, with its place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from kreassign.model.strict_json import is_half

END_OF_TIME_S = 253_402_300_800
"""The end of the year 9999: no folder of an hour is after it."""
NO_TEXT = "is not a text in UTF-8"
NO_READING = "is no reading"


@dataclass(frozen=True, slots=True)
class Reading:
    """One value of one series, which may be NaN; `taken_ms` is None where it was not written down.

    `place` is where in its file it is, such as `line 7`.
    """

    name: str
    labels: Mapping[str, str]
    value: float
    taken_ms: int | None
    place: str = ""


@dataclass(frozen=True, slots=True)
class BadRow:
    """A line, an entry or a row of a file that is not stored, and why; `text` is all of it."""

    place: str
    reason: str
    text: str

    def __str__(self) -> str:
        return f"{self.place} {self.reason}"


@dataclass(frozen=True, slots=True)
class Parsed:
    """What a file holds: readings, and the lines or entries that are none."""

    readings: tuple[Reading, ...]
    unreadable: tuple[BadRow, ...]


def parsed(found: Iterable[Reading | BadRow]) -> Parsed:
    """Readings and what is none, kept apart."""
    together = tuple(found)
    return Parsed(
        tuple(one for one in together if isinstance(one, Reading)),
        tuple(one for one in together if isinstance(one, BadRow)),
    )


def reading(name: object, labels: Mapping[str, object], at_s: float | None, value: Any, place: str) -> Reading | None:
    """One reading; None for what is none: no number, no text, or at a time that no calendar has."""
    number = _number(value)
    texts = {key: text for key, text in labels.items() if isinstance(text, str) and not is_half(text)}
    if number is None or not isinstance(name, str) or len(texts) < len(labels):
        return None
    if at_s is not None and not 0 <= at_s < END_OF_TIME_S:
        return None
    return Reading(name, texts, number, None if at_s is None else round(at_s * 1000), place)


def _number(text: Any) -> float | None:
    try:
        return float(text)
    except (TypeError, ValueError, OverflowError):
        return None
