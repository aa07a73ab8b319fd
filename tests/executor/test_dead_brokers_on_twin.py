"""Throttles while a broker of the run is down, on a twin: nobody waits for it, and it is owed nothing in the end."""

from __future__ import annotations

from pathlib import Path

import pytest

from kreassign.executor.events import Event, Request, ThrottleRequested, ThrottleRestored
from kreassign.executor.journal import Journal
from kreassign.executor.runner import Runner
from tests.executor.test_crashes import Died
from tests.executor.twin_runs import RATE, World

pytestmark = pytest.mark.thorough

SLOW = RATE // 8
AWAY = {0: (2, 1), 1: (3, 0)}


class DyingAt:
    """A journal in whose process the lights go out at the first event of a kind."""

    def __init__(self, journal: Journal, kind: type[Event], *, is_written: bool) -> None:
        self._journal = journal
        self._kind = kind
        self._is_written = is_written

    def append(self, event: Event) -> None:
        if not isinstance(event, self._kind) or self._is_written:
            self._journal.append(event)
        if isinstance(event, self._kind):
            raise Died

    def requests_after(self, number: int) -> tuple[Request, ...]:
        return self._journal.requests_after(number)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path, [[0, 1], [1, 0]])


def rates(world: World) -> dict[str, str]:
    """Rates of brokers, by broker number and side."""
    return {
        f"{name.split()[1]} {name.split()[2].split('.')[0]}": value
        for name, value in world.throttles.items()
        if name.startswith("broker")
    }


def test_the_rates_of_a_broker_that_died_are_restored_through_the_controller(world: World) -> None:
    world.let_reach_controllers()
    world.after(4, lambda: world.twin.crash(2))
    found = world.run(world.prepared(AWAY, throttle=SLOW))
    assert (found.throttle_residue, world.throttles) == ((), {})
    assert [move.status for move in found.moves] == ["failed", "complete"]
    (restored,) = [event for event in world.seen if isinstance(event, ThrottleRestored)]
    assert (restored.by_controller, restored.unwritten, restored.problems) == ((2,), (), ())
    assert "broker 2 is down: the controller took the values that it had before the run" in found.problems


def test_without_a_controller_they_are_listed_and_restored_once_the_broker_is_back(world: World) -> None:
    world.after(4, lambda: world.twin.crash(2))
    found = world.run(world.prepared(AWAY, throttle=SLOW))
    assert found.throttle_residue == (
        f"follower.replication.throttled.rate of broker 2 is still '{SLOW}'; before the run it was not set",
    )
    assert rates(world) == {"2 follower": str(SLOW)}
    assert any("no controller is known (--bootstrap-controller)" in problem for problem in found.problems)
    world.twin.start(2)
    world.transport.sleep(1)
    found = world.resume()
    assert (found.throttle_residue, world.throttles) == ((), {})


def test_a_broker_that_comes_back_while_the_run_restores_is_restored_too(world: World) -> None:
    world.after(5, lambda: world.twin.crash(1))
    world.after(40, lambda: world.twin.start(1))
    found = world.run(world.prepared({0: (0, 2)}, throttle=RATE))
    attempts = [event for event in world.seen if isinstance(event, ThrottleRestored)]
    assert [one.broker for event in attempts[:-1] for one in event.unwritten] == [1] * (len(attempts) - 1)
    assert len(attempts) > 2
    assert (found.state, found.problems, world.throttles) == ("done", (), {})


@pytest.mark.parametrize("has_controllers", [True, False], ids=["with controllers", "without"])
def test_a_rate_that_is_changed_holds_at_once_for_those_that_are_up(world: World, has_controllers: bool) -> None:
    """Broker 1 has the only copy that stays, but does not lead."""
    if has_controllers:
        world.let_reach_controllers()
    during: list[dict[str, str]] = []
    world.after(3, lambda: world.twin.crash(1))
    world.ask_after(15, lambda at_ms, number: ThrottleRequested(at_ms, number, SLOW // 2))
    for moment in (14, 20, 65):
        world.after(moment, lambda: during.append(rates(world)))
    world.after(30, lambda: world.twin.start(1))
    found = world.run(world.prepared({0: (0, 2)}, throttle=SLOW, guards={}))
    old, new = str(SLOW), str(SLOW // 2)
    first, changed, back = during
    assert first == {"0 leader": old, "1 leader": old, "2 follower": old}
    assert changed == {"0 leader": new, "1 leader": new if has_controllers else old, "2 follower": new}
    assert back == {"0 leader": new, "1 leader": new, "2 follower": new}
    assert (found.state, world.throttles) == ("done", {})


def test_a_throttle_that_is_set_while_a_broker_is_down_holds_for_the_others_and_for_it_when_it_is_back(
    tmp_path: Path,
) -> None:
    world = World(tmp_path, [[0, 1]], size_bytes=25_000 * RATE)
    during: list[dict[str, str]] = []
    world.after(3, lambda: world.twin.crash(1))
    world.ask_after(15, lambda at_ms, number: ThrottleRequested(at_ms, number, 100 * RATE))
    world.after(25, lambda: during.append(rates(world)))
    world.after(30, lambda: world.twin.start(1))
    world.after(65, lambda: during.append(rates(world)))
    found = world.run(world.prepared({0: (0, 2)}, throttle=None))
    rate = str(100 * RATE)
    assert during == [{"0 leader": rate, "2 follower": rate}, {"0 leader": rate, "1 leader": rate, "2 follower": rate}]
    assert (found.state, world.throttles) == ("done", {})


def test_a_source_that_is_down_when_the_run_begins_is_throttled_when_it_comes_and_restored(world: World) -> None:
    world.twin.crash(1)
    world.transport.sleep(20)
    during: list[dict[str, str]] = []
    world.after(10, lambda: world.twin.start(1))
    world.after(45, lambda: during.append(rates(world)))
    found = world.run(world.prepared({0: (0, 2)}, throttle=SLOW))
    assert during == [{"0 leader": str(SLOW), "1 leader": str(SLOW), "2 follower": str(SLOW)}]
    assert (found.state, found.problems, world.throttles) == ("done", (), {})


@pytest.mark.parametrize("is_written", [True, False], ids=["after it was noted", "before it was noted"])
def test_a_run_that_dies_when_the_controller_has_taken_the_old_values_has_nothing_to_restore_once_it_is_resumed(
    world: World, is_written: bool
) -> None:
    world.let_reach_controllers()
    world.after(5, lambda: world.twin.crash(1))
    started = world.prepared({0: (0, 2)})
    with Journal.create(world.state_dir, started) as journal:
        dying = DyingAt(journal, ThrottleRestored, is_written=is_written)
        with pytest.raises(Died):
            Runner(world.client, world.transport, dying, controllers=world.controllers).start(started)
    assert rates(world) == {}
    found = world.resume()
    assert (found.state, found.throttle_residue, world.throttles) == ("done", (), {})
