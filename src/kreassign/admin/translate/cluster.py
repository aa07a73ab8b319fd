"""Calls about a cluster: its nodes, its topics, and their configurations.

Metadata, DescribeCluster, UnregisterBroker; DescribeTopicPartitions (KIP-966), CreateTopics, DeleteTopics,
CreatePartitions; DescribeConfigs, IncrementalAlterConfigs (KIP-339).
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Container, Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from kreassign import __version__, model
from kreassign.admin.call import NOT_NAMED, Call, either, outcomes, raise_if_failed, readings, rejection, unanswered
from kreassign.errors import ClusterError, ProtocolViolation, Rejected, Unsupported
from kreassign.model.error_codes import UNKNOWN_TOPIC_OR_PARTITION, has_code
from kreassign.wire import api
from kreassign.wire.api import Api, Message

Key = TypeVar("Key", bound=Hashable)

# Nodes: Metadata, DescribeCluster and UnregisterBroker.

_BROKERS, _CONTROLLERS = 1, 2  # EndpointType of DescribeCluster (KIP-919)
_ENDPOINT_TYPE_VERSION = 1
_FENCED_VERSION = 2


def nodes() -> Call[model.Cluster]:
    """Brokers and controller id, from any broker's metadata, without topics."""

    def build(_version: int, _timeout_ms: int) -> Message:
        return api.METADATA.request(topics=[], allow_auto_topic_creation=False)

    def read(response: Message) -> model.Cluster:
        brokers = (_broker(node.node_id, node) for node in response.brokers)
        return model.Cluster(
            response.cluster_id or "", response.controller_id, tuple(sorted(brokers, key=_brokers_by_id))
        )

    return Call(api.METADATA, build, read, is_doubtful=_without_brokers)


def _broker(broker: int, node: Message, *, is_fenced: bool = False) -> model.Broker:
    """Read a node. Raises ValueError without a host: clients could not connect to it, or would to this machine."""
    if not node.host:
        raise ValueError(f"node {broker} has no host")
    return model.Broker(broker, node.host, node.port, node.rack, is_fenced)


def describe_cluster(*, include_fenced: bool = False) -> Call[model.Cluster]:
    """Brokers and controller id by DescribeCluster; fenced brokers only from Kafka 4.0 on."""
    return _describe_cluster(_BROKERS, include_fenced=include_fenced)


def controller_nodes() -> Call[model.Cluster]:
    """The controllers of the quorum and the active one, asked at a controller (KIP-919)."""
    return _describe_cluster(_CONTROLLERS, include_fenced=False)


def has_quorum() -> Call[bool]:
    """True if the cluster keeps its metadata in a quorum, not in ZooKeeper: only then it can describe one."""

    def read(response: Message) -> bool:
        raise_if_failed(api.API_VERSIONS, response.error_code)
        return any(offer.api_key == api.DESCRIBE_QUORUM.key for offer in response.api_keys)

    return Call(api.API_VERSIONS, _ask_for_versions, read)


def offered_versions() -> Call[frozenset[tuple[str, int, int]]]:
    """APIs and features that a broker offers, each with its first and last version."""

    def read(response: Message) -> frozenset[tuple[str, int, int]]:
        raise_if_failed(api.API_VERSIONS, response.error_code)
        apis = ((f"api {offer.api_key}", offer.min_version, offer.max_version) for offer in response.api_keys)
        features = ((one.name, one.min_version, one.max_version) for one in response.supported_features or ())
        return frozenset((*apis, *features))

    return Call(api.API_VERSIONS, _ask_for_versions, read)


def _ask_for_versions(_version: int, _timeout_ms: int) -> Message:
    return api.API_VERSIONS.request(client_software_name="kreassign", client_software_version=__version__)


def allowed_on_cluster() -> Call[frozenset[str] | None]:
    """The operations that this client is allowed on the cluster; None if unreported."""

    def build(_version: int, _timeout_ms: int) -> Message:
        return api.DESCRIBE_CLUSTER.request(include_cluster_authorized_operations=True, endpoint_type=_BROKERS)

    def read(response: Message) -> frozenset[str] | None:
        raise_if_failed(api.DESCRIBE_CLUSTER, response.error_code, response.error_message)
        found = response.authorized_operations
        return None if found is None else model.operation_names(found)

    return Call(api.DESCRIBE_CLUSTER, build, read)


