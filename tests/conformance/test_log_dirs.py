"""Log directories and moves between them: DescribeLogDirs and AlterReplicaLogDirs."""

from __future__ import annotations

import pytest

from kreassign.model import TopicPartition
from kreassign.wire import api
from kreassign.wire.api import Message
from tests.conformance.clusters import CONTROLLER, NEWEST, Answered, Cluster, other_dir

both_releases = pytest.mark.releases(NEWEST, "3.9")
SIZE_BYTES = 3_000_000
TOO_MANY = (
    "Unable to replicate the partition 4 time(s): The target replication factor of 4 cannot be reached because only 3 "
    "broker(s) are registered or some brokers have all their log directories cordoned."
)


def described(cluster: Cluster, partition: TopicPartition | None, node: int = 0) -> list[Message]:
    """The directories of a broker, with all copies or those of one partition."""
    topics = None if partition is None else [{"topic": partition.topic, "partitions": [partition.partition]}]
    version = cluster.newest(api.DESCRIBE_LOG_DIRS)
    answer = cluster.ask(api.DESCRIBE_LOG_DIRS, version, node=node, topics=topics)
    assert answer.error_code == 0
    found: list[Message] = answer.results
    return found


def log_dirs_of(cluster: Cluster, partition: TopicPartition, node: int) -> set[str]:
    """Directories of a partition on a broker; both for a moment during a swap."""
    return {
        one.log_dir
        for one in described(cluster, partition, node)
        for topic in one.topics
        for copy in topic.partitions
        if not copy.is_future_key
    }


def alter(cluster: Cluster, node: int, path: str, *partitions: TopicPartition) -> dict[TopicPartition, int]:
    """The codes of the answer, by partition."""
    topics = [{"name": topic, "partitions": [number]} for topic, number in partitions]
    answer = cluster.ask(api.ALTER_REPLICA_LOG_DIRS, 2, node=node, dirs=[{"path": path, "topics": topics}])
    return {
        TopicPartition(topic.topic_name, one.partition_index): one.error_code
        for topic in answer.results
        for one in topic.partitions
    }


# Reading


@both_releases
def test_every_configured_directory_is_told_with_its_size(cluster: Cluster) -> None:
    for node in cluster.brokers:
        found = described(cluster, None, node)
        assert {one.log_dir for one in found} == set(cluster.backend.log_dirs(node))
        assert all(one.error_code == 0 and 0 < one.usable_bytes <= one.total_bytes for one in found)


def test_no_directory_is_cordoned_at_first(cluster: Cluster) -> None:
    assert [one.is_cordoned for one in described(cluster, None)] == [False, False]


@both_releases
def test_a_copy_is_told_in_its_directory_with_its_size(cluster: Cluster) -> None:
    partition = cluster.create_one(0, 1)
    cluster.backend.write(partition, SIZE_BYTES)

    def copies() -> list[Message]:
        found = [one for node in (0, 1) for one in described(cluster, partition, node)]
        return [copy for one in found for topic in one.topics for copy in topic.partitions]

    # A follower that fell out of sync meanwhile has the records later.
    cluster.until(lambda: all(one.partition_size >= SIZE_BYTES for one in copies()), f"records of {partition}")
    assert [(one.partition_index, one.offset_lag, one.is_future_key) for one in copies()] == [(0, 0, False)] * 2
    assert all(one.partition_size < 2 * SIZE_BYTES for one in copies())
    assert not log_dirs_of(cluster, partition, 2)


def test_an_empty_list_asks_for_no_copies(cluster: Cluster) -> None:
    cluster.create((0, 1))
    found = cluster.ask(api.DESCRIBE_LOG_DIRS, 5, topics=[]).results
    assert [one.topics for one in found] == [[], []]


def test_unknown_partitions_are_in_no_directory(cluster: Cluster) -> None:
    assert all(not one.topics for one in described(cluster, TopicPartition("nope", 0)))


def test_new_copies_go_to_the_directory_with_the_fewest(cluster: Cluster) -> None:
    partitions = cluster.create((0,), (0,), (0,), (0,))
    cluster.until(lambda: all(log_dirs_of(cluster, partition, 0) for partition in partitions), "all copies")
    found = [log_dirs_of(cluster, partition, 0) for partition in partitions]
    assert {len(one) for one in found} == {1}
    counts = [sum(one == {path} for one in found) for path in cluster.backend.log_dirs(0)]
    assert min(counts) >= 1


# Moving


@both_releases
def test_a_copy_moves_into_the_other_directory(cluster: Cluster) -> None:
    partition = cluster.create_one(0, 1)
    cluster.backend.write(partition, SIZE_BYTES)
    target = other_dir(cluster, partition, 0)
    assert alter(cluster, 0, target, partition) == {partition: 0}
    cluster.until(lambda: log_dirs_of(cluster, partition, 0) == {target}, f"{partition} in {target}")
    assert cluster.listed(partition) is None
    cluster.becomes(partition, (0, 1), {0, 1}, 0)


def test_the_directory_where_a_copy_is_already_is_fine(cluster: Cluster) -> None:
    partition = cluster.create_one(0, 1)
    cluster.until(lambda: bool(log_dirs_of(cluster, partition, 0)), f"{partition} on broker 0")
    (log_dir,) = log_dirs_of(cluster, partition, 0)
    assert alter(cluster, 0, log_dir, partition) == {partition: 0}
    assert log_dirs_of(cluster, partition, 0) == {log_dir}


