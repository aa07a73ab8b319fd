"""Moves from their start to their end, and what a request for moves is refused for, while all brokers are up."""

from __future__ import annotations

import pytest

from kreassign.model import TopicPartition
from kreassign.wire import api
from kreassign.wire.api import Message
from tests.conformance.clusters import CONTROLLER, HELD_BYTES, NEWEST, Answered, Cluster, Move

both_releases = pytest.mark.releases(NEWEST, "3.9")
Fields = dict[str, object]
DONE = Answered(0, None)
IDLE = Answered(85, None)
LISTS_ARE_BAD = "The manual partition assignment includes"
SIZE_BYTES = 4_000_000


def topic_entry(topic: str, *targets: tuple[int, tuple[int, ...] | None]) -> Fields:
    """One topic entry of a request."""
    entries = [{"partition_index": number, "replicas": target} for number, target in targets]
    return {"name": topic, "partitions": entries}


def alter(cluster: Cluster, *entries: Fields, timeout_ms: int = 30_000, version: int = 1, node: int = 0) -> Message:
    """The whole answer."""
    return cluster.ask(
        api.ALTER_PARTITION_REASSIGNMENTS, version, node=node, topics=list(entries), timeout_ms=timeout_ms
    )


def outcomes(answer: Message) -> list[tuple[str, list[tuple[int, Answered]]]]:
    """Topics and partitions in the order of the answer."""
    return [
        (topic.name, [(one.partition_index, Answered(one.error_code, one.error_message)) for one in topic.partitions])
        for topic in answer.responses
    ]


# To the end


@both_releases
@pytest.mark.parametrize(("before", "target", "epoch"), [
    ((0,), (1,), 1),
    ((0, 1), (1, 2), 1),
    ((0, 1), (2, 0), 1),
    ((0,), (0, 1, 2), 0),
    ((0,), (2, 1, 0), 0),
    ((0, 1, 2), (0, 1), 1),
    ((0, 1, 2), (2, 1), 1),
    ((0, 1, 2), (2,), 1),
])  # fmt: skip
def test_a_move_ends_with_exactly_its_target(
    cluster: Cluster, before: tuple[int, ...], target: tuple[int, ...], epoch: int
) -> None:
    partition = cluster.create_one(*before)
    cluster.move(partition, *target)
    cluster.ends(partition)
    leader = before[0] if before[0] in target else target[0]
    cluster.becomes(partition, target, set(target), leader, epoch=epoch)


@both_releases
def test_what_has_bytes_moves_like_what_has_none(cluster: Cluster) -> None:
    partition = cluster.create_one(0, 1)
    cluster.backend.write(partition, SIZE_BYTES)
    cluster.move(partition, 2, 1)
    cluster.ends(partition)
    cluster.becomes(partition, (2, 1), {1, 2}, 2)
    assert cluster.client.list_offsets([partition])[partition] > 0


def test_moves_of_all_brokers_at_once_end(cluster: Cluster) -> None:
    partitions = cluster.create((0, 1), (1, 2), (2, 3), (3, 0))
    targets = dict(zip(partitions, [(2, 3), (3, 0), (0, 1), (1, 2)], strict=True))
    assert set(cluster.alter(targets).values()) == {DONE}
    for partition, target in targets.items():
        cluster.ends(partition)
        cluster.becomes(partition, target, set(target), target[0])


@both_releases
@pytest.mark.parametrize(("target", "leader", "epoch"), [((2, 0, 1), 0, 0), ((1, 2), 1, 1), ((0, 1, 2), 0, 0)],
                         ids=["another order", "fewer replicas", "the list as it is"])  # fmt: skip
def test_a_target_in_sync_already_holds_at_once(
    cluster: Cluster, target: tuple[int, ...], leader: int, epoch: int
) -> None:
    partition = cluster.create_one(0, 1, 2)
    cluster.move(partition, *target)
    assert cluster.listed(partition) is None
    assert cluster.cancel(partition) == IDLE
    cluster.becomes(partition, target, set(target), leader, epoch=epoch)


def test_a_least_isr_does_not_hold_a_removal_up(cluster: Cluster) -> None:
    partition = cluster.create_one(0, 1, 2, min_insync_replicas="2")
    cluster.move(partition, 0)
    assert cluster.listed(partition) is None
    cluster.becomes(partition, (0,), {0}, 0)


