"""Brokers that tell where they put their replicas."""

from kreassign.model import TopicPartition
from kreassign.twin.controller.brokers import assign_directories
from kreassign.twin.metadata import UNASSIGNED
from tests.twin.controller.small_cluster import SmallCluster


def test_directories_are_noted_and_strangers_ignored():
    cluster = SmallCluster().topic("foo", "0 1", "2 3")
    wanted = {
        TopicPartition("foo", 0): "dir 1.1",
        TopicPartition("foo", 1): "dir 1.1",
        TopicPartition("foo", 2): "dir 1.1",
        TopicPartition("nope", 0): "dir 1.1",
    }
    cluster.commit(assign_directories, 1, wanted)
    assert cluster.partition(index=1).directories == (UNASSIGNED, UNASSIGNED)
    assert cluster.partition().directories == (UNASSIGNED, "dir 1.1")
    assert cluster.partition().partition_epoch == 1
    assert cluster.partition().leader_epoch == 0


def test_the_same_directory_again_writes_nothing():
    cluster = SmallCluster().topic("foo", "0 1")
    for _ in range(2):
        cluster.commit(assign_directories, 0, {TopicPartition("foo", 0): "dir 0.0"})
    assert cluster.partition().partition_epoch == 1


def test_a_directory_does_not_touch_who_is_eligible():
    cluster = SmallCluster().topic("foo", "0 1 / 0", elr=(1,)).configure("foo", "min.insync.replicas", "2")
    cluster.commit(assign_directories, 0, {TopicPartition("foo", 0): "dir 0.0"})
    assert cluster.partition().elr == (1,)
