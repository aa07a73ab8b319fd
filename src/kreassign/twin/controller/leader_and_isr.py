"""Change leaders and in-sync replicas.

Elections on request (ElectLeaders, KIP-460), periodic elections of the controller, and AlterPartition, in which a
leader proposes an ISR and the controller decides. `partition_change.py` chooses which replica becomes leader.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kreassign.model import NO_LEADER, ElectionType, TopicPartition
from kreassign.model.error_codes import (
    ELECTION_NOT_NEEDED,
    ELIGIBLE_LEADERS_NOT_AVAILABLE,
    FENCED_LEADER_EPOCH,
    INELIGIBLE_REPLICA,
    INVALID_REQUEST,
    INVALID_UPDATE_VERSION,
    NEW_LEADER_ELECTED,
    NONE,
    NOT_CONTROLLER,
    PREFERRED_LEADER_NOT_AVAILABLE,
    STALE_BROKER_EPOCH,
    UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from kreassign.twin.controller.decision import (
    DONE,
    MAX_RECORDS,
    TIMED_OUT,
    TOO_LARGE,
    ControllerContext,
    Decision,
    Outcome,
    has_expired,
    with_default_text,
)
from kreassign.twin.controller.partition_change import Election, PartitionUpdate, change_of
from kreassign.twin.controller.reassignments import TopicOutcomes
from kreassign.twin.metadata import LeaderRecovery, PartitionChanged, PartitionState

# Elections on request (KIP-460), and periodic ones of the controller.

MAX_ELECTIONS_IN_A_PASS = 1_000
"""The most leaders that a periodic election changes before it lets other requests through."""


@dataclass(frozen=True, slots=True)
class ElectLeaders:
    """A request for elections. `election_type` is Kafka's number; `topics` None means all partitions."""

    election_type: int
    topics: tuple[tuple[str, tuple[int, ...]], ...] | None
    timeout_ms: int = 60_000


@dataclass(frozen=True, slots=True)
class LeadersElected:
    """The answer: the outcome of the request as a whole, and of each partition."""

    outcome: Outcome
    topics: tuple[TopicOutcomes, ...]


def elect_leaders(context: ControllerContext, command: ElectLeaders) -> Decision[LeadersElected]:
    """Hold elections. If all partitions were asked for, those that need none are left out, but not their topics."""
    if has_expired(command.timeout_ms):
        return Decision((), elections_refused(command, TIMED_OUT))
    if command.election_type not in list(ElectionType):
        unknown = Outcome(INVALID_REQUEST, f"Unknown election type {command.election_type}")
        return Decision((), elections_refused(command, unknown))
    election_type = ElectionType(command.election_type)
    records: list[PartitionChanged] = []
    answers = []
    for topic, partitions in _every_partition(context) if command.topics is None else command.topics:
        outcomes = []
        for index in partitions:
            result = _elect(context, topic, index, election_type)
            if isinstance(result, PartitionChanged):
                records.append(result)
            outcome = DONE if isinstance(result, PartitionChanged) else result
            if command.topics is not None or outcome.code != ELECTION_NOT_NEEDED:
                outcomes.append((index, outcome))
        answers.append(TopicOutcomes(topic, tuple(outcomes)))
    if len(records) > MAX_RECORDS:
        return Decision((), elections_refused(command, TOO_LARGE))
    return Decision(tuple(records), LeadersElected(DONE, tuple(answers)))


def restore_preferred_leaders(context: ControllerContext) -> Decision[bool]:
    """Return leadership to the first replica where it can lead (`auto.leader.rebalance.enable`).

    The answer tells whether there may be more to do, so that another pass should follow at once.
    """
    return _one_pass(change for partition in _imbalanced(context) if (change := _prefer(context, partition)))


