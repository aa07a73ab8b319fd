"""What brokers report to the controller about their copies, and what the controller decides upon it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import assert_never

from kreassign.model import TopicPartition
from kreassign.twin.controller.isr import AlterIsr, Member, ProposedIsr, alter_isr
from kreassign.twin.core import TwinCore
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

ASSIGNMENT_DELAY_MS = 120
"""Brokers batch their reports of directories for a tenth of a second; the smallest copies are in sync before that."""


def report(core: TwinCore, fail_log_dir: Callable[[int, str], None], event: ReplicaEvent) -> None:
    """Let the broker that an event is about react to it; `fail_log_dir` takes a directory of a broker offline."""
    match event:
        case ReplicaCaughtUp(topic_partition, broker_id):
            _propose_isr(core, topic_partition, joining=broker_id)
        case ReplicaFellBehind(topic_partition, broker_id):
            _propose_isr(core, topic_partition, leaving=broker_id)
        case ReplicaPlaced(topic_partition, broker_id, path):
            _assign_later(core, topic_partition, broker_id, path)
        case FutureCopyCaughtUp(topic_partition, broker_id, path):
            _assign(core, topic_partition, broker_id, path)
        case LogDirFull(broker_id, path):
            fail_log_dir(broker_id, path)
        case CopyDeleted():
            pass
        case _:
            assert_never(event)


def report_directories(core: TwinCore, broker_id: int) -> None:
    """Let a broker that is back report all copies whose directory the controller does not know."""
    copies = core.metadata.partitions_on(broker_id)
    unknown = {one.topic_partition for one in copies if one.directory_of(broker_id) == UNASSIGNED}
    for log_dir in core.replication.readings.log_dirs(broker_id) if unknown else ():
        for copy in log_dir.replicas:
            if copy.topic_partition in unknown and not copy.is_future:
                _assign_later(core, copy.topic_partition, broker_id, log_dir.path)


def _assign_later(core: TwinCore, key: TopicPartition, broker_id: int, path: str) -> None:
    core.schedule(core.now_ms + ASSIGNMENT_DELAY_MS, partial(_assign_if_active, core, key, broker_id, path))


def _assign_if_active(core: TwinCore, key: TopicPartition, broker_id: int, path: str) -> None:
    if core.processes.is_responsive(broker_id) and core.metadata.is_active(broker_id):
        _assign(core, key, broker_id, path)


def _assign(core: TwinCore, key: TopicPartition, broker_id: int, path: str) -> None:
    """Let a broker report in which directory a replica is."""
    broker = core.metadata.brokers.get(broker_id)
    if broker is not None:
        (directory,) = (log_dir.directory_id for log_dir in broker.log_dirs if log_dir.path == path)
        core.controller.assign_directories(broker_id, {key: directory})


def _propose_isr(core: TwinCore, key: TopicPartition, joining: int | None = None, leaving: int | None = None) -> None:
    """Let the leader of a partition ask for another ISR (AlterPartition)."""
    partition = core.metadata.partition(key)
    if partition is None or partition.leader not in core.metadata.brokers:
        return
    brokers = [broker for broker in partition.isr if broker not in (joining, leaving)]
    if joining is not None:
        brokers.append(joining)
    proposed = ProposedIsr(
        core.metadata.topics[key.topic].topic_id,
        key.partition,
        partition.leader_epoch,
        partition.partition_epoch,
        tuple(Member(broker) for broker in brokers),
    )
    leader = core.metadata.brokers[partition.leader]
    core.commit(alter_isr(core.context, AlterIsr(leader.broker_id, leader.broker_epoch, (proposed,))))
