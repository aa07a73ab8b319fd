"""The hours of a run, as they are written on the command line."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import click
import pytest

from kreassign.cli.options.pace import HoursOptions
from kreassign.errors import InputError
from kreassign.model.pace import AtWindowEnd, Schedule, Window

BERLIN = "Europe/Berlin"
NOON_MS = round(datetime(2026, 10, 24, 12, tzinfo=ZoneInfo(BERLIN)).timestamp() * 1000)


def read(before: Schedule | None = None, **given: Any) -> Schedule | None:
    return HoursOptions(**given).hours(NOON_MS, before)


def test_nothing_given_is_nothing() -> None:
    assert read() is None


def test_windows_are_minutes_of_the_day() -> None:
    assert read(windows=("22:00-6:30", "12:00-13:15"), time_zone=BERLIN) == Schedule(
        (Window(720, 795), Window(1320, 390)), BERLIN
    )
    assert read(windows=("00:00-24:00",)) == Schedule((Window(0, 1440),))


@pytest.mark.parametrize(("text", "hours"), [
    ("13:00", 1),
    ("12:00", 25),  # tomorrow, after a night of an hour more
    ("2026-10-25T06:00", 19),
    ("2026-10-25 06:00+02:00", 18),
])  # fmt: skip
def test_a_deadline_is_a_time_of_the_day_or_a_day_and_time(text: str, hours: int) -> None:
    assert read(deadline=text, time_zone=BERLIN) == Schedule((), BERLIN, NOON_MS + round(hours * 3_600_000))


def test_what_is_not_given_stays_as_it_was() -> None:
    before = Schedule((Window(1, 2),), BERLIN, 5, AtWindowEnd.FINISH)
    assert read(before, at_window_end="cancel") == Schedule((Window(1, 2),), BERLIN, 5, AtWindowEnd.CANCEL)
    assert read(before, windows=("none",)) == Schedule((), BERLIN, 5)
    assert read(before, deadline="none") == Schedule((Window(1, 2),), BERLIN)


@pytest.mark.parametrize("given", [
    {"windows": ("22:00",)},
    {"windows": ("22:00-22:00",)},
    {"windows": ("24:00-01:00",)},
    {"windows": ("10:00-24:30",)},
    {"time_zone": "Moon/Tycho", "deadline": "06:00"},
    {"time_zone": "../etc", "deadline": "06:00"},
    {"deadline": "soon"},
    {"deadline": "2020-01-01"},
])  # fmt: skip
def test_what_makes_no_sense_is_refused_with_an_example_or_a_reason(given: dict[str, Any]) -> None:
    with pytest.raises((click.BadParameter, InputError)):
        read(**given)
