"""Create and delete topics and add partitions, also while their partitions move.

New partitions go where the request lists brokers, which is validated, or where the striped placer of the KRaft
controller puts them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from random import Random
from uuid import UUID

from kreassign.errors import Infeasible
from kreassign.model import ConfigResource, TopicPartition, error_codes
from kreassign.model.cluster import unified_name
from kreassign.model.striped import UsableBroker, place
from kreassign.model.topic_changes import unfit_assignment, unfit_count
from kreassign.twin import metadata
from kreassign.twin.controller.config_keys import first_fault
from kreassign.twin.controller.decision import (
    DONE,
    FAILED,
    MAX_RECORDS,
    TIMED_OUT,
    TOO_LARGE,
    CompletionRule,
    ControllerContext,
    Decision,
    Outcome,
    default_directory,
    has_expired,
    with_default_text,
)

# Legal names of topics.

MAX_NAME_LENGTH = 249
_LEGAL_NAME = re.compile(r"[a-zA-Z0-9._-]*")


def check_topic_name(name: str) -> Outcome:
    """Validate a topic name."""
    if not name:
        reason = "the empty string is not allowed"
    elif name in (".", ".."):
        reason = f"'{name}' is not allowed"
    elif len(name) > MAX_NAME_LENGTH:
        reason = f"the length of '{name}' is longer than the max allowed length {MAX_NAME_LENGTH}"
    elif not _LEGAL_NAME.fullmatch(name):
        reason = f"'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
    else:
        return DONE
    return Outcome(error_codes.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {reason}")


# Placement of new partitions: validation of given lists, and the striped placer for the rest.


def check_assignment(
    context: ControllerContext, replicas: tuple[int, ...], required_count: int | None = None
) -> Outcome:
    """Validate a given replica list. Fenced brokers are allowed; unregistered brokers are not.

    From Kafka 4.4 nor are brokers that receive nothing new, although they may have a replica of the partition already.
    """
    cordoned: Collection[int] = ()
    if context.rules.cordons_bind:
        brokers = (context.metadata.brokers.get(broker_id) for broker_id in replicas)
        cordoned = {broker.broker_id for broker in brokers if broker is not None and _is_cordoned(context, broker)}
    unfit = unfit_assignment(replicas, context.metadata.brokers, cordoned)
    if unfit is not None:
        return Outcome(error_codes.INVALID_REPLICA_ASSIGNMENT, unfit)
    if required_count not in (None, len(replicas)):
        text = (
            f"The manual partition assignment includes a partition with {len(replicas)} replica(s), but this is not "
            f"consistent with previous partitions, which have {required_count} replica(s)."
        )
        return Outcome(error_codes.INVALID_REPLICA_ASSIGNMENT, text)
    return DONE


def check_activity(context: ControllerContext, partition: int, replicas: tuple[int, ...]) -> Outcome:
    """Refuse a given list for a new partition if no broker on it is active."""
    if any(map(context.metadata.is_active, replicas)):
        return DONE
    return Outcome(
        error_codes.INVALID_REPLICA_ASSIGNMENT,
        f"All brokers specified in the manual partition assignment for partition {partition} "
        "are fenced or in controlled shutdown.",
    )


def place_automatically(
    context: ControllerContext, partition_count: int, replication_factor: int, random: Random
) -> tuple[tuple[int, ...], ...]:
    """Replica lists from the striped placer; raises `Infeasible` in Kafka's words if it cannot place them."""
    try:
        return place(usable_brokers(context), partition_count, replication_factor, random)
    except Infeasible as reason:
        raise Infeasible(_in_words_of_release(context, str(reason))) from None


def usable_brokers(context: ControllerContext) -> tuple[UsableBroker, ...]:
    """The brokers for the placer: not shutting down, and with a directory that is not cordoned.

    A broker that has shut down is one of those that are down: they get replicas where there are too few others.
    """
    return tuple(
        UsableBroker(broker.broker_id, broker.rack, broker.fenced)
        for broker in context.metadata.brokers.values()
        if (broker.fenced or not broker.shutting_down)
        and not _is_cordoned(context, broker)
        and (context.rules.places_on_absent or not broker.fenced)
    )


def created_partition(
    context: ControllerContext, topic_partition: TopicPartition, replicas: tuple[int, ...]
) -> metadata.PartitionCreated:
    """The record of a new partition: active replicas are in sync, and the first of them leads."""
    isr = tuple(filter(context.metadata.is_active, replicas))
    directories = tuple(default_directory(context.metadata, broker_id) for broker_id in replicas)
    return metadata.PartitionCreated(topic_partition, replicas, isr, isr[0], 0, 0, directories)


