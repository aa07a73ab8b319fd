"""Throttles with rates of their own for some brokers, told on a twin."""

from __future__ import annotations

from pathlib import Path

import pytest

from kreassign.executor.events import RunStarted, ThrottleIntended, ThrottleRequested, ThrottleSet, TrafficMeasured
from kreassign.executor.journal import read_events
from kreassign.executor.throttle_ledger import ConfigKey
from kreassign.model import ConfigResource
from kreassign.model.throttle import AdaptiveThrottle, BrokerCapacity, BrokerRate, ThrottleRates
from tests.executor.deaths import die
from tests.executor.twin_runs import RATE, TwinRig

pytestmark = pytest.mark.thorough

SENT, RECEIVED = "leader.replication.throttled.rate", "follower.replication.throttled.rate"
TO_TWO_AND_THREE = {0: (2, 1), 1: (3, 0)}


@pytest.fixture
def rig(tmp_path: Path) -> TwinRig:
    return TwinRig(tmp_path, [[0, 1], [1, 0]], size_bytes=20 * RATE)


def rates_after(rig: TwinRig, seconds: float) -> dict[str, str]:
    """Rates so much later; filled in then."""
    found: dict[str, str] = {}
    rig.after(seconds, lambda: found.update((key, value) for key, value in rig.throttles.items() if "rate" in key))
    return found


def test_each_broker_is_throttled_with_its_own_rate(rig: TwinRig) -> None:
    during = rates_after(rig, 4)
    found = rig.run(rig.prepared(TO_TWO_AND_THREE, throttle=4 * RATE, per_broker=(BrokerRate(3, RATE),)))
    assert (found.state, found.problems, rig.throttles) == ("done", (), {})
    assert during == {
        **{f"broker {broker} {SENT}": str(4 * RATE) for broker in (0, 1)},
        f"broker 2 {RECEIVED}": str(4 * RATE),
        f"broker 3 {RECEIVED}": str(RATE),
    }
    quick, slow = [((move.completed_ms or 0) - found.started_ms) / 1000 for move in found.moves]
    assert quick < 8
    assert slow > 18


def test_a_broker_without_a_limit_keeps_its_foreign_rate(rig: TwinRig) -> None:
    rig.twin.metadata.configs[ConfigResource.broker(2)] = {RECEIVED: "123456789"}
    during = rates_after(rig, 4)
    rig.run(rig.prepared(TO_TWO_AND_THREE, throttle=RATE, per_broker=(BrokerRate(2, None),)))
    assert during[f"broker 2 {RECEIVED}"] == "123456789"
    assert rig.throttles == {f"broker 2 {RECEIVED}": "123456789"}


def test_one_brokers_rate_is_changed_and_survives_a_resume(rig: TwinRig) -> None:
    rig.ask_after(3, lambda at_ms, number: ThrottleRequested(at_ms, number, 5 * RATE, (3,)))
    during = rates_after(rig, 6)
    rig.stop_after(7)
    assert rig.run(rig.prepared(TO_TWO_AND_THREE)).state == "paused"
    assert (during[f"broker 2 {RECEIVED}"], during[f"broker 3 {RECEIVED}"]) == (str(RATE), str(5 * RATE))
    found = rig.resume()
    assert (found.state, rig.throttles) == ("done", {})
    assert found.rates == ThrottleRates(RATE, (BrokerRate(3, 5 * RATE),))


def written(tmp_path: Path, size: int = 60) -> TwinRig:
    """Partition 0 is written with a tenth of a megabyte a second."""
    return TwinRig(tmp_path, [[0, 1], [1, 0]], size_bytes=size * RATE, write_bytes_per_s=RATE / 10)


def sent_by_0(rig: TwinRig) -> list[str]:
    key = ConfigKey(ConfigResource.broker(0), SENT)
    intended = (event for event in rig.seen if isinstance(event, ThrottleIntended))
    return [
        override.value
        for event in intended
        for override in event.overrides
        if override.key == key and override.value is not None
    ]


def test_auto_begins_at_the_floor_and_then_follows_the_traffic(tmp_path: Path) -> None:
    rig = written(tmp_path)
    found = rig.run(rig.prepared({0: (2, 1)}, throttle=None, adaptive=AdaptiveThrottle(4 * RATE, (), RATE)))
    assert (found.state, found.problems, found.throttle_residue, rig.throttles) == ("done", (), (), {})
    floor, left = sent_by_0(rig)
    assert int(floor) == RATE
    # It leads one partition, whose other replica fetches all that is written.
    assert int(left) == pytest.approx(3.9 * RATE, rel=0.02)


def test_auto_is_switched_during_a_run_and_fixed_rates_stay(tmp_path: Path) -> None:
    rig = written(tmp_path, size=180)
    adaptive = AdaptiveThrottle(3 * RATE, (BrokerCapacity(2, 2 * RATE),))
    rig.ask_after(3, lambda at_ms, number: ThrottleRequested(at_ms, number, None, (), adaptive))
    rig.ask_after(25, lambda at_ms, number: ThrottleRequested(at_ms, number, 5 * RATE, (1,)))
    rig.ask_after(50, lambda at_ms, number: ThrottleRequested(at_ms, number, 9 * RATE))
    following, at_last = rates_after(rig, 45), rates_after(rig, 55)
    found = rig.run(rig.prepared({0: (2, 1), 1: (3, 0)}))
    assert (found.state, found.rates, rig.throttles) == ("done", ThrottleRates(9 * RATE), {})
    assert int(following[f"broker 0 {SENT}"]) == pytest.approx(2.9 * RATE, rel=0.02)
    assert int(following[f"broker 2 {RECEIVED}"]) == 2 * RATE
    assert int(following[f"broker 1 {SENT}"]) == 5 * RATE
    assert set(at_last.values()) == {str(9 * RATE)}


def test_a_run_with_auto_that_is_resumed_measures_again_and_leaves_nothing(tmp_path: Path) -> None:
    rig = written(tmp_path)
    rig.stop_after(15)
    started = rig.prepared({0: (2, 1)}, throttle=None, adaptive=AdaptiveThrottle(4 * RATE, (), RATE))
    assert rig.run(started).state == "paused"
    assert rig.throttles
    found = rig.resume()
    assert (found.state, found.rates.adaptive, rig.throttles) == ("done", AdaptiveThrottle(4 * RATE, (), RATE), {})
    measured = [event for event in read_events(rig.path()) if isinstance(event, TrafficMeasured)]
    assert not measured[0].brokers
    assert len(measured) >= 3


@pytest.mark.parametrize("is_written", [True, False], ids=["not done", "done"])
def test_a_run_with_auto_that_dies_while_it_changes_rates_is_carried_on(tmp_path: Path, is_written: bool) -> None:
    def begun(folder: str) -> tuple[TwinRig, RunStarted]:
        rig = written(tmp_path / folder, size=15)
        return rig, rig.prepared({0: (2, 1)}, throttle=None, adaptive=AdaptiveThrottle(2 * RATE, (), RATE))

    whole, started = begun("whole")
    whole.run(started)
    events = read_events(whole.path())
    first = next(row for row, event in enumerate(events, 1) if isinstance(event, TrafficMeasured) and event.brokers)
    last = next(row for row, event in enumerate(events, 1) if row > first and isinstance(event, ThrottleSet))
    for row in range(first - 1, last + 1):
        rig, started = begun(str(row))
        die(rig, started, row, is_written=is_written)
        found = rig.resume()
        assert (found.state, found.problems, found.throttle_residue, rig.throttles) == ("done", (), (), {}), row
        assert rig.replicas[0] == (2, 1)
