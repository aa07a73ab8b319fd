"""Creating and deleting topics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from uuid import UUID

from kreassign.errors import Infeasible
from kreassign.model import ConfigResource, TopicPartition
from kreassign.model.error_codes import (
    INVALID_CONFIG,
    INVALID_PARTITIONS,
    INVALID_REPLICA_ASSIGNMENT,
    INVALID_REPLICATION_FACTOR,
    INVALID_REQUEST,
    INVALID_TOPIC_EXCEPTION,
    POLICY_VIOLATION,
    TOPIC_ALREADY_EXISTS,
    TOPIC_AUTHORIZATION_FAILED,
    UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from kreassign.twin.controller.config_values import first_fault
from kreassign.twin.controller.context import ControllerContext
from kreassign.twin.controller.decision import (
    DONE,
    MAX_RECORDS,
    TIMED_OUT,
    TOO_LARGE,
    Decision,
    Outcome,
    has_expired,
    with_default_text,
)
from kreassign.twin.controller.placement import check_activity, check_assignment, created, place_automatically
from kreassign.twin.controller.topic_names import check_topic_name, unified
from kreassign.twin.metadata.records import ConfigChanged, PartitionCreated, Record, TopicCreated, TopicDeleted

BY_DEFAULT = -1
"""As a count: take the server's default."""
MAX_PARTITIONS = 10_000
"""The most partitions that one request may create."""
METADATA_TOPIC = "__cluster_metadata"


@dataclass(frozen=True, slots=True)
class WantedTopic:
    """A topic to create: either counts, or `assignments` of replicas to partition numbers and both counts -1."""

    name: str
    partition_count: int = BY_DEFAULT
    replication_factor: int = BY_DEFAULT
    assignments: tuple[tuple[int, tuple[int, ...]], ...] = ()
    configs: tuple[tuple[str, str | None], ...] = ()


@dataclass(frozen=True, slots=True)
class CreateTopics:
    """A request to create topics. `denied` are names that the client may not create."""

    topics: tuple[WantedTopic, ...]
    validate_only: bool = False
    timeout_ms: int = 60_000
    denied: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class TopicCreation:
    """What became of one topic; where it was created, what it is. `configs` are its own settings."""

    name: str
    outcome: Outcome
    topic_id: str | None = None
    partition_count: int = BY_DEFAULT
    replication_factor: int = BY_DEFAULT
    configs: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TopicReference:
    """A topic to delete, named in one of two ways."""

    name: str | None = None
    topic_id: str | None = None


@dataclass(frozen=True, slots=True)
class TopicDeletion:
    """What became of one topic to delete, and what is known of it."""

    name: str | None
    topic_id: str | None
    outcome: Outcome


def create_topics(
    context: ControllerContext, command: CreateTopics, random: Random
) -> Decision[tuple[TopicCreation, ...]]:
    """Create what can be created; chance decides on topic ids and on where replicas go that nobody placed."""
    names = Counter(topic.name for topic in command.topics)
    refusals = {name: _refusal(name, count, command.denied) for name, count in names.items()}
    allowed = [topic for topic in command.topics if not refusals[topic.name].is_failure]
    whole = _whole_request(context, allowed, command.timeout_ms)
    if whole.is_failure:
        return Decision((), tuple(TopicCreation(name, whole) for name in names))
    records: list[Record] = []
    answers = []
    similar = _similar_names(context.metadata.topics)
    for topic in allowed:
        result = _unfit(context, topic, similar) or _create(context, topic, random)
        if isinstance(result, Outcome):
            answers.append(TopicCreation(topic.name, result))
        else:
            records += result
            answers.append(_creation(topic, result))
    if len(records) > MAX_RECORDS:
        return Decision((), tuple(TopicCreation(name, TOO_LARGE) for name in names))
    answers += [TopicCreation(name, refusal) for name, refusal in refusals.items() if refusal.is_failure]
    return Decision(() if command.validate_only else tuple(records), tuple(answers))


