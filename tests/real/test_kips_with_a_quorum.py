"""The design documents on real Kafka with a quorum: what holds with ZooKeeper too, and `--zookeeper` there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from testbed import KafkaCluster
from tests.real.admin_checks import client_of, wait_undisturbed
from tests.real.kip_checks import CHECKS, Check, tool
from tests.real.pacing_checks import PACING_CHECKS


@pytest.mark.parametrize("check", [*CHECKS, *PACING_CHECKS], ids=lambda check: check.__name__)
def test_with_a_quorum(check: Check, kafka: KafkaCluster, topic_name: str) -> None:
    with client_of(kafka) as client:
        wait_undisturbed(client)
        check(kafka, client, topic_name)


def test_with_quorum_brokers_named_zookeeper_is_ignored(kafka: KafkaCluster, topic_name: str, tmp_path: Path) -> None:
    kafka.create_topic(topic_name, [[0, 1]])
    plan = tmp_path / "plan.json"
    entry = {"topic": topic_name, "partition": 0, "replicas": [0, 1]}
    plan.write_text(json.dumps({"version": 1, "partitions": [entry]}), encoding="utf-8")
    words = ("--zookeeper", "127.0.0.1:1", "--bootstrap-server", kafka.bootstrap_servers, "--verify")
    done = tool("reassign_partitions", *words, "--reassignment-json-file", str(plan))
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout.startswith("Warning: ignoring deprecated --zookeeper option")
    assert f"Reassignment of partition {topic_name}-0 is completed." in done.stdout
