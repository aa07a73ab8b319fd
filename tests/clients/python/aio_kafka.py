"""The walk of aiokafka."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import KafkaError

from tests.clients.python.walk import PATIENCE_S, Walk, once_so, start

Ask = Callable[[Coroutine[Any, Any, Any]], Any]
DEADLINE_MS = round(PATIENCE_S * 1000)


def code_of(error: Exception) -> int | None:
    """Kafka's code; aiokafka's own errors have none that is Kafka's."""
    code = getattr(error, "errno", None)
    return code if isinstance(code, int) and code >= 0 else None


def main() -> None:
    """Walk."""
    walk = start(KafkaError, code_of)
    with asyncio.Runner() as runner:
        client = runner.run(connected(walk.bootstrap))
        topics(walk, client, runner.run)
        configuration(walk, client, runner.run)
        offsets(walk, runner.run)
        groups(walk, client, runner.run)
        walk.step("delete records", lambda: runner.run(deleted_records(client, walk.topic)))
        walk.step("produce", lambda: runner.run(produce(walk)))
        walk.step("consume", lambda: runner.run(consume(walk)))
        walk.step("delete", lambda: codes(runner.run(client.delete_topics([walk.topic]))))
        walk.step("delete again", lambda: codes(runner.run(client.delete_topics([walk.topic]))))
        runner.run(client.close())


async def connected(bootstrap: str) -> Any:
    """A client, which wants to be made where its loop runs."""
    client = AIOKafkaAdminClient(bootstrap_servers=bootstrap, request_timeout_ms=DEADLINE_MS)
    await client.start()
    return client


def codes(answer: Any) -> list[int]:
    """The error codes of an answer about topics, which aiokafka gives as it came."""
    found = answer.topic_errors if hasattr(answer, "topic_errors") else answer.topic_error_codes
    return [each[1] for each in found]


def topics(walk: Walk, client: Any, ask: Ask) -> None:
    """Brokers and topics."""
    topic = walk.topic
    placed = NewTopic(topic, -1, -1, replica_assignments={0: [0, 1], 1: [1, 2]})

    def brokers() -> object:
        return sorted((each["node_id"], each["rack"]) for each in ask(client.describe_cluster())["brokers"])

    def describe() -> object:
        (found,) = ask(client.describe_topics([topic]))
        return sorted([each["partition"], each["leader"], each["replicas"]] for each in found["partitions"])

    def grow(count: int) -> Callable[[], object]:
        return lambda: codes(ask(client.create_partitions({topic: NewPartitions(count)})))

    walk.step("brokers", brokers)
    walk.step("create", lambda: codes(ask(client.create_topics([placed]))))
    walk.step("create again", lambda: codes(ask(client.create_topics([placed]))))
    walk.step("create with 9 replicas", lambda: codes(ask(client.create_topics([NewTopic(f"{topic}-9", 2, 9)]))))
    walk.step("describe", lambda: once_so(describe, [[0, 0, [0, 1]], [1, 1, [1, 2]]]))
    walk.step("is listed", lambda: once_so(lambda: topic in ask(client.list_topics()), wanted=True))
    walk.step("grow", grow(4))
    walk.step("shrink", grow(3))


def configuration(walk: Walk, client: Any, ask: Ask) -> None:
    """Settings of topics and brokers."""

    def change(value: str) -> Callable[[], object]:
        resource = ConfigResource(ConfigResourceType.TOPIC, walk.topic, {"retention.ms": value})
        return lambda: [each[0] for answer in ask(client.alter_configs([resource])) for each in answer.resources]

    def described(kind: ConfigResourceType, name: str) -> dict[str, str]:
        (answer,) = ask(client.describe_configs([ConfigResource(kind, name)]))
        ((_, _, _, _, entries),) = answer.resources
        return {entry[0]: entry[1] for entry in entries}

    walk.step("set retention", change("5000"))
    walk.step("set nonsense", change("soon"))
    walk.step(
        "topic configuration",
        lambda: once_so(lambda: described(ConfigResourceType.TOPIC, walk.topic)["retention.ms"], "5000"),
    )
    walk.step("broker configuration", lambda: len(described(ConfigResourceType.BROKER, "0")) > 300)


def offsets(walk: Walk, ask: Ask) -> None:
    """Offsets of an empty log."""

    async def found() -> object:
        consumer = AIOKafkaConsumer(bootstrap_servers=walk.bootstrap, request_timeout_ms=DEADLINE_MS)
        await consumer.start()
        try:
            log = TopicPartition(walk.topic, 0)
            first, last = await consumer.beginning_offsets([log]), await consumer.end_offsets([log])
            by_time = await consumer.offsets_for_times({log: 1_700_000_000_000})
            return [first[log], last[log], by_time[log]]
        finally:
            await consumer.stop()

    walk.step("offsets", lambda: ask(found()))


def groups(walk: Walk, client: Any, ask: Ask) -> None:
    """A group that is not there."""
    group = f"{walk.topic}-group"

    def described() -> object:
        (answer,) = ask(client.describe_consumer_groups([group]))
        return [(each[0], each[2]) for each in answer.groups]

    def committed() -> object:
        wanted = [TopicPartition(walk.topic, 0)]
        return [each.offset for each in ask(client.list_consumer_group_offsets(group, partitions=wanted)).values()]

    walk.step("describe a group that is not there", described)
    walk.step("offsets of a group that is not there", committed)
    walk.step("is not listed", lambda: group in dict(ask(client.list_consumer_groups())))


async def deleted_records(client: Any, topic: str) -> object:
    """Delete records; return the new start of the log."""
    return list((await client.delete_records({TopicPartition(topic, 0): RecordsToDelete(0)})).values())


async def produce(walk: Walk) -> object:
    """Produce a record."""
    producer = AIOKafkaProducer(bootstrap_servers=walk.bootstrap, request_timeout_ms=DEADLINE_MS)
    await producer.start()
    try:
        await producer.send_and_wait(walk.topic, b"one", partition=0)
    finally:
        await producer.stop()
    return "kept"


async def consume(walk: Walk) -> object:
    """Read what was produced: how long it is, or what the consumer logs, which raises nothing and tries again."""
    logged: asyncio.Queue[object] = asyncio.Queue()
    watching = Watching(logged)
    logging.getLogger("aiokafka").addHandler(watching)
    consumer = AIOKafkaConsumer(
        bootstrap_servers=walk.bootstrap, auto_offset_reset="earliest", request_timeout_ms=DEADLINE_MS
    )
    await consumer.start()
    try:
        consumer.assign([TopicPartition(walk.topic, 0)])
        return await first_of(size_of_next(consumer), logged.get())
    finally:
        await consumer.stop()


class Watching(logging.Handler):
    """Notes the warnings of failed fetches."""

    def __init__(self, logged: asyncio.Queue[object]) -> None:
        super().__init__(logging.WARNING)
        self._logged = logged

    def emit(self, record: logging.LogRecord) -> None:
        """Note one."""
        if "fetching" in record.getMessage():
            self._logged.put_nowait({"logged": record.getMessage()})


async def size_of_next(consumer: AIOKafkaConsumer) -> object:
    """Length of the next record."""
    return len((await consumer.getone()).value or b"")


async def first_of(*asked: Coroutine[Any, Any, object]) -> object:
    """First record; None when the deadline has passed."""
    tasks = [asyncio.create_task(one) for one in asked]
    done, waiting = await asyncio.wait(tasks, timeout=PATIENCE_S, return_when=asyncio.FIRST_COMPLETED)
    for task in waiting:
        task.cancel()
    return done.pop().result() if done else "nothing, and no error"


if __name__ == "__main__":
    main()
