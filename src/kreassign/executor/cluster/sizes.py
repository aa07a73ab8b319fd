"""Bytes that one copy of a partition takes, which is what its leader has.

Of a tiered topic (KIP-405), it is less where new replicas skip remote segments (KIP-1023).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from kreassign.errors import ClusterError
from kreassign.executor.cluster.observations import leader_sizes
from kreassign.executor.cluster.port import ClusterPort
from kreassign.executor.cluster.readings import (
    Reading,
    partitions_of,
    read_log_dirs,
    read_offsets,
    read_settings,
    read_topics,
)
from kreassign.executor.events import PlannedMove
from kreassign.model import NO_LEADER, ConfigResource, OffsetSpec, Partition, TopicPartition
from kreassign.model.requests import NO_OFFSET

REMOTE_STORAGE = "remote.storage.enable"
SKIPS_TIERED = "follower.fetch.last.tiered.offset.enable"
"""Broker setting: an empty replica begins at the first offset that remote storage does not have.

It requests offset 0 first, though, and goes on from there if its leader still has that offset (4.3.1).
"""


def read_copy_sizes(
    port: ClusterPort, moves: Iterable[PlannedMove], partitions: Mapping[TopicPartition, Partition]
) -> Reading[TopicPartition, int]:
    """Bytes of one copy of each move that makes any. Absent are partitions without a leader. Raises ClusterError."""
    copying = [move for move in moves if move.receiving]
    known, absent, unknown = read_leader_sizes(port, (_copied(move, partitions) for move in copying))
    return Reading({**known, **_tail_sizes(port, copying, known)}, absent, unknown)


def read_new_sizes(
    port: ClusterPort, moves: Iterable[PlannedMove], partitions: Mapping[TopicPartition, Partition]
) -> Reading[TopicPartition, int]:
    """Like `read_copy_sizes`, known only of moves whose size has changed by more than a hundredth."""
    copying = {move.topic_partition: move for move in moves if move.receiving}
    known, absent, unknown = read_leader_sizes(port, (_copied(move, partitions) for move in copying.values()))
    changed = {name: size for name, size in known.items() if _has_changed(copying[name], size)}
    tails = _tail_sizes(port, (copying[name] for name in changed), changed)
    sizes = {name: size for name, size in {**changed, **tails}.items() if _has_changed(copying[name], size)}
    return Reading(sizes, absent, unknown)


def _copied(move: PlannedMove, partitions: Mapping[TopicPartition, Partition]) -> Partition:
    """The partition of a move, led by the broker whose copy is copied: between directories its own."""
    partition = partitions[move.topic_partition]
    return partition if move.adding else replace(partition, leader=move.rearranging[0])


def _has_changed(move: PlannedMove, size_bytes: int) -> bool:
    return abs(size_bytes - move.size_bytes) * 100 > move.size_bytes


def read_leader_sizes(port: ClusterPort, partitions: Iterable[Partition]) -> Reading[TopicPartition, int]:
    """Bytes of the leader's copy of each partition that has a leader. Raises ClusterError.

    A leader without the copy may have just changed, so it is looked up again; where it does not answer, another copy
    in sync counts. Absent are partitions without a leader.
    """
    wanted = {one.topic_partition: one for one in partitions}
    sizes, unknown = _leader_sizes(port, wanted)
    if unknown:
        topics = read_topics(port, {name.topic for name in unknown})
        unknown |= {name: topics.unknown[name.topic] for name in unknown if name.topic in topics.unknown}
        now = partitions_of(topics.known)
        found, failed = _leader_sizes(port, {name: now[name] for name in unknown if name in now})
        others = {name: next((one for one in now[name].isr if one != now[name].leader), NO_LEADER) for name in failed}
        found |= _leader_sizes(port, {name: replace(now[name], leader=one) for name, one in others.items()})[0]
        sizes |= found
        unknown = {name: failed.get(name, error) for name, error in unknown.items() if name not in found}
    absent = frozenset(name for name, one in wanted.items() if one.leader == NO_LEADER)
    return Reading(sizes, absent, unknown)


def _leader_sizes(
    port: ClusterPort, partitions: Mapping[TopicPartition, Partition]
) -> tuple[dict[TopicPartition, int], dict[TopicPartition, ClusterError]]:
    leaders = {name: one.leader for name, one in partitions.items() if one.leader != NO_LEADER}
    if not leaders:
        return {}, {}
    answer = read_log_dirs(port, sorted(set(leaders.values())), copies_of=sorted(leaders))
    sizes = leader_sizes(answer.ok, leaders)
    return sizes, {
        name: answer.failed.get(leader, ClusterError(f"broker {leader} has no copy of it"))
        for name, leader in leaders.items()
        if name not in sizes
    }


def tiered_topics(port: ClusterPort, topics: Iterable[str]) -> Reading[str, bool]:
    """Topics, each with True if its older segments are in remote storage. Raises ClusterError."""
    resources = map(ConfigResource.topic, sorted(set(topics)))
    known, absent, unknown = read_settings(port, resources, (REMOTE_STORAGE,))
    values = {resource.name: entries.get(REMOTE_STORAGE) for resource, entries in known.items()}
    return Reading(
        {topic: entry is not None and entry.value == "true" for topic, entry in values.items()},
        frozenset(resource.name for resource in absent),
        {resource.name: error for resource, error in unknown.items()},
    )


def _tail_sizes(
    port: ClusterPort, moves: Iterable[PlannedMove], sizes: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int]:
    """Bytes to copy of moves that copy less than the leader's local log, given its size.

    A move is left out if any of its destinations copies all of that. Raises ClusterError.
    """
    sized = [move for move in moves if move.adding and not move.rearranging and sizes.get(move.topic_partition)]
    tiered = tiered_topics(port, (move.topic_partition.topic for move in sized))
    # A topic of which that is unknown counts as one whose copies are whole, which is the most that they can be.
    of_tiered = {topic for topic, is_tiered in tiered.known.items() if is_tiered and topic not in tiered.unknown}
    local = [move for move in sized if move.topic_partition.topic in of_tiered]
    skipping = _skipping(port, sorted({broker for move in local for broker in move.adding}))
    names = [move.topic_partition for move in local if skipping.issuperset(move.adding)]
    if not names:
        return {}
    starts, pending, ends = (
        read_offsets(port, names, spec)
        for spec in (OffsetSpec.EARLIEST_LOCAL, OffsetSpec.EARLIEST_PENDING_UPLOAD, OffsetSpec.LATEST)
    )
    unknown = starts.unknown.keys() | pending.unknown.keys() | ends.unknown.keys()
    offsets = {
        name: (starts.known[name], pending.known.get(name, NO_OFFSET), ends.known[name])
        for name in names
        if name not in unknown and name in starts.known and name in ends.known
    }
    return {
        name: round(sizes[name] * (end - tiered_until) / (end - start))
        for name, (start, tiered_until, end) in offsets.items()
        if 0 < start < tiered_until <= end
    }


def _skipping(port: ClusterPort, brokers: Sequence[int]) -> frozenset[int]:
    """Brokers whose new replicas begin after the tiered segments, where they report it."""
    if not brokers:
        return frozenset()
    settings = read_settings(port, map(ConfigResource.broker, brokers), (SKIPS_TIERED,))
    values = {
        int(resource.name): entries.get(SKIPS_TIERED)
        for resource, entries in settings.known.items()
        if resource not in settings.unknown
    }
    return frozenset(broker for broker, entry in values.items() if entry is not None and entry.value == "true")
