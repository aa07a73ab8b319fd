"""librdkafka's admin client against a twin over TCP."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import confluent_kafka
import pytest
from confluent_kafka import admin

from kreassign.twin.server import ServerThread, serving
from testbed.waiting import PATIENCE_S, wait_until
from tests.twin.asking import partition, twin


@pytest.fixture
def server() -> Iterator[ServerThread]:
    with serving(twin({"orders": [[0, 1], [1, 2]]})) as running:
        yield running
        assert not running.server.failures


@pytest.fixture
def rdkafka(server: ServerThread) -> Any:
    servers = (f"{host}:{port}" for node, (host, port) in server.server.addresses().items() if node < 100)
    # That the brokers hang up at the end of the test is no news.
    return admin.AdminClient({"bootstrap.servers": ",".join(servers), "log_level": 0})


def outcome(futures: Any) -> Any:
    """The result of the one future in a dictionary of them."""
    (future,) = futures.values()
    return future.result(PATIENCE_S)


def test_librdkafka_lists_and_describes(rdkafka: Any) -> None:
    listed = rdkafka.list_topics(timeout=PATIENCE_S)
    assert (listed.cluster_id, list(listed.topics), len(listed.brokers)) == ("twin", ["orders"], 4)
    described = outcome(rdkafka.describe_topics(confluent_kafka.TopicCollection(["orders"])))
    assert [[node.id for node in entry.replicas] for entry in described.partitions] == [[0, 1], [1, 2]]
    assert [node.rack for node in rdkafka.describe_cluster().result(PATIENCE_S).nodes] == ["a", "b", "a", "b"]
    assert (
        outcome(rdkafka.list_offsets({confluent_kafka.TopicPartition("orders", 0): admin.OffsetSpec.latest()})).offset
        == 10_000
    )
    assert rdkafka.list_consumer_groups().result(PATIENCE_S).valid == []


def test_librdkafka_makes_configures_and_deletes_topics(server: ServerThread, rdkafka: Any) -> None:

    assert outcome(rdkafka.create_topics([admin.NewTopic("new", 3, 2)])) is None
    assert outcome(rdkafka.create_partitions([admin.NewPartitions("new", 5)])) is None
    entry = admin.ConfigEntry("retention.ms", "5000", incremental_operation=admin.AlterConfigOpType.SET)
    change = admin.ConfigResource(admin.ConfigResource.Type.TOPIC, "new", incremental_configs=[entry])
    assert outcome(rdkafka.incremental_alter_configs([change])) is None
    shown = outcome(rdkafka.describe_configs([admin.ConfigResource(admin.ConfigResource.Type.TOPIC, "new")]))
    assert (shown["retention.ms"].value, shown["retention.ms"].is_default) == ("5000", False)
    assert shown["retention.bytes"].is_default
    assert server.do(lambda asked: len(asked.metadata.topics["new"].partitions)) == 5
    assert outcome(rdkafka.delete_topics(["new"])) is None
    assert list(rdkafka.list_topics(timeout=PATIENCE_S).topics) == ["orders"]


def test_librdkafka_elects_leaders(server: ServerThread, rdkafka: Any) -> None:

    server.do(lambda asked: asked.stop(0))
    server.do(lambda asked: asked.start(0))
    wait_until(lambda: server.do(lambda asked: partition(asked, "orders")[1] == {0, 1}), what="broker 0 in sync")
    elected = rdkafka.elect_leaders(
        confluent_kafka.ElectionType.PREFERRED, [confluent_kafka.TopicPartition("orders", 0)]
    ).result(PATIENCE_S)
    assert all(error is None for error in elected.values())
    assert server.do(lambda asked: partition(asked, "orders"))[2] == 0


def bootstrap(server: ServerThread) -> dict[str, object]:
    host, port = server.server.addresses()[0]
    return {"bootstrap.servers": f"{host}:{port}", "log_level": 0}


def test_a_producer_is_told_at_once_that_there_are_no_records(server: ServerThread) -> None:
    told: list[confluent_kafka.KafkaError | None] = []
    producer = confluent_kafka.Producer(bootstrap(server))
    producer.produce("orders", b"record", callback=lambda error, _: told.append(error))
    # Its own patience with what might pass is five minutes.
    wait_until(lambda: bool(producer.poll(0.1) or told), what="the end of the record")
    assert [error.code() if error else None for error in told] == [44]


def test_a_consumer_is_told_at_once_that_there_are_no_records(server: ServerThread) -> None:
    consumer = confluent_kafka.Consumer({**bootstrap(server), "group.id": "tests", "enable.auto.commit": False})
    consumer.assign([confluent_kafka.TopicPartition("orders", 0, 0)])
    told: list[Any] = []
    wait_until(lambda: bool(told.append(consumer.poll(0.1)) or told[-1]), what="an error")
    consumer.close()
    assert told[-1].error().code() == 44


def test_a_consumer_of_the_new_protocol_ends_at_once(server: ServerThread) -> None:
    consumer = confluent_kafka.Consumer({**bootstrap(server), "group.id": "tests", "group.protocol": "consumer"})
    consumer.subscribe(["orders"])
    told: list[Any] = []
    wait_until(lambda: bool(told.append(consumer.poll(0.1)) or told[-1]), what="an error")
    consumer.close()
    assert told[-1].error().code() == confluent_kafka.KafkaError._FATAL
    assert "API version not supported" in told[-1].error().str()
