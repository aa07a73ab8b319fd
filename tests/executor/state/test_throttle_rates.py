"""Rates that follow the traffic: when it is measured, how long that holds, and what it makes of each rate."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kreassign.executor.client_guard import ClientAnswer, ClientGuard, Feeling
from kreassign.executor.events import (
    Event,
    HealthObserved,
    MovesObserved,
    MovesSubmitted,
    PlannedMove,
    RunResumed,
    SubmissionIntended,
    TimePassed,
    TrafficMeasured,
)
from kreassign.executor.guards import GuardName, Health, Reaction
from kreassign.executor.state.throttling import MEASURE_EVERY_MS, STALE_MS
from kreassign.executor.throttle_rates import BrokerTraffic, PartitionWrites
from kreassign.model.run import LogDirTarget
from kreassign.model.throttle import AdaptiveThrottle, BrokerCapacity, BrokerRate, ThrottleRates
from tests.executor.run_events import A0, A1, LIVE, MOVES, look, seen
from tests.executor.state.played import MOVING, UNTOUCHED, Played, begun, word_of


def following(*moves: PlannedMove, **adaptive: Any) -> Played:
    """A run whose moves are in flight, at 0 s, and whose brokers can carry 1,000 bytes per second, 10 at least."""
    chosen = AdaptiveThrottle(**{"capacity_bytes_per_s": 1_000, "floor_bytes_per_s": 10, **adaptive})
    return Played(begun(*moves, rates=ThrottleRates(adaptive=chosen))).go("wait")


def rates(run: Played) -> dict[str, str | None]:
    """Each rate that is set, by broker."""
    return {word_of(key): one.value for key, one in run.view.pending_restores.items() if key.broker is not None}


def measured(run: Played, at_ms: int, *traffic: BrokerTraffic | PartitionWrites) -> Played:
    """The run once this was measured and what follows from it is set."""
    brokers = tuple(one for one in traffic if isinstance(one, BrokerTraffic))
    writes = tuple(one for one in traffic if isinstance(one, PartitionWrites))
    measurement = TrafficMeasured(at_ms, brokers, writes)
    return run.copy().on(TimePassed(at_ms), measurement, MovesObserved(at_ms, ())).settle()


@pytest.mark.parametrize(("events", "decided"), [
    ([TimePassed(1_000)], "measure a-0 a-1"),
    ([TrafficMeasured(1_000, ()), look(1_000, MOVING), TimePassed(999 + MEASURE_EVERY_MS)], "observe a-0 a-1"),
    ([TrafficMeasured(1_000, ()), look(1_000, MOVING), TimePassed(1_000 + MEASURE_EVERY_MS)], "measure a-0 a-1"),
])  # fmt: skip
def test_traffic_is_measured_at_once_and_then_every_ten_seconds(events: list[Event], decided: str) -> None:
    assert following().on(*events).decided == decided


def test_a_run_that_is_resumed_measures_at_once() -> None:
    run = following().on(TrafficMeasured(1_000, ()), look(1_000, MOVING), RunResumed(2_000, LIVE)).go("wait")
    assert run.on(TimePassed(3_000)).decided == "measure a-0 a-1"


def test_without_such_a_throttle_nothing_is_measured() -> None:
    assert Played(begun()).go("wait").on(TimePassed(20_000)).decided == "observe a-0 a-1"


FLOOR = {"leader 0": "10", "leader 1": "10", "follower 2": "10", "follower 3": "10"}
BUSY = [BrokerTraffic(broker, 300.0, 400.0) for broker in range(4)]
LEFT = {"leader 0": "700", "leader 1": "700", "follower 2": "600", "follower 3": "600"}
WRITES = [PartitionWrites(A0, 100.0), PartitionWrites(A1, 8.0)]
WRITTEN = tuple(replace(move, write_bytes_per_s=speed) for move, speed in zip(MOVES, (40.0, 80.0), strict=True))
AS_PLANNED = {"leader 0": "100", "follower 2": "50", "leader 1": "200", "follower 3": "100"}


@pytest.mark.parametrize(("run", "traffic", "found"), [
    (following(), [], FLOOR),
    (following(), BUSY, LEFT),
    (following(), BUSY[:1], FLOOR | {"leader 0": "700"}),
    (following(per_broker=(BrokerCapacity(1, 2_000),)), BUSY, LEFT | {"leader 1": "1700"}),
    (following(floor_bytes_per_s=None), [], dict.fromkeys(FLOOR, "100")),
    # Never below what is written to the partitions that are copied: for each follower and each copy at the source.
    (following(), WRITES, {"leader 0": "250", "leader 1": "20", "follower 2": "125", "follower 3": "10"}),
    (following(), [*BUSY, PartitionWrites(A0, 1_000.0)], LEFT | {"leader 0": "2500", "follower 2": "1250"}),
    (following(*WRITTEN), [], AS_PLANNED),
    (following(*WRITTEN), WRITES, AS_PLANNED | {"leader 0": "250", "follower 2": "125", "leader 1": "20",
                                                "follower 3": "10"}),
], ids=["nothing known", "traffic", "of one broker", "capacity", "floor", "writes", "more than fits", "as planned",
        "as measured"])  # fmt: skip
def test_rates_are_what_the_traffic_leaves_over(
    run: Played, traffic: list[BrokerTraffic | PartitionWrites], found: dict[str, str]
) -> None:
    assert rates(measured(run, 10_000, *traffic)) == found


def test_brokers_with_a_rate_of_their_own_do_not_follow_the_traffic() -> None:
    begin = begun(rates=ThrottleRates(None, (BrokerRate(3, 77),), AdaptiveThrottle(1_000, (), 10)))
    assert rates(measured(Played(begin).go("wait"), 10_000, *BUSY)) == LEFT | {"follower 3": "77"}


def test_rates_are_changed_with_the_lists_before_moves_start() -> None:
    adaptive = ThrottleRates(adaptive=AdaptiveThrottle(1_000, (), 10))
    run = Played(begun(*WRITTEN, rates=adaptive)).go("observe")
    assert rates(run) == FLOOR
    assert run.go("set").decided == (
        "set leader 0=100|10, leader 1=200|10, follower 2=50|10, follower 3=100|10, both lists"
    )


def test_moves_that_are_sent_again_need_their_rate_once() -> None:
    adaptive = ThrottleRates(adaptive=AdaptiveThrottle(1_000, (), 10))
    run = Played(begun(*WRITTEN, rates=adaptive)).go("submit")
    run.on(SubmissionIntended(0, (A0, A1)), MovesSubmitted(0, (), unknown=(A0, A1)), look(5_000, UNTOUCHED))
    assert run.decided == "submit a-0 a-1"


def test_a_copy_within_a_broker_needs_as_much_as_one_from_elsewhere() -> None:
    within, other = replace(MOVES[0], log_dirs=(LogDirTarget(1, "/b", "/a"),)), replace(MOVES[1], target=(1, 2))
    run = following(within, other)
    run.on(MovesObserved(1_000, (replace(seen(within, MOVING), misplaced=(1,)), seen(other, MOVING)))).settle()
    assert rates(measured(run, 10_000, *WRITES)) == {
        "leader 0": "250", "leader 1": "20", "follower 2": "135", "replica 1": "125",
    }  # fmt: skip


def test_a_rate_of_a_broker_that_is_down_does_not_follow_the_traffic() -> None:
    without_0 = (1, 2, 3, 4)
    run = following().on(RunResumed(1_000, without_0)).go("check health").on(HealthObserved(1_000, Health(without_0)))
    assert rates(measured(run, 10_000, *BUSY)) == LEFT | {"leader 0": None}


@pytest.mark.parametrize(("sent", "rate"), [(230.0, "700"), (229.0, "771"), (370.0, "700"), (371.0, "629")])
def test_a_rate_that_is_off_by_a_tenth_at_most_stays(sent: float, rate: str) -> None:
    run = measured(following(), 10_000, BrokerTraffic(0, 300.0, 0.0))
    assert rates(measured(run, 20_000, BrokerTraffic(0, sent, 0.0)))["leader 0"] == rate


@pytest.mark.parametrize(("since_ms", "rate"), [(STALE_MS - 1, "700"), (STALE_MS, "10")])
def test_what_was_measured_of_a_broker_holds_for_a_minute(since_ms: int, rate: str) -> None:
    run = measured(following(), 10_000, *BUSY)
    found = rates(measured(run, 10_000 + since_ms, *BUSY[1:]))
    assert found == LEFT | {"leader 0": rate}


def test_writes_to_a_partition_hold_until_others_are_measured() -> None:
    run = measured(following(), 10_000, PartitionWrites(A0, 100.0), PartitionWrites(A1, 80.0))
    found = rates(measured(run, 20_000, PartitionWrites(A0, 200.0)))
    assert found == {"leader 0": "500", "follower 2": "250", "leader 1": "200", "follower 3": "100"}


CLIENTS = {"clients": ClientGuard(command=("slow",)), "guards": {GuardName.CLIENTS: Reaction.HOLD}}
SLOW = Health(LIVE, clients=(ClientAnswer("slow", Feeling.BAD, "it is slow"),))


def suffering(rates: ThrottleRates, *moves: PlannedMove) -> Played:
    """A run whose moves are in flight, and whose clients feel bad at the inspection after half a minute."""
    run = Played(begun(*moves, rates=rates, lost_after_ms=None, **CLIENTS)).go("wait")
    return run.on(look(30_000, MOVING, *moves), HealthObserved(30_000, SLOW)).settle()


@pytest.mark.parametrize(("given", "found"), [
    (ThrottleRates(1_000), {"leader 0": "500", "leader 1": "500", "follower 2": "500", "follower 3": "500"}),
    (ThrottleRates(1_000, (BrokerRate(3, 77),)),
     {"leader 0": "500", "leader 1": "500", "follower 2": "500", "follower 3": "38"}),
    (ThrottleRates(1_000, (BrokerRate(3, None),)), {"leader 0": "500", "leader 1": "500", "follower 2": "500"}),
    # Never below what is written to the partitions that are copied.
    (ThrottleRates(150), {"leader 0": "100", "leader 1": "150", "follower 2": "75", "follower 3": "100"}),
], ids=["one rate", "one of its own", "no limit", "writes"])  # fmt: skip
def test_half_of_each_rate_is_left_when_clients_suffer(given: ThrottleRates, found: dict[str, str]) -> None:
    moves = WRITTEN if given.bytes_per_s == 150 else MOVES
    assert rates(suffering(given, *moves)) == found


def test_what_the_traffic_leaves_over_is_halved_when_clients_suffer() -> None:
    run = suffering(ThrottleRates(adaptive=AdaptiveThrottle(1_000, (), 10)))
    assert rates(measured(run, 40_000, *BUSY)) == {key: str(int(rate) // 2) for key, rate in LEFT.items()}
