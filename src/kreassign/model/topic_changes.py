"""Decide KIP-179's changes of topics - partition counts, replication factors, reassignments - before sending anything.

Each decision is a function of a `TopicsView` and the request, with the change or a `Refusal` per item. A cluster with
KIP-179's requests decides by itself, and a client decides for other clusters: both by these functions, with the same
result. Error codes are those of KIP-179; sentences are Kafka's if it has them.
"""

from __future__ import annotations

import base64
import uuid
from collections import Counter
from collections.abc import Container, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from kreassign.model import error_codes
from kreassign.model.cluster import Broker, LogDir, LogDirReplica, Partition, Topic, TopicPartition, listed_ids, without
from kreassign.model.replication_factor import dispensable, known_in_sync, locks_out, lost_in_sync, undercut
from kreassign.model.text import counted

# The view of a cluster behind the decisions.


@dataclass(frozen=True, slots=True)
class BrokerView:
    """A registered broker: bytes on its disks, and number of replicas.

    Without `may_receive` (it is down, shutting down, or all its directories are cordoned) it gets no new replicas,
    but may keep its own and get those that the caller names.
    """

    id: int
    rack: str | None = None
    size_bytes: int = 0
    replica_count: int = 0
    may_receive: bool = True
    is_unread: bool = False


@dataclass(frozen=True, slots=True)
class TopicsView:
    """Brokers by id, topics by name, bytes of one copy by partition (where known), and moving partitions.

    `min_in_sync` is `min.insync.replicas` by topic, without those that could not be read.
    """

    brokers: Mapping[int, BrokerView]
    topics: Mapping[str, Topic]
    sizes_bytes: Mapping[TopicPartition, int] = field(default_factory=dict)
    ongoing: AbstractSet[TopicPartition] = frozenset()
    min_in_sync: Mapping[str, int] = field(default_factory=dict)


def topics_view(
    brokers: Iterable[Broker],
    log_dirs: Mapping[int, tuple[LogDir, ...]],
    topics: Mapping[str, Topic],
    *,
    ongoing: AbstractSet[TopicPartition] = frozenset(),
    min_in_sync: Mapping[str, int],
) -> TopicsView:
    """Build a view from a cluster's answers; brokers missing in `log_dirs` did not report theirs."""
    views = (_broker_view(broker, log_dirs.get(broker.id, ())) for broker in brokers)
    leaders = {entry.topic_partition: entry.leader for topic in topics.values() for entry in topic.partitions}
    sizes = {
        copy.topic_partition: copy.size_bytes
        for broker, dirs in log_dirs.items()
        for copy in _copies(dirs)
        if leaders.get(copy.topic_partition) == broker
    }
    return TopicsView({view.id: view for view in views}, topics, sizes, ongoing, min_in_sync)


def _broker_view(broker: Broker, log_dirs: tuple[LogDir, ...]) -> BrokerView:
    copies = _copies(log_dirs)
    is_cordoned = bool(log_dirs) and all(log_dir.is_cordoned for log_dir in log_dirs)
    return BrokerView(
        broker.id,
        broker.rack,
        sum(copy.size_bytes for copy in copies),
        len(copies),
        may_receive=not broker.is_fenced and bool(log_dirs) and not is_cordoned,
        is_unread=not broker.is_fenced and not log_dirs,
    )


def _copies(log_dirs: tuple[LogDir, ...]) -> list[LogDirReplica]:
    """All copies except those that a move between directories is building."""
    return [replica for log_dir in log_dirs for replica in log_dir.replicas if not replica.is_future]


@dataclass(frozen=True, slots=True)
class Refusal:
    """A refused item: the code by which Kafka refuses it, and the reason as a sentence."""

    code: int
    message: str


# Kafka's sentences about impossible requests, in the order of its checks.


def unfit_count(topic: str, present: int, wanted: int) -> str | None:
    """Why a topic with `present` partitions cannot have `wanted`; None if it can."""
    if wanted == present:
        return f"Topic already has {present} partition(s)."
    if wanted < present:
        return f"The topic {topic} currently has {present} partition(s); {wanted} would not be an increase."
    return None


def unfit_assignment(
    replicas: tuple[int, ...], registered: Container[int], cordoned: Container[int] = ()
) -> str | None:
    """Why a replica list given by hand is illegal; None if it is legal. Brokers that are down are allowed.

    `cordoned` are brokers that no list may name, where the release binds lists to cordons (Kafka 4.4).
    """
    if not replicas:
        return "The manual partition assignment includes an empty replica list."
    seen: set[int] = set()
    for broker in sorted(replicas):
        if broker not in registered:
            return f"The manual partition assignment includes broker {broker}, but no such broker is registered."
        if broker in cordoned:
            return (
                f"The manual partition assignment includes broker {broker}, but all its log directories are cordoned."
            )
        if broker in seen:
            return f"The manual partition assignment includes the broker {broker} more than once."
        seen.add(broker)
    return None


def unknown_topic_message(topic: str) -> str:
    """The topic does not exist."""
    return f"Unable to find a topic named {topic}."


