"""What is told of cancellations that do not work, and when that is over."""

from __future__ import annotations

from kreassign.executor.events import CancelIntended, MovesCancelled, PlacementState, Refusal
from kreassign.executor.state.attempts import LEAST_ATTEMPTS
from kreassign.executor.state.machine import handle
from kreassign.executor.state.phases import Cancelling
from kreassign.executor.state.run import PassingProblem, Run
from tests.executor.run_events import A0, MOVES, SUBMITTED, look, machine_after


def moving() -> Run:
    return machine_after(*SUBMITTED, look(5_000, PlacementState.MOVING, done=100))[0]._run


def cancelled(run: Run, at_ms: int, *refused: Refusal) -> None:
    """One attempt, with its answer."""
    run.state = Cancelling()
    handle(run, CancelIntended(at_ms, (A0,)))
    handle(run, MovesCancelled(at_ms, () if refused else (A0,), refused))


def told(run: Run) -> list[PassingProblem]:
    return [problem for known in run.problems.passing.values() for problem in known.values()]


def test_a_cancellation_that_has_no_effect_is_told_after_three_and_over_when_the_move_is() -> None:
    run = moving()
    for attempt in range(LEAST_ATTEMPTS):
        cancelled(run, 6_000 + attempt)
    assert told(run) == []
    cancelled(run, 7_000)
    assert [(one.from_ms, one.until_ms) for one in told(run)] == [(7_000, None)]
    handle(run, look(8_000, PlacementState.UNTOUCHED, MOVES[0]))
    assert [(one.from_ms, one.until_ms) for one in told(run)] == [(7_000, 8_000)]


def test_a_refused_cancellation_is_told_until_one_is_accepted() -> None:
    run = moving()
    cancelled(run, 6_000, Refusal(A0, "not now"))
    assert [(one.from_ms, one.until_ms, "not now" in one.text) for one in told(run)] == [(6_000, None, True)]
    cancelled(run, 7_000)
    assert [one.until_ms for one in told(run)] == [7_000]
