"""The wall clock is set while a run goes on, or its machine stops for a while: nothing changes but the times shown."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from kreassign.clock import Clock
from kreassign.executor.events import ClockStepped, Event, HealthObserved, MovesObserved, MovesSubmitted
from kreassign.executor.journal import read_events
from kreassign.model.pace import Pace, Schedule, Window
from tests.executor.twin_runs import RATE, TwinRig, pace

pytestmark = pytest.mark.thorough

HOUR_MS = 3_600_000
MINUTE_MS = 60_000
HOME = [[0, 1], [1, 0], [0, 1], [1, 0]]
AWAY = {0: (2, 1), 1: (3, 0), 2: (4, 1), 3: (2, 0)}


class WallClock:
    """The clock of a twin as a person sets it, in a process that may be stopped."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.ahead_ms = 0
        self.stops: list[float] = []

    def now_ms(self) -> int:
        return self._clock.now_ms() + self.ahead_ms

    def monotonic_s(self) -> float:
        return self._clock.monotonic_s()

    def sleep(self, seconds: float) -> None:
        self._clock.sleep(seconds + (self.stops.pop() if self.stops else 0.0))

    def set(self, ahead_ms: int) -> None:
        self.ahead_ms = ahead_ms


def new_world(folder: Path) -> tuple[TwinRig, WallClock]:
    rig = TwinRig(folder, HOME)
    clock = WallClock(rig.transport)
    rig.clock = clock
    return rig, clock


def restart_a_destination(rig: TwinRig) -> None:
    rig.after(8, lambda: rig.twin.crash(2))
    rig.after(20, lambda: rig.twin.start(2))


def what_happened(rig: TwinRig) -> list[Event]:
    return [event for event in rig.seen if not isinstance(event, ClockStepped)]


@pytest.mark.parametrize("at_s", [3, 9, 15])
@pytest.mark.parametrize("step_ms", [HOUR_MS, -HOUR_MS, MINUTE_MS, -MINUTE_MS])
def test_a_step_of_the_wall_clock_changes_nothing_that_happens(tmp_path: Path, step_ms: int, at_s: int) -> None:
    even, _ = new_world(tmp_path / "even")
    even.run(even.prepared(AWAY, pace=pace(moves=2)))
    rig, clock = new_world(tmp_path / "set")
    rig.after(at_s, lambda: clock.set(step_ms))
    done = rig.run(rig.prepared(AWAY, pace=pace(moves=2)))
    assert (done.state, rig.replicas) == ("done", AWAY)
    assert what_happened(rig) == what_happened(even)
    assert [event.ahead_ms for event in rig.seen if isinstance(event, ClockStepped)] == [step_ms]
    assert any(isinstance(event, HealthObserved) for event in rig.seen)


@pytest.mark.parametrize("step_ms", [HOUR_MS, -HOUR_MS, MINUTE_MS, -MINUTE_MS])
def test_a_step_of_the_wall_clock_gives_up_no_destination_that_restarts(tmp_path: Path, step_ms: int) -> None:
    rig, clock = new_world(tmp_path)
    restart_a_destination(rig)
    rig.after(15, lambda: clock.set(step_ms))
    done = rig.run(rig.prepared(AWAY, throttle=RATE // 4, pace=pace(moves=2)))
    assert (done.state, rig.replicas, rig.throttles) == ("done", AWAY, {})
    assert all(one.problem is None for one in done.moves)


def test_a_clock_that_is_set_again_and_again_changes_nothing_either(tmp_path: Path) -> None:
    even, _ = new_world(tmp_path / "even")
    even.run(even.prepared(AWAY, pace=pace(moves=2)))
    rig, clock = new_world(tmp_path / "set")
    for second in range(1, 40):
        rig.after(second, lambda second=second: clock.set((-1) ** second * second * MINUTE_MS))
    rig.run(rig.prepared(AWAY, pace=pace(moves=2)))
    assert what_happened(rig) == what_happened(even)


@pytest.mark.parametrize("step_ms", [HOUR_MS, -HOUR_MS])
def test_a_resumed_run_ignores_that_the_clock_was_set(tmp_path: Path, step_ms: int) -> None:
    rig, clock = new_world(tmp_path)
    rig.stop_after(6)
    rig.run(rig.prepared(AWAY, throttle=RATE // 2, pace=pace(moves=2)))
    clock.set(step_ms)
    done = rig.resume()
    assert (done.state, rig.replicas, rig.throttles) == ("done", AWAY, {})
    events = read_events(rig.path())
    assert all(later.at_ms >= before.at_ms for before, later in pairwise(events))
    assert all(one.problem is None for one in done.moves)


@pytest.mark.parametrize("stop_s", [120.0, 1_200.0])
@pytest.mark.parametrize("steps_clock", [True, False], ids=["clock set after it", "clock goes on"])
def test_the_time_while_the_machine_was_suspended_does_not_count(
    tmp_path: Path, stop_s: float, steps_clock: bool
) -> None:
    """The cluster goes on meanwhile: the destination is back, or not yet."""
    rig, clock = new_world(tmp_path)
    restart_a_destination(rig)

    def stop() -> None:
        clock.stops.append(stop_s)
        if steps_clock:
            clock.set(-MINUTE_MS)

    rig.after(10, stop)
    done = rig.run(rig.prepared(AWAY, throttle=RATE // 8, pace=pace(moves=2)))
    assert (done.state, rig.replicas, rig.throttles) == ("done", AWAY, {})
    assert all(one.problem is None for one in done.moves)
    looks = [event.at_ms for event in rig.seen if isinstance(event, MovesObserved)]
    assert all(later - before < 70_000 for before, later in pairwise(looks))


def test_hours_of_the_day_follow_the_wall_clock_when_it_is_put_right(tmp_path: Path) -> None:
    """The clock was an hour slow: the window of the day is open already."""
    rig = TwinRig(tmp_path, [[0, 1]])
    clock = WallClock(rig.transport)
    rig.clock = clock
    minute = rig.transport.now_ms() // MINUTE_MS % (24 * 60)
    window = Window((minute + 60) % (24 * 60), (minute + 90) % (24 * 60))
    begun_ms = rig.transport.now_ms()
    rig.after(100, lambda: clock.set(HOUR_MS))
    done = rig.run(rig.prepared({0: (2, 1)}, pace=Pace(hours=Schedule((window,)))))
    assert done.state == "done"
    (sent,) = [event for event in rig.seen if isinstance(event, MovesSubmitted)]
    assert 100_000 <= sent.at_ms - begun_ms < 200_000
