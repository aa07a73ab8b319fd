import pytest

from kreassign.model import Broker, Cluster, LogDir, LogDirReplica, TopicPartition
from kreassign.model.cluster import LogDirReplicas

BROKERS = (Broker(10, "b", 9092), Broker(2, "a", 9092, "rack-1"))
CLUSTER = Cluster("id", 2, BROKERS)


def test_broker_ids_ascend() -> None:
    assert CLUSTER.broker_ids == (2, 10)


def test_a_broker_is_found_by_its_id() -> None:
    assert CLUSTER.broker(10) == BROKERS[0]
    assert CLUSTER.broker(3) is None


def test_brokers_sort_by_id() -> None:
    assert [broker.id for broker in sorted(BROKERS)] == [2, 10]


def test_a_broker_reads_as_a_sentence() -> None:
    assert [str(broker) for broker in BROKERS] == ["broker 10 (b:9092)", "broker 2 (a:9092, rack rack-1)"]


def test_a_log_dir_shows_its_error() -> None:
    healthy = LogDir("/data/1", None, 10, 5, False, ())
    offline = LogDir("/data/2", "KAFKA_STORAGE_ERROR", None, None, False, ())
    assert [str(healthy), str(offline)] == ["/data/1", "/data/2 (KAFKA_STORAGE_ERROR)"]


COPIES = tuple(LogDirReplica(TopicPartition(topic, 0), 5, 0, is_future=False) for topic in ("b", "a", "b"))


@pytest.mark.parametrize("copies", [COPIES, list(COPIES), LogDirReplicas.of(COPIES)], ids=["tuple", "list", "packed"])
def test_a_log_dir_tells_the_topics_of_its_copies(copies: LogDirReplicas | list[LogDirReplica]) -> None:
    assert LogDir("/d", None, 1, 1, False, copies).topics == {"a", "b"}
    assert LogDir("/d", None, 1, 1, False, ()).topics == frozenset()
