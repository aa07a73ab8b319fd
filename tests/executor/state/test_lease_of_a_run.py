"""What a run does without its lease, and once it goes on."""

from __future__ import annotations

import pytest

from kreassign.executor.events import (
    Event,
    LeaseForgone,
    LeaseLost,
    LeaseRefused,
    LeaseTaken,
    StopRequested,
    TimePassed,
)
from kreassign.executor.guards import GuardName, Reaction
from kreassign.executor.instructions import CheckThrottle, SetThrottle, TakeLease, Wait
from kreassign.executor.state import Phase
from kreassign.executor.state.lease import ASK_EVERY_MS, LOST
from kreassign.executor.state.phases import AwaitingLease, Paused, Resuming, Throttling
from kreassign.executor.state.run import PassingProblem, Run
from tests.executor.run_events import OVERRIDES, SUBMITTED, machine_after, replayed
from tests.executor.state.run_changes import Changes, handled, run_after

LOSING: tuple[Event, ...] = (*SUBMITTED, LeaseLost(5_000, "another member has it"))
SENTENCE = "another member has it; nothing is changed until it is had again"


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


def test_a_lease_that_is_had_or_forgone_is_noted_and_changes_nothing_else() -> None:
    run = run_after(*SUBMITTED)
    taken = {"control.lease": "held since generation 3 of the group"}
    assert handled(run, LeaseTaken(5_000, 3)) == ((), taken)
    assert handled(run, LeaseForgone(6_000, "nobody asked")) == ((), {"control.lease": "none: nobody asked"})


def test_a_lease_that_is_lost_is_told_and_asked_for() -> None:
    run = run_after(*SUBMITTED)
    assert handled(run, LeaseLost(5_000, "another member has it")) == (
        (TakeLease(),),
        {
            "state": AwaitingLease(5_000),
            "control.lease": "another member has it",
            "problems.passing": {LOST: {SENTENCE: PassingProblem(SENTENCE, 5_000)}},
        },
    )
    refused = {"state": AwaitingLease(6_000), "control.lease": "not yet"}
    assert handled(run, LeaseRefused(6_000, "not yet")) == ((Wait(),), refused)
    assert handled(run, TimePassed(6_000 + ASK_EVERY_MS - 1)) == ((Wait(),), {})
    assert handled(run, TimePassed(6_000 + ASK_EVERY_MS)) == ((TakeLease(),), {})
    assert handled(run, StopRequested(7_000)) == ((), {"state": Paused()})


AGAIN: Changes = {
    **{f"a-{move}.progressed_ms": 7_000 for move in (0, 1)},
    **{
        f"a-{move}.{attempts}.{time}_ms": 7_000
        for move in (0, 1)
        for attempts in ("submissions", "cancellations")
        for time in ("first", "last", "due")
    },
    "state": Throttling(),
    "problems.passing": {LOST: {SENTENCE: PassingProblem(SENTENCE, 5_000, 7_000)}},
    "throttle.in_force": set(),
}
"""What comes of having it again, or of going on without it: time begins again, and all that was set is set again."""


@pytest.mark.parametrize(("event", "changes"), [
    (LeaseTaken(7_000, 3), {"control.lease": "held since generation 3 of the group"}),
    (LeaseForgone(7_000, "allowed"), {
        "control.lease": "none: allowed",
        "problems.noted": ["the run went on without the lease of the cluster: allowed"],
    }),
], ids=["had again", "forgone"])  # fmt: skip
def test_a_run_that_goes_on_sets_its_throttle_again_without_asking(event: Event, changes: Changes) -> None:
    assert handled(run_after(*LOSING), event) == ((SetThrottle(OVERRIDES),), {**AGAIN, **changes})


@pytest.mark.parametrize("event", [LeaseTaken(7_000, 3), LeaseForgone(7_000, "allowed")], ids=["had again", "forgone"])
def test_what_a_guarded_run_had_set_is_read_to_tell_what_is_not_so_any_more(event: Event) -> None:
    run = run_after(*LOSING)
    run.identity.reactions = {GuardName.FOREIGN_THROTTLE: Reaction.HOLD}
    run.identity.rereads_first = True
    orders, changes = handled(run, event)
    were_set = tuple(sorted(one.key for one in OVERRIDES))
    assert (orders, changes["state"]) == ((CheckThrottle(OVERRIDES),), Resuming(None, were_set))
