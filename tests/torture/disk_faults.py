"""Faults of a run's journal and of brokers' log dirs: damaged, read-only, full. Only root may mount."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from kreassign.executor.journal import find_journals
from testbed.node import Node
from testbed.waiting import wait_until
from tests.torture.fault import Fault
from tests.torture.scene import Scene, need
from tests.torture.small_disk import SmallDisk, read_only, writable

FAILED_S = 40.0
"""Within so long a broker has written to a log dir, and has seen that it cannot: checkpoints are every 5 s."""


def damage_journal(scene: Scene) -> str:
    """Half of the journal of a killed run, which has to be refused; then all of it is put back."""
    path = _killed(scene)
    kept = scene.folder / "kept"
    shutil.copytree(path.parent, kept)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    try:
        _expect_refusal(scene, "resume with half of a journal", path)
    finally:
        shutil.rmtree(path.parent)
        shutil.move(kept, path.parent)
    return "SIGKILL to the run, its journal cut to its half and put back"


def with_small_disk(scene: Scene) -> None:
    """Give the run a state directory on a disk of its own."""
    scene.disk = scene.disk or SmallDisk(scene.state_dir)


def fill_disk(scene: Scene) -> str:
    """Fill the journal's disk: the run waits until there is room, and cannot be resumed before."""
    need(scene.is_running())
    assert scene.disk is not None
    scene.disk.fill()
    scene.repair_after(scene.chance.uniform(20, 40), scene.disk.make_room)
    return "the disk of the journal full"


def write_protect_disk(scene: Scene) -> str:
    """The state directory of a killed run is read-only for a while."""
    path = _killed(scene)
    assert scene.disk is not None
    scene.disk.be_read_only()
    try:
        _expect_refusal(scene, "resume in a read-only state directory", path)
    finally:
        scene.disk.be_writable()
    return "SIGKILL to the run, its state directory read-only for a while"


def _killed(scene: Scene) -> Path:
    """Kill the run; its journal."""
    scene.kill_run()
    journals = find_journals(scene.state_dir)
    need(journals)
    return journals[0]


def _expect_refusal(scene: Scene, what: str, journal: Path) -> None:
    """`kreassign resume` must refuse, and say why."""
    refused = scene.kreassign("resume", journal.stem, *scene.where)
    if refused.exit_code == 0 or "Traceback" in refused.stderr or not refused.stderr.strip():
        scene.untrue.append(f"{what}: exit code {refused.exit_code}, {refused.stderr[-300:]!r}")


def protect_log_dir(scene: Scene) -> str:
    """The log dir of a broker that a move copies to becomes read-only."""
    copies = [
        (node, path.parent)
        for moving in scene.moving()
        for broker in sorted(scene.targets[moving])
        if (node := scene.cluster.brokers[broker]).is_running and not node.is_frozen
        for path in sorted(node.place.folder.glob(f"data-*/{moving}"))
    ]
    need(copies)
    node, log_dir = scene.chance.choice(copies)
    read_only(log_dir)
    return _seen_to_fail(scene, node, log_dir, lambda: writable(log_dir), "read-only")


def fill_log_dir(scene: Scene) -> str:
    """The log dir that is on a small disk becomes full."""
    disk, node = scene.broker_disk, scene.small_broker
    assert disk is not None
    assert node is not None
    need(node.is_running and not node.is_frozen)
    disk.fill()
    return _seen_to_fail(scene, node, disk.folder, disk.make_room, "full")


def _seen_to_fail(scene: Scene, node: Node, log_dir: Path, repair: Callable[[], None], what: str) -> str:
    """Wait until the broker has found out, by itself; it is repaired some seconds later."""

    def has_failed() -> bool:
        if not node.is_running:
            return True
        dirs = client.describe_log_dirs([node.id]).ok.get(node.id, ())
        return any(each.path == str(log_dir) and each.error is not None for each in dirs)

    def repair_and_restart() -> None:
        # A log dir that has failed is used again only after a restart.
        repair()
        node.kill()
        node.spawn()

    try:
        with scene.client() as client:
            wait_until(has_failed, timeout_s=FAILED_S, what=f"{log_dir} offline", every_s=0.5)
    finally:
        scene.repair_after(scene.chance.uniform(5, 15), repair_and_restart)
    return f"log dir {log_dir.name} of broker {node.id} {what}"


DAMAGED = Fault("journal damaged", damage_journal, harmless=True)
FULL_LOG_DIR = Fault("log dir of a broker full", fill_log_dir)
DISK_FAULTS = (
    Fault("disk of the journal full", fill_disk, with_small_disk, harmless=True),
    Fault("state directory read-only", write_protect_disk, with_small_disk, harmless=True),
)
LOG_DIR_FAULTS = (Fault("log dir of a broker read-only", protect_log_dir), FULL_LOG_DIR)
ROOTS_FAULTS = (*DISK_FAULTS, *LOG_DIR_FAULTS)
"""Those for which something is mounted."""
