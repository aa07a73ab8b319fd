from __future__ import annotations

import pytest

from kreassign.twin.access import Permissions
from kreassign.twin.cluster import Twin
from kreassign.wire import api
from kreassign.wire.api import Message
from tests.twin.asking import ask, partition, twin

TOPIC = api.ELECT_LEADERS.request.TopicPartitions
PREFERRED, UNCLEAN = 0, 1


def elect(
    asked: Twin, wanted: dict[str, list[int]] | None, kind: int = PREFERRED, *, version: int = 2, timeout_ms: int = 1000
) -> Message:
    topics = None if wanted is None else [TOPIC(topic=name, partitions=numbers) for name, numbers in wanted.items()]
    return ask(asked, api.ELECT_LEADERS, version, election_type=kind, topic_partitions=topics, timeout_ms=timeout_ms)


def outcomes(response: Message) -> list[tuple[str, int, int, str | None]]:
    return [
        (topic.topic, one.partition_id, one.error_code, one.error_message)
        for topic in response.replica_election_results
        for one in topic.partition_result
    ]


def led_by_the_second() -> Twin:
    """Partition 0 is led by broker 1 although broker 0 comes first and is in sync."""
    asked = twin({"orders": [[0, 1], [1, 2]]})
    asked.stop(0)
    asked.start(0)
    asked.advance(10_000)
    assert partition(asked, "orders") == ((0, 1), {0, 1}, 1)
    return asked


@pytest.mark.parametrize("version", [0, 1, 2])
def test_the_preferred_replica_is_made_leader_again(version: int) -> None:
    asked = led_by_the_second()
    response = elect(asked, {"orders": [0]}, version=version)
    assert (response.error_code, outcomes(response)) == (0, [("orders", 0, 0, None)])
    assert partition(asked, "orders")[2] == 0


def test_everything_is_asked_for_with_null_and_only_what_changed_is_told() -> None:
    asked = led_by_the_second()
    assert outcomes(elect(asked, None)) == [("orders", 0, 0, None)]
    again = elect(asked, None)
    assert [(topic.topic, topic.partition_result) for topic in again.replica_election_results] == [("orders", [])]


def test_refusals_carry_the_texts_of_kafka() -> None:
    asked = twin({"orders": [[0, 1]]})
    response = elect(asked, {"orders": [0, 9], "nope": [0]})
    assert outcomes(response) == [
        ("orders", 0, 84, "Leader election not needed for topic partition."),
        ("orders", 9, 3, "No such partition as orders-9"),
        ("nope", 0, 3, "No such topic as nope"),
    ]
    unknown = elect(asked, {"orders": [0]}, kind=2)
    assert (unknown.error_code, outcomes(unknown)) == (42, [("orders", 0, 42, "Unknown election type 2")])
    late = elect(asked, {"orders": [0]}, timeout_ms=0)
    assert (late.error_code, outcomes(late)) == (7, [("orders", 0, 7, None)])


def test_who_may_not_elect_is_told_so() -> None:
    asked = twin({"orders": [[0, 1]]}, permissions=Permissions(frozenset()))
    response = elect(asked, {"orders": [0]})
    ((_, _, code, text),) = outcomes(response)
    assert (response.error_code, code) == (31, 31)
    assert text is not None
    assert text.endswith(" needs ALTER permission.")
    everything = elect(asked, None)
    assert (everything.error_code, outcomes(everything)) == (31, [])
    assert [code for _, _, code, _ in outcomes(elect(asked, {"orders": [0]}, version=0))] == [31]
