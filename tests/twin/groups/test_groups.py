"""The APIs of groups, as far as only a twin can be asked: permissions, long times, what is left out.

What real clusters do as well is in tests/conformance/test_groups.py.
"""

from __future__ import annotations

import struct

import pytest

from kreassign.model.error_codes import (
    COORDINATOR_NOT_AVAILABLE,
    FENCED_INSTANCE_ID,
    GROUP_AUTHORIZATION_FAILED,
    GROUP_MAX_SIZE_REACHED,
    GROUP_SUBSCRIBED_TO_TOPIC,
    INCONSISTENT_GROUP_PROTOCOL,
    INVALID_GROUP_ID,
    MEMBER_ID_REQUIRED,
    NONE,
    TOPIC_AUTHORIZATION_FAILED,
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    UNKNOWN_MEMBER_ID,
)
from kreassign.twin.access import ALL_GROUPS, ANONYMOUS, Allow, Operation, Permissions
from kreassign.twin.cluster import Twin
from kreassign.twin.groups import RETENTION_MS
from kreassign.twin.version import KAFKA_3_7
from kreassign.wire import api
from kreassign.wire.api import Message
from tests.twin.asking import ask, twin

SESSION_MS = 10_000


def coordinator(asked: Twin, group: str = "group") -> int:
    """The broker of a group; the first search creates the topic."""
    for _ in range(2):
        (found,) = ask(asked, api.FIND_COORDINATOR, 4, coordinator_keys=[group]).coordinators
    assert found.error_code == NONE
    return int(found.node_id)


def join(asked: Twin, version: int = 9, **fields: object) -> Message:
    protocol = {"name": "range", "metadata": b"me"}
    chosen: dict[str, object] = {
        "group_id": "group",
        "member_id": "",
        "session_timeout_ms": SESSION_MS,
        "protocol_type": "consumer",
        "protocols": [protocol],
        **fields,
    }
    return ask(asked, api.JOIN_GROUP, version, node=coordinator(asked), **chosen)


@pytest.fixture
def asked() -> Twin:
    return twin()


def test_the_first_search_finds_nobody_and_creates_the_topic(asked: Twin) -> None:
    (answer,) = ask(asked, api.FIND_COORDINATOR, 6, coordinator_keys=["a"]).coordinators
    assert (answer.key, answer.error_code, answer.node_id, answer.host, answer.port) == ("a", 15, -1, "", -1)
    topic = asked.metadata.topics["__consumer_offsets"]
    assert len(topic.partitions) == 50
    assert {len(partition.replicas) for partition in topic.partitions.values()} == {3}


@pytest.mark.parametrize("kind", [1, 2], ids=["transaction", "share group"])
def test_transactions_have_no_coordinator_and_no_topic(asked: Twin, kind: int) -> None:
    for _ in range(2):
        (answer,) = ask(asked, api.FIND_COORDINATOR, 6, key_type=kind, coordinator_keys=["a"]).coordinators
        assert answer.error_code == TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert not asked.metadata.topics


def test_older_clients_search_for_one_key_at_a_time() -> None:
    asked = twin(version=KAFKA_3_7)
    first = ask(asked, api.FIND_COORDINATOR, 3, key="a")
    assert (first.error_code, first.node_id) == (COORDINATOR_NOT_AVAILABLE, -1)
    second = ask(asked, api.FIND_COORDINATOR, 3, key="a")
    assert (second.error_code, second.error_message) == (NONE, "NONE")
    assert second.node_id == ask(asked, api.FIND_COORDINATOR, 0, key="a").node_id


def test_a_second_member_that_would_fit_finds_the_group_full(asked: Twin) -> None:
    assert join(asked, group_instance_id="one").error_code == NONE
    assert join(asked, group_instance_id="two").error_code == GROUP_MAX_SIZE_REACHED


def test_old_clients_join_without_being_given_a_member_id_first() -> None:
    asked = twin(version=KAFKA_3_7)
    joined = join(asked, 3)
    assert (joined.error_code, joined.generation_id) == (NONE, 1)
    again = join(asked, 3, member_id=joined.member_id)
    assert (again.error_code, again.generation_id, again.member_id) == (NONE, 2, joined.member_id)
    left = ask(asked, api.LEAVE_GROUP, 2, node=coordinator(asked), group_id="group", member_id=joined.member_id)
    assert left.error_code == NONE