def test_the_leader_stays_after_a_move_until_an_election(
    cluster: Cluster,
) -> None:
    partition = cluster.create_one(0, 1)
    cluster.move(partition, 2, 0)
    cluster.ends(partition)
    cluster.becomes(partition, (2, 0), {0, 2}, 0)
    cluster.client.elect_leaders([partition]).raise_if_any()
    cluster.becomes(partition, (2, 0), {0, 2}, 2)


def test_a_throttle_holds_a_move_open_and_its_end_lets_it_go(cluster: Cluster) -> None:
    partition = cluster.create_one(0)
    cluster.backend.write(partition, HELD_BYTES)
    with cluster.throttled():
        cluster.move(partition, 1)
        assert cluster.listed(partition) == Move((1, 0), (1,), (0,))
        cluster.becomes(partition, (1, 0), {0}, 0)
    cluster.ends(partition)
    cluster.becomes(partition, (1,), {1}, 1)


def test_a_held_move_gives_way_to_another_and_ends_there(cluster: Cluster) -> None:
    partition = cluster.create_one(0)
    cluster.backend.write(partition, HELD_BYTES)
    with cluster.throttled():
        cluster.move(partition, 1)
        cluster.move(partition, 2)
        assert cluster.listed(partition) == Move((2, 0, 1), (2,), (0, 1))
    cluster.ends(partition)
    cluster.becomes(partition, (2,), {2}, 2)


# Refusals


@pytest.mark.parametrize(("number", "target", "code", "text"), [
    (77, (0, 1), 3, "Unable to find partition {topic}:77."),
    (-1, (0, 1), 3, "Unable to find partition {topic}:-1."),
    (77, (), 3, "Unable to find partition {topic}:77."),
    (77, None, 3, "Unable to find partition {topic}:77."),
    (0, (), 39, f"{LISTS_ARE_BAD} an empty replica list."),
    (0, (9, 8, 1), 39, f"{LISTS_ARE_BAD} broker 8, but no such broker is registered."),
    (0, (0, -1, 1), 39, f"{LISTS_ARE_BAD} broker -1, but no such broker is registered."),
    (0, (9, 1, 1), 39, f"{LISTS_ARE_BAD} the broker 1 more than once."),
    (0, (9, 9, 1), 39, f"{LISTS_ARE_BAD} broker 9, but no such broker is registered."),
    (0, (5, 5, -3), 39, f"{LISTS_ARE_BAD} broker -3, but no such broker is registered."),
    (0, (100,), 39, f"{LISTS_ARE_BAD} broker 100, but no such broker is registered."),
])  # fmt: skip
def test_a_target_that_cannot_be_is_refused(
    cluster: Cluster, number: int, target: tuple[int, ...] | None, code: int, text: str
) -> None:
    cluster.create((0, 1))
    answer = alter(cluster, topic_entry(cluster.topic, (number, target)))
    assert outcomes(answer) == [(cluster.topic, [(number, (code, text.replace("{topic}", cluster.topic)))])]


@pytest.mark.parametrize(("name", "target"), [("nope", (0,)), ("nope", None), ("nope", ()), ("", (0,))])
def test_an_unknown_topic_is_refused_before_anything_else(
    cluster: Cluster, name: str, target: tuple[int, ...] | None
) -> None:
    assert outcomes(alter(cluster, topic_entry(name, (0, target)))) == [
        (name, [(0, Answered(3, f"Unable to find a topic named {name}."))])
    ]


@both_releases
def test_what_is_idle_cannot_be_cancelled_and_no_words_are_lost_on_it(cluster: Cluster) -> None:
    partition = cluster.create_one(0, 1)
    for node in (0, 1, CONTROLLER):
        assert cluster.alter({partition: None}, node=node) == {partition: IDLE}


def test_every_entry_has_an_outcome_of_its_own_in_the_order_of_the_request(cluster: Cluster) -> None:
    cluster.create((0, 1), (0, 1), (0, 1))
    answer = alter(
        cluster,
        topic_entry("nope", (0, (0,))),
        topic_entry(cluster.topic, (2, (1, 0)), (77, (0,)), (0, None), (1, (9,))),
        topic_entry("empty-and-unknown"),
    )
    assert outcomes(answer) == [
        ("nope", [(0, (3, "Unable to find a topic named nope."))]),
        (
            cluster.topic,
            [
                (2, DONE),
                (77, (3, f"Unable to find partition {cluster.topic}:77.")),
                (0, IDLE),
                (1, (39, f"{LISTS_ARE_BAD} broker 9, but no such broker is registered.")),
            ],
        ),
        ("empty-and-unknown", []),
    ]
    assert (answer.error_code, answer.error_message) == (0, None)


