"""Calls about partitions and replicas: reassign, elect leaders, offsets, log directories.

AlterPartitionReassignments, ListPartitionReassignments (KIP-455, KIP-860); the four requests of KIP-179;
ElectLeaders (KIP-183, KIP-460); ListOffsets; DescribeLogDirs, AlterReplicaLogDirs (KIP-113).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import TypeVar

from kreassign.admin import call
from kreassign.errors import Unsupported
from kreassign.model import Batch, ElectionType, LogDir, OffsetSpec, OngoingReassignment, ReplicaStatus, TopicPartition
from kreassign.model.cluster import LogDirReplicas
from kreassign.model.error_codes import ELECTION_NOT_NEEDED, KAFKA_STORAGE_ERROR, NONE, error_code, has_code
from kreassign.wire import api
from kreassign.wire.api import Api, Message

# AlterPartitionReassignments and ListPartitionReassignments (KIP-455, KIP-860).

_FACTOR_GUARD_VERSION = 1
# The text of Kafka's client (KIP-860, "Compatibility Validation").
_NO_FACTOR_GUARD = (
    "The broker does not support the AllowReplicationFactorChange option for the AlterPartitionReassignments API. "
    "Consider re-sending the request without the option or updating the server version"
)

Targets = Mapping[TopicPartition, tuple[int, ...] | None]


def alter_partition_reassignments(
    targets: Targets, *, allow_replication_factor_change: bool
) -> call.Call[Batch[TopicPartition, None]]:
    """Start, override or (None) cancel reassignments, an outcome per partition.

    Without `allow_replication_factor_change` a broker that does not know KIP-860 is refused before anything is
    sent; with it, such a broker gets version 0 silently.
    """
    entry = api.ALTER_PARTITION_REASSIGNMENTS.request.ReassignableTopic

    def partition(key: TopicPartition) -> Message:
        replicas = targets[key]
        new = None if replicas is None else list(replicas)
        return entry.ReassignablePartition(partition_index=key.partition, replicas=new)

    def build(version: int, timeout_ms: int) -> Message:
        if not allow_replication_factor_change and version < _FACTOR_GUARD_VERSION:
            raise Unsupported(_NO_FACTOR_GUARD)
        return api.ALTER_PARTITION_REASSIGNMENTS.request(
            timeout_ms=timeout_ms,
            allow_replication_factor_change=allow_replication_factor_change,
            topics=call.topic_entries(entry, targets, partition),
        )

    def read(response: Message) -> Batch[TopicPartition, None]:
        call.raise_if_failed(api.ALTER_PARTITION_REASSIGNMENTS, response.error_code, response.error_message)
        return call.partition_outcomes(api.ALTER_PARTITION_REASSIGNMENTS, response.responses, targets)

    return _write_call(api.ALTER_PARTITION_REASSIGNMENTS, build, read)


def list_partition_reassignments(
    partitions: Iterable[TopicPartition] | None,
) -> call.Call[dict[TopicPartition, OngoingReassignment]]:
    """Ongoing reassignments of these partitions or (None) of all; idle and unknown partitions are left out."""
    wanted = None if partitions is None else call.by_topic(partitions)

    def build(_version: int, timeout_ms: int) -> Message:
        entry = api.LIST_PARTITION_REASSIGNMENTS.request.ListPartitionReassignmentsTopics
        return api.LIST_PARTITION_REASSIGNMENTS.request(
            timeout_ms=timeout_ms,
            topics=None
            if wanted is None
            else [entry(name=topic, partition_indexes=numbers) for topic, numbers in wanted.items()],
        )

    def read(response: Message) -> dict[TopicPartition, OngoingReassignment]:
        call.raise_if_failed(api.LIST_PARTITION_REASSIGNMENTS, response.error_code, response.error_message)
        return {
            key: OngoingReassignment(tuple(one.replicas), tuple(one.adding_replicas), tuple(one.removing_replicas))
            for key, one in call.partition_entries(response.topics)
        }

    return call.Call(
        api.LIST_PARTITION_REASSIGNMENTS,
        build,
        read,
        routing_codes=lambda response: (response.error_code,),
        is_answered_by_inactive_controllers=True,
        # With KRaft a broker may forward to a controller that is not active any more, and another one to the active.
        is_doubtful=lambda moves: not moves,
        is_brief=True,
    )


# AlterPartitionCounts, AlterReplicationFactors, ReassignPartitions and ReplicaStatus (KIP-179).

UNKNOWN_BYTES = -1

Key = TypeVar("Key")


def alter_partition_counts(counts: Mapping[str, int], *, validate_only: bool) -> call.Call[Batch[str, None]]:
    """Set the number of partitions of topics, an outcome per topic."""
    known = api.ALTER_PARTITION_COUNTS

    def build(_version: int, timeout_ms: int) -> Message:
        entry = known.request.TopicPartitionCount
        topics = [entry(name=topic, partition_count=count) for topic, count in counts.items()]
        return known.request(timeout_ms=timeout_ms, validate_only=validate_only, topics=topics)

    return _write_call(known, build, lambda response: _by_name(known, response, counts))


def alter_replication_factors(
    factors: Mapping[str, int], *, validate_only: bool, may_undercut_min_in_sync: bool
) -> call.Call[Batch[str, None]]:
    """Set the replication factor of topics, an outcome per topic."""
    known = api.ALTER_REPLICATION_FACTORS

    def build(_version: int, timeout_ms: int) -> Message:
        entry = known.request.TopicReplicationFactor
        return known.request(
            timeout_ms=timeout_ms,
            validate_only=validate_only,
            may_undercut_min_in_sync=may_undercut_min_in_sync,
            topics=[entry(name=topic, replication_factor=factor) for topic, factor in factors.items()],
        )

    return _write_call(known, build, lambda response: _by_name(known, response, factors))


def reassign_partitions(
    targets: Mapping[TopicPartition, tuple[int, ...]], *, validate_only: bool
) -> call.Call[Batch[TopicPartition, None]]:
    """Start moves, an outcome per partition."""
    known = api.REASSIGN_PARTITIONS
    entry = known.request.ReassignedTopic

    def partition(key: TopicPartition) -> Message:
        return entry.ReassignedPartition(partition_index=key.partition, replicas=list(targets[key]))

    def build(_version: int, timeout_ms: int) -> Message:
        topics = call.topic_entries(entry, targets, partition)
        return known.request(timeout_ms=timeout_ms, validate_only=validate_only, topics=topics)

    def read(response: Message) -> Batch[TopicPartition, None]:
        call.raise_if_failed(known, response.error_code, response.error_message)
        return call.partition_outcomes(known, response.topics, targets)

    return _write_call(known, build, read)


def replica_status(
    partitions: Iterable[TopicPartition],
    leader: int,
    named: Mapping[TopicPartition, Iterable[int]] = MappingProxyType({}),
) -> call.Call[Batch[TopicPartition, tuple[ReplicaStatus, ...]]]:
    """Status of the replicas of partitions led by `leader`; for a partition in `named` on those brokers only.

    A partition fails if the leader cannot report one of its named brokers.
    """
    known = api.REPLICA_STATUS
    entry = known.request.AskedTopic
    asked = list(partitions)

    def partition(key: TopicPartition) -> Message:
        brokers = list(dict.fromkeys(named[key])) if key in named else None
        return entry.AskedPartition(partition_index=key.partition, brokers=brokers)

    def build(_version: int, _timeout_ms: int) -> Message:
        return known.request(topics=call.topic_entries(entry, asked, partition))

    def read(response: Message) -> Batch[TopicPartition, tuple[ReplicaStatus, ...]]:
        call.raise_if_failed(known, response.error_code, response.error_message)

        def statuses(key: TopicPartition, one: Message) -> tuple[ReplicaStatus, ...]:
            return tuple(_statuses(key, one, leader))

        return call.readings(known, call.partition_entries(response.topics), statuses, asked, code=_status_code)

    return call.Call(known, build, read)


def _status_code(entry: Message) -> int:
    """The error code of the partition, or of the first replica without a status."""
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
            lag_bytes=_known_bytes(replica.lag_bytes),
            size_bytes=_known_bytes(replica.size_bytes),
        )


def _known_bytes(count: int | None) -> int | None:
    return None if count == UNKNOWN_BYTES else count


def _by_name(known: Api, response: Message, asked: Mapping[str, int]) -> Batch[str, None]:
    call.raise_if_failed(known, response.error_code, response.error_message)
    return call.outcomes(
        known, ((entry.name, entry.error_code, entry.error_message) for entry in response.topics), asked
    )


def _write_call(
    known: Api, build: Callable[[int, int], Message], read: Callable[[Message], Batch[Key, None]]
) -> call.Call[Batch[Key, None]]:
    return call.Call(known, build, read, is_write=True, routing_codes=lambda response: (response.error_code,))


# ElectLeaders (KIP-183, KIP-460).

_ELECTION_TYPE_VERSION = 1


def elect_leaders(
    partitions: Iterable[TopicPartition] | None, election_type: ElectionType
) -> call.Call[Batch[TopicPartition, None]]:
    """Elect leaders of these partitions or (None) of all; for all, partitions that needed none are left out."""
    wanted = None if partitions is None else call.by_topic(partitions)

    def build(version: int, timeout_ms: int) -> Message:
        if election_type is not ElectionType.PREFERRED and version < _ELECTION_TYPE_VERSION:
            raise Unsupported("this broker can only elect preferred leaders (ElectLeaders version 1, Kafka 2.4)")
        entry = api.ELECT_LEADERS.request.TopicPartitions
        return api.ELECT_LEADERS.request(
            election_type=int(election_type),
            topic_partitions=None
            if wanted is None
            else [entry(topic=topic, partitions=numbers) for topic, numbers in wanted.items()],
            timeout_ms=timeout_ms,
        )

    def read(response: Message) -> Batch[TopicPartition, None]:
        call.raise_if_failed(api.ELECT_LEADERS, response.error_code or 0)
        asked = (
            call.NOT_NAMED if wanted is None else [TopicPartition(topic, n) for topic, ns in wanted.items() for n in ns]
        )
        return call.outcomes(api.ELECT_LEADERS, _elections(response), asked)

    return call.Call(api.ELECT_LEADERS, build, read, is_write=True, routing_codes=_election_codes)


def already_led(elections: Batch[TopicPartition, None]) -> Batch[TopicPartition, None]:
    """Outcomes with success for each partition that needed no election."""
    well = {key for key, error in elections.failed.items() if has_code(error, ELECTION_NOT_NEEDED)}
    failed = {key: error for key, error in elections.failed.items() if key not in well}
    return Batch({**elections.ok, **dict.fromkeys(sorted(well))}, failed)


def _elections(response: Message) -> Iterable[tuple[TopicPartition, int, str | None]]:
    for topic in response.replica_election_results:
        for result in topic.partition_result:
            yield TopicPartition(topic.topic, result.partition_id), result.error_code, result.error_message


def _election_codes(response: Message) -> list[int]:
    # ZooKeeper-mode brokers report NOT_CONTROLLER per partition, with 0 for the whole request.
    return [response.error_code or 0, *(code for _, code, _ in _elections(response))]


# ListOffsets: as a consumer from leaders, or as a debugging replica from any replica.

CONSUMER = -1
DEBUGGING_REPLICA = -2
"""For this replica id a broker answers with its own copy's offsets, leader or not."""

