"""The hours of a run: when it sleeps, what still fits, what it foresees, and what the end of a window does."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kreassign.executor.eta import beyond_hours
from kreassign.executor.events import (
    CancelRequested,
    ClockStepped,
    Event,
    MovesObserved,
    MovesSubmitted,
    PaceRequested,
    PlannedMove,
    Refusal,
    SubmissionIntended,
    TimePassed,
)
from kreassign.executor.state import WindDown
from kreassign.model import TopicPartition
from kreassign.model.pace import AtWindowEnd, Order, Pace, PaceChange, Schedule, Window
from kreassign.model.run import Interval
from tests.executor.run_events import A0, A1, MOVES, look, seen
from tests.executor.state.played import MOVING, UNTOUCHED, Played, begun

HOUR_MS = 3_600_000
NIGHT = Schedule((Window(0, 60),))
"""From midnight to one o'clock."""
NOON_MS = 12 * HOUR_MS
OPENS = "waits for its window, which opens 1970-01-02 00:00 UTC"


def run_of(
    *moves: PlannedMove, hours: Schedule = NIGHT, throttle: int | None = None, order: Order = Order.NAME
) -> Played:
    """A run in these hours, before its first poll."""
    run = Played(begun(*moves, throttle=throttle, pace=Pace(order, hours=hours, is_eager=True)))
    return run if throttle is None else run.go("observe")


def ahead(ms: int) -> ClockStepped:
    """The wall clock is set forward."""
    return ClockStepped(0, ms)


def starting(run: Played) -> str:
    """Moves sent after the last poll, once lists are set and moves are read again; else the wait."""
    ends = ("submit", "wait")
    return run.decided if run.decided.startswith(ends) else run.go(ends).decided


@pytest.mark.parametrize(("events", "at_ms", "hours", "is_asleep"), [
    ([], 0, NIGHT, False),
    ([], HOUR_MS - 1, NIGHT, False),
    ([], HOUR_MS, NIGHT, True),
    ([], 24 * HOUR_MS - 1, NIGHT, True),
    ([], 24 * HOUR_MS, NIGHT, False),
    ([], NOON_MS, Schedule(), False),
    # Hours of the day are those of the wall clock.
    ([ahead(NOON_MS)], 1_000, NIGHT, True),
    ([ahead(NOON_MS)], NOON_MS, NIGHT, False),
    # Where no window comes any more, or the run was cancelled, there is nothing to sleep for.
    ([], NOON_MS, replace(NIGHT, deadline_ms=20 * HOUR_MS), False),
    ([CancelRequested(2_000, 1, is_now=False)], NOON_MS, NIGHT, False),
])  # fmt: skip
def test_a_run_sleeps_until_its_window_opens(events: list[Event], at_ms: int, hours: Schedule, is_asleep: bool) -> None:
    shut = PaceRequested(0, 1, PaceChange(hours=Schedule((Window(60, 61),))))
    run = run_of(hours=hours).on(shut, look(0, UNTOUCHED), PaceRequested(0, 2, PaceChange(hours=hours)))
    assert run.step == "Waiting"
    run.on(*events, TimePassed(at_ms))
    assert run.decided == ("wait" if is_asleep else "observe a-0 a-1")
    assert (run.view.hindrance(at_ms) == OPENS) == is_asleep


def test_a_run_with_copies_in_flight_does_not_sleep() -> None:
    assert run_of().on(look(0, MOVING), TimePassed(NOON_MS)).decided == "observe a-0 a-1"


def sized(*sizes: int) -> tuple[PlannedMove, ...]:
    """Moves between one pair of brokers."""
    return tuple(PlannedMove(TopicPartition("a", number), (0, 1), (2, 1), size) for number, size in enumerate(sizes))


MINUTE = HOUR_MS - 60_000
"""A minute is left then, in which 660 bytes arrive at 11 bytes per second: 11/12 of the throttle."""


@pytest.mark.parametrize(("sizes", "events", "at_ms", "decided"), [
    ((660, 10_000), [], MINUTE, "submit a-0"),
    ((661, 100), [], MINUTE, "submit a-1"),
    ((660, 10_000), [ahead(60_000)], MINUTE - 60_000, "submit a-0"),
    ((330, 330, 1), [], MINUTE, "submit a-0 a-1"),
    ((330, 10_000), [], NOON_MS, "wait"),
    ((330, 10_000), [], MINUTE + 30_000, "submit a-0"),
    ((331, 10_000), [], MINUTE + 30_000, "wait"),
])  # fmt: skip
def test_only_moves_that_fit_into_the_window_start(
    sizes: tuple[int, ...], events: list[Event], at_ms: int, decided: str
) -> None:
    run = run_of(*sized(*sizes), throttle=12).on(*events, look(at_ms, UNTOUCHED, *sized(*sizes)))
    assert starting(run) == decided


