"""ReassignPartitions (KIP-179): which partitions may go where the caller asks.

Unlike AlterPartitionReassignments of KIP-455, which came later, a partition that moves already is refused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from kreassign.model.error_codes import (
    INVALID_REPLICA_ASSIGNMENT,
    INVALID_REPLICATION_FACTOR,
    INVALID_REQUEST,
    INVALID_TOPIC_EXCEPTION,
    REASSIGNMENT_IN_PROGRESS,
    UNKNOWN_MEMBER_ID,
)
from kreassign.model.partition import TopicPartition
from kreassign.model.topic_changes import texts
from kreassign.model.topic_changes.refusal import Refusal
from kreassign.model.topic_changes.view import TopicsView

Replicas = tuple[int, ...]


def decide_reassignments(
    view: TopicsView, wanted: Iterable[tuple[TopicPartition, Replicas]]
) -> dict[TopicPartition, Replicas | Refusal]:
    """The target of each partition that may have it, or why not; one named twice gets neither of its targets."""
    asked = list(wanted)
    times = Counter(partition for partition, _replicas in asked)
    return {partition: _decide(view, partition, replicas, times[partition]) for partition, replicas in asked}


def min_in_sync_undercut(view: TopicsView, wanted: Mapping[TopicPartition, Replicas]) -> dict[TopicPartition, Refusal]:
    """The partitions that would shrink below `min.insync.replicas`, which stops producers. Kafka lets that pass."""
    found: dict[TopicPartition, Refusal] = {}
    for key, replicas in wanted.items():
        least = view.min_in_sync.get(key.topic, 1)
        present = len(view.topics[key.topic].partitions[key.partition].replicas)
        if len(replicas) < min(least, present):
            text = texts.below_min_in_sync(key.topic, len(replicas), least)
            found[key] = Refusal(INVALID_REPLICATION_FACTOR, text)
    return found


def _decide(view: TopicsView, key: TopicPartition, replicas: Replicas, times: int) -> Replicas | Refusal:
    if times > 1:
        return Refusal(INVALID_REQUEST, texts.DUPLICATE_PARTITION)
    topic = view.topics.get(key.topic)
    if topic is None:
        return Refusal(INVALID_TOPIC_EXCEPTION, texts.unknown_topic(key.topic))
    if not 0 <= key.partition < len(topic.partitions):
        return Refusal(INVALID_REPLICA_ASSIGNMENT, texts.unknown_partition(*key))
    # Kafka's sentence is about the first fault in the order of ids, KIP-179's code about unknown brokers before others.
    unknown = tuple(broker for broker in replicas if broker not in view.brokers)
    unfit = texts.unfit_assignment(unknown or replicas, view.brokers)
    if unfit is not None:
        return Refusal(UNKNOWN_MEMBER_ID if unknown else INVALID_REPLICA_ASSIGNMENT, unfit)
    if key in view.ongoing:
        return Refusal(REASSIGNMENT_IN_PROGRESS, texts.IN_PROGRESS)
    return replicas
