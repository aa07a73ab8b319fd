"""The hours of a run, as options of the commands that carry plans out."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, TypeVar
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import click

from kreassign.executor.scheduling import AtEnd, Hours, Window

Command = TypeVar("Command", bound=Callable[..., Any])

NONE = "none"

_TIME = r"([01]?\d|2[0-4]):([0-5]\d)"
_WINDOW = re.compile(f"{_TIME}-{_TIME}")
_TIME_OF_DAY = re.compile(_TIME)


def hours_options(command: Command) -> Command:
    """Add `--window`, `--time-zone`, `--deadline` and `--at-window-end`; `read_hours` takes their parameters."""
    options = (
        click.option(
            "--window",
            "windows",
            multiple=True,
            metavar="FROM-TO",
            help=f"Let moves be in flight only from FROM to TO of each day, as 22:00-06:00; several times if need be. "
            f"`{NONE}`: at any time.",
        ),
        click.option("--time-zone", metavar="AREA/CITY", help="Whose clock these times are of.  [default: UTC]"),
        click.option(
            "--deadline",
            metavar="TIME",
            help=f"Start nothing that cannot end by TIME, as 06:00 or 2027-01-31T06:00. `{NONE}`: no deadline.",
        ),
        click.option(
            "--at-window-end",
            type=click.Choice([choice.value for choice in AtEnd]),
            help=f"What becomes of moves that are in flight all the same then.  [default: {AtEnd.FINISH}]",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def read_hours(given: dict[str, Any], now_ms: int, before: Hours | None = None) -> Hours | None:
    """Take the parameters of `hours_options` out of what was given; None if there is none.

    What is not given is as in the hours `before`. Raises click.BadParameter.
    """
    windows, zone, deadline = given.pop("windows"), given.pop("time_zone"), given.pop("deadline")
    at_end = given.pop("at_window_end")
    if not (windows or zone or deadline or at_end):
        return None
    hours = before or Hours()
    hours = replace(hours, time_zone=_known(zone) if zone else hours.time_zone)
    if windows:
        hours = replace(hours, windows=() if NONE in windows else tuple(sorted({_window(text) for text in windows})))
    if deadline:
        hours = replace(hours, deadline_ms=None if deadline == NONE else _instant(deadline, hours.time_zone, now_ms))
    return replace(hours, at_end=AtEnd(at_end)) if at_end else hours


def _window(text: str) -> Window:
    match = _WINDOW.fullmatch(text.strip())
    if match is None:
        raise click.BadParameter(f"{text!r} is no window; write for example 22:00-06:00")
    begins, ends = int(match[1]) * 60 + int(match[2]), int(match[3]) * 60 + int(match[4])
    if begins == ends or max(begins, ends) > 24 * 60 or begins == 24 * 60:
        raise click.BadParameter(f"{text!r} is no window of a day; the whole day is 00:00-24:00")
    return Window(begins, ends)


def _known(name: str) -> str:
    try:
        return ZoneInfo(name).key
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise click.BadParameter(f"there is no time zone {name!r}; write for example Europe/Berlin") from error


def _instant(text: str, zone: str, now_ms: int) -> int:
    """A deadline in ms since the epoch: the next time of day like this, or a day and time."""
    now = datetime.fromtimestamp(now_ms / 1000, ZoneInfo(zone))
    match = _TIME_OF_DAY.fullmatch(text.strip())
    if match is not None and int(match[1]) < 24:
        found = now.replace(hour=int(match[1]), minute=int(match[2]), second=0, microsecond=0, fold=0)
        found = found if found > now else found + timedelta(days=1)
    else:
        found = _parsed(text)
        found = found if found.tzinfo else found.replace(tzinfo=ZoneInfo(zone))
    if found <= now:
        raise click.BadParameter(f"the deadline {text} is over already")
    return round(found.timestamp() * 1000)


def _parsed(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text.strip())
    except ValueError as error:
        raise click.BadParameter(f"{text!r} is no time; write for example 06:00 or 2027-01-31T06:00") from error
