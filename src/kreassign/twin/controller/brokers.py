"""Register, fence and unregister brokers, take failed log directories out of service, store directory ids of replicas.

Each of these changes partitions with a replica on the broker: when a broker goes, it leaves their ISRs and leads none
of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from kreassign.model import TopicPartition
from kreassign.model.error_codes import (
    BROKER_ID_NOT_REGISTERED,
    DUPLICATE_BROKER_REGISTRATION,
    NOT_LEADER_OR_FOLLOWER,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from kreassign.twin.controller.decision import DONE, ControllerContext, Decision, Outcome
from kreassign.twin.controller.partition_change import Election, PartitionUpdate, change_of, without
from kreassign.twin.metadata import (
    BrokerFenced,
    BrokerRegistered,
    BrokerShuttingDown,
    BrokerUnfenced,
    BrokerUnregistered,
    LogDirFailed,
    LogDirInfo,
    PartitionChanged,
    PartitionState,
    Record,
)

NO_EPOCH = -1
"""The epoch of a broker that has no record of a clean shutdown."""


@dataclass(frozen=True, slots=True)
class Registration:
    """Registration of a broker after a start.

    `previous_epoch` is the epoch under which it last shut down cleanly, `NO_EPOCH` if it did not. `has_live_session`:
    the broker of the former registration still sends heartbeats, or did until a moment ago.
    """

    broker_id: int
    host: str
    port: int
    rack: str | None
    log_dirs: tuple[LogDirInfo, ...]
    previous_epoch: int = NO_EPOCH
    has_live_session: bool = False


@dataclass(frozen=True, slots=True)
class Registered:
    """The answer to a registration: the broker's new epoch, or the error of a refusal."""

    outcome: Outcome
    broker_epoch: int = NO_EPOCH


_ANOTHER_IS_REGISTERED = Outcome(
    DUPLICATE_BROKER_REGISTRATION,
    "Another broker is registered with that broker id. If the broker was recently restarted this should "
    "self-resolve once the heartbeat manager expires the broker's session.",
)


def register(context: ControllerContext, registration: Registration) -> Decision[Registered]:
    """Register a broker, fenced. It leaves its ISRs; after a crash it may not lead either."""
    broker_id, metadata = registration.broker_id, context.metadata
    known = metadata.brokers.get(broker_id)
    if known is not None and registration.has_live_session:
        return Decision((), Registered(_ANOTHER_IS_REGISTERED))
    was_clean = known is not None and known.broker_epoch == registration.previous_epoch
    changes = _leave_partitions(context, broker_id) if was_clean else _crashed(context, broker_id)
    epoch = metadata.offset
    taken_in = BrokerRegistered(
        broker_id, registration.host, registration.port, registration.rack, registration.log_dirs, epoch
    )
    return Decision((*changes, taken_in), Registered(DONE, epoch))


def fence(context: ControllerContext, broker_id: int) -> Decision[None]:
    """Fence a broker, because its heartbeats stopped or because it has shut down."""
    return Decision((*_leave_partitions(context, broker_id), BrokerFenced(broker_id)), None)


def unfence(context: ControllerContext, broker_id: int) -> Decision[None]:
    """Unfence a broker; it may at once lead partitions without a leader."""
    returned = replace(context, returning=broker_id)
    leaderless = (_present(context, topic_partition) for topic_partition in sorted(context.metadata.leaderless))
    changes = (_keep_isr(returned, partition) for partition in leaderless)
    return Decision((BrokerUnfenced(broker_id), *_only_changes(changes)), None)


def begin_shutdown(context: ControllerContext, broker_id: int) -> Decision[None]:
    """Move all leaderships off a broker that wants to stop. Once it leads nothing, it may stop and is fenced.

    While it still leads partitions, a repeated call tries again.
    """
    is_news = not context.metadata.brokers[broker_id].shutting_down
    first: tuple[Record, ...] = (BrokerShuttingDown(broker_id),) if is_news else ()
    return Decision((*first, *_leave_partitions(context, broker_id)), None)


