"""Topic znodes: the texts that Kafka 3.9.1 was seen to write, and what older releases wrote."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kreassign.errors import DamagedZnode, InputError
from kreassign.model import OngoingReassignment
from kreassign.model.znodes import TopicZnode, format_topic, parse_topic

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
    with pytest.raises(InputError, match=r"\[1\] would have no replicas; nothing was written"):
        format_topic(TopicZnode({0: (1,), 1: ()}))


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"{bad", "not JSON"),
        (b"[]", "not a JSON object"),
        (b'{"partitions":{}}', "no 'version'"),
        (b'{"version":4,"partitions":{}}', "version 4"),
        (b'{"version":2}', "no 'partitions'"),
        (b'{"version":2,"partitions":{"x":[1]}}', "does not map partitions to replicas"),
        (b'{"version":2,"partitions":{"0":1}}', "not a list of brokers"),
        (b'{"version":2,"partitions":{"0":["1"]}}', "not a whole number"),
    ],
)
def test_a_damaged_znode_is_named_with_what_is_wrong(content: bytes, reason: str) -> None:
    with pytest.raises(DamagedZnode, match=reason) as caught:
        parse_topic("orders", content)
    assert caught.value.path == "/brokers/topics/orders"


def test_a_partition_that_moves_is_told_from_one_that_rests() -> None:
    assert PARSED.ongoing(0) == OngoingReassignment((2, 1, 0), adding=(2,), removing=(0,))
    assert PARSED.ongoing(1) is None


def test_ending_a_move_takes_its_lists_away() -> None:
    done = PARSED.with_partition(0, OngoingReassignment((2, 1), (), ()))
    assert done == TopicZnode({0: (2, 1), 1: (0, 1)}, topic_id="Gd6h8JxiTEGoxrJKWZHfcA")


lists = st.dictionaries(st.integers(0, 2**31), st.lists(st.integers(0, 2**31), min_size=1, unique=True).map(tuple))


@given(lists, lists, lists, st.none() | st.text(min_size=1))
def test_what_is_written_is_read_back(
    partitions: dict[int, tuple[int, ...]],
    adding: dict[int, tuple[int, ...]],
    removing: dict[int, tuple[int, ...]],
    topic_id: str | None,
) -> None:
    znode = TopicZnode(partitions, adding, removing, topic_id)
    assert parse_topic("a", format_topic(znode)) == znode
