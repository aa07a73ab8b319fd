"""A whole run on Kafka with ZooKeeper: throttled, limited, verified, and undone."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner, Result

from kreassign.cli.main import kreassign
from kreassign.cli.plan_files import write_plan
from kreassign.executor.events import MovesSubmitted
from kreassign.executor.journal import find_journals, read_events
from kreassign.model import ConfigChange, ConfigResource
from kreassign.model.plan import PartitionAssignment, Plan
from kreassign.model.throttle import BROKER_THROTTLES, LEADER_THROTTLED_RATE, LEADER_THROTTLED_REPLICAS, TOPIC_THROTTLES
from testbed import KafkaCluster
from testbed.records import load_topic, verify_readable
from testbed.waiting import wait_until
from tests.real.admin_checks import PATIENCE_S, client_of, created, partitions_of

MEGABYTE = 1_000_000
BEFORE = ((0, 1), (0, 1), (0, 1))
TARGETS = ((2, 3), (1, 2), (1, 0))


def invoke(cluster: KafkaCluster, command: str, *arguments: object) -> Result:
    options = [command, *map(str, arguments), "--bootstrap-server", cluster.bootstrap_servers]
    return CliRunner().invoke(kreassign, options)


def test_a_run_in_zookeeper_mode_moves_elects_restores_every_throttle_and_can_be_undone(
    zookeeper_mode: KafkaCluster, topic_name: str, tmp_path: Path
) -> None:
    plan, state = tmp_path / "plan.json", ("--state-dir", tmp_path / "state")
    with client_of(zookeeper_mode) as client:
        keys = created(client, topic_name, *BEFORE)
        acknowledged = load_topic(zookeeper_mode.bootstrap_servers, topic_name, dict.fromkeys(range(3), 4 * MEGABYTE))
        owners = [ConfigResource.topic(topic_name), *map(ConfigResource.broker, zookeeper_mode.brokers)]

        def throttles() -> dict[str, str | None]:
            found = client.describe_configs(owners, names=(*TOPIC_THROTTLES, *BROKER_THROTTLES)).raise_if_any()
            return {
                f"{owner} {name}": entry.value
                for owner, entries in found.items()
                for name, entry in entries.items()
                if entry.source.name.startswith("DYNAMIC")
            }

        client.incremental_alter_configs({
            owners[0]: [ConfigChange.set(LEADER_THROTTLED_REPLICAS, "99:0")],
            ConfigResource.broker(1): [ConfigChange.set(LEADER_THROTTLED_RATE, "12345678")],
        }).raise_if_any()  # fmt: skip
        # Brokers hear of settings by way of ZooKeeper, a moment later.
        wait_until(lambda: len(throttles()) == 2, timeout_s=PATIENCE_S, what="both throttles")
        before = throttles()
        write_plan(plan, Plan(tuple(map(PartitionAssignment, keys, TARGETS))))

        result = invoke(
            zookeeper_mode,
            "run",
            plan,
            *state,
            "--rates-over",
            0,
            "--throttle",
            "2MB/s",
            "--max-moves",
            1,
            "--format",
            "json",
        )
        assert result.exit_code == 0, result.output
        found = json.loads(result.stdout)
        assert (found["state"], found["problems"], found["throttle_residue"]) == ("done", [], [])
        assert tuple(part.replicas for part in partitions_of(client, topic_name)) == TARGETS
        assert [part.leader for part in partitions_of(client, topic_name)] == [2, 1, 1]
        assert throttles() == before
        (journal,) = find_journals(tmp_path / "state")
        submitted = [set(event.accepted) for event in read_events(journal) if isinstance(event, MovesSubmitted)]
        # The third copies nothing, and goes with whichever is first.
        assert {frozenset(keys[:2]) & step for step in submitted} == {frozenset(keys[:1]), frozenset(keys[1:2])}

        back = invoke(zookeeper_mode, "rollback", found["run_id"], *state)
        assert back.exit_code == 0, back.output
        assert tuple(part.replicas for part in partitions_of(client, topic_name)) == BEFORE
        assert throttles() == before
        verify_readable(zookeeper_mode.bootstrap_servers, acknowledged)
        client.incremental_alter_configs({
            owners[0]: [ConfigChange.delete(LEADER_THROTTLED_REPLICAS)],
            ConfigResource.broker(1): [ConfigChange.delete(LEADER_THROTTLED_RATE)],
        }).raise_if_any()  # fmt: skip
