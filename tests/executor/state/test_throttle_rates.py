"""When traffic is measured, and how long what was measured holds."""

from __future__ import annotations

from kreassign.executor.events import PlannedMove, RunResumed, RunStarted, TrafficMeasured
from kreassign.executor.state import throttle_rates
from kreassign.executor.state.machine import handle
from kreassign.executor.state.run import Control, Run
from kreassign.executor.state.throttle_rates import MEASURE_EVERY_MS, STALE_MS
from kreassign.executor.throttle.adaptive import AdaptiveThrottle, BrokerTraffic, PartitionWrites
from kreassign.executor.throttle.rates import BrokerRate, ThrottleRates
from kreassign.model import TopicPartition
from tests.executor.run_events import A0, RATE, SUBMITTED, machine_after

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
