"""Faults by a second operator with Kafka's own tools: to a run's settings, its moves, its topics."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial

from kreassign.model import ConfigChange, ConfigResource, TopicPartition
from kreassign.model.throttle import BROKER_THROTTLES, FOLLOWER_THROTTLED_RATE, LEADER_THROTTLED_RATE, TOPIC_THROTTLES
from testbed.processes import Finished
from testbed.waiting import wait_until
from tests.torture.fault import Fault, Strike
from tests.torture.scene import BYSTANDER, RECREATED, RECREATED_PARTITIONS, TOPIC, Scene, first_replicas, need

REASSIGN_TOOL = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
TOPICS_TOOL = "org.apache.kafka.tools.TopicCommand"
FOREIGN_RATE = "900000000"
CALM_S = 45.0


def reassign(scene: Scene, targets: Mapping[TopicPartition, Sequence[int]], *words: str) -> Finished:
    """`kafka-reassign-partitions` with a plan."""
    entries = [
        {"topic": key.topic, "partition": key.partition, "replicas": list(replicas)}
        for key, replicas in targets.items()
    ]
    path = scene.folder / "by-others.json"
    path.write_text(json.dumps({"version": 1, "partitions": entries}))
    return scene.tool(REASSIGN_TOOL, "--reassignment-json-file", path, *words)


def topics(scene: Scene, *words: object) -> bool:
    """`kafka-topics`; whether it succeeded."""
    return scene.tool(TOPICS_TOOL, *words).exit_code == 0


def delete_configs(scene: Scene, kind: str, name: object, keys: Sequence[str]) -> bool:
    """`kafka-configs --delete-config` of those of these keys that are set; whether any was."""
    left = scene.throttles()
    present = [key for key in keys if f"{kind} {name} {key}" in left]
    return bool(present) and alter(scene, kind, name, "--delete-config", ",".join(present))


def alter(scene: Scene, kind: str, name: object, *change: str) -> bool:
    """`kafka-configs --alter` of a topic or a broker; whether it succeeded."""
    of = ("--entity-type", f"{kind}s", "--entity-name", name)
    return scene.alter_configs(*of, *change).exit_code == 0


# --- moves ---------------------------------------------------------------------------------------------------------


def while_dead(strike: Strike) -> Strike:
    """Strike while no process of the run lives: the resumed run has to notice."""

    def struck(scene: Scene) -> str:
        need(scene.moving())
        scene.kill_run()
        return f"SIGKILL to the run, and then {strike(scene)}"

    return struck


def cancel_move(scene: Scene) -> str:
    """`kafka-reassign-partitions --cancel` of a move of the run."""
    chosen = _moving(scene)
    done = reassign(scene, {chosen: scene.targets[chosen]}, "--cancel", "--preserve-throttles")
    need("Successfully cancelled" in done.stdout)
    return f"{chosen} cancelled by somebody else"


def override_move(scene: Scene) -> str:
    """`kafka-reassign-partitions --execute --additional` of another plan for a partition that moves."""
    chosen = _moving(scene)
    spare = sorted(set(scene.cluster.brokers) - set(scene.targets[chosen]) - scene.lost)
    elsewhere = (*scene.targets[chosen][:-1], scene.chance.choice(spare))
    need(reassign(scene, {chosen: elsewhere}, "--execute", "--additional").exit_code == 0)
    done = f"{chosen} sent elsewhere by somebody else"
    if scene.is_complete(chosen):
        # It had come to its end before: it was no move of the run any more.
        scene.needless.add(done)
    return done


def _moving(scene: Scene) -> TopicPartition:
    moving = [each for each in scene.moving() if each.topic == TOPIC]
    need(moving)
    return scene.chance.choice(moving)


def move_another(scene: Scene) -> str:
    """A move of a partition that the plan does not name."""
    partition = TopicPartition(BYSTANDER, 0)
    replicas = scene.replicas(BYSTANDER)[partition]
    spare = sorted(set(scene.cluster.brokers) - set(replicas) - scene.lost)
    done = reassign(scene, {partition: (*replicas[1:], scene.chance.choice(spare))}, "--execute", "--additional")
    need(done.exit_code == 0)
    return f"{partition} moved by somebody else"


def second_run(scene: Scene) -> str:
    """Run the same plan from another machine: it must be refused, or at least change nothing of ours."""
    refused = scene.kreassign(
        "run", "--yes", scene.folder / "plan.json", "--throttle", "5MB/s", "--measure-for", 0,
        "--state-dir", scene.folder / "elsewhere", "--bootstrap-server", scene.cluster.bootstrap_servers,
    )  # fmt: skip
    if refused.exit_code == 0:
        scene.untrue.append("a second run of the same plan was let in")
    return "a second run of the plan from another machine"


# --- throttles: only what is struck while something moves has to be named by the run -------------------------------


def clear_rates(scene: Scene) -> str:
    """`kafka-configs --delete-config` of all rates of all brokers."""
    need(scene.moving())
    there = sorted(set(scene.cluster.brokers) - scene.lost)
    are_gone = [delete_configs(scene, "broker", broker, BROKER_THROTTLES) for broker in there]
    need(any(are_gone) and scene.moving())
    return "all rates gone"


def cancel_another(scene: Scene) -> str:
    """`kafka-reassign-partitions --cancel` of a plan that has nothing to do with the run: all rates of all brokers."""
    need(scene.moving())
    need(reassign(scene, _bystander(scene), "--cancel").exit_code == 0 and scene.moving())
    return "another plan cancelled by Kafka's own tool"


def verify_away(scene: Scene) -> str:
    """`kafka-reassign-partitions --verify` of another plan: all rates of all brokers, once nothing moves."""

    def is_calm() -> bool:
        with scene.client() as client:
            return not client.list_partition_reassignments()

    wait_until(is_calm, timeout_s=CALM_S, what="nothing moves", every_s=0.5)
    need(any(key.startswith("broker ") for key in scene.throttles()))
    need("Clearing broker" in reassign(scene, _bystander(scene), "--verify").stdout)
    return "all rates removed by Kafka's --verify of another plan"


def _bystander(scene: Scene) -> dict[TopicPartition, tuple[int, ...]]:
    partition = TopicPartition(BYSTANDER, 1)
    return {partition: scene.replicas(BYSTANDER)[partition]}


def raise_rates(scene: Scene) -> str:
    """`kafka-configs --add-config` of a much higher rate of one broker."""
    throttles = scene.throttles()
    broker = scene.chance.choice(sorted(set(scene.cluster.brokers) - scene.lost))
    need(f"broker {broker} {LEADER_THROTTLED_RATE}" in throttles)
    if scene.is_running():
        scene.repair_after(20, lambda: _clear_foreign(scene, broker))
    rates = ",".join(f"{key}={FOREIGN_RATE}" for key in (LEADER_THROTTLED_RATE, FOLLOWER_THROTTLED_RATE))
    need(alter(scene, "broker", broker, "--add-config", rates) and scene.moving())
    return f"rates of broker {broker} raised"


def _clear_foreign(scene: Scene, broker: int) -> None:
    """The second operator takes back what is still theirs."""
    with scene.client() as client:
        resource = ConfigResource.broker(broker)
        configs = client.describe_configs([resource], names=BROKER_THROTTLES).raise_if_any()[resource]
        theirs = [key for key, entry in configs.items() if entry.value == FOREIGN_RATE]
        if theirs:
            client.incremental_alter_configs({resource: [ConfigChange.delete(key) for key in theirs]})


def clear_lists(scene: Scene) -> str:
    """`kafka-configs --delete-config` of the lists of throttled replicas."""
    need(scene.moving())
    need(delete_configs(scene, "topic", TOPIC, TOPIC_THROTTLES) and scene.moving())
    return f"throttled replicas of {TOPIC} gone"


# --- topics --------------------------------------------------------------------------------------------------------


def recreate_topic(scene: Scene) -> str:
    """`kafka-topics --delete` and `--create` with the same replicas."""
    assignment = ",".join(":".join(map(str, replicas)) for replicas in first_replicas(RECREATED_PARTITIONS))
    need(topics(scene, "--delete", "--topic", RECREATED))
    words = ("--create", "--topic", RECREATED, "--replica-assignment", assignment, "--config", "min.insync.replicas=2")
    wait_until(lambda: topics(scene, *words), timeout_s=60, what=f"{RECREATED} created again", every_s=1)
    return "a topic of the plan deleted and made again"


def add_partitions(scene: Scene) -> str:
    """`kafka-topics --alter --partitions`."""
    count = len(scene.replicas(BYSTANDER)) + 1
    need(topics(scene, "--alter", "--topic", BYSTANDER, "--partitions", count))
    return f"partitions added to {BYSTANDER}"


_of_moves = partial(Fault, tells="else", moves=True)
_of_throttles = partial(Fault, tells="throttle")
_of_topics = partial(Fault, tells="deleted", moves=True)
OPERATOR_FAULTS = (
    _of_moves("move cancelled by others", cancel_move),
    _of_moves("move overridden by others", override_move),
    _of_throttles("all rates removed by others", clear_rates),
    _of_throttles("another plan cancelled by Kafka's tool", cancel_another),
    _of_throttles("a rate raised by others", raise_rates),
    _of_throttles("throttled replicas removed by others", clear_lists),
    _of_topics("topic deleted and recreated", recreate_topic),
    Fault("partitions added by others", add_partitions, harmless=True),
    Fault("another partition moved by others", move_another, harmless=True),
    Fault("second run from elsewhere", second_run, harmless=True),
    _of_moves("move cancelled while the run was dead", while_dead(cancel_move)),
    _of_moves("move overridden while the run was dead", while_dead(override_move)),
    _of_throttles("all rates removed while the run was dead", while_dead(clear_rates)),
    _of_throttles("rates verified away while the run was dead", while_dead(verify_away)),
    _of_throttles("a rate raised while the run was dead", while_dead(raise_rates)),
    _of_throttles("throttled replicas removed while the run was dead", while_dead(clear_lists)),
    _of_topics("topic recreated while the run was dead", while_dead(recreate_topic)),
)
