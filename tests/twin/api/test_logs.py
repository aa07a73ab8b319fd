"""Logs and their directories: what real brokers can be asked, too, is in tests/conformance."""

from __future__ import annotations

import pytest

from kreassign.model import TopicPartition
from kreassign.twin.cluster import Twin
from kreassign.twin.version import KAFKA_3_9
from kreassign.wire import api
from kreassign.wire.api import Message
from tests.twin.asking import ask, ask_on, cluster, partition, twin

ORDERS = TopicPartition("orders", 0)
END, DEBUGGER = -1, -2


def offset(
    asked: Twin, *, node: int = 0, replica: int = -1, timestamp: int = END, version: int = 7
) -> tuple[int, int, int]:
    """Error code, offset and leader epoch of orders-0."""
    entry = {"partition_index": 0, "current_leader_epoch": -1, "timestamp": timestamp}
    topics = [{"name": "orders", "partitions": [entry]}]
    response = ask(asked, api.LIST_OFFSETS, version, node=node, replica_id=replica, topics=topics)
    (one,) = response.topics[0].partitions
    return one.error_code, one.offset, one.leader_epoch


def relocate(asked: Twin, path: str, topic: str = "orders", number: int = 0) -> int:
    """Error code of a move of a replica of broker 0 into a directory."""
    dirs = [{"path": path, "topics": [{"name": topic, "partitions": [number]}]}]
    (result,) = ask(asked, api.ALTER_REPLICA_LOG_DIRS, 2, dirs=dirs).results
    code: int = result.partitions[0].error_code
    return code


def directories(asked: Twin) -> list[Message]:
    found: list[Message] = ask(asked, api.DESCRIBE_LOG_DIRS, 5, topics=None).results
    return found


def test_a_copy_that_is_being_made_tells_how_far_it_is() -> None:
    asked = Twin(cluster({"orders": [[0, 1]]}, size_bytes=1_000_000_000))
    entry = {"name": "orders", "partitions": [{"partition_index": 0, "replicas": [2, 1]}]}
    ask(asked, api.ALTER_PARTITION_REASSIGNMENTS, 1, topics=[entry], timeout_ms=1000)
    asked.advance(1_000)
    code, position, _ = offset(asked, node=2, replica=DEBUGGER)
    assert code == 0
    assert 0 < position < 1_000_000
    asked.advance(10_000)
    assert offset(asked, node=2, replica=DEBUGGER) == (0, 1_000_000, 1)


def test_consumers_see_the_high_watermark_and_others_the_end() -> None:
    asked = twin({"orders": [[0, 1]]})
    asked.replication.set_write_rate(ORDERS, 1_000_000)
    asked.crash(1)
    asked.advance(2_000)
    assert (offset(asked)[1], offset(asked, replica=DEBUGGER)[1]) == (10_000, 12_000)


@pytest.mark.parametrize(
    ("timestamp", "version", "answer"),
    [(1_700_000_000_000, 7, (43, -1, -1)), (-3, 7, (43, -1, -1)), (-3, 6, (35, -1, -1)), (-6, 10, (35, -1, -1))],
)
def test_records_are_not_searched_by_time(timestamp: int, version: int, answer: tuple[int, int, int]) -> None:
    assert offset(twin({"orders": [[0, 1]]}), timestamp=timestamp, version=version) == answer


def test_version_0_tells_a_list_of_offsets() -> None:
    asked = twin({"orders": [[0, 1]]}, version=KAFKA_3_9)
    wanted = {"partition_index": 0, "timestamp": END, "max_num_offsets": 1}
    topics = [{"name": "orders", "partitions": [wanted]}]
    response = ask_on(asked.connect(0), api.LIST_OFFSETS, 0, replica_id=-1, topics=topics)
    assert response.topics[0].partitions[0].old_style_offsets == [10_000]


def test_a_broker_tells_the_controller_where_a_copy_has_moved() -> None:
    asked = twin({"orders": [[0, 1]]})
    assert relocate(asked, "/data/0/d1") == 0
    asked.advance(2_000)
    assert asked.replication.readings.log_dir(ORDERS, 0) == "/data/0/d1"
    state = asked.metadata.partition(ORDERS)
    assert state is not None
    assert state.directory_of(0) == asked.metadata.brokers[0].log_dirs[1].directory_id
    assert partition(asked, "orders") == ((0, 1), {0, 1}, 0)


def test_the_directory_where_a_copy_is_gives_up_its_move() -> None:
    asked = twin({"orders": [[0, 1]]})
    relocate(asked, "/data/0/d1")
    assert relocate(asked, "/data/0/d0") == 0
    assert asked.replication.readings.future_log_dir(ORDERS, 0) is None


def test_a_topic_name_that_cannot_be_is_refused_as_such() -> None:
    assert relocate(twin({"orders": [[0, 1]]}), "/data/0/d1", "x" * 249) == 17


def test_a_move_between_directories_is_a_second_entry_with_its_lag() -> None:
    asked = Twin(cluster({"orders": [[0, 1]]}, size_bytes=1_000_000_000))
    asked.replication.alter_log_dir(ORDERS, 0, "/data/0/d1")
    asked.advance(1_000)
    first, second = (log_dir.topics[0].partitions[0] for log_dir in directories(asked))
    assert (first.partition_size, first.is_future_key, second.is_future_key) == (1_000_000_000, False, True)
    assert 0 < second.partition_size < first.partition_size
    assert [first.offset_lag, second.offset_lag] == [0, (first.partition_size - second.partition_size) // 1000]


def test_directories_are_told_in_their_order_with_what_is_free() -> None:
    first, second = directories(twin({"orders": [[0, 1]]}))
    assert (first.log_dir, second.log_dir, second.topics) == ("/data/0/d0", "/data/0/d1", [])
    assert (first.error_code, first.total_bytes, first.is_cordoned) == (0, 2_000_000_000_000, False)
    assert first.usable_bytes == first.total_bytes - 10_000_000


def test_a_failed_directory_has_an_error_and_nothing_in_it() -> None:
    asked = twin({"orders": [[0, 1]]})
    asked.fail_log_dir(0, "/data/0/d0")
    failed, healthy = directories(asked)
    assert (failed.error_code, failed.topics, failed.total_bytes, failed.usable_bytes) == (56, [], -1, -1)
    assert healthy.error_code == 0
    assert relocate(asked, "/data/0/d0") == 56
    unreadable = twin({"orders": [[0, 1]]})
    unreadable.replication.fail_dir(0, "/data/0/d0")
    assert offset(unreadable) == (56, -1, -1)
