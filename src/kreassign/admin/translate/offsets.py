"""ListOffsets, asked as a consumer at leaders or as a debugging replica at any replica."""

from __future__ import annotations

from collections.abc import Iterable

from kreassign.admin.call import Call
from kreassign.admin.translate.grouping import by_topic
from kreassign.admin.translate.outcomes import readings
from kreassign.model import Batch, OffsetSpec, TopicPartition
from kreassign.wire import api
from kreassign.wire.api import Message

CONSUMER = -1
DEBUGGING_REPLICA = -2
"""With this replica id a broker answers with its own copy's offsets, leader or not."""

KNOWS_LOCAL = 8
"""The first version with `EARLIEST_LOCAL`. Brokers without it have no tiered storage: all their logs are local."""


def list_offsets(
    partitions: Iterable[TopicPartition], spec: OffsetSpec, replica_id: int = CONSUMER
) -> Call[Batch[TopicPartition, int]]:
    """Offsets at the broker asked, an outcome per partition; -1 where there is no such offset."""
    asked = tuple(partitions)
    wanted = by_topic(asked)

    def build(version: int, timeout_ms: int) -> Message:
        is_known = spec is not OffsetSpec.EARLIEST_LOCAL or version >= KNOWS_LOCAL
        timestamp = int(spec if is_known else OffsetSpec.EARLIEST)
        entry = api.LIST_OFFSETS.request.ListOffsetsTopic
        return api.LIST_OFFSETS.request(
            replica_id=replica_id,
            isolation_level=0,
            topics=[
                entry(
                    name=topic,
                    partitions=[
                        entry.ListOffsetsPartition(partition_index=number, current_leader_epoch=-1, timestamp=timestamp)
                        for number in numbers
                    ],
                )
                for topic, numbers in wanted.items()
            ],
            timeout_ms=timeout_ms,
        )

    return Call(api.LIST_OFFSETS, build, lambda response: _read(response, asked))


def _read(response: Message, asked: Iterable[TopicPartition]) -> Batch[TopicPartition, int]:
    own = {key: key for key in asked}  # the keys that the caller has: a million more take 70 MB
    found = (
        (TopicPartition(topic.name, partition.partition_index), partition)
        for topic in response.topics
        for partition in topic.partitions
    )
    answered = ((own.get(key, key), partition) for key, partition in found)
    return readings(api.LIST_OFFSETS, answered, lambda _key, partition: partition.offset, asked)
