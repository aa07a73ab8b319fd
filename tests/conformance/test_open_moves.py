"""Moves that stay open because a broker is down: starting, overriding, cancelling, and what else happens meanwhile.

Broker 3 is down for all of these tests; a move to it cannot end.
"""

from __future__ import annotations

import pytest

from kreassign.model import NewPartitions, TopicPartition
from kreassign.wire import api
from tests.conformance.clusters import CONTROLLER, Answered, Cluster, Move
from tests.conformance.test_log_dirs import cordon

pytestmark = pytest.mark.keeps_broken
DONE = Answered(0, None)
DOWN = 3
Brokers = tuple[int, ...]


@pytest.fixture(autouse=True)
def broken(cluster: Cluster) -> None:
    """A cluster without broker 3."""
    cluster.only_down(DOWN)


def listed(replicas: Brokers, adding: Brokers = (), removing: Brokers = ()) -> Move:
    return Move(replicas, adding, removing)


# Starting


@pytest.mark.parametrize(("before", "target", "expected"), [
    ((0,), (3,), listed((3, 0), (3,), (0,))),
    ((0, 1), (1, 3), listed((1, 3, 0), (3,), (0,))),
    ((0, 1), (0, 1, 3), listed((0, 1, 3), (3,))),
    ((0, 1), (3, 0, 1), listed((3, 0, 1), (3,))),
    ((0, 1), (3, 2), listed((3, 2, 0, 1), (2, 3), (0, 1))),
    ((2, 1, 0), (3, 1), listed((3, 1, 0, 2), (3,), (0, 2))),
    ((2, 1, 0), (1, 3, 0), listed((1, 3, 0, 2), (3,), (2,))),
    ((0,), (3, 2, 1), listed((3, 2, 1, 0), (1, 2, 3), (0,))),
])  # fmt: skip
def test_a_started_move_lists_its_target_first_and_who_leaves_last(
    cluster: Cluster, before: Brokers, target: Brokers, expected: Move
) -> None:
    partition = cluster.create_one(*before)
    cluster.move(partition, *target)
    assert cluster.listed(partition) == expected
    alive = {broker for broker in expected.replicas if broker != DOWN}
    cluster.becomes(partition, expected.replicas, alive, before[0], epoch=0)
    assert cluster.listed(partition) == expected


@pytest.mark.parametrize(("before", "target", "replicas", "isr", "epoch"), [
    ((0, 3, 1), (0, 3, 2), (0, 3, 2), {0, 2}, 1),
    ((0, 3), (0, 3, 1), (0, 3, 1), {0, 1}, 0),
    ((0, 3, 1), (0, 1), (0, 1), {0, 1}, 1),
    ((0, 3, 1, 2), (0, 1, 2), (0, 1, 2), {0, 1, 2}, 1),
    ((1, 3, 0), (0, 3, 1), (0, 3, 1), {0, 1}, 0),
    ((1, 3, 0), (0, 3, 2), (0, 3, 2), {0, 2}, 1),
    ((3, 1), (2, 1), (2, 1), {1, 2}, 1),
    ((0, 3), (1, 2), (1, 2), {1, 2}, 1),
])  # fmt: skip
def test_a_move_ends_without_a_dead_replica_if_it_adds_enough(
    cluster: Cluster, before: Brokers, target: Brokers, replicas: Brokers, isr: set[int], epoch: int
) -> None:
    partition = cluster.create_one(*before)
    leader = next(broker for broker in before if broker != DOWN)
    cluster.move(partition, *target)
    cluster.ends(partition)
    cluster.becomes(partition, replicas, isr, leader if leader in replicas else replicas[0], epoch=epoch)


@pytest.mark.parametrize(("before", "target", "expected"), [
    ((0, 3, 2), (0, 3), listed((0, 3, 2), (), (2,))),
    ((3, 2, 1, 0), (3, 1), listed((3, 1, 0, 2), (), (0, 2))),
    ((0, 3, 1, 2), (0, 3, 1), listed((0, 3, 1, 2), (), (2,))),
    ((0, 3, 1), (3, 2), listed((3, 2, 0, 1), (2,), (0, 1))),
])  # fmt: skip
def test_a_move_that_mostly_removes_waits_for_a_dead_replica(
    cluster: Cluster, before: Brokers, target: Brokers, expected: Move
) -> None:
    partition = cluster.create_one(*before)
    cluster.move(partition, *target)
    alive = {broker for broker in expected.replicas if broker != DOWN}
    cluster.becomes(partition, expected.replicas, alive, next(broker for broker in before if broker != DOWN))
    assert cluster.listed(partition) == expected


