"""When traffic is measured, and how long what was measured holds."""

from __future__ import annotations

from kreassign.executor.events import PlannedMove, RunResumed, RunStarted, TrafficMeasured
from kreassign.executor.state import throttle_rates
from kreassign.executor.state.machine import handle
from kreassign.executor.state.run import Control, Run
from kreassign.executor.state.throttle_rates import MEASURE_EVERY_MS, STALE_MS
from kreassign.executor.throttle.adaptive import AdaptiveThrottle, BrokerTraffic
from kreassign.executor.throttle.rates import ThrottleRates
from kreassign.model import TopicPartition

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
