"""Throttles while a broker of the run is down, on a twin: nobody waits for it, nothing is left to restore."""

from __future__ import annotations

import pytest

from kreassign.executor.events import ThrottleRequested, ThrottleRestored
from tests.executor.deaths import die
from tests.executor.twin_runs import RATE, TwinRig, pace

pytestmark = pytest.mark.thorough

SLOW = RATE // 8
AWAY = {0: (2, 1), 1: (3, 0)}


def rates(rig: TwinRig) -> dict[str, str]:
    """Rates of brokers, by broker number and side."""
    return {
        f"{name.split()[1]} {name.split()[2].split('.')[0]}": value
        for name, value in rig.throttles.items()
        if name.startswith("broker")
    }


def test_rates_of_a_dead_broker_are_restored_by_the_controller(rig: TwinRig) -> None:
    rig.let_reach_controllers()
    rig.after(4, lambda: rig.twin.crash(2))
    found = rig.run(rig.prepared(AWAY, throttle=SLOW))
    assert (found.throttle_residue, rig.throttles) == ((), {})
    assert [move.status for move in found.moves] == ["failed", "complete"]
    (restored,) = [event for event in rig.seen if isinstance(event, ThrottleRestored)]
    assert (restored.by_controller, restored.unwritten, restored.problems) == ((2,), (), ())
    assert "broker 2 was down: the controller took the values that it had before the run" in found.problems


def test_without_a_controller_rates_are_restored_on_return(rig: TwinRig) -> None:
    rig.after(4, lambda: rig.twin.crash(2))
    found = rig.run(rig.prepared(AWAY, throttle=SLOW))
    assert found.throttle_residue == (
        f"follower.replication.throttled.rate of broker 2 is still '{SLOW}'; before the run it was not set",
    )
    assert rates(rig) == {"2 follower": str(SLOW)}
    assert any("no controller is known (--bootstrap-controller)" in problem for problem in found.problems)
    rig.twin.start(2)
    rig.transport.sleep(1)
    found = rig.resume()
    assert (found.throttle_residue, rig.throttles) == ((), {})


def test_a_broker_that_comes_back_while_the_run_restores_is_restored_too(rig: TwinRig) -> None:
    rig.after(5, lambda: rig.twin.crash(1))
    rig.after(40, lambda: rig.twin.start(1))
    found = rig.run(rig.prepared({0: (0, 2)}, throttle=RATE))
    attempts = [event for event in rig.seen if isinstance(event, ThrottleRestored)]
    assert [one.broker for event in attempts[:-1] for one in event.unwritten] == [1] * (len(attempts) - 1)
    assert len(attempts) > 2
    assert (found.state, found.problems, rig.throttles) == ("done", (), {})


@pytest.mark.parametrize("has_controllers", [True, False], ids=["with controllers", "without"])
def test_a_rate_that_is_changed_holds_at_once_for_those_that_are_up(rig: TwinRig, has_controllers: bool) -> None:
    """Broker 1 has the only copy that stays, but does not lead."""
    if has_controllers:
        rig.let_reach_controllers()
    during: list[dict[str, str]] = []
    rig.after(3, lambda: rig.twin.crash(1))
    rig.ask_after(15, lambda at_ms, number: ThrottleRequested(at_ms, number, SLOW // 2))
    for moment in (14, 20, 65):
        rig.after(moment, lambda: during.append(rates(rig)))
    rig.after(30, lambda: rig.twin.start(1))
    found = rig.run(rig.prepared({0: (0, 2)}, throttle=SLOW, guards={}))
    old, new = str(SLOW), str(SLOW // 2)
    first, changed, back = during
    assert first == {"0 leader": old, "1 leader": old, "2 follower": old}
    assert changed == {"0 leader": new, "1 leader": new if has_controllers else old, "2 follower": new}
    assert back == {"0 leader": new, "1 leader": new, "2 follower": new}
    assert (found.state, rig.throttles) == ("done", {})


def test_a_source_down_at_the_start_is_throttled_on_return(rig: TwinRig) -> None:
    rig.twin.crash(1)
    rig.transport.sleep(20)
    during: list[dict[str, str]] = []
    rig.after(10, lambda: rig.twin.start(1))
    rig.after(45, lambda: during.append(rates(rig)))
    found = rig.run(rig.prepared({0: (0, 2)}, throttle=SLOW))
    assert during == [{"0 leader": str(SLOW), "1 leader": str(SLOW), "2 follower": str(SLOW)}]
    assert (found.state, found.problems, rig.throttles) == ("done", (), {})


@pytest.mark.parametrize("is_written", [True, False], ids=["after it was noted", "before it was noted"])
def test_a_run_killed_after_restoring_has_nothing_to_restore(rig: TwinRig, is_written: bool) -> None:
    rig.let_reach_controllers()
    rig.after(5, lambda: rig.twin.crash(1))
    started = rig.prepared({0: (0, 2)})
    die(rig, started, ThrottleRestored, is_written=is_written)
    assert rates(rig) == {}
    found = rig.resume()
    assert (found.state, found.throttle_residue, rig.throttles) == ("done", (), {})


def test_a_broker_that_led_and_was_away_a_while_leads_again_at_the_end(rig: TwinRig) -> None:
    """Its move was complete, and its leader the preferred one, before it died."""
    rig.after(11, lambda: rig.twin.crash(2))
    rig.after(17, lambda: rig.twin.start(2))
    found = rig.run(rig.prepared({0: (2, 1), 1: (3, 0)}, pace=pace(moves=1)))
    assert [move.status for move in found.moves] == ["complete", "complete"]
    assert (found.state, rig.twin.metadata.topics["t"].partitions[0].leader) == ("done", 2)
