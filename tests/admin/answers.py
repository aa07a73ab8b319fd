"""Responses as a broker fills them: model values → messages, the way back from `kreassign.admin.translate`."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from itertools import groupby
from operator import attrgetter

from kreassign.model import (
    Cluster,
    ConfigEntry,
    ConfigResource,
    LogDir,
    OngoingReassignment,
    Partition,
    Topic,
    TopicPartition,
)
from kreassign.wire import api
from kreassign.wire.api import Api, Message

Outcome = tuple[int, str | None]
"""Error code and message."""
FINE: Outcome = (0, None)


def some_topic(name: str, *numbers: int, replicas: tuple[int, ...] = (0, 1), leader: int = 0) -> Topic:
    """A topic, or these partitions of it, as metadata tells it."""
    partitions = tuple(Partition(TopicPartition(name, number), replicas, (leader,), leader, 0) for number in numbers)
    return Topic(name, None, False, partitions)


def api_versions(offered: Mapping[int, tuple[int, int]], error_code: int = 0) -> Message:
    response = api.API_VERSIONS.response
    return response(
        error_code=error_code,
        api_keys=[
            response.ApiVersion(api_key=key, min_version=low, max_version=high) for key, (low, high) in offered.items()
        ],
    )


def metadata(cluster: Cluster, topics: Iterable[Topic] = (), failed: Mapping[str, int] | None = None) -> Message:
    response = api.METADATA.response
    topic_class = response.MetadataResponseTopic
    return response(
        brokers=[
            response.MetadataResponseBroker(node_id=broker.id, host=broker.host, port=broker.port, rack=broker.rack)
            for broker in cluster.brokers
        ],
        cluster_id=cluster.cluster_id,
        controller_id=cluster.controller_id,
        topics=_topics(topic_class, topic_class.MetadataResponsePartition, topics, failed or {}),
    )


def topic_page(
    topics: Iterable[Topic], failed: Mapping[str, int] | None = None, cursor: tuple[str, int] | None = None
) -> Message:
    response = api.DESCRIBE_TOPIC_PARTITIONS.response
    topic_class = response.DescribeTopicPartitionsResponseTopic
    partition_class = topic_class.DescribeTopicPartitionsResponsePartition
    return response(
        topics=_topics(topic_class, partition_class, topics, failed or {}),
        next_cursor=None if cursor is None else response.Cursor(topic_name=cursor[0], partition_index=cursor[1]),
    )


def _topics(
    topic_class: Message, partition_class: Message, topics: Iterable[Topic], failed: Mapping[str, int]
) -> list[Message]:
    return [
        topic_class(
            error_code=0,
            name=topic.name,
            topic_id=uuid.UUID(topic.topic_id or str(uuid.UUID(int=0))),
            is_internal=topic.is_internal,
            partitions=[_partition(partition_class, partition) for partition in topic.partitions],
        )
        for topic in topics
    ] + [
        topic_class(error_code=code, name=name, topic_id=uuid.UUID(int=0), partitions=[])
        for name, code in failed.items()
    ]


def _partition(partition_class: Message, partition: Partition) -> Message:
    eligible = partition.eligible_leaders
    last_known = partition.last_known_eligible_leaders
    only_in_pages = {
        "eligible_leader_replicas": None if eligible is None else list(eligible),
        "last_known_elr": None if last_known is None else list(last_known),
    }
    return partition_class(
        error_code=0 if partition.leader >= 0 else 5,
        partition_index=partition.topic_partition.partition,
        leader_id=partition.leader,
        leader_epoch=partition.leader_epoch,
        replica_nodes=list(partition.replicas),
        isr_nodes=list(partition.isr),
        offline_replicas=list(partition.offline),
        **(only_in_pages if "Describe" in partition_class.__name__ else {}),
    )


def cluster_nodes(cluster: Cluster, endpoint_type: int = 1, outcome: Outcome = FINE) -> Message:
    response = api.DESCRIBE_CLUSTER.response
    return response(
        error_code=outcome[0],
        error_message=outcome[1],
        endpoint_type=endpoint_type,
        cluster_id=cluster.cluster_id,
        controller_id=cluster.controller_id,
        brokers=[
            response.DescribeClusterBroker(
                broker_id=broker.id,
                host=broker.host,
                port=broker.port,
                rack=broker.rack,
                is_fenced=broker.is_fenced,
            )
            for broker in cluster.brokers
        ],
    )


def altered(outcomes: Mapping[TopicPartition, Outcome], top: Outcome = FINE) -> Message:
    response = api.ALTER_PARTITION_REASSIGNMENTS.response
    topic_class = response.ReassignableTopicResponse
    partition_class = topic_class.ReassignablePartitionResponse
    return response(
        error_code=top[0],
        error_message=top[1],
        responses=[
            topic_class(
                name=topic,
                partitions=[
                    partition_class(partition_index=key.partition, error_code=code, error_message=message)
                    for key, (code, message) in ((key, outcomes[key]) for key in keys)
                ],
            )
            for topic, keys in _by_topic(outcomes)
        ],
    )


def listed(ongoing: Mapping[TopicPartition, OngoingReassignment], top: Outcome = FINE) -> Message:
    response = api.LIST_PARTITION_REASSIGNMENTS.response
    topic_class = response.OngoingTopicReassignment
    return response(
        error_code=top[0],
        error_message=top[1],
        topics=[
            topic_class(
                name=topic,
                partitions=[
                    topic_class.OngoingPartitionReassignment(
                        partition_index=key.partition,
                        replicas=list(ongoing[key].replicas),
                        adding_replicas=list(ongoing[key].adding),
                        removing_replicas=list(ongoing[key].removing),
                    )
                    for key in keys
                ],
            )
            for topic, keys in _by_topic(ongoing)
        ],
    )


def elected(outcomes: Mapping[TopicPartition, Outcome], top: int = 0) -> Message:
    response = api.ELECT_LEADERS.response
    topic_class = response.ReplicaElectionResult
    return response(
        error_code=top,
        replica_election_results=[
            topic_class(
                topic=topic,
                partition_result=[
                    topic_class.PartitionResult(
                        partition_id=key.partition, error_code=outcomes[key][0], error_message=outcomes[key][1]
                    )
                    for key in keys
                ],
            )
            for topic, keys in _by_topic(outcomes)
        ],
    )


def named(asked: Api, outcomes: Mapping[str, Outcome]) -> Message:
    """The answer of CreateTopics, DeleteTopics or CreatePartitions: an outcome per topic."""
    field, entry = {
        api.CREATE_TOPICS: ("topics", "CreatableTopicResult"),
        api.DELETE_TOPICS: ("responses", "DeletableTopicResult"),
        api.CREATE_PARTITIONS: ("results", "CreatePartitionsTopicResult"),
    }[asked]
    entry_class = getattr(asked.response, entry)
    # The ids of topics are uuids that have no default of their own.
    extra = {} if asked is api.CREATE_PARTITIONS else {"topic_id": uuid.UUID(int=0)}
    entries = [
        entry_class(name=name, error_code=code, error_message=message, **extra)
        for name, (code, message) in outcomes.items()
    ]
    return asked.response(**{field: entries})


def configs(found: Mapping[ConfigResource, Iterable[ConfigEntry]], failed: Mapping[ConfigResource, Outcome]) -> Message:
    result_class = api.DESCRIBE_CONFIGS.response.DescribeConfigsResult
    results = [
        result_class(
            error_code=0,
            resource_type=int(resource.type),
            resource_name=resource.name,
            configs=[_config(result_class, entry) for entry in entries],
        )
        for resource, entries in found.items()
    ]
    return api.DESCRIBE_CONFIGS.response(results=results + [_refused(result_class, *item) for item in failed.items()])


def _config(result_class: Message, entry: ConfigEntry) -> Message:
    return result_class.DescribeConfigsResourceResult(
        name=entry.name,
        value=entry.value,
        read_only=entry.is_read_only,
        config_source=int(entry.source),
        is_sensitive=entry.is_sensitive,
        synonyms=[],
        config_type=2,
        documentation=None,
    )


def _refused(result_class: Message, resource: ConfigResource, outcome: Outcome) -> Message:
    return result_class(
        error_code=outcome[0],
        error_message=outcome[1],
        resource_type=int(resource.type),
        resource_name=resource.name,
        configs=[],
    )


def configs_altered(outcomes: Mapping[ConfigResource, Outcome]) -> Message:
    entry_class = api.INCREMENTAL_ALTER_CONFIGS.response.AlterConfigsResourceResponse
    return api.INCREMENTAL_ALTER_CONFIGS.response(
        responses=[
            entry_class(
                error_code=code, error_message=message, resource_type=int(resource.type), resource_name=resource.name
            )
            for resource, (code, message) in outcomes.items()
        ]
    )


def log_dirs(found: Iterable[LogDir], codes: Mapping[str, int] | None = None, top: int = 0) -> Message:
    """`codes` gives the error code of a directory, by its path."""
    response = api.DESCRIBE_LOG_DIRS.response
    return response(
        error_code=top, results=[_log_dir(log_dir, (codes or {}).get(log_dir.path, 0)) for log_dir in found]
    )


def _log_dir(log_dir: LogDir, code: int) -> Message:
    result_class = api.DESCRIBE_LOG_DIRS.response.DescribeLogDirsResult
    topic_class = result_class.DescribeLogDirsTopic
    replicas = sorted(log_dir.replicas, key=lambda copy: copy.topic_partition)
    return result_class(
        error_code=code,
        log_dir=log_dir.path,
        topics=[
            topic_class(
                name=topic,
                partitions=[
                    topic_class.DescribeLogDirsPartition(
                        partition_index=copy.topic_partition.partition,
                        partition_size=copy.size_bytes,
                        offset_lag=copy.offset_lag,
                        is_future_key=copy.is_future,
                    )
                    for copy in copies
                ],
            )
            for topic, copies in groupby(replicas, key=attrgetter("topic_partition.topic"))
        ],
        total_bytes=-1 if log_dir.total_bytes is None else log_dir.total_bytes,
        usable_bytes=-1 if log_dir.usable_bytes is None else log_dir.usable_bytes,
        is_cordoned=log_dir.is_cordoned,
    )


def log_dirs_altered(outcomes: Mapping[TopicPartition, int]) -> Message:
    topic_class = api.ALTER_REPLICA_LOG_DIRS.response.AlterReplicaLogDirTopicResult
    return api.ALTER_REPLICA_LOG_DIRS.response(
        results=[
            topic_class(
                topic_name=topic,
                partitions=[
                    topic_class.AlterReplicaLogDirPartitionResult(
                        partition_index=key.partition, error_code=outcomes[key]
                    )
                    for key in keys
                ],
            )
            for topic, keys in _by_topic(outcomes)
        ]
    )


def offsets(found: Mapping[TopicPartition, int], failed: Mapping[TopicPartition, int] | None = None) -> Message:
    topic_class = api.LIST_OFFSETS.response.ListOffsetsTopicResponse
    codes = failed or {}
    return api.LIST_OFFSETS.response(
        topics=[
            topic_class(
                name=topic,
                partitions=[
                    topic_class.ListOffsetsPartitionResponse(
                        partition_index=key.partition, error_code=codes.get(key, 0), offset=found.get(key, -1)
                    )
                    for key in keys
                ],
            )
            for topic, keys in _by_topic([*found, *codes])
        ]
    )


def _by_topic(keys: Iterable[TopicPartition]) -> Iterable[tuple[str, list[TopicPartition]]]:
    for topic, group in groupby(sorted(keys), key=attrgetter("topic")):
        yield topic, list(group)