KNOWS_LOCAL = 8
"""The first version with `EARLIEST_LOCAL`. Brokers without it have no tiered storage: all their logs are local."""


def list_offsets(
    partitions: Iterable[TopicPartition], spec: OffsetSpec, replica_id: int = CONSUMER
) -> call.Call[Batch[TopicPartition, int]]:
    """Offsets from the requested broker, an outcome per partition; -1 without such an offset."""
    asked = tuple(partitions)
    wanted = call.by_topic(asked)

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

    return call.Call(api.LIST_OFFSETS, build, lambda response: _read_offset(response, asked))


def _read_offset(response: Message, asked: Iterable[TopicPartition]) -> Batch[TopicPartition, int]:
    own = {key: key for key in asked}  # reuse the caller's keys: a million new ones take 70 MB
    answered = ((own.get(key, key), partition) for key, partition in call.partition_entries(response.topics))
    return call.readings(api.LIST_OFFSETS, answered, lambda _key, partition: partition.offset, asked)


# DescribeLogDirs and AlterReplicaLogDirs (KIP-113).


def describe_log_dirs(partitions: Iterable[TopicPartition] | None) -> call.Call[tuple[LogDir, ...]]:
    """The log directories of a broker, with the copies of these partitions or (None) of all."""
    wanted = None if partitions is None else call.by_topic(partitions)

    def build(_version: int, _timeout_ms: int) -> Message:
        entry = api.DESCRIBE_LOG_DIRS.request.DescribableLogDirTopic
        topics = None
        if wanted is not None:
            topics = [entry(topic=topic, partitions=numbers) for topic, numbers in wanted.items()]
        return api.DESCRIBE_LOG_DIRS.request(topics=topics)

    def read(response: Message) -> tuple[LogDir, ...]:
        call.raise_if_failed(api.DESCRIBE_LOG_DIRS, response.error_code or 0)
        # Any other error says nothing about the directory: taken for an offline one, its copies would count as lost.
        for result in response.results:
            if result.error_code != KAFKA_STORAGE_ERROR:
                call.raise_if_failed(api.DESCRIBE_LOG_DIRS, result.error_code, item=result.log_dir)
        return tuple(_log_dir(result) for result in response.results)

    return call.Call(api.DESCRIBE_LOG_DIRS, build, read)


