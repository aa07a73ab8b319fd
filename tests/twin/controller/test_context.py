"""Inputs of decisions."""

import pytest

from kreassign.model import TopicPartition
from kreassign.twin.controller import decision
from kreassign.twin.metadata import UNASSIGNED, LogDirFailed
from tests.twin.controller.small_cluster import SmallCluster

MIN_ISR, UNCLEAN = "min.insync.replicas", "unclean.leader.election.enable"


@pytest.mark.parametrize(("own", "common", "static", "value"), [
    ("3", "2", "1", 3), (None, "2", "1", 2), (None, None, "2", 2), (None, None, None, 1), ("9", None, None, 3),
])  # fmt: skip
def test_the_least_isr_is_the_most_particular_one(own, common, static, value):
    cluster = SmallCluster(server=decision.ServerSettings(static={MIN_ISR: static} if static else {})).topic(
        "foo", "0 1 2"
    )
    for owner, setting in (("foo", own), ("", common)):
        if setting is not None:
            cluster.configure(owner, MIN_ISR, setting)
    assert cluster.context.min_isr("foo") == value


@pytest.mark.parametrize(("own", "common", "allowed"), [
    (None, None, False), (None, "true", True), ("false", "true", False), (" TRUE ", None, True),
])  # fmt: skip
def test_losing_records_must_be_allowed(own, common, allowed):
    cluster = SmallCluster().topic("foo", "0")
    for owner, setting in (("foo", own), ("", common)):
        if setting is not None:
            cluster.configure(owner, UNCLEAN, setting)
    assert cluster.context.allows_unclean_election("foo") is allowed


def test_only_active_brokers_with_a_working_directory_may_lead():
    cluster = SmallCluster(dead=(1,), stopping=(2,)).topic(
        "foo", "0 1 2 3", directories=("dir 0.0", UNASSIGNED, "x", "dir 3.0")
    )
    cluster.write(LogDirFailed(3, "dir 3.0"))
    partition = cluster.metadata.partition(TopicPartition("foo", 0))
    assert [broker for broker in range(6) if cluster.context.may_lead(partition, broker)] == [0]