def _is_cordoned(context: ControllerContext, broker: metadata.BrokerState) -> bool:
    """True if every working directory of a broker is cordoned; the controller forgets those that fail."""
    if not context.rules.has_cordoning:
        return False
    cordoned = metadata.cordoned_paths(broker.cordon)
    paths = {log_dir.path for log_dir in broker.log_dirs if log_dir.directory_id not in broker.failed_dirs}
    return bool(paths) and ("*" in cordoned or cordoned >= paths)


def _in_words_of_release(context: ControllerContext, text: str) -> str:
    if context.rules.has_cordoning:
        return text
    for addition in (
        ", or have all their log directories cordoned",
        " or some brokers have all their log directories cordoned",
    ):
        text = text.replace(addition, "")
    return text


# CreateTopics and DeleteTopics.

BY_DEFAULT = -1
"""Count that means the server's default."""
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
    """The outcome of one topic, with its properties if it was created. `configs` are its own settings."""

    name: str
    outcome: Outcome
    topic_id: str | None = None
    partition_count: int = BY_DEFAULT
    replication_factor: int = BY_DEFAULT
    configs: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TopicReference:
    """A topic to delete, by name or by id."""

    name: str | None = None
    topic_id: str | None = None


@dataclass(frozen=True, slots=True)
class TopicDeletion:
    """The outcome of one topic to delete, with its name and id as far as known."""

    name: str | None
    topic_id: str | None
    outcome: Outcome


def create_topics(
    context: ControllerContext, command: CreateTopics, random: Random
) -> Decision[tuple[TopicCreation, ...]]:
    """Create the valid topics; `random` draws topic ids and the placement of replicas that were not placed by hand."""
    names = Counter(topic.name for topic in command.topics)
    refusals = {name: _creation_refusal(name, count, command.denied) for name, count in names.items()}
    allowed = [topic for topic in command.topics if not refusals[topic.name].is_failure]
    whole = _whole_request(context, allowed, command.timeout_ms)
    if whole.is_failure:
        return Decision((), tuple(TopicCreation(name, whole) for name in names))
    records: list[metadata.Record] = []
    answers = []
    # By names in metrics, which have dots as underscores.
    similar = {unified_name(name): name for name in context.metadata.topics if "." in name or "_" in name}
    for topic in allowed:
        result = _unfit_topic(context, topic, similar) or _create_topic(context, topic, random)
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
    """Delete topics at once, with the moves of their partitions. The client may not delete `denied` topics."""
    if has_expired(timeout_ms):
        return Decision((), tuple(TopicDeletion(one.name, one.topic_id, TIMED_OUT) for one in references))
    distinct = dict.fromkeys(references)
    answers = [
        _deletion(context, one, references, denied) for one in distinct if not _is_named_too(context, one, distinct)
    ]
    to_be_deleted = [answer.name for answer in answers if not answer.outcome.is_failure and answer.name is not None]
    return Decision(tuple(map(metadata.TopicDeleted, to_be_deleted)), tuple(answers))


def _creation_refusal(name: str, count: int, denied: Collection[str]) -> Outcome:
    if count > 1:
        return Outcome(error_codes.INVALID_REQUEST, "Duplicate topic name.")
    if name == METADATA_TOPIC:
        return Outcome(error_codes.INVALID_REQUEST, f"Creation of internal topic {METADATA_TOPIC} is prohibited.")
    if name in denied:
        return Outcome(error_codes.TOPIC_AUTHORIZATION_FAILED, "Authorization failed.")
    return DONE


def _whole_request(context: ControllerContext, topics: Iterable[WantedTopic], timeout_ms: int) -> Outcome:
    if has_expired(timeout_ms):
        return TIMED_OUT
    if sum(_asked_partitions(context, topic) for topic in topics) > MAX_PARTITIONS:
        return Outcome(error_codes.POLICY_VIOLATION, "Excessively large number of partitions per request.")
    return DONE


def _asked_partitions(context: ControllerContext, topic: WantedTopic) -> int:
    if topic.assignments:
        return len(topic.assignments)
    return context.server.partition_count if topic.partition_count == BY_DEFAULT else max(0, topic.partition_count)


def _unfit_topic(context: ControllerContext, topic: WantedTopic, similar: Mapping[str, str]) -> Outcome | None:
    """The reason why a topic cannot be created, apart from its partitions; None if there is none."""
    if topic.name in context.metadata.topics:
        return Outcome(error_codes.TOPIC_ALREADY_EXISTS, f"Topic '{topic.name}' already exists.")
    other = similar.get(unified_name(topic.name))
    if other is not None:
        return Outcome(
            error_codes.INVALID_TOPIC_EXCEPTION, f"Topic '{topic.name}' collides with existing topic: {other}"
        )
    refusal = check_topic_name(topic.name)
    return refusal if refusal.is_failure else _unfit_configs(context, topic)


