from __future__ import annotations

from typing import Any

import click
import pytest
from click.testing import CliRunner

from kreassign.cli.main import kreassign
from kreassign.cli.options.pace import broker_rate, capacity, rate_or_auto, read_throttle
from kreassign.model.throttle import NO_THROTTLE, AdaptiveThrottle, BrokerCapacity, BrokerRate, ThrottleRates
from kreassign.report.text import rates_text


def read(**given: Any) -> ThrottleRates:
    return read_throttle(**({"throttle": None, "throttle_broker": ()} | given))


def test_rates_are_read_in_the_order_of_brokers() -> None:
    found = read(throttle=50, throttle_broker=(broker_rate("3=20MB/s"), broker_rate("1=none")))
    assert found == ThrottleRates(50, (BrokerRate(1, None), BrokerRate(3, 20_000_000)))


@pytest.mark.parametrize("text", ["20MB/s", "x=20MB/s", "=5", "3=", "3=0", "3=fast"])
def test_what_is_no_rate_of_a_broker_is_refused(text: str) -> None:
    with pytest.raises(click.BadParameter):
        broker_rate(text)


def test_two_rates_for_one_broker_are_refused() -> None:
    with pytest.raises(click.UsageError, match="gives broker 3 more than one rate"):
        read(throttle_broker=(BrokerRate(3, 1), BrokerRate(3, 2)))


def test_auto_takes_a_capacity_for_all_and_others_for_some() -> None:
    capacities = (capacity("3=50MB/s"), capacity("100MB/s"))
    found = read(throttle=rate_or_auto("auto"), throttle_broker=(BrokerRate(1, 7),), broker_capacity=capacities)
    auto = AdaptiveThrottle(100_000_000, (BrokerCapacity(3, 50_000_000),))
    assert found == ThrottleRates(None, (BrokerRate(1, 7),), auto)
    assert rates_text(ThrottleRates(None, (), auto)) == "what other traffic leaves of 100 MB/s per broker"


@pytest.mark.parametrize(("given", "sentence"), [
    ({"throttle": "auto"}, "specify --broker-capacity RATE once"),
    ({"throttle": "auto", "broker_capacity": (BrokerCapacity(3, 5),)}, "specify --broker-capacity RATE once"),
    ({"throttle": "auto", "broker_capacity": (5, 6)}, "specify --broker-capacity RATE once"),
    ({"throttle": 5, "broker_capacity": (5,)}, "are only for the throttle `auto`"),
    ({"throttle_floor": 5}, "are only for the throttle `auto`"),
])  # fmt: skip
def test_capacities_and_auto_go_together(given: dict[str, Any], sentence: str) -> None:
    with pytest.raises(click.UsageError, match=sentence):
        read(**given)


def test_a_broker_that_carries_everything_is_refused() -> None:
    with pytest.raises(click.BadParameter):
        capacity("none")


@pytest.mark.parametrize(("rates", "text"), [
    (NO_THROTTLE, ""),
    (ThrottleRates(50_000_000), "50 MB/s per broker"),
    (ThrottleRates(50_000_000, (BrokerRate(3, None),)), "50 MB/s per broker, broker 3: no limit"),
    (ThrottleRates(None, (BrokerRate(3, 20_000_000),)), "no limit, broker 3: 20 MB/s"),
])  # fmt: skip
def test_a_throttle_is_told_in_words(rates: ThrottleRates, text: str) -> None:
    assert rates_text(rates) == text


@pytest.mark.parametrize("command", ["run", "rehearse", "rollback"])
def test_commands_that_execute_moves_take_rates_of_single_brokers(command: str) -> None:
    assert "--throttle-broker ID=RATE" in CliRunner().invoke(kreassign, [command, "--help"]).stdout
