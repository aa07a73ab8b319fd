"""ListOffsets, asked as a consumer at leaders or as a debugging replica at any replica."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum

from kreassign.admin.call import Call
from kreassign.admin.translate.grouping import by_topic
from kreassign.admin.translate.outcomes import readings
from kreassign.model import Batch, TopicPartition
from kreassign.wire import api
from kreassign.wire.api import Message

CONSUMER = -1
DEBUGGING_REPLICA = -2
"""With this replica id a broker answers with its own copy's offsets, leader or not."""


class OffsetSpec(IntEnum):
    """Which offset is asked for, with Kafka's number for it."""

    LATEST = -1
    EARLIEST = -2


def list_offsets(
    partitions: Iterable[TopicPartition], spec: OffsetSpec, replica_id: int = CONSUMER
) -> Call[Batch[TopicPartition, int]]:
    """Offsets at the broker asked, an outcome per partition."""
    asked = tuple(partitions)
    wanted = by_topic(asked)

    def build(_version: int, _timeout_ms: int) -> Message:
        entry = api.LIST_OFFSETS.request.ListOffsetsTopic
        return api.LIST_OFFSETS.request(
            replica_id=replica_id,
            isolation_level=0,
            topics=[
                entry(
                    name=topic,
                    partitions=[
                        entry.ListOffsetsPartition(partition_index=number, current_leader_epoch=-1, timestamp=int(spec))
                        for number in numbers
                    ],
                )
                for topic, numbers in wanted.items()
            ],
        )

    return Call(api.LIST_OFFSETS, build, lambda response: _read(response, asked))


def _read(response: Message, asked: Iterable[TopicPartition]) -> Batch[TopicPartition, int]:
    answered = (
        (TopicPartition(topic.name, partition.partition_index), partition)
        for topic in response.topics
        for partition in topic.partitions
    )
    return readings(api.LIST_OFFSETS, answered, lambda _key, partition: partition.offset, asked)
