"""Topics and partitions that requests ask for: what Kafka 3.9 does differently in ZooKeeper mode.

There brokers write the znodes themselves: a request without time is executed all the same and only then answered
with REQUEST_TIMED_OUT, and new replicas go to brokers that are alive.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain
from random import Random

from kreassign.model.error_codes import (
    INVALID_PARTITIONS,
    INVALID_REPLICA_ASSIGNMENT,
    INVALID_REPLICATION_FACTOR,
    INVALID_REQUEST,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from kreassign.twin.controller.context import ControllerContext
from kreassign.twin.controller.decision import TIMED_OUT, Decision, Outcome, has_expired
from kreassign.twin.controller.partitions import CreatePartitions, MorePartitions, create_partitions
from kreassign.twin.controller.topics import BY_DEFAULT, CreateTopics, TopicCreation, WantedTopic, create_topics

_ENOUGH_MS = 60_000


def create_topics_in_zookeeper(
    context: ControllerContext, command: CreateTopics, random: Random
) -> Decision[tuple[TopicCreation, ...]]:
    """Create what can be created, as `create_topics`."""
    names = Counter(topic.name for topic in command.topics)
    refusals: dict[str, Outcome] = {
        name: Outcome(INVALID_REQUEST, "Found multiple entries for this topic.")
        for name, count in names.items()
        if count > 1
    }
    for topic in command.topics:
        if topic.name not in refusals and topic.name not in command.denied:
            refusals |= _named(topic.name, _unfit_topic(context, topic))
    fit = tuple(topic for topic in command.topics if topic.name not in refusals)
    decision = create_topics(context, replace(command, topics=fit, timeout_ms=_ENOUGH_MS), random)
    created = decision.answer
    if has_expired(command.timeout_ms) and not command.validate_only:
        created = tuple(one if one.outcome.is_failure else TopicCreation(one.name, TIMED_OUT) for one in created)
    refused = (TopicCreation(name, refusal) for name, refusal in refusals.items())
    return Decision(decision.records, (*created, *refused))


def create_partitions_in_zookeeper(
    context: ControllerContext, command: CreatePartitions, random: Random
) -> Decision[tuple[tuple[str, Outcome], ...]]:
    """Add partitions where it can be done, as `create_partitions`."""
    counts = Counter(wanted.topic for wanted in command.topics)
    refusals: dict[str, Outcome] = {
        name: Outcome(INVALID_REQUEST, "Duplicate topic in request.") for name, count in counts.items() if count > 1
    }
    for wanted in command.topics:
        if wanted.topic not in refusals:
            refusals |= _named(wanted.topic, _unfit_growth(context, wanted))
    fit = tuple(wanted for wanted in command.topics if wanted.topic not in refusals)
    decision = create_partitions(context, replace(command, topics=fit, timeout_ms=_ENOUGH_MS), random)
    added = decision.answer
    if has_expired(command.timeout_ms) and not command.validate_only:
        added = tuple((name, outcome if outcome.is_failure else TIMED_OUT) for name, outcome in added)
    return Decision(decision.records, (*refusals.items(), *added))


def _named(name: str, refusal: Outcome | None) -> dict[str, Outcome]:
    return {} if refusal is None else {name: refusal}


def _unfit_topic(context: ControllerContext, topic: WantedTopic) -> Outcome | None:
    if topic.name in context.metadata.topics:
        return None  # Refused with the same message everywhere.
    if topic.assignments:
        return _unfit_lists(topic)
    server = context.server
    count = server.partition_count if topic.partition_count == BY_DEFAULT else topic.partition_count
    factor = server.replication_factor if topic.replication_factor == BY_DEFAULT else topic.replication_factor
    if count <= 0:
        return Outcome(INVALID_PARTITIONS, "Number of partitions must be larger than 0.")
    if factor <= 0:
        return Outcome(INVALID_REPLICATION_FACTOR, "Replication factor must be larger than 0.")
    return _too_large(context, factor)


def _too_large(context: ControllerContext, factor: int) -> Outcome | None:
    alive = sum(broker.is_active for broker in context.metadata.brokers.values())
    if factor <= alive:
        return None
    return Outcome(INVALID_REPLICATION_FACTOR, f"Replication factor: {factor} larger than available brokers: {alive}.")


def _unfit_lists(topic: WantedTopic) -> Outcome | None:
    if (topic.partition_count, topic.replication_factor) != (BY_DEFAULT, BY_DEFAULT):
        text = "Both numPartitions or replicationFactor and replicasAssignments were set. "
        return Outcome(INVALID_REQUEST, f"{text}Both cannot be used at the same time.")
    lists = dict(topic.assignments)
    if len({len(replicas) for replicas in lists.values()}) != 1:
        return _badly_assigned("All partitions should have the same number of replicas")
    if any(len(set(replicas)) != len(replicas) for replicas in lists.values()):
        shown = ", ".join(f"{number} -> {_buffer(replicas)}" for number, replicas in lists.items())
        return _badly_assigned(f"Duplicate replica assignment found: HashMap({shown})")
    return None


def _unfit_growth(context: ControllerContext, wanted: MorePartitions) -> Outcome | None:
    topic = context.metadata.topics.get(wanted.topic)
    if topic is None:
        return Outcome(UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{wanted.topic}' does not exist.")
    if any(partition.is_reassigning for partition in topic.partitions.values()):
        return None  # Refused by `create_partitions`, with the message of this mode.
    present, factor = len(topic.partitions), len(topic.partitions[0].replicas)
    if wanted.total_count < present:
        text = f"Topic currently has {present} partitions, which is higher than the requested {wanted.total_count}."
        return Outcome(INVALID_PARTITIONS, text)
    if wanted.total_count == present:
        return Outcome(INVALID_PARTITIONS, f"Topic already has {present} partitions.")
    if wanted.assignments is None:
        return _too_large(context, factor)
    return _unfit_additions(context, wanted.assignments, present, wanted.total_count - present, factor)


def _unfit_additions(
    context: ControllerContext, lists: Sequence[tuple[int, ...]], present: int, more: int, factor: int
) -> Outcome | None:
    alive = {broker.broker_id for broker in context.metadata.brokers.values() if broker.is_active}
    unknown = [broker for broker in dict.fromkeys(chain.from_iterable(lists)) if broker not in alive]
    if unknown:
        return _badly_assigned(f"Unknown broker(s) in replica assignment: {_comma(unknown)}.")
    if len(lists) != more:
        return _badly_assigned(f"Increasing the number of partitions by {more} but {len(lists)} assignments provided.")
    for number, replicas in enumerate(lists, present):
        if not replicas:
            return _badly_assigned(f"Cannot have replication factor of 0 for partition id {number}.")
        if len(set(replicas)) != len(replicas):
            return _badly_assigned(
                f"Duplicate brokers not allowed in replica assignment: {_comma(replicas)} for partition id {number}."
            )
    odd = {number: len(replicas) for number, replicas in enumerate(lists, present) if len(replicas) != factor}
    if not odd:
        return None
    return _badly_assigned(
        f"Inconsistent replication factor between partitions, partition 0 has {factor} while partitions "
        f"[{_comma(odd)}] have replication factors [{_comma(odd.values())}], respectively."
    )


def _badly_assigned(text: str) -> Outcome:
    return Outcome(INVALID_REPLICA_ASSIGNMENT, text)


def _buffer(brokers: Iterable[int]) -> str:
    return f"ArrayBuffer({_comma(brokers)})"


def _comma(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, numbers))
