"""Groups of the classic protocol, as a lease needs them: one member, found out when it is one no longer."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import pytest

from kreassign.errors import ClusterError, Rejected
from kreassign.model import TopicPartition
from kreassign.model.error_codes import (
    FENCED_INSTANCE_ID,
    GROUP_ID_NOT_FOUND,
    GROUP_SUBSCRIBED_TO_TOPIC,
    ILLEGAL_GENERATION,
    INCONSISTENT_GROUP_PROTOCOL,
    INVALID_SESSION_TIMEOUT,
    MEMBER_ID_REQUIRED,
    NON_EMPTY_GROUP,
    NOT_COORDINATOR,
    OFFSET_METADATA_TOO_LARGE,
    UNKNOWN_MEMBER_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from kreassign.model.requests import CommittedOffset, Group, GroupCandidate, Membership
from kreassign.wire import api
from kreassign.wire.api import Message
from tests.conformance.clusters import NEWEST, Cluster

both_releases = pytest.mark.releases(NEWEST, "3.9")
OFFSETS_TOPIC = "__consumer_offsets"
SESSION_MS = 1_800_000
SHORT_SESSION_MS = 6_000
"""The shortest that brokers take by default."""


@pytest.fixture(autouse=True)
def no_group_is_left(cluster: Cluster) -> Iterator[None]:
    """The group of the test is deleted after it, with whoever is in it."""
    yield
    for member in found(cluster).members:
        leaving = {"member_id": member.member_id, "group_instance_id": member.instance_id}
        cluster.ask(api.LEAVE_GROUP, node=coordinator(cluster), group_id=cluster.topic, members=[leaving])
    cluster.ask(
        api.DELETE_GROUPS, cluster.newest(api.DELETE_GROUPS), node=coordinator(cluster), groups_names=[cluster.topic]
    )


def candidate(cluster: Cluster, name: str, *, session_ms: int = SESSION_MS) -> GroupCandidate:
    """Member that joins the test's group and speaks no protocol but its own name."""
    return GroupCandidate(cluster.topic, name, "kreassign", name, f"who is {name}".encode(), session_ms)


def join(cluster: Cluster, name: str, **settings: int) -> Membership:
    return cluster.client.join_group(candidate(cluster, name, **settings))


def found(cluster: Cluster) -> Group:
    return cluster.client.describe_group(cluster.topic)


def coordinator(cluster: Cluster) -> int:
    """The broker that coordinates the test's group, once all brokers know it."""
    named: set[int] = set()

    def is_known() -> bool:
        answers = [find(cluster, node=node).coordinators[0] for node in cluster.brokers]
        named.clear()
        named.update(answer.node_id for answer in answers)
        return not any(answer.error_code for answer in answers)

    cluster.until(is_known, "a coordinator that all brokers know")
    (chosen,) = named
    return int(chosen)


def find(cluster: Cluster, key_type: int = 0, node: int = 0) -> Message:
    version = cluster.newest(api.FIND_COORDINATOR)
    return cluster.ask(api.FIND_COORDINATOR, version, node=node, key_type=key_type, coordinator_keys=[cluster.topic])


def refusal_of(error: ClusterError | None) -> int | None:
    return error.code if isinstance(error, Rejected) else None


def refused(cluster: Cluster, membership: Membership) -> int | None:
    """The code with which a heartbeat is refused; None if it is not."""
    try:
        cluster.client.heartbeat(membership)
    except Rejected as error:
        return error.code
    return None


def commit(cluster: Cluster, membership: Membership, *texts: str) -> list[int | None]:
    """Commit texts beside the first offsets of the group's own topic; a code each."""
    offsets = {
        TopicPartition(OFFSETS_TOPIC, number): CommittedOffset(number, text) for number, text in enumerate(texts)
    }
    outcome = cluster.client.commit_offsets(membership, offsets)
    return [refusal_of(outcome.failed.get(key)) for key in offsets]


def fetched(cluster: Cluster, *numbers: int) -> list[tuple[int, str]]:
    keys = [TopicPartition(OFFSETS_TOPIC, number) for number in numbers]
    answer = cluster.client.fetch_offsets(cluster.topic, keys).raise_if_any()
    return [(answer[key].offset, answer[key].metadata) for key in keys]


# Looking for a coordinator


