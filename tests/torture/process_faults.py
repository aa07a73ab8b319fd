"""Faults of a run's process, its machine and its clock."""

from __future__ import annotations

import signal
import time

from testbed.proxy import Deed, Interference
from testbed.waiting import wait_until
from tests.torture.fault import Fault, Strike
from tests.torture.network_faults import PROXIED
from tests.torture.scene import Scene

RANDOM_S, SUSPENDED_S, ALL_SUSPENDED_S = 6.0, 30.0, 12.0


def send(number: signal.Signals, what: str = "") -> Strike:
    """Send a signal to the run."""

    def strike(scene: Scene) -> str:
        scene.process.send_signal(number)
        return what or f"{number.name} to the run"

    return strike


def kill_at_random(scene: Scene) -> str:
    """SIGKILL at a random moment, also before anything moves or is throttled."""
    _pass_time(scene, scene.chance.uniform(0, RANDOM_S))
    return f"{send(signal.SIGKILL)(scene)} at {time.monotonic() - scene.begun_s:.1f} s"


def freeze_run(scene: Scene) -> str:
    """SIGSTOP for some seconds."""
    run = scene.process
    run.send_signal(signal.SIGSTOP)
    scene.repair_after(scene.chance.uniform(3, 15), lambda: run.send_signal(signal.SIGCONT))
    return "the run stopped for seconds, as in a pause of its machine"


def suspend_machine(scene: Scene) -> str:
    """The machine of the run is suspended: afterwards its connections are gone and its wall clock is ahead."""
    run = scene.process
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
    run = scene.process
    run.send_signal(signal.SIGSTOP)
    for node in scene.nodes():
        node.freeze()
    _pass_time(scene, ALL_SUSPENDED_S)
    for node in scene.nodes():
        node.thaw()
    run.send_signal(signal.SIGUSR1)
    run.send_signal(signal.SIGCONT)
    return f"all machines suspended for {ALL_SUSPENDED_S:.0f} s"


def close_output(scene: Scene) -> str:
    """The reader of its output has seen enough, as `| head` does."""
    output = scene.process.stdout
    assert output is not None
    output.close()
    return "the reader of the run's output gone"


def _pass_time(scene: Scene, seconds: float) -> None:
    until_s = time.monotonic() + seconds
    wait_until(
        lambda: time.monotonic() >= until_s or not scene.is_running(), timeout_s=2 * seconds + 1, what="the moment"
    )


PROCESS_FAULTS = (
    Fault("SIGKILL to the run while it moves", send(signal.SIGKILL), harmless=True),
    Fault("SIGKILL to the run at random", kill_at_random, harmless=True, is_early=True),
    Fault("SIGTERM to the run", send(signal.SIGTERM), harmless=True),
    Fault("SIGHUP to the run", send(signal.SIGHUP), harmless=True),
    Fault("the run stopped for seconds", freeze_run, harmless=True),
    Fault("machine of the run suspended for 30 s", suspend_machine, listener=PROXIED, harmless=True),
    Fault("all machines suspended for 12 s", suspend_all_machines),
    Fault("reader of its output gone", close_output, harmless=True),
    # The program runs with a clock that these signals set: tests/torture/stepped_clock.py.
    Fault(
        "clock set an hour ahead", send(signal.SIGUSR1, "the wall clock of the run set an hour ahead"), harmless=True
    ),
    Fault("clock set an hour back", send(signal.SIGUSR2, "the wall clock of the run set an hour back"), harmless=True),
)
