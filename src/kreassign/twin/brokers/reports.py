"""What brokers report to the controller about their copies, and what the controller decides upon it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import assert_never

from kreassign.model import TopicPartition
from kreassign.twin.controller.isr import AlterIsr, Member, ProposedIsr, alter_isr
from kreassign.twin.core import TwinCore
from kreassign.twin.metadata.records import UNASSIGNED, PartitionChanged, PartitionCreated, Record
from kreassign.twin.metadata.state import PartitionState
from kreassign.twin.replication.events import (
    CopyDeleted,
    FutureCopyCaughtUp,
    LogDirFull,
    ReplicaCaughtUp,
    ReplicaEvent,
    ReplicaFellBehind,
)

ASSIGNMENT_DELAY_MS = 90
"""Brokers batch their reports of directories for about a tenth of a second; a broker that comes back has reported
before its followers' first fetch lets it join an ISR (4.3.1, seen by what stays in the ELR)."""


def report(core: TwinCore, fail_log_dir: Callable[[int, str], None], event: ReplicaEvent) -> None:
    """Let the broker that an event is about react to it; `fail_log_dir` takes a directory of a broker offline."""
    match event:
        case ReplicaCaughtUp(topic_partition, broker_id):
            _propose_isr(core, topic_partition, joining=broker_id)
        case ReplicaFellBehind(topic_partition, broker_id):
            _propose_isr(core, topic_partition, leaving=broker_id)
        case FutureCopyCaughtUp(topic_partition, broker_id, path):
            _assign(core, broker_id, {topic_partition: path})
        case LogDirFull(broker_id, path):
            fail_log_dir(broker_id, path)
        case CopyDeleted():
            pass
        case _:
            assert_never(event)


class DirectoryReports:
    """Brokers tell the controller in which directory they put a replica (KIP-858), a little after they learn of it.

    What they learn of is a new partition, or one that they have a replica of already and whose record names
    directories. So a replica that a move adds is reported only after the next such record, often that with which the
    move ends (4.3.1: `TopicDelta.localChanges` passes over partitions that the broker had no replica of before).
    """

    def __init__(self, core: TwinCore) -> None:
        self._core = core
        self._pending: set[tuple[TopicPartition, int]] = set()

    def note(self, record: Record, before: PartitionState | None) -> None:
        """A record was applied; `before` is what its partition was."""
        match record:
            case PartitionCreated(key):
                known = set(record.replicas)
            case PartitionChanged(key) if record.directories is not None and before is not None:
                known = set(before.replicas)
            case _:
                return
        partition = self._core.metadata.partition(key)
        assert partition is not None
        for broker_id in known.intersection(partition.replicas):
            if partition.directory_of(broker_id) == UNASSIGNED and (key, broker_id) not in self._pending:
                self._pending.add((key, broker_id))
                due_ms = self._core.now_ms + ASSIGNMENT_DELAY_MS
                self._core.schedule(due_ms, partial(self._report_if_active, key, broker_id))

    def report_all(self, broker_id: int) -> None:
        """Let a broker that has just started report every replica whose directory the controller does not know."""
        self._report(broker_id, [one.topic_partition for one in self._core.metadata.partitions_on(broker_id)])

    def _report_if_active(self, key: TopicPartition, broker_id: int) -> None:
        self._pending.discard((key, broker_id))
        if self._core.processes.is_responsive(broker_id) and self._core.metadata.is_active(broker_id):
            self._report(broker_id, [key])

    def _report(self, broker_id: int, keys: Iterable[TopicPartition]) -> None:
        """Tell the directories of replicas that the controller does not know, in one request as brokers do."""
        paths = {key: path for key in keys if (path := self._unreported_path(key, broker_id)) is not None}
        if paths:
            _assign(self._core, broker_id, paths)

    def _unreported_path(self, key: TopicPartition, broker_id: int) -> str | None:
        partition = self._core.metadata.partition(key)
        if partition is None or broker_id not in partition.replicas or partition.directory_of(broker_id) != UNASSIGNED:
            return None
        return self._core.replication.readings.log_dir(key, broker_id)


def _assign(core: TwinCore, broker: int, paths: Mapping[TopicPartition, str]) -> None:
    """Let a broker report in which directories replicas are."""
    known = core.metadata.brokers.get(broker)
    if known is not None:
        directories = {log_dir.path: log_dir.directory_id for log_dir in known.log_dirs}
        core.controller.assign_directories(broker, {key: directories[path] for key, path in paths.items()})


def _propose_isr(core: TwinCore, key: TopicPartition, joining: int | None = None, leaving: int | None = None) -> None:
    """Let the leader of a partition ask for another ISR (AlterPartition)."""
    partition = core.metadata.partition(key)
    if partition is None or partition.leader not in core.metadata.brokers:
        return
    brokers = [broker for broker in partition.isr if broker not in (joining, leaving)]
    if joining is not None:
        brokers.append(joining)
    brokers.sort()  # A leader keeps them as a set, and proposes them in the order of their ids.
    proposed = ProposedIsr(
        core.metadata.topics[key.topic].topic_id,
        key.partition,
        partition.leader_epoch,
        partition.partition_epoch,
        tuple(Member(broker) for broker in brokers),
    )
    leader = core.metadata.brokers[partition.leader]
    core.commit(alter_isr(core.context, AlterIsr(leader.broker_id, leader.broker_epoch, (proposed,))))
