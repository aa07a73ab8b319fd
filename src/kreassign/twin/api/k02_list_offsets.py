"""ListOffsets: the first and the last offset of partitions, at leaders and for debugging at followers.

Versions: 0-8 on 3.7; 0-9 on 3.9; 1-11 on 4.2, 4.3.
Permission: DESCRIBE on each topic; without it TOPIC_AUTHORIZATION_FAILED.

Behaviour:
- Timestamp -1 is the end: the high watermark for consumers (replica id -1), the broker's own end for others. -2 is the
  start, remote storage included, -4 the start of what the broker has itself. Below what a version knows a timestamp is
  UNSUPPORTED_VERSION.
- Of a tiered topic -5 is the last offset in remote storage, -6 the one after it, or where the log starts. In other
  logs, and in empty ones, both find nothing (-1), and -5 does while nothing is there.
- In an empty log there is no record of any time (timestamp 0 or above), nor of the latest (-3): offset -1.
- Replica id -2 may ask any broker that has a copy, others only the leader: elsewhere NOT_LEADER_OR_FOLLOWER.
- An older leader epoch than the broker's is FENCED_LEADER_EPOCH, a newer one UNKNOWN_LEADER_EPOCH.
- A partition named twice is INVALID_REQUEST, answered once.

Left out:
- Offsets by time and of the latest time are UNSUPPORTED_FOR_MESSAGE_FORMAT where the log is not empty: there are no
  records.
- Tiered topics: uploading takes no time, and all replicas know at once what was uploaded. A replica in sync begins
  where its leader does, also one that skipped what was tiered (KIP-1023).
- The leader epoch of the start of a log that is not empty is told only while there was no other than 0. There are no
  transactions.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from kreassign.model import TopicPartition
from kreassign.model.error_codes import (
    FENCED_LEADER_EPOCH,
    INVALID_REQUEST,
    KAFKA_STORAGE_ERROR,
    NONE,
    NOT_LEADER_OR_FOLLOWER,
    TOPIC_AUTHORIZATION_FAILED,
    UNKNOWN_LEADER_EPOCH,
    UNKNOWN_TOPIC_OR_PARTITION,
    UNSUPPORTED_FOR_MESSAGE_FORMAT,
    UNSUPPORTED_VERSION,
)
from kreassign.twin.access.permissions import Operation
from kreassign.twin.api.handler import Handler
from kreassign.twin.api.request import Request
from kreassign.twin.metadata.state import PartitionState
from kreassign.wire import api
from kreassign.wire.api import Message

_RESPONSE = api.LIST_OFFSETS.response
_TOPIC = _RESPONSE.ListOffsetsTopicResponse
LATEST, EARLIEST, LATEST_TIME, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING = -1, -2, -3, -4, -5, -6
_FIRST_VERSION = {LATEST_TIME: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9, EARLIEST_PENDING: 11}
_CONSUMER, _DEBUGGER = -1, -2


class _Found(NamedTuple):
    code: int = NONE
    offset: int = -1
    leader_epoch: int = -1


def _handle(request: Request) -> Message:
    named = Counter(
        (topic.name, entry.partition_index) for topic in request.message.topics for entry in topic.partitions
    )
    entries = {
        (topic.name, entry.partition_index): entry for topic in request.message.topics for entry in topic.partitions
    }
    topics: dict[str, list[Message]] = {topic.name: [] for topic in request.message.topics}
    for (topic, number), entry in entries.items():
        found = _answer(request, TopicPartition(topic, number), entry, times=named[topic, number])
        topics[topic].append(_shown(number, found))
    # Topics that the client may not see come last.
    ordered = sorted(topics, key=lambda topic: not request.allows(Operation.DESCRIBE, topic))
    return _RESPONSE(topics=[_TOPIC(name=topic, partitions=topics[topic]) for topic in ordered])


def _answer(request: Request, key: TopicPartition, entry: Message, times: int) -> _Found:
    if not request.allows(Operation.DESCRIBE, key.topic):
        return _Found(TOPIC_AUTHORIZATION_FAILED)
    return _Found(INVALID_REQUEST) if times > 1 else _find(request, key, entry)


def _shown(number: int, found: _Found) -> Message:
    return _TOPIC.ListOffsetsPartitionResponse(
        partition_index=number,
        error_code=found.code,
        old_style_offsets=[] if found.code or found.offset < 0 else [found.offset],
        timestamp=-1,
        offset=found.offset,
        leader_epoch=found.leader_epoch,
    )


def _find(request: Request, key: TopicPartition, entry: Message) -> _Found:
    if entry.timestamp < EARLIEST_PENDING or request.version < _FIRST_VERSION.get(entry.timestamp, 0):
        return _Found(UNSUPPORTED_VERSION)
    partition = request.metadata.partition(key)
    if partition is None:
        return _Found(UNKNOWN_TOPIC_OR_PARTITION)
    if (refusal := _refusal(request, partition, entry)) != NONE:
        return _Found(refusal)
    if entry.timestamp >= 0 or entry.timestamp == LATEST_TIME:
        return _Found() if _is_empty(request, partition) else _Found(UNSUPPORTED_FOR_MESSAGE_FORMAT)
    return _offset(request, partition, entry.timestamp)


def _refusal(request: Request, partition: PartitionState, entry: Message) -> int:
    here = request.node.id
    must_lead = request.message.replica_id != _DEBUGGER
    if here not in partition.replicas or (must_lead and partition.leader != here):
        return NOT_LEADER_OR_FOLLOWER
    epoch = entry.current_leader_epoch
    if epoch >= 0 and epoch != partition.leader_epoch:
        return FENCED_LEADER_EPOCH if epoch < partition.leader_epoch else UNKNOWN_LEADER_EPOCH
    readable = request.cluster.replication.readings.log_end_offset(partition.topic_partition, here) is not None
    return NONE if readable else KAFKA_STORAGE_ERROR


def _offset(request: Request, partition: PartitionState, timestamp: int) -> _Found:
    readings, key, here = request.cluster.replication.readings, partition.topic_partition, request.node.id
    if timestamp in {LATEST_TIERED, EARLIEST_PENDING}:
        return _Found() if _is_empty(request, partition) else _tiered(request, key, timestamp)
    if timestamp in {EARLIEST, EARLIEST_LOCAL}:
        # The epoch is that of the first record; without any it is the one in which the leader began to lead.
        is_known = _is_empty(request, partition) or partition.leader_epoch == 0
        epoch = partition.leader_epoch if is_known else -1
        start = readings.log_start_offset if timestamp == EARLIEST else readings.local_log_start_offset
        return _Found(NONE, start(key, here) or 0, epoch)
    if timestamp != LATEST:
        return _Found()
    is_consumer = request.message.replica_id == _CONSUMER
    end = readings.high_watermark(key) if is_consumer else readings.log_end_offset(key, here)
    return _Found(NONE, end or 0, partition.leader_epoch)


def _tiered(request: Request, key: TopicPartition, timestamp: int) -> _Found:
    readings = request.cluster.replication.readings
    pending, start = readings.pending_upload_offset(key), readings.log_start_offset(key, request.node.id) or 0
    if pending is None or (timestamp == LATEST_TIERED and pending <= start):
        return _Found()
    return _Found(NONE, pending - 1 if timestamp == LATEST_TIERED else pending)


def _is_empty(request: Request, partition: PartitionState) -> bool:
    readings, key, here = request.cluster.replication.readings, partition.topic_partition, request.node.id
    return (readings.log_end_offset(key, here) or 0) == (readings.log_start_offset(key, here) or 0)


HANDLERS = (Handler(api.LIST_OFFSETS, _handle),)
