from __future__ import annotations

import pytest

from kreassign.twin.access import ANONYMOUS, Allow, Operation, Permissions
from kreassign.twin.cluster import Twin
from kreassign.wire import api
from kreassign.wire.api import Message
from tests.twin.asking import ask, twin

REQUEST = api.DESCRIBE_TOPIC_PARTITIONS.request
TOPICS = {"c": [[0], [1]], "a": [[0], [1], [2]], "b": [[3]]}
Page = tuple[dict[str, list[int]], tuple[str, int] | None]


def page(asked: Twin, names: tuple[str, ...] = (), *, limit: int = 2000, cursor: tuple[str, int] | None = None) -> Page:
    """Partition numbers per topic in the order told, and the next cursor."""
    response = describe(asked, names, limit=limit, cursor=cursor)
    following = response.next_cursor
    return (
        {topic.name: [one.partition_index for one in topic.partitions] for topic in response.topics},
        (following.topic_name, following.partition_index) if following else None,
    )


def describe(
    asked: Twin, names: tuple[str, ...] = (), *, limit: int = 2000, cursor: tuple[str, int] | None = None
) -> Message:
    return ask(
        asked,
        api.DESCRIBE_TOPIC_PARTITIONS,
        0,
        topics=[REQUEST.TopicRequest(name=name) for name in names],
        response_partition_limit=limit,
        cursor=REQUEST.Cursor(topic_name=cursor[0], partition_index=cursor[1]) if cursor else None,
    )


def test_topics_are_sorted_and_no_names_mean_all() -> None:
    assert page(twin(TOPICS)) == ({"a": [0, 1, 2], "b": [0], "c": [0, 1]}, None)
    assert page(twin(TOPICS), ("c", "b", "c")) == ({"b": [0], "c": [0, 1]}, None)


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 5])
def test_pages_together_are_everything(limit: int) -> None:
    asked, cursor, found, pages = twin(TOPICS), None, [], 0
    while pages == 0 or cursor is not None:
        topics, cursor = page(asked, limit=limit, cursor=cursor)
        assert sum(map(len, topics.values())) <= limit
        found += [(name, number) for name, numbers in topics.items() for number in numbers]
        pages += 1
    assert found == [("a", 0), ("a", 1), ("a", 2), ("b", 0), ("c", 0), ("c", 1)]


@pytest.mark.parametrize("limit", [0, -1, 1])
def test_a_page_has_at_least_one_partition(limit: int) -> None:
    assert page(twin(TOPICS), limit=limit) == ({"a": [0]}, ("a", 1))


def test_a_cursor_skips_what_sorts_before_it() -> None:
    assert page(twin(TOPICS), ("a", "b", "c"), cursor=("b", 0)) == ({"b": [0], "c": [0, 1]}, None)
    assert page(twin(TOPICS), ("a", "c"), cursor=("a", 9)) == ({"a": [], "c": [0, 1]}, None)


@pytest.mark.parametrize("cursor", [("b", 0), ("a", -1)])
def test_a_cursor_that_cannot_be_is_refused_on_every_topic(cursor: tuple[str, int]) -> None:
    response = describe(twin(TOPICS), ("a", "c"), cursor=cursor)
    assert [(topic.name, topic.error_code) for topic in response.topics] == [("a", 42), ("c", 42)]


def test_what_is_not_there_is_unknown_also_as_a_cursor() -> None:
    response = describe(twin(TOPICS), ("b", "nope"), cursor=("nope", 0))
    assert [(topic.name, topic.error_code) for topic in response.topics] == [("nope", 3)]


def test_a_partition_that_nobody_leads_has_no_error_and_names_who_may() -> None:
    asked = twin({"orders": [[0, 1]]})
    asked.crash(1)
    asked.advance(20_000)
    asked.stop(0)
    (partition,) = describe(asked).topics[0].partitions
    assert (partition.error_code, partition.leader_id, partition.isr_nodes) == (0, -1, [])
    assert (partition.eligible_leader_replicas, partition.last_known_elr) == ([0], [0])
    assert partition.offline_replicas == [0, 1]


def test_topics_that_a_client_may_not_see_are_left_out_or_refused_last() -> None:
    asked = twin(TOPICS, permissions=Permissions(frozenset({Allow(ANONYMOUS, Operation.DESCRIBE, "b")})))
    assert page(asked) == ({"b": [0]}, None)
    response = describe(asked, ("a", "b"))
    assert [(topic.name, topic.error_code) for topic in response.topics] == [("b", 0), ("a", 29)]
