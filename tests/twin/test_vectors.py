"""Vectors that the comparison with real Kafka found: each was wrong in the twin once, and is what Kafka 4.3.1 does."""

from __future__ import annotations

from random import Random

import pytest

from kreassign.model import ConfigResource, TopicPartition
from kreassign.twin.cluster import Twin
from kreassign.twin.controller.decision import Decision
from kreassign.twin.controller.reassignments import AlterReassignments, Target, TopicTargets, alter_reassignments
from kreassign.twin.controller.topics import CreatePartitions, MorePartitions, create_partitions
from kreassign.twin.core import TwinSettings
from kreassign.twin.metadata import UNASSIGNED, ConfigChanged, PartitionCreated, TopicCreated
from tests.twin.asking import cluster
from tests.twin.test_cluster import move


def configured(size_bytes: int, topic: list[list[int]], **configs: str) -> Twin:
    """A twin with topic t, so configured."""
    asked = Twin(cluster({"t": topic}, size_bytes=size_bytes), TwinSettings())
    records = (
        ConfigChanged(ConfigResource.topic("t"), name.replace("_", "."), value) for name, value in configs.items()
    )
    asked.commit(Decision(tuple(records), None))
    return asked


def eligible(asked: Twin, number: int = 0) -> tuple[int, ...]:
    """Eligible leader replicas of a partition of t."""
    state = asked.metadata.partition(TopicPartition("t", number))
    assert state is not None
    return state.elr


def test_whoever_left_in_a_move_that_ends_below_the_least_isr_is_forgotten_when_the_directory_is_told_later() -> None:
    asked = configured(0, [[0]], min_insync_replicas="2")
    move(asked, "t", 0, 3)
    asked.advance(110)
    assert (asked.metadata.reassigning, eligible(asked)) == (set(), (0,))
    asked.advance(1_000)
    assert eligible(asked) == ()


def test_a_longer_move_that_ends_below_the_least_isr_forgets_who_left_too() -> None:
    asked = configured(500_000_000, [[0]], min_insync_replicas="2")
    move(asked, "t", 0, 3)
    asked.advance(60_000)
    assert (asked.metadata.reassigning, eligible(asked)) == (set(), ())


def test_whoever_left_stays_eligible_where_another_broker_told_its_directory_during_the_move() -> None:
    asked = configured(0, [[1]], min_insync_replicas="2")
    records = (
        TopicCreated("fresh", "3f1cb0b1-8f5c-4d54-9e26-2c5d6a1f0001"),
        ConfigChanged(ConfigResource.topic("fresh"), "min.insync.replicas", "2"),
        PartitionCreated(TopicPartition("fresh", 0), (0,), (0,), 0, 0, 0, (UNASSIGNED,)),
    )
    asked.commit(Decision(records, None))
    asked.replication.cut_link(0, 3)
    # Broker 0 tells where its new replica is after the move has begun; that record makes broker 3 look, too.
    move(asked, "fresh", 0, 3)
    asked.advance(2_000)
    asked.replication.restore_link(0, 3)
    asked.advance(10_000)
    state = asked.metadata.partition(TopicPartition("fresh", 0))
    assert state is not None
    assert (state.replicas, state.elr) == ((3,), (0,))


def test_a_broker_that_stopped_before_it_told_a_directory_tells_it_when_it_is_back() -> None:
    asked = configured(0, [[0]])
    new = PartitionCreated(TopicPartition("t", 1), (2,), (2,), 2, 0, 0, (UNASSIGNED,))
    asked.commit(Decision((new,), None))
    asked.advance(50)
    asked.stop(2)
    asked.advance(1_000)
    assert eligible(asked, 1) == (2,)
    asked.start(2)
    asked.advance(5_000)
    state = asked.metadata.partition(TopicPartition("t", 1))
    assert state is not None
    assert (state.leader, state.directories != (UNASSIGNED,)) == (2, True)


def test_a_replica_that_is_eligible_from_an_earlier_life_cannot_be_added_while_nobody_is_in_sync() -> None:
    asked = configured(0, [[0, 1]], min_insync_replicas="2")
    move(asked, "t", 0, 0)
    assert eligible(asked) == (1,)
    asked.stop(0)
    assert eligible(asked) == (0, 1)
    for target, code in (((0, 1), -1), ((1,), -1), ((0, 2), 0)):
        request = AlterReassignments((TopicTargets("t", (Target(0, target),)),))
        ((_, outcome),) = asked.commit(alter_reassignments(asked.context, request)).topics[0].outcomes
        assert (outcome.code, outcome.message) == (code, None)


def test_two_changes_of_one_partition_leave_as_many_directories_as_replicas() -> None:
    asked = configured(0, [[0]])
    new = PartitionCreated(TopicPartition("t", 1), (0, 1, 2), (0, 1, 2), 0, 0, 0, (UNASSIGNED,) * 3)
    asked.commit(Decision((new,), None))
    # The brokers have not told their directories yet, so that the second change has nothing to say of them.
    both = AlterReassignments((TopicTargets("t", (Target(1, (0, 1)), Target(1, (2, 1, 0)))),))
    asked.commit(alter_reassignments(asked.context, both))
    asked.advance(10_000)
    state = asked.metadata.partition(TopicPartition("t", 1))
    assert state is not None
    assert (state.replicas, len(state.directories)) == ((2, 1, 0), 3)


@pytest.mark.parametrize(
    ("count", "model"), [(1, 0), (2, 0), (3, 2), (4, 2), (5, 0), (6, 5), (9, 5), (10, 0), (14, 13), (21, 0)]
)
def test_new_partitions_follow_the_one_that_comes_first_in_the_controllers_hash_table(count: int, model: int) -> None:
    asked = configured(0, [[0, 1] if number == model else [0] for number in range(count)])
    command = CreatePartitions((MorePartitions("t", count + 1, ((2, 3),)),))
    ((_, outcome),) = asked.commit(create_partitions(asked.context, command, Random(0)))
    assert outcome.code == 0
    assert asked.metadata.topics["t"].partitions[count].replicas == (2, 3)