def unregister(context: ControllerContext, broker_id: int) -> Decision[Outcome]:
    """Remove a broker from the cluster. Replica lists, and moves to it, still name it."""
    if broker_id not in context.metadata.brokers:
        text = f"Broker ID {broker_id} is not currently registered"
        return Decision((), Outcome(BROKER_ID_NOT_REGISTERED, text))
    return Decision((*_leave_partitions(context, broker_id), BrokerUnregistered(broker_id)), DONE)


def fail_log_dir(context: ControllerContext, broker_id: int, directory_id: str) -> Decision[None]:
    """Take the replicas in an offline directory out of service; the broker's other directories stay in service."""
    inside = (
        partition
        for partition in context.metadata.partitions_on(broker_id)
        if partition.directory_of(broker_id) == directory_id
    )
    changes = _without_broker(context, broker_id, inside)
    return Decision((*changes, LogDirFailed(broker_id, directory_id)), None)


def _leave_partitions(context: ControllerContext, broker_id: int) -> tuple[PartitionChanged, ...]:
    in_sync = (partition for partition in context.metadata.partitions_on(broker_id) if broker_id in partition.isr)
    return _without_broker(context, broker_id, in_sync)


def _without_broker(
    context: ControllerContext, broker_id: int, partitions: Iterable[PartitionState]
) -> tuple[PartitionChanged, ...]:
    gone = replace(context, leaving=broker_id)
    return _only_changes(_drop(gone, partition, broker_id) for partition in partitions)


def _crashed(context: ControllerContext, broker_id: int) -> tuple[PartitionChanged, ...]:
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
    context: ControllerContext, partition: PartitionState, broker_id: int, lost: int | None = None
) -> PartitionChanged | None:
    isr = without(partition.isr, (broker_id,))
    change = change_of(context, partition, PartitionUpdate(isr=isr, election=_election(context, partition), lost=lost))
    if change is None or change.leader is not None or not context.rules.raises_epoch_for_absent:
        return change
    return replace(change, leader=partition.leader)


def _keep_isr(context: ControllerContext, partition: PartitionState) -> PartitionChanged | None:
    return change_of(context, partition, PartitionUpdate(election=_election(context, partition)))


def _election(context: ControllerContext, partition: PartitionState) -> Election:
    allowed = context.allows_unclean_election(partition.topic_partition.topic)
    return Election.UNCLEAN if allowed else Election.ONLINE


def _only_changes(changes: Iterable[PartitionChanged | None]) -> tuple[PartitionChanged, ...]:
    return tuple(change for change in changes if change is not None)


def _present(context: ControllerContext, topic_partition: TopicPartition) -> PartitionState:
    partition = context.metadata.partition(topic_partition)
    assert partition is not None
    return partition


# Reports of brokers about the log directories of their replicas (KIP-858).


def assign_directories(
    context: ControllerContext, broker_id: int, directories: Mapping[TopicPartition, str]
) -> Decision[dict[TopicPartition, Outcome]]:
    """Store the directory ids of a broker's replicas. Partitions without a replica there are refused, by code alone."""
    records = []
    outcomes = {}
    for topic_partition, directory_id in directories.items():
        result = _assign_directory(context, broker_id, topic_partition, directory_id)
        if isinstance(result, PartitionChanged):
            records.append(result)
        outcomes[topic_partition] = result if isinstance(result, Outcome) else DONE
    return Decision(tuple(records), outcomes)


def _assign_directory(
    context: ControllerContext, broker_id: int, topic_partition: TopicPartition, directory_id: str
) -> PartitionChanged | Outcome:
    partition = context.metadata.partition(topic_partition)
    if partition is None:
        return Outcome(UNKNOWN_TOPIC_OR_PARTITION)
    if broker_id not in partition.replicas:
        return Outcome(NOT_LEADER_OR_FOLLOWER)
    return change_of(context, partition, PartitionUpdate(directory=(broker_id, directory_id))) or DONE
