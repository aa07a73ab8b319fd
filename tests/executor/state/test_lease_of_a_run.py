"""What a run does without its lease, and once it goes on."""

from __future__ import annotations

from kreassign.executor.events import (
    Event,
    LeaseForgone,
    LeaseLost,
    LeaseRefused,
    LeaseTaken,
    StopRequested,
    TimePassed,
)
from kreassign.executor.instructions import TakeLease, Wait
from kreassign.executor.state import Phase
from kreassign.executor.state.lease import ASK_EVERY_MS, LOST
from kreassign.executor.state.run import Run
from tests.executor.run_events import SUBMITTED, machine_after, replayed

LOSING: tuple[Event, ...] = (*SUBMITTED, LeaseLost(5_000, "another member has it"))


def over(run: Run) -> list[int | None]:
    """Until when the loss was so."""
    return [problem.until_ms for problem in run.problems.passing[LOST].values()]


def test_a_run_that_lost_its_lease_asks_for_it_every_ten_seconds_and_changes_nothing() -> None:
    assert replayed(*LOSING)[1] == (TakeLease(),)
    refused = (*LOSING, LeaseRefused(6_000, "held by another"))
    assert replayed(*refused)[1] == (Wait(),)
    assert replayed(*refused, TimePassed(6_000 + ASK_EVERY_MS - 1))[1] == (Wait(),)
    assert replayed(*refused, TimePassed(6_000 + ASK_EVERY_MS))[1] == (TakeLease(),)
    assert replayed(*refused)[0].lease == "held by another"


def test_the_loss_is_over_when_the_lease_is_had_again() -> None:
    machine, instructions = machine_after(*LOSING, LeaseTaken(7_000, 3))
    assert over(machine._run) == [7_000]
    assert machine.view.lease == "held since generation 3 of the group"
    assert instructions not in ((), (Wait(),))


def test_a_run_that_goes_on_without_a_lease_says_so_for_good() -> None:
    machine, instructions = machine_after(*LOSING, LeaseForgone(7_000, "an operator allowed it"))
    assert over(machine._run) == [7_000]
    assert machine.view.lease == "none: an operator allowed it"
    assert any("an operator allowed it" in problem for problem in machine._run.problems.noted)
    assert instructions not in ((), (Wait(),))


def test_a_run_without_its_lease_that_is_stopped_writes_nothing_back() -> None:
    view, instructions = replayed(*LOSING, StopRequested(7_000))
    assert (view.phase, instructions) == (Phase.PAUSED, ())
    assert view.pending_restores