def test_refusals_name_what_is_wrong_by_code(cluster: Cluster) -> None:
    partition = cluster.create_one(0, 1)
    first, _ = cluster.backend.log_dirs(2)
    beyond, absent = partition._replace(partition=7), TopicPartition("nope", 0)
    assert alter(cluster, 2, first, partition, beyond, absent) == {partition: 9, beyond: 3, absent: 3}
    for path in ("/no/such/directory", first.removeprefix("/"), f"{first}/", ""):
        assert alter(cluster, 2, path, partition, absent) == {partition: 57, absent: 57}


@pytest.mark.parametrize("place", [0, 1])
def test_a_broker_remembers_the_directory_of_a_copy_that_is_to_come(cluster: Cluster, place: int) -> None:
    partition = cluster.create_one(0, 1)
    wanted = cluster.backend.log_dirs(2)[place]
    assert alter(cluster, 2, wanted, partition) == {partition: 9}
    cluster.move(partition, 0, 2)
    cluster.ends(partition)
    cluster.until(lambda: log_dirs_of(cluster, partition, 2) == {wanted}, f"{partition} in {wanted}")


def test_a_partition_may_move_between_brokers_and_directories_at_once(cluster: Cluster) -> None:
    partition = cluster.create_one(0, 1)
    target = other_dir(cluster, partition, 0)
    cluster.move(partition, 0, 2)
    assert alter(cluster, 0, target, partition) == {partition: 0}
    cluster.ends(partition)
    cluster.until(lambda: log_dirs_of(cluster, partition, 0) == {target}, f"{partition} in {target}")
    cluster.becomes(partition, (0, 2), {0, 2}, 0)


def ask_to_cordon(cluster: Cluster, broker: int, value: str | None, node: int) -> None:
    """Let a node take directories of a broker out of use for new copies, or (None) none."""
    step = {"name": "cordoned.log.dirs", "config_operation": 0 if value else 1, "value": value}
    request = {"resource_type": 4, "resource_name": str(broker), "configs": [step]}
    (one,) = cluster.ask(api.INCREMENTAL_ALTER_CONFIGS, 1, node=node, resources=[request]).responses
    assert (one.error_code, one.error_message) == (0, None)


def cordon(cluster: Cluster, node: int, value: str | None) -> None:
    """Cordon directories of a broker, or (None) none, and wait until it shows that."""
    ask_to_cordon(cluster, node, value, node)
    paths = {"*": set(cluster.backend.log_dirs(node)), None: set()}.get(value, {value})
    cluster.until(
        lambda: {one.log_dir for one in described(cluster, None, node) if one.is_cordoned} == paths, f"{value} cordoned"
    )


def test_no_copy_goes_into_a_cordoned_directory(cluster: Cluster) -> None:
    hosted, coming = cluster.create((2, 1), (0, 1))
    closed = other_dir(cluster, hosted, 2)
    cordon(cluster, 2, closed)
    try:
        assert alter(cluster, 2, closed, hosted, coming) == {hosted: 39, coming: 39}
        cluster.move(coming, 0, 2)
        cluster.ends(coming)
        cluster.until(lambda: bool(log_dirs_of(cluster, coming, 2)), f"{coming} on broker 2")
        assert log_dirs_of(cluster, coming, 2) == set(cluster.backend.log_dirs(2)) - {closed}
    finally:
        cordon(cluster, 2, None)


def test_a_cordoned_broker_can_be_named_by_hand_before_4_4(cluster: Cluster) -> None:
    partition = cluster.create_one(0, 1)
    cordon(cluster, 2, "*")
    try:
        if cluster.release == "4.3":
            cluster.move(partition, 0, 2)
            cluster.ends(partition)
            cluster.becomes(partition, (0, 2), {0, 2}, 0)
        else:
            said = "The manual partition assignment includes broker 2, but all its log directories are cordoned."
            cluster.until(lambda: cluster.alter({partition: (0, 2)}) == {partition: Answered(39, said)}, "the cordon")
        assert placed_on_all(cluster) == Answered(38, TOO_MANY)
    finally:
        cordon(cluster, 2, None)


def placed_on_all(cluster: Cluster) -> Answered:
    """Answer to a topic with a replica on each broker, wherever the controller puts it; nothing is created."""
    counts = {"num_partitions": 1, "replication_factor": len(cluster.brokers)}
    request = {"name": f"{cluster.topic}-b", **counts, "assignments": [], "configs": []}
    (one,) = cluster.ask(api.CREATE_TOPICS, 7, topics=[request], timeout_ms=30_000, validate_only=True).topics
    return Answered(one.error_code, one.error_message)


def test_a_cordon_deleted_for_a_stopped_broker_holds_until_it_is_back(cluster: Cluster) -> None:
    """The controller has it from heartbeats, not from the setting."""
    cordon(cluster, 3, "*")
    try:
        cluster.until(lambda: placed_on_all(cluster) == Answered(38, TOO_MANY), "a cordon that the controller knows")
        cluster.only_down(3)
    finally:
        ask_to_cordon(cluster, 3, None, CONTROLLER)
    assert placed_on_all(cluster) == Answered(38, TOO_MANY)
    cluster.only_down()
    assert placed_on_all(cluster) == Answered(0, None)
