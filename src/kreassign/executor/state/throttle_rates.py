"""What the rates of a throttle shall be now: as given, or what the measured traffic leaves over."""

from __future__ import annotations

from collections import defaultdict

from kreassign.executor.events import TrafficMeasured
from kreassign.executor.instructions import MeasureTraffic
from kreassign.executor.state.execution import Execution
from kreassign.executor.state.move_index import candidate
from kreassign.executor.throttle import ledger
from kreassign.executor.throttle.adaptive import AdaptiveThrottle, adaptive_rate
from kreassign.executor.throttle.ledger import ConfigKey
from kreassign.model.throttle import LEADER_THROTTLED_RATE

MEASURE_EVERY_MS = 10_000
"""A reading asks for all partitions, so it is not made with every look."""

STALE_MS = 60_000
"""What was measured so long ago says nothing any more."""

SENDING, RECEIVING = "sending", "receiving"

Needs = defaultdict[tuple[str, int], float]
"""Bytes per second that a broker has to send, or receive, lest copies fall behind, by way and broker."""


def wanted(run: Execution) -> dict[ConfigKey, str | None]:
    """What each rate among the settings of the run shall be."""
    rates = ledger.wanted_rates(run.before, run.rates)
    adaptive = run.rates.adaptive
    if adaptive is None:
        return rates
    needed = _needed(run)
    return rates | {key: str(_left_over(run, adaptive, key, needed)) for key in rates if _follows_traffic(run, key)}


def is_due(run: Execution, at_ms: int) -> bool:
    """Whether to measure the traffic before going on."""
    if run.rates.adaptive is None:
        return False
    return run.measured_ms is None or at_ms - run.measured_ms >= MEASURE_EVERY_MS


def measurement(run: Execution) -> MeasureTraffic:
    """What to measure."""
    return MeasureTraffic(tuple(record.name for record in run.in_flight))


def take_in(run: Execution, event: TrafficMeasured) -> None:
    """Remember what was measured; of brokers that it does not tell of, what was measured before holds for a while."""
    run.measured_ms = event.at_ms
    fresh = {broker: (at_ms, one) for broker, (at_ms, one) in run.traffic.items() if event.at_ms - at_ms < STALE_MS}
    run.traffic = fresh | {one.broker: (event.at_ms, one) for one in event.brokers}
    run.writes |= {one.topic_partition: one.bytes_per_s for one in event.writes}


def _follows_traffic(run: Execution, key: ConfigKey) -> bool:
    """Not where the broker has a rate of its own, or is down and has got one already."""
    return not run.rates.has_own_rate(key.broker) and not (key.broker in run.awaited and key in run.pending_restores)


def _left_over(run: Execution, adaptive: AdaptiveThrottle, key: ConfigKey, needed: Needs) -> int:
    assert key.broker is not None, f"{key} is no rate of a broker"
    way = SENDING if key.name == LEADER_THROTTLED_RATE else RECEIVING
    seen = run.traffic.get(key.broker)
    traffic = None if seen is None else seen[1].sent_bytes_per_s if way == SENDING else seen[1].received_bytes_per_s
    value = run.pending_restores[key].value if key in run.pending_restores else None
    return adaptive_rate(adaptive, key.broker, traffic, needed[way, key.broker], None if value is None else int(value))


def _needed(run: Execution) -> Needs:
    """What is written to the partitions that are copied, where it passes: at their source, and where copies arrive.

    At the source followers in sync count too: what they fetch of a listed partition is not slowed, but uses the rate.
    """
    needed: Needs = defaultdict(float)
    for record in (*run.in_flight, *(run.records[name] for name in run.starting)):
        written = run.writes.get(record.name, record.move.write_bytes_per_s)
        joining = [broker for broker in record.lagging if broker in record.step.adding]
        in_sync = len(record.step.original) if record.observation is None else len(record.observation.isr)
        if joining:
            needed[SENDING, candidate(record).source] += written * (len(joining) + max(0, in_sync - 1))
        for broker in record.lagging:
            needed[RECEIVING, broker] += written
    return needed
