"""Values of znodes by their kinds; every doubt is told with the path of the znode."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kreassign.errors import DamagedZnode
from kreassign.model.znodes import text

Read = Callable[[str, object], object]


def damaged(reason: str) -> str:
    return f"znode /a is damaged: {reason}; look at it with zookeeper-shell before anything else"


def refusal(read: Callable[[], object]) -> str:
    with pytest.raises(DamagedZnode) as refused:
        read()
    assert refused.value.path == "/a"
    return str(refused.value)


def test_text_is_compact_in_the_order_given_and_as_it_is() -> None:
    assert text.encode({"b": [1, 2], "a": "\u00fc"}) == '{"b":[1,2],"a":"\u00fc"}'.encode()


def test_an_object_is_read() -> None:
    assert text.decode("/a", '{"a": "\u00fc", "b": [1]}'.encode()) == {"a": "\u00fc", "b": [1]}


@pytest.mark.parametrize(("content", "reason"), [
    (b"{", "it is not JSON: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"),
    (b"", "it is not JSON: Expecting value: line 1 column 1 (char 0)"),
    (b"[]", "it is not a JSON object"),
    (b"5", "it is not a JSON object"),
])  # fmt: skip
def test_what_is_no_object_is_damaged(content: bytes, reason: str) -> None:
    assert refusal(lambda: text.decode("/a", content)) == damaged(reason)


def test_a_key_must_be_there() -> None:
    assert text.field("/a", {"b": None}, "b") is None
    assert refusal(lambda: text.field("/a", {"b": 1}, "c")) == damaged("it has no 'c'")


@pytest.mark.parametrize(("read", "value", "found"), [
    (text.integer, -1, -1), (text.string, "", ""), (text.objects, [], []),
    (text.objects, [{}, {"a": 1}], [{}, {"a": 1}]),
    (text.brokers, [2, 1, 2], (2, 1, 2)), (text.brokers, [], ()), (text.replica_lists, {}, {}),
    (text.replica_lists, {"10": [1], "0": []}, {10: (1,), 0: ()}), (text.strings, {}, {}),
    (text.strings, {"a": "b", "c": ""}, {"a": "b", "c": ""}),
])  # fmt: skip
def test_a_value_of_the_kind_that_is_asked_for_is_taken(read: Read, value: object, found: object) -> None:
    assert read("/a", value) == found


@pytest.mark.parametrize(("read", "value", "reason"), [
    (text.integer, "1", "'1' is not a whole number"),
    (text.integer, True, "True is not a whole number"),
    (text.integer, 1.0, "1.0 is not a whole number"),
    (text.string, 1, "1 is not a text"),
    (text.objects, {}, "{} is not a list of objects"),
    (text.objects, [{}, 1], "[{}, 1] is not a list of objects"),
    (text.brokers, "12", "'12' is not a list of brokers"),
    (text.brokers, [1, "2"], "'2' is not a whole number"),
    (text.replica_lists, [], "[] does not map partitions to replicas"),
    (text.replica_lists, {"0": [], "-1": []}, "{'0': [], '-1': []} does not map partitions to replicas"),
    (text.replica_lists, {"\u00b2": []}, "{'\u00b2': []} does not map partitions to replicas"),
    (text.replica_lists, {"": []}, "{'': []} does not map partitions to replicas"),
    (text.replica_lists, {"0": 1}, "1 is not a list of brokers"),
    (text.replica_lists, {"0": ["x"]}, "'x' is not a whole number"),
    (text.strings, [], "[] does not map names to texts"),
    (text.strings, {"a": "b", "c": None}, "None is not a text"),
])  # fmt: skip
def test_a_value_of_another_kind_is_told_with_the_path(read: Read, value: object, reason: str) -> None:
    assert refusal(lambda: read("/a", value)) == damaged(reason)
