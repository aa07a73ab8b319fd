"""What the rates of a throttle shall be now: as given, or what the measured traffic leaves over."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

from kreassign.executor.events import TrafficMeasured
from kreassign.executor.instructions import MeasureTraffic
from kreassign.executor.state.phases import Names
from kreassign.executor.state.run import Run
from kreassign.executor.throttle import ledger
from kreassign.executor.throttle.adaptive import AdaptiveThrottle, adaptive_rate
from kreassign.executor.throttle.demand import demand
from kreassign.executor.throttle.ledger import ConfigKey
from kreassign.model.throttle import LEADER_THROTTLED_RATE

MEASURE_EVERY_MS = 10_000
"""A reading asks for all partitions, so it is not made with every poll."""

STALE_MS = 60_000
"""What was measured so long ago says nothing any more."""

SENDING, RECEIVING = "sending", "receiving"

Needs = defaultdict[tuple[str, int], float]
"""Bytes per second that a broker has to send, or receive, lest copies fall behind, by way and broker."""


def wanted(run: Run, starting: Names = ()) -> dict[ConfigKey, str | None]:
    """What each rate among the settings of the run shall be."""
    rates = ledger.wanted_rates(run.throttle.before, run.control.rates)
    adaptive = run.control.rates.adaptive
    if adaptive is None:
        return rates
    needed = _needed(run, starting)
    return rates | {key: str(_left_over(run, adaptive, key, needed)) for key in rates if _follows_traffic(run, key)}


def is_due(run: Run, at_ms: int) -> bool:
    """Whether to measure the traffic before going on."""
    if run.control.rates.adaptive is None:
        return False
    return run.traffic.measured_ms is None or at_ms - run.traffic.measured_ms >= MEASURE_EVERY_MS


def measurement(run: Run) -> MeasureTraffic:
    """What to measure."""
    return MeasureTraffic(tuple(record.name for record in run.moves.in_flight))


def take_in(run: Run, event: TrafficMeasured) -> None:
    """Remember what was measured; of brokers that it does not have, what was measured before holds for a while."""
    run.traffic.measured_ms = event.at_ms
    fresh = {
        broker: (at_ms, one) for broker, (at_ms, one) in run.traffic.brokers.items() if event.at_ms - at_ms < STALE_MS
    }
    run.traffic.brokers = fresh | {one.broker: (event.at_ms, one) for one in event.brokers}
    run.traffic.writes |= {one.topic_partition: one.bytes_per_s for one in event.writes}


def _follows_traffic(run: Run, key: ConfigKey) -> bool:
    """Not where the broker has a rate of its own, or is down and has got one already."""
    return not run.control.rates.has_own_rate(key.broker) and not (
        key.broker in run.throttle.awaited and key in run.throttle.pending
    )


def _left_over(run: Run, adaptive: AdaptiveThrottle, key: ConfigKey, needed: Needs) -> int:
    assert key.broker is not None, f"{key} is no rate of a broker"
    way = SENDING if key.name == LEADER_THROTTLED_RATE else RECEIVING
    seen = run.traffic.brokers.get(key.broker)
    traffic = None if seen is None else seen[1].sent_bytes_per_s if way == SENDING else seen[1].received_bytes_per_s
    value = run.throttle.pending[key].value if key in run.throttle.pending else None
    return adaptive_rate(adaptive, key.broker, traffic, needed[way, key.broker], None if value is None else int(value))


def _needed(run: Run, starting: Names) -> Needs:
    """What is written to the partitions that are copied, where it passes: at their source, and where copies arrive.

    Copies between the directories of a broker need as much there.
    """
    needed: Needs = defaultdict(float)
    copied = []
    for record in (*run.moves.in_flight, *(run.moves.records[name] for name in starting)):
        written = run.traffic.writes.get(record.name, record.move.write_bytes_per_s)
        copied.append(replace(record.copied, write_bytes_per_s=written))
        for broker in set(record.lagging).difference(record.step.adding):
            needed[RECEIVING, broker] += written
    whole = demand(copied)
    for way, of_brokers in ((SENDING, whole.sent), (RECEIVING, whole.received)):
        for broker, bytes_per_s in of_brokers.items():
            needed[way, broker] += bytes_per_s
    return needed
