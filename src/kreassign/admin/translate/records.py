"""Records of one partition: write one, read some."""

from __future__ import annotations

from dataclasses import replace

from kreassign.admin.call import Call, outcomes, readings
from kreassign.model import Batch, TopicPartition
from kreassign.model.requests import FetchedRecords
from kreassign.wire import api
from kreassign.wire.api import Message
from kreassign.wire.records import record_batch, records_in

# From version 13 on topics are named by id, which is not needed here.
_PRODUCE, _FETCH = replace(api.PRODUCE, max_version=12), replace(api.FETCH, max_version=12)
_ALL_IN_SYNC = -1
MAX_BYTES = 8_000_000


def produce(key: TopicPartition, at_ms: int, name: bytes, value: bytes | None) -> Call[Batch[TopicPartition, None]]:
    """Write a record, confirmed by all replicas in sync; without a value it is a tombstone."""

    def build(_version: int, timeout_ms: int) -> Message:
        entry = _PRODUCE.request.TopicProduceData
        partition = entry.PartitionProduceData(index=key.partition, records=record_batch(at_ms, name, value))
        return _PRODUCE.request(
            acks=_ALL_IN_SYNC, timeout_ms=timeout_ms, topic_data=[entry(name=key.topic, partition_data=[partition])]
        )

    def read(response: Message) -> Batch[TopicPartition, None]:
        answered = (
            (TopicPartition(topic.name, one.index), one.error_code, getattr(one, "error_message", None))
            for topic in response.responses
            for one in topic.partition_responses
        )
        return outcomes(_PRODUCE, answered, [key])

    return Call(_PRODUCE, build, read, is_write=True)


def fetch(key: TopicPartition, offset: int, wait_ms: int) -> Call[Batch[TopicPartition, FetchedRecords]]:
    """Records from an offset on, up to the high watermark; the broker waits so long for some."""

    def build(_version: int, _timeout_ms: int) -> Message:
        entry = _FETCH.request.FetchTopic
        partition = entry.FetchPartition(
            partition=key.partition, fetch_offset=offset, partition_max_bytes=MAX_BYTES, log_start_offset=-1
        )
        topics = [entry(topic=key.topic, partitions=[partition])]
        return _FETCH.request(replica_id=-1, max_wait_ms=wait_ms, min_bytes=1, max_bytes=MAX_BYTES, topics=topics)

    def value(_key: TopicPartition, entry: Message) -> FetchedRecords:
        records, following = records_in(bytes(entry.records or b""))
        return FetchedRecords(tuple(records), offset if following is None else following, entry.high_watermark)

    def read(response: Message) -> Batch[TopicPartition, FetchedRecords]:
        answered = (
            (TopicPartition(topic.topic, one.partition_index), one)
            for topic in response.responses
            for one in topic.partitions
        )
        return readings(_FETCH, answered, value, [key])

    return Call(_FETCH, build, read)
