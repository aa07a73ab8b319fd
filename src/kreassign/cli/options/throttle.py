"""The throttle of a run as options of commands: one rate for all brokers, others for some."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from kreassign.cli.output import parse_quantity
from kreassign.executor.throttle.adaptive import Auto, Capacity
from kreassign.executor.throttle.rates import BrokerRate, Rates
from kreassign.report.text import format_rate

Command = TypeVar("Command", bound=Callable[..., Any])

NO_LIMIT = "none"
AUTO = "auto"


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


def rate_or_auto(text: str) -> int | str | None:
    """The same as `rate`, or `auto`. For `click.option(type=…)`."""
    return AUTO if text == AUTO else rate(text)


def capacity(text: str) -> Capacity | int:
    """What each broker can carry, `100MB/s`, or one of them, `3=50MB/s`. For `click.option(type=…)`."""
    found = broker_rate(text) if "=" in text else rate(text)
    amount = found.bytes_per_s if isinstance(found, BrokerRate) else found
    if amount is None:
        raise click.BadParameter("a broker cannot carry everything; give a rate")
    return Capacity(found.broker, amount) if isinstance(found, BrokerRate) else amount


def auto_options(command: Command) -> Command:
    """Add `--broker-capacity` and `--throttle-floor`; `read_auto` takes their parameters."""
    capacities = click.option(
        "--broker-capacity",
        type=capacity,
        multiple=True,
        metavar="[ID=]RATE",
        help="With the throttle `auto`: what each broker, or one, can send, and receive, in all. Can be repeated.",
    )
    floor = click.option(
        "--throttle-floor",
        type=parse_quantity,
        metavar="RATE",
        help="With the throttle `auto`: never less than this.  [default: a tenth of the capacity]",
    )
    return capacities(floor(command))


def read_auto(given: dict[str, Any], *, is_wanted: bool) -> Auto | None:
    """Take the parameters of `auto_options` out of what was given."""
    capacities, floor = given.pop("broker_capacity"), given.pop("throttle_floor")
    if not is_wanted:
        if capacities or floor is not None:
            raise click.UsageError("--broker-capacity and --throttle-floor are for a throttle that is `auto`")
        return None
    general = [one for one in capacities if isinstance(one, int)]
    if len(general) != 1:
        raise click.UsageError(
            "a throttle that is `auto` needs to know what brokers can send and receive: give --broker-capacity RATE "
            "once for all of them, and --broker-capacity ID=RATE for those that differ"
        )
    single = sorted((one for one in capacities if isinstance(one, Capacity)), key=lambda one: one.broker)
    return Auto(general[0], tuple(single), floor or None)


def rate_options(default: str) -> Callable[[Command], Command]:
    """Add `--throttle`, `--throttle-broker` and what `auto` needs; `read_rates` takes their parameters."""
    general = click.option(
        "--throttle",
        type=rate_or_auto,
        metavar="RATE",
        help=f"What each broker may send and receive for these moves, as 20MB/s, or `auto`.  [default: {default}]",
    )
    single = click.option(
        "--throttle-broker",
        type=broker_rate,
        multiple=True,
        metavar="ID=RATE",
        help="Another rate for one broker, for example 3=5MB/s, or 3=none for no limit. Can be repeated.",
    )
    return lambda command: general(single(auto_options(command)))


def read_rates(given: dict[str, Any]) -> Rates:
    """Take the parameters of `rate_options` out of what was given."""
    general, single = given.pop("throttle"), given.pop("throttle_broker")
    brokers = [one.broker for one in single]
    for broker in sorted({broker for broker in brokers if brokers.count(broker) > 1}):
        raise click.UsageError(f"broker {broker} is given more than one rate with --throttle-broker; give one")
    auto = read_auto(given, is_wanted=general == AUTO)
    return Rates(None if auto else general, tuple(sorted(single, key=lambda one: one.broker)), auto)


def rates_text(rates: Rates) -> str:
    """A throttle in words; empty where there is none."""
    if not rates.is_limited:
        return ""
    general = _general(rates)
    return ", ".join((general, *(f"broker {one.broker}: {_limit(one.bytes_per_s)}" for one in rates.own)))


def _general(rates: Rates) -> str:
    if rates.auto is not None:
        return f"what traffic leaves of {format_rate(rates.auto.capacity_bytes_per_s)} per broker"
    return "no limit" if rates.bytes_per_s is None else f"{format_rate(rates.bytes_per_s)} per broker"


def _limit(bytes_per_s: int | None) -> str:
    return "no limit" if bytes_per_s is None else format_rate(bytes_per_s)
