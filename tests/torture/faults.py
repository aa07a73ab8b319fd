"""What can happen to a run on real Kafka: each fault is struck while moves are in flight, and repaired later.

A fault says what it did in one sentence, or "" where there was nothing to do it to. `tells` says whether the run has to
tell of it at its end: a fault that changes what the run set, or moves what it moves, must not pass in silence.
"""

from __future__ import annotations

import shutil
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from kreassign.executor.journal import find_journals
from kreassign.model import ConfigChange, ConfigResource, NewPartitions, TopicPartition
from kreassign.model.throttle import (
    BROKER_THROTTLES,
    FOLLOWER_THROTTLED_RATE,
    LEADER_THROTTLED_RATE,
    clear_broker_changes,
    clear_topic_changes,
)
from tests.torture.scene import BYSTANDER, TOPIC, Scene, recreate

FROZEN_S = 30.0
FOREIGN_RATE = "900000000"


@dataclass(frozen=True, slots=True)
class Fault:
    """One kind of fault. `moves`: somebody else moves what the run moves."""

    name: str
    strike: Callable[[Scene], str]
    tells: bool = False
    moves: bool = False


# --- the run itself ----------------------------------------------------------------------------------------------


def _signal_run(number: signal.Signals) -> Callable[[Scene], str]:
    def strike(scene: Scene) -> str:
        if scene.run is None or scene.run.poll() is not None:
            return ""
        scene.run.send_signal(number)
        return f"{number.name} to the run"

    return strike


def _freeze_run(scene: Scene) -> str:
    run = scene.run
    if run is None or run.poll() is not None:
        return ""
    run.send_signal(signal.SIGSTOP)
    scene.repair_after(scene.chance.uniform(3, 15), lambda: run.send_signal(signal.SIGCONT))
    return "the run stopped for seconds, as in a pause of its machine"


def _damage_journal(scene: Scene) -> str:
    """Half of the journal of a killed run, which has to be refused; then all of it is put back."""
    if scene.run is None or scene.run.poll() is not None:
        return ""
    scene.run.kill()
    scene.run.wait()
    journals = find_journals(scene.state_dir)
    if not journals:
        return ""
    (path,) = journals
    kept = scene.folder / "kept"
    shutil.copytree(path.parent, kept)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    where = ("--state-dir", scene.state_dir, "--bootstrap-server", scene.cluster.bootstrap_servers)
    try:
        refused = scene.kreassign("resume", scene.run_id or path.stem, *where)
    finally:
        shutil.rmtree(path.parent)
        shutil.move(kept, path.parent)
    if refused.exit_code == 0 or "Traceback" in refused.stderr:
        scene.untrue.append(f"a journal cut to its half was not refused: {refused.stderr[-200:]}")
    return "SIGKILL to the run, its journal cut to its half and put back"


# --- brokers and controllers -------------------------------------------------------------------------------------


def _broker(scene: Scene, *, leading: bool) -> int | None:
    """A broker that a move in flight copies from, or to; None if nothing moves."""
    with scene.client() as client:
        moves = client.list_partition_reassignments()
        (topic,) = client.describe_topics([TOPIC]).raise_if_any().values()
    leaders = {each.topic_partition: each.leader for each in topic.partitions}
    brokers = {
        broker
        for partition, move in moves.items()
        for broker in ((leaders.get(partition, -1),) if leading else move.adding)
        if broker in scene.cluster.brokers and scene.cluster.brokers[broker].is_running
    }
    return scene.chance.choice(sorted(brokers)) if brokers else None


def _kill_broker(*, leading: bool) -> Callable[[Scene], str]:
    def strike(scene: Scene) -> str:
        broker = _broker(scene, leading=leading)
        if broker is None:
            return ""
        scene.cluster.brokers[broker].kill()
        scene.repair_after(scene.chance.uniform(1, 20), scene.cluster.brokers[broker].spawn)
        return f"SIGKILL to broker {broker}, a {'leader' if leading else 'destination'}"

    return strike


def _freeze_broker(scene: Scene) -> str:
    broker = _broker(scene, leading=scene.chance.random() < 0.5)
    if broker is None:
        return ""
    scene.cluster.brokers[broker].freeze()
    scene.repair_after(FROZEN_S, scene.cluster.brokers[broker].thaw)
    return f"broker {broker} stopped for {FROZEN_S:.0f} s"


def _restart_broker(scene: Scene) -> str:
    broker = _broker(scene, leading=True)
    if broker is None:
        return ""
    scene.cluster.brokers[broker].stop()
    scene.cluster.brokers[broker].spawn()
    return f"broker {broker} restarted"


def _kill_controller(scene: Scene) -> str:
    controller = scene.cluster.controllers[scene.controller()]
    controller.kill()
    scene.repair_after(scene.chance.uniform(1, 20), controller.spawn)
    return f"SIGKILL to the active controller {controller.id}"


def _freeze_controller(scene: Scene) -> str:
    controller = scene.cluster.controllers[scene.controller()]
    controller.freeze()
    scene.repair_after(FROZEN_S / 2, controller.thaw)
    return f"the active controller {controller.id} stopped for {FROZEN_S / 2:.0f} s"


