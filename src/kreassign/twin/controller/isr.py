"""AlterPartition: a leader proposes who is in sync, and the controller decides."""

from __future__ import annotations

from dataclasses import dataclass

from kreassign.model import NO_LEADER, TopicPartition
from kreassign.model.error_codes import (
    FENCED_LEADER_EPOCH,
    INELIGIBLE_REPLICA,
    INVALID_REQUEST,
    INVALID_UPDATE_VERSION,
    NEW_LEADER_ELECTED,
    NONE,
    NOT_CONTROLLER,
    STALE_BROKER_EPOCH,
    UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from kreassign.twin.controller.changes import PartitionUpdate, change_of
from kreassign.twin.controller.context import ControllerContext
from kreassign.twin.controller.decision import Decision
from kreassign.twin.controller.leaders import Election
from kreassign.twin.metadata.records import LeaderRecovery, PartitionChanged
from kreassign.twin.metadata.state import PartitionState

ANY_EPOCH = -1
"""Of a member whose broker epoch its leader does not know; it is not compared."""


@dataclass(frozen=True, slots=True)
class Member:
    """A proposed member of the ISR, and the epoch under which the leader knows it."""

    broker_id: int
    broker_epoch: int = ANY_EPOCH


@dataclass(frozen=True, slots=True)
class ProposedIsr:
    """The ISR that a leader wants for a partition, and the epochs that it knows."""

    topic_id: str
    partition: int
    leader_epoch: int
    partition_epoch: int
    isr: tuple[Member, ...]
    leader_recovery: LeaderRecovery = LeaderRecovery.RECOVERED


@dataclass(frozen=True, slots=True)
class AlterIsr:
    """A request of a leader about some of its partitions, by Kafka's name AlterPartition."""

    broker_id: int
    broker_epoch: int
    proposals: tuple[ProposedIsr, ...]


@dataclass(frozen=True, slots=True)
class IsrAltered:
    """The answer about one partition: Kafka's error code, and where it is `NONE` what the partition is now."""

    topic_id: str
    partition: int
    code: int = NONE
    leader: int = NO_LEADER
    leader_epoch: int = 0
    isr: tuple[int, ...] = ()
    leader_recovery: LeaderRecovery = LeaderRecovery.RECOVERED
    partition_epoch: int = 0


@dataclass(frozen=True, slots=True)
class IsrsAltered:
    """The answer: an error code for the request as a whole, or one answer per partition, in the order asked for."""

    code: int
    partitions: tuple[IsrAltered, ...] = ()


def alter_isr(context: ControllerContext, command: AlterIsr) -> Decision[IsrsAltered]:
    """Accept the ISRs that are valid. One may complete a move, and thereby depose the requesting leader."""
    broker = context.metadata.brokers.get(command.broker_id)
    if broker is None or broker.broker_epoch != command.broker_epoch:
        return Decision((), IsrsAltered(STALE_BROKER_EPOCH))
    decided = [_decide(context, command.broker_id, proposed) for proposed in command.proposals]
    records = tuple(change for change, _ in decided if change is not None)
    return Decision(records, IsrsAltered(NONE, tuple(answer for _, answer in decided)))


def _decide(
    context: ControllerContext, broker_id: int, proposed: ProposedIsr
) -> tuple[PartitionChanged | None, IsrAltered]:
    topic = context.metadata.topic_names.get(proposed.topic_id)
    if topic is None:
        return None, _refused(proposed, UNKNOWN_TOPIC_ID)
    partition = context.metadata.partition(TopicPartition(topic, proposed.partition))
    if partition is None:
        return None, _refused(proposed, UNKNOWN_TOPIC_OR_PARTITION)
    code = (
        _stale(partition, broker_id, proposed)
        or _unfit(partition, proposed)
        or _ineligible(context, proposed)
    )  # fmt: skip
    if code != NONE:
        return None, _refused(proposed, code)
    allowed = context.allows_unclean_election(topic)
    update = PartitionUpdate(
        isr=tuple(member.broker_id for member in proposed.isr),
        leader_recovery=proposed.leader_recovery,
        election=Election.UNCLEAN if allowed else Election.ONLINE,
    )
    change = change_of(context, partition, update)
    return change, _answer(proposed, partition, change)


def _stale(partition: PartitionState, broker_id: int, proposed: ProposedIsr) -> int:
    """A leader with newer epochs than the controller has met a newer controller; one with older epochs is late."""
    if proposed.leader_epoch > partition.leader_epoch or proposed.partition_epoch > partition.partition_epoch:
        return NOT_CONTROLLER
    if proposed.leader_epoch < partition.leader_epoch:
        return FENCED_LEADER_EPOCH
    if broker_id != partition.leader:
        return INVALID_REQUEST
    if proposed.partition_epoch < partition.partition_epoch:
        return INVALID_UPDATE_VERSION
    return NONE


def _unfit(partition: PartitionState, proposed: ProposedIsr) -> int:
    members = [member.broker_id for member in proposed.isr]
    is_proper = members and len(set(members)) == len(members) and set(members) <= set(partition.replicas)
    if not is_proper or partition.leader not in members:
        return INVALID_REQUEST
    if proposed.leader_recovery is LeaderRecovery.RECOVERING and (
        len(members) > 1 or partition.leader_recovery is LeaderRecovery.RECOVERED
    ):
        return INVALID_REQUEST
    return NONE


def _ineligible(context: ControllerContext, proposed: ProposedIsr) -> int:
    return NONE if all(_may_join(context, member) for member in proposed.isr) else INELIGIBLE_REPLICA


def _may_join(context: ControllerContext, member: Member) -> bool:
    broker = context.metadata.brokers.get(member.broker_id)
    if broker is None or not broker.is_active:
        return False
    return member.broker_epoch in (ANY_EPOCH, broker.broker_epoch)


def _refused(proposed: ProposedIsr, code: int) -> IsrAltered:
    return IsrAltered(proposed.topic_id, proposed.partition, code)


def _answer(proposed: ProposedIsr, partition: PartitionState, change: PartitionChanged | None) -> IsrAltered:
    after = partition if change is None else partition.changed_by(change)
    if change is not None and change.leader not in (None, partition.leader):
        return _refused(proposed, NEW_LEADER_ELECTED)
    return IsrAltered(
        proposed.topic_id,
        proposed.partition,
        NONE,
        after.leader,
        after.leader_epoch,
        after.isr,
        after.leader_recovery,
        after.partition_epoch,
    )
