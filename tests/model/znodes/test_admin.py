"""The two orders to the controller: their texts, and what must never be written."""

from __future__ import annotations

import pytest

from kreassign.errors import DamagedZnode, InputError
from kreassign.model import TopicPartition
from kreassign.model.znodes import (
    find_poison,
    format_election,
    format_reassignments,
    parse_election,
    parse_reassignments,
)

B4 = TopicPartition("b4", 0)


def test_the_reassignment_text_is_that_of_kafka() -> None:
    text = b'{"version":1,"partitions":[{"topic":"b4","partition":0,"replicas":[2,1]}]}'
    assert format_reassignments({B4: (2, 1)}) == text
    assert parse_reassignments(text) == {B4: (2, 1)}


def test_of_a_partition_named_twice_the_last_entry_counts() -> None:
    text = (
        b'{"version":1,"partitions":[{"topic":"b4","partition":0,"replicas":[2,1]},'
        b'{"topic":"b4","partition":0,"replicas":[1]}]}'
    )
    assert parse_reassignments(text) == {B4: (1,)}


@pytest.mark.parametrize(
    ("replicas", "reason"),
    [((), "no controller stays in office"), ((1, 1), "names a broker twice"), ((0, -1), "negative broker id")],
)
def test_what_would_poison_a_cluster_is_never_written(replicas: tuple[int, ...], reason: str) -> None:
    with pytest.raises(InputError, match=reason) as caught:
        format_reassignments({TopicPartition("good", 0): (1, 2), B4: replicas})
    assert str(caught.value).startswith("nothing was written to ZooKeeper:")
    assert "good" not in str(caught.value)


def test_what_others_wrote_is_recognised() -> None:
    found = parse_reassignments(b'{"version":1,"partitions":[{"topic":"b4","partition":0,"replicas":[]}]}')
    assert find_poison(found) == ("b4-0: an empty list of replicas, after which no controller stays in office",)


def test_the_election_text_is_that_of_kafka() -> None:
    text = b'{"version":1,"partitions":[{"topic":"foo","partition":0},{"topic":"foo","partition":1}]}'
    wanted = (TopicPartition("foo", 0), TopicPartition("foo", 1))
    assert format_election(wanted) == text
    assert parse_election(text) == wanted


@pytest.mark.parametrize("content", [b"{bad", b'{"partitions":[1]}', b'{"partitions":[{"topic":"a"}]}'])
def test_a_damaged_order_is_named_by_its_path(content: bytes) -> None:
    with pytest.raises(DamagedZnode, match="/admin/reassign_partitions is damaged"):
        parse_reassignments(content)
    with pytest.raises(DamagedZnode, match="/admin/preferred_replica_election is damaged"):
        parse_election(content)
