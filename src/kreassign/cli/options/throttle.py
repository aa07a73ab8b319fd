"""The throttle of a run as options: `throttle: ThrottleRates`, one rate for all brokers and others for some."""

from __future__ import annotations

from dataclasses import dataclass

import click

from kreassign.cli.options.group import Decorator, option_group
from kreassign.cli.options.values import parse_quantity, parse_speed
from kreassign.executor.throttle.adaptive import AdaptiveThrottle, BrokerCapacity
from kreassign.executor.throttle.rates import BrokerRate, ThrottleRates
from kreassign.model.printable import shortened
from kreassign.model.whole_number import parse_whole
from kreassign.report.text import format_rate

NO_LIMIT = "none"
AUTO = "auto"


def rate(text: str) -> int | None:
    """A rate in bytes per second, or None for no limit. For `click.option(type=…)`."""
    found = None if text == NO_LIMIT else parse_quantity(text)
    if found is not None and found <= 0:
        raise click.BadParameter(f"with {text} no move would ever end; specify a rate above 0, or `{NO_LIMIT}`")
    return found


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
    """The same as `rate`, or `auto`. For `click.option(type=…)`."""
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
    """What an adaptive throttle needs to know, as it was given."""

    broker_capacity: tuple[BrokerCapacity | int, ...]
    throttle_floor: int | None

    def auto(self, *, is_wanted: bool) -> AdaptiveThrottle | None:
        """The adaptive throttle, if it is wanted. Raises click.UsageError for too little or too much."""
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


_CAPACITY: tuple[Decorator, ...] = (
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
        type=parse_speed,
        metavar="RATE",
        help="With the throttle `auto`: lowest rate.  [default: a tenth of the capacity]",
    ),
)

capacity_options = option_group("capacity", _CAPACITY, CapacityOptions)
"""Add `--broker-capacity` and `--throttle-floor`: keyword `capacity: CapacityOptions`."""


def throttle_options(default: str) -> Decorator:
    """Add `--throttle`, `--throttle-broker` and what `auto` needs: keyword `throttle: ThrottleRates`."""
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
    return option_group("throttle", (general, single, *_CAPACITY), read_throttle)


def read_throttle(
    throttle: int | str | None,
    throttle_broker: tuple[BrokerRate, ...],
    broker_capacity: tuple[BrokerCapacity | int, ...] = (),
    throttle_floor: int | None = None,
) -> ThrottleRates:
    """The throttle that the parameters of `throttle_options` make. Raises click.UsageError."""
    brokers = [one.broker for one in throttle_broker]
    for broker in sorted({broker for broker in brokers if brokers.count(broker) > 1}):
        raise click.UsageError(f"--throttle-broker gives broker {broker} more than one rate; specify one")
    auto = CapacityOptions(broker_capacity, throttle_floor).auto(is_wanted=throttle == AUTO)
    general = throttle if isinstance(throttle, int) else None
    return ThrottleRates(general, tuple(sorted(throttle_broker, key=lambda one: one.broker)), auto)


def rates_text(rates: ThrottleRates) -> str:
    """A throttle in words; empty where there is none."""
    if not rates.is_limited:
        return ""
    general = _general(rates)
    return ", ".join((general, *(f"broker {one.broker}: {_limit(one.bytes_per_s)}" for one in rates.per_broker)))


def _general(rates: ThrottleRates) -> str:
    if rates.adaptive is not None:
        return f"what other traffic leaves of {format_rate(rates.adaptive.capacity_bytes_per_s)} per broker"
    return "no limit" if rates.bytes_per_s is None else f"{format_rate(rates.bytes_per_s)} per broker"


def _limit(bytes_per_s: int | None) -> str:
    return "no limit" if bytes_per_s is None else format_rate(bytes_per_s)
