from __future__ import annotations

from dataclasses import replace

import pytest

from kreassign.model.run import MoveStatus
from kreassign.report.run_checks import CheckResult, SnapshotRows, checks_of
from tests.report.runs import AFTER, STARTED_MS, TWO_MOVES, a_run, partition, snapshot

COMPLETE, PLACED, IN_SYNC, LED, SETTLED, UNTHROTTLED = range(6)


def test_a_run_that_went_as_planned_passes_every_check() -> None:
    checks = checks_of(a_run(TWO_MOVES), AFTER)
    assert len(checks) == 6
    assert {check.outcome for check in checks} == {CheckResult.PASSED}
    assert not any(check.details for check in checks)


@pytest.mark.parametrize(
    ("number", "row", "detail"),
    [
        (PLACED, partition(0, (2, 3), leader=3), "orders-0 is on 2,3, not on 3,2"),
        (IN_SYNC, partition(0, (3, 2), isr=[3]), "orders-0 has 2 out of sync"),
        (LED, partition(0, (3, 2), leader=2), "orders-0 is led by 2, not by 3"),
        (SETTLED, partition(0, (3, 2), removing=[1]), "orders-0 is still being reassigned"),
        (SETTLED, partition(0, (3, 2), adding=[1]), "orders-0 is still being reassigned"),
    ],
)
def test_what_the_snapshot_shows_to_be_wrong_fails_its_check_only(number: int, row: dict, detail: str) -> None:
    checks = checks_of(a_run(TWO_MOVES), snapshot(AFTER.taken_ms, row, partition(1, (1, 2))))
    assert [check.outcome for check in checks].index(CheckResult.FAILED) == number
    assert sum(check.outcome is CheckResult.FAILED for check in checks) == 1
    assert checks[number].details == (detail,)


def test_a_partition_that_is_gone_is_told() -> None:
    checks = checks_of(a_run(TWO_MOVES), snapshot(AFTER.taken_ms, partition(1, (1, 2))))
    assert checks[PLACED].details == ("orders-0 is not in the snapshot",)


def test_moves_that_did_not_complete_are_told_with_their_problem() -> None:
    moves = (
        replace(TWO_MOVES[0], ended_ms=None, problem="broker 3 died"),
        replace(TWO_MOVES[1], submitted_ms=None, ended_ms=None),
    )
    check = checks_of(a_run(moves), AFTER)[COMPLETE]
    assert check.outcome is CheckResult.FAILED
    assert check.details == ("orders-0 is not complete: broker 3 died", "orders-1 was not started")


@pytest.mark.parametrize("status", [MoveStatus.FAILED, MoveStatus.CANCELLED])
def test_a_move_that_ended_otherwise_did_not_complete(status: MoveStatus) -> None:
    move = replace(TWO_MOVES[0], status=status, problem="its partition was deleted")
    check = checks_of(a_run((move, TWO_MOVES[1])), AFTER)[COMPLETE]
    assert check.outcome is CheckResult.FAILED
    assert check.details == ("orders-0 is not complete: its partition was deleted",)


def test_open_moves_of_a_run_that_goes_on_are_no_failure() -> None:
    going_on = a_run((replace(TWO_MOVES[0], ended_ms=None),), ended_ms=None)
    check = checks_of(going_on, None)[COMPLETE]
    assert check.outcome is CheckResult.UNKNOWN
    assert check.details == ("the run has not ended", "orders-0 is not complete")


@pytest.mark.parametrize("after", [None, replace(AFTER, taken_ms=STARTED_MS + 19_999)])
def test_without_a_snapshot_after_the_run_the_cluster_is_not_judged(after: SnapshotRows | None) -> None:
    checks = checks_of(a_run(TWO_MOVES), after)
    assert {check.outcome for check in checks[PLACED : SETTLED + 1]} == {CheckResult.UNKNOWN}
    assert "kreassign snapshot" in checks[PLACED].details[0]
    assert checks[COMPLETE].outcome is checks[UNTHROTTLED].outcome is CheckResult.PASSED


def test_a_left_throttle_fails_and_an_open_runs_is_unknown() -> None:
    left = a_run(TWO_MOVES, throttle_residue=("broker 3 has follower.replication.throttled.rate=1",))
    check = checks_of(left, AFTER)[UNTHROTTLED]
    assert (check.outcome, check.details) == (CheckResult.FAILED, left.throttle_residue)
    assert checks_of(replace(left, ended_ms=None), AFTER)[UNTHROTTLED].outcome is CheckResult.UNKNOWN