def allowed_on_topics() -> Call[dict[str, frozenset[str]]]:
    """The operations that this client is allowed on each visible topic."""

    def build(_version: int, _timeout_ms: int) -> Message:
        return api.METADATA.request(
            topics=None, allow_auto_topic_creation=False, include_topic_authorized_operations=True
        )

    def read(response: Message) -> dict[str, frozenset[str]]:
        told = {topic.name: topic.authorized_operations for topic in response.topics if not topic.error_code}
        return {name: model.operation_names(found) for name, found in told.items() if found is not None}

    return Call(api.METADATA, build, read)


def unregister_broker(broker: int) -> Call[None]:
    """Unregister a broker from a KRaft cluster for good."""

    def build(_version: int, _timeout_ms: int) -> Message:
        return api.UNREGISTER_BROKER.request(broker_id=broker)

    def read(response: Message) -> None:
        raise_if_failed(api.UNREGISTER_BROKER, response.error_code, response.error_message)

    return Call(api.UNREGISTER_BROKER, build, read, is_write=True, routing_codes=lambda answer: (answer.error_code,))


def _describe_cluster(endpoint_type: int, *, include_fenced: bool) -> Call[model.Cluster]:
    def build(version: int, _timeout_ms: int) -> Message:
        if endpoint_type == _CONTROLLERS and version < _ENDPOINT_TYPE_VERSION:
            raise Unsupported("this node does not list controllers (DescribeCluster version 1 does); is it a broker?")
        if include_fenced and version < _FENCED_VERSION:
            raise Unsupported("this cluster cannot list fenced brokers (DescribeCluster version 2, Kafka 4.0)")
        return api.DESCRIBE_CLUSTER.request(endpoint_type=endpoint_type, include_fenced_brokers=include_fenced)

    def read(response: Message) -> model.Cluster:
        raise_if_failed(api.DESCRIBE_CLUSTER, response.error_code, response.error_message)
        brokers = (_broker(node.broker_id, node, is_fenced=bool(node.is_fenced)) for node in response.brokers)
        return model.Cluster(response.cluster_id, response.controller_id, tuple(sorted(brokers, key=_brokers_by_id)))

    return Call(api.DESCRIBE_CLUSTER, build, read, is_doubtful=_without_brokers)


def _without_brokers(cluster: model.Cluster) -> bool:
    return not cluster.brokers


def _brokers_by_id(broker: model.Broker) -> int:
    return broker.id


# Topics: list, describe, create, delete, grow.

PAGE_PARTITIONS = 2000  # the brokers' own limit (max.request.partition.size.limit)
_NO_TOPIC_ID = uuid.UUID(int=0)


class Cursor(NamedTuple):
    """The start of the next page of DescribeTopicPartitions."""

    topic: str
    partition: int


class TopicPage(NamedTuple):
    """Topics of one page, the last perhaps only in part, and the start of the next page."""

    topics: model.Batch[str, model.Topic]
    next_cursor: Cursor | None


def list_topics() -> Call[dict[str, bool]]:
    """All visible topics by name, with whether each is internal."""

    def build(_version: int, _timeout_ms: int) -> Message:
        return api.METADATA.request(topics=None, allow_auto_topic_creation=False)

    def read(response: Message) -> dict[str, bool]:
        return {topic.name: bool(topic.is_internal) for topic in response.topics}

    return Call(api.METADATA, build, read, is_doubtful=lambda topics: not topics)


def describe_topics_by_metadata(names: Iterable[str] | None) -> Call[model.Batch[str, model.Topic]]:
    """Topics by Metadata, for brokers without DescribeTopicPartitions; None means all."""
    wanted = None if names is None else list(names)

    def build(_version: int, _timeout_ms: int) -> Message:
        entry = api.METADATA.request.MetadataRequestTopic
        topics = None if wanted is None else [entry(topic_id=_NO_TOPIC_ID, name=name) for name in wanted]
        return api.METADATA.request(topics=topics, allow_auto_topic_creation=False)

    def read(response: Message) -> model.Batch[str, model.Topic]:
        return _topics(api.METADATA, response.topics, NOT_NAMED if wanted is None else wanted)

    return Call(api.METADATA, build, read, is_doubtful=_lacks_topics, join=either)


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

    return Call(
        api.DESCRIBE_TOPIC_PARTITIONS, build, read, is_doubtful=lambda page: _lacks_topics(page.topics), join=_joined
    )


