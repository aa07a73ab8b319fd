"""A topic that was deleted and created again on real Kafka is another one: no run, resume or rollback touches it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner

from kreassign.cli.main import kreassign
from kreassign.executor.journal import find_journals
from kreassign.model import ConfigChange, ConfigResource
from kreassign.model.throttle import LEADER_THROTTLED_REPLICAS
from testbed import KafkaCluster
from testbed.waiting import wait_until
from tests.conformance.clusters import Cluster, RealKafka
from tests.conformance.test_configs import TOPIC, describe
from tests.real.admin_checks import created, wait_everywhere
from tests.real.run_processes import start_run
from tests.real.test_run import (
    HELD,
    HELD_RATE,
    MEGABYTE,
    assignments,
    client_of,
    end_of,
    invoke,
    leaders,
    loaded,
    plan_file,
    throttles,
    wait_for_copies,
)

pytestmark = pytest.mark.usefixtures("calm")

HOME = {0: (0, 1), 1: (1, 0)}
AWAY = {0: (2, 1), 1: (3, 0)}
ANOTHER = "another one created under its name"


def recreate(cluster: KafkaCluster, topic: str, lists: Mapping[int, tuple[int, ...]]) -> None:
    with client_of(cluster) as client:
        client.delete_topics([topic]).raise_if_any()
        wait_everywhere(client, topic, lambda found: not found, what=f"{topic} deleted")
        created(client, topic, *lists.values())


def is_untouched(cluster: KafkaCluster, topic: str, lists: Mapping[int, tuple[int, ...]]) -> bool:
    """Replicas in their order, led as they were made, and nothing under way."""
    with client_of(cluster) as client:
        ongoing = client.list_partition_reassignments()
    first = {number: replicas[0] for number, replicas in lists.items()}
    return (assignments(cluster, topic), leaders(cluster, topic), ongoing) == (lists, first, {})


def test_a_plan_for_a_topic_that_was_recreated_since_is_refused(
    kafka: KafkaCluster, topic_name: str, tmp_path: Path
) -> None:
    loaded(kafka, topic_name, list(HOME.values()), 1_000)
    snapshot, plan, wanted = tmp_path / "snapshot.json", tmp_path / "made.json", plan_file(tmp_path, topic_name, AWAY)
    made = invoke(kafka, "snapshot", "--out", snapshot, "--measure-for", 0)
    assert made.exit_code == 0, made.output
    planned = CliRunner().invoke(
        kreassign, ["plan", "restore", str(wanted), "--snapshot", str(snapshot), "--out", str(plan)]
    )
    assert planned.exit_code == 0, planned.output
    recreate(kafka, topic_name, HOME)
    refused = invoke(kafka, "run", "--yes", plan, "--state-dir", tmp_path / "state")
    assert refused.exit_code == 2, refused.output
    assert f"topic {topic_name} is not the one that the plan was made for" in refused.stderr
    assert find_journals(tmp_path / "state") == ()
    assert is_untouched(kafka, topic_name, HOME)


def test_a_topic_recreated_during_a_run_stays_as_created(kafka: KafkaCluster, topic_name: str, tmp_path: Path) -> None:
    """One of its partitions is copied, the other one waits."""
    loaded(kafka, topic_name, list(HOME.values()), HELD, MEGABYTE)
    plan = plan_file(tmp_path, topic_name, AWAY)
    process = start_run(kafka, tmp_path, plan, "--throttle", HELD_RATE, "--max-moves", 1)
    wait_for_copies(tmp_path)
    recreate(kafka, topic_name, HOME)
    assert ANOTHER in end_of(process, exit_code=5)
    assert is_untouched(kafka, topic_name, HOME)
    assert throttles(kafka, topic_name) == {}


def test_a_restarted_broker_shows_configs_of_a_former_topic(kafka: KafkaCluster, topic_name: str) -> None:
    """Kafka's own, docs/design/non-obvious.md 62: whoever reads settings of such a topic cannot take them for new."""
    loaded(kafka, topic_name, list(HOME.values()), 1_000)
    resource, key = ConfigResource.topic(topic_name), LEADER_THROTTLED_REPLICAS
    with client_of(kafka) as client:
        client.incremental_alter_configs({resource: [ConfigChange.set(key, "0:0")]}).raise_if_any()
    recreate(kafka, topic_name, HOME)
    node = kafka.brokers[3]
    node.stop()
    node.start()
    with Cluster(RealKafka(kafka), topic_name) as cluster:

        def shown() -> str:
            return describe(cluster, TOPIC, topic_name, key, node=node.id)[1][key].value

        assert shown() == "0:0"
        # The controller has nothing that it could delete; what it has, brokers show.
        client = cluster.client
        client.incremental_alter_configs({resource: [ConfigChange.delete(key)]}).raise_if_any()
        assert shown() == "0:0"
        client.incremental_alter_configs({resource: [ConfigChange.set(key, "1:1")]}).raise_if_any()
        wait_until(lambda: shown() == "1:1", what="what is set at the broker")
        client.incremental_alter_configs({resource: [ConfigChange.delete(key)]}).raise_if_any()
        wait_until(lambda: shown() == "", what="what is deleted at the broker")
