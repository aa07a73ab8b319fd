"""Responses as a broker fills them: model values → messages, the way back from `kreassign.admin.translate`."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping
from itertools import groupby
from operator import attrgetter
from typing import Any

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
from tests.wire.peer import message

Outcome = tuple[int, str | None]
"""Error code and message."""
FINE: Outcome = (0, None)
NO_ID = uuid.UUID(int=0)
Fields = dict[str, Any]


def some_topic(name: str, *numbers: int, replicas: tuple[int, ...] = (0, 1), leader: int = 0) -> Topic:
    """A topic, or these partitions of it, as metadata tells it."""
    partitions = tuple(Partition(TopicPartition(name, number), replicas, (leader,), leader, 0) for number in numbers)
    return Topic(name, None, False, partitions)


def answer(asked: Api, **fields: object) -> Message:
    """The response to an API with these fields."""
    return message(asked.response, fields)


def error(outcome: Outcome) -> Fields:
    return {"error_code": outcome[0], "error_message": outcome[1]}


def by_topic(keys: Iterable[TopicPartition], part: Callable[[TopicPartition], Fields], **names: str) -> list[Fields]:
    """Topics with what `part` says of each partition; `names` are those of the fields for topic and partitions."""
    topic, partitions = names.get("topic", "name"), names.get("partitions", "partitions")
    groups = groupby(sorted(keys), key=attrgetter("topic"))
    return [{topic: name, partitions: [part(key) for key in group]} for name, group in groups]


def api_versions(offered: Mapping[int, tuple[int, int]], error_code: int = 0) -> Message:
    keys = [{"api_key": key, "min_version": low, "max_version": high} for key, (low, high) in offered.items()]
    return answer(api.API_VERSIONS, error_code=error_code, api_keys=keys)


def metadata(cluster: Cluster, topics: Iterable[Topic] = (), failed: Mapping[str, int] | None = None) -> Message:
    return answer(
        api.METADATA,
        brokers=[
            {"node_id": broker.id, "host": broker.host, "port": broker.port, "rack": broker.rack}
            for broker in cluster.brokers
        ],
        cluster_id=cluster.cluster_id,
        controller_id=cluster.controller_id,
        topics=_topics(topics, failed or {}, _partition),
    )


def topic_page(
    topics: Iterable[Topic], failed: Mapping[str, int] | None = None, cursor: tuple[str, int] | None = None
) -> Message:
    following = None if cursor is None else {"topic_name": cursor[0], "partition_index": cursor[1]}
    described = _topics(topics, failed or {}, _partition_of_page)
    return answer(api.DESCRIBE_TOPIC_PARTITIONS, topics=described, next_cursor=following)


def _topics(topics: Iterable[Topic], failed: Mapping[str, int], part: Callable[[Partition], Fields]) -> list[Fields]:
    return [
        {
            "error_code": 0,
            "name": topic.name,
            "topic_id": uuid.UUID(topic.topic_id) if topic.topic_id else NO_ID,
            "is_internal": topic.is_internal,
            "partitions": list(map(part, topic.partitions)),
        }
        for topic in topics
    ] + [{"error_code": code, "name": name, "topic_id": NO_ID, "partitions": []} for name, code in failed.items()]


def _partition(partition: Partition) -> Fields:
    return {
        "error_code": 0 if partition.leader >= 0 else 5,
        "partition_index": partition.topic_partition.partition,
        "leader_id": partition.leader,
        "leader_epoch": partition.leader_epoch,
        "replica_nodes": list(partition.replicas),
        "isr_nodes": list(partition.isr),
        "offline_replicas": list(partition.offline),
    }


def _partition_of_page(partition: Partition) -> Fields:
    eligible, last_known = partition.eligible_leaders, partition.last_known_eligible_leaders
    return _partition(partition) | {
        "eligible_leader_replicas": None if eligible is None else list(eligible),
        "last_known_elr": None if last_known is None else list(last_known),
    }


def cluster_nodes(cluster: Cluster, endpoint_type: int = 1, outcome: Outcome = FINE) -> Message:
    brokers = [
        {"broker_id": one.id, "host": one.host, "port": one.port, "rack": one.rack, "is_fenced": one.is_fenced}
        for one in cluster.brokers
    ]
    return answer(
        api.DESCRIBE_CLUSTER, **error(outcome), endpoint_type=endpoint_type, cluster_id=cluster.cluster_id,
        controller_id=cluster.controller_id, brokers=brokers,
    )  # fmt: skip


def altered(outcomes: Mapping[TopicPartition, Outcome], top: Outcome = FINE) -> Message:
    topics = by_topic(outcomes, lambda key: {"partition_index": key.partition, **error(outcomes[key])})
    return answer(api.ALTER_PARTITION_REASSIGNMENTS, **error(top), responses=topics)


def listed(ongoing: Mapping[TopicPartition, OngoingReassignment], top: Outcome = FINE) -> Message:
    def part(key: TopicPartition) -> Fields:
        move = ongoing[key]
        return {
            "partition_index": key.partition,
            "replicas": list(move.replicas),
            "adding_replicas": list(move.adding),
            "removing_replicas": list(move.removing),
        }

    return answer(api.LIST_PARTITION_REASSIGNMENTS, **error(top), topics=by_topic(ongoing, part))


def elected(outcomes: Mapping[TopicPartition, Outcome], top: int = 0) -> Message:
    results = by_topic(
        outcomes, lambda key: {"partition_id": key.partition, **error(outcomes[key])},
        topic="topic", partitions="partition_result",
    )  # fmt: skip
    return answer(api.ELECT_LEADERS, error_code=top, replica_election_results=results)


def named(asked: Api, outcomes: Mapping[str, Outcome]) -> Message:
    """The answer of CreateTopics, DeleteTopics or CreatePartitions: an outcome per topic."""
    field = {api.CREATE_TOPICS: "topics", api.DELETE_TOPICS: "responses", api.CREATE_PARTITIONS: "results"}[asked]
    # The ids of topics are uuids that have no default of their own.
    extra = {} if asked is api.CREATE_PARTITIONS else {"topic_id": NO_ID}
    return answer(asked, **{field: [{"name": name, **error(one), **extra} for name, one in outcomes.items()]})


def configs(found: Mapping[ConfigResource, Iterable[ConfigEntry]], failed: Mapping[ConfigResource, Outcome]) -> Message:
    described = [_resource(resource, FINE) | {"configs": list(map(_config, one))} for resource, one in found.items()]
    refused = [_resource(resource, outcome) | {"configs": []} for resource, outcome in failed.items()]
    return answer(api.DESCRIBE_CONFIGS, results=described + refused)


def _resource(resource: ConfigResource, outcome: Outcome) -> Fields:
    return {**error(outcome), "resource_type": int(resource.type), "resource_name": resource.name}


def _config(entry: ConfigEntry) -> Fields:
    return {
        "name": entry.name,
        "value": entry.value,
        "read_only": entry.is_read_only,
        "config_source": int(entry.source),
        "is_sensitive": entry.is_sensitive,
        "synonyms": [],
        "config_type": 2,
        "documentation": None,
    }


def configs_altered(outcomes: Mapping[ConfigResource, Outcome]) -> Message:
    responses = [_resource(resource, outcome) for resource, outcome in outcomes.items()]
    return answer(api.INCREMENTAL_ALTER_CONFIGS, responses=responses)


def log_dirs(found: Iterable[LogDir], codes: Mapping[str, int] | None = None, top: int = 0) -> Message:
    """`codes` gives the error code of a directory, by its path."""
    results = [_log_dir(log_dir, (codes or {}).get(log_dir.path, 0)) for log_dir in found]
    return answer(api.DESCRIBE_LOG_DIRS, error_code=top, results=results)


def _log_dir(log_dir: LogDir, code: int) -> Fields:
    copies = {copy.topic_partition: copy for copy in log_dir.replicas}

    def part(key: TopicPartition) -> Fields:
        copy = copies[key]
        return {
            "partition_index": key.partition,
            "partition_size": copy.size_bytes,
            "offset_lag": copy.offset_lag,
            "is_future_key": copy.is_future,
        }

    return {
        "error_code": code,
        "log_dir": log_dir.path,
        "topics": by_topic(copies, part),
        "total_bytes": -1 if log_dir.total_bytes is None else log_dir.total_bytes,
        "usable_bytes": -1 if log_dir.usable_bytes is None else log_dir.usable_bytes,
        "is_cordoned": log_dir.is_cordoned,
    }


def log_dirs_altered(outcomes: Mapping[TopicPartition, int]) -> Message:
    results = by_topic(
        outcomes, lambda key: {"partition_index": key.partition, "error_code": outcomes[key]}, topic="topic_name"
    )
    return answer(api.ALTER_REPLICA_LOG_DIRS, results=results)


def offsets(found: Mapping[TopicPartition, int], failed: Mapping[TopicPartition, int] | None = None) -> Message:
    codes = failed or {}

    def part(key: TopicPartition) -> Fields:
        return {"partition_index": key.partition, "error_code": codes.get(key, 0), "offset": found.get(key, -1)}

    return answer(api.LIST_OFFSETS, topics=by_topic([*found, *codes], part))