def page_without_end(cursor: Cursor) -> ProtocolViolation:
    """Error for a page that is followed by itself, or by one before it."""
    text = f"the answer to {api.DESCRIBE_TOPIC_PARTITIONS} goes on at {cursor.topic}-{cursor.partition}, where it began"
    return ProtocolViolation(f"{text}, or before", api=api.DESCRIBE_TOPIC_PARTITIONS.name)


def missing_from_pages(names: Iterable[str], told: Container[str]) -> dict[str, ClusterError]:
    """A ProtocolViolation for every requested topic that no page has."""
    return unanswered(api.DESCRIBE_TOPIC_PARTITIONS, names, told)


def _topics(answering: Api, entries: Iterable[Message], asked: Iterable[str]) -> model.Batch[str, model.Topic]:
    return readings(answering, ((entry.name, entry) for entry in entries), _topic, asked)


def _lacks_topics(topics: model.Batch[str, model.Topic]) -> bool:
    """True if a topic that was asked for is not there, or there is none at all."""
    return _names_unknown(topics) or not (topics.ok or topics.failed)


def _joined(first: TopicPage, second: TopicPage) -> TopicPage:
    return TopicPage(either(first.topics, second.topics), (first if first.topics.ok else second).next_cursor)


def _names_unknown(answers: model.Batch[Any, Any]) -> bool:
    return any(has_code(error, UNKNOWN_TOPIC_OR_PARTITION) for error in answers.failed.values())


def _topic(_name: str, entry: Message) -> model.Topic:
    topic_id = entry.topic_id if isinstance(entry.topic_id, uuid.UUID) and entry.topic_id != _NO_TOPIC_ID else None
    partitions = sorted(entry.partitions, key=lambda partition: partition.partition_index)
    return model.Topic(
        name=entry.name,
        topic_id=None if topic_id is None else str(topic_id),
        is_internal=bool(entry.is_internal),
        partitions=tuple(_partition(entry.name, partition) for partition in partitions),
    )


def _partition(topic: str, entry: Message) -> model.Partition:
    # Metadata has no eligible leaders; kafka-python then answers with the field's default, None.
    eligible = getattr(entry, "eligible_leader_replicas", None)
    last_known = getattr(entry, "last_known_elr", None)
    replicas, isr = tuple(entry.replica_nodes), tuple(entry.isr_nodes)
    return model.Partition(
        topic_partition=model.TopicPartition(topic, entry.partition_index),
        replicas=replicas,
        isr=replicas if isr == replicas else isr,  # one tuple, not two, for each of a million partitions
        leader=entry.leader_id,
        leader_epoch=entry.leader_epoch,
        offline=tuple(entry.offline_replicas or ()),
        eligible_leaders=None if eligible is None else tuple(eligible),
        last_known_eligible_leaders=None if last_known is None else tuple(last_known),
    )


def unknown_partition(topic_partition: model.TopicPartition) -> Rejected:
    """The error for a partition that its topic does not have."""
    message = f"topic {topic_partition.topic} has no partition {topic_partition.partition}"
    return rejection(api.METADATA, UNKNOWN_TOPIC_OR_PARTITION, message, topic_partition)


def _change(
    known: Api,
    build: Callable[[int, int], Message],
    entries: Callable[[Message], Sequence[Message]],
    key: Callable[[Message], Key],
    asked: Collection[Key],
) -> Call[model.Batch[Key, None]]:
    """A change with an outcome per item; any of them may say that the node is not the controller."""

    def read(response: Message) -> model.Batch[Key, None]:
        return outcomes(known, ((key(one), one.error_code, one.error_message) for one in entries(response)), asked)

    return Call(
        known, build, read, is_write=True, routing_codes=lambda response: [one.error_code for one in entries(response)]
    )


def _name_of(topic: Message) -> str:
    name: str = topic.name
    return name


def create_topics(topics: Iterable[model.NewTopic], *, validate_only: bool) -> Call[model.Batch[str, None]]:
    """CreateTopics, an outcome per name."""
    wanted = list(topics)

    def build(_version: int, timeout_ms: int) -> Message:
        entries = [_new_topic(topic) for topic in wanted]
        return api.CREATE_TOPICS.request(topics=entries, timeout_ms=timeout_ms, validate_only=validate_only)

    names = [topic.name for topic in wanted]
    return _change(api.CREATE_TOPICS, build, lambda response: response.topics, _name_of, names)


def _new_topic(topic: model.NewTopic) -> Message:
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