def _create_topic(context: ControllerContext, topic: WantedTopic, random: Random) -> list[metadata.Record] | Outcome:
    lists = _assigned(context, topic) if topic.assignments else _placed(context, topic, random)
    if isinstance(lists, Outcome):
        return lists
    resource = ConfigResource.topic(topic.name)
    return [
        metadata.TopicCreated(topic.name, str(UUID(int=random.getrandbits(128), version=4))),
        *(metadata.ConfigChanged(resource, name, value) for name, value in dict(topic.configs).items()),
        *(
            created_partition(context, TopicPartition(topic.name, index), replicas)
            for index, replicas in enumerate(lists)
        ),
    ]


def _unfit_configs(context: ControllerContext, topic: WantedTopic) -> Outcome | None:
    nulls = [name for name, value in topic.configs if value is None]
    if nulls:
        return Outcome(error_codes.INVALID_CONFIG, f"Null value not supported for topic configs: {','.join(nulls)}")
    own = {name: value for name, value in topic.configs if value is not None}
    fault = first_fault(own, may_be_tiered=context.may_be_tiered)
    return None if fault is None else Outcome(error_codes.INVALID_CONFIG, fault)


def _assigned(context: ControllerContext, topic: WantedTopic) -> list[tuple[int, ...]] | Outcome:
    for what, count in (("replication factor", topic.replication_factor), ("numPartitions", topic.partition_count)):
        if count != BY_DEFAULT:
            text = f"A manual partition assignment was specified, but {what} was not set to -1."
            return Outcome(error_codes.INVALID_REQUEST, text)
    lists: dict[int, tuple[int, ...]] = {}
    factor = None
    for index, replicas in topic.assignments:
        if index in lists:
            text = f"Found multiple manual partition assignments for partition {index}"
            return Outcome(error_codes.INVALID_REPLICA_ASSIGNMENT, text)
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
        return Outcome(error_codes.INVALID_REPLICA_ASSIGNMENT, text)
    return [lists[index] for index in range(len(lists))]


def _placed(context: ControllerContext, topic: WantedTopic, random: Random) -> list[tuple[int, ...]] | Outcome:
    if topic.replication_factor < BY_DEFAULT or topic.replication_factor == 0:
        text = "Replication factor must be larger than 0, or -1 to use the default value."
        return Outcome(error_codes.INVALID_REPLICATION_FACTOR, text)
    if topic.partition_count < BY_DEFAULT or topic.partition_count == 0:
        return Outcome(error_codes.INVALID_PARTITIONS, "Number of partitions was set to an invalid non-positive value.")
    server = context.server
    count = server.partition_count if topic.partition_count == BY_DEFAULT else topic.partition_count
    factor = server.replication_factor if topic.replication_factor == BY_DEFAULT else topic.replication_factor
    try:
        return list(place_automatically(context, count, factor, random))
    except Infeasible as reason:
        return Outcome(
            error_codes.INVALID_REPLICATION_FACTOR, f"Unable to replicate the partition {factor} time(s): {reason}"
        )


def _creation(topic: WantedTopic, records: list[metadata.Record]) -> TopicCreation:
    head = records[0]
    assert isinstance(head, metadata.TopicCreated)
    partitions = [record for record in records if isinstance(record, metadata.PartitionCreated)]
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
        return TopicDeletion(None, one.topic_id, with_default_text(error_codes.UNKNOWN_TOPIC_ID))
    if name in denied:
        return TopicDeletion(one.name, one.topic_id, with_default_text(error_codes.TOPIC_AUTHORIZATION_FAILED))
    topic = context.metadata.topics.get(name)
    if topic is None:
        return TopicDeletion(name, None, with_default_text(error_codes.UNKNOWN_TOPIC_OR_PARTITION))
    if one.name is not None and TopicReference(topic_id=topic.topic_id) in references:
        text = "The provided topic name maps to an ID that was already supplied."
        return TopicDeletion(name, topic.topic_id, Outcome(error_codes.INVALID_REQUEST, text))
    return TopicDeletion(name, topic.topic_id, DONE)


def _is_named_too(context: ControllerContext, one: TopicReference, references: Collection[TopicReference]) -> bool:
    """True if the topic of an id is also named: the name is refused then, and the id gets no answer."""
    name = context.metadata.topic_names.get(one.topic_id) if one.topic_id is not None else None
    return one.name is None and name is not None and TopicReference(name=name) in references


def _unfit_reference(one: TopicReference, references: Sequence[TopicReference]) -> Outcome:
    if one.name is None and one.topic_id is None:
        return Outcome(error_codes.INVALID_REQUEST, "Neither topic name nor id were specified.")
    if one.name is not None and one.topic_id is not None:
        return Outcome(error_codes.INVALID_REQUEST, "You may not specify both topic name and topic id.")
    if references.count(one) > 1:
        return Outcome(
            error_codes.INVALID_REQUEST, "Duplicate topic name." if one.topic_id is None else "Duplicate topic id."
        )
    return DONE


