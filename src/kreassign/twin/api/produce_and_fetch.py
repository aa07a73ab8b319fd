"""Answer requests about records: Produce, Fetch, ListOffsets, ListTransactions.

The twin has no records: producing and fetching are refused, there are no transactions, and replication computes the
offsets.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from kreassign.errors import ProtocolViolation
from kreassign.model import TopicPartition, error_codes
from kreassign.twin.access import Operation
from kreassign.twin.api.request import Handler, Request
from kreassign.twin.metadata import PartitionState
from kreassign.wire import api
from kreassign.wire.api import Message

_PRODUCE_RESPONSE = api.PRODUCE.response
_PRODUCE_TOPIC = _PRODUCE_RESPONSE.TopicProduceResponse
NO_RECORDS = "This is a twin: it keeps no records, so that nothing can be produced to it or consumed from it."


def _produce(request: Request) -> Message:
    """Produce: records to write.

    Permission: none is checked.

    Behaviour:
    - Every partition is refused with POLICY_VIOLATION and a text that says why: clients give up at once and do not
      retry.
    - A client that wants no answer (acks 0) has its connection closed, as with any error of Kafka's.

    Left out:
    - Writing: there are no records. That the API is offered at all is for clients that take it for a sign of life.
    - Versions below 3 are answered by 4.2 and 4.3 too, which close the connection.
    """
    if request.message.acks == 0:
        raise ProtocolViolation("nothing can be produced, and the client wants no answer that says so")
    return _PRODUCE_RESPONSE(responses=[_produce_topic(topic) for topic in request.message.topic_data])


def _produce_topic(topic: Message) -> Message:
    partitions = [
        _PRODUCE_TOPIC.PartitionProduceResponse(
            index=entry.index,
            error_code=error_codes.POLICY_VIOLATION,
            base_offset=-1,
            record_errors=[],
            error_message=NO_RECORDS,
        )
        for entry in topic.partition_data
    ]
    return _PRODUCE_TOPIC(name=topic.name, topic_id=topic.topic_id, partition_responses=partitions)


_FETCH_RESPONSE = api.FETCH.response
_FETCH_TOPIC = _FETCH_RESPONSE.FetchableTopicResponse
_NO_FETCH_SESSION = 0


def _fetch(request: Request) -> Message:
    """Fetch: records to read.

    Permission: none is checked.

    Behaviour:
    - Every partition is refused with POLICY_VIOLATION, which no client takes for something that passes.
    - Fetch sessions are not begun.

    Left out:
    - Reading: there are no records, so that even an empty partition is refused.
    """
    topics = [_fetch_topic(topic) for topic in request.message.topics]
    return _FETCH_RESPONSE(session_id=_NO_FETCH_SESSION, responses=topics)


def _fetch_topic(topic: Message) -> Message:
    partitions = [
        _FETCH_TOPIC.PartitionData(
            partition_index=entry.partition, error_code=error_codes.POLICY_VIOLATION, high_watermark=-1,
            aborted_transactions=None,
            records=b"",  # As Kafka sends it: librdkafka takes null for a broken answer.
        )
        for entry in topic.partitions
    ]  # fmt: skip
    return _FETCH_TOPIC(topic=topic.topic, topic_id=topic.topic_id, partitions=partitions)


_LIST_OFFSETS_RESPONSE = api.LIST_OFFSETS.response
_OFFSETS_TOPIC = _LIST_OFFSETS_RESPONSE.ListOffsetsTopicResponse
LATEST, EARLIEST, LATEST_TIME, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING = -1, -2, -3, -4, -5, -6
_FIRST_VERSION_WITH = {LATEST_TIME: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9, EARLIEST_PENDING: 11}
_CONSUMER, _DEBUGGER = -1, -2


class _FoundOffset(NamedTuple):
    code: int = error_codes.NONE
    offset: int = -1
    leader_epoch: int = -1


def _list_offsets(request: Request) -> Message:
    """ListOffsets: the first and the last offset of partitions, at leaders and for debugging at followers.

    Permission: DESCRIBE on each topic; without it TOPIC_AUTHORIZATION_FAILED.

    Behaviour:
    - Timestamp -1 is the end: the high watermark for consumers (replica id -1), the broker's own end for others. -2
      is the start, remote storage included, -4 the start of what the broker has itself. Below what a version knows a
      timestamp is UNSUPPORTED_VERSION.
    - Of a tiered topic -5 is the last offset in remote storage, -6 the one after it, or where the log starts. In
      other logs, and in empty ones, both find nothing (-1), and -5 does while nothing is there.
    - In an empty log there is no record of any time (timestamp 0 or above), nor of the latest (-3): offset -1.
    - Replica id -2 may ask any broker that has a copy, others only the leader: elsewhere NOT_LEADER_OR_FOLLOWER.
    - An older leader epoch than the broker's is FENCED_LEADER_EPOCH, a newer one UNKNOWN_LEADER_EPOCH.
    - A partition named twice is INVALID_REQUEST, answered once.

    Left out:
    - Offsets by time and of the latest time are UNSUPPORTED_FOR_MESSAGE_FORMAT where the log is not empty: there are
      no records.
    - Tiered topics: uploading takes no time, and all replicas know at once what was uploaded. A replica in sync
      begins where its leader does, also one that skipped what was tiered (KIP-1023).
    - The leader epoch of the start of a log that is not empty is told only while there was no other than 0. There are
      no transactions.
    """
    entries = [
        (TopicPartition(topic.name, entry.partition_index), entry)
        for topic in request.message.topics
        for entry in topic.partitions
    ]
    times = Counter(key for key, _ in entries)
    topics: dict[str, list[Message]] = {topic.name: [] for topic in request.message.topics}
    for key, entry in dict(entries).items():
        found = _offsets_answer(request, key, entry, times[key])
        shown = _OFFSETS_TOPIC.ListOffsetsPartitionResponse(
            partition_index=key.partition,
            error_code=found.code,
            old_style_offsets=[] if found.code or found.offset < 0 else [found.offset],
            timestamp=-1,
            offset=found.offset,
            leader_epoch=found.leader_epoch,
        )
        topics[key.topic].append(shown)
    # Topics that the client may not see come last.
    ordered = sorted(topics, key=lambda topic: not request.allows(Operation.DESCRIBE, topic))
    return _LIST_OFFSETS_RESPONSE(topics=[_OFFSETS_TOPIC(name=topic, partitions=topics[topic]) for topic in ordered])


def _offsets_answer(request: Request, key: TopicPartition, entry: Message, times: int) -> _FoundOffset:
    if not request.allows(Operation.DESCRIBE, key.topic):
        return _FoundOffset(error_codes.TOPIC_AUTHORIZATION_FAILED)
    return _FoundOffset(error_codes.INVALID_REQUEST) if times > 1 else _find_offset(request, key, entry)


def _find_offset(request: Request, key: TopicPartition, entry: Message) -> _FoundOffset:
    if entry.timestamp < EARLIEST_PENDING or request.version < _FIRST_VERSION_WITH.get(entry.timestamp, 0):
        return _FoundOffset(error_codes.UNSUPPORTED_VERSION)
    partition = request.metadata.partition(key)
    if partition is None:
        return _FoundOffset(error_codes.UNKNOWN_TOPIC_OR_PARTITION)
    if (refusal := _offsets_refusal(request, partition, entry)) != error_codes.NONE:
        return _FoundOffset(refusal)
    if entry.timestamp >= 0 or entry.timestamp == LATEST_TIME:
        return (
            _FoundOffset()
            if _is_empty(request, partition)
            else _FoundOffset(error_codes.UNSUPPORTED_FOR_MESSAGE_FORMAT)
        )
    return _offset_at(request, partition, entry.timestamp)


def _offsets_refusal(request: Request, partition: PartitionState, entry: Message) -> int:
    here = request.node.id
    must_lead = request.message.replica_id != _DEBUGGER
    if here not in partition.replicas or (must_lead and partition.leader != here):
        return error_codes.NOT_LEADER_OR_FOLLOWER
    epoch = entry.current_leader_epoch
    if epoch >= 0 and epoch != partition.leader_epoch:
        return error_codes.FENCED_LEADER_EPOCH if epoch < partition.leader_epoch else error_codes.UNKNOWN_LEADER_EPOCH
    readable = request.cluster.replication.readings.log_end_offset(partition.topic_partition, here) is not None
    return error_codes.NONE if readable else error_codes.KAFKA_STORAGE_ERROR


def _offset_at(request: Request, partition: PartitionState, timestamp: int) -> _FoundOffset:
    readings, key, here = request.cluster.replication.readings, partition.topic_partition, request.node.id
    if timestamp in {LATEST_TIERED, EARLIEST_PENDING}:
        return _FoundOffset() if _is_empty(request, partition) else _tiered_offset(request, key, timestamp)
    if timestamp in {EARLIEST, EARLIEST_LOCAL}:
        # The epoch is that of the first record; without records it is the epoch in which the leader began to lead.
        is_known = _is_empty(request, partition) or partition.leader_epoch == 0
        epoch = partition.leader_epoch if is_known else -1
        start = readings.log_start_offset if timestamp == EARLIEST else readings.local_log_start_offset
        return _FoundOffset(error_codes.NONE, start(key, here) or 0, epoch)
    if timestamp != LATEST:
        return _FoundOffset()
    is_consumer = request.message.replica_id == _CONSUMER
    end = readings.high_watermark(key) if is_consumer else readings.log_end_offset(key, here)
    return _FoundOffset(error_codes.NONE, end or 0, partition.leader_epoch)


def _tiered_offset(request: Request, key: TopicPartition, timestamp: int) -> _FoundOffset:
    readings = request.cluster.replication.readings
    pending, start = readings.pending_upload_offset(key), readings.log_start_offset(key, request.node.id) or 0
    if pending is None or (timestamp == LATEST_TIERED and pending <= start):
        return _FoundOffset()
    return _FoundOffset(error_codes.NONE, pending - 1 if timestamp == LATEST_TIERED else pending)


def _is_empty(request: Request, partition: PartitionState) -> bool:
    readings, key, here = request.cluster.replication.readings, partition.topic_partition, request.node.id
    return (readings.log_end_offset(key, here) or 0) == (readings.log_start_offset(key, here) or 0)


_TRANSACTION_STATES = {
    "Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "Dead",
    "PrepareEpochFence",
}  # fmt: skip


def _list_transactions(request: Request) -> Message:
    """ListTransactions: the transactions that a broker coordinates.

    Permission: none; a real broker leaves out what the client may not see.

    Behaviour:
    - There are never any. States asked for that no release knows are named in the answer.

    Left out:
    - Transactions: there are no records.
    """
    unknown = [state for state in request.message.state_filters if state not in _TRANSACTION_STATES]
    return api.LIST_TRANSACTIONS.response(
        error_code=error_codes.NONE, unknown_state_filters=unknown, transaction_states=[]
    )


HANDLERS = (
    Handler(api.PRODUCE, _produce),
    Handler(api.FETCH, _fetch),
    Handler(api.LIST_OFFSETS, _list_offsets),
    Handler(api.LIST_TRANSACTIONS, _list_transactions),
)
