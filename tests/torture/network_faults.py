"""What can happen between a run and the brokers: its connections pass a proxy."""

from __future__ import annotations

from collections.abc import Callable

from kreassign.wire import api
from testbed.proxy import Deed, Interference
from testbed.waiting import wait_until
from tests.torture.scene import Scene

WRITES = frozenset(
    entry.key
    for entry in (
        api.ALTER_PARTITION_REASSIGNMENTS,
        api.INCREMENTAL_ALTER_CONFIGS,
        api.ELECT_LEADERS,
        api.OFFSET_COMMIT,
    )
)
WAIT_S, SPOILED_S, SILENT_S, DELAY_S = 60.0, 30.0, 20.0, 10.0


def behind_proxy(scene: Scene) -> None:
    """Let the run reach its brokers through the proxy."""
    scene.is_proxied = True


def arm(deed: Deed) -> Callable[[Scene], None]:
    """Lie in wait for some of the writes of the run, from its first one on."""

    def prepare(scene: Scene) -> None:
        behind_proxy(scene)
        scene.interfere(
            Interference(deed, WRITES, spared=scene.chance.randint(0, 12), times=scene.chance.randint(1, 4))
        )

    return prepare


def spring(deed: Deed, what: str) -> Callable[[Scene], str]:
    """Wait until what lies in wait has struck."""

    def strike(scene: Scene) -> str:
        armed = scene.interference
        if armed is None or armed.deed is not deed:
            return ""
        wait_until(lambda: armed.strikes > 0 or not scene.is_running(), timeout_s=WAIT_S, what=what, every_s=0.2)
        return f"{what} (up to {armed.times})" if armed.strikes else ""

    return strike


def cut_answers(scene: Scene) -> str:
    """Half of an answer, of whatever API, and then nothing."""
    if not scene.is_proxied or not scene.is_running():
        return ""
    cut = Interference(Deed.CUT_ANSWER, times=scene.chance.randint(1, 12))
    return _spoil(scene, cut, f"{cut.times} answers cut in the middle")


def delay_answers(scene: Scene) -> str:
    """Every answer takes longer."""
    late = Interference(Deed.DELAY_ANSWER, delay_s=DELAY_S)
    return _spoil(scene, late, f"answers delayed by {DELAY_S:.0f} s")


def fall_silent(scene: Scene) -> str:
    """Nothing passes, and no connection is closed."""
    return _spoil(scene, Interference(Deed.SILENCE), f"silence for {SILENT_S:.0f} s", SILENT_S)


def _spoil(scene: Scene, interference: Interference, what: str, lasts_s: float = SPOILED_S) -> str:
    if not scene.is_proxied or not scene.is_running():
        return ""
    scene.interfere(interference)
    scene.repair_after(lasts_s, lambda: scene.interfere(None))
    wait_until(lambda: interference.strikes > 0 or not scene.is_running(), timeout_s=WAIT_S, what=what, every_s=0.2)
    return what if interference.strikes else ""
