"""Topics: list, describe, create, delete, grow."""

from __future__ import annotations

import uuid
from collections.abc import Container, Iterable, Mapping
from typing import NamedTuple

from kreassign.admin.call import Call, rejection
from kreassign.admin.translate.outcomes import NOT_NAMED, outcomes, readings, unanswered
from kreassign.errors import ClusterError, Rejected
from kreassign.model import Batch, NewPartitions, NewTopic, Partition, Topic, TopicPartition
from kreassign.model.error_codes import UNKNOWN_TOPIC_OR_PARTITION
from kreassign.wire import api
from kreassign.wire.api import Api, Message

PAGE_PARTITIONS = 2000  # the brokers' own limit (max.request.partition.size.limit)
_NO_TOPIC_ID = uuid.UUID(int=0)


class Cursor(NamedTuple):
    """Where the next page of DescribeTopicPartitions starts."""

    topic: str
    partition: int


class TopicPage(NamedTuple):
    """Topics of one page, a topic perhaps only in part, and where the next one starts."""

    topics: Batch[str, Topic]
    next_cursor: Cursor | None


def list_topics() -> Call[dict[str, bool]]:
    """Names of all topics that we may see, with whether each is internal."""

    def build(_version: int, _timeout_ms: int) -> Message:
        return api.METADATA.request(topics=None, allow_auto_topic_creation=False)

    def read(response: Message) -> dict[str, bool]:
        return {topic.name: bool(topic.is_internal) for topic in response.topics}

    return Call(api.METADATA, build, read)


def describe_topics_by_metadata(names: Iterable[str] | None) -> Call[Batch[str, Topic]]:
    """Topics by Metadata, for brokers without DescribeTopicPartitions; None means all."""
    wanted = None if names is None else list(names)

    def build(_version: int, _timeout_ms: int) -> Message:
        entry = api.METADATA.request.MetadataRequestTopic
        topics = None if wanted is None else [entry(topic_id=_NO_TOPIC_ID, name=name) for name in wanted]
        return api.METADATA.request(topics=topics, allow_auto_topic_creation=False)

    def read(response: Message) -> Batch[str, Topic]:
        return _topics(api.METADATA, response.topics, NOT_NAMED if wanted is None else wanted)

    return Call(api.METADATA, build, read)


def describe_topic_page(names: Iterable[str] | None, cursor: Cursor | None) -> Call[TopicPage]:
    """One page of topics by DescribeTopicPartitions (KIP-966); None means all topics."""
    wanted = sorted(set(names)) if names is not None else []

    def build(_version: int, _timeout_ms: int) -> Message:
        request = api.DESCRIBE_TOPIC_PARTITIONS.request
        return request(
            topics=[request.TopicRequest(name=name) for name in wanted],
            response_partition_limit=PAGE_PARTITIONS,
            cursor=request.Cursor(topic_name=cursor.topic, partition_index=cursor.partition) if cursor else None,
        )

    def read(response: Message) -> TopicPage:
        following = response.next_cursor
        return TopicPage(
            _topics(api.DESCRIBE_TOPIC_PARTITIONS, response.topics, NOT_NAMED),
            Cursor(following.topic_name, following.partition_index) if following is not None else None,
        )

    return Call(api.DESCRIBE_TOPIC_PARTITIONS, build, read)


def missing_from_pages(names: Iterable[str], told: Container[str]) -> dict[str, ClusterError]:
    """A broken answer as the outcome of every topic that was named, and that none of all its pages was about."""
    return unanswered(api.DESCRIBE_TOPIC_PARTITIONS, names, told)


def _topics(answering: Api, entries: Iterable[Message], asked: Iterable[str]) -> Batch[str, Topic]:
    return readings(answering, ((entry.name, entry) for entry in entries), _topic, asked)


def _topic(_name: str, entry: Message) -> Topic:
    topic_id = entry.topic_id if isinstance(entry.topic_id, uuid.UUID) and entry.topic_id != _NO_TOPIC_ID else None
    partitions = sorted(entry.partitions, key=lambda partition: partition.partition_index)
    return Topic(
        name=entry.name,
        topic_id=None if topic_id is None else str(topic_id),
        is_internal=bool(entry.is_internal),
        partitions=tuple(_partition(entry.name, partition) for partition in partitions),
    )


