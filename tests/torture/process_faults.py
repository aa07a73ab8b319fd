"""What can happen to the process of a run and to its journal."""

from __future__ import annotations

import shutil
import signal
import time
from collections.abc import Callable

from kreassign.executor.journal import find_journals
from testbed.proxy import Deed, Interference
from testbed.waiting import wait_until
from tests.torture.scene import Scene
from tests.torture.small_disk import SmallDisk

RANDOM_S, SUSPENDED_S, ALL_SUSPENDED_S = 6.0, 30.0, 12.0


def signal_run(number: signal.Signals) -> Callable[[Scene], str]:
    def strike(scene: Scene) -> str:
        if scene.run is None or not scene.is_running():
            return ""
        scene.run.send_signal(number)
        return f"{number.name} to the run"

    return strike


def kill_at_random(scene: Scene) -> str:
    """SIGKILL at a moment drawn by lot, also before anything moves or is throttled."""
    at_s = time.monotonic() + scene.chance.uniform(0, RANDOM_S)
    wait_until(
        lambda: time.monotonic() >= at_s or not scene.is_running(), timeout_s=2 * RANDOM_S, what="the moment to kill"
    )
    said = signal_run(signal.SIGKILL)(scene)
    return f"{said} at {time.monotonic() - scene.begun_s:.1f} s" if said else ""


def suspend_machine(scene: Scene) -> str:
    """The machine of the run is suspended: afterwards its connections are gone and its wall clock is ahead."""
    run = scene.run
    if run is None or not scene.is_running():
        return ""
    run.send_signal(signal.SIGSTOP)
    scene.interfere(Interference(Deed.SILENCE))

    def repair() -> None:
        scene.interfere(Interference(Deed.SEVER))
        scene.interfere(None)
        run.send_signal(signal.SIGUSR1)
        run.send_signal(signal.SIGCONT)

    scene.repair_after(SUSPENDED_S, repair)
    return f"the machine of the run suspended for {SUSPENDED_S:.0f} s"


def suspend_all_machines(scene: Scene) -> str:
    """The machines of the run and of all controllers and brokers are suspended at once."""
    run = scene.run
    if run is None or not scene.is_running():
        return ""
    nodes = [*scene.cluster.controllers.values(), *scene.cluster.brokers.values()]
    run.send_signal(signal.SIGSTOP)
    for node in nodes:
        node.freeze()
    until_s = time.monotonic() + ALL_SUSPENDED_S
    wait_until(lambda: time.monotonic() >= until_s, timeout_s=2 * ALL_SUSPENDED_S, what="the pause")
    for node in nodes:
        node.thaw()
    run.send_signal(signal.SIGUSR1)
    run.send_signal(signal.SIGCONT)
    return f"all machines suspended for {ALL_SUSPENDED_S:.0f} s"


def step_clock(*, ahead: bool) -> Callable[[Scene], str]:
    """Set the wall clock of the process by an hour."""

    def strike(scene: Scene) -> str:
        if scene.run is None or not scene.is_running():
            return ""
        scene.run.send_signal(signal.SIGUSR1 if ahead else signal.SIGUSR2)
        return f"the wall clock of the run set an hour {'ahead' if ahead else 'back'}"

    return strike


def close_output(scene: Scene) -> str:
    """Be a reader of its output that has seen enough, as `| head` is."""
    if scene.run is None or scene.run.stdout is None or not scene.is_running():
        return ""
    scene.run.stdout.close()
    return "the reader of the run's output gone"


def freeze_run(scene: Scene) -> str:
    run = scene.run
    if run is None or not scene.is_running():
        return ""
    run.send_signal(signal.SIGSTOP)
    scene.repair_after(scene.chance.uniform(3, 15), lambda: run.send_signal(signal.SIGCONT))
    return "the run stopped for seconds, as in a pause of its machine"


def damage_journal(scene: Scene) -> str:
    """Half of the journal of a killed run, which has to be refused; then all of it is put back."""
    if not _kill(scene):
        return ""
    journals = find_journals(scene.state_dir)
    if not journals:
        return ""
    (path,) = journals
    kept = scene.folder / "kept"
    shutil.copytree(path.parent, kept)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    try:
        _expect_refusal(scene, "resume with half of a journal", path.stem)
    finally:
        shutil.rmtree(path.parent)
        shutil.move(kept, path.parent)
    return "SIGKILL to the run, its journal cut to its half and put back"


def with_small_disk(scene: Scene) -> None:
    """Give the run a state directory on a disk of its own."""
    scene.disk = scene.disk or SmallDisk(scene.state_dir)


def fill_disk(scene: Scene) -> str:
    """No room is left for the journal: the run ends, and cannot be resumed until there is some."""
    if scene.disk is None or not scene.is_running():
        return ""
    scene.disk.fill()
    scene.repair_after(scene.chance.uniform(20, 40), scene.disk.make_room)
    return "the disk of the journal full"


def write_protect_disk(scene: Scene) -> str:
    """The state directory of a killed run is read-only for a while."""
    if scene.disk is None or not _kill(scene):
        return ""
    (path,) = find_journals(scene.state_dir)
    scene.disk.be_read_only()
    try:
        _expect_refusal(scene, "resume in a read-only state directory", path.stem)
    finally:
        scene.disk.be_writable()
    return "SIGKILL to the run, its state directory read-only for a while"


def _kill(scene: Scene) -> bool:
    if scene.run is None or not scene.is_running():
        return False
    scene.run.kill()
    scene.run.wait()
    return True


def _expect_refusal(scene: Scene, what: str, run_id: str) -> None:
    """`kreassign resume` must refuse, and say why."""
    where = ("--state-dir", scene.state_dir, "--bootstrap-server", scene.cluster.bootstrap_servers)
    refused = scene.kreassign("resume", run_id, *where)
    if refused.exit_code == 0 or "Traceback" in refused.stderr or not refused.stderr.strip():
        scene.untrue.append(f"{what}: exit code {refused.exit_code}, {refused.stderr[-300:]!r}")
