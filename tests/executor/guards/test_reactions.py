"""Reactions of a run to a breached guard: each guard with each reaction, as events.

Two moves are in flight and a third waits. One of the two arrives, so that the third may start; then the cluster is
inspected again, and one guard finds a breach. Of the guard foreign-throttle, which reads by itself, see
`test_foreign_throttle_on_twin.py`.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from kreassign.executor.client_guard import ClientAnswer, ClientGuard, Feeling
from kreassign.executor.events import (
    CopyProgress,
    Event,
    HealthObserved,
    MovesObserved,
    PlacementState,
    PlannedMove,
    RunStarted,
    TimePassed,
    VerdictsRecorded,
)
from kreassign.executor.guards import (
    ENDS_RUN,
    STALL_MS,
    GuardName,
    Health,
    LogDirSpace,
    Reaction,
    Troubled,
    guard_settings,
)
from kreassign.executor.instructions import CheckHealth, ObserveMoves, RecordVerdicts, SubmitMoves, Wait
from kreassign.executor.journal.file import event_from_json, event_to_json
from kreassign.executor.state import RunView, WindDown
from kreassign.model import TopicPartition
from kreassign.model.pace import Cap, Caps, Pace
from kreassign.model.throttle import NO_THROTTLE
from tests.executor.run_events import A0, A1, LIVE, look, replayed, seen

STAYS = PlannedMove(A0, (0, 1), (2, 1), 1_000)
ARRIVES = PlannedMove(A1, (1, 0), (3, 0), 500)
WAITS = PlannedMove(TopicPartition("b", 0), (0, 1), (4, 1), 700)
PACE = Pace(caps=Caps(cluster=Cap(moves=2)), is_eager=True)
LATER = 2_000 + STALL_MS
ASKED = ClientGuard(command=("check",))
WELL = Health(LIVE, clients=(ClientAnswer("`check`", Feeling.GOOD, "exited with 0"),))
SUFFERING = Health(LIVE, clients=(ClientAnswer("`check`", Feeling.BAD, "exited with 1"),))
ROOM = (LogDirSpace(2, "/data/2/d0", 10_000, 499), LogDirSpace(2, "/data/2/d1", 10_000, 9_000))

ADVANCED = CopyProgress(2, 900, 100)
STOOD_STILL = CopyProgress(2, 0, 1_000)
FELL_BACK = CopyProgress(2, 500, 1_500)

BREACHES: dict[GuardName, tuple[Health, CopyProgress]] = {
    GuardName.OFFLINE: (Health(LIVE, offline=Troubled.of([A0], Troubled())), ADVANCED),
    GuardName.MIN_ISR: (Health(LIVE, under_min_isr=Troubled.of([A0], Troubled())), ADVANCED),
    GuardName.UNDER_REPLICATED: (Health(LIVE, under_replicated=Troubled.of([A0], Troubled())), ADVANCED),
    GuardName.BROKER: (Health((0, 2, 3, 4)), ADVANCED),
    GuardName.DISK: (Health(LIVE, log_dir_space=ROOM), ADVANCED),
    GuardName.CORDONED: (Health(LIVE, cordoned=(4,)), ADVANCED),
    GuardName.FOREIGN_MOVE: (Health(LIVE, foreign_moves=(A0,)), ADVANCED),
    GuardName.STALL: (WELL, STOOD_STILL),
    GuardName.RATE: (WELL, FELL_BACK),
    GuardName.CLIENTS: (SUFFERING, ADVANCED),
}
ACTING = [reaction for reaction in Reaction if reaction is not Reaction.OFF]


def started(guard: GuardName, reaction: Reaction) -> RunStarted:
    """A run with this guard and one that finds nothing here, so that the cluster is inspected in any case."""
    quiet = GuardName.OFFLINE if guard is not GuardName.OFFLINE else GuardName.MIN_ISR
    chosen = {**dict.fromkeys(GuardName, Reaction.OFF), quiet: Reaction.WARN, guard: reaction}
    moves, clients = (STAYS, ARRIVES, WAITS), ASKED if guard is GuardName.CLIENTS else None
    return RunStarted(0, "run-1", "cluster-1", moves, NO_THROTTLE, LIVE, guard_settings(chosen), PACE, clients=clients)


def breached(guard: GuardName, reaction: Reaction) -> tuple[Event, ...]:
    """Until the inspection that shows the breach."""
    health, copy = BREACHES[guard]
    going_on = replace(seen(STAYS, PlacementState.MOVING), copies=(copy,))
    return (
        started(guard, reaction),
        look(1_000, PlacementState.MOVING, STAYS, ARRIVES),
        HealthObserved(1_000, WELL),
        TimePassed(LATER),
        MovesObserved(LATER, (going_on, seen(ARRIVES, PlacementState.ARRIVED), seen(WAITS, PlacementState.UNTOUCHED))),
        HealthObserved(LATER, health),
    )


def journaled(*events: Event) -> tuple[Event, ...]:
    """Until the verdict is in the journal: what is read back from there is the same."""
    (order,) = replayed(*events)[1]
    assert isinstance(order, RecordVerdicts)
    noted = VerdictsRecorded(events[-1].at_ms, order.verdicts)
    read_back = event_from_json("VerdictsRecorded", event_to_json(noted))
    assert read_back == noted
    return (*events, read_back)


def written_down(guard: GuardName, reaction: Reaction) -> tuple[Event, ...]:
    """Until the verdict that decides is in the journal: what ends a run is looked at twice."""
    once = journaled(*breached(guard, reaction))
    if reaction not in ENDS_RUN:
        return once
    again = (*once, TimePassed(LATER + 1), MovesObserved(LATER + 1, ()))
    (check,) = replayed(*again)[1]
    assert isinstance(check, CheckHealth)
    assert check.second_look
    return journaled(*again, HealthObserved(LATER + 1, BREACHES[guard][0]))


def sole_problem(execution: RunView) -> str:
    (problem,) = execution.problems
    return problem


def test_every_guard_has_a_breach_here() -> None:
    assert set(BREACHES) == set(GuardName) - {GuardName.FOREIGN_THROTTLE}


def test_the_waiting_move_starts_when_no_guard_finds_anything() -> None:
    *until_then, _ = breached(GuardName.BROKER, Reaction.HOLD)
    assert isinstance(replayed(*until_then)[1][0], CheckHealth)
    assert replayed(*until_then, HealthObserved(LATER, WELL))[1] == (SubmitMoves({WAITS.topic_partition: (4, 1)}),)


@pytest.mark.parametrize("guard", BREACHES)
def test_a_guard_that_is_off_neither_tells_nor_holds_anything(guard: GuardName) -> None:
    execution, instructions = replayed(*breached(guard, Reaction.OFF))
    assert (instructions, execution.problems) == ((SubmitMoves({WAITS.topic_partition: (4, 1)}),), ())


@pytest.mark.parametrize("guard", BREACHES)
@pytest.mark.parametrize("reaction", ACTING)
def test_a_breach_is_written_down_with_what_was_seen_and_what_to_do(guard: GuardName, reaction: Reaction) -> None:
    execution, _ = replayed(*written_down(guard, reaction))
    (verdict,) = execution.verdicts
    assert (verdict.guard, verdict.reaction) == (guard, reaction)
    assert verdict.seen
    assert verdict.advice
    assert sole_problem(execution) == str(verdict)


@pytest.mark.parametrize("guard", BREACHES)
def test_a_guard_that_warns_lets_the_run_go_on(guard: GuardName) -> None:
    execution, instructions = replayed(*written_down(guard, Reaction.WARN))
    assert (instructions, execution.control.wind_down) == ((SubmitMoves({WAITS.topic_partition: (4, 1)}),), None)


@pytest.mark.parametrize("guard", [guard for guard in BREACHES if guard is not GuardName.DISK])
def test_a_guard_that_holds_starts_nothing_and_cancels_nothing(guard: GuardName) -> None:
    execution, instructions = replayed(*written_down(guard, Reaction.HOLD))
    assert (instructions, execution.control.wind_down) == ((Wait(),), None)
    assert [record.name for record in execution.in_flight] == [A0]


def test_a_full_disk_that_holds_lets_moves_elsewhere_start() -> None:
    execution, instructions = replayed(*written_down(GuardName.DISK, Reaction.HOLD))
    assert instructions == (SubmitMoves({WAITS.topic_partition: (4, 1)}),)
    assert execution.why_held is None


@pytest.mark.parametrize("guard", BREACHES)
@pytest.mark.parametrize("reaction", sorted(ENDS_RUN))
def test_only_one_cancelling_guard_also_rolls_back(guard: GuardName, reaction: Reaction) -> None:
    execution, instructions = replayed(*written_down(guard, reaction))
    (order,) = instructions
    assert isinstance(order, ObserveMoves)
    assert A0 in {move.topic_partition for move in order.moves}
    assert execution.control.wind_down is WindDown.CANCEL
    assert execution.control.wants_rollback is (reaction is Reaction.ROLLBACK)


@pytest.mark.parametrize("guard", [guard for guard in BREACHES if BREACHES[guard][0] != WELL])
@pytest.mark.parametrize("reaction", sorted(ENDS_RUN))
def test_what_one_inspection_alone_shows_ends_no_run(guard: GuardName, reaction: Reaction) -> None:
    once = journaled(*breached(guard, reaction))
    held, instructions = replayed(*once)
    assert (instructions, held.control.wind_down) == ((Wait(),), None)
    assert f"The run does {reaction} if a second look" in sole_problem(held)
    well = (TimePassed(LATER + 1), MovesObserved(LATER + 1, ()), HealthObserved(LATER + 1, WELL))
    over = journaled(*once, *well)
    assert replayed(*over)[0].control.wind_down is None
