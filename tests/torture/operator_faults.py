"""What a second operator can do to a run: to its settings, to its moves, to its topics."""

from __future__ import annotations

from collections.abc import Callable

from kreassign.model import ConfigChange, ConfigResource, TopicPartition
from kreassign.model.throttle import (
    BROKER_THROTTLES,
    FOLLOWER_THROTTLED_RATE,
    LEADER_THROTTLED_RATE,
    TOPIC_THROTTLES,
)
from testbed.waiting import wait_until
from tests.torture.kafkas_tools import delete_configs, reassign, set_configs, topics
from tests.torture.scene import BYSTANDER, RECREATED, RECREATED_PARTITIONS, TOPIC, Scene, first_replicas

FOREIGN_RATE = "900000000"
CALM_S = 45.0


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
    """`kafka-reassign-partitions --cancel` of a move of the run."""
    chosen = _moving(scene)
    if chosen is None:
        return ""
    done = reassign(scene, {chosen: scene.targets[chosen]}, "--cancel", "--preserve-throttles")
    return f"{chosen} cancelled by somebody else" if "Successfully cancelled" in done.stdout else ""


def override_move(scene: Scene) -> str:
    """`kafka-reassign-partitions --execute --additional` of another plan for a partition that moves."""
    chosen = _moving(scene)
    if chosen is None:
        return ""
    spare = sorted(set(scene.cluster.brokers) - set(scene.targets[chosen]) - scene.lost)
    elsewhere = (*scene.targets[chosen][:-1], scene.chance.choice(spare))
    done = reassign(scene, {chosen: elsewhere}, "--execute", "--additional")
    if done.exit_code:
        return ""
    said = f"{chosen} sent elsewhere by somebody else"
    if scene.is_complete(chosen):
        # It had come to its end before: it was no move of the run any more.
        scene.needless.add(said)
    return said


def _moving(scene: Scene) -> TopicPartition | None:
    moving = [each for each in scene.moving() if each.topic == TOPIC]
    return scene.chance.choice(moving) if moving else None


def clear_rates(scene: Scene) -> str:
    """`kafka-configs --delete-config` of all rates of all brokers."""
    if not scene.moving():
        return ""
    there = sorted(set(scene.cluster.brokers) - scene.lost)
    are_gone = [delete_configs(scene, "broker", broker, BROKER_THROTTLES) for broker in there]
    return "all rates gone" if any(are_gone) and scene.moving() else ""


def cancel_another(scene: Scene) -> str:
    """`kafka-reassign-partitions --cancel` of a plan that has nothing to do with the run: all rates of all brokers."""
    if not scene.moving():
        return ""
    is_done = reassign(scene, _bystander(scene), "--cancel").exit_code == 0
    return "another plan cancelled by Kafka's own tool" if is_done and scene.moving() else ""


def verify_away(scene: Scene) -> str:
    """`kafka-reassign-partitions --verify` of another plan: all rates of all brokers, once nothing moves."""

    def is_calm() -> bool:
        with scene.client() as client:
            return not client.list_partition_reassignments()

    wait_until(is_calm, timeout_s=CALM_S, what="nothing moves", every_s=0.5)
    if not any(key.startswith("broker ") for key in scene.throttles()):
        return ""
    done = reassign(scene, _bystander(scene), "--verify")
    return "all rates removed by Kafka's --verify of another plan" if "Clearing broker" in done.stdout else ""


def _bystander(scene: Scene) -> dict[TopicPartition, tuple[int, ...]]:
    partition = TopicPartition(BYSTANDER, 1)
    return {partition: scene.replicas(BYSTANDER)[partition]}


def raise_rates(scene: Scene) -> str:
    """`kafka-configs --add-config` of a much higher rate of one broker."""
    set_now = scene.throttles()
    broker = scene.chance.choice(sorted(set(scene.cluster.brokers) - scene.lost))
    if f"broker {broker} {LEADER_THROTTLED_RATE}" not in set_now:
        return ""
    if scene.is_running():
        scene.repair_after(20, lambda: _clear_foreign(scene, broker))
    values = dict.fromkeys((LEADER_THROTTLED_RATE, FOLLOWER_THROTTLED_RATE), FOREIGN_RATE)
    is_done = set_configs(scene, "broker", broker, values)
    # Only what was struck while something moves has to be told.
    return f"rates of broker {broker} raised" if is_done and scene.moving() else ""


def _clear_foreign(scene: Scene, broker: int) -> None:
    """The second operator takes back what is still theirs."""
    with scene.client() as client:
        resource = ConfigResource.broker(broker)
        found = client.describe_configs([resource], names=BROKER_THROTTLES).raise_if_any()[resource]
        theirs = [key for key, entry in found.items() if entry.value == FOREIGN_RATE]
        if theirs:
            client.incremental_alter_configs({resource: [ConfigChange.delete(key) for key in theirs]})


def clear_lists(scene: Scene) -> str:
    """`kafka-configs --delete-config` of the lists of throttled replicas."""
    if not scene.moving() or not delete_configs(scene, "topic", TOPIC, TOPIC_THROTTLES):
        return ""
    return f"throttled replicas of {TOPIC} gone" if scene.moving() else ""


def recreate_topic(scene: Scene) -> str:
    """`kafka-topics --delete` and `--create` with the same replicas."""
    assignment = ",".join(":".join(map(str, replicas)) for replicas in first_replicas(RECREATED_PARTITIONS))
    if topics(scene, "--delete", "--topic", RECREATED).exit_code:
        return ""
    words = ("--create", "--topic", RECREATED, "--replica-assignment", assignment, "--config", "min.insync.replicas=2")
    wait_until(lambda: topics(scene, *words).exit_code == 0, timeout_s=60, what=f"{RECREATED} created again", every_s=1)
    return "a topic of the plan deleted and made again"


def add_partitions(scene: Scene) -> str:
    """`kafka-topics --alter --partitions`."""
    count = len(scene.replicas(BYSTANDER)) + 1
    done = topics(scene, "--alter", "--topic", BYSTANDER, "--partitions", count)
    return f"partitions added to {BYSTANDER}" if done.exit_code == 0 else ""


def move_another(scene: Scene) -> str:
    """A move of a partition that the plan does not name."""
    partition = TopicPartition(BYSTANDER, 0)
    replicas = scene.replicas(BYSTANDER)[partition]
    spare = sorted(set(scene.cluster.brokers) - set(replicas) - scene.lost)
    done = reassign(scene, {partition: (*replicas[1:], scene.chance.choice(spare))}, "--execute", "--additional")
    return f"{partition} moved by somebody else" if done.exit_code == 0 else ""


def second_run(scene: Scene) -> str:
    """The same plan from another machine: it must be refused, or at least change nothing of ours."""
    refused = scene.kreassign(
        "run", "--yes", scene.folder / "plan.json", "--throttle", "5MB/s", "--measure-for", 0,
        "--state-dir", scene.folder / "elsewhere", "--bootstrap-server", scene.cluster.bootstrap_servers,
    )  # fmt: skip
    if refused.exit_code == 0:
        scene.untrue.append("a second run of the same plan was let in")
    return "a second run of the plan from another machine"
