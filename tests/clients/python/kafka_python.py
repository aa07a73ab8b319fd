"""The walk of kafka-python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kafka import KafkaAdminClient, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType, NewPartitions, NewTopic
from kafka.errors import KafkaError
from kafka.protocol.admin import ElectionType

from tests.clients.python.walk import PATIENCE_S, Walk, once_so, start


def code_of(error: Exception) -> int | None:
    """Kafka's code; those of kafka-python's own errors are none."""
    code = getattr(error, "errno", None)
    return code if isinstance(code, int) else None


def done(call: Callable[[], object]) -> Callable[[], object]:
    """A call whose answer does not matter if it is none but an error."""

    def ask() -> object:
        call()
        return "done"

    return ask


def main() -> None:
    """Walk."""
    walk = start(KafkaError, code_of)
    client: Any = KafkaAdminClient(bootstrap_servers=walk.bootstrap)
    creation(walk, client)
    moves(walk, client)
    changes(walk, client)
    walk.step("delete a group that is not there", lambda: str(client.delete_groups([f"{walk.topic}-group"]).values()))
    walk.step("produce", lambda: produce(walk))
    walk.step("delete", done(lambda: client.delete_topics([walk.topic])))
    walk.step("delete again", done(lambda: client.delete_topics([walk.topic])))
    client.close()


def creation(walk: Walk, client: Any) -> None:
    """Brokers and topics."""

    def brokers() -> object:
        return sorted((each["broker_id"], each["rack"]) for each in client.describe_cluster()["brokers"])

    walk.step("brokers", brokers)
    walk.step("create", done(lambda: client.create_topics([NewTopic(walk.topic, 2, 2)])))
    walk.step("create again", done(lambda: client.create_topics([NewTopic(walk.topic, 2, 2)])))
    walk.step("create with 9 replicas", done(lambda: client.create_topics([NewTopic(f"{walk.topic}-9", 2, 9)])))


def moves(walk: Walk, client: Any) -> None:
    """Moves of partitions."""
    first, second = (TopicPartition(walk.topic, number) for number in (0, 1))

    def move(lists: dict[TopicPartition, list[int] | None]) -> Callable[[], object]:
        return lambda: [str(outcome) for outcome in client.alter_partition_reassignments(lists).values()]

    def moving() -> object:
        return len(client.list_partition_reassignments([first, second]))

    def describe() -> object:
        (found,) = client.describe_topics([walk.topic])
        return [
            [each["partition_index"], each["replica_nodes"], sorted(each["isr_nodes"])]
            for each in sorted(found["partitions"], key=lambda each: int(each["partition_index"]))
        ]

    walk.step("place", move({first: [0, 1], second: [1, 2]}))
    walk.step("placed", lambda: once_so(moving, 0))
    walk.step("describe", lambda: once_so(describe, [[0, [0, 1], [0, 1]], [1, [1, 2], [1, 2]]]))
    walk.step("move", move({first: [3, 2]}))
    walk.step("moved", lambda: once_so(moving, 0))
    walk.step("describe what moved", lambda: once_so(describe, [[0, [3, 2], [2, 3]], [1, [1, 2], [1, 2]]]))
    walk.step("move to broker 99", move({first: [99]}))
    walk.step("cancel what does not move", move({first: None}))


def changes(walk: Walk, client: Any) -> None:
    """Elections, partitions and configuration."""
    election, topic = ElectionType.PREFERRED, walk.topic

    def change(value: str) -> Callable[[], object]:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic, {"retention.ms": value})
        return lambda: client.alter_configs([resource])["topic"][topic]

    walk.step("elect leaders", done(lambda: client.elect_leaders(election, {topic: [0]}, raise_errors=False)))
    walk.step("grow", done(lambda: client.create_partitions({topic: NewPartitions(4)})))
    walk.step("shrink", done(lambda: client.create_partitions({topic: NewPartitions(3)})))
    walk.step("set retention", change("5000"))
    walk.step("set nonsense", change("soon"))


def produce(walk: Walk) -> object:
    """Produce a record."""
    producer: Any = KafkaProducer(
        bootstrap_servers=walk.bootstrap, request_timeout_ms=10_000, delivery_timeout_ms=20_000, linger_ms=0
    )
    try:
        producer.send(walk.topic, b"one", partition=0).get(PATIENCE_S)
    finally:
        producer.close(1)
    return "kept"


if __name__ == "__main__":
    main()
