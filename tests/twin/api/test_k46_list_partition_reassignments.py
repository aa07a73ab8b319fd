from __future__ import annotations

from kreassign.twin.access import Permissions
from kreassign.twin.cluster import Twin
from kreassign.wire import api
from kreassign.wire.api import Message
from tests.twin.asking import ask, twin

TOPIC = api.LIST_PARTITION_REASSIGNMENTS.request.ListPartitionReassignmentsTopics
Shown = list[tuple[str, int, list[int], list[int], list[int]]]


def listed(asked: Twin, wanted: list[tuple[str, list[int]]] | None, *, node: int = 0) -> Shown:
    topics = None if wanted is None else [TOPIC(name=name, partition_indexes=numbers) for name, numbers in wanted]
    response: Message = ask(asked, api.LIST_PARTITION_REASSIGNMENTS, 0, node=node, topics=topics, timeout_ms=0)
    assert (response.error_code, response.error_message) == (0, None)
    return [
        (topic.name, one.partition_index, one.replicas, one.adding_replicas, one.removing_replicas)
        for topic in response.topics
        for one in topic.partitions
    ]


def moving() -> Twin:
    asked = twin({"orders": [[0, 1], [1, 2], [2, 3]], "payments": [[0, 1]]})
    entry = api.ALTER_PARTITION_REASSIGNMENTS.request.ReassignableTopic
    targets = [
        entry(name=name, partitions=[entry.ReassignablePartition(partition_index=number, replicas=replicas)])
        for name, number, replicas in (("orders", 2, [2, 1]), ("orders", 0, [2, 3]), ("payments", 0, [0, 1, 2]))
    ]
    ask(asked, api.ALTER_PARTITION_REASSIGNMENTS, 1, topics=targets, timeout_ms=1000)
    return asked


FIRST = ("orders", 0, [2, 3, 0, 1], [2, 3], [0, 1])
LAST = ("orders", 2, [2, 1, 3], [1], [3])
OTHER = ("payments", 0, [0, 1, 2], [2], [])


def test_null_asks_for_everything_and_an_empty_list_for_nothing() -> None:
    for node in (0, 3, 100):
        assert listed(moving(), None, node=node) == [FIRST, LAST, OTHER]
    assert listed(moving(), []) == []


def test_what_is_idle_or_unknown_is_left_out() -> None:
    wanted = [("orders", [1, 2, 7, -1]), ("nope", [0]), ("payments", [])]
    assert listed(moving(), wanted) == [LAST]


def test_what_is_asked_for_twice_is_told_twice() -> None:
    assert listed(moving(), [("orders", [0, 0]), ("orders", [0])]) == [FIRST] * 3


def test_who_may_not_see_is_told_so() -> None:
    asked = twin({"orders": [[0, 1]]}, permissions=Permissions(frozenset()))
    response = ask(asked, api.LIST_PARTITION_REASSIGNMENTS, 0, topics=None)
    assert (response.error_code, response.topics) == (31, [])
    assert response.error_message.endswith(" needs DESCRIBE permission.")