def test_a_dead_broker_is_taken_as_a_target_and_an_unknown_one_is_not(cluster: Cluster) -> None:
    first, second = cluster.create((0, 1), (0, 1))
    assert cluster.alter({first: (0, 3), second: (0, 4)}) == {
        first: DONE,
        second: (39, "The manual partition assignment includes broker 4, but no such broker is registered."),
    }


# Overriding


@pytest.mark.parametrize(("before", "first", "second", "expected"), [
    # The same again, in another order, and the full list.
    ((0, 1), (2, 3), (2, 3), listed((2, 3, 0, 1), (2, 3), (0, 1))),
    ((0, 1), (2, 3), (3, 2), listed((3, 2, 0, 1), (2, 3), (0, 1))),
    ((0, 1), (2, 3), (2, 3, 0, 1), listed((2, 3, 0, 1), (2, 3), (0, 1))),
    # A longer and a shorter one.
    ((0,), (3, 1), (3,), listed((3, 0, 1), (1, 3), (0, 1))),
    # A replica that was being added is removed: it stays in both lists.
    ((0, 1), (2, 3), (0, 1), listed((0, 1, 2, 3), (2, 3), (2, 3))),
    ((0, 1), (0, 1, 3), (0, 1), listed((0, 1, 3), (3,), (3,))),
    ((0, 1), (2, 3), (2, 1), listed((2, 1, 0, 3), (2, 3), (0, 3))),
    ((0,), (3,), (0,), listed((0, 3), (3,), (3,))),
    # Something new is added: the list of those being added is written anew.
    ((0,), (3, 1), (3, 2), listed((3, 2, 0, 1), (2,), (0, 1))),
])  # fmt: skip
def test_an_override_starts_from_all_replicas_of_the_move_before(
    cluster: Cluster, before: Brokers, first: Brokers, second: Brokers, expected: Move
) -> None:
    partition = cluster.create_one(*before)
    cluster.move(partition, *first)
    cluster.move(partition, *second)
    assert cluster.listed(partition) == expected
    alive = {broker for broker in expected.replicas if broker != DOWN}
    cluster.becomes(partition, expected.replicas, alive, before[0])
    assert cluster.listed(partition) == expected


@pytest.mark.parametrize(("before", "first", "second", "replicas", "leader"), [
    ((0,), (3,), (1,), (1,), 1),
    ((0, 1), (0, 3), (2, 0), (2, 0), 0),
    # What was being added and stays counts as there already.
    ((0,), (3,), (3, 1), (3, 1), 1),
    ((0, 1), (2, 3), (1, 2, 0), (1, 2, 0), None),
])  # fmt: skip
def test_an_override_to_live_brokers_ends(
    cluster: Cluster, before: Brokers, first: Brokers, second: Brokers, replicas: Brokers, leader: int | None
) -> None:
    partition = cluster.create_one(*before)
    cluster.move(partition, *first)
    cluster.move(partition, *second)
    if leader is None:  # Nothing new is added, so that 3 stays in both lists for ever.
        assert cluster.listed(partition) == listed((1, 2, 0, 3), (2, 3), (3,))
        return
    cluster.ends(partition)
    cluster.becomes(partition, replicas, set(replicas) - {DOWN}, leader)


# Moves that can never end


def stuck(cluster: Cluster) -> TopicPartition:
    """A partition whose replica on broker 3 is both being added and being removed."""
    partition = cluster.create_one(0, 1)
    cluster.move(partition, 0, 1, 3)
    cluster.move(partition, 0, 1)
    assert cluster.listed(partition) == listed((0, 1, 3), (3,), (3,))
    return partition


@pytest.mark.parametrize("again", [(0, 1), (1, 0), (0, 1, 3), (1, 3, 0)])
def test_a_stuck_move_stays_stuck_where_nothing_new_is_added(cluster: Cluster, again: Brokers) -> None:
    partition = stuck(cluster)
    cluster.move(partition, *again)
    replicas = (*again, *({3} - set(again)))
    assert cluster.listed(partition) == listed(replicas, (3,), (3,))


def test_a_stuck_move_is_freed_by_a_cancel(cluster: Cluster) -> None:
    partition = stuck(cluster)
    assert cluster.cancel(partition) == DONE
    assert cluster.listed(partition) is None
    cluster.becomes(partition, (0, 1), {0, 1}, 0)


