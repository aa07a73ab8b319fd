"""Effects of records on the metadata."""

from dataclasses import replace

import pytest

from kreassign.errors import InvariantBroken
from kreassign.model import ConfigResource, TopicPartition
from kreassign.twin.metadata import (
    UNASSIGNED,
    BrokerFenced,
    BrokerRegistered,
    BrokerShuttingDown,
    BrokerState,
    BrokerUnfenced,
    BrokerUnregistered,
    ClusterMetadata,
    ConfigChanged,
    LeaderRecovery,
    LogDirFailed,
    LogDirInfo,
    PartitionChanged,
    PartitionCreated,
    TopicCreated,
    TopicDeleted,
    TopicState,
)

FOO = TopicPartition("foo", 0)
DIRS = (LogDirInfo("/a", "A"), LogDirInfo("/b", "B"))
REGISTERED = BrokerRegistered(1, "host", 9092, "rack", DIRS, 7)
CREATED = PartitionCreated(FOO, (1, 2, 3), (1, 2), 1, 4, 9, (UNASSIGNED, "B", "C"))
TOPIC = TopicCreated("foo", "the id")


def after(*records):
    metadata = ClusterMetadata()
    for record in records:
        metadata.apply(record)
    return metadata


def changed(**fields):
    metadata = after(TOPIC, CREATED, PartitionChanged(FOO, **fields))
    return metadata, metadata.partition(FOO)


# Brokers


@pytest.mark.parametrize(("records", "differences", "is_active"), [
    ((), {}, False),
    ((BrokerUnfenced(1),), {"fenced": False}, True),
    ((BrokerUnfenced(1), BrokerShuttingDown(1)), {"fenced": False, "shutting_down": True}, False),
    ((BrokerUnfenced(1), BrokerFenced(1)), {}, False),
    ((LogDirFailed(1, "A"), LogDirFailed(1, "B")), {"failed_dirs": frozenset({"A", "B"})}, False),
    ((BrokerUnfenced(1), BrokerShuttingDown(1), LogDirFailed(1, "A"), REGISTERED), {}, False),
])  # fmt: skip
def test_brokers(records, differences, is_active):
    metadata = after(REGISTERED, *records)
    assert metadata.brokers == {1: replace(BrokerState(1, "host", 9092, "rack", DIRS, 7), **differences)}
    assert metadata.is_active(1) is is_active


def test_an_unregistered_broker_is_unknown():
    metadata = after(REGISTERED, BrokerUnfenced(1), BrokerUnregistered(1))
    assert metadata.brokers == {}
    assert not metadata.is_active(1)


# Topics and partitions


def test_a_topic_is_found_by_name_and_id():
    metadata = after(TOPIC)
    assert metadata.topics == {"foo": TopicState("foo", "the id", {})}
    assert metadata.topic_names == {"the id": "foo"}


def test_partitions_are_found_by_number_and_by_broker():
    metadata = after(TOPIC, CREATED)
    partition = metadata.partition(FOO)
    assert (partition.replicas, partition.isr, partition.leader) == ((1, 2, 3), (1, 2), 1)
    assert (partition.leader_epoch, partition.partition_epoch) == (4, 9)
    assert partition.directory_of(2) == "B"
    assert [metadata.partitions_on(broker) for broker in (1, 2, 3, 4)] == [[partition]] * 3 + [[]]
    assert metadata.partition(TopicPartition("foo", 1)) is metadata.partition(TopicPartition("bar", 0)) is None


def test_partitions_on_a_broker_come_in_order():
    metadata = after(TOPIC, *(replace(CREATED, topic_partition=TopicPartition("foo", number)) for number in (2, 10, 0)))
    assert [partition.topic_partition.partition for partition in metadata.partitions_on(1)] == [0, 2, 10]


@pytest.mark.parametrize(("fields", "leader_epoch"), [
    ({"isr": (1,)}, 4), ({"leader": 2}, 5), ({"leader": 1}, 5), ({"leader": -1}, 5), ({}, 4),
])  # fmt: skip
def test_every_change_counts_and_one_that_names_a_leader_twice(fields, leader_epoch):
    _, partition = changed(**fields)
    assert (partition.leader_epoch, partition.partition_epoch) == (leader_epoch, 10)


@pytest.mark.parametrize(("field", "value"), [
    ("replicas", (3, 1, 2)), ("isr", (3,)), ("isr", ()), ("leader", 2), ("adding", (3,)), ("removing", (1, 2)),
    ("leader_recovery", LeaderRecovery.RECOVERING), ("directories", ("x", "y", "z")), ("elr", (3,)),
    ("last_known_elr", (2,)),
])  # fmt: skip
def test_a_change_changes_what_it_names_and_nothing_else(field, value):
    before = after(TOPIC, CREATED).partition(FOO)
    _, partition = changed(**{field: value})
    epochs = {"leader_epoch": partition.leader_epoch, "partition_epoch": partition.partition_epoch}
    assert partition == replace(before, **{field: value}, **epochs)


def test_indices_follow_a_move():
    metadata, _ = changed(replicas=(4, 1, 2), adding=(4,), removing=(1, 2))
    assert metadata.reassigning == {FOO}
    assert metadata.hosted.keys() == {1, 2, 4}
    metadata.apply(PartitionChanged(FOO, replicas=(4,), adding=(), removing=(), isr=(4,), leader=4))
    assert metadata.reassigning == set()
    assert metadata.hosted == {4: {FOO}}


def test_indices_follow_the_leader():
    metadata, _ = changed(leader=-1)
    assert (metadata.leaderless, metadata.imbalanced) == ({FOO}, {FOO})
    metadata.apply(PartitionChanged(FOO, leader=2))
    assert (metadata.leaderless, metadata.imbalanced) == (set(), {FOO})
    metadata.apply(PartitionChanged(FOO, replicas=(2, 1, 3)))
    assert metadata.imbalanced == set()


def test_a_deleted_topic_leaves_nothing_behind():
    settings = ConfigChanged(ConfigResource.topic("foo"), "retention.ms", "5")
    moving = PartitionChanged(FOO, adding=(3,), leader=-1)
    metadata = after(TOPIC, settings, CREATED, moving, TopicDeleted("foo"))
    assert metadata == ClusterMetadata(offset=5)


def test_a_record_about_nothing_is_a_bug():
    with pytest.raises(InvariantBroken, match="foo-0"):
        after(TOPIC, PartitionChanged(FOO, leader=1))


# Configuration


def test_settings_are_set_and_taken_back():
    resource = ConfigResource.broker(1)
    metadata = after(ConfigChanged(resource, "a", "1"), ConfigChanged(resource, "b", ""))
    assert (metadata.config(resource, "a"), metadata.config(resource, "b")) == ("1", "")
    metadata.apply(ConfigChanged(resource, "a", None))
    assert metadata.configs == {resource: {"b": ""}}
    metadata.apply(ConfigChanged(resource, "b", None))
    metadata.apply(ConfigChanged(resource, "never set", None))
    assert metadata.configs == {}
    assert metadata.config(resource, "a") is None


def test_records_are_counted():
    assert after(REGISTERED, TOPIC, CREATED).offset == 3
