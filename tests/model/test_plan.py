"""The plan as a value."""

import pytest

from kreassign.errors import InputError
from kreassign.model.cluster import TopicPartition, TopicPartitionReplica
from kreassign.model.plan import PartitionAssignment, Plan, partition_order

FOO_0 = TopicPartition("foo", 0)
FOO_1 = TopicPartition("foo", 1)


HALF = "a\ud800"
"""No file has such a name, but a cluster may tell one; Java takes it."""


def test_names_with_half_of_a_pair_sort_too() -> None:
    plan = Plan(tuple(PartitionAssignment(TopicPartition(topic, 0), (1,)) for topic in (HALF, "b", "a")))
    assert plan.topics == ("a", HALF, "b")
    assert partition_order(TopicPartition(HALF, 3)) == (b"\0a\xd8\0", 3)


def test_without_directories_every_replica_may_go_anywhere() -> None:
    assert PartitionAssignment(FOO_0, (1, 2)).log_dirs == ("any", "any")


def test_every_replica_needs_one_directory() -> None:
    expected = r"^Size of replicas list \[1, 2\] is different from size of log dirs list \[/a\] for partition foo-0$"
    with pytest.raises(InputError, match=expected):
        PartitionAssignment(FOO_0, (1, 2), ("/a",))
    with pytest.raises(InputError, match=r"list \[1\] is different from size of log dirs list \[/a, any\] for"):
        PartitionAssignment(FOO_0, (1,), ("/a", "any"))
    assert PartitionAssignment(FOO_0, ()).log_dirs == ()


def test_a_plan_tells_its_topics_and_brokers_sorted() -> None:
    plan = Plan((PartitionAssignment(FOO_0, (3, 1)), PartitionAssignment(TopicPartition("bar", 0), (2,))))
    assert plan.topics == ("bar", "foo")
    assert plan.brokers == (1, 2, 3)
    assert [str(assignment) for assignment in plan.assignments] == ["foo-0: 3,1", "bar-0: 2"]
    assert (len(plan), len(Plan()), Plan().topics, Plan().brokers) == (2, 0, (), ())


def test_topics_of_a_plan_sort_by_code_units() -> None:
    last, first = "\N{REPLACEMENT CHARACTER}", "\N{GRINNING FACE}"
    plan = Plan(tuple(PartitionAssignment(TopicPartition(topic, 0), (1,)) for topic in (last, first)))
    assert plan.topics == (first, last)


def test_the_last_mention_of_a_partition_counts_and_is_reported() -> None:
    plan = Plan((PartitionAssignment(FOO_0, (1,)), PartitionAssignment(FOO_1, (1,)), PartitionAssignment(FOO_0, (2,))))
    assert plan.replicas == {FOO_0: (2,), FOO_1: (1,)}
    assert plan.duplicate_partitions == (FOO_0,)
    assert Plan((PartitionAssignment(FOO_1, (1,)),)).duplicate_partitions == ()


def test_a_broker_named_twice_is_reported() -> None:
    assert PartitionAssignment(FOO_0, (2, 1, 2, 3, 1)).duplicate_replicas == (2, 1)


def test_only_replicas_with_a_directory_of_their_own_are_in_the_map() -> None:
    plan = Plan((PartitionAssignment(FOO_0, (1, 2), ("any", "/a")), PartitionAssignment(FOO_0, (2,), ("/b",))))
    assert plan.log_dirs == {TopicPartitionReplica(2, "foo", 0): "/b"}


def test_partitions_sort_by_code_units_then_number() -> None:
    topics = ["\N{REPLACEMENT CHARACTER}", "\N{GRINNING FACE}", "a", "B", "a.b"]
    partitions = [TopicPartition(topic, number) for topic in topics for number in (10, 2)]
    ordered = sorted(partitions, key=partition_order)
    assert [partition.topic for partition in ordered[::2]] == ["B", "a", "a.b", topics[1], topics[0]]
    assert [partition.partition for partition in ordered[:2]] == [2, 10]
