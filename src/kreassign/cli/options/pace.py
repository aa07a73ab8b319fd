"""Order, hours and limits of a run as options: `pace: PaceOptions`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import click

from kreassign.cli.options.group import Decorator, option_group
from kreassign.cli.options.values import FiniteRange, ReadBy, WholeRange, checked, parse_quantity
from kreassign.executor.scheduling import (
    NO_LIMITS,
    AtWindowEnd,
    EndpointKind,
    Limit,
    Measure,
    Order,
    Pace,
    PaceChange,
    Schedule,
    Window,
)
from kreassign.model.printable import shortened
from kreassign.model.whole_number import parse_whole

NO_LIMIT = "none"
NONE = "none"
PERCENT = 100
MOST_MOVES = 1_000_000_000

_TIME = r"([01]?\d|2[0-4]):([0-5]\d)"
_WINDOW = re.compile(f"{_TIME}-{_TIME}", re.ASCII)
_TIME_OF_DAY = re.compile(_TIME, re.ASCII)


class _Where(NamedTuple):
    """The end of an option's name, what it limits, and the words for it."""

    suffix: str
    ends: tuple[EndpointKind, ...]
    words: str


# The narrower ones come later and win.
_WHERE = (
    _Where("", (EndpointKind.CLUSTER,), "in flight"),
    _Where("-per-broker", (EndpointKind.SOURCE, EndpointKind.DESTINATION), "in flight from each broker, and to each"),
    _Where("-per-source", (EndpointKind.SOURCE,), "in flight from each broker"),
    _Where("-per-destination", (EndpointKind.DESTINATION,), "in flight to each broker"),
    _Where("-per-log-dir", (EndpointKind.LOG_DIR,), "in flight to each log directory that the plan names"),
)


@dataclass(frozen=True, slots=True)
class HoursOptions:
    """The hours of a run, as they were given."""

    windows: tuple[str, ...] = ()
    time_zone: str | None = None
    deadline: str | None = None
    at_window_end: str | None = None

    def hours(self, now_ms: int, before: Schedule | None = None) -> Schedule | None:
        """The hours they make; None if nothing was given.

        What is not given is as in the hours `before`. Raises click.BadParameter.
        """
        if not (self.windows or self.time_zone or self.deadline or self.at_window_end):
            return None
        hours = before or Schedule()
        hours = replace(hours, time_zone=_known(self.time_zone) if self.time_zone else hours.time_zone)
        if self.windows:
            windows = () if NONE in self.windows else tuple(sorted({_window(text) for text in self.windows}))
            hours = replace(hours, windows=windows)
        if self.deadline:
            deadline_ms = None if self.deadline == NONE else _instant(self.deadline, hours.time_zone, now_ms)
            hours = replace(hours, deadline_ms=deadline_ms)
        return replace(hours, at_end=AtWindowEnd(self.at_window_end)) if self.at_window_end else hours


@dataclass(frozen=True, slots=True)
class PaceOptions:
    """What of the pace of a run was given; a time of day becomes a time only with the time it is now."""

    order: Order | None = None
    limits: tuple[Limit, ...] = ()
    elections_per_step: int | None = None
    hours: HoursOptions = HoursOptions()
    disk_reserve: float | None = None
    is_eager: bool | None = None
    is_stepwise: bool = False

    def change(self, now_ms: int, before: Pace = NO_LIMITS) -> PaceChange:
        """What of the pace `before` is to be changed. Raises click.BadParameter."""
        hours = self.hours.hours(now_ms, before.hours)
        return PaceChange(self.order, self.limits, self.elections_per_step, hours, self.disk_reserve, self.is_eager)

    def pace(self, now_ms: int) -> Pace:
        """The pace of a run that begins: what was not given is without limit. Raises click.BadParameter."""
        return replace(NO_LIMITS, is_stepwise=self.is_stepwise).changed(self.change(now_ms))


def _size(text: str) -> int | str:
    found = NO_LIMIT if text == NO_LIMIT else parse_quantity(text)
    if found == 0:
        raise click.BadParameter(f"with {text} no move would ever start; specify more, or `{NO_LIMIT}`")
    return found


def _count(text: str) -> int | str:
    if text == NO_LIMIT:
        return text
    try:
        return parse_whole(text, least=1, most=MOST_MOVES)
    except ValueError:
        said = f"{shortened(text)!r} is not a number of moves; specify 1 to {MOST_MOVES}, or `{NO_LIMIT}`"
        raise click.BadParameter(said) from None


def _limit_option(measure: Measure, where: _Where) -> Decorator:
    kind, what = (_size, "bytes") if measure is Measure.BYTES else (_count, "moves" if not where.suffix else "copies")
    metavar = "SIZE" if measure is Measure.BYTES else "N"
    narrower = where.suffix in {"-per-source", "-per-destination"}
    text = f"Limit the {what} {where.words}.  [default: {'as per broker' if narrower else NO_LIMIT}]"
    return click.option(f"--{_limit_name(measure, where)}", type=kind, metavar=metavar, help=text)