def test_a_stuck_move_is_freed_by_a_target_with_a_new_replica(cluster: Cluster) -> None:
    partition = stuck(cluster)
    cluster.move(partition, 0, 2)
    cluster.ends(partition)
    cluster.becomes(partition, (0, 2), {0, 2}, 0)


# Cancelling


@pytest.mark.parametrize(("before", "targets", "replicas", "epoch"), [
    ((0, 1), ((2, 3),), (0, 1), 1),
    ((0, 1, 2), ((1, 3, 0),), (1, 0, 2), 1),
    ((2, 1, 0), ((3, 0),), (0, 1, 2), 1),
    ((0, 1), ((0, 1, 3),), (0, 1), 1),
    # After an override what was abandoned stays.
    ((0,), ((3, 1), (3, 2)), (3, 0, 1), 1),
    ((0, 1), ((2, 3), (3, 1)), (1, 0), 1),
])  # fmt: skip
def test_a_cancel_takes_back_what_was_being_added_and_keeps_the_order(
    cluster: Cluster, before: Brokers, targets: tuple[Brokers, ...], replicas: Brokers, epoch: int
) -> None:
    partition = cluster.create_one(*before)
    for target in targets:
        cluster.move(partition, *target)
    move = cluster.listed(partition)
    assert move is not None
    cluster.becomes(partition, move.replicas, set(move.replicas) - {DOWN}, before[0])
    assert cluster.cancel(partition) == DONE
    assert cluster.listed(partition) is None
    leader = before[0] if before[0] in replicas else replicas[0]
    cluster.becomes(partition, replicas, set(replicas) - {DOWN}, leader, epoch=epoch)
    assert cluster.cancel(partition) == Answered(85, None)


def test_a_move_on_a_broker_that_is_cordoned_since_can_be_cancelled(cluster: Cluster) -> None:
    """Also where Kafka refuses lists that name the broker: a cancel has none."""
    partition = cluster.create_one(0, 1)
    cluster.move(partition, 0, DOWN)
    cordon(cluster, 0, "*")
    try:
        assert cluster.cancel(partition) == DONE
        cluster.becomes(partition, (0, 1), {0, 1}, 0)
    finally:
        cordon(cluster, 0, None)


def test_a_cancelled_removal_keeps_leader_and_epoch(cluster: Cluster) -> None:
    partition = cluster.create_one(0, 3, 2)
    cluster.move(partition, 0, 3)
    assert cluster.cancel(partition) == DONE
    cluster.becomes(partition, (0, 3, 2), {0, 2}, 0, epoch=0)


# The replication factor


@pytest.mark.parametrize(("target", "outcome"), [
    ((0, 1), Answered(38, "The replication factor is changed from 3 to 2")),
    ((0, 1, 2, 3), Answered(38, "The replication factor is changed from 3 to 4")),
    ((1, 2, 3, 0), Answered(38, "The replication factor is changed from 3 to 4")),
    ((0, 2, 3), DONE),
    ((3, 2, 1), DONE),
    (None, DONE),
])  # fmt: skip
def test_the_factor_of_a_running_move_is_that_of_its_target(
    cluster: Cluster, target: Brokers | None, outcome: Answered
) -> None:
    partition = cluster.create_one(0, 1, 2)
    cluster.move(partition, 1, 2, 3)
    assert cluster.alter({partition: target}, may_change_factor=False) == {partition: outcome}


def test_without_the_flag_the_factor_is_inflated_by_a_list_of_all_replicas(cluster: Cluster) -> None:
    partition = cluster.create_one(0, 1, 2)
    cluster.move(partition, 1, 2, 3)
    cluster.move(partition, 1, 2, 3, 0)
    assert cluster.listed(partition) == listed((1, 2, 3, 0), (3,), (0,))


# Several entries about one partition


def twice(cluster: Cluster, partition: TopicPartition, *targets: Brokers | None) -> list[Answered]:
    entries = [{"partition_index": partition.partition, "replicas": target} for target in targets]
    answer = cluster.ask(
        api.ALTER_PARTITION_REASSIGNMENTS, topics=[{"name": partition.topic, "partitions": entries}], timeout_ms=30_000
    )
    return [Answered(one.error_code, one.error_message) for one in answer.responses[0].partitions]


def test_each_of_two_entries_is_computed_from_the_state_before_the_request(cluster: Cluster) -> None:
    partition = cluster.create_one(0, 1)
    assert twice(cluster, partition, (0, 1, 2, 3), (0, 3)) == [DONE, DONE]
    assert cluster.listed(partition) == listed((0, 3, 1), (3,), (1,))


