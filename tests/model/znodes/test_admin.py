"""The two orders to the controller: their texts, and what must never be written."""

from __future__ import annotations

import pytest

from kreassign.errors import DamagedZnode, InputError
from kreassign.model import TopicPartition
from kreassign.model.znodes import contents
from tests.approved import approve

B4 = TopicPartition("b4", 0)


def test_the_reassignment_text_is_that_of_kafka() -> None:
    text = b'{"version":1,"partitions":[{"topic":"b4","partition":0,"replicas":[2,1]}]}'
    assert contents.format_reassignments({B4: (2, 1)}) == text
    assert contents.parse_reassignments(text) == {B4: (2, 1)}


def test_of_a_partition_named_twice_the_last_entry_counts() -> None:
    text = (
        b'{"version":1,"partitions":[{"topic":"b4","partition":0,"replicas":[2,1]},'
        b'{"topic":"b4","partition":0,"replicas":[1]}]}'
    )
    assert contents.parse_reassignments(text) == {B4: (1,)}


def test_the_election_text_is_that_of_kafka() -> None:
    text = b'{"version":1,"partitions":[{"topic":"foo","partition":0},{"topic":"foo","partition":1}]}'
    wanted = (TopicPartition("foo", 0), TopicPartition("foo", 1))
    assert contents.format_election(wanted) == text
    assert contents.parse_election(text) == wanted


def test_a_sentence_for_each_entry_that_would_harm_the_cluster() -> None:
    targets = {
        TopicPartition("a", 0): (), TopicPartition("a", 1): (1, 0), TopicPartition("b", 0): (2, 1, 2),
        TopicPartition("b", 1): (0, -1), TopicPartition("b", 2): (0,), TopicPartition("b", 3): (-1, -1),
    }  # fmt: skip
    with pytest.raises(InputError) as refused:
        contents.format_reassignments(targets)
    approve([refused.value], "nothing-was-written")
    assert str(refused.value).splitlines()[1:] == [f"  - {line}" for line in contents.find_poison(targets)]


def test_orders_name_each_partition_of_an_election_once_in_order() -> None:
    one, two = TopicPartition("b", 1), TopicPartition("a", 2)
    assert list(contents.parse_reassignments(contents.format_reassignments({one: (1,), two: (2,)}))) == [one, two]
    assert contents.parse_election(contents.format_election((one, two, one))) == (one, two)


def test_an_order_without_entries_names_nothing() -> None:
    assert contents.parse_reassignments(b"{}") == {}
    assert contents.parse_election(b"{}") == ()
    assert contents.format_reassignments({}) == contents.format_election(()) == b'{"version":1,"partitions":[]}'


@pytest.mark.parametrize(("entries", "reason"), [
    ("{}", "{} is not a list of objects"),
    ('[{"topic":"a","partition":0},5]', "[{'topic': 'a', 'partition': 0}, 5] is not a list of objects"),
    ('[{"partition":0}]', "it has no 'topic'"),
    ('[{"topic":"a"}]', "it has no 'partition'"),
    ('[{"topic":1,"partition":0}]', "1 is not a text"),
    ('[{"topic":"a","partition":"0"}]', "'0' is not a whole number"),
])  # fmt: skip
def test_what_is_wrong_with_an_entry_is_told_with_the_path(entries: str, reason: str) -> None:
    content = f'{{"partitions":{entries}}}'.encode()
    said = f"is damaged: {reason}; look at it with zookeeper-shell before anything else"
    with pytest.raises(DamagedZnode) as refused:
        contents.parse_election(content)
    assert str(refused.value) == f"znode /admin/preferred_replica_election {said}"
    with pytest.raises(DamagedZnode) as refused:
        contents.parse_reassignments(content)
    assert str(refused.value) == f"znode /admin/reassign_partitions {said}"


@pytest.mark.parametrize(("replicas", "reason"), [
    ("", "it has no 'replicas'"), (',"replicas":1', "1 is not a list of brokers"),
    (',"replicas":["1"]', "'1' is not a whole number"),
])  # fmt: skip
def test_a_reassignment_has_a_list_of_brokers(replicas: str, reason: str) -> None:
    content = f'{{"partitions":[{{"topic":"a","partition":0{replicas}}}]}}'.encode()
    with pytest.raises(DamagedZnode) as refused:
        contents.parse_reassignments(content)
    assert refused.value.path == "/admin/reassign_partitions"
    assert f"is damaged: {reason}; " in str(refused.value)