# CreatePartitions.

_FIBONACCI = 2**64 - 7_046_029_254_386_353_131
"""Multiplier of hash codes in the controller's tables: 2^64 divided by the golden ratio."""


@dataclass(frozen=True, slots=True)
class MorePartitions:
    """The requested total of partitions, and replica lists of the new ones unless the cluster chooses."""

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
    """Add partitions to the valid topics. The answer has the duplicate names first, then the others."""
    if has_expired(command.timeout_ms):
        return Decision((), tuple((wanted.topic, TIMED_OUT) for wanted in command.topics))
    counts = Counter(wanted.topic for wanted in command.topics)
    twice = [name for name, count in counts.items() if count > 1]
    records: list[metadata.PartitionCreated] = []
    answers = [(name, Outcome(error_codes.INVALID_REQUEST, "Duplicate topic name.")) for name in twice]
    for wanted in command.topics:
        if wanted.topic in twice:
            continue
        result = _more_partitions(context, wanted, random)
        if isinstance(result, Outcome):
            answers.append((wanted.topic, result))
        else:
            # Partitions under the limit are created, although the answer for the topic is a failure.
            created = list(islice(result, MAX_RECORDS - len(records)))
            records += created
            answers.append((wanted.topic, DONE if len(created) == len(result) else FAILED))
    return Decision(() if command.validate_only else tuple(records), tuple(answers))


def _more_partitions(
    context: ControllerContext, wanted: MorePartitions, random: Random
) -> list[metadata.PartitionCreated] | Outcome:
    topic = context.metadata.topics.get(wanted.topic)
    if topic is None:
        return Outcome(error_codes.UNKNOWN_TOPIC_OR_PARTITION)
    moving = any(partition.is_reassigning for partition in topic.partitions.values())
    if moving and context.rules.completion is CompletionRule.BY_PHASES:
        text = f"A partition reassignment is in progress for the topic '{wanted.topic}'."
        return Outcome(error_codes.REASSIGNMENT_IN_PROGRESS, text)
    refusal = _unfit_count(wanted, len(topic.partitions))
    if refusal.is_failure:
        return refusal
    lists = _new_lists(context, topic, wanted, random)
    if isinstance(lists, Outcome):
        return lists
    first = len(topic.partitions)
    return [
        created_partition(context, TopicPartition(topic.name, first + number), replicas)
        for number, replicas in enumerate(lists)
    ]


def _unfit_count(wanted: MorePartitions, present: int) -> Outcome:
    unfit = unfit_count(wanted.topic, present, wanted.total_count)
    if unfit is not None:
        return Outcome(error_codes.INVALID_PARTITIONS, unfit)
    more = wanted.total_count - present
    if wanted.assignments is not None and len(wanted.assignments) != more:
        text = (
            f"Attempted to add {more} additional partition(s), "
            f"but only {len(wanted.assignments)} assignment(s) were specified."
        )
        return Outcome(error_codes.INVALID_REPLICA_ASSIGNMENT, text)
    return DONE


def _new_lists(
    context: ControllerContext, topic: metadata.TopicState, wanted: MorePartitions, random: Random
) -> tuple[tuple[int, ...], ...] | Outcome:
    """Replica lists as long as that of one partition, including its adding and removing replicas."""
    present = len(topic.partitions)
    factor = len(topic.partitions[_model_for_new_ones(present)].replicas)
    if wanted.assignments is None:
        try:
            # One more than can be created shows that there are too many; placing 2³¹ of them would take forever.
            more = min(wanted.total_count - present, MAX_RECORDS + 1)
            return place_automatically(context, more, factor, random)
        except Infeasible as reason:
            return Outcome(error_codes.INVALID_REPLICATION_FACTOR, str(reason))
    for number, replicas in enumerate(wanted.assignments):
        refusal = check_assignment(context, replicas, factor)
        if not refusal.is_failure:
            refusal = check_activity(context, present + number, replicas)
        if refusal.is_failure:
            return refusal
    return wanted.assignments


def _model_for_new_ones(present: int) -> int:
    """The partition whose replicas are counted: the first in iteration order of Kafka's hash table of partitions.

    The table has a power of two of slots, doubled when another partition would make it more than four on three slots;
    the highest bits of a product choose the slot (Knuth's multiplicative hashing). Among the partitions in one slot the
    last comes first. Partition 0 is in slot 0, so the answer is the last that shares it: 2 of three.
    """
    slots = 2
    while 3 * (present + 1) > 4 * slots:
        slots *= 2
    shift = 65 - slots.bit_length()
    return next(number for number in reversed(range(present)) if (number * _FIBONACCI % 2**64) >> shift == 0)
