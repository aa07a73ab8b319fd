"""Options for pace and throttle of a run: `pace: PaceOptions`, `throttle: ThrottleRates`.

The pace is order, hours and limits; the throttle one rate for all brokers, and other rates for some.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, tzinfo
from typing import NamedTuple

import click

from kreassign.cli.options import values
from kreassign.model.pace import (
    NO_LIMITS,
    AtWindowEnd,
    EndpointKind,
    Limit,
    Measure,
    Order,
    Pace,
    PaceChange,
    Schedule,
    parse_time_zone,
    parse_window,
)
from kreassign.model.text import parse_whole, shortened
from kreassign.model.throttle import AdaptiveThrottle, BrokerCapacity, BrokerRate, ThrottleRates

NO_LIMIT = "none"
NONE = "none"
PERCENT = 100
MOST_MOVES = 1_000_000_000

_TIME = r"([01]?\d|2[0-4]):([0-5]\d)"
_TIME_OF_DAY = re.compile(_TIME, re.ASCII)


class _Where(NamedTuple):
    """The suffix of an option's name, what the option limits, and the words for that."""

    suffix: str
    ends: tuple[EndpointKind, ...]
    words: str


# Narrower limits come later and win.
_WHERE = (
    _Where("", (EndpointKind.CLUSTER,), "in flight"),
    _Where("-per-broker", (EndpointKind.SOURCE, EndpointKind.DESTINATION), "in flight from each broker, and to each"),
    _Where("-per-source", (EndpointKind.SOURCE,), "in flight from each broker"),
    _Where("-per-destination", (EndpointKind.DESTINATION,), "in flight to each broker"),
    _Where("-per-log-dir", (EndpointKind.LOG_DIR,), "in flight to each log directory that the plan names"),
)


@dataclass(frozen=True, slots=True)
class HoursOptions:
    """The hours of a run, as given."""

    windows: tuple[str, ...] = ()
    time_zone: str | None = None
    deadline: str | None = None
    at_window_end: str | None = None

    def hours(self, now_ms: int, before: Schedule | None = None) -> Schedule | None:
        """The schedule of these options; None without any.

        Hours not given are those of `before`. Raises click.BadParameter, InputError.
        """
        if not (self.windows or self.time_zone or self.deadline or self.at_window_end):
            return None
        hours = before or Schedule()
        hours = hours.in_zone(self.time_zone) if self.time_zone else hours
        if self.windows:
            windows = () if NONE in self.windows else tuple(sorted({parse_window(text) for text in self.windows}))
            hours = replace(hours, windows=windows)
        if self.deadline:
            deadline_ms = None if self.deadline == NONE else _instant(self.deadline, hours.clock, now_ms)
            hours = replace(hours, deadline_ms=deadline_ms)
        return replace(hours, at_end=AtWindowEnd(self.at_window_end)) if self.at_window_end else hours


@dataclass(frozen=True, slots=True)
class PaceOptions:
    """The pace options, as given; a time of day becomes an instant only together with the present time."""

    order: Order | None = None
    limits: tuple[Limit, ...] = ()
    elections_per_step: int | None = None
    hours: HoursOptions = HoursOptions()
    disk_reserve: float | None = None
    is_eager: bool | None = None
    is_stepwise: bool | None = None

    def change(self, now_ms: int, before: Pace = NO_LIMITS) -> PaceChange:
        """The change of the pace `before`. Raises click.BadParameter."""
        hours = self.hours.hours(now_ms, before.hours)
        return PaceChange(self.order, self.limits, self.elections_per_step, hours, self.disk_reserve, self.is_eager)

    def pace(self, now_ms: int) -> Pace:
        """The pace of a new run, without limits by default. Raises click.BadParameter."""
        return replace(NO_LIMITS, is_stepwise=bool(self.is_stepwise)).changed(self.change(now_ms))


def _size(text: str) -> int | str:
    found = NO_LIMIT if text == NO_LIMIT else values.parse_quantity(text)
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


def _limit_option(measure: Measure, where: _Where) -> values.Decorator:
    kind, what = (_size, "bytes") if measure is Measure.BYTES else (_count, "moves" if not where.suffix else "copies")
    metavar = "SIZE" if measure is Measure.BYTES else "N"
    narrower = where.suffix in {"-per-source", "-per-destination"}
    text = f"Limit the {what} {where.words}.  [default: {'as per broker' if narrower else NO_LIMIT}]"
    return click.option(f"--{_limit_name(measure, where)}", type=kind, metavar=metavar, help=text)


def _limit_name(measure: Measure, where: _Where) -> str:
    return f"max-{'bytes' if measure is Measure.BYTES else 'moves'}{where.suffix}"


def _parsed(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text.strip())
    except ValueError as error:
        raise click.BadParameter(
            f"{shortened(text)!r} is not a time; write for example 06:00 or 2027-01-31T06:00"
        ) from error


def _window_or_none(text: str) -> None:
    if text != NONE:
        parse_window(text)


