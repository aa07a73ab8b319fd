"""Faults of brokers and controllers while moves are in flight, and their operators' work."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from enum import Enum
from random import Random

from testbed.node import Node
from testbed.releases import DEFAULT
from testbed.waiting import wait_until
from tests.torture.fault import Fault, Strike
from tests.torture.scene import FACTOR, LOW_RATE, TOPIC, Scene, need

FROZEN_S = 30.0
CLUSTER_TOOL = "org.apache.kafka.tools.ClusterTool"
FEATURES_TOOL = "org.apache.kafka.tools.FeatureCommand"
FORMER, PRESENT = "3.9.1", DEFAULT
CAUGHT_UP_S = 30.0
"""For so long the next node waits for the one before it; under a throttle it may not catch up sooner."""


class Role(Enum):
    """Node to strike: its part in a move in flight, or the active controller."""

    SOURCE = "source"
    DESTINATION = "destination"
    LEADER = "leader"
    CONTROLLER = "active controller"


def node_of(scene: Scene, role: Role) -> Node:
    """A running node that has this role now."""
    if role is Role.CONTROLLER:
        return scene.cluster.controllers[scene.active_controller()]
    with scene.client() as client:
        moves = client.list_partition_reassignments()
        topics = client.describe_topics(sorted({each.topic for each in moves})).ok if moves else {}
    leaders = {each.topic_partition: each.leader for topic in topics.values() for each in topic.partitions}
    of_role = {
        Role.SOURCE: {broker for move in moves.values() for broker in move.removing},
        Role.DESTINATION: {broker for move in moves.values() for broker in move.adding},
        Role.LEADER: {leaders.get(partition, -1) for partition in moves},
    }
    there = [node for broker, node in sorted(scene.cluster.brokers.items()) if broker in of_role[role]]
    awake = [node for node in there if node.is_running and not node.is_frozen]
    need(awake)
    return scene.chance.choice(awake)


def strike_node(
    role: Role,
    what: str,
    do: Callable[[Node], object],
    undo: Callable[[Node], object] | None = None,
    lasts_s: Callable[[Random], float] = lambda chance: chance.uniform(1, 20),
) -> Strike:
    """Do something to the node of a role, and undo it some seconds later."""

    def strike(scene: Scene) -> str:
        node = node_of(scene, role)
        do(node)
        if undo is not None:
            scene.repair_after(lasts_s(scene.chance), lambda: undo(node))
        if role is Role.CONTROLLER:
            return f"the active controller {node.id}, {what}"
        return f"{role.value}, broker {node.id}, {what}"

    return strike


def lose_broker(*, is_unregistered: bool) -> Strike:
    """A broker dies and does not come back before the run is over."""

    def strike(scene: Scene) -> str:
        need(not scene.lost)
        node = node_of(scene, scene.chance.choice((Role.LEADER, Role.DESTINATION)))
        node.kill()
        scene.lost.add(node.id)
        if not is_unregistered:
            return f"broker {node.id} lost for good"
        with scene.client() as client:
            wait_until(
                lambda: node.id not in client.describe_cluster().broker_ids,
                timeout_s=60,
                what=f"broker {node.id} missed",
            )
        if scene.tool(CLUSTER_TOOL, "--id", node.id, command="unregister").exit_code:
            return f"broker {node.id} lost for good, and not to be unregistered"
        scene.unregistered.add(node.id)
        return f"broker {node.id} lost for good and unregistered"

    return strike


def stop_quorum(least_s: float, most_s: float) -> Strike:
    """Two of three controllers are down for so long: nothing can be changed."""

    def strike(scene: Scene) -> str:
        down = scene.chance.sample(sorted(scene.cluster.controllers), 2)
        away_s = scene.chance.uniform(least_s, most_s)
        for each in down:
            scene.cluster.controllers[each].stop()
            scene.repair_after(away_s, scene.cluster.controllers[each].spawn)
        return f"controllers {down} stopped for {away_s:.0f} s"

    return strike


# --- all nodes, one after the other --------------------------------------------------------------------------------


def slowly(scene: Scene) -> None:
    """Let the run move so slowly that it goes on for as long as all nodes take."""
    scene.rate = LOW_RATE


def roll(scene: Scene) -> str:
    """Restart every controller and broker, one after the other."""
    for node in scene.nodes():
        node.restart()
        _wait_caught_up(scene)
    return "rolling restart of all controllers and brokers"


def upgrade(scene: Scene) -> str:
    """Give every controller and broker the next release of Kafka, one after the other, and then its features."""
    former = [node for node in scene.nodes() if node.version == FORMER]
    need(former)
    for node in former:
        node.upgrade(PRESENT)
        _wait_caught_up(scene)
    done = scene.tool(FEATURES_TOOL, "upgrade", "--release-version", PRESENT.rpartition(".")[0])
    if done.exit_code:
        scene.untrue.append(f"the campaign could not upgrade the features: {done.stdout} {done.stderr}")
    return f"rolling upgrade from Kafka {FORMER} to {PRESENT}"


def _wait_caught_up(scene: Scene) -> None:
    def is_caught_up() -> bool:
        (topic,) = client.describe_topics([TOPIC]).raise_if_any().values()
        return all(len(partition.isr) >= FACTOR for partition in topic.partitions)

    with scene.client() as client, suppress(TimeoutError):
        wait_until(is_caught_up, timeout_s=CAUGHT_UP_S, what="all replicas in sync", every_s=0.5)


def _restart(node: Node) -> None:
    node.stop()
    node.spawn()


STOPPED = f"stopped for {FROZEN_S:.0f} s"
UPGRADE = Fault("rolling upgrade of all nodes", upgrade, slowly, once=True)
BROKER_FAULTS = (
    *(Fault(f"{role.value} killed", strike_node(role, "killed", Node.kill, Node.spawn)) for role in Role),
    *(
        Fault(f"{role.value} {STOPPED}", strike_node(role, STOPPED, Node.freeze, Node.thaw, lambda _: FROZEN_S))
        for role in Role
    ),
    *(Fault(f"{role.value} restarted", strike_node(role, "restarted", _restart)) for role in Role),
    Fault("broker lost for good", lose_broker(is_unregistered=False)),
    Fault("broker lost and unregistered", lose_broker(is_unregistered=True)),
    Fault("two of three controllers down for seconds", stop_quorum(5, 25)),
    UPGRADE,
    Fault("two of three controllers down for three minutes", stop_quorum(180, 180), once=True),
    Fault("rolling restart of all nodes", roll, slowly),
)