def _stop_quorum(scene: Scene) -> str:
    """Two of three controllers are down: nothing can be changed."""
    down = scene.chance.sample(sorted(scene.cluster.controllers), 2)
    for each in down:
        scene.cluster.controllers[each].kill()
        scene.repair_after(scene.chance.uniform(5, 25), scene.cluster.controllers[each].spawn)
    return f"controllers {down} down"


# --- a second operator -------------------------------------------------------------------------------------------


def _cancel_move(scene: Scene) -> str:
    moving = scene.moving()
    if not moving:
        return ""
    chosen = scene.chance.choice(moving)
    with scene.client() as client:
        gone = client.alter_partition_reassignments({chosen: None})
    return f"{chosen} cancelled by somebody else" if gone.ok else ""


def _override_move(scene: Scene) -> str:
    moving = [each for each in scene.moving() if each.topic == TOPIC]
    if not moving:
        return ""
    chosen = scene.chance.choice(moving)
    spare = sorted(set(scene.cluster.brokers) - set(scene.targets[chosen]))
    elsewhere = (*scene.targets[chosen][:-1], scene.chance.choice(spare))
    with scene.client() as client:
        done = client.alter_partition_reassignments({chosen: elsewhere})
    return f"{chosen} sent elsewhere by somebody else" if done.ok else ""


def _clear_rates(scene: Scene) -> str:
    """As `kafka-reassign-partitions --cancel` of any plan does: all rates of all brokers."""
    return _configure(scene, clear_broker_changes(scene.cluster.brokers), "all rates gone")


def _raise_rates(scene: Scene) -> str:
    changes = [ConfigChange.set(key, FOREIGN_RATE) for key in (LEADER_THROTTLED_RATE, FOLLOWER_THROTTLED_RATE)]
    broker = scene.chance.choice(sorted(scene.cluster.brokers))
    if f"broker {broker} {LEADER_THROTTLED_RATE}" not in scene.throttles():
        return ""
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


def _clear_lists(scene: Scene) -> str:
    return _configure(scene, clear_topic_changes([TOPIC]), f"throttled replicas of {TOPIC} gone")


def _configure(scene: Scene, changes: Mapping[ConfigResource, Sequence[ConfigChange]], what: str) -> str:
    if not scene.moving():
        return ""
    with scene.client() as client:
        client.incremental_alter_configs(changes).raise_if_any()
    # Only what was struck while something moves has to be told.
    return what if scene.moving() else ""


def _recreate_topic(scene: Scene) -> str:
    with scene.client() as client:
        recreate(client)
    return "a topic of the plan deleted and made again"


def _add_partitions(scene: Scene) -> str:
    with scene.client() as client:
        (found,) = client.describe_topics([BYSTANDER]).raise_if_any().values()
        client.create_partitions({BYSTANDER: NewPartitions(len(found.partitions) + 1)}).raise_if_any()
    return f"partitions added to {BYSTANDER}"


def _move_another(scene: Scene) -> str:
    """A move of a partition that the plan does not name."""
    partition = TopicPartition(BYSTANDER, 0)
    replicas = scene.replicas(BYSTANDER)[partition]
    spare = sorted(set(scene.cluster.brokers) - set(replicas))
    with scene.client() as client:
        client.alter_partition_reassignments({partition: (*replicas[1:], scene.chance.choice(spare))})
    return f"{partition} moved by somebody else"


def _second_run(scene: Scene) -> str:
    """The same plan from another machine: it must be refused, or at least change nothing of ours."""
    refused = scene.kreassign(
        "run", scene.folder / "plan.json", "--throttle", "5MB/s", "--measure-for", 0,
        "--state-dir", scene.folder / "elsewhere", "--bootstrap-server", scene.cluster.bootstrap_servers,
    )  # fmt: skip
    if refused.exit_code == 0:
        scene.untrue.append("a second run of the same plan was let in")
    return "a second run of the plan from another machine"


FAULTS = (
    Fault("SIGKILL to the run", _signal_run(signal.SIGKILL)),
    Fault("SIGTERM to the run", _signal_run(signal.SIGTERM)),
    Fault("SIGHUP to the run", _signal_run(signal.SIGHUP)),
    Fault("the run stopped for seconds", _freeze_run),
    Fault("journal damaged", _damage_journal),
    Fault("destination killed", _kill_broker(leading=False)),
    Fault("leader killed", _kill_broker(leading=True)),
    Fault("broker stopped for 30 s", _freeze_broker),
    Fault("broker restarted", _restart_broker),
    Fault("active controller killed", _kill_controller),
    Fault("active controller stopped for 15 s", _freeze_controller),
    Fault("two of three controllers down", _stop_quorum),
    Fault("move cancelled by others", _cancel_move, tells=True, moves=True),
    Fault("move overridden by others", _override_move, tells=True, moves=True),
    Fault("all rates removed by others", _clear_rates, tells=True),
    Fault("a rate raised by others", _raise_rates, tells=True),
    Fault("throttled replicas removed by others", _clear_lists, tells=True),
    Fault("topic deleted and recreated", _recreate_topic, tells=True, moves=True),
    Fault("partitions added by others", _add_partitions),
    Fault("another partition moved by others", _move_another),
    Fault("second run from elsewhere", _second_run),
)
