"""KIP-179: AlterPartitionCounts, AlterReplicationFactors, ReassignPartitions and ReplicaStatus."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import TypeVar

from kreassign.admin.call import Call, raise_if_failed
from kreassign.admin.translate.grouping import by_topic
from kreassign.admin.translate.outcomes import outcomes, readings
from kreassign.model import Batch, ReplicaStatus, TopicPartition
from kreassign.model.error_codes import NONE
from kreassign.wire import kip_179
from kreassign.wire.api import Api, Message

UNKNOWN = -1

Key = TypeVar("Key")


def alter_partition_counts(counts: Mapping[str, int], *, validate_only: bool) -> Call[Batch[str, None]]:
    """Give topics so many partitions, an outcome per topic."""
    known = kip_179.ALTER_PARTITION_COUNTS

    def build(_version: int, timeout_ms: int) -> Message:
        entry = known.request.TopicPartitionCount
        topics = [entry(name=topic, partition_count=count) for topic, count in counts.items()]
        return known.request(timeout_ms=timeout_ms, validate_only=validate_only, topics=topics)

    return _write(known, build, lambda response: _by_name(known, response, counts))


def alter_replication_factors(
    factors: Mapping[str, int], *, validate_only: bool, may_undercut_min_in_sync: bool
) -> Call[Batch[str, None]]:
    """Give topics so many replicas, an outcome per topic."""
    known = kip_179.ALTER_REPLICATION_FACTORS

    def build(_version: int, timeout_ms: int) -> Message:
        entry = known.request.TopicReplicationFactor
        return known.request(
            timeout_ms=timeout_ms,
            validate_only=validate_only,
            may_undercut_min_in_sync=may_undercut_min_in_sync,
            topics=[entry(name=topic, replication_factor=factor) for topic, factor in factors.items()],
        )

    return _write(known, build, lambda response: _by_name(known, response, factors))


def reassign_partitions(
    targets: Mapping[TopicPartition, tuple[int, ...]], *, validate_only: bool
) -> Call[Batch[TopicPartition, None]]:
    """Start moves, an outcome per partition."""
    known = kip_179.REASSIGN_PARTITIONS

    def build(_version: int, timeout_ms: int) -> Message:
        entry = known.request.ReassignedTopic
        topics = [
            entry(
                name=topic,
                partitions=[
                    entry.ReassignedPartition(
                        partition_index=number, replicas=list(targets[TopicPartition(topic, number)])
                    )
                    for number in numbers
                ],
            )
            for topic, numbers in by_topic(targets).items()
        ]
        return known.request(timeout_ms=timeout_ms, validate_only=validate_only, topics=topics)

    def read(response: Message) -> Batch[TopicPartition, None]:
        raise_if_failed(known, response.error_code, response.error_message)
        answered = (
            (TopicPartition(topic.name, entry.partition_index), entry.error_code, entry.error_message)
            for topic in response.topics
            for entry in topic.partitions
        )
        return outcomes(known, answered, targets)

    return _write(known, build, read)


def replica_status(
    partitions: Iterable[TopicPartition],
    leader: int,
    named: Mapping[TopicPartition, Iterable[int]] = MappingProxyType({}),
) -> Call[Batch[TopicPartition, tuple[ReplicaStatus, ...]]]:
    """How far the replicas of these partitions are, which `leader` leads; of a partition in `named` those alone.

    A broker among them that the leader cannot tell of fails its partition.
    """
    known = kip_179.REPLICA_STATUS
    asked = list(partitions)

    def brokers(key: TopicPartition) -> list[int] | None:
        return list(dict.fromkeys(named[key])) if key in named else None

    def build(_version: int, _timeout_ms: int) -> Message:
        entry = known.request.AskedTopic
        topics = [
            entry(
                name=topic,
                partitions=[
                    entry.AskedPartition(partition_index=number, brokers=brokers(TopicPartition(topic, number)))
                    for number in numbers
                ],
            )
            for topic, numbers in by_topic(asked).items()
        ]
        return known.request(topics=topics)

    def read(response: Message) -> Batch[TopicPartition, tuple[ReplicaStatus, ...]]:
        raise_if_failed(known, response.error_code, response.error_message)
        answered = (
            (TopicPartition(topic.name, entry.partition_index), entry)
            for topic in response.topics
            for entry in topic.partitions
        )
        return readings(known, answered, lambda key, entry: tuple(_statuses(key, entry, leader)), asked, code=_code)

    return Call(known, build, read)


def _code(entry: Message) -> int:
    """That of the partition, or of the first replica of which nothing can be told."""
    codes: tuple[int, ...] = (entry.error_code, *(replica.error_code for replica in entry.replicas))
    return next((code for code in codes if code != NONE), NONE)


def _statuses(key: TopicPartition, entry: Message, leader: int) -> Iterator[ReplicaStatus]:
    for replica in entry.replicas:
        yield ReplicaStatus(
            topic_partition=key,
            broker=replica.broker_id,
            is_leader=replica.broker_id == leader,
            status_time_ms=replica.status_time_ms,
            log_start_offset=replica.log_start_offset,
            log_end_offset=replica.log_end_offset,
            lag_records=replica.lag_records,
            lag_bytes=_known(replica.lag_bytes),
            size_bytes=_known(replica.size_bytes),
        )


def _known(value: int) -> int | None:
    return None if value == UNKNOWN else value


def _by_name(known: Api, response: Message, asked: Mapping[str, int]) -> Batch[str, None]:
    raise_if_failed(known, response.error_code, response.error_message)
    return outcomes(known, ((entry.name, entry.error_code, entry.error_message) for entry in response.topics), asked)


def _write(
    known: Api, build: Callable[[int, int], Message], read: Callable[[Message], Batch[Key, None]]
) -> Call[Batch[Key, None]]:
    return Call(known, build, read, is_write=True, routing_codes=lambda response: (response.error_code,))
