"""The audit of ten million records on real Kafka: how long it takes, and that it finds four that were tampered with.

Kafka's own producer writes the bulk, and all of its partitions are moved between the two readings. Beside it stands a
small topic that is deleted and written again in between: with one record lost, one duplicated, one altered, and two
that have changed places. Both are in the same two readings.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

from kafka import KafkaProducer

from bench.process import run
from kreassign.admin import AdminClient, client_settings
from kreassign.model import NewTopic, TopicPartition
from kreassign.pipeline.audit_job import compare_readings, read_records
from kreassign.pipeline.record_digests import AuditedPartition
from kreassign.pipeline.schemas import Row
from kreassign.pipeline.session import spark_session
from testbed import ClusterSpec, KafkaCluster
from testbed.jars import spark_kafka_jars
from testbed.java import tool_command
from testbed.waiting import wait_until

Result = TypeVar("Result")

BULK, SMALL = "bulk", "small"
BROKERS, PARTITIONS = 3, 8
RECORD_BYTES = 100
SMALL_COUNT = 200
AT_MS = 1_700_000_000_000
PATIENCE_S = 240.0


def measure(records: int = 10_000_000) -> None:
    """Print the times and what was found."""
    with KafkaCluster.start(ClusterSpec(brokers=BROKERS)) as cluster, tempfile.TemporaryDirectory() as folder:
        settings = client_settings({}, bootstrap_servers=cluster.bootstrap_servers)
        with AdminClient.connect(settings) as client:
            _measure(cluster, client, Path(folder), records)


def _measure(cluster: KafkaCluster, client: AdminClient, data: Path, records: int) -> None:
    print(
        f"{records:,} records of {RECORD_BYTES} bytes in {PARTITIONS} partitions, and {5 * SMALL_COUNT:,} beside them\n"
    )
    _create(client, BULK, PARTITIONS)
    _told("written by Kafka's producer", lambda: _produce_bulk(cluster, records))
    whole = list(range(SMALL_COUNT))
    _create(client, SMALL, 5)
    _produce(cluster, dict.fromkeys(range(5), whole))
    jars = sorted(spark_kafka_jars().glob("*.jar"))
    with spark_session(data / "spark.log", "local[2]", name="kreassign audit", jars=jars) as spark:
        servers = {"bootstrap.servers": cluster.bootstrap_servers}

        def read(label: str) -> int:
            return read_records(spark, data, label, _partitions(client), client=servers, taken_ms=AT_MS)

        assert _told("first reading", lambda: read("before")) == records + 5 * SMALL_COUNT
        _told("all partitions moved on", lambda: _move(client))
        _write_again(cluster, client, whole)
        _told("second reading", lambda: read("after"))
        rows = _told("compared", lambda: compare_readings(spark, data, "before", "after"))
    size = sum(file.stat().st_size for file in data.rglob("*.parquet"))
    print(f"| tables of both readings, MB | {size / 1e6:.0f} |\n")
    _show(rows)


def _told(what: str, work: Callable[[], Result]) -> Result:
    begun = time.perf_counter()
    found = work()
    print(f"| {what}, s | {time.perf_counter() - begun:.1f} |", flush=True)
    return found


def _show(rows: list[Row]) -> None:
    bulk = [row for row in rows if row["topic"] == BULK]
    verdicts = ", ".join(sorted({row["verdict"] for row in bulk}))
    print(f"{BULK}: {sum(row['record_count'] for row in bulk):,} records: {verdicts}")
    for row in rows:
        if row["topic"] == SMALL:
            names = ("lost", "duplicated", "added", "altered", "displaced", "first_offset")
            print(f"{SMALL}-{row['partition']}: " + ", ".join(f"{name} {row[name]}" for name in names))


def _create(client: AdminClient, topic: str, partitions: int) -> None:
    lists = tuple((number % BROKERS,) for number in range(partitions))
    configs = {"message.timestamp.before.max.ms": str(2**62), "retention.ms": "-1"}
    client.create_topics([NewTopic(topic, assignments=lists, configs=configs)]).raise_if_any()
    wait_until(lambda: topic in client.list_topics(), timeout_s=PATIENCE_S, what=f"topic {topic}")


def _produce_bulk(cluster: KafkaCluster, records: int) -> None:
    properties = (f"bootstrap.servers={cluster.bootstrap_servers}", "acks=all", "batch.size=200000", "linger.ms=20")
    options = ("--topic", BULK, "--num-records", str(records), "--record-size", str(RECORD_BYTES), "--throughput", "-1")
    tool = "org.apache.kafka.tools.ProducerPerformance"
    run(tool_command("3.9.1", tool, *options, "--producer-props", *properties, flags=()))


def _produce(cluster: KafkaCluster, partitions: Mapping[int, list[int]]) -> None:
    """Records with these numbers to each partition of the small topic; the number decides all that is in a record."""
    producer = KafkaProducer(bootstrap_servers=cluster.bootstrap_servers, acks="all")
    for partition, numbers in partitions.items():
        for number in numbers:
            text = f"{number}".encode()
            producer.send(SMALL, b"value " + text, text, partition=partition, timestamp_ms=AT_MS + number)
    producer.flush()
    producer.close()


def _write_again(cluster: KafkaCluster, client: AdminClient, whole: list[int]) -> None:
    client.delete_topics([SMALL]).raise_if_any()
    wait_until(lambda: SMALL not in client.list_topics(), timeout_s=PATIENCE_S, what="the deletion")
    _create(client, SMALL, 5)
    lost, altered = [*whole[:50], *whole[51:]], [*whole[:70], 1_000, *whole[71:]]
    doubled = [*whole[:61], *whole[60:]]
    swapped = [*whole[:80], whole[81], whole[80], *whole[82:]]
    _produce(cluster, dict(enumerate((lost, doubled, altered, swapped, whole))))


def _partitions(client: AdminClient) -> list[AuditedPartition]:
    topics = client.describe_topics([BULK, SMALL]).raise_if_any()
    keys = sorted(part.topic_partition for topic in topics.values() for part in topic.partitions)
    starts, ends = (client.list_offsets(keys, earliest=earliest).raise_if_any() for earliest in (True, False))
    return [AuditedPartition(*key, starts[key], ends[key], "delete", str(topics[key.topic].topic_id)) for key in keys]


def _move(client: AdminClient) -> None:
    names = [TopicPartition(BULK, number) for number in range(PARTITIONS)]
    client.alter_partition_reassignments({name: ((name.partition + 1) % BROKERS,) for name in names}).raise_if_any()
    wait_until(lambda: not client.list_partition_reassignments(names), timeout_s=PATIENCE_S, what="the moves")
