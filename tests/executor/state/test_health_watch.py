"""Inspections and verdicts in a run, as events."""

from __future__ import annotations

from dataclasses import replace

from kreassign.executor.events import (
    Event,
    HealthObserved,
    MovesObserved,
    PlacementState,
    PlannedMove,
    RunResumed,
    RunStarted,
    SubmissionIntended,
    TimePassed,
    VerdictsRecorded,
)
from kreassign.executor.guards import GuardName, GuardSetting, Health, Reaction, Verdict
from kreassign.executor.guards.settings import settings
from kreassign.executor.instructions import (
    CancelMoves,
    CheckHealth,
    ObserveMoves,
    RecordVerdicts,
    ReplanMoves,
    SubmitMoves,
    Wait,
)
from kreassign.executor.state import WindDown
from kreassign.executor.state.health_watch import CHECK_EVERY_MS, FRESH_MS
from kreassign.executor.throttle.rates import NO_THROTTLE
from tests.executor.run_events import A0, LIVE, look, replayed

MOVE = PlannedMove(A0, (0, 1), (2, 1), 1_000)
WELL = Health(LIVE)
WITHOUT_2 = Health((0, 1, 3, 4))
BARRED = Health(LIVE, cordoned=(2,))
UNTOUCHED = look(1_000, PlacementState.UNTOUCHED, MOVE)


def begun(guards: tuple[GuardSetting, ...] = settings()) -> RunStarted:
    return RunStarted(0, "run-1", "cluster-1", (MOVE,), NO_THROTTLE, LIVE, guards)


def noted(at_ms: int, *events: Event) -> VerdictsRecorded:
    """What the guards say last, as it is written down."""
    (order,) = replayed(*events)[1]
    assert isinstance(order, RecordVerdicts)
    return VerdictsRecorded(at_ms, order.verdicts)


def test_the_cluster_is_inspected_before_a_move_is_sent() -> None:
    assert replayed(begun(), UNTOUCHED)[1] == (CheckHealth((MOVE,), ()),)
    assert replayed(begun(), UNTOUCHED, HealthObserved(1_000, WELL))[1] == (SubmitMoves({A0: (2, 1)}),)


def test_an_inspection_is_made_again_when_it_is_old_and_earlier_when_something_shall_start() -> None:
    inspected = (begun(), UNTOUCHED, HealthObserved(1_000, BARRED))
    held = (*inspected, noted(1_000, *inspected), TimePassed(0))
    assert replayed(*held, MovesObserved(999 + FRESH_MS, ()))[1] == (Wait(),)
    assert replayed(*held, MovesObserved(1_000 + FRESH_MS, ()))[1] == (CheckHealth((MOVE,), (), BARRED),)
    moving = (begun(), look(1_000, PlacementState.MOVING, MOVE), HealthObserved(1_000, WELL))
    assert replayed(*moving, MovesObserved(999 + CHECK_EVERY_MS, ()))[1] == (Wait(),)
    assert replayed(*moving, MovesObserved(1_000 + CHECK_EVERY_MS, ()))[1] == (CheckHealth((MOVE,), (), WELL),)


def test_a_breach_holds_what_is_not_begun_until_it_is_over() -> None:
    breached = (begun(), UNTOUCHED, HealthObserved(1_000, BARRED))
    held = (*breached, noted(1_000, *breached))
    execution, instructions = replayed(*held)
    assert instructions == (Wait(),)
    assert (
        "broker 2 shall get copies, but is in maintenance, or its log directories are cordoned" in execution.problems[0]
    )
    over = (*held, TimePassed(20_000), MovesObserved(20_000, ()), HealthObserved(20_000, WELL))
    assert noted(20_000, *over).verdicts == ()
    assert replayed(*over, noted(20_000, *over))[1] == (SubmitMoves({A0: (2, 1)}),)


def test_what_the_guards_said_before_is_not_written_down_again() -> None:
    breached = (begun(), UNTOUCHED, HealthObserved(1_000, BARRED))
    again = (
        *breached,
        noted(1_000, *breached),
        TimePassed(20_000),
        MovesObserved(20_000, ()),
        HealthObserved(20_000, BARRED),
    )
    assert replayed(*again)[1] == (Wait(),)


def test_a_verdict_that_cancels_ends_the_run() -> None:
    verdict = Verdict(GuardName.DISK, Reaction.CANCEL, "full", "make room")
    events = (begun(), UNTOUCHED, HealthObserved(1_000, BARRED), VerdictsRecorded(1_000, (verdict,)))
    execution, instructions = replayed(*events)
    assert instructions == (ObserveMoves((MOVE,)),)
    assert (execution.wind_down, execution.wants_rollback) == (WindDown.CANCEL, False)


def test_a_destination_may_be_down_for_a_minute_and_then_gets_no_more_copies() -> None:
    moving = (begun(), look(1_000, PlacementState.MOVING, MOVE), HealthObserved(1_000, WITHOUT_2))

    def seen_again(at_ms: int) -> tuple[object, ...]:
        looked = (TimePassed(at_ms), look(at_ms, PlacementState.MOVING, MOVE), HealthObserved(at_ms, WITHOUT_2))
        return replayed(*moving, *looked)[1]

    assert seen_again(60_999) == (Wait(),)
    assert seen_again(61_000) == (CancelMoves((A0,)),)


def test_what_may_be_under_way_is_sent_again_though_a_guard_holds() -> None:
    """Nobody knows whether the request of the process that died arrived: asking again finds out, and begins nothing."""
    begun_before = (begun(), UNTOUCHED, HealthObserved(1_000, WELL), SubmissionIntended(1_000, (A0,)))
    looked = (RunResumed(30_000, LIVE), look(30_000, PlacementState.UNTOUCHED, MOVE), HealthObserved(30_000, BARRED))
    held = (*begun_before, *looked)
    assert replayed(*held, noted(30_000, *held))[1] == (SubmitMoves({A0: (2, 1)}),)


def test_where_moves_are_planned_again_a_destination_that_is_down_gets_another_one_in_its_place() -> None:
    first = (replace(begun(), replans=True), look(1_000, PlacementState.MOVING, MOVE), HealthObserved(1_000, WITHOUT_2))
    again = (TimePassed(61_000), look(61_000, PlacementState.MOVING, MOVE), HealthObserved(61_000, WITHOUT_2))
    execution, (question,) = replayed(*first, *again)
    assert isinstance(question, ReplanMoves)
    assert question.moves == (MOVE,)
    assert not execution.records[A0].is_given_up
