"""Other destinations for moves whose destination is lost, as far as the machine decides that."""

from __future__ import annotations

from dataclasses import replace

from kreassign.executor.events import CallFailed, Event, MovesReplanned, NewTarget, Operator, PlacementState, Refusal
from kreassign.executor.instructions import ReplanMoves, Wait
from kreassign.executor.state.machine import Machine, handle
from kreassign.executor.state.phases import Replanning, Waiting
from kreassign.executor.state.replanning import begin, needed
from kreassign.executor.state.run import Run
from tests.executor.run_events import A0, A1, KEYS, LISTED, LIVE, MOVES, RATE, SUBMITTED, look, machine_after

MOVING = (*SUBMITTED, look(5_000, PlacementState.MOVING, done=100))
ELSEWHERE = MovesReplanned(6_000, (2,), (NewTarget(A0, (2, 1), (4, 1)),))


def losing(machine: Machine, *lost: int) -> Run:
    """The run with these brokers lost and leave to choose others."""
    run = machine._run
    run.control.replans, run.health.lost = True, lost
    return run


def replanning(*events: Event) -> Run:
    """A run that has asked for another destination than broker 2."""
    run = losing(machine_after(*events)[0], 2)
    run.state = begin(run, needed(run), frozenset({9})).state
    return run


def test_moves_that_lag_on_a_lost_broker_need_another_destination() -> None:
    run = losing(machine_after(*MOVING)[0], 2)
    assert [record.name for record in needed(run)] == [A0]
    run.control.replans = False
    assert needed(run) == ()


def test_what_was_sent_and_not_seen_since_may_or_may_not_be_under_way() -> None:
    assert needed(losing(machine_after(*SUBMITTED[:-1])[0], 2, 3)) == ()
    assert [record.name for record in needed(losing(machine_after(*LISTED)[0], 2, 3))] == [A0, A1]


def test_the_question_tells_what_is_lost_under_way_planned_and_written() -> None:
    run = losing(machine_after(*MOVING)[0], 2)
    run.traffic.writes = {A0: 12.0}
    run.identity.operator = Operator("ann", "host")
    state, (question,) = begin(run, needed(run), frozenset({9}))
    assert state == Replanning(frozenset({9}))
    assert isinstance(question, ReplanMoves)
    assert (question.moves, question.lost, question.in_flight, question.plan) == (MOVES[:1], (2,), {A0}, MOVES)
    assert (question.rates.bytes_per_s, question.known, question.writes) == (RATE, {*KEYS}, {A0: 12.0})
    assert (question.operator, question.disk_reserve) == (run.identity.operator, run.control.pace.disk_reserve)


def test_a_move_that_did_not_start_leads_elsewhere_at_once() -> None:
    run = replanning(*LISTED)
    handle(run, ELSEWHERE)
    record = run.moves.records[A0]
    assert (record.move.target, record.move.original, record.awaited_replan) == ((4, 1), (0, 1), None)
    assert [(one.before, one.target) for one in record.replans] == [((2, 1), (4, 1))]
    assert (run.health.replaced, set(run.throttle.live_brokers)) == ({2}, {*LIVE, 9})
    assert run.throttle.awaited == {4}


def test_a_move_that_is_under_way_leads_elsewhere_once_it_is_cancelled() -> None:
    run = replanning(*MOVING)
    handle(run, ELSEWHERE)
    record = run.moves.records[A0]
    assert (record.move.target, record.wanted.target) == ((2, 1), (4, 1))


def test_a_move_for_which_nobody_found_a_destination_is_given_up_and_says_why() -> None:
    run = replanning(*MOVING)
    handle(run, MovesReplanned(6_000, (2,), (), (Refusal(A0, "no broker has space"),)))
    record = run.moves.records[A0]
    assert record.is_given_up
    assert record.given_up is not None
    assert record.given_up.endswith("and no other could be found: no broker has space")


def test_a_question_that_failed_is_told_and_asked_again_later() -> None:
    run = replanning(*MOVING)
    assert handle(run, CallFailed(6_000, "no answer")) == (Wait(),)
    assert isinstance(run.state, Waiting)
    (told,) = (problem for known in run.problems.passing.values() for problem in known.values())
    assert told.text == "moves whose destination is lost could not be planned again yet: no answer"


def test_that_moves_could_not_be_planned_again_is_over_once_they_were() -> None:
    run = replanning(*MOVING)
    handle(run, CallFailed(6_000, "no answer"))
    run.state = Replanning(frozenset())
    handle(run, replace(ELSEWHERE, at_ms=7_000))
    (told,) = (problem for known in run.problems.passing.values() for problem in known.values())
    assert (told.from_ms, told.until_ms) == (6_000, 7_000)