def unknown_partition_message(topic: str, partition: int) -> str:
    """The partition does not exist."""
    return f"Unable to find partition {topic}:{partition}."


DUPLICATE_TOPIC = "Duplicate topic name."
DUPLICATE_PARTITION = "Duplicate partition."
IN_PROGRESS = "A partition reassignment is in progress."


# AlterPartitionCounts (KIP-179): topics that may have the requested number of partitions.

NEW_PARTITIONS_PER_REQUEST = 10_000
"""A KRaft controller writes so many records per request, and refuses more with an unknown server error."""


def decide_partition_counts(view: TopicsView, wanted: Iterable[tuple[str, int]]) -> dict[str, int | Refusal]:
    """The allowed count of each topic, or a refusal; a topic listed twice is refused."""
    asked = list(wanted)
    times = Counter(topic for topic, _count in asked)
    return {topic: _decide_count(view, topic, count, times[topic]) for topic, count in asked}


def _decide_count(view: TopicsView, name: str, count: int, times: int) -> int | Refusal:
    if times > 1:
        return Refusal(error_codes.INVALID_REQUEST, DUPLICATE_TOPIC)
    topic = view.topics.get(name)
    if topic is None:
        return Refusal(error_codes.INVALID_TOPIC_EXCEPTION, unknown_topic_message(name))
    present = len(topic.partitions)
    unfit = unfit_count(name, present, count) or _unfit_growth(name, count - present)
    return count if unfit is None else Refusal(error_codes.INVALID_PARTITIONS, unfit)


def _unfit_growth(name: str, more: int) -> str | None:
    if more <= NEW_PARTITIONS_PER_REQUEST:
        return None
    limit = NEW_PARTITIONS_PER_REQUEST
    return f"The topic {name} would get {more} more partitions; a controller creates at most {limit} per request."


# AlterReplicationFactors (KIP-179): the replicas that a topic gains or loses.
#
# New replicas go to the rack with the fewest of the partition, there to the broker with the fewest bytes, then
# replicas, then the lowest id; placements of this call count. Of the `dispensable` replicas that in the rack with the
# most of the partition goes first, then that on the fullest broker. The order of the remaining replicas is kept.

Targets = dict[TopicPartition, tuple[int, ...]]