def delete_topics(names: Iterable[str]) -> Call[model.Batch[str, None]]:
    """DeleteTopics, an outcome per name."""
    wanted = list(names)

    def build(_version: int, timeout_ms: int) -> Message:
        entry = api.DELETE_TOPICS.request.DeleteTopicState
        topics = [entry(name=name, topic_id=_NO_TOPIC_ID) for name in wanted]
        return api.DELETE_TOPICS.request(topics=topics, timeout_ms=timeout_ms)

    return _change(api.DELETE_TOPICS, build, lambda response: response.responses, _name_of, wanted)


def create_partitions(
    requested: Mapping[str, model.NewPartitions], *, validate_only: bool
) -> Call[model.Batch[str, None]]:
    """CreatePartitions, an outcome per topic."""

    def build(_version: int, timeout_ms: int) -> Message:
        entries = [_new_partitions(topic, new) for topic, new in requested.items()]
        return api.CREATE_PARTITIONS.request(topics=entries, timeout_ms=timeout_ms, validate_only=validate_only)

    return _change(api.CREATE_PARTITIONS, build, lambda response: response.results, _name_of, requested)


def _new_partitions(topic: str, new: model.NewPartitions) -> Message:
    entry = api.CREATE_PARTITIONS.request.CreatePartitionsTopic
    assignment = entry.CreatePartitionsAssignment
    assignments = [assignment(broker_ids=list(replicas)) for replicas in new.assignments]
    return entry(name=topic, count=new.total_count, assignments=assignments or None)


# Configurations: DescribeConfigs and IncrementalAlterConfigs (KIP-339).

Entries = Mapping[str, model.ConfigEntry]


def describe_configs(
    resources: Iterable[model.ConfigResource], names: Iterable[str] | None
) -> Call[model.Batch[model.ConfigResource, Entries]]:
    """The configuration of each resource, all keys or only existing ones of `names`."""
    keys = None if names is None else list(names)
    wanted = list(resources)

    def build(_version: int, _timeout_ms: int) -> Message:
        entry = api.DESCRIBE_CONFIGS.request.DescribeConfigsResource
        return api.DESCRIBE_CONFIGS.request(
            resources=[
                entry(resource_type=int(resource.type), resource_name=resource.name, configuration_keys=keys)
                for resource in wanted
            ]
        )

    def read(response: Message) -> model.Batch[model.ConfigResource, Entries]:
        answered = ((_resource_of(result), result) for result in response.results)
        return readings(api.DESCRIBE_CONFIGS, answered, _config_entries, wanted)

    return Call(api.DESCRIBE_CONFIGS, build, read, is_doubtful=_names_unknown, join=either)


def _resource_of(entry: Message) -> model.ConfigResource:
    if entry.resource_type not in model.ResourceType.__members__.values():
        raise ProtocolViolation(f"the answer is about resource type {entry.resource_type}, which nobody asked about")
    return model.ConfigResource(model.ResourceType(entry.resource_type), entry.resource_name)


def _config_entries(_resource: model.ConfigResource, result: Message) -> Entries:
    return {entry.name: _config_entry(entry) for entry in result.configs}


def _config_entry(entry: Message) -> model.ConfigEntry:
    known = entry.config_source in model.ConfigSource.__members__.values()
    return model.ConfigEntry(
        name=entry.name,
        value=entry.value,
        source=model.ConfigSource(entry.config_source) if known else model.ConfigSource.UNKNOWN,
        is_sensitive=bool(entry.is_sensitive),
        is_read_only=bool(entry.read_only),
    )


def incremental_alter_configs(
    changes: Mapping[model.ConfigResource, Sequence[model.ConfigChange]], *, validate_only: bool
) -> Call[model.Batch[model.ConfigResource, None]]:
    """Change configurations, an outcome per resource."""

    def build(_version: int, _timeout_ms: int) -> Message:
        entries = [_altered_resource(resource, steps) for resource, steps in changes.items()]
        return api.INCREMENTAL_ALTER_CONFIGS.request(resources=entries, validate_only=validate_only)

    return _change(api.INCREMENTAL_ALTER_CONFIGS, build, lambda response: response.responses, _resource_of, changes)


def _altered_resource(resource: model.ConfigResource, steps: Sequence[model.ConfigChange]) -> Message:
    entry = api.INCREMENTAL_ALTER_CONFIGS.request.AlterConfigsResource
    return entry(
        resource_type=int(resource.type),
        resource_name=resource.name,
        configs=[
            entry.AlterableConfig(name=step.name, config_operation=int(step.operation), value=step.value)
            for step in steps
        ],
    )
