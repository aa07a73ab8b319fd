"""DescribeTopicPartitions: topics and partitions page by page, with eligible leader replicas (KIP-966).

Versions: none on 3.7; 0 on 3.9, 4.2, 4.3.
Permission: DESCRIBE on each topic; others are left out when all are asked for, else TOPIC_AUTHORIZATION_FAILED.

Behaviour:
- Topics are sorted; no list of topics means all. At most 2,000 partitions a page, or fewer if the client says so, and
  at least one; the next page begins at the cursor.
- With a cursor, topics that sort before it are skipped. A cursor whose topic was not asked for, or with a negative
  partition, is INVALID_REQUEST on every topic.
- An empty name makes the whole request fail with UNKNOWN_SERVER_ERROR.
- Without eligible leader replicas in the cluster their lists are empty.

Left out:
- The limit of a page is Kafka's default and cannot be configured.
"""

from __future__ import annotations

import uuid

from kreassign.model.error_codes import INVALID_REQUEST, NONE, TOPIC_AUTHORIZATION_FAILED, UNKNOWN_SERVER_ERROR
from kreassign.twin.access.permissions import Operation
from kreassign.twin.api.handler import Handler
from kreassign.twin.api.request import Request
from kreassign.twin.api.shown import (
    healthy_brokers,
    is_internal,
    offline_replicas,
    shown_leader,
    topic_operations,
    unknown_topic_error,
)
from kreassign.twin.metadata.state import PartitionState, TopicState
from kreassign.wire import api
from kreassign.wire.api import Message

_RESPONSE = api.DESCRIBE_TOPIC_PARTITIONS.response
_TOPIC = _RESPONSE.DescribeTopicPartitionsResponseTopic
_PARTITION = _TOPIC.DescribeTopicPartitionsResponsePartition
_MOST_PARTITIONS = 2000
_NO_ID = uuid.UUID(int=0)
_NOT_TOLD = -(2**31)


def _handle(request: Request) -> Message:
    cursor = request.message.cursor
    if any(not topic.name for topic in request.message.topics):
        # Kafka fails on an empty name, and with it on the whole request.
        failed = [_failed(topic.name, UNKNOWN_SERVER_ERROR) for topic in request.message.topics]
        return _RESPONSE(topics=failed, next_cursor=None)
    start = cursor.topic_name if cursor else ""
    named = {topic.name for topic in request.message.topics if topic.name >= start}
    if cursor and ((request.message.topics and start not in named) or cursor.partition_index < 0):
        failed = [_failed(topic.name, INVALID_REQUEST) for topic in request.message.topics]
        return _RESPONSE(topics=failed, next_cursor=None)
    if not request.message.topics:
        named = {name for name in request.metadata.topics if name >= start}
    allowed = {name for name in named if request.allows(Operation.DESCRIBE, name)}
    response = _page(request, sorted(allowed))
    if request.message.topics:
        response.topics += [_failed(name, TOPIC_AUTHORIZATION_FAILED) for name in sorted(named - allowed)]
    return response


def _page(request: Request, names: list[str]) -> Message:
    cursor = request.message.cursor
    room = max(1, min(_MOST_PARTITIONS, request.message.response_partition_limit))
    topics: list[Message] = []
    for name in names:
        if room == 0:
            return _RESPONSE(topics=topics, next_cursor=_RESPONSE.Cursor(topic_name=name, partition_index=0))
        topic = request.metadata.topics.get(name)
        if topic is None:
            # Asked for by name; of all topics none is unknown.
            topics.append(_failed(name, unknown_topic_error(name), _operations(request, name)))
            continue
        first = cursor.partition_index if cursor and cursor.topic_name == name else 0
        end = min(len(topic.partitions), first + room)
        topics.append(_topic(request, topic, range(first, end)))
        if end < len(topic.partitions):
            return _RESPONSE(topics=topics, next_cursor=_RESPONSE.Cursor(topic_name=name, partition_index=end))
        room -= max(0, end - first)
    return _RESPONSE(topics=topics, next_cursor=None)


def _failed(name: str, code: int, operations: int = _NOT_TOLD) -> Message:
    return _TOPIC(
        error_code=code, name=name, topic_id=_NO_ID, is_internal=False, partitions=[],
        topic_authorized_operations=operations,
    )  # fmt: skip


def _operations(request: Request, topic: str) -> int:
    # kafka-python knows this field of other APIs as a set, here as the number that Kafka sends.
    return sum(1 << operation for operation in topic_operations(request, topic))


def _topic(request: Request, topic: TopicState, wanted: range) -> Message:
    healthy = healthy_brokers(request.metadata)
    return _TOPIC(
        error_code=NONE,
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=is_internal(topic.name),
        partitions=[_partition(request, topic.partitions[number], healthy) for number in wanted],
        topic_authorized_operations=_operations(request, topic.name),
    )


def _partition(request: Request, partition: PartitionState, healthy: set[int]) -> Message:
    return _PARTITION(
        error_code=NONE,
        partition_index=partition.topic_partition.partition,
        leader_id=shown_leader(request.metadata, partition),
        leader_epoch=partition.leader_epoch,
        replica_nodes=list(partition.replicas),
        isr_nodes=list(partition.isr),
        eligible_leader_replicas=list(partition.elr),
        last_known_elr=list(partition.last_known_elr),
        offline_replicas=offline_replicas(request.metadata, partition, healthy),
    )


HANDLERS = (Handler(api.DESCRIBE_TOPIC_PARTITIONS, _handle),)