def elect_unclean_leaders(context: ControllerContext) -> Decision[bool]:
    """Elect leaders out of sync for leaderless partitions of topics that allow it; answers as the function above."""
    return _one_pass(
        change
        for topic_partition in sorted(context.metadata.leaderless)
        if context.allows_unclean_election(topic_partition.topic)
        and isinstance(change := _elect(context, *topic_partition, ElectionType.UNCLEAN), PartitionChanged)
    )


def _elect(
    context: ControllerContext, topic: str, index: int, election_type: ElectionType
) -> PartitionChanged | Outcome:
    if topic not in context.metadata.topics:
        return Outcome(UNKNOWN_TOPIC_OR_PARTITION, f"No such topic as {topic}")
    partition = context.metadata.partition(TopicPartition(topic, index))
    if partition is None:
        return Outcome(UNKNOWN_TOPIC_OR_PARTITION, f"No such partition as {topic}-{index}")
    if election_type is ElectionType.PREFERRED:
        if partition.has_preferred_leader:
            return with_default_text(ELECTION_NOT_NEEDED)
        return _prefer(context, partition) or with_default_text(PREFERRED_LEADER_NOT_AVAILABLE)
    if partition.has_leader:
        return with_default_text(ELECTION_NOT_NEEDED)
    change = change_of(context, partition, PartitionUpdate(election=Election.UNCLEAN))
    return change or with_default_text(ELIGIBLE_LEADERS_NOT_AVAILABLE)


def _prefer(context: ControllerContext, partition: PartitionState) -> PartitionChanged | None:
    return change_of(context, partition, PartitionUpdate(election=Election.PREFERRED))


def _imbalanced(context: ControllerContext) -> Iterator[PartitionState]:
    for topic_partition in sorted(context.metadata.imbalanced):
        partition = context.metadata.partition(topic_partition)
        assert partition is not None
        yield partition


def _one_pass(changes: Iterator[PartitionChanged]) -> Decision[bool]:
    records = tuple(change for _, change in zip(range(MAX_ELECTIONS_IN_A_PASS), changes, strict=False))
    return Decision(records, len(records) == MAX_ELECTIONS_IN_A_PASS)


def _every_partition(context: ControllerContext) -> tuple[tuple[str, tuple[int, ...]], ...]:
    topics = sorted(context.metadata.topics.values(), key=lambda topic: topic.name)
    return tuple((topic.name, tuple(sorted(topic.partitions))) for topic in topics)


def elections_refused(command: ElectLeaders, outcome: Outcome) -> LeadersElected:
    """Refuse the request and every partition that it names for the same reason."""
    answers = tuple(
        TopicOutcomes(topic, tuple((index, outcome) for index in partitions))
        for topic, partitions in command.topics or ()
    )
    return LeadersElected(outcome, answers)


# AlterPartition: a leader proposes the ISR, and the controller decides.

ANY_EPOCH = -1
"""Broker epoch of a member that its leader does not know; it is not compared."""


@dataclass(frozen=True, slots=True)
class Member:
    """A proposed member of the ISR, with its broker epoch as known to the leader."""

    broker_id: int
    broker_epoch: int = ANY_EPOCH


@dataclass(frozen=True, slots=True)
class ProposedIsr:
    """The ISR that a leader proposes for a partition, with the epochs that it knows."""

    topic_id: str
    partition: int
    leader_epoch: int
    partition_epoch: int
    isr: tuple[Member, ...]
    leader_recovery: LeaderRecovery = LeaderRecovery.RECOVERED


@dataclass(frozen=True, slots=True)
class AlterIsr:
    """A leader's request about some of its partitions; Kafka calls it AlterPartition."""

    broker_id: int
    broker_epoch: int
    proposals: tuple[ProposedIsr, ...]


@dataclass(frozen=True, slots=True)
class IsrAltered:
    """The answer about one partition: Kafka's error code, and on `NONE` the new state of the partition."""

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
    """The answer: an error code for the whole request, or one answer per partition, in the order of the request."""

    code: int
    partitions: tuple[IsrAltered, ...] = ()


