"""A stream of metrics from a real Kafka into tables at an address, where its checkpoint is too."""

from __future__ import annotations

import json
import time
from collections.abc import Callable

import pytest
from deltalake.fs import DeltaStorageHandler
from pyarrow import fs

from kreassign.pipeline.ingest.metric_stream import CHECKPOINTS
from kreassign.pipeline.tables.access import BOUNDS, for_log
from kreassign.pipeline.tables.parquet import read_rows
from kreassign.pipeline.tables.schemas import METRICS, METRICS_QUARANTINE
from testbed import ClusterSpec, KafkaCluster
from testbed.jars import spark_kafka_jars
from testbed.records import Writer
from tests.s3.conftest import BUCKET, Store, jars

DATA, SAME = f"s3://{BUCKET}/stream", f"s3a://{BUCKET}/stream"
TOPIC = "records"

# They wait for Spark, Kafka and the store, one after the other.
pytestmark = pytest.mark.timeout(900)


@pytest.fixture
def kafka(start_cluster: Callable[[ClusterSpec], KafkaCluster]) -> KafkaCluster:
    return start_cluster(ClusterSpec(brokers=3))


def done(store: Store, *words: object) -> str:
    """Output of a successful command."""
    # Of jars that this variable names and those of --jars DIR Spark takes the former alone.
    paths = ",".join(map(str, [*jars(of_s3=True), *sorted(spark_kafka_jars().glob("*.jar"))]))
    finished = store.run(*map(str, words), PYSPARK_SUBMIT_ARGS=f"--jars {paths} pyspark-shell")
    assert finished.returncode == 0, finished.stdout[-2000:] + finished.stderr[-4000:]
    return finished.stdout


def test_a_stream_keeps_its_checkpoint_in_the_store(store: Store, kafka: KafkaCluster) -> None:
    kafka.create_topic(TOPIC, [[broker] for broker in sorted(kafka.brokers)])
    where = ("--bootstrap-server", kafka.bootstrap_servers, "--topic", TOPIC, "--cluster", "c")
    command = ("stream-metrics", *where, "--once", "--data")

    def send(*numbers: int) -> None:
        writer = Writer(kafka.bootstrap_servers, TOPIC)
        for number in numbers:
            metric = {"taken_ms": now_ms, "broker": number, "name": "bytes_in_per_s", "value": number}
            writer.send(number % 3, b"", json.dumps(metric).encode())
        writer.send(0, b"", b"rubbish")
        writer.close()

    now_ms = round(time.time() * 1000)
    send(*range(20))
    assert "records: 20 good, 1 quarantined" in done(store, *command, DATA)
    send(*range(20, 30))
    assert "records: 10 good, 1 quarantined" in done(store, *command, SAME)

    remove_folder(f"{DATA}/{CHECKPOINTS}")
    again = done(store, *command, DATA)
    assert "30 late" in again
    assert "good" not in again.splitlines()[-1]
    values = sorted(row["value"] for row in read_rows(DATA, METRICS))
    assert (values, len(read_rows(DATA, METRICS_QUARANTINE))) == ([*map(float, range(30))], 2)


def remove_folder(address: str) -> None:
    """Remove all objects below an address, of which there are some."""
    system = fs.PyFileSystem(DeltaStorageHandler(for_log(address), BOUNDS))
    found = [info.path for info in system.get_file_info(fs.FileSelector("", recursive=True))
             if info.type is fs.FileType.File]  # fmt: skip
    assert found
    for path in found:
        system.delete_file(path)