def delete_topics(
    context: ControllerContext,
    references: Sequence[TopicReference],
    timeout_ms: int = 60_000,
    denied: Collection[str] = (),
) -> Decision[tuple[TopicDeletion, ...]]:
    """Delete topics at once, with the moves of their partitions. The client may not delete those that are `denied`."""
    if has_expired(timeout_ms):
        return Decision((), tuple(TopicDeletion(one.name, one.topic_id, TIMED_OUT) for one in references))
    distinct = dict.fromkeys(references)
    answers = [
        _deletion(context, one, references, denied) for one in distinct if not _is_named_too(context, one, distinct)
    ]
    to_be_deleted = [answer.name for answer in answers if not answer.outcome.is_failure and answer.name is not None]
    return Decision(tuple(map(TopicDeleted, to_be_deleted)), tuple(answers))


def _refusal(name: str, count: int, denied: Collection[str]) -> Outcome:
    if count > 1:
        return Outcome(INVALID_REQUEST, "Duplicate topic name.")
    if name == METADATA_TOPIC:
        return Outcome(INVALID_REQUEST, f"Creation of internal topic {METADATA_TOPIC} is prohibited.")
    if name in denied:
        return Outcome(TOPIC_AUTHORIZATION_FAILED, "Authorization failed.")
    return DONE


def _whole_request(context: ControllerContext, topics: Iterable[WantedTopic], timeout_ms: int) -> Outcome:
    if has_expired(timeout_ms):
        return TIMED_OUT
    if sum(_asked_partitions(context, topic) for topic in topics) > MAX_PARTITIONS:
        return Outcome(POLICY_VIOLATION, "Excessively large number of partitions per request.")
    return DONE


def _asked_partitions(context: ControllerContext, topic: WantedTopic) -> int:
    if topic.assignments:
        return len(topic.assignments)
    return context.server.partition_count if topic.partition_count == BY_DEFAULT else max(0, topic.partition_count)


def _similar_names(topics: Iterable[str]) -> dict[str, str]:
    """Existing names by what metrics make of them, for which a dot is an underscore."""
    return {unified(name): name for name in topics if "." in name or "_" in name}


def _unfit(context: ControllerContext, topic: WantedTopic, similar: Mapping[str, str]) -> Outcome | None:
    """Why a topic cannot be created, whatever its partitions."""
    if topic.name in context.metadata.topics:
        return Outcome(TOPIC_ALREADY_EXISTS, f"Topic '{topic.name}' already exists.")
    other = similar.get(unified(topic.name))
    if other is not None:
        return Outcome(INVALID_TOPIC_EXCEPTION, f"Topic '{topic.name}' collides with existing topic: {other}")
    refusal = check_topic_name(topic.name)
    return refusal if refusal.is_failure else _unfit_configs(context, topic)


def _create(context: ControllerContext, topic: WantedTopic, random: Random) -> list[Record] | Outcome:
    lists = _assigned(context, topic) if topic.assignments else _placed(context, topic, random)
    if isinstance(lists, Outcome):
        return lists
    resource = ConfigResource.topic(topic.name)
    return [
        TopicCreated(topic.name, str(UUID(int=random.getrandbits(128), version=4))),
        *(ConfigChanged(resource, name, value) for name, value in dict(topic.configs).items()),
        *(created(context, TopicPartition(topic.name, index), replicas) for index, replicas in enumerate(lists)),
    ]


def _unfit_configs(context: ControllerContext, topic: WantedTopic) -> Outcome | None:
    nulls = [name for name, value in topic.configs if value is None]
    if nulls:
        return Outcome(INVALID_CONFIG, f"Null value not supported for topic configs: {','.join(nulls)}")
    own = {name: value for name, value in topic.configs if value is not None}
    fault = first_fault(own, may_be_tiered=context.may_be_tiered)
    return None if fault is None else Outcome(INVALID_CONFIG, fault)


