"""A whole run on Kafka with ZooKeeper: throttled, limited, verified, and undone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kreassign.executor.events import MovesSubmitted
from kreassign.executor.journal import find_journals, read_events
from kreassign.model import ConfigResource, TopicPartition
from kreassign.model.throttle import LEADER_THROTTLED_RATE, LEADER_THROTTLED_REPLICAS
from testbed import KafkaCluster
from testbed.records import verify_readable
from testbed.waiting import wait_until
from tests.real.test_run import MEGABYTE, assignments, invoke, leaders, loaded, plan_file, set_config, throttles

pytestmark = pytest.mark.usefixtures("calm")

BEFORE = {0: (0, 1), 1: (0, 1), 2: (0, 1)}
TARGETS = {0: (2, 3), 1: (1, 2), 2: (1, 0)}


def test_a_run_with_zookeeper_elects_restores_and_can_be_undone(
    zookeeper_mode: KafkaCluster, topic_name: str, tmp_path: Path
) -> None:
    state = ("--state-dir", tmp_path / "state")
    acknowledged = loaded(zookeeper_mode, topic_name, tuple(BEFORE.values()), 4 * MEGABYTE)
    topic, broker = ConfigResource.topic(topic_name), ConfigResource.broker(1)
    set_config(zookeeper_mode, topic, LEADER_THROTTLED_REPLICAS, "99:0")
    set_config(zookeeper_mode, broker, LEADER_THROTTLED_RATE, "12345678")
    # Brokers hear of settings by way of ZooKeeper, a moment later.
    wait_until(lambda: len(throttles(zookeeper_mode, topic_name)) == 2, what="both throttles")
    before = throttles(zookeeper_mode, topic_name)
    plan = plan_file(tmp_path, topic_name, TARGETS)

    pace = ("--measure-for", 0, "--throttle", "2MB/s", "--max-moves", 1, "--adopt", "restore")
    result = invoke(zookeeper_mode, "run", "--yes", plan, *state, *pace, "--format", "json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert (found["state"], found["problems"], found["throttle_residue"]) == ("done", [], [])
    assert assignments(zookeeper_mode, topic_name) == TARGETS
    assert leaders(zookeeper_mode, topic_name) == {0: 2, 1: 1, 2: 1}
    assert throttles(zookeeper_mode, topic_name) == before
    (journal,) = find_journals(tmp_path / "state")
    submitted = [set(event.accepted) for event in read_events(journal) if isinstance(event, MovesSubmitted)]
    # The third copies nothing, and goes with whichever is first.
    copying = {TopicPartition(topic_name, number) for number in (0, 1)}
    assert {frozenset(copying & step) for step in submitted} == {frozenset({key}) for key in copying}

    back = invoke(zookeeper_mode, "rollback", "--yes", found["run_id"], *state)
    assert back.exit_code == 0, back.output
    assert assignments(zookeeper_mode, topic_name) == BEFORE
    assert throttles(zookeeper_mode, topic_name) == before
    verify_readable(zookeeper_mode.bootstrap_servers, acknowledged)
    set_config(zookeeper_mode, topic, LEADER_THROTTLED_REPLICAS, None)
    set_config(zookeeper_mode, broker, LEADER_THROTTLED_RATE, None)
