"""Throttles with rates of their own for some brokers, told on a twin."""

from __future__ import annotations

from pathlib import Path

import pytest

from kreassign.executor.events import RateRequested
from kreassign.executor.history import RunHistory
from kreassign.executor.rates import BrokerRate
from kreassign.model import ConfigResource
from tests.executor.worlds import RATE, World

SENT, RECEIVED = "leader.replication.throttled.rate", "follower.replication.throttled.rate"
TO_TWO_AND_THREE = {0: (2, 1), 1: (3, 0)}


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path, [[0, 1], [1, 0]], size_bytes=20 * RATE)


def rates_after(world: World, seconds: float) -> dict[str, str]:
    """What the rates are so much later; filled in then."""
    found: dict[str, str] = {}
    world.after(seconds, lambda: found.update((key, value) for key, value in world.throttles.items() if "rate" in key))
    return found


def times(found: RunHistory) -> list[float]:
    return [((move.completed_ms or 0) - found.started_ms) / 1000 for move in found.moves]


def test_each_broker_is_throttled_with_its_own_rate(world: World) -> None:
    during = rates_after(world, 4)
    found = world.run(world.prepared(TO_TWO_AND_THREE, throttle=4 * RATE, own=(BrokerRate(3, RATE),)))
    assert (found.state, found.problems, world.throttles) == ("done", (), {})
    assert during == {
        **{f"broker {broker} {SENT}": str(4 * RATE) for broker in (0, 1)},
        f"broker 2 {RECEIVED}": str(4 * RATE),
        f"broker 3 {RECEIVED}": str(RATE),
    }
    quick, slow = times(found)
    assert quick < 8
    assert slow > 18


def test_one_broker_can_be_throttled_alone(world: World) -> None:
    during = rates_after(world, 4)
    found = world.run(world.prepared(TO_TWO_AND_THREE, throttle=None, own=(BrokerRate(3, RATE),)))
    assert (found.state, world.throttles) == ("done", {})
    assert during == {f"broker 3 {RECEIVED}": str(RATE)}


def test_a_broker_without_a_limit_keeps_the_rate_that_somebody_else_gave_it(world: World) -> None:
    world.twin.metadata.configs[ConfigResource.broker(2)] = {RECEIVED: "123456789"}
    during = rates_after(world, 4)
    world.run(world.prepared(TO_TWO_AND_THREE, throttle=RATE, own=(BrokerRate(2, None),)))
    assert during[f"broker 2 {RECEIVED}"] == "123456789"
    assert world.throttles == {f"broker 2 {RECEIVED}": "123456789"}


def test_the_rate_of_one_broker_is_changed_during_the_run_and_kept_when_it_is_taken_up(world: World) -> None:
    world.ask_after(3, lambda at_ms, number: RateRequested(at_ms, number, 5 * RATE, (3,)))
    during = rates_after(world, 6)
    world.after(7, lambda: world.runner and world.runner.request_stop())
    assert world.run(world.prepared(TO_TWO_AND_THREE)).state == "paused"
    assert (during[f"broker 2 {RECEIVED}"], during[f"broker 3 {RECEIVED}"]) == (str(RATE), str(5 * RATE))
    found = world.resume()
    assert (found.state, world.throttles) == ("done", {})
    assert (found.throttle_bytes_per_s, found.broker_rates) == (RATE, (BrokerRate(3, 5 * RATE),))
