"""Before a run: what moves of tiered topics (KIP-405) copy where new replicas skip what is remote (KIP-1023)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kreassign.executor.cluster.port import ClusterPort
from kreassign.executor.cluster.queries import tiered_topics
from kreassign.executor.events import PlannedMove
from kreassign.model import ConfigResource, OffsetSpec, TopicPartition

SKIPS_TIERED = "follower.fetch.last.tiered.offset.enable"
"""Of brokers: an empty replica begins at the first offset that remote storage does not have.

It asks for offset 0 first, though, and where its leader still has that it goes on from there (4.3.1).
"""


def tail_sizes(
    port: ClusterPort, moves: Iterable[PlannedMove], sizes: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int]:
    """Bytes to copy of those moves that copy less than what the leader has itself, given its size.

    A move is left out if any of its destinations copies all of that. Raises ClusterError.
    """
    sized = [move for move in moves if move.adding and not move.rearranging and sizes.get(move.topic_partition)]
    tiered = tiered_topics(port, (move.topic_partition.topic for move in sized))
    local = [move for move in sized if move.topic_partition.topic in tiered]
    skipping = _skipping(port, sorted({broker for move in local for broker in move.adding}))
    names = [move.topic_partition for move in local if skipping.issuperset(move.adding)]
    if not names:
        return {}
    starts, pending, ends = (
        port.list_offsets(names, spec).ok
        for spec in (OffsetSpec.EARLIEST_LOCAL, OffsetSpec.EARLIEST_PENDING_UPLOAD, OffsetSpec.LATEST)
    )
    return {
        name: round(sizes[name] * (ends[name] - pending[name]) / (ends[name] - starts[name]))
        for name in names
        if name in starts and name in ends and 0 < starts[name] < pending.get(name, -1) <= ends[name]
    }


def _skipping(port: ClusterPort, brokers: Sequence[int]) -> frozenset[int]:
    """Those of these brokers whose new replicas begin after what is tiered, as far as they tell."""
    if not brokers:
        return frozenset()
    found = port.describe_configs(map(ConfigResource.broker, brokers), names=(SKIPS_TIERED,)).ok
    values = {int(resource.name): entries.get(SKIPS_TIERED) for resource, entries in found.items()}
    return frozenset(broker for broker, entry in values.items() if entry is not None and entry.value == "true")
