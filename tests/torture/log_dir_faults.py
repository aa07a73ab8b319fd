"""What can happen to a log dir of a broker: it is read-only, or full. Only root may."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from testbed.node import Node
from testbed.waiting import wait_until
from tests.torture.scene import Scene
from tests.torture.small_disk import read_only, writable

FAILED_S = 40.0
"""Within so long a broker has written to a log dir, and has seen that it cannot: checkpoints are every 5 s."""


def protect_log_dir(scene: Scene) -> str:
    """The log dir of a broker that a move copies to becomes read-only."""
    found = [
        (node, path.parent)
        for moving in scene.moving()
        for broker in sorted(scene.targets[moving])
        if (node := scene.cluster.brokers[broker]).is_running and not node.is_frozen
        for path in sorted(node.place.folder.glob(f"data-*/{moving}"))
    ]
    if not found:
        return ""
    node, log_dir = scene.chance.choice(found)
    read_only(log_dir)

    def repair() -> None:
        writable(log_dir)
        _start_again(node)

    return _seen_to_fail(scene, node, log_dir, repair, "read-only")


def fill_log_dir(scene: Scene) -> str:
    """The log dir that is on a small disk becomes full."""
    disk, node = scene.broker_disk, scene.small_broker
    if disk is None or node is None or not node.is_running or node.is_frozen:
        return ""
    disk.fill()

    def repair() -> None:
        disk.make_room()
        _start_again(node)

    return _seen_to_fail(scene, node, disk.folder, repair, "full")


def _seen_to_fail(scene: Scene, node: Node, log_dir: Path, repair: Callable[[], None], what: str) -> str:
    """Wait until the broker has found out, by itself; it is repaired some seconds later."""

    def has_failed() -> bool:
        if not node.is_running:
            return True
        dirs = client.describe_log_dirs([node.id]).ok.get(node.id, ())
        return any(each.path == str(log_dir) and each.error is not None for each in dirs)

    try:
        with scene.client() as client:
            wait_until(has_failed, timeout_s=FAILED_S, what=f"{log_dir} offline", every_s=0.5)
    finally:
        scene.repair_after(scene.chance.uniform(5, 15), repair)
    return f"log dir {log_dir.name} of broker {node.id} {what}"


def _start_again(node: Node) -> None:
    """A log dir that has failed is used again only after a restart."""
    node.kill()
    node.spawn()