def decide_replication_factors(
    view: TopicsView, wanted: Iterable[tuple[str, int]], *, may_undercut_min_in_sync: bool = False
) -> dict[str, Targets | Refusal]:
    """The new replica lists of each topic, changed partitions only, or a refusal.

    A factor that falls below `min.insync.replicas`, or may do so, is refused unless `may_undercut_min_in_sync`.
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
        return Refusal(error_codes.INVALID_REQUEST, DUPLICATE_TOPIC)
    topic = view.topics.get(name)
    if topic is None:
        return Refusal(error_codes.INVALID_TOPIC_EXCEPTION, unknown_topic_message(name))
    if factor < 1:
        return Refusal(error_codes.INVALID_REPLICATION_FACTOR, "Replication factor must be larger than 0.")
    partitions = (partition.topic_partition for partition in topic.partitions)
    moving = [str(partition) for partition in partitions if partition in view.ongoing]
    if moving:
        return Refusal(error_codes.REASSIGNMENT_IN_PROGRESS, f"{IN_PROGRESS[:-1]}: {', '.join(moving)}.")
    return _unfit_factor(view, topic, factor, may_undercut=may_undercut)


def _unfit_factor(view: TopicsView, topic: Topic, factor: int, *, may_undercut: bool) -> Refusal | None:
    shrinking = [partition for partition in topic.partitions if len(partition.replicas) > factor]
    if shrinking and not may_undercut and (text := _undercut(view, topic.name, factor)) is not None:
        return Refusal(error_codes.INVALID_REPLICATION_FACTOR, text)
    for partition in shrinking:
        if not known_in_sync(partition):
            text = f"{partition.topic_partition}: no replica is known to be in sync, so none can go."
            return Refusal(error_codes.INVALID_REPLICATION_FACTOR, text)
    usable = {broker.id for broker in view.brokers.values() if broker.may_receive}
    for partition in topic.partitions:
        possible = len(usable.union(partition.replicas))
        if factor > possible:
            text = (
                f"Unable to replicate the partition {factor} time(s): The target replication factor of {factor} cannot "
                f"be reached because only {possible} broker(s) are registered or some brokers have all their log "
                "directories cordoned."
            )
            if unread := sorted(broker.id for broker in view.brokers.values() if broker.is_unread):
                text += f" Brokers whose log directories could not be read get no replica: {listed_ids(unread)}."
            return Refusal(error_codes.INVALID_REPLICATION_FACTOR, text)
    return None


def _undercut(view: TopicsView, topic: str, factor: int) -> str | None:
    """Why the factor is below `min.insync.replicas`, or may be; None if it is not."""
    least = view.min_in_sync.get(topic)
    if least is None:
        return f"Whether replication factor {factor} is below min.insync.replicas of topic {topic} could not be read."
    is_below = undercut(factor, least) is not None
    return f"Replication factor {factor} is below min.insync.replicas={least} of topic {topic}." if is_below else None


def _targets(loads: _Loads, topic: Topic, factor: int) -> Targets:
    targets: Targets = {}
    for partition in topic.partitions:
        if len(partition.replicas) < factor:
            targets[partition.topic_partition] = loads.grown(partition, factor)
        elif len(partition.replicas) > factor:
            targets[partition.topic_partition] = loads.shrunk(partition, factor)
    return targets


class _Loads:
    """The load of each broker, including what was decided so far."""

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
            leaving = max(
                dispensable(partition, replicas), key=lambda one: (racks[self._rack(one)], self._weight(one), one)
            )
            self._book(partition, leaving, -1)
            replicas = tuple(broker for broker in replicas if broker != leaving)
        return replicas

    def _racks(self, replicas: Iterable[int]) -> Counter[str | None]:
        """Number of the replicas in each rack. Brokers without a rack are not counted."""
        return Counter(rack for rack in map(self._rack, replicas) if rack is not None)

    def _rack(self, broker: int) -> str | None:
        known = self._brokers.get(broker)
        return known.rack if known else None

    def _weight(self, broker: int) -> tuple[int, int]:
        return self._bytes[broker], self._counts[broker]

    def _book(self, partition: Partition, broker: int, sign: int) -> None:
        self._bytes[broker] += sign * self._sizes.get(partition.topic_partition, 0)
        self._counts[broker] += sign


# ReassignPartitions (KIP-179): partitions that may move to the requested brokers.
#
# Unlike in the later AlterPartitionReassignments (KIP-455), a moving partition is refused.

Replicas = tuple[int, ...]


def decide_reassignments(
    view: TopicsView, wanted: Iterable[tuple[TopicPartition, Replicas]]
) -> dict[TopicPartition, Replicas | Refusal]:
    """The allowed target of each partition, or a refusal; a partition listed twice is refused."""
    asked = list(wanted)
    times = Counter(partition for partition, _replicas in asked)
    return {
        partition: _decide_reassignment(view, partition, replicas, times[partition]) for partition, replicas in asked
    }


def unwise_removals(
    view: TopicsView, wanted: Mapping[TopicPartition, Replicas], *, may_undercut_min_in_sync: bool = False
) -> dict[TopicPartition, Refusal]:
    """Partitions that would shrink below `min.insync.replicas`, or lose a replica in sync for one that is not.

    Kafka permits both. A partition that does not exist is left to `decide_reassignments`.
    """
    found: dict[TopicPartition, Refusal] = {}
    for key, replicas in wanted.items():
        partition = view.topics[key.topic].partitions[key.partition]
        if len(replicas) >= len(partition.replicas):
            continue
        text = None if may_undercut_min_in_sync else _undercut(view, key.topic, len(replicas))
        if (text := text or lost_in_sync(partition, replicas)) is not None:
            found[key] = Refusal(error_codes.INVALID_REPLICATION_FACTOR, text)
    return found


def producer_outages(view: TopicsView, wanted: Mapping[TopicPartition, Replicas]) -> dict[TopicPartition, str]:
    """Why producers with acks=all are, or may be, refused until a new copy is in sync, by partition.

    Kafka permits that.
    """
    found: dict[TopicPartition, str] = {}
    for key, replicas in wanted.items():
        partition, least = view.topics[key.topic].partitions[key.partition], view.min_in_sync.get(key.topic)
        before, growing = len(partition.replicas), len({*partition.replicas, *replicas})
        if growing == before:
            continue
        if least is None:
            found[key] = f"min.insync.replicas of topic {key.topic} could not be read"
        elif locks_out(least, before, growing, len(partition.isr)):
            found[key] = (
                f"{counted(growing, 'replica')} count while it moves, and {len(partition.isr)} in sync, fewer than "
                f"min.insync.replicas={least} asks for"
            )
    return found


def _decide_reassignment(view: TopicsView, key: TopicPartition, replicas: Replicas, times: int) -> Replicas | Refusal:
    if times > 1:
        return Refusal(error_codes.INVALID_REQUEST, DUPLICATE_PARTITION)
    topic = view.topics.get(key.topic)
    if topic is None:
        return Refusal(error_codes.INVALID_TOPIC_EXCEPTION, unknown_topic_message(key.topic))
    if not 0 <= key.partition < len(topic.partitions):
        return Refusal(error_codes.INVALID_REPLICA_ASSIGNMENT, unknown_partition_message(*key))
    # Kafka's sentence is about the first error in the order of ids; KIP-179's code reports unknown brokers first.
    unknown = without(replicas, view.brokers)
    unfit = unfit_assignment(unknown or replicas, view.brokers)
    if unfit is not None:
        return Refusal(error_codes.UNKNOWN_MEMBER_ID if unknown else error_codes.INVALID_REPLICA_ASSIGNMENT, unfit)
    if key in view.ongoing:
        return Refusal(error_codes.REASSIGNMENT_IN_PROGRESS, IN_PROGRESS)
    return replicas


def short_id(topic_id: str) -> str:
    """A topic id in Kafka's base64 form: 22 characters instead of 36."""
    return base64.urlsafe_b64encode(uuid.UUID(topic_id).bytes).decode().rstrip("=")
