"""Topic znodes: the texts that Kafka 3.9.1 was seen to write, and what older releases wrote."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kreassign.errors import DamagedZnode, InputError
from kreassign.model import OngoingReassignment
from kreassign.model.znodes.contents import TopicZnode, format_topic, parse_topic

MOVING = (
    b'{"partitions":{"0":[2,1,0],"1":[0,1]},"topic_id":"Gd6h8JxiTEGoxrJKWZHfcA",'
    b'"adding_replicas":{"0":[2]},"removing_replicas":{"0":[0]},"version":3}'
)
PARSED = TopicZnode({0: (2, 1, 0), 1: (0, 1)}, {0: (2,)}, {0: (0,)}, "Gd6h8JxiTEGoxrJKWZHfcA")


def test_the_text_of_kafka_is_written_byte_for_byte() -> None:
    assert format_topic(PARSED) == MOVING
    assert parse_topic("a", MOVING) == PARSED


def test_empty_maps_are_written_when_nothing_moves() -> None:
    assert format_topic(TopicZnode({0: (0, 1)}, topic_id="x")) == (
        b'{"partitions":{"0":[0,1]},"topic_id":"x","adding_replicas":{},"removing_replicas":{},"version":3}'
    )


def test_version_1_has_no_moves() -> None:
    assert parse_topic("a", b'{"version":1,"partitions":{"0":[1,2]}}') == TopicZnode({0: (1, 2)})


def test_a_topic_without_an_id_is_written_as_version_2() -> None:
    text = b'{"version":2,"partitions":{"0":[1,2]},"adding_replicas":{"0":[1]},"removing_replicas":{}}'
    assert format_topic(TopicZnode({0: (1, 2)}, {0: (1,)})) == text
    assert parse_topic("a", text) == TopicZnode({0: (1, 2)}, {0: (1,)})


def test_the_camel_case_of_the_design_document_is_read_too() -> None:
    text = b'{"version":2,"partitions":{"0":[4,1]},"addingReplicas":{"0":[4]},"removingReplicas":{"0":[1]}}'
    assert parse_topic("a", text) == TopicZnode({0: (4, 1)}, {0: (4,)}, {0: (1,)})


def test_a_partition_without_replicas_is_never_written() -> None:
    with pytest.raises(InputError, match=r"^partitions \[1, 3\] would have no replicas; nothing was written$"):
        format_topic(TopicZnode({0: (1,), 1: (), 3: ()}))


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"{bad", "it is not JSON: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"),
        (b"[]", "it is not a JSON object"),
        (b'{"partitions":{}}', "it has no 'version'"),
        (b'{"version":"3","partitions":{}}', "'3' is not a whole number"),
        (b'{"version":4,"partitions":{}}', "its version 4 is not one of (1, 2, 3)"),
        (b'{"version":0,"partitions":{}}', "its version 0 is not one of (1, 2, 3)"),
        (b'{"version":2}', "it has no 'partitions'"),
        (b'{"version":2,"partitions":{"x":[1]}}', "{'x': [1]} does not map partitions to replicas"),
        (b'{"version":2,"partitions":{"0":1}}', "1 is not a list of brokers"),
        (b'{"version":2,"partitions":{"0":["1"]}}', "'1' is not a whole number"),
        (b'{"version":2,"partitions":{},"adding_replicas":[]}', "[] does not map partitions to replicas"),
        (b'{"version":2,"partitions":{},"removing_replicas":[]}', "[] does not map partitions to replicas"),
        (b'{"version":3,"partitions":{},"topic_id":5}', "5 is not a text"),
    ],
)
def test_a_damaged_znode_is_named_with_what_is_wrong(content: bytes, reason: str) -> None:
    with pytest.raises(DamagedZnode) as caught:
        parse_topic("orders", content)
    assert caught.value.path == "/brokers/topics/orders"
    advice = "look at it with zookeeper-shell before anything else"
    assert str(caught.value) == f"znode /brokers/topics/orders is damaged: {reason}; {advice}"


def test_of_two_spellings_that_of_kafka_counts_and_empty_lists_are_none() -> None:
    text = (
        b'{"version":2,"partitions":{"0":[4,1]},"adding_replicas":{"0":[4],"1":[]},"addingReplicas":{"0":[5]},'
        b'"removing_replicas":{"0":[]},"removingReplicas":{"0":[1]}}'
    )
    assert parse_topic("a", text) == TopicZnode({0: (4, 1)}, {0: (4,)})


def test_an_id_may_be_null() -> None:
    assert parse_topic("a", b'{"version":3,"partitions":{"0":[1]},"topic_id":null}') == TopicZnode({0: (1,)})


def test_a_partition_that_moves_is_told_from_one_that_rests() -> None:
    assert PARSED.ongoing(0) == OngoingReassignment((2, 1, 0), adding=(2,), removing=(0,))
    assert PARSED.ongoing(1) is None
    growing, shrinking = (TopicZnode({0: (1, 2)}, {0: (2,)}), TopicZnode({0: (1, 2)}, {}, {0: (2,)}))
    assert growing.ongoing(0) == OngoingReassignment((1, 2), adding=(2,), removing=())
    assert shrinking.ongoing(0) == OngoingReassignment((1, 2), adding=(), removing=(2,))


def test_other_lists_for_a_partition_leave_all_others_as_they_are() -> None:
    begun = PARSED.with_partition(1, OngoingReassignment((2, 0, 1), (2,), (1,)))
    assert begun == TopicZnode(
        {0: (2, 1, 0), 1: (2, 0, 1)}, {0: (2,), 1: (2,)}, {0: (0,), 1: (1,)}, "Gd6h8JxiTEGoxrJKWZHfcA"
    )
    assert PARSED.with_partition(0, OngoingReassignment((5, 1), (5,), ())) == TopicZnode(
        {0: (5, 1), 1: (0, 1)}, {0: (5,)}, {}, "Gd6h8JxiTEGoxrJKWZHfcA"
    )


ids = st.integers(0, 2**31 - 1)
lists = st.dictionaries(ids, st.lists(ids, min_size=1, unique=True).map(tuple))


@given(lists, lists, lists, st.none() | st.text(min_size=1))
def test_what_is_written_is_read_back(
    partitions: dict[int, tuple[int, ...]],
    adding: dict[int, tuple[int, ...]],
    removing: dict[int, tuple[int, ...]],
    topic_id: str | None,
) -> None:
    znode = TopicZnode(partitions, adding, removing, topic_id)
    assert parse_topic("a", format_topic(znode)) == znode