@both_releases
def test_every_broker_names_the_same_coordinator(cluster: Cluster) -> None:
    chosen = coordinator(cluster)
    answers = [find(cluster, node=node).coordinators[0] for node in cluster.brokers]
    assert {(one.node_id, one.error_code, one.error_message) for one in answers} == {
        (chosen, 0, answers[0].error_message)
    }
    address = cluster.backend.nodes[chosen]
    assert {(one.host, one.port) for one in answers} == {(address.host, address.port)}


@both_releases
def test_the_first_search_creates_the_topic_in_which_groups_are_kept(cluster: Cluster) -> None:
    coordinator(cluster)
    assert cluster.client.describe_topics([OFFSETS_TOPIC])[OFFSETS_TOPIC].is_internal


@both_releases
def test_an_unknown_type_of_coordinator_is_an_invalid_request(cluster: Cluster) -> None:
    (answer,) = find(cluster, key_type=9).coordinators
    assert (answer.error_code, answer.node_id, answer.host, answer.port) == (42, -1, "", -1)


@both_releases
def test_a_broker_that_is_not_the_coordinator_says_so(cluster: Cluster) -> None:
    other = next(node for node in cluster.brokers if node != coordinator(cluster))
    fields = {"group_id": cluster.topic, "generation_id": 1, "member_id": "x", "group_instance_id": None}
    assert cluster.ask(api.HEARTBEAT, node=other, **fields).error_code == NOT_COORDINATOR
    version = cluster.newest(api.DESCRIBE_GROUPS)
    (group,) = cluster.ask(api.DESCRIBE_GROUPS, version, node=other, groups=[cluster.topic]).groups
    assert (group.error_code, group.group_state, group.members) == (NOT_COORDINATOR, "", [])


# A group that does not exist


@both_releases
def test_a_group_that_does_not_exist_is_dead(cluster: Cluster) -> None:
    chosen = coordinator(cluster)
    assert found(cluster) == Group(cluster.topic, "Dead", "", "")
    version = cluster.newest(api.DESCRIBE_GROUPS)
    (group,) = cluster.ask(api.DESCRIBE_GROUPS, version, node=chosen, groups=[cluster.topic]).groups
    expected = (GROUP_ID_NOT_FOUND, f"Group {cluster.topic} not found.") if version == 6 else (0, None)
    assert (group.error_code, group.error_message or None) == expected
    assert (group.group_state, group.protocol_type, group.protocol_data, group.members) == ("Dead", "", "", [])


@both_releases
def test_a_group_that_does_not_exist_has_no_offsets_and_cannot_be_deleted(cluster: Cluster) -> None:
    chosen = coordinator(cluster)
    assert fetched(cluster, 0, 1) == [(-1, ""), (-1, "")]
    (answer,) = cluster.ask(
        api.DELETE_GROUPS, cluster.newest(api.DELETE_GROUPS), node=chosen, groups_names=[cluster.topic]
    ).results
    assert (answer.group_id, answer.error_code) == (cluster.topic, GROUP_ID_NOT_FOUND)
    assert refused(cluster, Membership(cluster.topic, "a", "nobody", 1)) == UNKNOWN_MEMBER_ID


# One member


@both_releases
def test_a_member_is_shown_with_who_it_says_that_it_is(cluster: Cluster) -> None:
    joined = join(cluster, "first")
    assert (joined.generation, joined.instance_id) == (1, "first")
    assert joined.member_id.startswith("first-")
    group = found(cluster)
    assert (group.state, group.protocol_type, group.protocol) == ("Stable", "kreassign", "first")
    (member,) = group.members
    assert (member.member_id, member.instance_id, member.metadata) == (joined.member_id, "first", b"who is first")
    assert refused(cluster, joined) is None
    version = cluster.newest(api.LIST_GROUPS)
    listed = cluster.ask(api.LIST_GROUPS, version, node=coordinator(cluster), states_filter=[], types_filter=[]).groups
    (mine,) = (one for one in listed if one.group_id == cluster.topic)
    assert (mine.protocol_type, mine.group_state, mine.group_type) == ("kreassign", "Stable", "classic")


@both_releases
def test_a_member_without_a_common_protocol_is_refused_at_once(cluster: Cluster) -> None:
    joined = join(cluster, "first")
    with pytest.raises(Rejected) as refusal:
        join(cluster, "second")
    assert refusal.value.code == INCONSISTENT_GROUP_PROTOCOL
    assert refused(cluster, joined) is None
    assert [one.member_id for one in found(cluster).members] == [joined.member_id]