def test_a_member_id_that_was_not_given_out_is_unknown(asked: Twin) -> None:
    assert join(asked, member_id="mine").error_code == UNKNOWN_MEMBER_ID
    promised = join(asked)
    assert (promised.error_code, promised.generation_id) == (MEMBER_ID_REQUIRED, -1)
    assert join(asked, member_id="mine").error_code == UNKNOWN_MEMBER_ID
    assert join(asked, member_id=promised.member_id).error_code == NONE


def test_a_group_needs_a_name(asked: Twin) -> None:
    node = coordinator(asked, "")
    protocol = {"name": "range", "metadata": b""}
    answer = ask(
        asked, api.JOIN_GROUP, 9, node=node, group_id="", session_timeout_ms=SESSION_MS, protocol_type="x",
        protocols=[protocol],
    )  # fmt: skip
    assert answer.error_code == INVALID_GROUP_ID


def test_a_session_lasts_as_long_as_it_is_renewed(asked: Twin) -> None:
    joined = join(asked, group_instance_id="one")
    claim = {"group_id": "group", "generation_id": 1, "member_id": joined.member_id, "group_instance_id": "one"}
    node = coordinator(asked)
    for _ in range(3):
        asked.advance(SESSION_MS - 1)
        assert ask(asked, api.HEARTBEAT, 4, node=node, **claim).error_code == NONE
    asked.advance(SESSION_MS)
    assert ask(asked, api.HEARTBEAT, 4, node=node, **claim).error_code == UNKNOWN_MEMBER_ID


def test_a_group_is_forgotten_a_week_after_its_last_member(asked: Twin) -> None:
    join(asked, group_instance_id="one")
    node = coordinator(asked)
    asked.advance(SESSION_MS)
    assert [one.group_state for one in ask(asked, api.LIST_GROUPS, 5, node=node).groups] == ["Empty"]
    asked.advance(RETENTION_MS)
    assert ask(asked, api.LIST_GROUPS, 5, node=node).groups == []


def test_groups_are_listed_by_state_and_type(asked: Twin) -> None:
    join(asked, group_instance_id="one")
    node = coordinator(asked)

    def listed(**filters: object) -> list[str]:
        return [one.group_id for one in ask(asked, api.LIST_GROUPS, 5, node=node, **filters).groups]

    assert listed(states_filter=["completingrebalance"]) == ["group"]
    assert listed(states_filter=["Stable"]) == []
    assert listed(types_filter=["Classic"]) == ["group"]
    assert listed(types_filter=["consumer"]) == []
    assert all(
        ask(asked, api.LIST_GROUPS, 5, node=other).groups == [] for other in asked.processes.ids if other != node
    )


def test_a_tool_without_a_group_may_commit_while_nobody_is_in_it() -> None:
    asked = twin({"orders": [[0]]})
    node = coordinator(asked)
    one = {"partition_index": 0, "committed_offset": 7, "committed_metadata": "text"}
    fields = {"group_id": "group", "generation_id_or_member_epoch": -1, "member_id": ""}

    def committed() -> int:
        topics = [{"name": "orders", "partitions": [one]}]
        answer = ask(asked, api.OFFSET_COMMIT, 9, node=node, topics=topics, **fields)
        return int(answer.topics[0].partitions[0].error_code)

    assert committed() == NONE
    (everything,) = ask(asked, api.OFFSET_FETCH, 7, node=node, group_id="group", topics=None).topics
    assert (everything.name, everything.partitions[0].committed_offset, everything.partitions[0].metadata) == (
        "orders", 7, "text",
    )  # fmt: skip
    join(asked, group_instance_id="one")
    assert committed() == UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("operation", [Operation.READ, Operation.DESCRIBE])
def test_without_a_permission_on_the_group_nothing_is_told(operation: Operation) -> None:
    rules = {Allow(ANONYMOUS, operation, group=ALL_GROUPS), Allow(ANONYMOUS, Operation.CREATE)}
    asked = twin(permissions=Permissions(frozenset(rules)))
    may_join = operation is Operation.READ
    assert join(asked, group_instance_id="one").error_code == (NONE if may_join else GROUP_AUTHORIZATION_FAILED)
    nobody = twin(permissions=Permissions(frozenset({Allow(ANONYMOUS, Operation.READ, group="another")})))
    (answer,) = ask(nobody, api.FIND_COORDINATOR, 6, coordinator_keys=["group"]).coordinators
    assert answer.error_code == GROUP_AUTHORIZATION_FAILED
    (group,) = ask(nobody, api.DESCRIBE_GROUPS, 6, groups=["group"]).groups
    assert (group.error_code, group.group_state) == (GROUP_AUTHORIZATION_FAILED, "")


