"""ReplicaStatus: how far the replicas of partitions are that the asked broker leads (KIP-179; no Kafka has it).

Versions: 0, if the twin was started with KIP-179.
Permission: DESCRIBE on the cluster; without it CLUSTER_AUTHORIZATION_FAILED.

Behaviour:
- An unknown topic is INVALID_TOPIC_EXCEPTION, an unknown partition INVALID_PARTITIONS, one that another broker leads
  NOT_LEADER_OR_FOLLOWER.
- Of the brokers asked for, one that is not registered is UNKNOWN_MEMBER_ID, one that has no replica
  UNKNOWN_TOPIC_OR_PARTITION.
- A replica whose broker is down, or whose directory is offline, is left out.

Left out:
- Nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from kreassign.model import TopicPartition
from kreassign.model.error_codes import (
    CLUSTER_AUTHORIZATION_FAILED,
    INVALID_PARTITIONS,
    INVALID_TOPIC_EXCEPTION,
    NONE,
    NOT_LEADER_OR_FOLLOWER,
    UNKNOWN_MEMBER_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from kreassign.model.replica_status import NO_COPY, Copy, OffsetRange
from kreassign.twin.access.permissions import Operation
from kreassign.twin.api.handler import Handler
from kreassign.twin.api.request import Request
from kreassign.twin.metadata.state import PartitionState
from kreassign.wire import kip_179
from kreassign.wire.api import Message

_RESPONSE = kip_179.REPLICA_STATUS.response
_TOPIC = _RESPONSE.ToldTopic
_PARTITION = _TOPIC.ToldPartition
_UNKNOWN = -1


def _handle(request: Request) -> Message:
    if not request.allows(Operation.DESCRIBE):
        return _RESPONSE(error_code=CLUSTER_AUTHORIZATION_FAILED, topics=[])
    topics = [
        _TOPIC(name=topic.name, partitions=[_partition(request, topic.name, entry) for entry in topic.partitions])
        for topic in request.message.topics
    ]
    return _RESPONSE(topics=topics)


def _partition(request: Request, topic: str, entry: Message) -> Message:
    state = request.metadata.partition(TopicPartition(topic, entry.partition_index))
    if state is None:
        code = INVALID_PARTITIONS if topic in request.metadata.topics else INVALID_TOPIC_EXCEPTION
    else:
        code = NONE if state.leader == request.node.id else NOT_LEADER_OR_FOLLOWER
    replicas = [] if state is None or code != NONE else list(_replicas(request, state, entry.brokers))
    return _PARTITION(partition_index=entry.partition_index, error_code=code, replicas=replicas)


def _replicas(request: Request, state: PartitionState, wanted: list[int] | None) -> Iterator[Message]:
    leader = _copy(request, state, state.leader)
    for broker in state.replicas if wanted is None else wanted:
        if broker not in request.metadata.brokers:
            yield _PARTITION.ToldReplica(broker_id=broker, error_code=UNKNOWN_MEMBER_ID)
        elif broker not in state.replicas:
            yield _PARTITION.ToldReplica(broker_id=broker, error_code=UNKNOWN_TOPIC_OR_PARTITION)
        elif request.cluster.is_running(broker):
            yield _told(request, broker, _copy(request, state, broker), leader)


def _copy(request: Request, state: PartitionState, broker: int) -> Copy:
    readings, key = request.cluster.replication.readings, state.topic_partition
    start, end = readings.local_log_start_offset(key, broker), readings.log_end_offset(key, broker)
    if start is None or end is None:
        return Copy(NO_COPY, 0)
    return Copy(OffsetRange(start, end), readings.size_bytes(key, broker))


def _told(request: Request, broker: int, copy: Copy, leader: Copy) -> Message:
    lag_records, lag_bytes = copy.lag_behind(leader)
    return _PARTITION.ToldReplica(
        broker_id=broker,
        error_code=NONE,
        status_time_ms=request.cluster.now_ms,
        log_start_offset=copy.offsets.start,
        log_end_offset=copy.offsets.end,
        lag_records=lag_records,
        lag_bytes=_UNKNOWN if lag_bytes is None else lag_bytes,
        size_bytes=_UNKNOWN if copy.size_bytes is None else copy.size_bytes,
    )


HANDLERS = (Handler(kip_179.REPLICA_STATUS, _handle),)
