"""Start, override, cancel and list moves (KIP-455, KIP-860)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kreassign.model import OngoingReassignment, Reassignment, TopicPartition, error_codes
from kreassign.model.cluster import without
from kreassign.twin.controller import decision
from kreassign.twin.controller.partition_change import Election, PartitionUpdate, change_of, election_of
from kreassign.twin.controller.topics import check_assignment
from kreassign.twin.metadata import ClusterMetadata, PartitionChanged, PartitionState


@dataclass(frozen=True, slots=True)
class Target:
    """The target of a partition; None cancels the move in progress."""

    partition: int
    replicas: tuple[int, ...] | None


@dataclass(frozen=True, slots=True)
class TopicTargets:
    """A topic entry of a request with its targets, in order; topics and targets may be repeated."""

    topic: str
    targets: tuple[Target, ...]


@dataclass(frozen=True, slots=True)
class AlterReassignments:
    """A request to start, override or cancel moves."""

    topics: tuple[TopicTargets, ...]
    allow_replication_factor_change: bool = True
    timeout_ms: int = 60_000


@dataclass(frozen=True, slots=True)
class TopicOutcomes:
    """A topic entry of an answer: partition and outcome, in the order of the request."""

    topic: str
    outcomes: tuple[tuple[int, decision.Outcome], ...]


@dataclass(frozen=True, slots=True)
class ReassignmentsAltered:
    """The answer: the outcome of the request as a whole, and of each of its entries."""

    outcome: decision.Outcome
    topics: tuple[TopicOutcomes, ...]


@dataclass(frozen=True, slots=True)
class TopicReassignments:
    """The moves in progress of one topic, by partition, in the order of the request."""

    topic: str
    partitions: tuple[tuple[int, OngoingReassignment], ...]


def alter_reassignments(
    context: decision.ControllerContext, command: AlterReassignments
) -> decision.Decision[ReassignmentsAltered]:
    """Decide each entry separately, all of them by the state before the request.

    Two entries about one partition are both answered, and the later record prevails. Once the record limit is reached,
    entries that would write more fail.
    """
    if decision.has_expired(command.timeout_ms):
        return decision.Decision((), reassignments_refused(command, decision.TIMED_OUT))
    records: list[PartitionChanged] = []
    answers = []
    for entry in command.topics:
        outcomes = []
        for target in entry.targets:
            result = _alter(context, entry.topic, target, command.allow_replication_factor_change)
            outcomes.append((target.partition, _keep(result, records)))
        answers.append(TopicOutcomes(entry.topic, tuple(outcomes)))
    # Without any topic Kafka answers with an empty text instead of none.
    top = decision.DONE if command.topics else decision.Outcome(message="")
    return decision.Decision(tuple(records), ReassignmentsAltered(top, tuple(answers)))


def reassignments_refused(command: AlterReassignments, outcome: decision.Outcome) -> ReassignmentsAltered:
    """Refuse the request and each of its entries for the same reason."""
    answers = (
        TopicOutcomes(entry.topic, tuple((target.partition, outcome) for target in entry.targets))
        for entry in command.topics
    )
    return ReassignmentsAltered(outcome, tuple(answers))


Asked = Iterable[tuple[str, Iterable[int]]]
"""Topics with partitions of each, as a request names them."""


def each_once(asked: Asked) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """Return each topic and partition once, as a controller of ZooKeeper mode takes them."""
    topics: dict[str, dict[int, None]] = {}
    for topic, partitions in asked:
        topics.setdefault(topic, {}).update(dict.fromkeys(partitions))
    return tuple((topic, tuple(partitions)) for topic, partitions in topics.items())


def list_reassignments(metadata: ClusterMetadata, wanted: Asked | None = None) -> tuple[TopicReassignments, ...]:
    """The moves in progress, of all topics (None) or of the requested partitions.

    Idle and unknown partitions are left out. A partition or topic requested twice is listed twice.
    """
    if wanted is None:
        wanted = _by_topic(metadata.reassigning)
    found = (TopicReassignments(topic, tuple(_ongoing(metadata, topic, partitions))) for topic, partitions in wanted)
    return tuple(topic for topic in found if topic.partitions)


def _keep(result: PartitionChanged | decision.Outcome, records: list[PartitionChanged]) -> decision.Outcome:
    if isinstance(result, decision.Outcome):
        return result
    if len(records) == decision.MAX_RECORDS:
        return decision.FAILED
    records.append(result)
    return decision.DONE


def _alter(
    context: decision.ControllerContext, topic: str, target: Target, may_change_factor: bool
) -> PartitionChanged | decision.Outcome:
    if topic not in context.metadata.topics:
        return decision.Outcome(error_codes.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find a topic named {topic}.")
    partition = context.metadata.partition(TopicPartition(topic, target.partition))
    if partition is None:
        return decision.Outcome(
            error_codes.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find partition {topic}:{target.partition}."
        )
    if target.replicas is None:
        return _cancel(context, partition)
    refusal = check_assignment(context, target.replicas)
    if refusal.is_failure:
        return refusal
    if not may_change_factor and len(target.replicas) != (count := _replication_factor(partition)):
        text = f"The replication factor is changed from {count} to {len(target.replicas)}"
        return decision.Outcome(error_codes.INVALID_REPLICATION_FACTOR, text)
    return _start(context, partition, target.replicas)


def _replication_factor(partition: PartitionState) -> int:
    """The number of replicas of a partition, after its move if it has one."""
    if not partition.is_reassigning:
        return len(partition.replicas)
    return len({*partition.replicas, *partition.adding}.difference(partition.removing))


def _start(
    context: decision.ControllerContext, partition: PartitionState, target: tuple[int, ...]
) -> PartitionChanged | decision.Outcome:
    """Start a move from all present replicas, those of an unfinished move included.

    If nothing is added (or removed) the list of an unfinished move stays: that makes the same target a no-op, but also
    keeps a replica in both lists if it was being added and is now removed.
    """
    move = Reassignment(partition.replicas, target)
    if _stumbles(context, partition, move.replicas):
        return decision.FAILED
    update = PartitionUpdate(replicas=move.replicas, adding=move.adding or None, removing=move.removing or None)
    return change_of(context, partition, update) or decision.DONE


def _stumbles(context: decision.ControllerContext, partition: PartitionState, replicas: tuple[int, ...]) -> bool:
    """True if Kafka fails: nothing is in sync, and an eligible leader that is no replica now becomes one again.

    Kafka looks for a leader among the eligible ones, in the order of the new list, and for the log directory of each
    live one: a replica that is still to come has none.
    """
    if partition.isr:
        return False
    request = (broker for broker in replicas if broker in partition.elr and context.metadata.is_active(broker))
    first = next(request, None)
    return first is not None and first not in partition.replicas


def _cancel(context: decision.ControllerContext, partition: PartitionState) -> PartitionChanged | decision.Outcome:
    """Restore the former replicas in their present order; adding replicas leave the ISR."""
    if not partition.is_reassigning:
        return decision.Outcome(error_codes.NO_REASSIGNMENT_IN_PROGRESS)
    topic_partition = partition.topic_partition
    replicas = without(partition.replicas, partition.adding)
    isr = without(partition.isr, partition.adding)
    if not isr and not replicas:
        text = "Invalid replica assignment: addingReplicas contains all replicas."
        return decision.Outcome(error_codes.INVALID_REPLICA_ASSIGNMENT, text)
    election = election_of(context, topic_partition.topic)
    if not isr and election is not Election.UNCLEAN:
        text = (
            f"Unable to revert partition assignment for {topic_partition.topic}:{topic_partition.partition} because "
            "it would require an unclean leader election."
        )
        return decision.Outcome(error_codes.INVALID_REPLICA_ASSIGNMENT, text)
    update = PartitionUpdate(replicas=replicas, adding=(), removing=(), isr=isr or replicas[:1], election=election)
    return change_of(context, partition, update) or decision.DONE


def _by_topic(partitions: Iterable[TopicPartition]) -> list[tuple[str, list[int]]]:
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(partitions):
        topics.setdefault(topic, []).append(partition)
    return list(topics.items())


def _ongoing(
    metadata: ClusterMetadata, topic: str, partitions: Iterable[int]
) -> Iterable[tuple[int, OngoingReassignment]]:
    for index in partitions:
        partition = metadata.partition(TopicPartition(topic, index))
        if partition is not None and partition.is_reassigning:
            yield index, OngoingReassignment(partition.replicas, partition.adding, partition.removing)