def _assigned(context: ControllerContext, topic: WantedTopic) -> list[tuple[int, ...]] | Outcome:
    for what, count in (("replication factor", topic.replication_factor), ("numPartitions", topic.partition_count)):
        if count != BY_DEFAULT:
            text = f"A manual partition assignment was specified, but {what} was not set to -1."
            return Outcome(INVALID_REQUEST, text)
    lists: dict[int, tuple[int, ...]] = {}
    factor = None
    for index, replicas in topic.assignments:
        if index in lists:
            text = f"Found multiple manual partition assignments for partition {index}"
            return Outcome(INVALID_REPLICA_ASSIGNMENT, text)
        for refusal in (
            check_assignment(context, replicas, factor),
            check_activity(context, index, replicas),
        ):
            if refusal.is_failure:
                return refusal
        lists[index] = replicas
        factor = len(replicas)
    if sorted(lists) != list(range(len(lists))):
        text = "partitions should be a consecutive 0-based integer sequence"
        return Outcome(INVALID_REPLICA_ASSIGNMENT, text)
    return [lists[index] for index in range(len(lists))]


def _placed(context: ControllerContext, topic: WantedTopic, random: Random) -> list[tuple[int, ...]] | Outcome:
    if topic.replication_factor < BY_DEFAULT or topic.replication_factor == 0:
        text = "Replication factor must be larger than 0, or -1 to use the default value."
        return Outcome(INVALID_REPLICATION_FACTOR, text)
    if topic.partition_count < BY_DEFAULT or topic.partition_count == 0:
        return Outcome(INVALID_PARTITIONS, "Number of partitions was set to an invalid non-positive value.")
    server = context.server
    count = server.partition_count if topic.partition_count == BY_DEFAULT else topic.partition_count
    factor = server.replication_factor if topic.replication_factor == BY_DEFAULT else topic.replication_factor
    try:
        return list(place_automatically(context, count, factor, random))
    except Infeasible as reason:
        return Outcome(INVALID_REPLICATION_FACTOR, f"Unable to replicate the partition {factor} time(s): {reason}")


def _creation(topic: WantedTopic, records: list[Record]) -> TopicCreation:
    head = records[0]
    assert isinstance(head, TopicCreated)
    partitions = [record for record in records if isinstance(record, PartitionCreated)]
    configs = {name: value for name, value in topic.configs if value is not None}
    factor = len(partitions[0].replicas)
    return TopicCreation(topic.name, DONE, head.topic_id, len(partitions), factor, configs)


def _deletion(
    context: ControllerContext, one: TopicReference, references: Sequence[TopicReference], denied: Collection[str]
) -> TopicDeletion:
    refusal = _unfit_reference(one, references)
    if refusal.is_failure:
        return TopicDeletion(one.name, one.topic_id, refusal)
    name = one.name if one.topic_id is None else context.metadata.topic_names.get(one.topic_id)
    if name is None:
        return TopicDeletion(None, one.topic_id, with_default_text(UNKNOWN_TOPIC_ID))
    if name in denied:
        return TopicDeletion(one.name, one.topic_id, with_default_text(TOPIC_AUTHORIZATION_FAILED))
    topic = context.metadata.topics.get(name)
    if topic is None:
        return TopicDeletion(name, None, with_default_text(UNKNOWN_TOPIC_OR_PARTITION))
    if one.name is not None and TopicReference(topic_id=topic.topic_id) in references:
        text = "The provided topic name maps to an ID that was already supplied."
        return TopicDeletion(name, topic.topic_id, Outcome(INVALID_REQUEST, text))
    return TopicDeletion(name, topic.topic_id, DONE)


def _is_named_too(context: ControllerContext, one: TopicReference, references: Collection[TopicReference]) -> bool:
    """Whether an id belongs to a topic that is also named: the name is refused then, and the id gets no answer."""
    name = context.metadata.topic_names.get(one.topic_id) if one.topic_id is not None else None
    return one.name is None and name is not None and TopicReference(name=name) in references


def _unfit_reference(one: TopicReference, references: Sequence[TopicReference]) -> Outcome:
    if one.name is None and one.topic_id is None:
        return Outcome(INVALID_REQUEST, "Neither topic name nor id were specified.")
    if one.name is not None and one.topic_id is not None:
        return Outcome(INVALID_REQUEST, "You may not specify both topic name and topic id.")
    if references.count(one) > 1:
        return Outcome(INVALID_REQUEST, "Duplicate topic name." if one.topic_id is None else "Duplicate topic id.")
    return DONE
