"""Change leaders and in-sync replicas.

Elections on request (ElectLeaders, KIP-460), periodic elections of the controller, and AlterPartition, in which a
leader proposes an ISR and the controller decides. `partition_change.py` chooses which replica becomes leader.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kreassign.model import ElectionType, TopicPartition, error_codes
from kreassign.twin.controller import decision
from kreassign.twin.controller.partition_change import Election, PartitionUpdate, change_of, election_of
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

    outcome: decision.Outcome
    topics: tuple[TopicOutcomes, ...]


def elect_leaders(context: decision.ControllerContext, command: ElectLeaders) -> decision.Decision[LeadersElected]:
    """Hold elections. If all partitions were asked for, those that need none are left out, but not their topics."""
    if decision.has_expired(command.timeout_ms):
        return decision.Decision((), elections_refused(command, decision.TIMED_OUT))
    if command.election_type not in list(ElectionType):
        unknown = decision.Outcome(error_codes.INVALID_REQUEST, f"Unknown election type {command.election_type}")
        return decision.Decision((), elections_refused(command, unknown))
    election_type = ElectionType(command.election_type)
    records: list[PartitionChanged] = []
    answers = []
    for topic, partitions in _every_partition(context) if command.topics is None else command.topics:
        outcomes = []
        for index in partitions:
            result = _elect(context, topic, index, election_type)
            if isinstance(result, PartitionChanged):
                records.append(result)
            outcome = decision.DONE if isinstance(result, PartitionChanged) else result
            if command.topics is not None or outcome.code != error_codes.ELECTION_NOT_NEEDED:
                outcomes.append((index, outcome))
        answers.append(TopicOutcomes(topic, tuple(outcomes)))
    if len(records) > decision.MAX_RECORDS:
        return decision.Decision((), elections_refused(command, decision.TOO_LARGE))
    return decision.Decision(tuple(records), LeadersElected(decision.DONE, tuple(answers)))


def restore_preferred_leaders(context: decision.ControllerContext) -> decision.Decision[bool]:
    """Return leadership to the first replica where it can lead (`auto.leader.rebalance.enable`).

    The answer tells whether there may be more to do, so that another pass should follow at once.
    """
    imbalanced = (context.metadata.present(key) for key in sorted(context.metadata.imbalanced))
    return _one_pass(change for partition in imbalanced if (change := _prefer(context, partition)))


def elect_unclean_leaders(context: decision.ControllerContext) -> decision.Decision[bool]:
    """Elect leaders out of sync for leaderless partitions of topics that allow it; answers as the function above."""
    return _one_pass(
        change
        for topic_partition in sorted(context.metadata.leaderless)
        if context.allows_unclean_election(topic_partition.topic)
        and isinstance(change := _elect(context, *topic_partition, ElectionType.UNCLEAN), PartitionChanged)
    )


def _elect(
    context: decision.ControllerContext, topic: str, index: int, election_type: ElectionType
) -> PartitionChanged | decision.Outcome:
    if topic not in context.metadata.topics:
        return decision.Outcome(error_codes.UNKNOWN_TOPIC_OR_PARTITION, f"No such topic as {topic}")
    partition = context.metadata.partition(TopicPartition(topic, index))
    if partition is None:
        return decision.Outcome(error_codes.UNKNOWN_TOPIC_OR_PARTITION, f"No such partition as {topic}-{index}")
    if election_type is ElectionType.PREFERRED:
        if partition.has_preferred_leader:
            return decision.with_default_text(error_codes.ELECTION_NOT_NEEDED)
        return _prefer(context, partition) or decision.with_default_text(error_codes.PREFERRED_LEADER_NOT_AVAILABLE)
    if partition.has_leader:
        return decision.with_default_text(error_codes.ELECTION_NOT_NEEDED)
    change = change_of(context, partition, PartitionUpdate(election=Election.UNCLEAN))
    return change or decision.with_default_text(error_codes.ELIGIBLE_LEADERS_NOT_AVAILABLE)


def _prefer(context: decision.ControllerContext, partition: PartitionState) -> PartitionChanged | None:
    return change_of(context, partition, PartitionUpdate(election=Election.PREFERRED))


def _one_pass(changes: Iterator[PartitionChanged]) -> decision.Decision[bool]:
    records = tuple(change for _, change in zip(range(MAX_ELECTIONS_IN_A_PASS), changes, strict=False))
    return decision.Decision(records, len(records) == MAX_ELECTIONS_IN_A_PASS)


def _every_partition(context: decision.ControllerContext) -> tuple[tuple[str, tuple[int, ...]], ...]:
    topics = sorted(context.metadata.topics.values(), key=lambda topic: topic.name)
    return tuple((topic.name, tuple(sorted(topic.partitions))) for topic in topics)


def elections_refused(command: ElectLeaders, outcome: decision.Outcome) -> LeadersElected:
    """Refuse the request and every partition that it names for the same reason."""
    answers = tuple(
        TopicOutcomes(topic, tuple((index, outcome) for index in partitions))
        for topic, partitions in command.topics or ()
    )
    return LeadersElected(outcome, answers)


# AlterPartition: a leader proposes the ISR, and the controller decides. Leaders of a twin know all that its controller
# does, so that the epochs in a proposal are never stale.


def propose_isr(
    context: decision.ControllerContext, partition: PartitionState, isr: tuple[int, ...]
) -> decision.Decision[int]:
    """Let the leader of a partition propose its ISR; return Kafka's error code.

    An accepted ISR may complete a move and thereby depose the leader (NEW_LEADER_ELECTED).
    """
    if partition.leader not in isr or not set(isr) <= set(partition.replicas):
        return decision.Decision((), error_codes.INVALID_REQUEST)
    if not all(map(context.metadata.is_active, isr)):
        return decision.Decision((), error_codes.INELIGIBLE_REPLICA)
    election = election_of(context, partition.topic_partition.topic)
    update = PartitionUpdate(isr=isr, leader_recovery=LeaderRecovery.RECOVERED, election=election)
    change = change_of(context, partition, update)
    if change is None:
        return decision.Decision((), error_codes.NONE)
    return decision.Decision(
        (change,), error_codes.NONE if change.leader in (None, partition.leader) else error_codes.NEW_LEADER_ELECTED
    )