def _limit_name(measure: Measure, where: _Where) -> str:
    return f"max-{'bytes' if measure is Measure.BYTES else 'moves'}{where.suffix}"


def _window(text: str) -> Window:
    match = _WINDOW.fullmatch(text.strip())
    if match is None:
        raise click.BadParameter(f"{shortened(text)!r} is not a window; write for example 22:00-06:00")
    begins, ends = int(match[1]) * 60 + int(match[2]), int(match[3]) * 60 + int(match[4])
    if begins == ends or max(begins, ends) > 24 * 60 or begins == 24 * 60:
        raise click.BadParameter(f"{text!r} is not a window of a day; the whole day is 00:00-24:00")
    return Window(begins, ends)


def _known(name: str) -> str:
    try:
        return ZoneInfo(name).key
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise click.BadParameter(f"unknown time zone {shortened(name)!r}; write for example Europe/Berlin") from error


def _parsed(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text.strip())
    except ValueError as error:
        raise click.BadParameter(
            f"{shortened(text)!r} is not a time; write for example 06:00 or 2027-01-31T06:00"
        ) from error


def _window_or_none(text: str) -> None:
    if text != NONE:
        _window(text)


def _deadline(text: str) -> None:
    if text != NONE and not _TIME_OF_DAY.fullmatch(text.strip()):
        _parsed(text)


_OPTIONS: tuple[Decorator, ...] = (
    click.option(
        "--order",
        type=click.Choice([order.value for order in Order]),
        help=f"Order in which moves start.  [default: {Order.MAKESPAN}]",
    ),
    *(_limit_option(measure, where) for measure in Measure for where in _WHERE),
    click.option(
        "--elections-per-step",
        type=WholeRange(1),
        metavar="N",
        help=f"Preferred leaders to elect at a time.  [default: {NO_LIMITS.elections_per_step}]",
    ),
    click.option(
        "--start",
        type=click.Choice(["enough", "all"]),
        help="Start only what keeps brokers busy, or all that the limits allow.  [default: enough]",
    ),
    click.option(
        "--disk-reserve",
        type=FiniteRange(0, PERCENT, max_open=True),
        metavar="PERCENT",
        help=f"Share of each destination's disk to keep free.  [default: {NO_LIMITS.disk_reserve * PERCENT:g}]",
    ),
    click.option(
        "--window",
        "windows",
        type=ReadBy("window", checked(_window_or_none)),
        multiple=True,
        metavar="FROM-TO",
        help="Run moves only between these times of each day, for example 22:00-06:00; may be repeated.  "
        f"[default: {NONE}]",
    ),
    click.option(
        "--time-zone",
        type=ReadBy("time zone", checked(_known)),
        metavar="AREA/CITY",
        help="Time zone of --window and --deadline.  [default: UTC]",
    ),
    click.option(
        "--deadline",
        type=ReadBy("time", checked(_deadline)),
        metavar="TIME",
        help=f"Start nothing that cannot end by this time, for example 06:00 or 2027-01-31T06:00.  [default: {NONE}]",
    ),
    click.option(
        "--at-window-end",
        type=click.Choice([choice.value for choice in AtWindowEnd]),
        help=f"How to treat moves still in flight when a window closes.  [default: {AtWindowEnd.FINISH}]",
    ),
)
_STEPWISE = click.option(
    "--stepwise",
    is_flag=True,
    help="Add one replica per partition at a time, through intermediate reassignments.",
)


def read_pace(
    *,
    order: str | None,
    elections_per_step: int | None,
    start: str | None,
    disk_reserve: float | None,
    windows: tuple[str, ...],
    time_zone: str | None,
    deadline: str | None,
    at_window_end: str | None,
    stepwise: bool = False,
    **limits: int | str | None,
) -> PaceOptions:
    """The value of the options; `limits` are those of `--max-…`, by name."""
    return PaceOptions(
        None if order is None else Order(order),
        tuple(_limits(limits)),
        elections_per_step,
        HoursOptions(windows, time_zone, deadline, at_window_end),
        None if disk_reserve is None else disk_reserve / PERCENT,
        None if start is None else start == "all",
        stepwise,
    )


pace_options = option_group("pace", (*_OPTIONS, _STEPWISE), read_pace)
"""Add order, limits and hours for a run that begins."""

pace_change_options = option_group("pace", _OPTIONS, read_pace)
"""The same for a run that goes on, or for its rollback, without `--stepwise`, which a run cannot change."""


def _limits(given: dict[str, int | str | None]) -> Iterator[Limit]:
    for measure in Measure:
        for where in _WHERE:
            chosen = given[_limit_name(measure, where).replace("-", "_")]
            if chosen is not None:
                at_most = None if isinstance(chosen, str) else chosen
                yield from (Limit(end, measure, at_most) for end in where.ends)


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
        raise click.BadParameter(f"the deadline {text} is in the past")
    return round(found.timestamp() * 1000)
