"""Topics and partitions that requests ask for, answered in the words of ZooKeeper mode."""

from __future__ import annotations

import pytest

from kreassign.wire import api
from tests.twin.asking import ask
from tests.twin.zookeeper.zookeeper_cluster import ZooKeeperCluster

Fields = dict[str, object]
BOTH = "Both numPartitions or replicationFactor and replicasAssignments were set. Both cannot be used at the same time."
INCONSISTENT = (
    "Inconsistent replication factor between partitions, partition 0 has 3 while partitions [1] have "
    "replication factors [1], respectively."
)
Lists = tuple[tuple[int, ...], ...]


def new(name: str, partitions: int, factor: int, lists: Lists = ()) -> Fields:
    """A topic to create."""
    assigned = [{"partition_index": number, "broker_ids": list(replicas)} for number, replicas in enumerate(lists)]
    return {
        "name": name,
        "num_partitions": partitions,
        "replication_factor": factor,
        "assignments": assigned,
        "configs": [],
    }


def create(cluster: ZooKeeperCluster, *topics: Fields, timeout_ms: int = 1_000) -> list[tuple[int, str | None]]:
    """Codes and texts."""
    answer = ask(
        cluster.twin, api.CREATE_TOPICS, 5, node=0, timeout_ms=timeout_ms, validate_only=False, topics=list(topics)
    )
    return [(one.error_code, one.error_message) for one in answer.topics]


def grow(
    cluster: ZooKeeperCluster,
    topic: str,
    count: int,
    lists: Lists | None = None,
    *,
    times: int = 1,
    timeout_ms: int = 1_000,
) -> list[tuple[int, str | None]]:
    """Codes and texts."""
    assigned = None if lists is None else [{"broker_ids": list(replicas)} for replicas in lists]
    wanted = [{"name": topic, "count": count, "assignments": assigned}] * times
    answer = ask(cluster.twin, api.CREATE_PARTITIONS, 3, node=0, timeout_ms=timeout_ms, topics=wanted)
    return [(one.error_code, one.error_message) for one in answer.results]


@pytest.mark.parametrize(("partitions", "factor", "lists", "refusal"), [
    (1, 9, (), (38, "Replication factor: 9 larger than available brokers: 7.")),
    (1, 0, (), (38, "Replication factor must be larger than 0.")),
    (0, 1, (), (37, "Number of partitions must be larger than 0.")),
    (1, -1, ((0,),), (42, BOTH)),
    (-1, -1, ((0,), (1, 2)), (39, "All partitions should have the same number of replicas")),
    (-1, -1, ((0, 0),), (39, "Duplicate replica assignment found: HashMap(0 -> ArrayBuffer(0, 0))")),
])  # fmt: skip
def test_a_topic_that_makes_no_sense_is_refused(
    partitions: int, factor: int, lists: Lists, refusal: tuple[int, str]
) -> None:
    assert create(ZooKeeperCluster().begin(), new("new", partitions, factor, lists)) == [refusal]


def test_a_topic_named_twice_or_already_there_is_refused() -> None:
    cluster = ZooKeeperCluster().begin()
    assert create(cluster, new("new", 1, 1), new("new", 1, 1)) == [(42, "Found multiple entries for this topic.")]
    assert create(cluster, new("foo", 1, 1)) == [(36, "Topic 'foo' already exists.")]


@pytest.mark.parametrize(("topic", "count", "lists", "refusal"), [
    ("nope", 2, None, (3, "The topic 'nope' does not exist.")),
    ("foo", 1, None, (37, "Topic already has 1 partitions.")),
    ("foo", 0, None, (37, "Topic currently has 1 partitions, which is higher than the requested 0.")),
    ("foo", 2, ((8, 9),), (39, "Unknown broker(s) in replica assignment: 8, 9.")),
    ("foo", 3, ((1, 2, 3),), (39, "Increasing the number of partitions by 2 but 1 assignments provided.")),
    ("foo", 2, ((),), (39, "Cannot have replication factor of 0 for partition id 1.")),
    ("foo", 2, ((1, 1),), (39, "Duplicate brokers not allowed in replica assignment: 1, 1 for partition id 1.")),
    ("foo", 2, ((1,),), (39, INCONSISTENT)),
])  # fmt: skip
def test_more_partitions_that_make_no_sense_are_refused(
    topic: str, count: int, lists: Lists | None, refusal: tuple[int, str]
) -> None:
    cluster = ZooKeeperCluster([1, 2, 3]).begin()
    assert grow(cluster, topic, count, lists) == [refusal]
    assert grow(cluster, topic, count, lists, times=2) == [(42, "Duplicate topic in request.")]


def test_a_topic_in_a_move_gets_no_more_partitions() -> None:
    cluster = ZooKeeperCluster([1, 2, 3]).begin()
    cluster.alter([4, 5, 6])
    text = "A partition reassignment is in progress for the topic 'foo'."
    assert grow(cluster, "foo", 1) == [(60, text)]


def test_a_request_without_time_is_carried_out_and_answered_as_late() -> None:
    cluster = ZooKeeperCluster([1, 2, 3]).begin()
    assert create(cluster, new("new", 1, 1), timeout_ms=0) == [(7, None)]
    assert grow(cluster, "foo", 2, timeout_ms=-1) == [(7, None)]
    assert (
        len(cluster.twin.metadata.topics["new"].partitions),
        len(cluster.twin.metadata.topics["foo"].partitions),
    ) == (
        1,
        2,
    )


def test_new_replicas_go_to_brokers_that_are_alive() -> None:
    cluster = ZooKeeperCluster([1, 2, 3]).begin()
    for broker in (4, 5, 6):
        cluster.twin.stop(broker)
    assert create(cluster, new("new", 3, 4)) == [(0, None)]
    placed = cluster.twin.metadata.topics["new"].partitions.values()
    assert {broker for partition in placed for broker in partition.replicas} == {0, 1, 2, 3}
    text = "Replication factor: 5 larger than available brokers: 4."
    assert create(cluster, new("more", 1, 5)) == [(38, text)]