@both_releases
def test_the_next_one_gets_in_once_the_first_has_left(cluster: Cluster) -> None:
    first = join(cluster, "first")
    cluster.client.leave_group(cluster.topic, "first", member_id=first.member_id)
    assert found(cluster).state == "Empty"
    second = join(cluster, "second")
    assert second.generation == first.generation + 2
    assert refused(cluster, first) == UNKNOWN_MEMBER_ID


@both_releases
def test_the_next_one_gets_in_once_the_session_of_the_first_is_over(cluster: Cluster) -> None:
    first = join(cluster, "first", session_ms=SHORT_SESSION_MS)
    cluster.backend.pass_time(SHORT_SESSION_MS / 1000)
    cluster.until(lambda: not found(cluster).members, "the session over")
    second = join(cluster, "second")
    assert (second.generation, refused(cluster, first)) == (first.generation + 2, UNKNOWN_MEMBER_ID)


@both_releases
def test_who_joins_again_under_its_instance_id_fences_its_former_self(cluster: Cluster) -> None:
    former = join(cluster, "first")
    latter = join(cluster, "first")
    assert former.member_id != latter.member_id
    assert (former.generation, latter.generation) == (1, 1)
    assert refused(cluster, former) == FENCED_INSTANCE_ID
    assert refused(cluster, latter) is None
    assert [one.member_id for one in found(cluster).members] == [latter.member_id]
    with pytest.raises(Rejected) as refusal:
        cluster.client.leave_group(cluster.topic, "first", member_id=former.member_id)
    assert refusal.value.code == FENCED_INSTANCE_ID
    cluster.client.leave_group(cluster.topic, "first", member_id=latter.member_id)


@both_releases
def test_another_generation_is_illegal(cluster: Cluster) -> None:
    joined = join(cluster, "first")
    another = Membership(cluster.topic, "first", joined.member_id, joined.generation + 1)
    assert refused(cluster, another) == ILLEGAL_GENERATION
    assert commit(cluster, another, "text") == [ILLEGAL_GENERATION]


@both_releases
def test_a_session_must_be_neither_too_short_nor_too_long(cluster: Cluster) -> None:
    for session_ms in (5_999, 1_800_001):
        with pytest.raises(Rejected) as refusal:
            join(cluster, "first", session_ms=session_ms)
        assert refusal.value.code == INVALID_SESSION_TIMEOUT


@both_releases
def test_who_has_no_instance_id_is_given_a_member_id_first(cluster: Cluster) -> None:
    chosen = coordinator(cluster)
    protocol = {"name": "range", "metadata": b""}
    fields = {
        "group_id": cluster.topic,
        "session_timeout_ms": SESSION_MS,
        "rebalance_timeout_ms": SESSION_MS,
        "group_instance_id": None,
        "protocol_type": "consumer",
        "protocols": [protocol],
    }
    promised = cluster.ask(api.JOIN_GROUP, 9, node=chosen, member_id="", **fields)
    assert (promised.error_code, promised.generation_id) == (MEMBER_ID_REQUIRED, -1)
    assert (promised.protocol_type, promised.protocol_name, promised.leader) == (None, None, "")
    assert promised.member_id.startswith("conformance-")
    joined = cluster.ask(api.JOIN_GROUP, 9, node=chosen, member_id=promised.member_id, **fields)
    assert (joined.error_code, joined.generation_id, joined.protocol_name) == (0, 1, "range")
    assert (joined.leader, [one.member_id for one in joined.members]) == (promised.member_id, [promised.member_id])
    left = {"member_id": promised.member_id, "group_instance_id": None}
    answer = cluster.ask(api.LEAVE_GROUP, node=chosen, group_id=cluster.topic, members=[left])
    assert (answer.error_code, [one.error_code for one in answer.members]) == (0, [0])


# Offsets


@both_releases
def test_a_member_keeps_texts_beside_offsets_and_they_outlive_it(cluster: Cluster) -> None:
    joined = join(cluster, "first")
    assert commit(cluster, joined, "a" * 4_096, "") == [None, None]
    cluster.client.leave_group(cluster.topic, "first")
    assert fetched(cluster, 0, 1, 2) == [(0, "a" * 4_096), (1, ""), (-1, "")]
    second = join(cluster, "second")
    assert commit(cluster, joined, "late") == [UNKNOWN_MEMBER_ID]
    assert commit(cluster, second, "mine") == [None]
    assert fetched(cluster, 0, 1) == [(0, "mine"), (1, "")]


