"""The throttle of a run as options of commands: one rate for all brokers, others for some."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from kreassign.cli.output import parse_quantity
from kreassign.executor.rates import BrokerRate, Rates
from kreassign.report.text import format_rate

Command = TypeVar("Command", bound=Callable[..., Any])

NO_LIMIT = "none"


def rate(text: str) -> int | None:
    """A rate in bytes per second, or None for no limit. For `click.option(type=…)`."""
    found = None if text == NO_LIMIT else parse_quantity(text)
    if found is not None and found <= 0:
        raise click.BadParameter(f"with {text} no move would ever end; give a rate above 0, or `{NO_LIMIT}`")
    return found


def broker_rate(text: str) -> BrokerRate:
    """The rate of one broker: `3=20MB/s`, or `3=none`. For `click.option(type=…)`."""
    broker, equals, limit = text.partition("=")
    if not (equals and broker.strip().isdecimal()):
        raise click.BadParameter(f"{text!r} names no broker and its rate; write for example 3=20MB/s")
    return BrokerRate(int(broker), rate(limit.strip()))


def rate_options(default: str) -> Callable[[Command], Command]:
    """Add `--throttle` and `--throttle-broker`; `read_rates` takes their parameters."""
    general = click.option(
        "--throttle",
        type=parse_quantity,
        metavar="RATE",
        help=f"What each broker may send and receive for these moves, for example 20MB/s.  [default: {default}]",
    )
    single = click.option(
        "--throttle-broker",
        type=broker_rate,
        multiple=True,
        metavar="ID=RATE",
        help="Another rate for one broker, for example 3=5MB/s, or 3=none for no limit. Can be repeated.",
    )
    return lambda command: general(single(command))


def read_rates(given: dict[str, Any]) -> Rates:
    """Take the parameters of `rate_options` out of what was given."""
    general, single = given.pop("throttle"), given.pop("throttle_broker")
    brokers = [one.broker for one in single]
    for broker in sorted({broker for broker in brokers if brokers.count(broker) > 1}):
        raise click.UsageError(f"broker {broker} is given more than one rate with --throttle-broker; give one")
    return Rates(general, tuple(sorted(single, key=lambda one: one.broker)))


def rates_text(rates: Rates) -> str:
    """A throttle in words; empty where there is none."""
    if not rates.is_limited:
        return ""
    general = "no limit" if rates.bytes_per_s is None else f"{format_rate(rates.bytes_per_s)} per broker"
    return ", ".join((general, *(f"broker {one.broker}: {_limit(one.bytes_per_s)}" for one in rates.own)))


def _limit(bytes_per_s: int | None) -> str:
    return "no limit" if bytes_per_s is None else format_rate(bytes_per_s)
