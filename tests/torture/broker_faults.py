"""What can happen to brokers and controllers while moves are in flight; it is repaired later."""

from __future__ import annotations

from collections.abc import Callable

from testbed.waiting import wait_until
from tests.torture.scene import TOPIC, Scene

FROZEN_S = 30.0
CLUSTER_TOOL = "org.apache.kafka.tools.ClusterTool"


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


def kill_broker(*, leading: bool) -> Callable[[Scene], str]:
    def strike(scene: Scene) -> str:
        broker = _broker(scene, leading=leading)
        if broker is None:
            return ""
        scene.cluster.brokers[broker].kill()
        scene.repair_after(scene.chance.uniform(1, 20), scene.cluster.brokers[broker].spawn)
        return f"SIGKILL to broker {broker}, a {'leader' if leading else 'destination'}"

    return strike


def lose_broker(*, is_unregistered: bool) -> Callable[[Scene], str]:
    """A broker dies and does not come back before the run is over."""

    def strike(scene: Scene) -> str:
        broker = _broker(scene, leading=scene.chance.random() < 0.5)
        if broker is None or scene.lost:
            return ""
        scene.cluster.brokers[broker].kill()
        scene.lost.add(broker)
        if not is_unregistered:
            return f"broker {broker} lost for good"
        with scene.client() as client:
            wait_until(
                lambda: broker not in client.describe_cluster().broker_ids, timeout_s=60, what=f"broker {broker} missed"
            )
        words = ("unregister", "--bootstrap-server", scene.cluster.bootstrap_servers, "--id", str(broker))
        if scene.cluster.java_tool(CLUSTER_TOOL, *words).exit_code:
            return f"broker {broker} lost for good, and not to be unregistered"
        scene.unregistered.add(broker)
        return f"broker {broker} lost for good and unregistered"

    return strike


def freeze_broker(scene: Scene) -> str:
    broker = _broker(scene, leading=scene.chance.random() < 0.5)
    if broker is None:
        return ""
    scene.cluster.brokers[broker].freeze()
    scene.repair_after(FROZEN_S, scene.cluster.brokers[broker].thaw)
    return f"broker {broker} stopped for {FROZEN_S:.0f} s"


def restart_broker(scene: Scene) -> str:
    broker = _broker(scene, leading=True)
    if broker is None:
        return ""
    scene.cluster.brokers[broker].stop()
    scene.cluster.brokers[broker].spawn()
    return f"broker {broker} restarted"


def kill_controller(scene: Scene) -> str:
    controller = scene.cluster.controllers[scene.controller()]
    controller.kill()
    scene.repair_after(scene.chance.uniform(1, 20), controller.spawn)
    return f"SIGKILL to the active controller {controller.id}"


def freeze_controller(scene: Scene) -> str:
    controller = scene.cluster.controllers[scene.controller()]
    controller.freeze()
    scene.repair_after(FROZEN_S / 2, controller.thaw)
    return f"the active controller {controller.id} stopped for {FROZEN_S / 2:.0f} s"


def stop_quorum(scene: Scene) -> str:
    """Two of three controllers are down: nothing can be changed."""
    down = scene.chance.sample(sorted(scene.cluster.controllers), 2)
    for each in down:
        scene.cluster.controllers[each].kill()
        scene.repair_after(scene.chance.uniform(5, 25), scene.cluster.controllers[each].spawn)
    return f"controllers {down} down"
