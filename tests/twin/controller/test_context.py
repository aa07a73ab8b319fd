"""Inputs of decisions."""

import pytest

from kreassign.model import TopicPartition
from kreassign.twin.controller import decision
from kreassign.twin.metadata import UNASSIGNED, BrokerRegistered, LogDirFailed
from tests.twin.controller.small_cluster import SmallCluster, directories

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


def test_a_replica_that_nobody_knows_the_directory_of_is_taken_to_be_fine():
    broker = SmallCluster().metadata.brokers[0]
    assert decision.is_online(broker, UNASSIGNED)
    assert decision.is_online(broker, "dir 0.1")
    assert not decision.is_online(broker, "dir 9.9")


def test_one_working_directory_is_where_replicas_go():
    cluster = SmallCluster()
    assert decision.default_directory(cluster.metadata, 0) == UNASSIGNED
    cluster.write(LogDirFailed(0, "dir 0.1"))
    assert decision.default_directory(cluster.metadata, 0) == "dir 0.0"
    cluster.write(BrokerRegistered(0, "host0", 9092, None, directories(0, 2), 50))
    assert decision.default_directory(cluster.metadata, 0) == UNASSIGNED
    assert decision.default_directory(cluster.metadata, 99) == UNASSIGNED


def test_outcomes_say_what_they_are():
    assert str(decision.DONE) == "done"
    assert str(decision.Outcome(3, "Unable to find it.")) == "UNKNOWN_TOPIC_OR_PARTITION (3): Unable to find it."
    assert decision.with_default_text(84).message == "Leader election not needed for topic partition."
    assert (decision.FAILED.code, decision.FAILED.message, decision.FAILED.is_failure) == (-1, None, True)


@pytest.mark.parametrize(("timeout_ms", "expired"), [(1, False), (0, True), (-1, True)])
def test_a_request_needs_time(timeout_ms, expired):
    assert decision.has_expired(timeout_ms) is expired
