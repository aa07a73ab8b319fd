"""The walk of librdkafka (confluent-kafka)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    ElectionType,
    KafkaException,
    Producer,
    TopicCollection,
    TopicPartition,
    admin,
)

from tests.clients.python.walk import PATIENCE_S, Walk, once_so, start

Kind = admin.ConfigResource.Type
DEADLINE = {"request_timeout": PATIENCE_S}


def code_of(error: Exception) -> int | None:
    """Kafka's code; librdkafka's own are negative, and told by name."""
    code = error.args[0].code() if error.args and hasattr(error.args[0], "code") else -1
    return code if isinstance(code, int) and code >= 0 else None


def one(futures: Any) -> Any:
    """The result of the only future."""
    (future,) = futures.values()
    return future.result(PATIENCE_S)


def main() -> None:
    """Walk."""
    walk = start(KafkaException, code_of)
    settings = {"bootstrap.servers": walk.bootstrap, "log_level": 0}
    client: Any = admin.AdminClient(settings)
    topics(walk, client)
    configuration(walk, client)
    offsets(walk, client)
    groups(walk, client)
    walk.step("list ACLs", partial(acls, client))
    walk.step("list SCRAM users", lambda: len(client.describe_user_scram_credentials().result(PATIENCE_S)))
    walk.step("delete records", lambda: one(client.delete_records([TopicPartition(walk.topic, 0, 0)])).low_watermark)
    walk.step("produce", partial(produce, settings, walk.topic))
    walk.step("consume", partial(consume, settings, walk.topic))
    walk.step("delete", lambda: one(client.delete_topics([walk.topic])))
    walk.step("delete again", lambda: one(client.delete_topics([walk.topic])))


def topics(walk: Walk, client: Any) -> None:
    """Brokers, topics and elections."""
    topic = walk.topic

    def brokers() -> object:
        return sorted((node.id, node.rack) for node in client.describe_cluster(**DEADLINE).result(PATIENCE_S).nodes)

    def describe() -> object:
        try:
            found = one(client.describe_topics(TopicCollection([topic]), **DEADLINE))
        except KafkaException:
            return None
        return [[each.id, each.leader.id, [node.id for node in each.replicas]] for each in found.partitions]

    def elect() -> object:
        found = client.elect_leaders(ElectionType.PREFERRED, [TopicPartition(topic, 0)]).result(PATIENCE_S)
        return [None if error is None else error.code() for error in found.values()]

    placed = admin.NewTopic(topic, 2, replica_assignment=[[0, 1], [1, 2]])
    walk.step("brokers", brokers)
    walk.step("create", lambda: one(client.create_topics([placed])))
    walk.step("create again", lambda: one(client.create_topics([placed])))
    walk.step("create with 9 replicas", lambda: one(client.create_topics([admin.NewTopic(f"{topic}-9", 2, 9)])))
    walk.step("describe", lambda: once_so(describe, [[0, 0, [0, 1]], [1, 1, [1, 2]]]))
    walk.step("elect leaders", elect)
    walk.step("grow", lambda: one(client.create_partitions([admin.NewPartitions(topic, 4)])))
    walk.step("shrink", lambda: one(client.create_partitions([admin.NewPartitions(topic, 3)])))


def configuration(walk: Walk, client: Any) -> None:
    """Settings of topics and brokers."""

    def change(value: str) -> Callable[[], object]:
        entry = admin.ConfigEntry("retention.ms", value, incremental_operation=admin.AlterConfigOpType.SET)
        resource = admin.ConfigResource(Kind.TOPIC, walk.topic, incremental_configs=[entry])
        return lambda: one(client.incremental_alter_configs([resource]))

    def described(kind: Kind, name: str) -> Any:
        return one(client.describe_configs([admin.ConfigResource(kind, name)]))

    walk.step("set retention", change("5000"))
    walk.step("set nonsense", change("soon"))
    walk.step("topic configuration", lambda: len(described(Kind.TOPIC, walk.topic)))
    walk.step("broker configuration", lambda: len(described(Kind.BROKER, "0")) > 300)


def offsets(walk: Walk, client: Any) -> None:
    """Offsets of an empty log."""

    def ask(spec: admin.OffsetSpec) -> object:
        found = one(client.list_offsets({TopicPartition(walk.topic, 0): spec}, **DEADLINE))
        return found.offset, found.timestamp, found.leader_epoch

    walk.step("first offset", lambda: ask(admin.OffsetSpec.earliest()))
    walk.step("last offset", lambda: ask(admin.OffsetSpec.latest()))
    walk.step("offset by time", lambda: ask(admin.OffsetSpec.for_timestamp(1_700_000_000_000)))


def groups(walk: Walk, client: Any) -> None:
    """A group that is not there."""
    group = f"{walk.topic}-group"

    def committed() -> object:
        wanted = ConsumerGroupTopicPartitions(group, [TopicPartition(walk.topic, 0)])
        return [each.offset for each in one(client.list_consumer_group_offsets([wanted])).topic_partitions]

    def described() -> object:
        return one(client.describe_consumer_groups([group], **DEADLINE)).state.name

    walk.step("describe a group that is not there", described)
    walk.step("offsets of a group that is not there", committed)
    walk.step("delete a group that is not there", lambda: one(client.delete_consumer_groups([group])))


def acls(client: Any) -> object:
    """All access rules."""
    everything = admin.AclBindingFilter(
        admin.ResourceType.ANY, None, admin.ResourcePatternType.ANY, None, None, admin.AclOperation.ANY,
        admin.AclPermissionType.ANY,
    )  # fmt: skip
    return len(client.describe_acls(everything, **DEADLINE).result(PATIENCE_S))


def produce(settings: dict[str, Any], topic: str) -> object:
    """Produce a record."""
    answers: list[Any] = []
    producer = Producer(settings | {"message.timeout.ms": round(PATIENCE_S * 1000)})
    producer.produce(topic, b"one", partition=0, on_delivery=lambda error, _: answers.append(error))
    producer.flush(PATIENCE_S)
    return [error if error is None else error.code() for error in answers]


def consume(settings: dict[str, Any], topic: str) -> object:
    """Read what was produced."""
    consumer = Consumer(settings | {"group.id": f"{topic}-consumer", "auto.offset.reset": "earliest"})
    consumer.assign([TopicPartition(topic, 0, 0)])
    found = consumer.poll(PATIENCE_S)
    consumer.close()
    if found is None:
        return "nothing, and no error"
    return 1 if found.error() is None else {"code": found.error().code()}


if __name__ == "__main__":
    main()