@both_releases
def test_a_request_without_topics_is_answered_with_an_empty_text(cluster: Cluster) -> None:
    answer = alter(cluster, version=cluster.newest(api.ALTER_PARTITION_REASSIGNMENTS))
    assert (answer.error_code, answer.error_message, answer.responses) == (0, "", [])


@both_releases
@pytest.mark.parametrize("timeout_ms", [0, -1, -(2**31)])
def test_a_request_without_time_does_nothing(cluster: Cluster, timeout_ms: int) -> None:
    cluster.create((0, 1))
    entries = (topic_entry(cluster.topic, (0, (1, 0)), (77, (0,))), topic_entry("nope"))
    answer = alter(cluster, *entries, timeout_ms=timeout_ms, version=cluster.newest(api.ALTER_PARTITION_REASSIGNMENTS))
    assert (answer.error_code, answer.error_message, answer.allow_replication_factor_change) == (7, None, True)
    assert outcomes(answer) == [(cluster.topic, [(0, (7, None)), (77, (7, None))]), ("nope", [])]
    cluster.becomes(TopicPartition(cluster.topic, 0), (0, 1), {0, 1}, 0)


def test_any_node_takes_the_request(cluster: Cluster) -> None:
    partition = cluster.create_one(0, 1)
    for node, target in ((1, (1, 0)), (3, (0, 1)), (CONTROLLER, (1, 0))):
        assert cluster.alter({partition: target}, node=node) == {partition: DONE}
        cluster.becomes(partition, target, {0, 1}, 0)


@pytest.mark.parametrize(("target", "outcome"), [
    ((1, 2, 3), DONE),
    ((2, 1, 0), DONE),
    ((0, 1), Answered(38, "The replication factor is changed from 3 to 2")),
    ((0, 1, 2, 3), Answered(38, "The replication factor is changed from 3 to 4")),
    ((0, 9), Answered(39, f"{LISTS_ARE_BAD} broker 9, but no such broker is registered.")),
    ((), Answered(39, f"{LISTS_ARE_BAD} an empty replica list.")),
    (None, IDLE),
])  # fmt: skip
def test_a_change_of_the_replication_factor_can_be_forbidden(
    cluster: Cluster, target: tuple[int, ...] | None, outcome: Answered
) -> None:
    partition = cluster.create_one(0, 1, 2)
    assert cluster.alter({partition: target}, may_change_factor=False) == {partition: outcome}


@pytest.mark.parametrize("flag", [True, False])
def test_the_answer_repeats_whether_the_factor_may_change(cluster: Cluster, flag: bool) -> None:
    for topics, shown in (([topic_entry("nope")], flag), ([], True)):
        answer = cluster.ask(
            api.ALTER_PARTITION_REASSIGNMENTS, 1, topics=topics, timeout_ms=5_000, allow_replication_factor_change=flag
        )
        assert answer.allow_replication_factor_change is shown


def test_version_0_may_change_the_factor(cluster: Cluster) -> None:
    partition = cluster.create_one(0, 1)
    assert cluster.alter({partition: (0,)}, version=0) == {partition: DONE}


def test_of_two_entries_about_a_partition_the_later_prevails(cluster: Cluster) -> None:
    partition = cluster.create_one(0, 1, 2)
    answer = alter(cluster, topic_entry(cluster.topic, (0, (1, 0, 2))), topic_entry(cluster.topic, (0, (2, 1, 0))))
    assert outcomes(answer) == [(cluster.topic, [(0, DONE)]), (cluster.topic, [(0, DONE)])]
    cluster.becomes(partition, (2, 1, 0), {0, 1, 2}, 0)


# Listing


@both_releases
@pytest.mark.parametrize("timeout_ms", [5_000, 0, -1])
def test_idle_and_unknown_partitions_are_not_listed(cluster: Cluster, timeout_ms: int) -> None:
    cluster.create((0, 1))
    asked = [{"name": cluster.topic, "partition_indexes": [0, 7, -1]}, {"name": "nope", "partition_indexes": [0]}]
    for node in (0, CONTROLLER):
        for topics in (asked, []):
            answer = cluster.ask(api.LIST_PARTITION_REASSIGNMENTS, node=node, topics=topics, timeout_ms=timeout_ms)
            assert (answer.error_code, answer.error_message, answer.topics) == (0, None, [])
