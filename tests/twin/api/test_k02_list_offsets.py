from __future__ import annotations

import pytest

from kreassign.model import TopicPartition
from kreassign.twin.access import Permissions
from kreassign.twin.cluster import Twin
from kreassign.twin.version import KAFKA_3_9
from kreassign.wire import api
from kreassign.wire.api import Message
from tests.twin.asking import ask, ask_on, cluster, twin

REQUEST = api.LIST_OFFSETS.request
END, START = -1, -2
CONSUMER, DEBUGGER = -1, -2


def offsets(
    asked: Twin,
    *wanted: tuple[str, int, int],
    node: int = 0,
    replica: int = CONSUMER,
    version: int = 7,
    epoch: int = -1,
) -> list[tuple[int, int, int]]:
    """Error code, offset and leader epoch for each (topic, partition, timestamp)."""
    topics = [
        REQUEST.ListOffsetsTopic(
            name=topic,
            partitions=[
                REQUEST.ListOffsetsTopic.ListOffsetsPartition(
                    partition_index=number, current_leader_epoch=epoch, timestamp=timestamp
                )
            ],
        )
        for topic, number, timestamp in wanted
    ]
    response = ask(asked, api.LIST_OFFSETS, version, node=node, replica_id=replica, topics=topics)
    return [(one.error_code, one.offset, one.leader_epoch) for topic in response.topics for one in topic.partitions]


def test_a_partition_named_twice_is_refused_once() -> None:
    asked = twin({"orders": [[0, 1]]})
    assert offsets(asked, ("orders", 0, END), ("orders", 0, END)) == [(42, -1, -1)]


def test_a_leader_tells_start_and_end() -> None:
    asked = twin({"orders": [[0, 1]]})
    assert offsets(asked, ("orders", 0, END)) == [(0, 10_000, 0)]
    assert offsets(asked, ("orders", 0, START)) == [(0, 0, 0)]


def test_only_a_debugger_may_ask_a_follower() -> None:
    asked = twin({"orders": [[0, 1]]})
    assert offsets(asked, ("orders", 0, END), node=1) == [(6, -1, -1)]
    assert offsets(asked, ("orders", 0, END), node=1, replica=DEBUGGER) == [(0, 10_000, 0)]
    assert offsets(asked, ("orders", 0, START), node=1, replica=DEBUGGER) == [(0, 0, 0)]
    assert offsets(asked, ("orders", 0, END), node=2, replica=DEBUGGER) == [(6, -1, -1)]


def test_a_copy_that_is_being_made_tells_how_far_it_is() -> None:
    asked = Twin(cluster({"orders": [[0, 1]]}, size_bytes=1_000_000_000))
    move = api.ALTER_PARTITION_REASSIGNMENTS.request.ReassignableTopic
    entry = move(name="orders", partitions=[move.ReassignablePartition(partition_index=0, replicas=[2, 1])])
    ask(asked, api.ALTER_PARTITION_REASSIGNMENTS, 1, topics=[entry], timeout_ms=1000)
    asked.advance(1_000)
    ((code, position, _),) = offsets(asked, ("orders", 0, END), node=2, replica=DEBUGGER)
    assert code == 0
    assert 0 < position < 1_000_000
    asked.advance(10_000)
    assert offsets(asked, ("orders", 0, END), node=2, replica=DEBUGGER) == [(0, 1_000_000, 1)]


def test_consumers_see_the_high_watermark_and_others_the_end() -> None:
    asked = twin({"orders": [[0, 1]]})
    asked.replication.set_write_rate(TopicPartition("orders", 0), 1_000_000)
    asked.crash(1)
    asked.advance(2_000)
    ((_, seen, _),) = offsets(asked, ("orders", 0, END))
    ((_, end, _),) = offsets(asked, ("orders", 0, END), replica=DEBUGGER)
    assert seen == 10_000
    assert end == 12_000


@pytest.mark.parametrize(("topic", "number", "code"), [("nope", 0, 3), ("orders", 9, 3), ("orders", -1, 3)])
def test_what_is_not_there_is_unknown(topic: str, number: int, code: int) -> None:
    assert offsets(twin({"orders": [[0, 1]]}), (topic, number, END)) == [(code, -1, -1)]


def test_epochs_must_match() -> None:
    asked = twin({"orders": [[0, 1], [1, 0]]})
    asked.stop(1)
    assert offsets(asked, ("orders", 1, END), epoch=0) == [(74, -1, -1)]
    assert offsets(asked, ("orders", 1, END), epoch=1) == [(0, 10_000, 1)]
    assert offsets(asked, ("orders", 1, END), epoch=2) == [(75, -1, -1)]


def test_a_copy_on_a_failed_directory_cannot_be_read() -> None:
    asked = twin({"orders": [[0, 1]]})
    asked.replication.fail_dir(0, "/data/0/d0")
    assert offsets(asked, ("orders", 0, END)) == [(56, -1, -1)]


@pytest.mark.parametrize(
    ("timestamp", "version", "answer"),
    [
        (1_700_000_000_000, 7, (43, -1, -1)),
        (-3, 7, (43, -1, -1)),
        (-3, 6, (35, -1, -1)),
        (-4, 8, (0, 0, 0)),
        (-4, 7, (35, -1, -1)),
        (-5, 9, (0, -1, -1)),
        (-6, 11, (0, -1, -1)),
        (-6, 10, (35, -1, -1)),
        (-7, 11, (35, -1, -1)),
    ],
)
def test_other_times_than_start_and_end(timestamp: int, version: int, answer: tuple[int, int, int]) -> None:
    assert offsets(twin({"orders": [[0, 1]]}), ("orders", 0, timestamp), version=version) == [answer]


@pytest.mark.parametrize(("timestamp", "found"), [
    (0, (0, -1, -1)), (1_700_000_000_000, (0, -1, -1)), (-3, (0, -1, -1)), (-2, (0, 0, 1)), (-4, (0, 0, 1)),
])  # fmt: skip
def test_an_empty_log_has_a_start_and_no_record_of_any_time(timestamp: int, found: tuple[int, int, int]) -> None:
    asked = Twin(cluster({"orders": [[1, 0]]}, size_bytes=0))
    asked.stop(1)
    assert offsets(asked, ("orders", 0, timestamp), version=8) == [found]


def test_version_0_tells_a_list() -> None:
    asked = twin({"orders": [[0, 1]]}, version=KAFKA_3_9)
    topic = REQUEST.ListOffsetsTopic
    wanted = topic.ListOffsetsPartition(partition_index=0, timestamp=END, max_num_offsets=1)
    response: Message = ask_on(
        asked.connect(0), api.LIST_OFFSETS, 0, replica_id=-1, topics=[topic(name="orders", partitions=[wanted])]
    )
    assert response.topics[0].partitions[0].old_style_offsets == [10_000]


def test_who_may_not_see_a_topic_is_told_so_last() -> None:
    asked = twin({"orders": [[0, 1]]}, permissions=Permissions(frozenset()))
    assert offsets(asked, ("orders", 0, END)) == [(29, -1, -1)]
