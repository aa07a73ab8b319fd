"""An item that was asked about and is missing from the answer fails; silence never reads as "nothing is set"."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any

import pytest

from kreassign.admin.call import Call
from kreassign.admin.translate import cluster as cluster_calls
from kreassign.admin.translate import groups as group_calls
from kreassign.admin.translate import partitions
from kreassign.admin.translate import partitions as partition_calls
from kreassign.admin.translate import records as record_calls
from kreassign.errors import ProtocolViolation, Rejected
from kreassign.model import (
    Batch,
    ConfigChange,
    ConfigOperation,
    ConfigResource,
    ElectionType,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    TopicPartition,
)
from kreassign.model.requests import CommittedOffset, Membership
from kreassign.wire import api
from tests.admin import answers
from tests.admin.listener import Listener
from tests.admin.test_client import Connect
from tests.admin.values import as_read_by_us
from tests.checks.source import read

T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)
TOPIC, BROKER = ConfigResource.topic("t"), ConfigResource.broker(1)
MEMBER = Membership("g", "instance", "member", 3)
CHANGE = ConfigChange(ConfigOperation.SET, "k", "v")
NOTHING_SET = CommittedOffset(0, "")


@dataclass(frozen=True, slots=True)
class Asking:
    """A call about named items, and the items."""

    call: Call[Batch[Any, Any]]
    items: tuple[object, ...]

    def __str__(self) -> str:
        return self.call.api.name


ASKING = (
    Asking(cluster_calls.describe_configs([TOPIC, BROKER], None), (TOPIC, BROKER)),
    Asking(
        cluster_calls.incremental_alter_configs({TOPIC: [CHANGE], BROKER: [CHANGE]}, validate_only=False),
        (TOPIC, BROKER),
    ),
    Asking(partition_calls.list_offsets([T1, T0, U0], OffsetSpec.LATEST), (T1, T0, U0)),
    Asking(group_calls.fetch_offsets("g", [T0, T1, U0]), (T0, T1, U0)),
    Asking(record_calls.fetch(T0, 0, 0), (T0,)),
    Asking(record_calls.produce(T0, 0, b"key", b"value"), (T0,)),
    Asking(group_calls.commit_offsets(MEMBER, {T0: NOTHING_SET, U0: NOTHING_SET}), (T0, U0)),
    Asking(cluster_calls.describe_topics_by_metadata(["t", "u"]), ("t", "u")),
    Asking(cluster_calls.create_topics([NewTopic("t"), NewTopic("u")], validate_only=False), ("t", "u")),
    Asking(cluster_calls.delete_topics(["t", "u"]), ("t", "u")),
    Asking(cluster_calls.create_partitions({"t": NewPartitions(3)}, validate_only=False), ("t",)),
    Asking(
        partition_calls.alter_partition_reassignments({T0: (1,), U0: None}, allow_replication_factor_change=True),
        (T0, U0),
    ),
    Asking(partition_calls.elect_leaders([T0, U0], ElectionType.PREFERRED), (T0, U0)),
    Asking(partition_calls.alter_replica_log_dirs({T0: "/a", U0: "/b"}), (T0, U0)),
    Asking(partitions.alter_partition_counts({"t": 3}, validate_only=False), ("t",)),
    Asking(partitions.alter_replication_factors({"t": 3}, validate_only=False, may_undercut_min_in_sync=False), ("t",)),
    Asking(partitions.reassign_partitions({T0: (1,)}, validate_only=False), (T0,)),
    Asking(partitions.replica_status([T0, U0], leader=1), (T0, U0)),
)


@pytest.mark.parametrize("asking", ASKING, ids=str)
def test_an_item_that_the_answer_forgot_fails(asking: Asking) -> None:
    known = asking.call.api
    for version in range(known.min_version, known.max_version + 1):
        batch = as_read_by_us(asking.call, version, known.response())
        assert not batch.ok
        assert tuple(batch.failed) == asking.items
        for item, error in batch.failed.items():
            assert isinstance(error, ProtocolViolation)
            assert (error.item, error.api) == (item, known.name)


def test_a_group_keeps_the_offsets_that_were_not_forgotten() -> None:
    """The record of maintenance is kept in committed offsets: a lost piece must not read as none."""
    response = api.OFFSET_FETCH.response
    entry = response.OffsetFetchResponseTopic
    told = entry.OffsetFetchResponsePartition(
        partition_index=0, committed_offset=7, committed_leader_epoch=-1, metadata="piece", error_code=0
    )
    answer = response(topics=[entry(name="t", partitions=[told])], error_code=0)
    batch = as_read_by_us(group_calls.fetch_offsets("g", [T0, T1]), 7, answer)
    assert dict(batch.ok) == {T0: CommittedOffset(7, "piece")}
    with pytest.raises(ProtocolViolation, match=r"the answer to OffsetFetch .* says nothing about t-1"):
        batch.raise_if_any()


@pytest.mark.parametrize("version", [4, 5, 6])
def test_a_coordinator_that_is_not_told_is_not_broker_0(version: int) -> None:
    with pytest.raises(ProtocolViolation, match="says nothing about g"):
        as_read_by_us(group_calls.find_coordinator("g"), version, api.FIND_COORDINATOR.response(coordinators=[]))


@pytest.mark.parametrize("version", [0, 3])
def test_older_brokers_name_a_coordinator_without_its_group(version: int) -> None:
    response = api.FIND_COORDINATOR.response(node_id=4, host="h", port=9092)
    assert as_read_by_us(group_calls.find_coordinator("g"), version, response) == 4


def test_a_group_that_is_not_described_is_not_dead() -> None:
    with pytest.raises(ProtocolViolation, match="says nothing about g"):
        as_read_by_us(group_calls.describe_group("g"), 5, api.DESCRIBE_GROUPS.response())


def test_a_member_that_the_answer_forgot_has_not_left() -> None:
    leave = group_calls.leave_group("g", "instance", "member")
    with pytest.raises(ProtocolViolation, match="says nothing about instance"):
        as_read_by_us(leave, 5, api.LEAVE_GROUP.response())


def test_the_refusal_of_a_whole_group_comes_before_its_members() -> None:
    leave = group_calls.leave_group("g", "instance", "member")
    with pytest.raises(Rejected) as refused:
        as_read_by_us(leave, 5, api.LEAVE_GROUP.response(error_code=16))
    assert refused.value.code == 16


def test_a_topic_that_no_page_is_about_fails(node: Listener, connect: Connect) -> None:
    node.answers[api.DESCRIBE_TOPIC_PARTITIONS] = answers.topic_page([answers.some_topic("a", 0)], {"gone": 3})
    batch = connect(node).describe_topics(["a", "forgotten", "gone"])
    assert list(batch.ok) == ["a"]
    assert isinstance(batch.failed["gone"], Rejected)
    assert isinstance(batch.failed["forgotten"], ProtocolViolation)


def test_only_one_module_makes_batches_of_answers() -> None:
    """A module needs the request to make a batch of an answer. Elections make one of another batch."""
    homes = {
        source.path
        for source in read("src/kreassign/admin/call.py", "src/kreassign/admin/translate/*.py")
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "Batch"
    }
    assert homes == {"src/kreassign/admin/call.py", "src/kreassign/admin/translate/partitions.py"}
