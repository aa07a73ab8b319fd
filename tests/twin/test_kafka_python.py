"""kafka-python's admin client against a twin over TCP."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from kafka import KafkaAdminClient, TopicPartition
from kafka.admin import NewPartitions, NewTopic
from kafka.protocol.admin import ElectionType

from kreassign.twin.server import ServerThread, serving
from tests.twin.asking import partition, twin


@pytest.fixture
def server() -> Iterator[ServerThread]:
    with serving(twin({"orders": [[0, 1], [1, 2]]})) as running:
        yield running
        assert not running.server.failures


def addresses(server: ServerThread) -> list[str]:
    return [f"{host}:{port}" for node, (host, port) in server.server.addresses().items() if node < 100]


@pytest.fixture
def python_client(server: ServerThread) -> Iterator[Any]:
    client = KafkaAdminClient(bootstrap_servers=addresses(server))
    yield client
    client.close()


def test_kafka_python_describes_the_cluster(python_client: Any) -> None:
    described = python_client.describe_cluster()
    assert [broker["rack"] for broker in described["brokers"]] == ["a", "b", "a", "b"]
    (topic,) = python_client.describe_topics(["orders"])
    assert [entry["replica_nodes"] for entry in topic["partitions"]] == [[0, 1], [1, 2]]
    sizes = {
        (entry["broker"], one["partition_index"], one["partition_size"])
        for entry in python_client.describe_log_dirs()
        for log_dir in entry["log_dirs"]
        for topic in log_dir["topics"]
        for one in topic["partitions"]
    }
    assert sizes == {(broker, number, 10_000_000) for broker, number in ((0, 0), (1, 0), (1, 1), (2, 1))}


def test_kafka_python_makes_and_deletes_topics(server: ServerThread, python_client: Any) -> None:
    python_client.create_topics([NewTopic("new", 2, 2)])
    python_client.create_partitions({"new": NewPartitions(4)})
    assert server.do(lambda asked: len(asked.metadata.topics["new"].partitions)) == 4
    python_client.delete_topics(["new"])
    assert python_client.list_topics() == ["orders"]


def test_kafka_python_moves_partitions(server: ServerThread, python_client: Any) -> None:
    python_client.alter_partition_reassignments({TopicPartition("orders", 0): [1, 0]})
    assert server.do(lambda asked: partition(asked, "orders"))[0] == (1, 0)
    python_client.elect_leaders(ElectionType.PREFERRED, {"orders": [0]})
    assert server.do(lambda asked: partition(asked, "orders"))[2] == 1