def alter_isr(context: ControllerContext, command: AlterIsr) -> Decision[IsrsAltered]:
    """Accept the valid ISRs. An accepted ISR may complete a move and thereby depose the requesting leader."""
    broker = context.metadata.brokers.get(command.broker_id)
    if broker is None or broker.broker_epoch != command.broker_epoch:
        return Decision((), IsrsAltered(STALE_BROKER_EPOCH))
    decided = [_decide_isr(context, command.broker_id, proposed) for proposed in command.proposals]
    records = tuple(change for change, _ in decided if change is not None)
    return Decision(records, IsrsAltered(NONE, tuple(answer for _, answer in decided)))


def _decide_isr(
    context: ControllerContext, broker_id: int, proposed: ProposedIsr
) -> tuple[PartitionChanged | None, IsrAltered]:
    topic = context.metadata.topic_names.get(proposed.topic_id)
    if topic is None:
        return None, _isr_refused(proposed, UNKNOWN_TOPIC_ID)
    partition = context.metadata.partition(TopicPartition(topic, proposed.partition))
    if partition is None:
        return None, _isr_refused(proposed, UNKNOWN_TOPIC_OR_PARTITION)
    code = (
        _stale_proposal(partition, broker_id, proposed)
        or _unfit_isr(partition, proposed)
        or _ineligible_member(context, proposed)
    )  # fmt: skip
    if code != NONE:
        return None, _isr_refused(proposed, code)
    allowed = context.allows_unclean_election(topic)
    update = PartitionUpdate(
        isr=tuple(member.broker_id for member in proposed.isr),
        leader_recovery=proposed.leader_recovery,
        election=Election.UNCLEAN if allowed else Election.ONLINE,
    )
    change = change_of(context, partition, update)
    return change, _isr_answer(proposed, partition, change)


def _stale_proposal(partition: PartitionState, broker_id: int, proposed: ProposedIsr) -> int:
    """Error code of the proposed epochs: newer ones mean a newer controller, older ones a late leader; else NONE."""
    if proposed.leader_epoch > partition.leader_epoch or proposed.partition_epoch > partition.partition_epoch:
        return NOT_CONTROLLER
    if proposed.leader_epoch < partition.leader_epoch:
        return FENCED_LEADER_EPOCH
    if broker_id != partition.leader:
        return INVALID_REQUEST
    if proposed.partition_epoch < partition.partition_epoch:
        return INVALID_UPDATE_VERSION
    return NONE


def _unfit_isr(partition: PartitionState, proposed: ProposedIsr) -> int:
    members = [member.broker_id for member in proposed.isr]
    is_proper = members and len(set(members)) == len(members) and set(members) <= set(partition.replicas)
    if not is_proper or partition.leader not in members:
        return INVALID_REQUEST
    if proposed.leader_recovery is LeaderRecovery.RECOVERING and (
        len(members) > 1 or partition.leader_recovery is LeaderRecovery.RECOVERED
    ):
        return INVALID_REQUEST
    return NONE


def _ineligible_member(context: ControllerContext, proposed: ProposedIsr) -> int:
    return NONE if all(_may_join(context, member) for member in proposed.isr) else INELIGIBLE_REPLICA


def _may_join(context: ControllerContext, member: Member) -> bool:
    broker = context.metadata.brokers.get(member.broker_id)
    if broker is None or not broker.is_active:
        return False
    return member.broker_epoch in (ANY_EPOCH, broker.broker_epoch)


def _isr_refused(proposed: ProposedIsr, code: int) -> IsrAltered:
    return IsrAltered(proposed.topic_id, proposed.partition, code)


def _isr_answer(proposed: ProposedIsr, partition: PartitionState, change: PartitionChanged | None) -> IsrAltered:
    after = partition if change is None else partition.changed_by(change)
    if change is not None and change.leader not in (None, partition.leader):
        return _isr_refused(proposed, NEW_LEADER_ELECTED)
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
