"""Permission that a refusal asks for."""

from __future__ import annotations

from collections.abc import Collection

import pytest

from kreassign.errors import ClusterError, Rejected, Unreachable
from kreassign.model import ConfigResource, TopicPartition
from kreassign.model.authorization import (
    AllowedOperations,
    error_text,
    grant,
    missing_permission,
    operation_names,
    refused_permission,
)


def rejected(api: str, code: int, item: object = None) -> Rejected:
    return Rejected("Request Request(processor=0, …)", api=api, code=code, name="DENIED", item=item)


@pytest.mark.parametrize(("error", "operation", "resource"), [
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
])  # fmt: skip
def test_a_refusal_names_the_permission_and_the_command_that_grants_it(
    error: Rejected, operation: str, resource: str
) -> None:
    said = refused_permission(error)
    assert said is not None
    assert said.startswith(f"permission is missing: {operation} on ")
    assert f"`kafka-acls --add --allow-principal User:NAME --operation {operation} {resource}`" in said
    assert said.endswith(f" ({error.api}, {error.code} DENIED)")


def test_a_refusal_names_the_principal_that_it_is_of() -> None:
    codes = ((31, None), (29, "t"), (30, "g"))
    errors = [
        Rejected("", api=api, code=code, name="DENIED", item=item, principal="User:ann")
        for api, (code, item) in zip(("ElectLeaders", "ListOffsets", "JoinGroup"), codes, strict=True)
    ]
    assert all("`kafka-acls --add --allow-principal User:ann --operation " in error_text(error) for error in errors)
    assert "--allow-principal User:ann --operation Read --topic t" in missing_permission("Read", ["t"], "User:ann")


@pytest.mark.parametrize("error", [
    rejected("ListPartitionReassignments", 41),
    rejected("DescribeTopicPartitions", 29),
    rejected("Fetch", 29, "t"),
    rejected("JoinGroup", 30),
    rejected("JoinGroup", 30, TopicPartition("t", 1)),
    rejected("ListOffsets", 29, 7),
    rejected("Fetch", 31),
    Unreachable("no answer"),
    ClusterError("31"),
    ValueError("31"),
])  # fmt: skip
def test_other_errors_keep_their_own_words(error: Exception) -> None:
    assert refused_permission(error) is None


def allow(operation: str, on: str) -> str:
    return f"allow it with `kafka-acls --add --allow-principal User:NAME --operation {operation} {on}`"


@pytest.mark.parametrize(("error", "said"), [
    (rejected("UnregisterBroker", 31, "broker 3"), f"Alter on the cluster; {allow('Alter', '--cluster')}"),
    (
        rejected("DescribeConfigs", 29, ConfigResource.topic("t")),
        f"DescribeConfigs on topic t; {allow('DescribeConfigs', '--topic t')}",
    ),
    (rejected("SyncGroup", 30, "g"), f"Read on group g; {allow('Read', '--group g')}"),
])  # fmt: skip
def test_a_refusal_names_the_permission_without_broker_internals(error: Rejected, said: str) -> None:
    whole = f"permission is missing: {said} ({error.api}, {error.code} DENIED)"
    assert error_text(error) == whole == refused_permission(error)


@pytest.mark.parametrize("error", [Unreachable("no answer"), rejected("Fetch", 29, "t"), ValueError("31")])
def test_of_any_other_error_its_own_words_are_told(error: Exception) -> None:
    assert error_text(error) == str(error)


def test_a_permission_is_granted_on_one_name_or_on_all_of_a_kind() -> None:
    ann = ("kafka-acls", "--add", "--allow-principal", "User:ann", "--operation")
    someone = ("kafka-acls", "--add", "--allow-principal", "User:NAME", "--operation")
    assert grant("Alter", "cluster") == (*someone, "Alter", "--cluster")
    assert grant("Alter", "cluster", ("t",)) == (*someone, "Alter", "--cluster")
    assert grant("Read", "group", ("g",)) == (*someone, "Read", "--group", "g")
    assert grant("Read", "topic", ("a", "b")) == (*someone, "Read", "--topic", "*")
    assert grant("Read", "topic") == (*someone, "Read", "--topic", "*")
    assert grant("Read", "topic", ["t"], "User:ann") == (*ann, "Read", "--topic", "t")


@pytest.mark.parametrize(("topics", "said"), [
    ((), f"Describe on the cluster; {allow('Describe', '--cluster')}"),
    (["a"], f"Describe on topic a; {allow('Describe', '--topic a')}"),
    ({"b", "a"}, f"Describe on topics a, b; {allow('Describe', '--topic a')}"),
    ("edcba", f"Describe on topics a, b, c, d, e; {allow('Describe', '--topic a')}"),
    ("fedcba", f"Describe on topics a, b, c, d, e and 1 more; {allow('Describe', '--topic a')}"),
    ("gfedcba", f"Describe on topics a, b, c, d, e and 2 more; {allow('Describe', '--topic a')}"),
])  # fmt: skip
def test_topics_without_a_permission_are_named_or_counted(topics: Collection[str], said: str) -> None:
    assert missing_permission("Describe", topics) == f"permission is missing: {said}"


def test_without_topics_the_permission_is_one_of_the_cluster() -> None:
    assert missing_permission("Alter") == missing_permission("Alter", ())


def test_operations_have_the_names_that_kafka_acls_takes() -> None:
    assert operation_names(range(3, 13)) == {
        "Read", "Write", "Create", "Delete", "Alter", "Describe", "ClusterAction", "DescribeConfigs", "AlterConfigs",
        "IdempotentWrite",
    }  # fmt: skip
    assert operation_names([4, 4, 3, 99, 0]) == {"Read", "Write"}


def test_what_a_cluster_does_not_tell_is_not_known_rather_than_nothing() -> None:
    assert AllowedOperations() == AllowedOperations(cluster=None, topics={}, groups={})
