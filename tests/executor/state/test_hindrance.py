"""Why moves that wait are not started, and what cannot happen to a run that is at rest."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kreassign.executor.events import Event, HoldRequested, LeaseForgone, LeaseLost, LeaseTaken
from kreassign.executor.guards import GuardName, Reaction, Verdict
from kreassign.executor.scheduling import Pace, Schedule, Window
from kreassign.executor.state import AT_REST, STATES, TRANSITIONS, MoveStatus, Phase, RunView, WindDown
from kreassign.executor.state.phases import Restoring, Submitting, Waiting
from kreassign.executor.state.run import Doubt, Run
from kreassign.executor.throttle.ledger import ConfigValue
from kreassign.model import ConfigResource
from tests.executor.run_events import A0, A1, LISTED, MOVES, PREPARED, RATES, SUBMITTED, replayed
from tests.executor.state.run_changes import run_after


def test_what_holds_moves_back_is_told_while_one_waits() -> None:
    hindrance = replayed(*PREPARED, HoldRequested(2_000, 1))[0].hindrance(2_000)
    assert hindrance == "an operator paused it, so nothing is started before `kreassign resume run-1`"
    assert replayed(*PREPARED)[0].hindrance(2_000) is None


def test_where_all_moves_are_under_way_nothing_holds_them_back() -> None:
    assert replayed(*SUBMITTED, HoldRequested(4_000, 1))[0].hindrance(4_000) is None


@pytest.mark.parametrize("event", [LeaseLost, LeaseTaken, LeaseForgone])
def test_a_lease_does_not_matter_to_runs_that_have_not_begun_or_are_at_rest(event: type[Event]) -> None:
    resting = [one for one in STATES if one.phase in {*AT_REST, Phase.NEW}]
    assert [one.__name__ for one in resting if (one, event) in TRANSITIONS] == []


def test_a_run_that_waits_or_changes_the_cluster_can_lose_its_lease() -> None:
    assert [one.__name__ for one in (Waiting, Submitting, Restoring) if (one, LeaseLost) not in TRANSITIONS] == []


KEY = RATES[0].key
ODD = ConfigValue(KEY, "5")
NIGHT_IS_OVER_MS = 12 * 3_600_000


def hold(run: Run) -> None:
    run.control.is_held = True


def guard(run: Run) -> None:
    said = [(GuardName.DISK, Reaction.HOLD), (GuardName.BROKER, Reaction.WARN), (GuardName.STALL, Reaction.HOLD)]
    run.health.verdicts = tuple(Verdict(*one, "seen", "advice") for one in (*said, said[0]))


def close(run: Run) -> None:
    run.control.pace = Pace(hours=Schedule((Window(0, 60),)))


def suspect(run: Run) -> None:
    run.throttle.doubts = {KEY: Doubt(ODD, 1_000)}


def find_foreign(run: Run) -> None:
    run.throttle.doubts = {KEY: Doubt(ODD, 1_000, is_foreign=True)}


def read_nothing(run: Run) -> None:
    run.throttle.unread = (ConfigResource.broker(3), ConfigResource.broker(1))


def be_due(run: Run) -> None:
    run.throttle.due = {KEY}


def leave_unset(run: Run) -> None:
    run.throttle.unset = frozenset({ConfigResource.topic("a"), ConfigResource.broker(3)})


def fill_disks(run: Run) -> None:
    run.health.stuck = (A1, A0)


def lose_leader(run: Run) -> None:
    run.moves.records[A1].leaderless_since_ms = 1_000


REASONS: tuple[tuple[Callable[[Run], None], str], ...] = (
    (hold, "an operator paused it, so nothing is started before `kreassign resume run-1`"),
    (guard, "nothing is started while these guards hold it: disk, stall"),
    (close, "waits for its window, which opens 1970-01-02 00:00 UTC"),
    (suspect, f"its throttle is checked before anything is started: {ODD}"),
    (find_foreign, f"somebody else changed its throttle: {ODD}"),
    (
        read_nothing,
        (
            "nothing is started while the throttle of broker 3 cannot be read: a broker has to answer, and to allow "
            "DescribeConfigs on the cluster"
        ),
    ),
    (be_due, "nothing is started before its throttle is set again"),
    (leave_unset, "nothing is started before the throttle of topic a is set"),
    (fill_disks, "disks have no space for any of 2 moves"),
    (lose_leader, "a-1 has no leader, so its move is not started"),
)
"""In the order of their weight; of `suspect` and `find_foreign` only one can be."""


def waiting() -> Run:
    run = run_after(*LISTED)
    run.identity.reactions = {GuardName.FOREIGN_THROTTLE: Reaction.HOLD}
    return run


@pytest.mark.parametrize(("cause", "reason"), REASONS, ids=[cause.__name__ for cause, _ in REASONS])
def test_each_reason_is_told_alone_and_the_first_of_several(cause: Callable[[Run], None], reason: str) -> None:
    run = waiting()
    cause(run)
    assert RunView(run).hindrance(NIGHT_IS_OVER_MS) == reason
    for later, _ in REASONS[[one for one, _ in REASONS].index(cause) + 1 :]:
        if later is not find_foreign:
            later(run)
    assert RunView(run).hindrance(NIGHT_IS_OVER_MS) == reason


def test_doubts_hinder_no_run_that_is_only_warned_of_them() -> None:
    run = waiting()
    run.identity.reactions = {GuardName.FOREIGN_THROTTLE: Reaction.WARN}
    find_foreign(run)
    assert RunView(run).hindrance(NIGHT_IS_OVER_MS) is None


def test_a_move_in_steps_waits_between_them() -> None:
    run = run_after(*SUBMITTED)
    hold(run)
    record = run.moves.records[A0]
    for steps, is_told in (((), False), ((MOVES[0],), False), (MOVES, True)):
        record.steps = steps
        assert (RunView(run).hindrance(0) is not None) == is_told


def test_nothing_is_told_of_a_run_that_was_cancelled_or_of_a_move_that_has_no_leader_while_it_is_under_way() -> None:
    run = waiting()
    hold(run)
    run.control.wind_down = WindDown.FINISH
    assert RunView(run).hindrance(0) is None
    run = waiting()
    lose_leader(run)
    run.moves.records[A1].status = MoveStatus.MOVING
    assert RunView(run).hindrance(0) is None
    run.moves.records[A0].leaderless_since_ms = 1_000
    assert RunView(run).hindrance(0) == "a-0 has no leader, so its move is not started"
