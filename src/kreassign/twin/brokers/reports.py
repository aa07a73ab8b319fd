"""What brokers tell the controller of their copies, and what the controller decides upon it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, assert_never

from kreassign.model import TopicPartition
from kreassign.twin.controller.directories import assign_directories
from kreassign.twin.controller.isr import AlterIsr, Member, ProposedIsr, alter_isr
from kreassign.twin.metadata.records import UNASSIGNED
from kreassign.twin.replication.events import (
    CopyDeleted,
    FutureCopyCaughtUp,
    LogDirFull,
    ReplicaCaughtUp,
    ReplicaEvent,
    ReplicaFellBehind,
    ReplicaPlaced,
)

if TYPE_CHECKING:
    from kreassign.twin.cluster import Twin

ASSIGNMENT_DELAY_MS = 120
"""Brokers gather for a tenth of a second what they tell of directories; the smallest copies are in sync before that."""


def report(twin: Twin, event: ReplicaEvent) -> None:
    """Let the broker that an event is about do what it does in such a case."""
    match event:
        case ReplicaCaughtUp(topic_partition, broker_id):
            _propose_isr(twin, topic_partition, joining=broker_id)
        case ReplicaFellBehind(topic_partition, broker_id):
            _propose_isr(twin, topic_partition, leaving=broker_id)
        case ReplicaPlaced(topic_partition, broker_id, path):
            _assign_later(twin, topic_partition, broker_id, path)
        case FutureCopyCaughtUp(topic_partition, broker_id, path):
            _assign(twin, topic_partition, broker_id, path)
        case LogDirFull(broker_id, path):
            twin.fail_log_dir(broker_id, path)
        case CopyDeleted():
            pass
        case _:
            assert_never(event)


def tell_directories(twin: Twin, broker_id: int) -> None:
    """Let a broker that is back tell of all copies of which the controller does not know the directory."""
    copies = twin.metadata.partitions_on(broker_id)
    unknown = {one.topic_partition for one in copies if one.directory_of(broker_id) == UNASSIGNED}
    for log_dir in twin.replication.readings.log_dirs(broker_id) if unknown else ():
        for copy in log_dir.replicas:
            if copy.topic_partition in unknown and not copy.is_future:
                _assign_later(twin, copy.topic_partition, broker_id, log_dir.path)


def _assign_later(twin: Twin, key: TopicPartition, broker_id: int, path: str) -> None:
    twin.at(twin.now_ms + ASSIGNMENT_DELAY_MS, partial(_assign_if_there, twin, key, broker_id, path))


def _assign_if_there(twin: Twin, key: TopicPartition, broker_id: int, path: str) -> None:
    if twin.processes.is_responsive(broker_id) and twin.metadata.is_active(broker_id):
        _assign(twin, key, broker_id, path)


def _propose_isr(twin: Twin, key: TopicPartition, joining: int | None = None, leaving: int | None = None) -> None:
    """Let the leader of a partition ask for another ISR, as AlterPartition does."""
    partition = twin.metadata.partition(key)
    if partition is None or partition.leader not in twin.metadata.brokers:
        return
    brokers = [broker for broker in partition.isr if broker not in (joining, leaving)]
    if joining is not None:
        brokers.append(joining)
    proposed = ProposedIsr(
        twin.metadata.topics[key.topic].topic_id,
        key.partition,
        partition.leader_epoch,
        partition.partition_epoch,
        tuple(Member(broker) for broker in brokers),
    )
    leader = twin.metadata.brokers[partition.leader]
    twin.commit(alter_isr(twin.context, AlterIsr(leader.broker_id, leader.broker_epoch, (proposed,))))


def _assign(twin: Twin, key: TopicPartition, broker_id: int, path: str) -> None:
    """Let a broker tell the controller in which directory a replica is."""
    broker = twin.metadata.brokers.get(broker_id)
    if (
        broker is not None and twin.controller is None
    ):  # In ZooKeeper mode the controller does not ask where copies are.
        (directory,) = (log_dir.directory_id for log_dir in broker.log_dirs if log_dir.path == path)
        twin.commit(assign_directories(twin.context, broker_id, {key: directory}))
