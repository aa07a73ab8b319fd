"""Proposals of `--generate` and the checks of `--execute` against what the cluster has."""

from random import Random

import pytest

from kreassign.errors import Infeasible
from kreassign.kafka_tools.command_line import ToolError
from kreassign.kafka_tools.reassign.actions import (
    check_brokers,
    current_replicas,
    known_topics,
    propose,
    usable_brokers,
)
from kreassign.model import Broker, Partition, Topic, TopicPartition
from kreassign.model.plan import PartitionAssignment, Plan
from kreassign.model.striped import UsableBroker

RACKED = tuple(Broker(number, "host", 9092, f"rack{number % 2}") for number in range(3))
RACKLESS = Broker(3, "host", 9092)
LIVE = (*RACKED, RACKLESS)


def topic(name, *replica_lists):
    partitions = tuple(
        Partition(TopicPartition(name, number), replicas, replicas, replicas[0])
        for number, replicas in enumerate(replica_lists)
    )
    return Topic(name, None, is_internal=False, partitions=partitions)


FOO = topic("foo", (0, 1, 2), (1, 2, 3))
BAR = topic("bar", (2, 3, 0))


def plan(**rows):
    return Plan(tuple(PartitionAssignment(TopicPartition.parse(name), ids) for name, ids in rows.items()))


def test_racks_are_kept_only_where_they_count():
    assert usable_brokers(LIVE, [0, 1], is_rack_aware=True) == (UsableBroker(0, "rack0"), UsableBroker(1, "rack1"))
    assert usable_brokers(LIVE, [0, 3], is_rack_aware=False) == (UsableBroker(0), UsableBroker(3))


def test_brokers_that_are_not_live_are_left_out_silently():
    assert usable_brokers(LIVE, [1, 9], is_rack_aware=True) == (UsableBroker(1, "rack1"),)


def test_some_brokers_without_a_rack_stop_a_rack_aware_proposal():
    with pytest.raises(ToolError) as caught:
        usable_brokers(LIVE, [0, 3], is_rack_aware=True)
    assert str(caught.value) == (
        "Error: Not all brokers have rack information. Add --disable-rack-aware in command line to make replica "
        "assignment without rack information."
    )


def test_only_brokers_without_a_rack_are_fine():
    assert usable_brokers(LIVE, [3], is_rack_aware=True) == (UsableBroker(3),)


def test_a_proposal_covers_every_partition_on_the_given_brokers_only():
    proposed = propose((FOO, BAR), tuple(map(UsableBroker, (0, 1, 3))), Random(1))
    assert set(proposed.replicas) == {TopicPartition("foo", 0), TopicPartition("foo", 1), TopicPartition("bar", 0)}
    assert all(sorted(replicas) == [0, 1, 3] for replicas in proposed.replicas.values())


def test_mixed_replica_counts_are_levelled_to_the_first():
    proposed = propose((topic("foo", (0,), (0, 1)),), tuple(map(UsableBroker, range(3))), Random(1))
    assert [len(replicas) for replicas in proposed.replicas.values()] == [1, 1]


def test_too_few_brokers_are_refused():
    with pytest.raises(
        Infeasible, match=r"^The target replication factor of 3 cannot be reached because only 2 broker"
    ):
        propose((FOO,), tuple(map(UsableBroker, (0, 1))), Random(1))


def test_an_unknown_topic_is_named_with_the_java_exception():
    with pytest.raises(ToolError) as caught:
        known_topics({"foo": FOO, "quux": None})
    expected = "org.apache.kafka.common.errors.UnknownTopicOrPartitionException: Topic quux not found."
    assert str(caught.value) == f"Error: {expected}"


def test_the_current_replicas_of_the_plan_are_looked_up():
    current = current_replicas(plan(**{"foo-1": (0,), "bar-0": (1,)}), (FOO, BAR))
    assert current == {TopicPartition("foo", 1): (1, 2, 3), TopicPartition("bar", 0): (2, 3, 0)}


def test_unknown_partitions_are_named_together():
    with pytest.raises(ToolError) as caught:
        current_replicas(plan(**{"foo-10": (0,), "foo-1": (0,), "bar-7": (1,)}), (FOO, BAR))
    expected = "UnknownTopicOrPartitionException: Unable to find partition: bar-7, foo-10"
    assert str(caught.value) == f"Error: org.apache.kafka.common.errors.{expected}"


def test_the_lowest_broker_that_is_not_live_is_named():
    check_brokers(plan(**{"foo-0": (0, 3)}), {0, 1, 2, 3})
    with pytest.raises(ToolError, match=r"^Error: Unknown broker id 4$"):
        check_brokers(plan(**{"foo-0": (0, 9), "foo-1": (4, 5)}), {0, 1, 2, 3})
