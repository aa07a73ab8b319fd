"""DescribeLogDirs: the log directories of the asked broker and the copies in them.

Versions: 0-4 on 3.7, 3.9; 1-4 on 4.2; 1-5 on 4.3.
Permission: DESCRIBE on the cluster; without it CLUSTER_AUTHORIZATION_FAILED, which before version 3 shows as no
results.

Behaviour:
- One result for each configured directory, in the order of the configuration, with its size and what is free.
- An offline directory has KAFKA_STORAGE_ERROR and no topics.
- A move between directories shows as a second entry with the future flag, whose lag is in records; ordinary copies
  have a lag of 0, however far behind they are.
- Null asks for all partitions, an empty list for none.

Left out:
- Sizes have no segments: indexes and space set aside are not counted.
"""

from __future__ import annotations

from kreassign.model import LogDir, TopicPartition
from kreassign.model.error_codes import CLUSTER_AUTHORIZATION_FAILED, KAFKA_STORAGE_ERROR, NONE
from kreassign.twin.access.permissions import Operation
from kreassign.twin.api.handler import Handler
from kreassign.twin.api.request import Request
from kreassign.wire import api
from kreassign.wire.api import Message

_RESPONSE = api.DESCRIBE_LOG_DIRS.response
_RESULT = _RESPONSE.DescribeLogDirsResult
_TOPIC = _RESULT.DescribeLogDirsTopic


def _handle(request: Request) -> Message:
    if not request.allows(Operation.DESCRIBE):
        return _RESPONSE(error_code=CLUSTER_AUTHORIZATION_FAILED, results=[])
    topics = request.message.topics
    wanted = None if topics is None else {TopicPartition(t.topic, number) for t in topics for number in t.partitions}
    log_dirs = request.cluster.replication.readings.log_dirs(request.node.id)
    return _RESPONSE(results=[_result(log_dir, wanted) for log_dir in log_dirs])


def _result(log_dir: LogDir, wanted: set[TopicPartition] | None) -> Message:
    topics: dict[str, list[Message]] = {}
    for replica in log_dir.replicas:
        topic, number = replica.topic_partition
        if wanted is None or replica.topic_partition in wanted:
            entry = _TOPIC.DescribeLogDirsPartition(
                partition_index=number,
                partition_size=replica.size_bytes,
                offset_lag=replica.offset_lag,
                is_future_key=replica.is_future,
            )
            topics.setdefault(topic, []).append(entry)
    return _RESULT(
        error_code=NONE if log_dir.error is None else KAFKA_STORAGE_ERROR,
        log_dir=log_dir.path,
        topics=[_TOPIC(name=topic, partitions=partitions) for topic, partitions in topics.items()],
        total_bytes=-1 if log_dir.total_bytes is None else log_dir.total_bytes,
        usable_bytes=-1 if log_dir.usable_bytes is None else log_dir.usable_bytes,
        is_cordoned=log_dir.is_cordoned,
    )


HANDLERS = (Handler(api.DESCRIBE_LOG_DIRS, _handle),)