@both_releases
def test_a_text_that_is_too_long_is_refused_alone(cluster: Cluster) -> None:
    joined = join(cluster, "first")
    assert commit(cluster, joined, "fine", "a" * 4_097) == [None, OFFSET_METADATA_TOO_LARGE]
    assert fetched(cluster, 0, 1) == [(0, "fine"), (-1, "")]


@both_releases
def test_offsets_of_a_topic_that_does_not_exist_are_refused(cluster: Cluster) -> None:
    joined = join(cluster, "first")
    key = TopicPartition("nope", 0)
    outcome = cluster.client.commit_offsets(joined, {key: CommittedOffset(0, "text")})
    assert refusal_of(outcome.failed[key]) == UNKNOWN_TOPIC_OR_PARTITION


@both_releases
def test_a_group_is_deleted_with_its_offsets_once_it_is_empty(cluster: Cluster) -> None:
    chosen, joined = coordinator(cluster), join(cluster, "first")
    assert commit(cluster, joined, "text") == [None]
    (answer,) = cluster.ask(
        api.DELETE_GROUPS, cluster.newest(api.DELETE_GROUPS), node=chosen, groups_names=[cluster.topic]
    ).results
    assert answer.error_code == NON_EMPTY_GROUP
    cluster.client.leave_group(cluster.topic, "first")
    (answer,) = cluster.ask(
        api.DELETE_GROUPS, cluster.newest(api.DELETE_GROUPS), node=chosen, groups_names=[cluster.topic]
    ).results
    assert answer.error_code == 0
    assert (found(cluster).state, fetched(cluster, 0)) == ("Dead", [(-1, "")])


def forget(cluster: Cluster, *numbers: int, topic: str = OFFSETS_TOPIC) -> tuple[int, dict[int, int]]:
    """Delete offsets of the test's group; the code at the top, and those of the partitions."""
    wanted = [{"name": topic, "partitions": [{"partition_index": number} for number in numbers]}]
    answer = cluster.ask(api.OFFSET_DELETE, node=coordinator(cluster), group_id=cluster.topic, topics=wanted)
    return answer.error_code, {one.partition_index: one.error_code for each in answer.topics for one in each.partitions}


@both_releases
def test_offsets_of_single_partitions_are_deleted_once_a_group_is_empty(cluster: Cluster) -> None:
    assert forget(cluster, 0) == (GROUP_ID_NOT_FOUND, {})
    joined = join(cluster, "first")
    assert commit(cluster, joined, "one", "two") == [None, None]
    assert forget(cluster, 0) == (NON_EMPTY_GROUP, {})
    cluster.client.leave_group(cluster.topic, "first")
    assert forget(cluster, 0, 2, 99) == (0, {0: 0, 2: 0, 99: UNKNOWN_TOPIC_OR_PARTITION})
    assert fetched(cluster, 0, 1) == [(-1, ""), (1, "two")]


@both_releases
def test_offsets_of_topics_that_a_consumer_reads_are_not_deleted(cluster: Cluster) -> None:
    cluster.create((0,))
    name = OFFSETS_TOPIC.encode()
    subscription = struct.pack(f">hih{len(name)}si", 0, 1, len(name), name, -1)
    joined = cluster.ask(
        api.JOIN_GROUP, node=coordinator(cluster), group_id=cluster.topic, session_timeout_ms=SESSION_MS,
        rebalance_timeout_ms=SESSION_MS, member_id="", group_instance_id="first", protocol_type="consumer",
        protocols=[{"name": "range", "metadata": subscription}],
    )  # fmt: skip
    assert joined.error_code == 0
    assert forget(cluster, 0) == (0, {0: GROUP_SUBSCRIBED_TO_TOPIC})
    assert forget(cluster, 0, topic=cluster.topic) == (0, {0: 0})


# The coordinator moves


def test_members_and_texts_survive_the_move_of_their_coordinator(cluster: Cluster) -> None:
    joined = join(cluster, "first")
    assert commit(cluster, joined, "kept") == [None]
    former = coordinator(cluster)
    cluster.backend.stop(former)
    try:
        cluster.until(lambda: coordinator_seen_by_others(cluster, former) not in (-1, former), "another coordinator")
        assert refused(cluster, joined) is None
        assert fetched(cluster, 0) == [(0, "kept")]
    finally:
        cluster.backend.start(former)
        cluster.until(lambda: former in cluster.client.describe_cluster().broker_ids, f"broker {former} back")


def coordinator_seen_by_others(cluster: Cluster, former: int) -> int:
    (answer,) = find(cluster, node=next(node for node in cluster.brokers if node != former)).coordinators
    return int(answer.node_id)
