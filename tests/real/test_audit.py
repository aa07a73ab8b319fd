"""Audits of records on real Kafka, read through Spark: a move keeps them all, and what is tampered with is found."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka import KafkaProducer

from kreassign.admin import AdminClient
from kreassign.model import NewTopic, TopicPartition
from testbed import KafkaCluster
from testbed.jars import spark_kafka_jars
from tests.real.admin_checks import client_of, wait_everywhere, wait_idle

pytestmark = pytest.mark.spark

COUNT = 200
AT_MS = 1_700_000_000_000


# Audits of one test share a process: what Java has compiled for one serves the next.
PROGRAM = """
import json, sys
from kreassign.cli.main import kreassign
for line in sys.stdin:
    try:
        kreassign.main(json.loads(line), prog_name="kreassign")
    except SystemExit as ended:
        print(f"exit {ended.code}", flush=True)
"""


class Auditor:
    """`kreassign audit` for one topic of a cluster."""

    def __init__(self, cluster: KafkaCluster, topic: str, data: Path) -> None:
        self.cluster, self.topic, self.data = cluster, topic, data
        self._process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def read(self, label: str) -> str:
        code, told = self._audit(
            "records", "--label", label, "--topics", self.topic, "--jars", spark_kafka_jars(),
            "--bootstrap-server", self.cluster.bootstrap_servers,
        )  # fmt: skip
        assert code == 0, told
        return told

    def compare(self) -> dict[int, dict[str, object]]:
        """The rows by partition."""
        code, told = self._audit("compare", "before", "after", "--format", "json")
        rows = json.loads(told)["partitions"]
        assert code == (0 if all(row["verdict"] == "same" for row in rows) else 1)
        return {row["partition"]: row for row in rows}

    def close(self) -> None:
        """End the process."""
        self._process.communicate(timeout=60)

    def _audit(self, *words: object) -> tuple[int, str]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        where = ["--data", str(self.data), "--master", "local[2]"]
        self._process.stdin.write(json.dumps(["audit", *map(str, words), *where]) + "\n")
        self._process.stdin.flush()
        told = []
        for line in self._process.stdout:
            if line.startswith("exit "):
                return int(line.removeprefix("exit ")), "".join(told)
            told.append(line)
        raise AssertionError(f"the audit ended: {told}")


@pytest.fixture
def auditor(kafka: KafkaCluster, topic_name: str, tmp_path: Path) -> Iterator[Auditor]:
    auditor = Auditor(kafka, topic_name, tmp_path)
    yield auditor
    auditor.close()


@pytest.fixture
def admin(kafka: KafkaCluster) -> Iterator[AdminClient]:
    with client_of(kafka) as client:
        yield client


def fill(auditor: Auditor, partitions: dict[int, list[int]]) -> None:
    """Write records with these numbers to each partition, the number of a record deciding all that is in it."""
    producer = KafkaProducer(bootstrap_servers=auditor.cluster.bootstrap_servers, acks="all")
    for partition, numbers in partitions.items():
        for number in numbers:
            text = f"{number}".encode()
            headers = [("trace", text), ("source", b"test")]
            at_ms = AT_MS + number
            producer.send(auditor.topic, b"value " + text, text, headers, partition=partition, timestamp_ms=at_ms)
    producer.flush()
    producer.close()


def made(admin: AdminClient, auditor: Auditor, count: int) -> None:
    lists = tuple((number % 3, (number + 1) % 3) for number in range(count))
    configs = {"message.timestamp.before.max.ms": str(2**62), "retention.ms": "-1"}
    admin.create_topics([NewTopic(auditor.topic, assignments=lists, configs=configs)]).raise_if_any()
    wait_everywhere(admin, auditor.topic, lambda found: len(found) == count, what=f"{auditor.topic} created")


def test_a_move_between_brokers_keeps_every_record_while_more_are_written(auditor: Auditor, admin: AdminClient) -> None:
    made(admin, auditor, 2)
    fill(auditor, {0: list(range(COUNT)), 1: list(range(COUNT))})
    assert f"before: {2 * COUNT} records of 2 partitions" in auditor.read("before")

    first = TopicPartition(auditor.topic, 0)
    admin.alter_partition_reassignments({first: (2, 0)}).raise_if_any()
    fill(auditor, {0: [COUNT]})
    wait_idle(admin, first)

    auditor.read("after")
    rows = auditor.compare()
    assert [(row["verdict"], row["record_count"], row["appended"]) for row in rows.values()] == [
        ("same", COUNT, 1),
        ("same", COUNT, 0),
    ]


def test_one_record_lost_duplicated_altered_or_out_of_order_is_found(auditor: Auditor, admin: AdminClient) -> None:
    made(admin, auditor, 5)
    whole = list(range(COUNT))
    fill(auditor, dict.fromkeys(range(5), whole))
    auditor.read("before")

    admin.delete_topics([auditor.topic]).raise_if_any()
    wait_everywhere(admin, auditor.topic, lambda found: not found, what=f"{auditor.topic} deleted")
    made(admin, auditor, 5)
    lost, duplicated, altered, swapped = (list(whole) for _ in range(4))
    del lost[50]
    duplicated.insert(60, 60)
    altered[70] = 1_000
    swapped[80], swapped[81] = swapped[81], swapped[80]
    fill(auditor, {0: lost, 1: duplicated, 2: altered, 3: swapped, 4: whole})
    auditor.read("after")

    found = auditor.compare()
    problems = ("lost", "duplicated", "altered", "displaced", "added", "first_offset")
    assert {number: [row[name] for name in problems] for number, row in found.items()} == {
        0: [1, 0, 0, COUNT - 51, 0, 50],
        1: [0, 1, 0, COUNT - 61, 0, 61],
        2: [0, 0, 1, 0, 0, 70],
        3: [0, 0, 0, 2, 0, 80],
        4: [0, 0, 0, 0, 0, None],
    }
    assert {str(row["verdict"]).partition(",")[0] for row in found.values()} == {"another topic of the same name"}
