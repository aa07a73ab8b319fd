"""What a second operator can do to a run: to its settings, to its moves, to its topics."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence

from kreassign.model import ConfigChange, ConfigResource, NewPartitions, TopicPartition
from kreassign.model.throttle import (
    BROKER_THROTTLES,
    FOLLOWER_THROTTLED_RATE,
    LEADER_THROTTLED_RATE,
    clear_broker_changes,
    clear_topic_changes,
)
from tests.torture.scene import BYSTANDER, TOPIC, Scene, recreate

FOREIGN_RATE = "900000000"
REASSIGN_TOOL = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"


def while_dead(strike: Callable[[Scene], str]) -> Callable[[Scene], str]:
    """The same while no process of the run lives: it can only be seen when the run is resumed."""

    def struck(scene: Scene) -> str:
        if scene.run is None or not scene.is_running() or not scene.moving():
            return ""
        scene.run.kill()
        scene.run.wait()
        said = strike(scene)
        return f"SIGKILL to the run, and then {said}" if said else ""

    return struck


def cancel_move(scene: Scene) -> str:
    moving = [each for each in scene.moving() if each.topic == TOPIC]
    if not moving:
        return ""
    chosen = scene.chance.choice(moving)
    with scene.client() as client:
        gone = client.alter_partition_reassignments({chosen: None})
    return f"{chosen} cancelled by somebody else" if gone.ok else ""


def override_move(scene: Scene) -> str:
    moving = [each for each in scene.moving() if each.topic == TOPIC]
    if not moving:
        return ""
    chosen = scene.chance.choice(moving)
    spare = sorted(set(scene.cluster.brokers) - set(scene.targets[chosen]))
    elsewhere = (*scene.targets[chosen][:-1], scene.chance.choice(spare))
    with scene.client() as client:
        done = client.alter_partition_reassignments({chosen: elsewhere}, warns_of_overrides=False)
    return f"{chosen} sent elsewhere by somebody else" if done.ok else ""


def clear_rates(scene: Scene) -> str:
    """As `kafka-reassign-partitions --cancel` of any plan does: all rates of all brokers."""
    return _configure(scene, clear_broker_changes(scene.cluster.brokers), "all rates gone")


def cancel_another_by_kafkas_tool(scene: Scene) -> str:
    """`kafka-reassign-partitions --cancel` of a plan that has nothing to do with the run: all rates of all brokers."""
    partition = TopicPartition(BYSTANDER, 1)
    plan = {
        "topic": partition.topic,
        "partition": partition.partition,
        "replicas": scene.replicas(BYSTANDER)[partition],
    }
    path = scene.folder / "cancelled.json"
    path.write_text(json.dumps({"version": 1, "partitions": [plan]}))
    if not scene.moving():
        return ""
    words = ("--bootstrap-server", scene.cluster.bootstrap_servers, "--reassignment-json-file", str(path), "--cancel")
    is_done = scene.cluster.java_tool(REASSIGN_TOOL, *words).exit_code == 0
    return "another plan cancelled by Kafka's own tool" if is_done and scene.moving() else ""


def raise_rates(scene: Scene) -> str:
    changes = [ConfigChange.set(key, FOREIGN_RATE) for key in (LEADER_THROTTLED_RATE, FOLLOWER_THROTTLED_RATE)]
    broker = scene.chance.choice(sorted(scene.cluster.brokers))
    if f"broker {broker} {LEADER_THROTTLED_RATE}" not in scene.throttles():
        return ""
    if scene.is_running():
        scene.repair_after(20, lambda: _clear_foreign(scene, broker))
    return _configure(scene, {ConfigResource.broker(broker): changes}, f"rates of broker {broker} raised")


def _clear_foreign(scene: Scene, broker: int) -> None:
    """The second operator takes back what is still theirs."""
    with scene.client() as client:
        resource = ConfigResource.broker(broker)
        found = client.describe_configs([resource], names=BROKER_THROTTLES).raise_if_any()[resource]
        theirs = [key for key, entry in found.items() if entry.value == FOREIGN_RATE]
        if theirs:
            client.incremental_alter_configs({resource: [ConfigChange.delete(key) for key in theirs]})


def clear_lists(scene: Scene) -> str:
    return _configure(scene, clear_topic_changes([TOPIC]), f"throttled replicas of {TOPIC} gone")


def _configure(scene: Scene, changes: Mapping[ConfigResource, Sequence[ConfigChange]], what: str) -> str:
    if not scene.moving():
        return ""
    with scene.client() as client:
        client.incremental_alter_configs(changes).raise_if_any()
    # Only what was struck while something moves has to be told.
    return what if scene.moving() else ""


def recreate_topic(scene: Scene) -> str:
    with scene.client() as client:
        recreate(client)
    return "a topic of the plan deleted and made again"


def add_partitions(scene: Scene) -> str:
    with scene.client() as client:
        (found,) = client.describe_topics([BYSTANDER]).raise_if_any().values()
        client.create_partitions({BYSTANDER: NewPartitions(len(found.partitions) + 1)}).raise_if_any()
    return f"partitions added to {BYSTANDER}"


def move_another(scene: Scene) -> str:
    """A move of a partition that the plan does not name."""
    partition = TopicPartition(BYSTANDER, 0)
    replicas = scene.replicas(BYSTANDER)[partition]
    spare = sorted(set(scene.cluster.brokers) - set(replicas))
    with scene.client() as client:
        client.alter_partition_reassignments(
            {partition: (*replicas[1:], scene.chance.choice(spare))}, warns_of_overrides=False
        )
    return f"{partition} moved by somebody else"


def second_run(scene: Scene) -> str:
    """The same plan from another machine: it must be refused, or at least change nothing of ours."""
    refused = scene.kreassign(
        "run", "--yes", scene.folder / "plan.json", "--throttle", "5MB/s", "--measure-for", 0,
        "--state-dir", scene.folder / "elsewhere", "--bootstrap-server", scene.cluster.bootstrap_servers,
    )  # fmt: skip
    if refused.exit_code == 0:
        scene.untrue.append("a second run of the same plan was let in")
    return "a second run of the plan from another machine"