@pytest.mark.parametrize(("size", "decided"), [(160, "submit a-1"), (161, "wait")])
def test_copies_in_flight_take_their_part_of_the_time(size: int, decided: str) -> None:
    first, second, third = moves = sized(1_000, size, 10_000)
    half_way = MovesObserved(MINUTE, (seen(first, MOVING, done=500), seen(second, UNTOUCHED), seen(third, UNTOUCHED)))
    assert starting(run_of(*moves, throttle=12).on(half_way)) == decided


@pytest.mark.parametrize(("polls", "size", "decided"), [
    # Nobody knows how fast copies go: one move at a time is started, to see.
    ([], 10_000, "wait"),
    ([(MINUTE, 500, True)], 500, "submit a-1"),
    ([(MINUTE, 500, True)], 5_500, "submit a-1"),
    ([(MINUTE, 500, True)], 5_501, "wait"),
    ([(MINUTE, 500, False)], 500, "wait"),
])  # fmt: skip
def test_without_a_throttle_copies_go_as_fast_as_they_were_seen_to(
    polls: list[tuple[int, int, bool]], size: int, decided: str
) -> None:
    first, second = sized(1_000, size)
    run = run_of(first, second).on(MovesObserved(MINUTE - 5_000, (seen(first, MOVING), seen(second, UNTOUCHED))))
    for at_ms, done, has_progress in polls:
        run.on(replace(look(at_ms, MOVING, first, done=done), has_progress=has_progress))
    assert starting(run) == decided


TOO_LONG = "at 11 B/s per broker no time to come is long enough for {}: give a higher rate or longer windows"
GIVEN_UP = "at the rate of the run, no time in which it may be in flight is long enough for it"
BY_ONE = Schedule(deadline_ms=HOUR_MS)
AT_MOST = "at 11 B/s per broker at most {} of {} moves ({}) end by 1970-01-01 01:00 UTC"


@pytest.mark.parametrize(("sizes", "hours", "at_ms", "outlook", "moves"), [
    ((39_600, 39_600), NIGHT, 0, (), "planned planned"),
    ((39_600, 39_600), NIGHT, NOON_MS, (OPENS,), "planned planned"),
    ((39_600, 39_601), NIGHT, 0, (TOO_LONG.format("1 move (a-1)"),), "planned planned"),
    ((39_601, 39_601), NIGHT, 0, (TOO_LONG.format("2 moves (a-0, a-1)"),), "failed failed"),
    ((20_000, 19_600), BY_ONE, 0, (), "planned planned"),
    ((20_000, 20_000), BY_ONE, 0, (AT_MOST.format(1, 2, "20 kB"),), "planned planned"),
    ((20_000, 20_000), Schedule(), 0, (), "planned planned"),
])  # fmt: skip
def test_a_run_tells_what_will_not_fit_and_gives_up_where_nothing_does(
    sizes: tuple[int, int], hours: Schedule, at_ms: int, outlook: tuple[str, ...], moves: str
) -> None:
    run = run_of(*sized(*sizes), hours=hours, throttle=12).on(look(at_ms, UNTOUCHED, *sized(*sizes)))
    assert [told.startswith(said) for told, said in zip(run.view.outlook, outlook, strict=True)] == [True] * len(
        outlook
    )
    assert run.moves == moves
    if moves == "failed failed":
        assert {(record.problem, record.ended_ms) for record in run.view.records.values()} == {(GIVEN_UP, at_ms)}


def test_moves_are_not_given_up_while_another_one_is_in_flight() -> None:
    first, second = moves = sized(39_601, 39_601)
    run = run_of(*moves, throttle=12).on(MovesObserved(0, (seen(first, MOVING), seen(second, UNTOUCHED))))
    assert (len(run.view.outlook), run.moves) == (1, "moving planned")


SHORT = PaceRequested(1_000, 1, PaceChange(hours=Schedule((Window(0, 1),))))
"""A minute a day, in which 660 bytes arrive."""


def refused_for_now(*sizes: int) -> Played:
    """A run whose first move was sent, and refused by the cluster for now."""
    run = run_of(*sized(*sizes), throttle=12).on(look(0, UNTOUCHED, *sized(*sizes)))
    for_now = MovesSubmitted(0, (), deferred=(Refusal(A0, "not the controller"),))
    return run.go("submit").on(SubmissionIntended(0, (A0,)), for_now)


@pytest.mark.parametrize(("sizes", "moves"), [
    ((661,), "failed"),
    ((661, 661), "failed failed"),
    ((660, 661), "sent planned"),
    ((661, 660), "sent planned"),
])  # fmt: skip
def test_refused_moves_are_given_up_where_no_window_fits(sizes: tuple[int, ...], moves: str) -> None:
    run = refused_for_now(*sizes).on(SHORT, look(500, UNTOUCHED, *sized(*sizes)))
    assert run.moves == moves
    assert {one.problem for one in run.view.records.values()} == {GIVEN_UP if "failed" in moves else None}


