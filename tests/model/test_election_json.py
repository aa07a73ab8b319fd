"""The file of a leader election."""

import pytest

from kreassign.errors import MalformedPlan
from kreassign.model import TopicPartition
from kreassign.model.plan import duplicates, parse_election

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)


def read(text: str) -> tuple[TopicPartition, ...]:
    return parse_election(text, missing="no partitions", empty="no json")


def test_partitions_keep_their_order_and_what_else_is_there_is_ignored() -> None:
    entries = '[{"topic": "b", "partition": 0, "x": 1}, {"topic": "a", "partition": 1}]'
    assert read(f'{{"version": 7, "partitions": {entries}}} and more') == (B0, A1)
    assert read('{"partitions": []}') == ()


@pytest.mark.parametrize(
    ("text", "said"),
    [("", "no json"), ("{", "no json"), ("{}", "no partitions"), (" ", "Expected JSON object, received ")],
)
def test_what_is_no_election_is_said_in_the_words_of_the_tool(text: str, said: str) -> None:
    with pytest.raises(MalformedPlan) as refused:
        read(text)
    assert str(refused.value) == said


def test_a_number_is_called_as_the_tool_calls_it() -> None:
    with pytest.raises(MalformedPlan, match='Expected `Int` value, received "0"'):
        parse_election('{"partitions": [{"topic": "a", "partition": "0"}]}', integer_name="Int", missing="", empty="")


@pytest.mark.parametrize(("entry", "said"), [
    ('{"topic": "a", "partition": "0"}', 'Expected `Integer` value, received "0"'),
    ('{"topic": 1, "partition": 0}', "Expected `String` value, received 1"),
    ('{"partition": 0}', "No such field exists: `topic`"),
    ('{"topic": "a"}', "No such field exists: `partition`"),
    ("1", "Expected JSON object, received 1"),
])  # fmt: skip
def test_an_entry_without_topic_and_partition_is_refused(entry: str, said: str) -> None:
    with pytest.raises(MalformedPlan) as refused:
        read(f'{{"partitions": [{entry}]}}')
    assert str(refused.value) == said


def test_partitions_that_are_no_list_are_refused() -> None:
    with pytest.raises(MalformedPlan) as refused:
        read('{"partitions": {}}')
    assert str(refused.value) == "Expected JSON array, received {}"


def test_partitions_named_more_than_once_are_told_once() -> None:
    assert duplicates((B0, A0, A1, A0, B0, A0)) == (A0, B0)
    assert duplicates((A0, A1)) == ()