def _deadline(text: str) -> None:
    if text != NONE and not _TIME_OF_DAY.fullmatch(text.strip()):
        _parsed(text)


_OPTIONS: tuple[values.Decorator, ...] = (
    click.option(
        "--order",
        type=click.Choice([order.value for order in Order]),
        help=f"Order in which moves start.  [default: {Order.MAKESPAN}]",
    ),
    *(_limit_option(measure, where) for measure in Measure for where in _WHERE),
    click.option(
        "--elections-per-step",
        type=values.WholeRange(1),
        help=f"Preferred leaders to elect at a time.  [default: {NO_LIMITS.elections_per_step}]",
    ),
    click.option(
        "--start",
        type=click.Choice(["enough", "all"]),
        help="Start only what keeps brokers busy, or all that the limits allow.  [default: enough]",
    ),
    click.option(
        "--disk-reserve",
        type=values.FiniteRange(0, PERCENT, max_open=True),
        metavar="PERCENT",
        help=f"Share of each destination's disk to keep free.  [default: {NO_LIMITS.disk_reserve * PERCENT:g}]",
    ),
    click.option(
        "--window",
        "windows",
        type=values.ReadBy("window", values.checked(_window_or_none)),
        multiple=True,
        metavar="FROM-TO",
        help="Run moves only between these times of each day, for example 22:00-06:00; may be repeated.  "
        f"[default: {NONE}]",
    ),
    click.option(
        "--time-zone",
        type=values.ReadBy("time zone", values.checked(parse_time_zone)),
        metavar="AREA/CITY",
        help="Time zone of --window and --deadline.  [default: UTC]",
    ),
    click.option(
        "--deadline",
        type=values.ReadBy("time", values.checked(_deadline)),
        metavar="TIME",
        help=f"Start nothing that cannot end by this time, for example 06:00 or 2027-01-31T06:00.  [default: {NONE}]",
    ),
    click.option(
        "--at-window-end",
        type=click.Choice([choice.value for choice in AtWindowEnd]),
        help=f"How to treat moves still in flight when a window closes.  [default: {AtWindowEnd.FINISH}]",
    ),
)
_STEPS = "Add one replica per partition at a time, through intermediate reassignments."
_STEPWISE = click.option("--stepwise", is_flag=True, help=_STEPS)
_STEPWISE_OR_NOT = click.option(
    "--stepwise/--no-stepwise", is_flag=True, default=None, help=f"{_STEPS}  [default: as in the run]"
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
    stepwise: bool | None = None,
    **limits: int | str | None,
) -> PaceOptions:
    """Build PaceOptions; `limits` are the `--max-…` options, by name."""
    return PaceOptions(
        None if order is None else Order(order),
        tuple(_limits(limits)),
        elections_per_step,
        HoursOptions(windows, time_zone, deadline, at_window_end),
        None if disk_reserve is None else disk_reserve / PERCENT,
        None if start is None else start == "all",
        stepwise,
    )


pace_options = values.option_group("pace", (*_OPTIONS, _STEPWISE), read_pace)
"""Add order, limits and hours for a new run."""

pace_change_options = values.option_group("pace", _OPTIONS, read_pace)
"""Add the same for a running run, without `--stepwise`, which a run cannot change."""

rollback_pace_options = values.option_group("pace", (*_OPTIONS, _STEPWISE_OR_NOT), read_pace)
"""Add the same for a rollback, in steps or not whatever the run was."""


def _limits(given: dict[str, int | str | None]) -> Iterator[Limit]:
    for measure in Measure:
        for where in _WHERE:
            chosen = given[_limit_name(measure, where).replace("-", "_")]
            if chosen is not None:
                at_most = None if isinstance(chosen, str) else chosen
                yield from (Limit(end, measure, at_most) for end in where.ends)


def _instant(text: str, clock: tzinfo, now_ms: int) -> int:
    """A deadline in ms since the epoch: a date and time, or the next occurrence of a time of day."""
    now = datetime.fromtimestamp(now_ms / 1000, clock)
    match = _TIME_OF_DAY.fullmatch(text.strip())
    if match is not None and int(match[1]) < 24:
        found = now.replace(hour=int(match[1]), minute=int(match[2]), second=0, microsecond=0, fold=0)
        found = found if found > now else found + timedelta(days=1)
    else:
        found = _parsed(text)
        found = found if found.tzinfo else found.replace(tzinfo=clock)
    if found <= now:
        raise click.BadParameter(f"{text} is in the past", param_hint="'--deadline'")
    return round(found.timestamp() * 1000)


# Options for the throttle: `throttle: ThrottleRates`, one rate for all brokers and other rates for some.

AUTO = "auto"
LEAST_BARE_RATE = 1000
"""Rates below need a unit: who writes 50 means megabytes."""


def rate(text: str) -> int | None:
    """A rate in bytes per second, None for no limit. For `click.option(type=…)`."""
    found = None if text == NO_LIMIT else values.parse_quantity(text)
    if found is not None and found <= 0:
        raise click.BadParameter(f"with {text} no move would ever end; specify a rate above 0, or `{NO_LIMIT}`")
    if found is not None and found < LEAST_BARE_RATE and _has_no_unit(text):
        raise click.BadParameter(f"{text} without a unit is {text} B/s; write {text}MB/s, or {text}B/s if it is meant")
    return found


