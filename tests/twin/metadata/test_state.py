"""Effects of records on the metadata."""

from dataclasses import replace

import pytest

from kreassign.errors import InvariantBroken
from kreassign.model import TopicPartition
from kreassign.twin.metadata import (
    UNASSIGNED,
    BrokerFenced,
    BrokerRegistered,
    BrokerShuttingDown,
    BrokerState,
    BrokerUnfenced,
    ClusterMetadata,
    LeaderRecovery,
    LogDirFailed,
    LogDirInfo,
    PartitionChanged,
    PartitionCreated,
    TopicCreated,
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


# Topics and partitions


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


def test_a_record_about_nothing_is_a_bug():
    with pytest.raises(InvariantBroken, match="foo-0"):
        after(TOPIC, PartitionChanged(FOO, leader=1))


# Configuration
