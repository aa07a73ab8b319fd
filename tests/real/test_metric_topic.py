"""A stream of metrics from real Kafka, killed in the middle: nothing is lost and nothing comes twice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kreassign.pipeline.rows import has_table, read_rows
from kreassign.pipeline.schemas import METRICS
from testbed import KafkaCluster
from testbed.records import Writer
from testbed.waiting import wait_until

pytestmark = [pytest.mark.spark, pytest.mark.timeout(280)]

JARS = Path("build/jvm/spark-kafka-4.0.0")
START_S = 120.0
_PROGRAM = "from kreassign.cli.main import main; main()"


def streaming(bootstrap: str, topic: str, data: Path, *options: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", _PROGRAM, "stream-metrics", "--bootstrap-server", bootstrap, "--data", str(data)]
    own = ["--topic", topic, "--cluster", "c", "--jars", str(JARS.resolve()), "--master", "local[2]", *options]
    environment = os.environ | {"SPARK_SUBMIT_OPTS": "-XX:TieredStopAtLevel=1"}
    return subprocess.Popen([*command, *own], env=environment, stdout=subprocess.DEVNULL, start_new_session=True)


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
    if not JARS.is_dir():
        pytest.skip("the jars of Spark's Kafka source are not there: make jars")
    brokers = sorted(kafka.brokers)
    kafka.create_topic(topic_name, [[brokers[0]], [brokers[1]]])
    send(kafka.bootstrap_servers, topic_name, range(300))
    running = streaming(kafka.bootstrap_servers, topic_name, tmp_path)
    try:
        wait_until(lambda: any((tmp_path / "metrics").rglob("*.parquet")), timeout_s=START_S, what="a batch")
        send(kafka.bootstrap_servers, topic_name, range(300, 600))
    finally:
        os.killpg(running.pid, signal.SIGKILL)  # Java too, which is what does the work
        running.wait(20)
    send(kafka.bootstrap_servers, topic_name, range(600, 700))
    assert streaming(kafka.bootstrap_servers, topic_name, tmp_path, "--once").wait(START_S) == 0
    assert values(tmp_path) == [float(number) for number in range(700)]
