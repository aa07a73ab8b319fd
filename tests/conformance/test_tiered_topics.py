"""Topics whose older segments are in remote storage (KIP-405): where their logs begin, what moves, what is refused."""

from __future__ import annotations

import pytest

from kreassign.model import TopicPartition
from kreassign.wire import api
from tests.conformance.clusters import Answered, Cluster
from tests.conformance.test_configs import DONE, SET, TOPIC, change, resource
from tests.conformance.test_offsets import CONSUMER, DEBUGGER, EARLIEST, LATEST

pytestmark = pytest.mark.tiered

LOCAL, LAST_REMOTE, PENDING = -4, -5, -6
SEGMENT = 1_048_576
KEPT = SEGMENT * 1.1
KEEPS_NOTHING = {"remote_storage_enable": "true", "segment_bytes": str(SEGMENT), "local_retention_bytes": "1"}


def offset(cluster: Cluster, partition: TopicPartition, timestamp: int, node: int = 0, replica: int = CONSUMER) -> int:
    """The offset that a node tells, which must not refuse."""
    entry = {"partition_index": 0, "timestamp": timestamp, "current_leader_epoch": -1}
    topics = [{"name": partition.topic, "partitions": [entry]}]
    answer = cluster.ask(api.LIST_OFFSETS, 11, node=node, replica_id=replica, isolation_level=0, topics=topics)
    (one,) = answer.topics[0].partitions
    assert one.error_code == 0
    return int(one.offset)


def size(cluster: Cluster, partition: TopicPartition, broker: int) -> int:
    dirs = cluster.client.describe_log_dirs([broker], partitions=[partition])[broker]
    return sum(copy.size_bytes for log_dir in dirs for copy in log_dir.replicas)


def tiered(cluster: Cluster, *replicas: int) -> TopicPartition:
    """A partition of which brokers keep the last segment only."""
    partition = cluster.create_one(*replicas, **KEEPS_NOTHING)
    cluster.backend.write(partition, 3 * SEGMENT + SEGMENT // 2)

    def is_settled(node: int) -> bool:
        local, pending = (offset(cluster, partition, each, node, DEBUGGER) for each in (LOCAL, PENDING))
        return 0 < local <= pending and size(cluster, partition, node) < KEPT

    for node in replicas:
        cluster.until(lambda node=node: is_settled(node), f"one segment of {partition} on {node}")
    return partition


@pytest.mark.parametrize(("settings", "size_bytes", "offsets"), [
    (KEEPS_NOTHING, 0, [0, 0, -1, -1]), (KEEPS_NOTHING, SEGMENT // 4, [0, 0, -1, 0]), ({}, SEGMENT, [0, 0, -1, -1]),
], ids=["empty", "before a segment is full", "not tiered"])  # fmt: skip
def test_nothing_is_remote_before_a_segment_of_a_tiered_log_is_full(
    cluster: Cluster, settings: dict[str, str], size_bytes: int, offsets: list[int]
) -> None:
    partition = cluster.create_one(0, **settings)
    if size_bytes:
        cluster.backend.write(partition, size_bytes)
    assert (offset(cluster, partition, LATEST) > 0) == (size_bytes > 0)
    assert [offset(cluster, partition, timestamp) for timestamp in (EARLIEST, LOCAL, LAST_REMOTE, PENDING)] == offsets


def test_a_new_replica_of_a_tiered_log_copies_only_its_local_part(cluster: Cluster) -> None:
    partition = tiered(cluster, 0, 1)
    local, pending, end = (offset(cluster, partition, timestamp) for timestamp in (LOCAL, PENDING, LATEST))
    assert offset(cluster, partition, EARLIEST) == 0
    last = offset(cluster, partition, LAST_REMOTE)
    assert pending - 1 <= last <= offset(cluster, partition, PENDING) - 1
    assert end / 2 < local <= pending <= end
    cluster.move(partition, 0, 2)
    cluster.becomes(partition, (0, 2), {0, 2}, 0)
    begins, has_itself, ends = (offset(cluster, partition, each, 2, DEBUGGER) for each in (EARLIEST, LOCAL, LATEST))
    assert (begins, ends) == (0, end)
    # Its leader may have deleted more meanwhile.
    assert local <= has_itself <= offset(cluster, partition, PENDING)
    assert size(cluster, partition, 2) < KEPT


@pytest.mark.parametrize(("settings", "text"), [
    ({"local.retention.bytes": "100", "retention.bytes": "50"},
     ("Invalid value 100 for configuration local.retention.bytes: Value must not be more than retention.bytes property "
     "value: 50")),
    ({"local.retention.ms": "100", "retention.ms": "50"},
     ("Invalid value 100 for configuration local.retention.ms: Value must not be more than retention.ms property "
     "value: 50")),
    ({"local.retention.bytes": "-1", "retention.bytes": "50"},
     ("Invalid value -1 for configuration local.retention.bytes: Value must not be -1 as retention.bytes value is set "
     "as 50.")),
    ({"cleanup.policy": "compact"},
     "Remote log storage only supports topics with cleanup.policy=delete or cleanup.policy being an empty list."),
    ({"remote.storage.enable": "false"},
     ("It is invalid to disable remote storage without deleting remote data. If you want to keep the remote data and "
     "turn to read only, please set `remote.storage.enable=true,remote.log.copy.disable=true`. If you want to disable "
     "remote storage and delete all remote data, please set "
     "`remote.storage.enable=false,remote.log.delete.on.disable=true`.")),
    ({"remote.storage.enable": "false", "remote.log.delete.on.disable": "true"}, None),
    ({"local.retention.bytes": "-2", "retention.bytes": "50"}, None),
], ids=["bytes", "time", "all", "compacted", "off", "deleted", "as retention"])  # fmt: skip
def test_settings_of_a_tiered_topic_must_go_together(
    cluster: Cluster, settings: dict[str, str], text: str | None
) -> None:
    cluster.create_one(0, remote_storage_enable="true")
    steps = [(SET, name, value) for name, value in settings.items()]
    answered = change(cluster, resource(TOPIC, cluster.topic, *steps), validate_only=True)
    assert answered == [(cluster.topic, DONE if text is None else Answered(40, text))]