def test_offsets_of_a_topic_need_a_permission_on_it() -> None:
    asked = twin(
        {"orders": [[0]]}, permissions=Permissions(frozenset({Allow(ANONYMOUS, Operation.READ, group="group")}))
    )
    node = coordinator(asked)
    one = {"partition_index": 0, "committed_offset": 7, "committed_metadata": "text"}
    answer = ask(
        asked, api.OFFSET_COMMIT, 9, node=node, group_id="group", generation_id_or_member_epoch=-1, member_id="",
        topics=[{"name": "orders", "partitions": [one]}],
    )  # fmt: skip
    assert answer.topics[0].partitions[0].error_code == TOPIC_AUTHORIZATION_FAILED


def forget(asked: Twin, *topics: str) -> tuple[int, list[int]]:
    """Delete the offsets of first partitions; the code at the top, and those of the partitions."""
    named = [{"name": topic, "partitions": [{"partition_index": 0}]} for topic in topics]
    answer = ask(asked, api.OFFSET_DELETE, 0, node=coordinator(asked), group_id="group", topics=named)
    return answer.error_code, [one.error_code for topic in answer.topics for one in topic.partitions]


@pytest.mark.parametrize(
    ("metadata", "of_payments"),
    [
        (struct.pack(">hih6si", 3, 1, 6, b"orders", -1), NONE),
        (struct.pack(">hihi", 0, 1, 9, -1), GROUP_SUBSCRIBED_TO_TOPIC),
        (struct.pack(">hihh", 0, 2, -2, 0), GROUP_SUBSCRIBED_TO_TOPIC),
        (struct.pack(">hih2s", 0, 1, 2, b"\xff\xff"), GROUP_SUBSCRIBED_TO_TOPIC),
        (b"", GROUP_SUBSCRIBED_TO_TOPIC),
        (struct.pack(">hi", 0, -1), GROUP_SUBSCRIBED_TO_TOPIC),
    ],
    ids=["a topic", "a name that breaks off", "a name of no length", "no text", "nothing", "a negative count"],
)
def test_offsets_of_what_a_member_may_consume_are_kept(metadata: bytes, of_payments: int) -> None:
    asked = twin({"orders": [[0]], "payments": [[0]]})
    join(asked, group_instance_id="one", protocols=[{"name": "range", "metadata": metadata}])
    assert forget(asked, "orders", "payments") == (NONE, [GROUP_SUBSCRIBED_TO_TOPIC, of_payments])


def test_deleting_offsets_needs_permissions_on_group_and_topic() -> None:
    reads, deletes = (Allow(ANONYMOUS, one, group=ALL_GROUPS) for one in (Operation.READ, Operation.DELETE))
    reader = twin({"orders": [[0]]}, permissions=Permissions(frozenset({reads})))
    assert forget(reader, "orders") == (GROUP_AUTHORIZATION_FAILED, [])
    deleter = twin({"orders": [[0]]}, permissions=Permissions(frozenset({reads, deletes})))
    join(deleter, group_instance_id="one")
    assert forget(deleter, "orders") == (NONE, [TOPIC_AUTHORIZATION_FAILED])


def test_a_former_member_cannot_take_its_successor_out(asked: Twin) -> None:
    former, latter = join(asked, group_instance_id="one"), join(asked, group_instance_id="one")
    node = coordinator(asked)

    def leave(member_id: str) -> int:
        member = {"member_id": member_id, "group_instance_id": "one"}
        return int(ask(asked, api.LEAVE_GROUP, 5, node=node, group_id="group", members=[member]).members[0].error_code)

    assert [leave(former.member_id), leave(latter.member_id), leave("")] == [
        FENCED_INSTANCE_ID, NONE, UNKNOWN_MEMBER_ID,
    ]  # fmt: skip


def test_assignments_must_name_the_protocol(asked: Twin) -> None:
    joined = join(asked, group_instance_id="one")
    claim = {"group_id": "group", "generation_id": 1, "member_id": joined.member_id, "group_instance_id": "one"}
    fields = {**claim, "protocol_type": None, "protocol_name": None, "assignments": []}
    assert ask(asked, api.SYNC_GROUP, 5, node=coordinator(asked), **fields).error_code == INCONSISTENT_GROUP_PROTOCOL
    assert ask(asked, api.SYNC_GROUP, 4, node=coordinator(asked), **fields).error_code == NONE
