"""DescribeLogDirs and AlterReplicaLogDirs (KIP-113)."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping

from kreassign.admin.call import Call, raise_if_failed
from kreassign.admin.translate.grouping import by_topic
from kreassign.admin.translate.outcomes import outcomes
from kreassign.model import Batch, LogDir, TopicPartition
from kreassign.model.error_codes import NONE, error_code
from kreassign.model.log_dir_replicas import LogDirReplicas
from kreassign.wire import api
from kreassign.wire.api import Message

_UNKNOWN_BYTES = -1


def describe_log_dirs(partitions: Iterable[TopicPartition] | None) -> Call[tuple[LogDir, ...]]:
    """The log directories of the broker asked, with the copies of these partitions or (None) of all."""
    wanted = None if partitions is None else by_topic(partitions)

    def build(_version: int, _timeout_ms: int) -> Message:
        entry = api.DESCRIBE_LOG_DIRS.request.DescribableLogDirTopic
        topics = None
        if wanted is not None:
            topics = [entry(topic=topic, partitions=numbers) for topic, numbers in wanted.items()]
        return api.DESCRIBE_LOG_DIRS.request(topics=topics)

    def read(response: Message) -> tuple[LogDir, ...]:
        raise_if_failed(api.DESCRIBE_LOG_DIRS, response.error_code or 0)
        return tuple(_log_dir(result) for result in response.results)

    return Call(api.DESCRIBE_LOG_DIRS, build, read)


def _log_dir(result: Message) -> LogDir:
    return LogDir(
        path=result.log_dir,
        error=None if result.error_code == NONE else error_code(result.error_code).name,
        total_bytes=_bytes(result.total_bytes),
        usable_bytes=_bytes(result.usable_bytes),
        is_cordoned=bool(result.is_cordoned),
        replicas=_replicas(result.topics),
    )


def _replicas(topics: Iterable[Message]) -> LogDirReplicas:
    found = LogDirReplicas()
    for topic in topics:
        copies = topic.partitions
        # Every broker names the same topics: one text for all of them.
        found.add(
            sys.intern(topic.name),
            ((one.partition_index, one.partition_size, one.offset_lag, bool(one.is_future_key)) for one in copies),
        )
    return found


def _bytes(count: int | None) -> int | None:
    return None if count is None or count == _UNKNOWN_BYTES else count


def alter_replica_log_dirs(targets: Mapping[TopicPartition, str]) -> Call[Batch[TopicPartition, None]]:
    """Put copies on the broker asked into these directories, an outcome per partition."""

    def build(_version: int, _timeout_ms: int) -> Message:
        entry = api.ALTER_REPLICA_LOG_DIRS.request.AlterReplicaLogDir
        return api.ALTER_REPLICA_LOG_DIRS.request(
            dirs=[
                entry(
                    path=path,
                    topics=[
                        entry.AlterReplicaLogDirTopic(name=topic, partitions=numbers)
                        for topic, numbers in by_topic(partitions).items()
                    ],
                )
                for path, partitions in _by_path(targets).items()
            ]
        )

    def read(response: Message) -> Batch[TopicPartition, None]:
        answered = (
            (TopicPartition(topic.topic_name, partition.partition_index), partition.error_code, None)
            for topic in response.results
            for partition in topic.partitions
        )
        return outcomes(api.ALTER_REPLICA_LOG_DIRS, answered, targets)

    return Call(api.ALTER_REPLICA_LOG_DIRS, build, read, is_write=True)


def _by_path(targets: Mapping[TopicPartition, str]) -> dict[str, list[TopicPartition]]:
    grouped: dict[str, list[TopicPartition]] = {}
    for topic_partition, path in targets.items():
        grouped.setdefault(path, []).append(topic_partition)
    return grouped
