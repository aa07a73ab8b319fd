"""Producers and consumers of librdkafka at a twin; what its admin client finds is in tests/clients."""

from __future__ import annotations

from typing import Any

import confluent_kafka

from kreassign.twin.server import ServerThread
from testbed.waiting import wait_until


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
