"""When traffic is measured, and how long what was measured holds."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kreassign.executor.events import (
    Event,
    LogDirTarget,
    PlacementState,
    PlannedMove,
    RunResumed,
    RunStarted,
    TrafficMeasured,
)
from kreassign.executor.instructions import MeasureTraffic
from kreassign.executor.state import MoveStatus, throttle_rates
from kreassign.executor.state.machine import handle
from kreassign.executor.state.run import Control, Run
from kreassign.executor.state.throttle_rates import MEASURE_EVERY_MS, STALE_MS
from kreassign.executor.throttle.adaptive import AdaptiveThrottle, BrokerCapacity, BrokerTraffic, PartitionWrites
from kreassign.executor.throttle.ledger import ConfigKey
from kreassign.executor.throttle.rates import BrokerRate, ThrottleRates
from kreassign.model import ConfigResource, TopicPartition
from kreassign.model.throttle import LOG_DIR_RATE
from tests.executor.run_events import A0, A1, LISTED, MOVES, RATE, RATES, SUBMITTED, machine_after, seen, started
from tests.executor.state.run_changes import changed, run_after

MOVE = PlannedMove(TopicPartition("t", 0), (0,), (1,), 5)
ONE, OTHER = BrokerTraffic(1, 5.0, 6.0), BrokerTraffic(2, 7.0, 8.0)


def measured(*events: TrafficMeasured) -> Run:
    run = Run(control=Control(ThrottleRates(adaptive=AdaptiveThrottle(1_000))))
    for event in events:
        throttle_rates.take_in(run, event)
    return run


def test_what_was_measured_of_a_broker_holds_for_a_while_though_it_tells_nothing_new() -> None:
    soon = measured(TrafficMeasured(0, (ONE, OTHER)), TrafficMeasured(STALE_MS - 1, (OTHER,)))
    assert soon.traffic.brokers == {1: (0, ONE), 2: (STALE_MS - 1, OTHER)}
    late = measured(TrafficMeasured(0, (ONE, OTHER)), TrafficMeasured(STALE_MS, (OTHER,)))
    assert late.traffic.brokers == {2: (STALE_MS, OTHER)}


def test_traffic_is_measured_at_once_and_then_every_ten_seconds() -> None:
    assert throttle_rates.is_due(measured(), 0)
    run = measured(TrafficMeasured(5, ()))
    assert not throttle_rates.is_due(run, 5 + MEASURE_EVERY_MS - 1)
    assert throttle_rates.is_due(run, 5 + MEASURE_EVERY_MS)


def test_without_auto_nothing_is_measured() -> None:
    assert not throttle_rates.is_due(Run(control=Control(ThrottleRates(1_000))), 0)


def test_a_run_that_is_resumed_measures_at_once() -> None:
    run = Run()
    handle(run, RunStarted(0, "r", "c", (MOVE,), ThrottleRates(adaptive=AdaptiveThrottle(1_000)), (0, 1)))
    throttle_rates.take_in(run, TrafficMeasured(1, (ONE,)))
    handle(run, RunResumed(2, (0, 1)))
    assert throttle_rates.is_due(run, 3)


def adapted(*brokers: BrokerTraffic, rates: ThrottleRates | None = None, written: float = 0.0) -> dict[str, str | None]:
    """The rates of a run whose copy from broker 0 to broker 1 is under way, by setting and broker."""
    run = machine_after(*SUBMITTED)[0]._run
    run.control.rates = rates or ThrottleRates(adaptive=AdaptiveThrottle(RATE))
    run.throttle.pending = {}
    throttle_rates.take_in(run, TrafficMeasured(5_000, brokers, (PartitionWrites(A0, written),)))
    return {f"{key.name.split('.')[0]} {key.broker}": value for key, value in throttle_rates.wanted(run).items()}


def test_what_the_traffic_leaves_over_is_the_rate_and_a_floor_where_nobody_knows_it() -> None:
    found = adapted(BrokerTraffic(0, 300_000.0, 100_000.0), BrokerTraffic(2, 300_000.0, 100_000.0))
    assert (found["leader 0"], found["follower 2"]) == ("700000", "900000")
    assert (found["leader 1"], found["follower 3"]) == ("100000", "100000")


def test_a_rate_is_never_below_what_is_written_to_the_partitions_that_are_copied() -> None:
    found = adapted(BrokerTraffic(0, 999_999.0, 0.0), written=2_000_000.0)
    assert all(int(found[end] or 0) >= 2_000_000 for end in ("leader 0", "follower 2"))
    assert found["leader 1"] == found["follower 3"] == "100000"


def test_a_broker_with_a_rate_of_its_own_does_not_follow_the_traffic() -> None:
    rates = ThrottleRates(adaptive=AdaptiveThrottle(RATE), per_broker=(BrokerRate(2, 77),))
    assert adapted(rates=rates)["follower 2"] == "77"


def test_a_rate_that_is_off_by_little_stays() -> None:
    run = machine_after(*SUBMITTED)[0]._run
    run.control.rates = ThrottleRates(adaptive=AdaptiveThrottle(RATE))
    throttle_rates.take_in(
        run, TrafficMeasured(5_000, (BrokerTraffic(0, 50_000.0, 0.0), BrokerTraffic(1, 300_000.0, 0.0)))
    )
    found = {key.broker: value for key, value in throttle_rates.wanted(run).items() if key.name.startswith("leader")}
    assert found == {0: str(RATE), 1: "700000"}


def test_what_was_measured_is_remembered_with_its_time_and_writes_for_good() -> None:
    run = measured(TrafficMeasured(5, (ONE,), (PartitionWrites(A0, 1.0), PartitionWrites(A1, 2.0))))
    later = TrafficMeasured(9, (OTHER,), (PartitionWrites(A0, 3.0),))
    assert changed(run, lambda: throttle_rates.take_in(run, later))[1] == {
        "traffic.measured_ms": 9,
        "traffic.brokers": {1: (5, ONE), 2: (9, OTHER)},
        "traffic.writes": {A0: 3.0, A1: 2.0},
    }


def test_measured_are_the_partitions_that_are_in_flight() -> None:
    run = run_after(*SUBMITTED)
    assert throttle_rates.measurement(run) == MeasureTraffic((A0, A1))
    run.moves.records[A0].status = MoveStatus.COMPLETE
    assert throttle_rates.measurement(run) == MeasureTraffic((A1,))


def adapting(adaptive: AdaptiveThrottle, *events: Event) -> Run:
    """A run whose throttle follows the traffic, and of which no rate is set yet."""
    run = run_after(*(events or SUBMITTED))
    run.control.rates, run.throttle.pending = ThrottleRates(adaptive=adaptive), {}
    return run


def rates_of(run: Run, *starting: TopicPartition) -> dict[tuple[str, int | None], str | None]:
    return {(key.name.split(".")[0], key.broker): value for key, value in throttle_rates.wanted(run, starting).items()}


def test_without_auto_each_broker_has_its_given_rate() -> None:
    run = run_after(*SUBMITTED)
    run.control.rates = ThrottleRates(5, (BrokerRate(1, 7), BrokerRate(2, None)))
    assert throttle_rates.wanted(run) == dict(zip([one.key for one in RATES], ("5", "7", None, "5"), strict=True))


def test_a_broker_may_send_what_it_does_not_send_and_receive_what_it_does_not_receive() -> None:
    capacities = AdaptiveThrottle(1_000, (BrokerCapacity(1, 2_000),), 10)
    run = adapting(capacities)
    throttle_rates.take_in(run, TrafficMeasured(5, tuple(BrokerTraffic(broker, 300.0, 400.0) for broker in range(4))))
    assert rates_of(run) == {
        ("leader", 0): "700",
        ("leader", 1): "1700",
        ("follower", 2): "600",
        ("follower", 3): "600",
    }


def test_copies_need_what_is_written_for_each_of_them_and_for_each_follower() -> None:
    """Broker 0 sends what is written to a-0 to its follower and the new copy, broker 1 that of a-1."""
    run = adapting(AdaptiveThrottle(1_000, (), 1))
    writes = (PartitionWrites(A0, 100.0), PartitionWrites(A1, 8.0))
    throttle_rates.take_in(run, TrafficMeasured(5, (), writes))
    assert rates_of(run) == {
        ("leader", 0): "250",
        ("leader", 1): "20",
        ("follower", 2): "125",
        ("follower", 3): "10",
    }


def test_before_writes_are_measured_those_of_the_plan_count_and_moves_about_to_start_too() -> None:
    written = tuple(replace(move, write_bytes_per_s=speed) for move, speed in zip(MOVES, (40.0, 80.0), strict=True))
    run = adapting(AdaptiveThrottle(1_000, (), 1), started(*written), *LISTED[1:])
    nothing = dict.fromkeys([("leader", 0), ("leader", 1), ("follower", 2), ("follower", 3)], "1")
    assert rates_of(run) == nothing
    assert rates_of(run, A0) == nothing | {("leader", 0): "100", ("follower", 2): "50"}
    assert rates_of(run, A1) == nothing | {("leader", 1): "200", ("follower", 3): "100"}


def test_a_copy_within_a_broker_needs_as_much_there_as_one_that_comes_from_elsewhere() -> None:
    within = replace(MOVES[0], log_dirs=(LogDirTarget(1, "/b", "/a"),))
    other = replace(MOVES[1], target=(1, 2))
    run = adapting(AdaptiveThrottle(1_000, (), 1), started(within, other), *SUBMITTED[1:])
    local = ConfigKey(ConfigResource.broker(1), LOG_DIR_RATE)
    run.throttle.before[local] = None
    run.moves.records[A0].see(replace(seen(within, PlacementState.MOVING), misplaced=(1,)), 5_000)
    throttle_rates.take_in(run, TrafficMeasured(5, (), (PartitionWrites(A0, 100.0), PartitionWrites(A1, 8.0))))
    found = rates_of(run)
    assert (found["replica", 1], found["follower", 2]) == ("125", "135")
    assert found["leader", 1] == "20"


def test_brokers_that_are_down_and_those_with_their_own_rate_do_not_follow_the_traffic() -> None:
    run = adapting(AdaptiveThrottle(1_000, (), 10))
    run.control.rates = ThrottleRates(None, (BrokerRate(3, 77),), run.control.rates.adaptive)
    run.throttle.awaited = frozenset({0, 1})
    run.throttle.pending = {RATES[0].key: RATES[0]}
    # Broker 0 is down and has got a rate already, which stays as it was before it is back; broker 1 got none yet.
    assert rates_of(run) == {
        ("leader", 0): None,
        ("leader", 1): "10",
        ("follower", 2): "10",
        ("follower", 3): "77",
    }


@pytest.mark.parametrize(("present", "rate"), [
    ("1112", "1000"),
    ("1111", "1111"),
    ("910", "910"),
    ("909", "1000"),
    (None, "1000"),
])  # fmt: skip
def test_a_rate_that_is_off_by_a_tenth_at_most_stays(present: str | None, rate: str) -> None:
    run = adapting(AdaptiveThrottle(1_000, (), 10))
    throttle_rates.take_in(run, TrafficMeasured(5, (BrokerTraffic(0, 0.0, 500.0),)))
    run.throttle.pending = {RATES[0].key: replace(RATES[0], value=present)}
    assert rates_of(run)["leader", 0] == rate
