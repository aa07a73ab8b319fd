"""What a run that was prepared will do: read and measured, and nothing changed."""

from __future__ import annotations

from kreassign.admin import AdminClient
from kreassign.clock import Clock, SystemClock
from kreassign.errors import ClusterError
from kreassign.executor.cluster.traffic_meter import TrafficMeter
from kreassign.executor.events import RunStarted
from kreassign.executor.preflight.preview import (
    ASSUMED_NETWORK_BYTES_PER_S,
    USED_AT_MOST,
    Proposal,
    RunPreview,
    preview,
    propose,
)
from kreassign.operations.run import RunRequest

__all__ = ["ASSUMED_NETWORK_BYTES_PER_S", "USED_AT_MOST", "RunPreview", "preview_run"]

SYSTEM_CLOCK = SystemClock()


def preview_run(
    client: AdminClient, started: RunStarted, request: RunRequest, clock: Clock = SYSTEM_CLOCK
) -> RunPreview:
    """What this run will do; where it has no throttle, one is proposed, from the traffic of `measure_for_s` seconds.

    What cannot be read or measured is left out. Raises ClusterError where nobody answers at all.
    """
    receivers = sorted({broker for move in started.moves for broker in move.receiving})
    log_dirs = client.describe_log_dirs(receivers, partitions=()).ok if receivers else {}
    planned = {move.topic_partition for move in started.moves}
    others = len(client.list_partition_reassignments().keys() - planned)
    proposal = None if started.rates.is_limited else _proposed(client, started, request.measure_for_s, clock)
    return preview(started.moves, started.rates, log_dirs, request.plan.facts, others, proposal)


def _proposed(client: AdminClient, started: RunStarted, seconds: float, clock: Clock) -> Proposal | None:
    """A throttle for a run that has none; None where that was not to be measured, or could not."""
    if seconds <= 0 or not any(move.adding for move in started.moves):
        return None
    meter = TrafficMeter(client)
    names = [move.topic_partition for move in started.moves]
    try:
        meter.measure(clock.now_ms(), names)
        clock.sleep(seconds)
        traffic, writes = meter.measure(clock.now_ms(), names)
    except ClusterError:
        return None
    return propose(started.moves, traffic, {one.topic_partition: one.bytes_per_s for one in writes})