def test_a_refused_move_waits_for_its_window_and_says_so() -> None:
    run = refused_for_now(660).on(look(NOON_MS, UNTOUCHED, *sized(660)))
    assert (run.moves, run.view.outlook) == ("sent", (OPENS,))


SOON = Interval(0.0, 60.0, 60.0)


def test_a_refused_move_does_not_end_after_its_window() -> None:
    run = refused_for_now(330).on(look(HOUR_MS - 30_000, UNTOUCHED, *sized(330)))
    assert (beyond_hours(run.view, run.now, SOON) or "").startswith("at the present rate what is left takes 1 min, and")


def test_without_a_known_rate_nothing_is_foreseen() -> None:
    run = run_of(*sized(39_601, 39_601)).on(look(0, UNTOUCHED, *sized(39_601, 39_601)))
    assert (run.view.outlook, run.moves) == ((), "planned planned")


@pytest.mark.parametrize(("order", "in_time"), [(Order.SMALL_FIRST, "40 kB"), (Order.LARGE_FIRST, "50 kB")])
def test_what_ends_in_time_counts_copies_in_flight_in_the_order_of_the_run(order: Order, in_time: str) -> None:
    first, second, third = sized(30_000, 20_000, 20_000)
    moves = (first, second, replace(third, original=(1, 0), target=(1, 3)))
    found = (seen(moves[0], MOVING), *(seen(move, UNTOUCHED) for move in moves[1:]))
    run = run_of(*moves, hours=BY_ONE, throttle=12, order=order).on(MovesObserved(0, found))
    (told,) = run.view.outlook
    assert f"({in_time}) end" in told


def test_the_outlook_ends_with_the_window() -> None:
    run = run_of(*sized(1, 1)).on(look(NOON_MS, UNTOUCHED, *sized(1, 1)))
    assert run.view.outlook == (OPENS,)
    run.on(PaceRequested(NOON_MS, 1, PaceChange(hours=Schedule(deadline_ms=100 * NOON_MS))), TimePassed(NOON_MS))
    assert run.on(MovesObserved(NOON_MS, ())).view.outlook == ()


OVER = "its deadline is over: what had not been started by then is left out"


@pytest.mark.parametrize(("at_end", "at_ms", "events", "wind_down"), [
    (AtWindowEnd.CANCEL, HOUR_MS - 1, [], None),
    (AtWindowEnd.CANCEL, HOUR_MS, [], WindDown.CANCEL),
    (AtWindowEnd.FINISH, HOUR_MS, [], WindDown.FINISH),
    (AtWindowEnd.CANCEL, 1_000, [ahead(HOUR_MS)], WindDown.CANCEL),
])  # fmt: skip
def test_a_deadline_ends_the_run_as_its_hours_say(
    at_end: AtWindowEnd, at_ms: int, events: list[Event], wind_down: WindDown | None
) -> None:
    run = run_of(hours=replace(BY_ONE, at_end=at_end)).on(*events, look(at_ms, MOVING))
    assert (run.view.control.wind_down, run.problems) == (wind_down, (OVER,) if wind_down else ())
    assert run.view.outlook == ()


def test_a_deadline_does_not_change_a_run_that_was_cancelled_before() -> None:
    run = run_of(hours=replace(BY_ONE, at_end=AtWindowEnd.CANCEL)).on(CancelRequested(0, 1, is_now=False))
    run.on(look(HOUR_MS, MOVING))
    assert (run.view.control.wind_down, run.problems, run.decided) == (WindDown.FINISH, (), "wait")


CANCELLING = replace(NIGHT, at_end=AtWindowEnd.CANCEL)


@pytest.mark.parametrize(("hours", "at_ms", "events", "decided"), [
    (CANCELLING, HOUR_MS, [], "cancel a-0 a-1"),
    (CANCELLING, HOUR_MS - 1, [], "wait"),
    (NIGHT, HOUR_MS, [], "wait"),
    (Schedule(at_end=AtWindowEnd.CANCEL), HOUR_MS, [], "wait"),
    (CANCELLING, 1_000, [ahead(NOON_MS)], "cancel a-0 a-1"),
])  # fmt: skip
def test_the_end_of_a_window_cancels_copies_if_it_is_to(
    hours: Schedule, at_ms: int, events: list[Event], decided: str
) -> None:
    assert run_of(hours=hours).on(look(0, MOVING), *events, look(at_ms, MOVING)).decided == decided


def test_a_move_that_may_not_be_under_way_is_not_cancelled_for_a_window() -> None:
    run = run_of(hours=CANCELLING).on(look(0, UNTOUCHED), SubmissionIntended(0, (A0, A1)))
    run.on(MovesSubmitted(0, (A0,), unknown=(A1,)), look(HOUR_MS, MOVING, MOVES[0]))
    assert run.decided == "cancel a-0"
