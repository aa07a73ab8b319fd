"""Which permission a refusal asks for."""

from __future__ import annotations

import pytest

from kreassign.errors import ClusterError, Rejected, Unreachable
from kreassign.model import ConfigResource, TopicPartition
from kreassign.model.authorization import missing_permission, refused_permission


def rejected(api: str, code: int, item: object = None) -> Rejected:
    return Rejected("Request Request(processor=0, …)", api=api, code=code, name="DENIED", item=item)


@pytest.mark.parametrize(
    ("error", "operation", "resource"),
    [
        (rejected("ListPartitionReassignments", 31), "Describe", "--cluster"),
        (rejected("DescribeLogDirs", 31, "broker 3"), "Describe", "--cluster"),
        (rejected("ElectLeaders", 31), "Alter", "--cluster"),
        (rejected("IncrementalAlterConfigs", 31, ConfigResource.broker(3)), "AlterConfigs", "--cluster"),
        (rejected("IncrementalAlterConfigs", 29, ConfigResource.topic("t")), "AlterConfigs", "--topic t"),
        (rejected("DescribeTopicPartitions", 29, "t"), "Describe", "--topic t"),
        (rejected("FindCoordinator", 30, "kreassign-lease"), "Read", "--group kreassign-lease"),
        (rejected("JoinGroup", 30, "kreassign-lease"), "Read", "--group kreassign-lease"),
        (rejected("OffsetCommit", 29, TopicPartition("__consumer_offsets", 1)), "Read", "--topic __consumer_offsets"),
        (rejected("ListOffsets", 29, TopicPartition("t", 1)), "Describe", "--topic t"),
    ],
)
def test_a_refusal_names_the_permission_and_the_command_that_grants_it(
    error: Rejected, operation: str, resource: str
) -> None:
    said = refused_permission(error)
    assert said is not None
    assert said.startswith(f"permission is missing: {operation} on ")
    assert f"`kafka-acls --add --allow-principal User:NAME --operation {operation} {resource}`" in said
    assert said.endswith(f" ({error.api}, {error.code} DENIED)")


@pytest.mark.parametrize(
    "error",
    [
        rejected("ListPartitionReassignments", 41),
        rejected("DescribeTopicPartitions", 29),
        rejected("Fetch", 29, "t"),
        rejected("JoinGroup", 30),
        Unreachable("no answer"),
        ClusterError("31"),
        ValueError("31"),
    ],
)
def test_other_errors_and_those_that_do_not_tell_of_what_keep_their_own_words(error: Exception) -> None:
    assert refused_permission(error) is None


def test_many_topics_are_counted() -> None:
    said = missing_permission("Describe", [f"t{number}" for number in range(7)])
    assert "Describe on topics t0, t1, t2, t3, t4 and 2 more; " in said


@pytest.mark.parametrize(("topics", "named"), [(["a"], "on topic a;"), (["b", "a"], "on topics a, b;")])
def test_one_topic_is_a_topic_and_two_are_topics(topics: list[str], named: str) -> None:
    assert named in missing_permission("Describe", topics)
