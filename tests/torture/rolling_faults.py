"""What operators of a cluster do to one node after the other while a run goes on."""

from __future__ import annotations

from contextlib import suppress

from testbed.node import Node
from testbed.waiting import wait_until
from tests.torture.scene import FACTOR, LOW_RATE, TOPIC, Scene

FORMER, PRESENT = "3.9.1", "4.3.1"
FEATURES_TOOL = "org.apache.kafka.tools.FeatureCommand"
CAUGHT_UP_S = 30.0
"""For so long the next node waits for the one before it; under a throttle it may not catch up sooner."""


def slowly(scene: Scene) -> None:
    """Let the run move so slowly that it goes on for as long as all nodes take."""
    scene.rate = LOW_RATE


def roll(scene: Scene) -> str:
    """Restart every controller and broker, one after the other."""
    for node in _nodes(scene):
        node.restart()
        _wait_caught_up(scene)
    return "rolling restart of all controllers and brokers"


def upgrade(scene: Scene) -> str:
    """Give every controller and broker the next release of Kafka, one after the other, and then its features."""
    former = [node for node in _nodes(scene) if node.version == FORMER]
    if not former:
        return ""
    for node in former:
        node.upgrade(PRESENT)
        _wait_caught_up(scene)
    done = scene.tool(FEATURES_TOOL, "upgrade", "--release-version", PRESENT.rpartition(".")[0])
    if done.exit_code:
        scene.untrue.append(f"the campaign could not upgrade the features: {done.stdout} {done.stderr}")
    return f"rolling upgrade from Kafka {FORMER} to {PRESENT}"


def _nodes(scene: Scene) -> list[Node]:
    nodes = (*scene.cluster.controllers.values(), *scene.cluster.brokers.values())
    return [node for node in nodes if node.is_running]


def _wait_caught_up(scene: Scene) -> None:
    def is_caught_up() -> bool:
        (topic,) = client.describe_topics([TOPIC]).raise_if_any().values()
        return all(len(partition.isr) >= FACTOR for partition in topic.partitions)

    with scene.client() as client, suppress(TimeoutError):
        wait_until(is_caught_up, timeout_s=CAUGHT_UP_S, what="all replicas in sync", every_s=0.5)