def _log_dir(result: Message) -> LogDir:
    return LogDir(
        path=result.log_dir,
        error=None if result.error_code == NONE else error_code(result.error_code).name,
        total_bytes=_known_bytes(result.total_bytes),
        usable_bytes=_known_bytes(result.usable_bytes),
        is_cordoned=bool(result.is_cordoned),
        replicas=_replicas(result.topics),
    )


def _replicas(topics: Iterable[Message]) -> LogDirReplicas:
    found = LogDirReplicas()
    for topic in topics:
        copies = topic.partitions
        # Every broker names the same topics: share one string among them.
        found.add(
            sys.intern(topic.name),
            ((one.partition_index, one.partition_size, one.offset_lag, bool(one.is_future_key)) for one in copies),
        )
    return found


def alter_replica_log_dirs(targets: Mapping[TopicPartition, str]) -> call.Call[Batch[TopicPartition, None]]:
    """Move copies of a broker into these directories, an outcome per partition."""

    def build(_version: int, _timeout_ms: int) -> Message:
        entry = api.ALTER_REPLICA_LOG_DIRS.request.AlterReplicaLogDir
        return api.ALTER_REPLICA_LOG_DIRS.request(
            dirs=[
                entry(
                    path=path,
                    topics=[
                        entry.AlterReplicaLogDirTopic(name=topic, partitions=numbers)
                        for topic, numbers in call.by_topic(partitions).items()
                    ],
                )
                for path, partitions in _partitions_by_path(targets).items()
            ]
        )

    def read(response: Message) -> Batch[TopicPartition, None]:
        answered = (
            (TopicPartition(topic.topic_name, partition.partition_index), partition.error_code, None)
            for topic in response.results
            for partition in topic.partitions
        )
        return call.outcomes(api.ALTER_REPLICA_LOG_DIRS, answered, targets)

    return call.Call(api.ALTER_REPLICA_LOG_DIRS, build, read, is_write=True)


def _partitions_by_path(targets: Mapping[TopicPartition, str]) -> dict[str, list[TopicPartition]]:
    grouped: dict[str, list[TopicPartition]] = {}
    for topic_partition, path in targets.items():
        grouped.setdefault(path, []).append(topic_partition)
    return grouped
