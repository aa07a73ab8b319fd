"""A stream of metrics from real Kafka, killed in the middle: nothing is lost and nothing comes twice."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import pytest

from kreassign.pipeline.tables.parquet import has_table, read_rows
from kreassign.pipeline.tables.schemas import METRICS
from testbed import KafkaCluster, Listener
from testbed.jars import spark_kafka_jars
from testbed.processes import ProcessGroup
from testbed.properties import render
from testbed.records import Writer
from testbed.security import USERS
from testbed.waiting import wait_until

pytestmark = [pytest.mark.spark, pytest.mark.timeout(420)]

START_S = 200.0
_PROGRAM = "from kreassign.cli.main import main; main()"


def streaming(bootstrap: str, topic: str, data: Path, *options: str) -> list[str]:
    """The command line that reads the topic into the data directory."""
    command = [sys.executable, "-c", _PROGRAM, "stream-metrics", "--bootstrap-server", bootstrap, "--data", str(data)]
    own = ["--topic", topic, "--cluster", "c", "--jars", str(spark_kafka_jars()), "--master", "local[2]", *options]
    return [*command, *own]


def send(bootstrap: str, topic: str, numbers: range) -> None:
    writer = Writer(bootstrap, topic)
    now_ms = round(time.time() * 1000)
    for number in numbers:
        metric = {"taken_ms": now_ms, "broker": number, "name": "cpu_share", "value": number}
        writer.send(number % 2, b"", json.dumps(metric).encode())
    writer.close()


def values(data: Path) -> list[float]:
    return sorted(row["value"] for row in read_rows(data, METRICS)) if has_table(data, METRICS) else []


def test_a_killed_stream_goes_on_with_every_record_exactly_once(
    kafka: KafkaCluster, topic_name: str, tmp_path: Path
) -> None:
    brokers = sorted(kafka.brokers)
    kafka.create_topic(topic_name, [[brokers[0]], [brokers[1]]])
    send(kafka.bootstrap_servers, topic_name, range(300))
    data, command = tmp_path / "data", streaming(kafka.bootstrap_servers, topic_name, tmp_path / "data")
    killed = ProcessGroup()
    running = killed.spawn(command, log=tmp_path / "log")
    try:
        wait_until(lambda: any((data / "metrics").rglob("*.parquet")), timeout_s=START_S, what="a batch")
        send(kafka.bootstrap_servers, topic_name, range(300, 600))
    finally:
        killed.close()  # Java too, which is what does the work
        running.wait(20)
    send(kafka.bootstrap_servers, topic_name, range(600, 700))
    second = ProcessGroup()
    finished = second.run([*command, "--once"], timeout_s=START_S)
    second.close()
    assert finished.exit_code == 0, finished.stderr
    assert values(data) == [float(number) for number in range(700)]


def test_a_topic_of_a_cluster_with_passwords_and_tls_is_streamed_and_no_password_is_told(
    kafka_secure: KafkaCluster, topic_name: str, tmp_path: Path
) -> None:
    kafka_secure.create_topic(topic_name, [[0], [1]])
    send(kafka_secure.bootstrap_servers, topic_name, range(50))
    properties, data = tmp_path / "client.properties", tmp_path / "data"
    entry = kafka_secure.client_properties(Listener.SASL_SSL, mechanism="SCRAM-SHA-256")
    properties.write_text(render(entry), encoding="iso-8859-1")
    command = streaming(kafka_secure.bootstrap(Listener.SASL_SSL), topic_name, data, "--once")
    group = ProcessGroup()
    finished = group.run([*command, "--command-config", str(properties)], timeout_s=START_S)
    group.close()
    assert finished.exit_code == 0, finished.stderr
    assert values(data) == [float(number) for number in range(50)]
    kept = [file for file in data.rglob("*") if file.is_file() and USERS["admin"].encode() in file.read_bytes()]
    assert not kept, "neither Spark's log nor the state of the stream is to hold it"
    assert USERS["admin"] not in finished.stdout + finished.stderr
