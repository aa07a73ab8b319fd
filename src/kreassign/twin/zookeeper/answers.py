"""What a controller in ZooKeeper mode refuses, and with which messages (Kafka 3.9)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from kreassign.model import ElectionType, Reassignment, TopicPartition
from kreassign.model.error_codes import (
    INVALID_REPLICA_ASSIGNMENT,
    NOT_CONTROLLER,
    PREFERRED_LEADER_NOT_AVAILABLE,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from kreassign.twin.controller.decision import DONE, FAILED, Outcome, with_default_text
from kreassign.twin.controller.elections import ElectLeaders, LeadersElected
from kreassign.twin.controller.reassignments import AlterReassignments, TopicOutcomes

NO_PARTITION = Outcome(UNKNOWN_TOPIC_OR_PARTITION, "The partition does not exist.")
WRONG_CONTROLLER = with_default_text(NOT_CONTROLLER)
_SMALL_SET = 4


def targets_by_partition(command: AlterReassignments) -> dict[TopicPartition, tuple[int, ...] | None]:
    """The target of each partition; of two for one partition the last counts."""
    return {
        TopicPartition(entry.topic, target.partition): target.replicas
        for entry in command.topics
        for target in entry.targets
    }


def by_topic(outcomes: Iterable[tuple[TopicPartition, Outcome]]) -> tuple[TopicOutcomes, ...]:
    """The outcomes by topic; a topic without any is left out."""
    topics: dict[str, list[tuple[int, Outcome]]] = {}
    for (topic, partition), outcome in outcomes:
        topics.setdefault(topic, []).append((partition, outcome))
    return tuple(TopicOutcomes(topic, tuple(found)) for topic, found in topics.items())


def check_target(target: tuple[int, ...], sources: tuple[int, ...], live: Iterable[int]) -> Outcome:
    """Whether a target can be taken: only brokers that were no replicas before the move must be alive."""
    if not target:
        return _refused("Empty replica list specified in partition reassignment.")
    if len(set(target)) != len(target):
        return _refused(f"Duplicate replica ids in partition reassignment replica list: {_buffer(target)}")
    if min(target) < 0:
        return _refused(f"Invalid broker id in replica list: {_buffer(target)}")
    alive = frozenset(live)
    adding = Reassignment(sources, target).adding_in_order
    if not alive.issuperset(adding):
        text = f"Replica list: {_buffer(adding)}, live broker list: {_set(alive)}"
        return _refused(f"Replica assignment has brokers that are not alive. {text}")
    return DONE


def election_response(command: ElectLeaders, answer: LeadersElected) -> LeadersElected:
    """The response to elections with the messages of this mode."""
    if command.election_type not in list(ElectionType):
        return LeadersElected(FAILED, tuple(replace(one, outcomes=_each(one, FAILED)) for one in answer.topics))
    topics = tuple(
        replace(
            one, outcomes=tuple((index, _with_message(one.topic, index, outcome)) for index, outcome in one.outcomes)
        )
        for one in answer.topics
        if one.outcomes or command.topics is not None
    )
    return replace(answer, topics=topics)


def _each(topic: TopicOutcomes, outcome: Outcome) -> tuple[tuple[int, Outcome], ...]:
    return tuple((index, outcome) for index, _ in topic.outcomes)


def _with_message(topic: str, index: int, outcome: Outcome) -> Outcome:
    if outcome.code == UNKNOWN_TOPIC_OR_PARTITION:
        return NO_PARTITION
    if outcome.code == PREFERRED_LEADER_NOT_AVAILABLE:
        strategy = "PreferredReplicaPartitionLeaderElectionStrategy"
        text = f"Failed to elect leader for partition {topic}-{index} under strategy {strategy}"
        return Outcome(outcome.code, text)
    return outcome


def _refused(text: str) -> Outcome:
    return Outcome(INVALID_REPLICA_ASSIGNMENT, text)


def _buffer(brokers: Iterable[int]) -> str:
    return f"ArrayBuffer({', '.join(map(str, brokers))})"


def _set(brokers: frozenset[int]) -> str:
    """As Scala writes a set: up to four members are kept in a class of their own."""
    kind = "Set" if len(brokers) <= _SMALL_SET else "HashSet"
    return f"{kind}({', '.join(map(str, sorted(brokers)))})"
