"""The audit of ten million records on real Kafka: how long it takes, and that it finds four that were tampered with.

They are read, all partitions are moved, and they are read again. Then the topic is deleted and written again with one
record lost, one duplicated, one altered, and two that have changed places, each in the middle of its partition; and
read a third time.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from bench.process import run
from kreassign.admin import AdminClient, client_settings
from kreassign.model import NewTopic, OffsetSpec, TopicPartition
from kreassign.model.load import SparkOptions
from kreassign.pipeline.data_audit import AuditedPartition, compare_readings, read_records
from kreassign.pipeline.spark_session import spark_session
from testbed import ClusterSpec, KafkaCluster
from testbed.jars import spark_kafka_jars
from testbed.java import tool_command
from testbed.waiting import wait_until

Result = TypeVar("Result")

TOPIC = "audited"
BROKERS, PARTITIONS = 3, 8
VALUE_BYTES = 100
AT_MS = 1_700_000_000_000
PATIENCE_S = 240.0
PROBLEMS = ("lost", "duplicated", "added", "altered", "displaced", "first_offset")


def measure(records: int = 10_000_000) -> None:
    """Print the times and what was found."""
    with KafkaCluster.start(ClusterSpec(brokers=BROKERS)) as cluster, tempfile.TemporaryDirectory() as folder:
        settings = client_settings(bootstrap_servers=cluster.bootstrap_servers)
        with AdminClient.connect(settings) as client:
            _measure(cluster, client, Path(folder), records // PARTITIONS)


def _measure(cluster: KafkaCluster, client: AdminClient, data: Path, count: int) -> None:
    print(f"{count * PARTITIONS:,} records with values of {VALUE_BYTES} bytes in {PARTITIONS} partitions\n")
    _create(client)
    _told("written", lambda: _write(cluster, count))
    jars = sorted(spark_kafka_jars().glob("*.jar"))
    with spark_session(data / "spark.log", SparkOptions("local[2]"), name="kreassign audit", jars=jars) as spark:
        servers = {"bootstrap.servers": cluster.bootstrap_servers}

        def read(label: str) -> int:
            partitions, where = _partitions(client), client.describe_cluster().cluster_id
            return read_records(spark, data, label, partitions, client=servers, taken_ms=AT_MS, cluster_id=where)

        assert _told("first reading", lambda: read("before")) == count * PARTITIONS
        _told("all partitions moved on", lambda: _move(client))
        _told("second reading", lambda: read("moved"))
        moved = _told("compared with the first", lambda: compare_readings(spark, data, "before", "moved"))
        _delete(client)
        _create(client)
        _told("written again, with faults", lambda: _write(cluster, count, count // 2))
        _told("third reading", lambda: read("after"))
        tampered = _told("compared with the first", lambda: compare_readings(spark, data, "before", "after"))
    size = sum(file.stat().st_size for file in data.rglob("*.parquet"))
    print(f"| tables of the three readings, MB | {size / 1e6:.0f} |\n")
    for what, rows in (("moved", moved), ("written again", tampered)):
        print(f"{what}:")
        for row in rows:
            print(f"  {row['partition']}, {row['verdict']}: " + ", ".join(f"{name} {row[name]}" for name in PROBLEMS))


def _told(what: str, work: Callable[[], Result]) -> Result:
    begun = time.perf_counter()
    found = work()
    print(f"| {what}, s | {time.perf_counter() - begun:.1f} |", flush=True)
    return found


def _create(client: AdminClient) -> None:
    lists = tuple((number % BROKERS,) for number in range(PARTITIONS))
    configs = {"message.timestamp.before.max.ms": str(2**62), "retention.ms": "-1"}
    client.create_topics([NewTopic(TOPIC, assignments=lists, configs=configs)]).raise_if_any()
    wait_until(lambda: TOPIC in client.list_topics(), timeout_s=PATIENCE_S, what=f"topic {TOPIC}")


def _delete(client: AdminClient) -> None:
    client.delete_topics([TOPIC]).raise_if_any()
    wait_until(lambda: TOPIC not in client.list_topics(), timeout_s=PATIENCE_S, what="the deletion")


def _write(cluster: KafkaCluster, count: int, *fault: int) -> None:
    """`count` records to each partition by Kafka's own producer, with the faults of `Records.java` at one number."""
    words = (cluster.bootstrap_servers, TOPIC, PARTITIONS, count, VALUE_BYTES, AT_MS, *fault)
    run(tool_command("3.9.1", str(Path(__file__).with_name("Records.java")), *map(str, words), quick=False))


def _partitions(client: AdminClient) -> list[AuditedPartition]:
    topic = client.describe_topics([TOPIC]).raise_if_any()[TOPIC]
    keys = sorted(part.topic_partition for part in topic.partitions)
    starts, ends = (client.list_offsets(keys, spec).raise_if_any() for spec in (OffsetSpec.EARLIEST, OffsetSpec.LATEST))
    return [AuditedPartition(*key, starts[key], ends[key], "delete", str(topic.topic_id)) for key in keys]


def _move(client: AdminClient) -> None:
    names = [TopicPartition(TOPIC, number) for number in range(PARTITIONS)]
    client.alter_partition_reassignments({name: ((name.partition + 1) % BROKERS,) for name in names}).raise_if_any()
    wait_until(lambda: not client.list_partition_reassignments(names), timeout_s=PATIENCE_S, what="the moves")
