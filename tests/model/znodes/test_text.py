"""Values of znodes by their kinds; every doubt is told with the path of the znode."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kreassign.errors import DamagedZnode
from kreassign.model.znodes import contents

Read = Callable[[str, object], object]


def damaged(reason: str) -> str:
    return f"znode /a is damaged: {reason}; look at it with zookeeper-shell before anything else"


def refusal(read: Callable[[], object]) -> str:
    with pytest.raises(DamagedZnode) as refused:
        read()
    assert refused.value.path == "/a"
    return str(refused.value)


def test_an_object_is_read() -> None:
    assert contents.decode_json("/a", '{"a": "\u00fc", "b": [1]}'.encode()) == {"a": "\u00fc", "b": [1]}


def test_a_key_must_be_there() -> None:
    assert contents.required_field("/a", {"b": None}, "b") is None
    assert refusal(lambda: contents.required_field("/a", {"b": 1}, "c")) == damaged("it has no 'c'")


@pytest.mark.parametrize(("read", "value", "found"), [
    (contents.whole_number, -1, -1), (contents.text_value, "", ""), (contents.object_list, [], []),
    (contents.object_list, [{}, {"a": 1}], [{}, {"a": 1}]),
    (contents.broker_list, [2, 1, 2], (2, 1, 2)), (contents.broker_list, [], ()), (contents.replica_lists, {}, {}),
    (contents.replica_lists, {"10": [1], "0": []}, {10: (1,), 0: ()}), (contents.text_map, {}, {}),
    (contents.text_map, {"a": "b", "c": ""}, {"a": "b", "c": ""}),
])  # fmt: skip
def test_a_value_of_the_kind_that_is_asked_for_is_taken(read: Read, value: object, found: object) -> None:
    assert read("/a", value) == found


@pytest.mark.parametrize(("read", "value", "reason"), [
    (contents.whole_number, "1", "'1' is not a whole number"),
    (contents.whole_number, True, "True is not a whole number"),
    (contents.whole_number, 1.0, "1.0 is not a whole number"),
    (contents.text_value, 1, "1 is not a text"),
    (contents.object_list, {}, "{} is not a list of objects"),
    (contents.object_list, [{}, 1], "[{}, 1] is not a list of objects"),
    (contents.broker_list, "12", "'12' is not a list of brokers"),
    (contents.broker_list, [1, "2"], "'2' is not a whole number"),
    (contents.replica_lists, [], "[] does not map partitions to replicas"),
    (contents.replica_lists, {"0": [], "-1": []}, "{'0': [], '-1': []} does not map partitions to replicas"),
    (contents.replica_lists, {"\u00b2": []}, "{'\u00b2': []} does not map partitions to replicas"),
    (contents.replica_lists, {"9" * 10: []}, "{'9999999999': []} does not map partitions to replicas"),
    (contents.replica_lists, {"": []}, "{'': []} does not map partitions to replicas"),
    (contents.replica_lists, {"0": 1}, "1 is not a list of brokers"),
    (contents.replica_lists, {"0": ["x"]}, "'x' is not a whole number"),
    (contents.text_map, [], "[] does not map names to texts"),
    (contents.text_map, {"a": "b", "c": None}, "None is not a text"),
])  # fmt: skip
def test_a_value_of_another_kind_is_told_with_the_path(read: Read, value: object, reason: str) -> None:
    assert refusal(lambda: read("/a", value)) == damaged(reason)
