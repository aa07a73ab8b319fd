"""AlterReplicationFactors (KIP-179): which replicas a topic gains or loses.

New replicas go to the rack that has fewest of the partition, there to the broker with the fewest bytes, then replicas,
then the lowest id; what this call has placed already counts. Replicas that go are never the leader; those that are out
of sync go first, then those in the rack that has most of the partition, then those on the fullest broker. The order of
those that stay is kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from kreassign.model.error_codes import (
    INVALID_REPLICATION_FACTOR,
    INVALID_REQUEST,
    INVALID_TOPIC_EXCEPTION,
    REASSIGNMENT_IN_PROGRESS,
)
from kreassign.model.partition import Partition, Topic, TopicPartition
from kreassign.model.topic_changes import texts
from kreassign.model.topic_changes.refusal import Refusal
from kreassign.model.topic_changes.view import TopicsView

Targets = dict[TopicPartition, tuple[int, ...]]


def decide_replication_factors(
    view: TopicsView, wanted: Iterable[tuple[str, int]], *, may_undercut_min_in_sync: bool = False
) -> dict[str, Targets | Refusal]:
    """The new replica lists of each topic that may have its factor, or why not; only partitions that change are in it.

    A factor below `min.insync.replicas` would stop producers, so it is refused unless `may_undercut_min_in_sync`.
    """
    asked = list(wanted)
    times = Counter(topic for topic, _factor in asked)
    loads = _Loads(view)
    decisions: dict[str, Targets | Refusal] = {}
    for name, factor in asked:
        refusal = _refusal(view, name, factor, times[name], may_undercut=may_undercut_min_in_sync)
        decisions[name] = refusal or _targets(loads, view.topics[name], factor)
    return decisions


def _refusal(view: TopicsView, name: str, factor: int, times: int, *, may_undercut: bool) -> Refusal | None:
    if times > 1:
        return Refusal(INVALID_REQUEST, texts.DUPLICATE_TOPIC)
    topic = view.topics.get(name)
    if topic is None:
        return Refusal(INVALID_TOPIC_EXCEPTION, texts.unknown_topic(name))
    if factor < 1:
        return Refusal(INVALID_REPLICATION_FACTOR, "Replication factor must be larger than 0.")
    moving = [str(partition.topic_partition) for partition in topic.partitions if _is_moving(view, partition)]
    if moving:
        return Refusal(REASSIGNMENT_IN_PROGRESS, f"{texts.IN_PROGRESS[:-1]}: {', '.join(moving)}.")
    return _unfit_factor(view, topic, factor, may_undercut=may_undercut)


def _is_moving(view: TopicsView, partition: Partition) -> bool:
    return partition.topic_partition in view.ongoing


def _unfit_factor(view: TopicsView, topic: Topic, factor: int, *, may_undercut: bool) -> Refusal | None:
    least = view.min_in_sync.get(topic.name, 1)
    shrinks = any(len(partition.replicas) > factor for partition in topic.partitions)
    if shrinks and factor < least and not may_undercut:
        return Refusal(INVALID_REPLICATION_FACTOR, texts.below_min_in_sync(topic.name, factor, least))
    usable = {broker.id for broker in view.brokers.values() if broker.may_receive}
    for partition in topic.partitions:
        possible = len(usable.union(partition.replicas))
        if factor > possible:
            text = (
                f"Unable to replicate the partition {factor} time(s): The target replication factor of {factor} cannot "
                f"be reached because only {possible} broker(s) are registered or some brokers have all their log "
                "directories cordoned."
            )
            return Refusal(INVALID_REPLICATION_FACTOR, text)
    return None


def _targets(loads: _Loads, topic: Topic, factor: int) -> Targets:
    targets: Targets = {}
    for partition in topic.partitions:
        if len(partition.replicas) < factor:
            targets[partition.topic_partition] = loads.grown(partition, factor)
        elif len(partition.replicas) > factor:
            targets[partition.topic_partition] = loads.shrunk(partition, factor)
    return targets


class _Loads:
    """What each broker holds, with what has been decided so far."""

    def __init__(self, view: TopicsView) -> None:
        self._brokers = view.brokers
        self._sizes = view.sizes_bytes
        self._bytes = Counter({broker.id: broker.size_bytes for broker in view.brokers.values()})
        self._counts = Counter({broker.id: broker.replica_count for broker in view.brokers.values()})

    def grown(self, partition: Partition, factor: int) -> tuple[int, ...]:
        replicas = partition.replicas
        while len(replicas) < factor:
            racks = self._racks(replicas)
            free = (one for one in self._brokers.values() if one.may_receive and one.id not in replicas)
            chosen = min(free, key=lambda one: (racks[one.rack], self._weight(one.id), one.id))
            self._book(partition, chosen.id, 1)
            replicas += (chosen.id,)
        return replicas

    def shrunk(self, partition: Partition, factor: int) -> tuple[int, ...]:
        replicas = partition.replicas
        while len(replicas) > factor:
            racks = self._racks(replicas)
            free = [broker for broker in replicas if broker != partition.leader]
            leaving = max(
                free,
                key=lambda one: (one not in partition.isr, racks[self._rack(one)], self._weight(one), one),
            )
            self._book(partition, leaving, -1)
            replicas = tuple(broker for broker in replicas if broker != leaving)
        return replicas

    def _racks(self, replicas: Iterable[int]) -> Counter[str | None]:
        """How many of the replicas each rack has. Brokers that name none are not counted."""
        return Counter(rack for rack in map(self._rack, replicas) if rack is not None)

    def _rack(self, broker: int) -> str | None:
        known = self._brokers.get(broker)
        return known.rack if known else None

    def _weight(self, broker: int) -> tuple[int, int]:
        return self._bytes[broker], self._counts[broker]

    def _book(self, partition: Partition, broker: int, sign: int) -> None:
        self._bytes[broker] += sign * self._sizes.get(partition.topic_partition, 0)
        self._counts[broker] += sign
