"""What is told of the hours of a run before it begins."""

from __future__ import annotations

import pytest

from kreassign.errors import IllegalPlan
from kreassign.executor.events import PlannedMove, RunStarted
from kreassign.executor.scheduling import Pace, Schedule, Window
from kreassign.executor.throttle_rates import ThrottleRates
from kreassign.model import TopicPartition
from kreassign.operations.run import warn_of_outlook

RATE = 12
"""Of which eleven are reached."""


def started(hours: Schedule, *sizes: int, throttle: int | None = RATE) -> RunStarted:
    moves = tuple(PlannedMove(TopicPartition("t", n), (0, 1), (2, 1), size) for n, size in enumerate(sizes))
    return RunStarted(0, "r", "c", moves, ThrottleRates(throttle), (0, 1, 2), pace=Pace(hours=hours))


def test_a_deadline_that_holds_everything_is_passed_over_in_silence() -> None:
    warnings: list[str] = []
    warn_of_outlook(started(Schedule(deadline_ms=100_000), 600, 500), warnings.append)
    warn_of_outlook(started(Schedule(), 10**9), warnings.append)
    warn_of_outlook(started(Schedule(deadline_ms=1), 10**9, throttle=None), warnings.append)
    assert not warnings


def test_a_deadline_that_cannot_be_met_is_warned_of() -> None:
    warnings: list[str] = []
    warn_of_outlook(started(Schedule(deadline_ms=100_000), 600, 501), warnings.append)
    assert warnings[0].startswith("at 11 B/s per broker at most 1 of 2 moves (600 B) end by 1970-01-01 00:01 UTC")


def test_a_plan_of_which_nothing_fits_is_refused() -> None:
    with pytest.raises(IllegalPlan, match="at most 0 of 1 moves"):
        warn_of_outlook(started(Schedule(deadline_ms=100_000), 1101))


def test_a_move_that_fits_into_no_window_is_refused() -> None:
    with pytest.raises(IllegalPlan, match=r"no time to come is long enough for 1 moves \(t-1\)"):
        warn_of_outlook(started(Schedule((Window(0, 1),)), 600, 661))
