"""The order and the hours of moves, and the limits of what is in flight, as options of commands."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

import click

from kreassign.cli.options.hours import hours_options, read_hours
from kreassign.cli.output import parse_quantity
from kreassign.executor.scheduling import NO_LIMITS, End, Limit, Measure, Order, Pace, PaceChange

Command = TypeVar("Command", bound=Callable[..., Any])

NO_LIMIT = "none"
PERCENT = 100


class _Where(NamedTuple):
    """The end of an option's name, what it limits, and the words for it."""

    suffix: str
    ends: tuple[End, ...]
    words: str


# The narrower ones come later and win.
_WHERE = (
    _Where("", (End.CLUSTER,), "in flight"),
    _Where("-per-broker", (End.SOURCE, End.DESTINATION), "in flight that a broker sends, and that it receives"),
    _Where("-per-source", (End.SOURCE,), "in flight that a broker sends"),
    _Where("-per-destination", (End.DESTINATION,), "in flight that a broker receives"),
    _Where("-per-log-dir", (End.LOG_DIR,), "in flight to a log directory that the plan names"),
)


def pace_options(command: Command) -> Command:
    """Add order, limits and hours; `read_pace` or `read_pace_change` takes their parameters."""
    options = [
        click.option(
            "--order",
            type=click.Choice([order.value for order in Order]),
            help=f"Which moves start first.  [default: {Order.MAKESPAN}]",
        ),
        *(_limit_option(measure, where) for measure in Measure for where in _WHERE),
        click.option(
            "--elections-per-step",
            type=click.IntRange(1),
            metavar="N",
            help=f"Preferred leaders elected at a time.  [default: {NO_LIMITS.elections_per_step}]",
        ),
        click.option(
            "--start",
            type=click.Choice(["enough", "all"]),
            help="Start nothing at brokers that have enough to do, or all that the limits allow.  [default: enough]",
        ),
    ]
    options.append(
        click.option(
            "--disk-reserve",
            type=click.FloatRange(0, PERCENT, max_open=True),
            metavar="PERCENT",
            help=f"Part of every destination's disk that stays free.  [default: {NO_LIMITS.disk_reserve * PERCENT:g}]",
        )
    )
    command = hours_options(command)
    for option in reversed(options):
        command = option(command)
    return command


def stepwise_option(command: Command) -> Command:
    """Add `--stepwise`, which `read_pace` takes; a run cannot change it on its way."""
    return click.option(
        "--stepwise",
        is_flag=True,
        help="Give each partition one new replica at a time, by reassignments in between.",
    )(command)


def read_pace_change(given: dict[str, Any], now_ms: int, before: Pace = NO_LIMITS) -> PaceChange:
    """Take the parameters of `pace_options` out of what was given: what of the pace `before` shall be otherwise."""
    order, elections, reserve = (given.pop(name) for name in ("order", "elections_per_step", "disk_reserve"))
    part = None if reserve is None else reserve / PERCENT
    start = given.pop("start")
    is_eager = None if start is None else start == "all"
    hours = read_hours(given, now_ms, before.hours)
    return PaceChange(None if order is None else Order(order), tuple(_limits(given)), elections, hours, part, is_eager)


def read_pace(given: dict[str, Any], now_ms: int) -> Pace:
    """The same for a run that begins, with `stepwise_option`: what was not given is without limit."""
    begun = replace(NO_LIMITS, is_stepwise=given.pop("stepwise"))
    return begun.changed(read_pace_change(given, now_ms))


def _limits(given: dict[str, Any]) -> Iterator[Limit]:
    for measure in Measure:
        for where in _WHERE:
            chosen = given.pop(_name(measure, where).replace("-", "_"))
            if chosen is not None:
                at_most = None if chosen == NO_LIMIT else chosen
                yield from (Limit(end, measure, at_most) for end in where.ends)


def _limit_option(measure: Measure, where: _Where) -> Callable[[Command], Command]:
    kind, what = (_size, "Bytes") if measure is Measure.BYTES else (_count, "Moves" if not where.suffix else "Copies")
    metavar = "SIZE" if measure is Measure.BYTES else "N"
    text = f"{what} {where.words}; `{NO_LIMIT}` for no limit."
    return click.option(f"--{_name(measure, where)}", type=kind, metavar=metavar, help=text)


def _name(measure: Measure, where: _Where) -> str:
    return f"max-{'bytes' if measure is Measure.BYTES else 'moves'}{where.suffix}"


def _size(text: str) -> int | str:
    found = NO_LIMIT if text == NO_LIMIT else parse_quantity(text)
    if found == 0:
        raise click.BadParameter(f"with {text} no move would ever start; give more, or `{NO_LIMIT}`")
    return found


def _count(text: str) -> int | str:
    if text == NO_LIMIT:
        return text
    if not text.isdecimal() or int(text) == 0:
        raise click.BadParameter(f"{text!r} is no number of moves; give 1 or more, or `{NO_LIMIT}`")
    return int(text)
