"""What can happen to brokers and controllers while moves are in flight; it is repaired later."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from testbed.node import Node
from testbed.waiting import wait_until
from tests.torture.scene import Scene

FROZEN_S = 30.0
CLUSTER_TOOL = "org.apache.kafka.tools.ClusterTool"


class Role(Enum):
    """Which node is struck: what it is to a move in flight, or the active controller."""

    SOURCE = "source"
    DESTINATION = "destination"
    LEADER = "leader"
    CONTROLLER = "active controller"


def node_of(scene: Scene, role: Role) -> Node | None:
    """A running node that has this role now; None if nothing moves."""
    if role is Role.CONTROLLER:
        return scene.cluster.controllers[scene.controller()]
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
    return scene.chance.choice(awake) if awake else None


def _struck(role: Role, strike: Callable[[Scene, Node], str]) -> Callable[[Scene], str]:
    def struck(scene: Scene) -> str:
        node = node_of(scene, role)
        if node is None:
            return ""
        return f"{'' if role is Role.CONTROLLER else f'{role.value}, '}{strike(scene, node)}"

    return struck


def _named(scene: Scene, node: Node) -> str:
    return f"{'the active controller' if node.id in scene.cluster.controllers else 'broker'} {node.id}"


def kill(role: Role) -> Callable[[Scene], str]:
    """SIGKILL; the node is started again some seconds later."""

    def strike(scene: Scene, node: Node) -> str:
        node.kill()
        scene.repair_after(scene.chance.uniform(1, 20), node.spawn)
        return f"{_named(scene, node)}, killed"

    return _struck(role, strike)


def freeze(role: Role) -> Callable[[Scene], str]:
    """SIGSTOP for 30 s."""

    def strike(scene: Scene, node: Node) -> str:
        node.freeze()
        scene.repair_after(FROZEN_S, node.thaw)
        return f"{_named(scene, node)}, stopped for {FROZEN_S:.0f} s"

    return _struck(role, strike)


def restart(role: Role) -> Callable[[Scene], str]:
    """SIGTERM, and started again at once."""

    def strike(scene: Scene, node: Node) -> str:
        node.stop()
        node.spawn()
        return f"{_named(scene, node)}, restarted"

    return _struck(role, strike)


def lose_broker(*, is_unregistered: bool) -> Callable[[Scene], str]:
    """A broker dies and does not come back before the run is over."""

    def strike(scene: Scene) -> str:
        node = node_of(scene, scene.chance.choice((Role.LEADER, Role.DESTINATION)))
        if node is None or scene.lost:
            return ""
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


def stop_quorum(least_s: float, most_s: float) -> Callable[[Scene], str]:
    """Two of three controllers are down for so long: nothing can be changed."""

    def strike(scene: Scene) -> str:
        down = scene.chance.sample(sorted(scene.cluster.controllers), 2)
        away_s = scene.chance.uniform(least_s, most_s)
        for each in down:
            scene.cluster.controllers[each].stop()
            scene.repair_after(away_s, scene.cluster.controllers[each].spawn)
        return f"controllers {down} stopped for {away_s:.0f} s"

    return strike
