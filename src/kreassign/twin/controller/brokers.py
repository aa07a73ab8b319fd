"""Register, fence and unregister brokers, take failed log directories out of service, store directory ids of replicas.

Each of these changes partitions with a replica on the broker: when a broker goes, it leaves their ISRs and leads none
of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from kreassign.model import TopicPartition
from kreassign.model.cluster import without
from kreassign.model.error_codes import BROKER_ID_NOT_REGISTERED
from kreassign.twin import metadata
from kreassign.twin.controller.decision import DONE, ControllerContext, Decision, Outcome
from kreassign.twin.controller.partition_change import PartitionUpdate, change_of, election_of

NO_EPOCH = -1
"""The epoch of a broker that has no record of a clean shutdown."""


def register(
    context: ControllerContext, broker: metadata.BrokerRegistered, shutdown_epoch: int = NO_EPOCH
) -> Decision[int]:
    """Register a broker after a start, fenced; return its new epoch. It leaves its ISRs; after a crash it may not lead.

    `shutdown_epoch` is the epoch under which it last shut down cleanly, `NO_EPOCH` if it did not.
    """
    known, epoch = context.metadata.brokers.get(broker.broker_id), context.metadata.offset
    was_clean = known is not None and known.broker_epoch == shutdown_epoch
    changes = (_leave_partitions if was_clean else _crashed)(context, broker.broker_id)
    return Decision((*changes, replace(broker, broker_epoch=epoch)), epoch)


def fence(context: ControllerContext, broker_id: int) -> Decision[None]:
    """Fence a broker, because its heartbeats stopped or because it has shut down."""
    return Decision((*_leave_partitions(context, broker_id), metadata.BrokerFenced(broker_id)), None)


def unfence(context: ControllerContext, broker_id: int) -> Decision[None]:
    """Unfence a broker; it may at once lead partitions without a leader."""
    returned = replace(context, returning=broker_id)
    changes = (
        change_of(returned, context.metadata.present(key), PartitionUpdate(election=election_of(context, key.topic)))
        for key in sorted(context.metadata.leaderless)
    )
    return Decision((metadata.BrokerUnfenced(broker_id), *_only_changes(changes)), None)


def begin_shutdown(context: ControllerContext, broker_id: int) -> Decision[None]:
    """Move all leaderships off a broker that wants to stop. Once it leads nothing, it may stop and is fenced.

    While it still leads partitions, a repeated call tries again.
    """
    is_news = not context.metadata.brokers[broker_id].shutting_down
    first: tuple[metadata.Record, ...] = (metadata.BrokerShuttingDown(broker_id),) if is_news else ()
    return Decision((*first, *_leave_partitions(context, broker_id)), None)


def unregister(context: ControllerContext, broker_id: int) -> Decision[Outcome]:
    """Remove a broker from the cluster. Replica lists, and moves to it, still name it."""
    if broker_id not in context.metadata.brokers:
        text = f"Broker ID {broker_id} is not currently registered"
        return Decision((), Outcome(BROKER_ID_NOT_REGISTERED, text))
    return Decision((*_leave_partitions(context, broker_id), metadata.BrokerUnregistered(broker_id)), DONE)


def fail_log_dir(context: ControllerContext, broker_id: int, directory_id: str) -> Decision[None]:
    """Take the replicas in an offline directory out of service; the broker's other directories stay in service."""
    inside = (
        partition
        for partition in context.metadata.partitions_on(broker_id)
        if partition.directory_of(broker_id) == directory_id
    )
    changes = _without_broker(context, broker_id, inside)
    return Decision((*changes, metadata.LogDirFailed(broker_id, directory_id)), None)


def _leave_partitions(context: ControllerContext, broker_id: int) -> tuple[metadata.PartitionChanged, ...]:
    in_sync = (partition for partition in context.metadata.partitions_on(broker_id) if broker_id in partition.isr)
    return _without_broker(context, broker_id, in_sync)


def _without_broker(
    context: ControllerContext, broker_id: int, partitions: Iterable[metadata.PartitionState]
) -> tuple[metadata.PartitionChanged, ...]:
    gone = replace(context, leaving=broker_id)
    return _only_changes(_drop(gone, partition, broker_id) for partition in partitions)


def _crashed(context: ControllerContext, broker_id: int) -> tuple[metadata.PartitionChanged, ...]:
    """Changes for a crashed broker: it may have lost unflushed records, so it also leaves the eligible leaders."""
    if not context.rules.has_eligible_leaders:
        return _leave_partitions(context, broker_id)
    gone = replace(context, leaving=broker_id)
    return _only_changes(
        _drop(gone, partition, broker_id, lost=broker_id)
        for partition in context.metadata.partitions_on(broker_id)
        if broker_id in partition.isr or broker_id in partition.elr
    )


def _drop(
    context: ControllerContext, partition: metadata.PartitionState, broker_id: int, lost: int | None = None
) -> metadata.PartitionChanged | None:
    isr = without(partition.isr, (broker_id,))
    election = election_of(context, partition.topic_partition.topic)
    change = change_of(context, partition, PartitionUpdate(isr=isr, election=election, lost=lost))
    if change is None or change.leader is not None or not context.rules.raises_epoch_for_absent:
        return change
    return replace(change, leader=partition.leader)


def _only_changes(changes: Iterable[metadata.PartitionChanged | None]) -> tuple[metadata.PartitionChanged, ...]:
    return tuple(change for change in changes if change is not None)


# Reports of brokers about the log directories of their replicas (KIP-858).


def assign_directories(
    context: ControllerContext, broker_id: int, directories: Mapping[TopicPartition, str]
) -> Decision[None]:
    """Store the directory ids of a broker's replicas. Partitions without a replica there are left as they are."""
    hosted = ((context.metadata.partition(key), directory_id) for key, directory_id in directories.items())
    changes = (
        change_of(context, partition, PartitionUpdate(directory=(broker_id, directory_id)))
        for partition, directory_id in hosted
        if partition is not None and broker_id in partition.replicas
    )
    return Decision(_only_changes(changes), None)
