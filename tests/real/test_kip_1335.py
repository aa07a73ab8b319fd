"""KIP-1335 on real Kafka: the paced tool as a user starts it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from kreassign.model import TopicPartition
from testbed import KafkaCluster
from testbed.waiting import wait_until
from tests.real.admin_checks import client_of

COUNT = 5


def _execute(cluster: KafkaCluster, plan: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [
        sys.executable, "-m", "kreassign.cli.kafka.reassign_partitions", "--bootstrap-server",
        cluster.bootstrap_servers, "--execute", "--reassignment-json-file", str(plan), *options,
    ]  # fmt: skip
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize("incremental", [False, True], ids=["batches", "incremental"])
@pytest.mark.parametrize(("size", "steps"), [(1, 5), (3, 2), (50, 1)])
def test_a_plan_is_started_in_steps(
    kafka: KafkaCluster, tmp_path: Path, topic_name: str, size: int, steps: int, *, incremental: bool
) -> None:
    kafka.create_topic(topic_name, [[0, 1]] * COUNT)
    entries = [{"topic": topic_name, "partition": number, "replicas": [2, 1]} for number in reversed(range(COUNT))]
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps({"version": 1, "partitions": entries}), encoding="utf-8")
    options = ("--incremental",) if incremental else ()
    done = _execute(
        kafka, plan, "--reassignment-batch-size", str(size), "--reassignment-poll-interval-ms", "100", *options
    )
    assert (done.returncode, done.stderr) == (0, "")
    started = [line for line in done.stdout.splitlines() if line.startswith("Started partition reassignment")]
    assert len(started) >= steps if incremental else len(started) == steps
    names = [name for line in started for name in line.partition(" for ")[2].partition(" (")[0].split(",")]
    assert names == [f"{topic_name}-{number}" for number in range(COUNT)]
    with client_of(kafka) as client:
        keys = [TopicPartition(topic_name, number) for number in range(COUNT)]
        wait_until(lambda: not client.list_partition_reassignments(keys), timeout_s=30, what="all moves")
    wait_until(
        lambda: [one.replicas for one in kafka.describe_topic(topic_name)] == [(2, 1)] * COUNT,
        timeout_s=20,
        what="every target",
    )


def test_size_0_is_the_legacy_path(kafka: KafkaCluster, tmp_path: Path, topic_name: str) -> None:
    kafka.create_topic(topic_name, [[0, 1]])
    plan = tmp_path / "plan.json"
    entry = {"topic": topic_name, "partition": 0, "replicas": [2, 1]}
    plan.write_text(json.dumps({"version": 1, "partitions": [entry]}), encoding="utf-8")
    done = _execute(kafka, plan, "--reassignment-batch-size", "0")
    assert done.returncode == 0
    assert "Started partition" not in done.stdout
    assert done.stdout.endswith(f"Successfully started partition reassignment for {topic_name}-0\n")