def _has_no_unit(text: str) -> bool:
    with suppress(ValueError):
        return parse_whole(text.strip()) >= 0
    return False


def broker_rate(text: str) -> BrokerRate:
    """The rate of one broker: `3=20MB/s`, or `3=none`. For `click.option(type=…)`."""
    broker, equals, limit = text.partition("=")
    try:
        number = parse_whole(broker.strip() if equals else "")
    except ValueError:
        said = f"{shortened(text)!r} is not a broker and its rate; write for example 3=20MB/s"
        raise click.BadParameter(said) from None
    return BrokerRate(number, rate(limit.strip()))


def rate_or_auto(text: str) -> int | str | None:
    """A rate as `rate` reads it, or `auto`. For `click.option(type=…)`."""
    return AUTO if text == AUTO else rate(text)


def capacity(text: str) -> BrokerCapacity | int:
    """The capacity of every broker, `100MB/s`, or of one, `3=50MB/s`. For `click.option(type=…)`."""
    found = broker_rate(text) if "=" in text else rate(text)
    amount = found.bytes_per_s if isinstance(found, BrokerRate) else found
    if amount is None:
        raise click.BadParameter("capacity cannot be `none`; specify a rate")
    return BrokerCapacity(found.broker, amount) if isinstance(found, BrokerRate) else amount


@dataclass(frozen=True, slots=True)
class CapacityOptions:
    """Options of an adaptive throttle, as given."""

    broker_capacity: tuple[BrokerCapacity | int, ...]
    throttle_floor: int | None

    def auto(self, *, is_wanted: bool) -> AdaptiveThrottle | None:
        """The adaptive throttle, if wanted. Raises click.UsageError for missing or surplus options."""
        if not is_wanted:
            if self.broker_capacity or self.throttle_floor is not None:
                raise click.UsageError("--broker-capacity and --throttle-floor are only for the throttle `auto`")
            return None
        general = [one for one in self.broker_capacity if isinstance(one, int)]
        if len(general) != 1:
            raise click.UsageError(
                "the throttle `auto` needs the capacity of brokers: specify --broker-capacity RATE once for all of "
                "them, and --broker-capacity ID=RATE for those that differ"
            )
        single = sorted(
            (one for one in self.broker_capacity if isinstance(one, BrokerCapacity)), key=lambda one: one.broker
        )
        return AdaptiveThrottle(general[0], tuple(single), self.throttle_floor or None)


_CAPACITY: tuple[values.Decorator, ...] = (
    click.option(
        "--broker-capacity",
        type=capacity,
        multiple=True,
        metavar="[ID=]RATE",
        help="With the throttle `auto`: network capacity of every broker, or of one, in each direction; may be "
        "repeated.  [default: none; `auto` needs it]",
    ),
    click.option(
        "--throttle-floor",
        type=values.parse_speed,
        metavar="RATE",
        help="With the throttle `auto`: lowest rate.  [default: a tenth of the capacity]",
    ),
)

capacity_options = values.option_group("capacity", _CAPACITY, CapacityOptions)
"""Add `--broker-capacity` and `--throttle-floor`: keyword `capacity: CapacityOptions`."""


def throttle_options(default: str) -> values.Decorator:
    """Add `--throttle`, `--throttle-broker` and the options of `auto`: keyword `throttle: ThrottleRates`."""
    general = click.option(
        "--throttle",
        type=rate_or_auto,
        metavar="RATE",
        help="Limit what each broker sends and receives for these moves, for example to 20MB/s; `auto` adapts the "
        f"limit to other traffic.  [default: {default}]",
    )
    single = click.option(
        "--throttle-broker",
        type=broker_rate,
        multiple=True,
        metavar="ID=RATE",
        help="Set another limit for one broker, for example 3=5MB/s, or 3=none for no limit; may be repeated.  "
        "[default: as for the others]",
    )
    return values.option_group("throttle", (general, single, *_CAPACITY), read_throttle)


def read_throttle(
    throttle: int | str | None,
    throttle_broker: tuple[BrokerRate, ...],
    broker_capacity: tuple[BrokerCapacity | int, ...] = (),
    throttle_floor: int | None = None,
) -> ThrottleRates:
    """Build the throttle from the parameters of `throttle_options`. Raises click.UsageError."""
    brokers = [one.broker for one in throttle_broker]
    for broker in sorted({broker for broker in brokers if brokers.count(broker) > 1}):
        raise click.UsageError(f"--throttle-broker gives broker {broker} more than one rate; specify one")
    auto = CapacityOptions(broker_capacity, throttle_floor).auto(is_wanted=throttle == AUTO)
    general = throttle if isinstance(throttle, int) else None
    return ThrottleRates(general, tuple(sorted(throttle_broker, key=lambda one: one.broker)), auto)
