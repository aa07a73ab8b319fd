"""Register, fence and unregister brokers, take failed log directories out of service, note where replicas are.

Each of these changes partitions that the broker has replicas of: a broker that goes leaves their ISRs and leads
none of them.
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
"""The epoch of a broker that does not remember a clean shutdown."""


@dataclass(frozen=True, slots=True)
class Registration:
    """A broker introduces itself after a start.

    `previous_epoch` is the epoch under which it last shut down cleanly, `NO_EPOCH` if it did not.
    `has_live_session` says that the broker registered before still sends heartbeats, or did until a moment ago.
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
    """The answer to a registration: the broker's new epoch, unless it was refused."""

    outcome: Outcome
    broker_epoch: int = NO_EPOCH


_ANOTHER_IS_REGISTERED = Outcome(
    DUPLICATE_BROKER_REGISTRATION,
    "Another broker is registered with that broker id. If the broker was recently restarted this should "
    "self-resolve once the heartbeat manager expires the broker's session.",
)


def register(context: ControllerContext, registration: Registration) -> Decision[Registered]:
    """Take a broker in, fenced. Where it was in sync before, it no longer is; after a crash it may not lead either."""
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
    """Take a broker out of service, because its heartbeats stopped or because it has shut down."""
    return Decision((*_leave_partitions(context, broker_id), BrokerFenced(broker_id)), None)


def unfence(context: ControllerContext, broker_id: int) -> Decision[None]:
    """Put a broker into service; partitions that nobody leads may be led by it at once."""
    returned = replace(context, returning=broker_id)
    leaderless = (_present(context, topic_partition) for topic_partition in sorted(context.metadata.leaderless))
    changes = (_keep_isr(returned, partition) for partition in leaderless)
    return Decision((BrokerUnfenced(broker_id), *_only_changes(changes)), None)


def begin_shutdown(context: ControllerContext, broker_id: int) -> Decision[None]:
    """Relieve a broker of everything because it wants to stop. It may, and is then fenced, once it leads nothing.

    Repeated while it cannot yet, this tries again.
    """
    is_news = not context.metadata.brokers[broker_id].shutting_down
    first: tuple[Record, ...] = (BrokerShuttingDown(broker_id),) if is_news else ()
    return Decision((*first, *_leave_partitions(context, broker_id)), None)


def unregister(context: ControllerContext, broker_id: int) -> Decision[Outcome]:
    """Take a broker out of the cluster. Replica lists, and moves to it, go on naming it."""
    if broker_id not in context.metadata.brokers:
        text = f"Broker ID {broker_id} is not currently registered"
        return Decision((), Outcome(BROKER_ID_NOT_REGISTERED, text))
    return Decision((*_leave_partitions(context, broker_id), BrokerUnregistered(broker_id)), DONE)


def fail_log_dir(context: ControllerContext, broker_id: int, directory_id: str) -> Decision[None]:
    """Take the replicas in a directory that went offline out of service; its broker goes on with the others."""
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
    """The broker may have lost what it had not written to disk, so that it is not fit to lead without the others."""
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


# Brokers report in which log directory they put their replicas (KIP-858).


def assign_directories(
    context: ControllerContext, broker_id: int, directories: Mapping[TopicPartition, str]
) -> Decision[dict[TopicPartition, Outcome]]:
    """Note the directory ids of a broker's replicas. What is no replica of the broker is refused, by its code alone."""
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
