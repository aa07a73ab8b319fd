"""Guards during runs on a twin: what is held, given up, left to others, or brought to its end."""

from __future__ import annotations

from pathlib import Path

import pytest

from kreassign.executor.events import HealthObserved, SubmissionIntended, VerdictsRecorded
from kreassign.executor.guards import GuardName, Reaction
from kreassign.model import ConfigResource
from kreassign.model.throttle import LEADER_THROTTLED_RATE
from kreassign.twin.controller.decision import Decision
from kreassign.twin.metadata import ConfigChanged
from tests.executor.twin_runs import RATE, TwinRig

pytestmark = pytest.mark.thorough

THREE = [[0, 1], [1, 0], [0, 1]]
AWAY = {0: (2, 1), 1: (3, 0)}


@pytest.fixture
def rig(tmp_path: Path) -> TwinRig:
    return TwinRig(tmp_path, THREE)


def guards_told(rig: TwinRig) -> list[tuple[GuardName, ...]]:
    noted = [event for event in rig.seen if isinstance(event, VerdictsRecorded)]
    return [tuple(verdict.guard for verdict in event.verdicts) for event in noted]


def test_a_quiet_run_is_inspected_before_sending_and_now_and_then(rig: TwinRig) -> None:
    assert rig.run(rig.prepared(AWAY)).state == "done"
    seen = [type(event) for event in rig.seen]
    assert seen.index(HealthObserved) < seen.index(SubmissionIntended)
    assert guards_told(rig) == []


def test_a_run_without_guards_is_not_inspected(rig: TwinRig) -> None:
    off = dict.fromkeys(GuardName, Reaction.OFF)
    assert rig.run(rig.prepared(AWAY, guards=off, lost_after_ms=None)).state == "done"
    assert not any(isinstance(event, HealthObserved) for event in rig.seen)


def test_a_dead_destination_fails_its_own_moves_and_the_rest_goes_on(rig: TwinRig) -> None:
    rig.after(4, lambda: rig.twin.crash(2))
    found = rig.run(rig.prepared(AWAY, throttle=RATE // 8))
    first, second = found.moves
    assert (first.status, second.status) == ("failed", "complete")
    assert "destinations [2] had been down" in (first.problem or "")
    assert set(rig.replicas[0]) == {0, 1}
    assert rig.replicas[1] == AWAY[1]
    assert any(GuardName.BROKER in told for told in guards_told(rig))


def test_a_throttle_that_somebody_else_changes_meanwhile_is_theirs(rig: TwinRig) -> None:
    theirs = ConfigChanged(ConfigResource.broker(0), LEADER_THROTTLED_RATE, "2000000")
    rig.after(3, lambda: rig.twin.commit(Decision((theirs,), None)))
    found = rig.run(rig.prepared(AWAY, throttle=RATE // 4))
    assert found.throttle_residue == ()
    assert any("someone else changed a throttle" in problem and "'2000000'" in problem for problem in found.problems)
    assert rig.throttles == {"broker 0 leader.replication.throttled.rate": "2000000"}


def test_a_breach_can_end_the_run_and_ask_for_what_was_made_to_be_undone(rig: TwinRig) -> None:
    rig.after(4, lambda: rig.twin.crash(4))  # no part of the plan
    found = rig.run(rig.prepared(AWAY, throttle=RATE // 8, guards={GuardName.BROKER: Reaction.ROLLBACK}))
    assert (found.state, found.wants_rollback, rig.throttles) == ("cancelled", True, {})
