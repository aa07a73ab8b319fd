"""The hours of a run in its own time: its wall clock may be ahead."""

from __future__ import annotations

from kreassign.executor.events import TimePassed
from kreassign.executor.instructions import ObserveMoves, Wait
from kreassign.executor.scheduling import AtWindowEnd, Pace, Schedule, Window
from kreassign.executor.scheduling.windows import REACHED
from kreassign.executor.state import WindDown, schedule_window
from kreassign.executor.state.machine import handle
from kreassign.executor.state.move import MoveStatus
from kreassign.executor.state.move_index import left_of
from kreassign.executor.state.phases import Waiting
from kreassign.executor.state.run import Control, Run
from kreassign.executor.throttle.rates import NO_THROTTLE, ThrottleRates
from tests.executor.run_events import A0, A1, LISTED, RATE, SUBMITTED, machine_after

HOUR_MS = 3_600_000
NIGHT = Schedule((Window(0, 60),))
"""From midnight to one o'clock."""
NOON_MS = 12 * HOUR_MS


def run_in(hours: Schedule, *, is_started: bool = False, ahead_ms: int = 0) -> Run:
    """A run with two moves that wait, or were sent."""
    run = machine_after(*(SUBMITTED if is_started else LISTED))[0]._run
    if not is_started:
        for record in run.moves.records.values():
            run.moves.index.sort(record)
    run.control.pace, run.wall_ahead_ms = Pace(hours=hours), ahead_ms
    return run


def test_a_run_sleeps_while_its_window_is_closed_and_nothing_is_in_flight() -> None:
    assert schedule_window.sleeps(run_in(NIGHT), NOON_MS)
    assert not schedule_window.sleeps(run_in(NIGHT), 0)
    assert not schedule_window.sleeps(run_in(NIGHT, is_started=True), NOON_MS)
    assert not schedule_window.sleeps(run_in(Schedule()), NOON_MS)


def test_a_run_without_hours_to_come_or_that_was_cancelled_does_not_sleep() -> None:
    assert not schedule_window.sleeps(run_in(Schedule(NIGHT.windows, deadline_ms=NOON_MS)), NOON_MS)
    cancelled = run_in(NIGHT)
    cancelled.control.wind_down = WindDown.FINISH
    assert not schedule_window.sleeps(cancelled, NOON_MS)


def test_hours_are_those_of_the_wall_clock() -> None:
    assert schedule_window.sleeps(run_in(NIGHT, ahead_ms=NOON_MS), 0)
    assert not schedule_window.sleeps(run_in(NIGHT, ahead_ms=NOON_MS), NOON_MS)
    assert schedule_window.closed(run_in(NIGHT, ahead_ms=NOON_MS), NOON_MS) is None


def test_a_closed_window_says_when_it_opens() -> None:
    said = schedule_window.closed(run_in(NIGHT), NOON_MS)
    assert said is not None
    assert "1970-01-02 00:00 UTC" in said
    assert schedule_window.closed(run_in(NIGHT), 0) is None
    assert schedule_window.closed(run_in(Schedule()), NOON_MS) is None


def test_the_time_left_is_that_of_the_window_of_now() -> None:
    left = schedule_window.time_left(run_in(NIGHT), (), HOUR_MS // 2)
    assert left is not None
    assert (left.seconds, left.rate_bytes_per_s) == (1_800.0, RATE * REACHED)
    later = schedule_window.time_left(run_in(NIGHT, ahead_ms=HOUR_MS // 4), (), HOUR_MS // 2)
    assert later is not None
    assert later.seconds == 900.0
    closed = schedule_window.time_left(run_in(NIGHT), (), NOON_MS)
    assert closed is not None
    assert closed.seconds == 0.0
    assert schedule_window.time_left(run_in(Schedule()), (), 0) is None


def waiting(hours: Schedule, rates: ThrottleRates) -> Run:
    """A run whose two moves were seen and wait."""
    run = run_in(hours)
    run.control = Control(rates, run.control.pace)
    for record in run.moves.records.values():
        run.moves.index.queue.add(left_of(record))
        run.moves.index.unsettled.pop(record.name, None)
    return run


def test_moves_that_fit_into_no_window_are_given_up_and_those_that_fit_are_not() -> None:
    slow = waiting(NIGHT, ThrottleRates(0))
    fast = waiting(NIGHT, ThrottleRates(RATE))
    for run in (slow, fast):
        schedule_window.time_left(run, (), 0)
    assert {name for name, one in slow.moves.records.items() if one.is_given_up} == {A0, A1}
    assert not any(one.is_given_up for one in fast.moves.records.values())


def test_what_will_not_fit_is_told_beside_what_is_waited_for() -> None:
    run = waiting(Schedule(NIGHT.windows, deadline_ms=25 * HOUR_MS), ThrottleRates(RATE))
    schedule_window.time_left(run, (), NOON_MS)
    (waits,) = run.moves.outlook
    assert "waits for its window" in waits


def test_where_nobody_knows_how_fast_copies_go_nothing_is_foreseen() -> None:
    run = waiting(NIGHT, NO_THROTTLE)
    schedule_window.time_left(run, (), 0)
    assert run.moves.outlook == ()
    assert not any(one.is_given_up for one in run.moves.records.values())


def test_moves_in_flight_are_postponed_only_where_the_end_of_a_window_cancels_them() -> None:
    cancels = run_in(Schedule(NIGHT.windows, at_end=AtWindowEnd.CANCEL), is_started=True)
    for record in cancels.moves.in_flight:
        record.status = MoveStatus.MOVING
    assert schedule_window.postponed(cancels, 0) == ()
    assert schedule_window.postponed(cancels, NOON_MS) == (A0, A1)
    assert all(record.is_postponed for record in cancels.moves.in_flight)
    assert schedule_window.postponed(run_in(NIGHT, is_started=True), NOON_MS) == ()


def ended(at_end: AtWindowEnd, at_ms: int) -> Run:
    """A run with a deadline at ten seconds, at a poll."""
    run = run_in(Schedule(deadline_ms=10_000, at_end=at_end))
    run.moves.outlook = ("at most 1 of 2 moves",)
    schedule_window.take_in(run, at_ms)
    return run


def test_a_deadline_that_is_over_ends_the_run_as_its_hours_say() -> None:
    assert ended(AtWindowEnd.CANCEL, 9_999).control.wind_down is None
    assert ended(AtWindowEnd.CANCEL, 10_000).control.wind_down is WindDown.CANCEL
    finishing = ended(AtWindowEnd.FINISH, 10_000)
    assert finishing.control.wind_down is WindDown.FINISH
    assert (finishing.moves.outlook, len(finishing.problems.noted)) == ((), 1)


def test_a_run_that_sleeps_goes_on_waiting_and_looks_when_its_window_opens() -> None:
    run = run_in(NIGHT)
    run.state = Waiting()
    assert handle(run, TimePassed(NOON_MS)) == (Wait(),)
    assert run.state == Waiting()
    (look,) = handle(run, TimePassed(24 * HOUR_MS))
    assert isinstance(look, ObserveMoves)