def _partition(topic: str, entry: Message) -> Partition:
    # Metadata has no eligible leaders; kafka-python then answers with the field's default, None.
    eligible = getattr(entry, "eligible_leader_replicas", None)
    last_known = getattr(entry, "last_known_elr", None)
    replicas, isr = tuple(entry.replica_nodes), tuple(entry.isr_nodes)
    return Partition(
        topic_partition=TopicPartition(topic, entry.partition_index),
        replicas=replicas,
        isr=replicas if isr == replicas else isr,  # one tuple, not two, of each of a million partitions
        leader=entry.leader_id,
        leader_epoch=entry.leader_epoch,
        offline=tuple(entry.offline_replicas or ()),
        eligible_leaders=None if eligible is None else tuple(eligible),
        last_known_eligible_leaders=None if last_known is None else tuple(last_known),
    )


def unknown_partition(topic_partition: TopicPartition) -> Rejected:
    """The error for a partition that its topic does not have."""
    message = f"topic {topic_partition.topic} has no partition {topic_partition.partition}"
    return rejection(api.METADATA, UNKNOWN_TOPIC_OR_PARTITION, message, topic_partition)


def create_topics(topics: Iterable[NewTopic], *, validate_only: bool) -> Call[Batch[str, None]]:
    """CreateTopics, an outcome per name."""
    wanted = list(topics)

    def build(_version: int, timeout_ms: int) -> Message:
        entries = [_new_topic(topic) for topic in wanted]
        return api.CREATE_TOPICS.request(topics=entries, timeout_ms=timeout_ms, validate_only=validate_only)

    def read(response: Message) -> Batch[str, None]:
        answered = ((topic.name, topic.error_code, topic.error_message) for topic in response.topics)
        return outcomes(api.CREATE_TOPICS, answered, (topic.name for topic in wanted))

    return Call(
        api.CREATE_TOPICS,
        build,
        read,
        is_write=True,
        routing_codes=lambda response: [topic.error_code for topic in response.topics],
    )


def _new_topic(topic: NewTopic) -> Message:
    entry = api.CREATE_TOPICS.request.CreatableTopic
    return entry(
        name=topic.name,
        num_partitions=topic.partition_count,
        replication_factor=topic.replication_factor,
        assignments=[
            entry.CreatableReplicaAssignment(partition_index=partition, broker_ids=list(replicas))
            for partition, replicas in enumerate(topic.assignments)
        ],
        configs=[entry.CreatableTopicConfig(name=name, value=value) for name, value in topic.configs.items()],
    )


def delete_topics(names: Iterable[str]) -> Call[Batch[str, None]]:
    """DeleteTopics, an outcome per name."""
    wanted = list(names)

    def build(_version: int, timeout_ms: int) -> Message:
        entry = api.DELETE_TOPICS.request.DeleteTopicState
        topics = [entry(name=name, topic_id=_NO_TOPIC_ID) for name in wanted]
        return api.DELETE_TOPICS.request(topics=topics, timeout_ms=timeout_ms)

    def read(response: Message) -> Batch[str, None]:
        answered = ((topic.name, topic.error_code, topic.error_message) for topic in response.responses)
        return outcomes(api.DELETE_TOPICS, answered, wanted)

    return Call(
        api.DELETE_TOPICS,
        build,
        read,
        is_write=True,
        routing_codes=lambda response: [topic.error_code for topic in response.responses],
    )


def create_partitions(requested: Mapping[str, NewPartitions], *, validate_only: bool) -> Call[Batch[str, None]]:
    """CreatePartitions, an outcome per topic."""

    def build(_version: int, timeout_ms: int) -> Message:
        entries = [_new_partitions(topic, new) for topic, new in requested.items()]
        return api.CREATE_PARTITIONS.request(topics=entries, timeout_ms=timeout_ms, validate_only=validate_only)

    def read(response: Message) -> Batch[str, None]:
        answered = ((topic.name, topic.error_code, topic.error_message) for topic in response.results)
        return outcomes(api.CREATE_PARTITIONS, answered, requested)

    return Call(
        api.CREATE_PARTITIONS,
        build,
        read,
        is_write=True,
        routing_codes=lambda response: [topic.error_code for topic in response.results],
    )


def _new_partitions(topic: str, new: NewPartitions) -> Message:
    entry = api.CREATE_PARTITIONS.request.CreatePartitionsTopic
    assignment = entry.CreatePartitionsAssignment
    assignments = [assignment(broker_ids=list(replicas)) for replicas in new.assignments]
    return entry(name=topic, count=new.total_count, assignments=assignments or None)
