from __future__ import annotations

import pytest

from kreassign.model import ConfigResource, TopicPartition
from kreassign.twin.access import Permissions
from kreassign.twin.cluster import Twin
from kreassign.twin.controller.decision import Decision
from kreassign.twin.metadata import ConfigChanged
from kreassign.wire import api
from tests.twin.asking import ask, partition, twin

DIR = api.ALTER_REPLICA_LOG_DIRS.request.AlterReplicaLogDir
ORDERS = TopicPartition("orders", 0)
LONG = "x" * 249


def move(asked: Twin, path: str, topic: str = "orders", *numbers: int, node: int = 0) -> list[tuple[str, int, int]]:
    entry = DIR.AlterReplicaLogDirTopic(name=topic, partitions=list(numbers or (0,)))
    response = ask(asked, api.ALTER_REPLICA_LOG_DIRS, 2, node=node, dirs=[DIR(path=path, topics=[entry])])
    return [
        (result.topic_name, one.partition_index, one.error_code)
        for result in response.results
        for one in result.partitions
    ]


def test_a_copy_is_moved_and_its_broker_tells_the_controller() -> None:
    asked = twin({"orders": [[0, 1]]})
    readings = asked.replication.readings
    assert move(asked, "/data/0/d1") == [("orders", 0, 0)]
    assert readings.future_log_dir(ORDERS, 0) == "/data/0/d1"
    asked.advance(2_000)
    assert readings.log_dir(ORDERS, 0) == "/data/0/d1"
    state, broker = asked.metadata.partition(ORDERS), asked.metadata.brokers[0]
    assert state is not None
    assert state.directory_of(0) == broker.log_dirs[1].directory_id
    assert partition(asked, "orders") == ((0, 1), {0, 1}, 0)


def test_the_directory_where_a_copy_is_gives_up_a_move() -> None:
    asked = twin({"orders": [[0, 1]]})
    move(asked, "/data/0/d1")
    assert move(asked, "/data/0/d0") == [("orders", 0, 0)]
    assert asked.replication.readings.future_log_dir(ORDERS, 0) is None


@pytest.mark.parametrize("path", ["/nowhere", "data/0/d1", "/data/0/d1/", "/data/1/d0", ""])
def test_a_path_that_is_not_configured_is_not_found(path: str) -> None:
    assert move(twin({"orders": [[0, 1]]}), path) == [("orders", 0, 57)]


def test_a_failed_directory_is_a_storage_error() -> None:
    asked = twin({"orders": [[0, 1]]})
    asked.fail_log_dir(0, "/data/0/d1")
    assert move(asked, "/data/0/d1") == [("orders", 0, 56)]


@pytest.mark.parametrize("topic", ["orders", "payments"])
def test_a_cordoned_directory_is_refused_for_hosted_copies_and_for_others(topic: str) -> None:
    asked = twin({"orders": [[0, 1]], "payments": [[1, 2]]})
    cordon = ConfigChanged(ConfigResource.broker(0), "cordoned.log.dirs", "/data/0/d1")
    asked.commit(Decision((cordon,), None))
    assert move(asked, "/data/0/d1", topic) == [(topic, 0, 39)]


def test_what_is_not_hosted_is_remembered_until_it_comes() -> None:
    asked = twin({"orders": [[0, 1]]})
    assert move(asked, "/data/2/d1", node=2) == [("orders", 0, 9)]
    entry = api.ALTER_PARTITION_REASSIGNMENTS.request.ReassignableTopic
    target = entry(name="orders", partitions=[entry.ReassignablePartition(partition_index=0, replicas=[0, 2])])
    ask(asked, api.ALTER_PARTITION_REASSIGNMENTS, 1, topics=[target], timeout_ms=1000)
    asked.advance(5_000)
    assert asked.replication.readings.log_dir(ORDERS, 2) == "/data/2/d1"


@pytest.mark.parametrize(("topic", "number", "code"), [("nope", 0, 3), ("orders", 9, 3), (LONG, 0, 17)])
def test_what_is_not_there_is_unknown(topic: str, number: int, code: int) -> None:
    assert move(twin({"orders": [[0, 1]]}), "/data/0/d1", topic, number) == [(topic, number, code)]


def test_who_may_not_move_is_told_so_on_every_partition() -> None:
    asked = twin({"orders": [[0, 1], [0, 1]]}, permissions=Permissions(frozenset()))
    assert move(asked, "/data/0/d1", "orders", 0, 1) == [("orders", 0, 31), ("orders", 1, 31)]
    assert asked.replication.readings.future_log_dir(ORDERS, 0) is None
