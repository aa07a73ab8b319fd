"""AlterReplicaLogDirs: moves copies into other directories of the asked broker (KIP-113).

Versions: 0-2 on 3.7, 3.9; 1-2 on 4.2, 4.3.
Permission: ALTER on the cluster; without it CLUSTER_AUTHORIZATION_FAILED on each partition.

Behaviour:
- The answer says only that a move began, or that nothing had to be done. The directory where a copy already is gives
  up a running move, another one replaces it.
- A path that is not configured, to the letter, is LOG_DIR_NOT_FOUND; an offline one KAFKA_STORAGE_ERROR; a cordoned
  one (4.3) INVALID_REPLICA_ASSIGNMENT.
- An unknown partition is UNKNOWN_TOPIC_OR_PARTITION, one that the broker does not host REPLICA_NOT_AVAILABLE. In both
  cases the broker remembers the directory and puts the copy there when it gets one.
- A partition named under two directories goes to the last.

Left out:
- A broker with another directory offline refuses moves to healthy ones; the twin does not.
"""

from __future__ import annotations

from kreassign.model import LogDir, TopicPartition
from kreassign.model.error_codes import (
    CLUSTER_AUTHORIZATION_FAILED,
    INVALID_REPLICA_ASSIGNMENT,
    INVALID_TOPIC_EXCEPTION,
    KAFKA_STORAGE_ERROR,
    LOG_DIR_NOT_FOUND,
    NONE,
    REPLICA_NOT_AVAILABLE,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from kreassign.twin.access.permissions import Operation
from kreassign.twin.api.handler import Handler
from kreassign.twin.api.request import Request
from kreassign.wire import api
from kreassign.wire.api import Message

_RESPONSE = api.ALTER_REPLICA_LOG_DIRS.response
_TOPIC = _RESPONSE.AlterReplicaLogDirTopicResult
# A future copy's directory is called <topic>-<partition>.<32 digits>-future, and file names have 255 characters.
_LONGEST_NAME = 255 - len(".-future") - 32


def _handle(request: Request) -> Message:
    targets = {
        TopicPartition(topic.name, number): entry.path
        for entry in request.message.dirs
        for topic in entry.topics
        for number in topic.partitions
    }
    if request.allows(Operation.ALTER):
        log_dirs = {log_dir.path: log_dir for log_dir in request.cluster.replication.readings.log_dirs(request.node.id)}
        codes = {key: _alter(request, key, path, log_dirs.get(path)) for key, path in targets.items()}
    else:
        codes = dict.fromkeys(targets, CLUSTER_AUTHORIZATION_FAILED)
    return _RESPONSE(results=_results(codes))


def _alter(request: Request, key: TopicPartition, path: str, log_dir: LogDir | None) -> int:
    if len(str(key)) > _LONGEST_NAME:
        return INVALID_TOPIC_EXCEPTION
    if log_dir is None:
        return LOG_DIR_NOT_FOUND
    if log_dir.error is not None:
        return KAFKA_STORAGE_ERROR
    if log_dir.is_cordoned:
        return INVALID_REPLICA_ASSIGNMENT
    if request.cluster.replication.alter_log_dir(key, request.node.id, path):
        return NONE
    known = request.metadata.partition(key)
    return UNKNOWN_TOPIC_OR_PARTITION if known is None else REPLICA_NOT_AVAILABLE


def _results(codes: dict[TopicPartition, int]) -> list[Message]:
    topics: dict[str, list[Message]] = {}
    for (topic, number), code in codes.items():
        entry = _TOPIC.AlterReplicaLogDirPartitionResult(partition_index=number, error_code=code)
        topics.setdefault(topic, []).append(entry)
    return [_TOPIC(topic_name=topic, partitions=partitions) for topic, partitions in topics.items()]


HANDLERS = (Handler(api.ALTER_REPLICA_LOG_DIRS, _handle),)
