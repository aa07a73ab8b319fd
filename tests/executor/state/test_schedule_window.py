"""The hours of a run in its own time: its wall clock may be ahead."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kreassign.executor.events import CopyProgress, TimePassed
from kreassign.executor.instructions import ObserveMoves, Wait
from kreassign.executor.scheduling import AtWindowEnd, Order, Pace, Schedule, TimeLeft, Window
from kreassign.executor.scheduling.windows import REACHED
from kreassign.executor.state import WindDown, schedule_window
from kreassign.executor.state.machine import handle
from kreassign.executor.state.move import MoveRecord, MoveStatus
from kreassign.executor.state.move_index import candidate, left_of
from kreassign.executor.state.phases import Waiting
from kreassign.executor.state.run import Control, Run
from kreassign.executor.throttle.rates import NO_THROTTLE, BrokerRate, ThrottleRates
from kreassign.model import TopicPartition
from tests.executor.run_events import A0, A1, LISTED, MOVES, RATE, SUBMITTED, machine_after, started
from tests.executor.state.run_changes import changed, run_after

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


# --- boundaries, and all that is changed ---------------------------------------------------------------------------

ENDS_MS = HOUR_MS


@pytest.mark.parametrize(("at_ms", "is_open"), [
    (0, True),
    (ENDS_MS - 1, True),
    (ENDS_MS, False),
    (24 * HOUR_MS - 1, False),
    (24 * HOUR_MS, True),
])  # fmt: skip
def test_a_window_is_open_from_its_first_ms_to_before_its_end(at_ms: int, is_open: bool) -> None:
    run = run_in(NIGHT)
    assert schedule_window.sleeps(run, at_ms) == (not is_open)
    waits = None if is_open else "waits for its window, which opens 1970-01-02 00:00 UTC"
    assert schedule_window.closed(run, at_ms) == waits
    ahead = run_in(NIGHT, ahead_ms=at_ms)
    assert schedule_window.sleeps(ahead, 0) == (not is_open)
    assert schedule_window.closed(ahead, 0) == waits


def test_where_there_is_no_window_before_the_deadline_nothing_is_waited_for() -> None:
    run = run_in(Schedule(NIGHT.windows, deadline_ms=20 * HOUR_MS))
    assert schedule_window.closed(run, NOON_MS) is None


def test_without_hours_nothing_is_foreseen_or_measured() -> None:
    run = run_in(Schedule())
    run.moves.outlook = ("waits",)
    assert changed(run, lambda: schedule_window.take_in(run, 5_000))[1] == {"moves.outlook": ()}


def test_speed_is_measured_at_polls_that_show_progress() -> None:
    for has_progress, at_ms in ((True, 5_000), (False, None)):
        run = run_in(NIGHT, is_started=True)
        run.moves.records[A0].copies = (CopyProgress(2, 300, 700),)
        schedule_window.take_in(run, 5_000, has_progress=has_progress)
        assert run.moves.speed._at_ms == at_ms
        assert run.moves.speed._received == ({2: 300, 3: 0} if has_progress else {})
    run = run_in(NIGHT)
    schedule_window.take_in(run, 5_000)
    assert run.moves.speed._at_ms == 5_000


@pytest.mark.parametrize(("at_end", "wind_down"), [
    (AtWindowEnd.FINISH, WindDown.FINISH),
    (AtWindowEnd.CANCEL, WindDown.CANCEL),
])  # fmt: skip
def test_a_deadline_by_the_wall_clock_ends_a_run_that_nobody_cancelled(
    at_end: AtWindowEnd, wind_down: WindDown
) -> None:
    hours = Schedule(deadline_ms=NOON_MS, at_end=at_end)
    run = run_in(hours, ahead_ms=NOON_MS)
    run.moves.outlook = ("at most 1 of 2 moves",)
    over = "its deadline is over: what had not been started by then is left out"
    assert changed(run, lambda: schedule_window.take_in(run, 0, has_progress=False))[1] == {
        "control.wind_down": wind_down,
        "moves.outlook": (),
        "problems.noted": [over],
    }
    cancelled = run_in(hours, ahead_ms=NOON_MS)
    cancelled.control.wind_down = WindDown.FINISH
    assert changed(cancelled, lambda: schedule_window.take_in(cancelled, 0, has_progress=False))[1] == {}


def test_only_what_is_under_way_is_postponed() -> None:
    run = run_in(Schedule(NIGHT.windows, at_end=AtWindowEnd.CANCEL), is_started=True)
    run.moves.records[A1].status = MoveStatus.SENT
    assert changed(run, lambda: schedule_window.postponed(run, NOON_MS)) == ((A0,), {"a-0.is_postponed": True})
    run = run_in(Schedule(at_end=AtWindowEnd.CANCEL), is_started=True)
    assert changed(run, lambda: schedule_window.postponed(run, NOON_MS)) == ((), {})
    run = run_in(Schedule(NIGHT.windows, at_end=AtWindowEnd.CANCEL), is_started=True, ahead_ms=NOON_MS)
    assert changed(run, lambda: schedule_window.postponed(run, 0))[0] == (A0, A1)


def test_what_is_in_flight_takes_its_part_of_the_time() -> None:
    run = run_in(NIGHT, is_started=True)
    run.moves.records[A0].copies = (CopyProgress(2, 300, 700),)
    moving = run.moves.in_flight
    bytes_per_s = RATE * REACHED
    for at_ms, seconds in ((0, 3_600.0), (ENDS_MS - 1_500, 1.5), (NOON_MS, 0.0)):
        expected = TimeLeft.after(seconds, bytes_per_s, [left_of(record) for record in moving])
        assert schedule_window.time_left(run, moving, at_ms) == expected
    run.control.rates = NO_THROTTLE
    assert schedule_window.time_left(run, (), 0) == TimeLeft(3_600.0, None)
    run.moves.speed.fastest_bytes_per_s = 7.0
    assert schedule_window.time_left(run, (), 0) == TimeLeft(3_600.0, 7.0)


def foreseen(run: Run, at_ms: int, *moving: MoveRecord) -> tuple[str, ...]:
    schedule_window.time_left(run, moving, at_ms)
    return run.moves.outlook


OPENS = "waits for its window, which opens 1970-01-02 00:00 UTC"
TOO_LONG = "at 0.46 B/s per broker no time to come is long enough for {} (a-{}): give a higher rate or longer windows"


def test_the_outlook_is_that_of_the_last_poll() -> None:
    run = waiting(NIGHT, ThrottleRates(RATE))
    run.moves.outlook = ("of before",)
    assert foreseen(run, 0) == ()
    assert foreseen(run, NOON_MS) == (OPENS,)
    run.moves.index.queue.remove(A0)
    run.moves.index.queue.remove(A1)
    run.moves.outlook = ("of before",)
    assert foreseen(run, NOON_MS) == ()


GIVEN_UP = "at the rate of the run, no time in which it may be in flight is long enough for it"


def slow(size_bytes: int) -> Run:
    """Two moves that wait, in a window of 3,600 s in which 10 bytes per second come in: one of that many bytes."""
    sized = (replace(MOVES[0], size_bytes=size_bytes), replace(MOVES[1], size_bytes=size_bytes))
    run = run_after(started(*sized), *LISTED[1:])
    run.control = Control(NO_THROTTLE, Pace(hours=NIGHT))
    run.moves.speed.fastest_bytes_per_s = 10.0
    for record in run.moves.records.values():
        run.moves.index.queue.add(candidate(record))
    return run


def test_moves_are_given_up_where_no_time_is_long_enough_for_any_and_none_is_in_flight() -> None:
    fits = slow(36_000)
    assert foreseen(fits, 0) == ()
    run = slow(36_001)
    told = "at 10 B/s per broker no time to come is long enough for 2 moves (a-0, a-1): give a higher rate or longer"
    changes = changed(run, lambda: schedule_window.time_left(run, (), 5_000))[1]
    given_up = {"status": MoveStatus.FAILED, "completed_ms": 5_000, "problem": GIVEN_UP, "given_up": GIVEN_UP}
    assert changes == {
        **{f"a-{number}.{what}": value for number in (0, 1) for what, value in given_up.items()},
        "moves.index.queue": [],
        "moves.outlook": (f"{told} windows",),
    }


def test_moves_are_not_given_up_while_another_fits_or_is_in_flight() -> None:
    run = slow(36_001)
    run.moves.index.queue.add(replace(candidate(run.moves.records[A1]), size_bytes=1))
    assert len(foreseen(run, 0)) == 1
    assert [one.status for one in run.moves.records.values()] == [MoveStatus.PLANNED] * 2
    run = slow(36_001)
    other = MoveRecord(replace(MOVES[0], topic_partition=TopicPartition("b", 0)), MoveStatus.MOVING)
    run.moves.records[other.name] = run.moves.index.in_flight[other.name] = other
    assert len(foreseen(run, 0)) == 1
    assert [one.status for one in run.moves.records.values()] == [MoveStatus.PLANNED] * 2 + [MoveStatus.MOVING]


def test_what_does_not_fit_before_the_deadline_is_told_with_what_is_in_flight_counted_in() -> None:
    run = slow(20_000)
    run.control.pace = Pace(hours=Schedule(deadline_ms=HOUR_MS))
    assert foreseen(run, 0) == ()
    flying = MoveRecord(replace(MOVES[0], topic_partition=TopicPartition("b", 0), size_bytes=20_000), MoveStatus.MOVING)
    (told,) = foreseen(run, 0, flying)
    assert told.startswith("at 10 B/s per broker at most 2 of 3 moves (40 kB) end by 1970-01-01 01:00 UTC")
    run.wall_ahead_ms = HOUR_MS // 2
    told, _ = foreseen(run, 0)
    assert told.startswith("at 10 B/s per broker no time to come is long enough for 2 moves")


def test_the_rate_is_the_slowest_that_is_given_or_else_the_fastest_that_was_seen() -> None:
    run = run_in(NIGHT)
    run.control.rates, run.moves.speed.fastest_bytes_per_s = NO_THROTTLE, None
    assert schedule_window.rate(run) is None
    run.moves.speed.fastest_bytes_per_s = 7.0
    assert schedule_window.rate(run) == 7.0
    run.control.rates = ThrottleRates(12_000, (BrokerRate(1, 1_200),))
    assert schedule_window.rate(run) == pytest.approx(1_100.0)


@pytest.mark.parametrize(("order", "in_time"), [(Order.SMALL_FIRST, "40 kB"), (Order.LARGE_FIRST, "50 kB")])
def test_what_ends_in_time_follows_the_order_of_the_run(order: Order, in_time: str) -> None:
    run = slow(20_000)
    run.control.pace = Pace(order, hours=Schedule(deadline_ms=HOUR_MS))
    flying = MoveRecord(replace(MOVES[0], topic_partition=TopicPartition("b", 0), size_bytes=30_000), MoveStatus.MOVING)
    (told,) = foreseen(run, 0, flying)
    assert f"at most 2 of 3 moves ({in_time}) end" in told
