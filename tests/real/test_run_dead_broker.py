"""A run on real Kafka one of whose brokers dies."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from testbed import KafkaCluster
from testbed.waiting import wait_until
from tests.real.run_processes import start_run
from tests.real.test_run import (
    MEGABYTE,
    assignments,
    client_of,
    loaded,
    plan_file,
    throttles,
    wait_for_copies,
)

pytestmark = pytest.mark.usefixtures("calm")


def test_a_dead_destination_fails_its_own_move_and_the_controller_takes_back_its_throttle(
    kafka: KafkaCluster, topic_name: str, tmp_path: Path
) -> None:
    loaded(kafka, topic_name, [(0, 1), (1, 0)], 3 * MEGABYTE)
    plan = plan_file(tmp_path, topic_name, {0: (3, 1), 1: (2, 0)})
    reach = ("--bootstrap-controller", kafka.bootstrap_controllers, "--format", "json")
    process = start_run(kafka, tmp_path, plan, "--throttle", "100kB/s", *reach)
    try:
        wait_for_copies(tmp_path)
        kafka.brokers[3].kill()
        stdout, stderr = process.communicate(timeout=240)
        assert process.returncode == 5, stderr
        found = json.loads(stdout)
        assert {move["partition"]: move["status"] for move in found["moves"]} == {0: "failed", 1: "complete"}
        assert "destinations [3] have been down" in found["moves"][0]["problem"]
        assert "broker 3 is down: the controller took the values that it had before the run" in found["problems"]
        assert found["throttle_residue"] == []
    finally:
        process.kill()
        process.communicate()
        kafka.brokers[3].start()
        kafka.wait_ready()
    with client_of(kafka) as client:
        wait_until(lambda: 3 in client.describe_cluster().broker_ids, timeout_s=60, what="broker 3 to be back")
    assert throttles(kafka, topic_name) == {}
    found_replicas = assignments(kafka, topic_name)
    assert (set(found_replicas[0]), found_replicas[1]) == ({0, 1}, (2, 0))
