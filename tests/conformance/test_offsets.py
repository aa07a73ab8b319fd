"""ListOffsets, and what else a client asks before it does anything: groups, coordinators, the quorum."""

from __future__ import annotations

import pytest

from kreassign.model import TopicPartition
from kreassign.wire import api
from tests.conformance.clusters import CONTROLLER, NEWEST, Cluster

both_releases = pytest.mark.releases(NEWEST, "3.9")
LATEST, EARLIEST = -1, -2
CONSUMER, DEBUGGER = -1, -2
SIZE_BYTES = 300_000


def offset(
    cluster: Cluster,
    partition: TopicPartition,
    timestamp: int,
    *,
    node: int,
    replica: int = CONSUMER,
    epoch: int = -1,
) -> tuple[int, int]:
    """Error code and offset."""
    entry = {"partition_index": partition.partition, "timestamp": timestamp, "current_leader_epoch": epoch}
    topics = [{"name": partition.topic, "partitions": [entry]}]
    answer = cluster.ask(api.LIST_OFFSETS, 7, node=node, replica_id=replica, isolation_level=0, topics=topics)
    (one,) = answer.topics[0].partitions
    return one.error_code, one.offset


@both_releases
def test_an_empty_partition_begins_and_ends_at_0(cluster: Cluster) -> None:
    partition = cluster.create_one(0, 1)
    assert offset(cluster, partition, LATEST, node=0) == offset(cluster, partition, EARLIEST, node=0) == (0, 0)


@both_releases
def test_every_replica_tells_its_own_end_to_whoever_debugs(cluster: Cluster) -> None:
    partition = cluster.create_one(0, 1)
    cluster.backend.write(partition, SIZE_BYTES)
    code, end = offset(cluster, partition, LATEST, node=0)
    assert (code, end > 0) == (0, True)
    for node in (0, 1):
        cluster.until(
            lambda node=node: offset(cluster, partition, LATEST, node=node, replica=DEBUGGER) == (0, end),
            f"{partition} on {node} at {end}",
        )
        assert offset(cluster, partition, EARLIEST, node=node, replica=DEBUGGER) == (0, 0)


@both_releases
@pytest.mark.parametrize(("node", "replica", "number", "code"), [
    (1, CONSUMER, 0, 6),
    (2, CONSUMER, 0, 6),
    (2, DEBUGGER, 0, 6),
    (0, CONSUMER, 7, 3),
    (0, DEBUGGER, 7, 3),
])  # fmt: skip
def test_who_cannot_tell_an_offset_says_why(cluster: Cluster, node: int, replica: int, number: int, code: int) -> None:
    partition = cluster.create_one(0, 1)._replace(partition=number)
    assert offset(cluster, partition, LATEST, node=node, replica=replica) == (code, -1)


@pytest.mark.parametrize(("epoch", "code"), [(0, 74), (1, 0), (2, 75)])
def test_a_leader_epoch_must_be_the_present_one(cluster: Cluster, epoch: int, code: int) -> None:
    partition = cluster.create_one(1, 0)
    cluster.move(partition, 1)
    cluster.becomes(partition, (1,), {1}, 1)
    cluster.until(lambda: offset(cluster, partition, LATEST, node=1, epoch=1)[0] == 0, "the new epoch at the leader")
    assert offset(cluster, partition, LATEST, node=1, epoch=epoch)[0] == code


def test_a_partition_asked_for_twice_is_refused_once(cluster: Cluster) -> None:
    partition = cluster.create_one(0)
    entry = {"partition_index": 0, "timestamp": LATEST, "current_leader_epoch": -1}
    topics = [{"name": partition.topic, "partitions": [entry, entry]}]
    answer = cluster.ask(api.LIST_OFFSETS, 7, replica_id=CONSUMER, isolation_level=0, topics=topics)
    assert [one.error_code for topic in answer.topics for one in topic.partitions] == [42]


def test_an_unknown_topic_has_no_offsets(cluster: Cluster) -> None:
    assert offset(cluster, TopicPartition("nope", 0), LATEST, node=0) == (3, -1)


# Groups and coordinators


@both_releases
def test_there_are_no_groups(cluster: Cluster) -> None:
    version = cluster.newest(api.LIST_GROUPS)
    for node in cluster.brokers:
        answer = cluster.ask(api.LIST_GROUPS, version, node=node, states_filter=[], types_filter=[])
        assert (answer.error_code, answer.groups) == (0, [])


# The quorum


def quorum(cluster: Cluster, topic: str, number: int, node: int) -> api.Message:
    asked = {"topic_name": topic, "partitions": [{"partition_index": number}]}
    return cluster.ask(api.DESCRIBE_QUORUM, 2, node=node, topics=[asked])


@both_releases
@pytest.mark.parametrize("node", [0, CONTROLLER])
def test_one_controller_votes_and_all_brokers_follow(cluster: Cluster, node: int) -> None:
    answer = quorum(cluster, "__cluster_metadata", 0, node)
    (partition,) = answer.topics[0].partitions
    assert (answer.error_code, partition.error_code, partition.leader_id) == (0, 0, CONTROLLER)
    assert [one.replica_id for one in partition.current_voters] == [CONTROLLER]
    assert {one.replica_id for one in partition.observers} == set(cluster.brokers)
    assert partition.high_watermark > 0
    assert [one.node_id for one in answer.nodes] == [CONTROLLER]