def test_a_cancel_before_a_new_target_is_overwritten_by_it(cluster: Cluster) -> None:
    partition = cluster.create_one(0, 1)
    cluster.move(partition, 0, 3)
    cluster.becomes(partition, (0, 3, 1), {0, 1}, 0)
    assert twice(cluster, partition, None, (2, 3)) == [DONE, DONE]
    assert cluster.listed(partition) == listed((2, 3, 0, 1), (2,), (0, 1))
    cluster.becomes(partition, (2, 3, 0, 1), {0, 1, 2}, 0, epoch=1)


def test_a_cancel_after_a_new_target_finds_the_partition_idle(cluster: Cluster) -> None:
    partition = cluster.create_one(0, 1)
    assert twice(cluster, partition, (0, 3), None) == [DONE, Answered(85, None)]
    assert cluster.listed(partition) == listed((0, 3, 1), (3,), (1,))


def test_two_cancels_are_both_done_and_raise_the_epoch_twice(cluster: Cluster) -> None:
    partition = cluster.create_one(0, 1)
    cluster.move(partition, 0, 3)
    assert twice(cluster, partition, None, None) == [DONE, DONE]
    cluster.becomes(partition, (0, 1), {0, 1}, 0, epoch=2)


# Listing


def test_what_moves_is_listed_alone_or_among_all(cluster: Cluster) -> None:
    moving, idle = cluster.create((0, 1), (0, 1))
    cluster.move(moving, 0, 3)
    expected = listed((0, 3, 1), (3,), (1,))
    everything = cluster.client.list_partition_reassignments()
    assert (everything[moving].replicas, idle in everything) == (expected.replicas, False)
    assert cluster.listed(moving) == expected
    assert cluster.client.list_partition_reassignments([idle]) == {}


def test_what_is_asked_for_twice_is_listed_twice(cluster: Cluster) -> None:
    partition = cluster.create_one(0, 1)
    cluster.move(partition, 0, 3)
    topics = [
        {"name": partition.topic, "partition_indexes": [0, 0]},
        {"name": partition.topic, "partition_indexes": [0]},
        {"name": partition.topic, "partition_indexes": []},
    ]
    for node in (0, CONTROLLER):
        answer = cluster.ask(api.LIST_PARTITION_REASSIGNMENTS, node=node, topics=topics, timeout_ms=5_000)
        assert [[one.partition_index for one in topic.partitions] for topic in answer.topics] == [[0, 0], [0]]


# What else happens meanwhile


def test_new_partitions_get_as_many_replicas_as_a_move_has_for_now(cluster: Cluster) -> None:
    partition = cluster.create_one(0, 1)
    cluster.move(partition, 2, 3)
    refused = cluster.client.create_partitions({partition.topic: NewPartitions(2, ((0, 1),))})
    assert refused.failed[partition.topic].message == (
        "The manual partition assignment includes a partition with 2 replica(s), but this is not consistent with "
        "previous partitions, which have 4 replica(s)."
    )
    cluster.client.create_partitions({partition.topic: NewPartitions(3, ((0, 1, 2, 3), (3, 2, 1, 0)))}).raise_if_any()
    cluster.becomes(partition._replace(partition=1), (0, 1, 2, 3), {0, 1, 2}, 0)
    cluster.becomes(partition._replace(partition=2), (3, 2, 1, 0), {0, 1, 2}, 2)


def test_a_topic_is_deleted_with_its_move(cluster: Cluster) -> None:
    partition = cluster.create_one(0, 1)
    cluster.move(partition, 2, 3)
    cluster.client.delete_topics([partition.topic]).raise_if_any()
    assert cluster.listed(partition) is None
    assert cluster.cancel(partition) == (3, f"Unable to find a topic named {partition.topic}.")


def test_the_preferred_replica_of_a_move_is_the_first_of_its_target(cluster: Cluster) -> None:
    partition = cluster.create_one(0, 1)
    cluster.move(partition, 2, 3)
    cluster.becomes(partition, (2, 3, 0, 1), {0, 1, 2}, 0)
    cluster.client.elect_leaders([partition]).raise_if_any()
    cluster.becomes(partition, (2, 3, 0, 1), {0, 1, 2}, 2)
    assert cluster.listed(partition) == listed((2, 3, 0, 1), (2, 3), (0, 1))
