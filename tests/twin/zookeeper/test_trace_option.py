"""`kreassign twin start --zookeeper … --trace`: what the controller of a served twin sends, line by line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kreassign.model.znodes import paths
from kreassign.model.znodes.contents import format_reassignments
from testbed import KafkaCluster
from tests.twin.zookeeper.test_real_zookeeper import FOO, served

pytestmark = pytest.mark.kafka


def lines(file: Path) -> list[dict[str, Any]]:
    """The requests in a trace."""
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def test_a_move_can_be_read_in_the_trace(kafka_zookeeper: KafkaCluster, tmp_path: Path, topic_name: str) -> None:
    file = tmp_path / "trace.jsonl"
    address = f"{kafka_zookeeper.zookeeper_connect}/{topic_name}"
    with served(address, tmp_path, "--trace", str(file)) as twin:
        twin.znodes.create(paths.REASSIGN_PARTITIONS, format_reassignments({FOO: (2, 1)}))
        twin.wait_for((2, 1))
    told = [one for one in lines(file) if one["api"] == "LeaderAndIsr" and one["to"] == 2]
    states = [one["body"]["topicStates"][0]["partitionStates"][0] for one in told]
    assert [(one["addingReplicas"], one["removingReplicas"], one["isNew"]) for one in states] == [
        ([2], [0], True), ([2], [0], True), ([], [], False), ([], [], False)
    ]  # fmt: skip
    stopped = [one for one in lines(file) if one["api"] == "StopReplica"]
    assert [(one["to"], one["controllerEpoch"], one["version"]) for one in stopped] == [(0, 1, 4)] * 2
    assert {one["to"] for one in lines(file) if one["api"] == "UpdateMetadata"} == {0, 1, 2, 3}
