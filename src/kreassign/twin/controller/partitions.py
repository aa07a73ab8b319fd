"""Giving topics more partitions (CreatePartitions), also while their partitions move."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import islice
from random import Random

from kreassign.errors import Infeasible
from kreassign.model import TopicPartition
from kreassign.model.error_codes import (
    INVALID_PARTITIONS,
    INVALID_REPLICA_ASSIGNMENT,
    INVALID_REPLICATION_FACTOR,
    INVALID_REQUEST,
    REASSIGNMENT_IN_PROGRESS,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from kreassign.model.topic_changes import unfit_count
from kreassign.twin.controller.context import ControllerContext
from kreassign.twin.controller.decision import DONE, FAILED, MAX_RECORDS, TIMED_OUT, Decision, Outcome, has_expired
from kreassign.twin.controller.placement import (
    check_activity,
    check_assignment,
    created,
    place_automatically,
)
from kreassign.twin.controller.rules import CompletionRule
from kreassign.twin.metadata.records import PartitionCreated
from kreassign.twin.metadata.state import TopicState

_FIBONACCI = 2**64 - 7_046_029_254_386_353_131
"""What hash codes are multiplied by in the controller's tables: 2^64 divided by the golden ratio."""


@dataclass(frozen=True, slots=True)
class MorePartitions:
    """How many partitions a topic is to have in all, and where the new ones go if the cluster does not choose."""

    topic: str
    total_count: int
    assignments: tuple[tuple[int, ...], ...] | None = None


@dataclass(frozen=True, slots=True)
class CreatePartitions:
    """A request for more partitions."""

    topics: tuple[MorePartitions, ...]
    validate_only: bool = False
    timeout_ms: int = 60_000


def create_partitions(
    context: ControllerContext, command: CreatePartitions, random: Random
) -> Decision[tuple[tuple[str, Outcome], ...]]:
    """Add partitions where it can be done. The answer has the names that came twice first, then the others."""
    if has_expired(command.timeout_ms):
        return Decision((), tuple((wanted.topic, TIMED_OUT) for wanted in command.topics))
    counts = Counter(wanted.topic for wanted in command.topics)
    twice = [name for name, count in counts.items() if count > 1]
    records: list[PartitionCreated] = []
    answers = [(name, Outcome(INVALID_REQUEST, "Duplicate topic name.")) for name in twice]
    for wanted in command.topics:
        if wanted.topic in twice:
            continue
        result = _more(context, wanted, random)
        if isinstance(result, Outcome):
            answers.append((wanted.topic, result))
        else:
            # What fits under the limit is created, although the topic is answered as if nothing were.
            created = list(islice(result, MAX_RECORDS - len(records)))
            records += created
            answers.append((wanted.topic, DONE if len(created) == len(result) else FAILED))
    return Decision(() if command.validate_only else tuple(records), tuple(answers))


def _more(context: ControllerContext, wanted: MorePartitions, random: Random) -> list[PartitionCreated] | Outcome:
    topic = context.metadata.topics.get(wanted.topic)
    if topic is None:
        return Outcome(UNKNOWN_TOPIC_OR_PARTITION)
    moving = any(partition.is_reassigning for partition in topic.partitions.values())
    if moving and context.rules.completion is CompletionRule.BY_PHASES:
        text = f"A partition reassignment is in progress for the topic '{wanted.topic}'."
        return Outcome(REASSIGNMENT_IN_PROGRESS, text)
    refusal = _unfit_count(wanted, len(topic.partitions))
    if refusal.is_failure:
        return refusal
    lists = _lists(context, topic, wanted, random)
    if isinstance(lists, Outcome):
        return lists
    first = len(topic.partitions)
    return [
        created(context, TopicPartition(topic.name, first + number), replicas) for number, replicas in enumerate(lists)
    ]


def _unfit_count(wanted: MorePartitions, present: int) -> Outcome:
    unfit = unfit_count(wanted.topic, present, wanted.total_count)
    if unfit is not None:
        return Outcome(INVALID_PARTITIONS, unfit)
    more = wanted.total_count - present
    if wanted.assignments is not None and len(wanted.assignments) != more:
        text = (
            f"Attempted to add {more} additional partition(s), "
            f"but only {len(wanted.assignments)} assignment(s) were specified."
        )
        return Outcome(INVALID_REPLICA_ASSIGNMENT, text)
    return DONE


def _lists(
    context: ControllerContext, topic: TopicState, wanted: MorePartitions, random: Random
) -> tuple[tuple[int, ...], ...] | Outcome:
    """Replica lists as long as that of one partition, replicas that are on their way in or out included."""
    present = len(topic.partitions)
    factor = len(topic.partitions[_model_for_new_ones(present)].replicas)
    if wanted.assignments is None:
        try:
            # One more than can be created shows that there are too many; placing 2³¹ of them would take for ever.
            more = min(wanted.total_count - present, MAX_RECORDS + 1)
            return place_automatically(context, more, factor, random)
        except Infeasible as reason:
            return Outcome(INVALID_REPLICATION_FACTOR, str(reason))
    for number, replicas in enumerate(wanted.assignments):
        refusal = check_assignment(context, replicas, factor)
        if not refusal.is_failure:
            refusal = check_activity(context, present + number, replicas)
        if refusal.is_failure:
            return refusal
    return wanted.assignments


def _model_for_new_ones(present: int) -> int:
    """The partition whose replicas are counted: the first that Kafka meets in its hash table of a topic's partitions.

    The table has a power of two of slots, which are doubled where one more partition would make it more than four on
    three slots; the highest bits of a product choose the slot (Knuth's multiplicative hashing). Of the partitions in
    one slot the last is met first. Partition 0 is in slot 0, so that this is the last that shares it: 2 of three.
    """
    slots = 2
    while 3 * (present + 1) > 4 * slots:
        slots *= 2
    shift = 65 - slots.bit_length()
    return next(number for number in reversed(range(present)) if (number * _FIBONACCI % 2**64) >> shift == 0)
