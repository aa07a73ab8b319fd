from __future__ import annotations

import pytest

from kreassign.model import TopicPartition
from kreassign.twin.access import ANONYMOUS, Allow, Operation, Permissions
from kreassign.twin.cluster import Twin
from kreassign.twin.version import KAFKA_3_9
from kreassign.wire import api
from kreassign.wire.api import Message
from tests.twin.asking import ask, partition, twin

REQUEST = api.ALTER_PARTITION_REASSIGNMENTS.request


def alter(
    asked: Twin, *topics: tuple[str, dict[int, list[int] | None]], version: int = 1, node: int = 0, **fields: object
) -> Message:
    topic = REQUEST.ReassignableTopic
    entries = [
        topic(
            name=name,
            partitions=[topic.ReassignablePartition(partition_index=n, replicas=r) for n, r in targets.items()],
        )
        for name, targets in topics
    ]
    fields = {"timeout_ms": 1000, **fields}
    return ask(asked, api.ALTER_PARTITION_REASSIGNMENTS, version, node=node, topics=entries, **fields)


def outcomes(response: Message) -> list[tuple[str, int, int, str | None]]:
    return [
        (topic.name, entry.partition_index, entry.error_code, entry.error_message)
        for topic in response.responses
        for entry in topic.partitions
    ]


def test_a_move_starts_takes_its_time_and_ends() -> None:
    asked = twin({"orders": [[0, 1]]})
    response = alter(asked, ("orders", {0: [2, 3]}))
    assert outcomes(response) == [("orders", 0, 0, None)]
    assert (response.error_code, response.error_message) == (0, None)
    assert partition(asked, "orders") == ((2, 3, 0, 1), {0, 1}, 0)
    asked.advance(5_000)
    assert partition(asked, "orders") == ((2, 3), {2, 3}, 2)


def test_good_entries_are_carried_out_beside_bad_ones_and_answered_in_order() -> None:
    asked = twin({"orders": [[0, 1], [1, 2]]})
    response = alter(asked, ("nope", {0: [1]}), ("orders", {1: [2, 9], 0: [0, 2], 7: None}))
    assert outcomes(response) == [
        ("nope", 0, 3, "Unable to find a topic named nope."),
        ("orders", 1, 39, "The manual partition assignment includes broker 9, but no such broker is registered."),
        ("orders", 0, 0, None),
        ("orders", 7, 3, "Unable to find partition orders:7."),
    ]
    assert asked.metadata.reassigning == {TopicPartition("orders", 0)}


def test_cancelling_nothing_carries_no_text() -> None:
    asked = twin({"orders": [[0, 1]]})
    assert outcomes(alter(asked, ("orders", {0: None}))) == [("orders", 0, 85, None)]


@pytest.mark.parametrize("node", [1, 100])
def test_any_node_takes_a_request(node: int) -> None:
    asked = twin({"orders": [[0, 1]]})
    assert outcomes(alter(asked, ("orders", {0: [1, 0]}), node=node)) == [("orders", 0, 0, None)]


def test_a_change_of_the_replication_factor_can_be_forbidden_and_the_answer_repeats_that() -> None:
    asked = twin({"orders": [[0, 1]]})
    response = alter(asked, ("orders", {0: [0]}), allow_replication_factor_change=False)
    assert outcomes(response) == [("orders", 0, 38, "The replication factor is changed from 2 to 1")]
    assert response.allow_replication_factor_change is False
    assert alter(asked, ("orders", {0: [0]})).allow_replication_factor_change is True


def test_version_0_allows_every_change() -> None:
    asked = twin({"orders": [[0, 1]]}, version=KAFKA_3_9)
    assert outcomes(alter(asked, ("orders", {0: [0]}), version=0)) == [("orders", 0, 0, None)]


def test_no_topics_get_an_empty_text_and_a_topic_without_partitions_is_echoed() -> None:
    asked = twin()
    empty = alter(asked)
    assert (empty.error_code, empty.error_message, empty.responses) == (0, "", [])
    echoed = alter(asked, ("nope", {}))
    assert [(topic.name, topic.partitions) for topic in echoed.responses] == [("nope", [])]
    assert echoed.error_message is None


def test_no_time_means_nothing_is_done_and_everything_is_answered_so() -> None:
    asked = twin({"orders": [[0, 1]]})
    response = alter(asked, ("orders", {0: [2, 3], 9: [1]}), timeout_ms=0)
    assert (response.error_code, response.error_message) == (7, None)
    assert outcomes(response) == [("orders", 0, 7, None), ("orders", 9, 7, None)]
    assert not asked.metadata.reassigning


@pytest.mark.parametrize(("topics", "options", "shown"), [
    (("orders",), {}, False),
    ((), {}, True),
    (("orders",), {"timeout_ms": 0}, True),
])  # fmt: skip
def test_only_an_answer_about_single_partitions_repeats_whether_the_factor_may_change(
    topics: tuple[str, ...], options: dict[str, int], shown: bool
) -> None:
    asked = twin({"orders": [[0, 1]]})
    response = alter(
        asked, *((topic, {0: [0, 1]}) for topic in topics), allow_replication_factor_change=False, **options
    )
    assert response.allow_replication_factor_change is shown


def test_who_may_not_is_told_so_on_every_partition() -> None:
    asked = twin({"orders": [[0, 1]]}, permissions=Permissions(frozenset()))
    response = alter(asked, ("orders", {0: [2, 3]}), timeout_ms=0)
    assert response.error_code == 31
    assert response.error_message.startswith("Request Request(processor=0, connectionId=")
    assert response.error_message.endswith(" needs ALTER permission.")
    assert outcomes(response) == [("orders", 0, 31, response.error_message)]
    assert not asked.metadata.reassigning


def test_who_may_alter_the_cluster_may_move() -> None:
    allowed = Permissions(frozenset({Allow(ANONYMOUS, Operation.ALTER)}))
    asked = twin({"orders": [[0, 1]]}, permissions=allowed)
    assert outcomes(alter(asked, ("orders", {0: [2, 3]}))) == [("orders", 0, 0, None)]
