"""A rollback takes back lists that its run made, and names the later run that made another."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from kreassign.executor.events import CancelRequested
from kreassign.executor.journal import post_request
from kreassign.model.run import RunHistory
from kreassign.operations.rollback import Rollback, RollbackRequest, preview_rollback, roll_back
from kreassign.operations.run import RunContext, resume_run
from tests.executor.twin_runs import RATE, TwinRig, tp

A, B = (f"19700101T00000{number}Z-00000000" for number in (0, 1))


@pytest.fixture
def rig(tmp_path: Path) -> TwinRig:
    return TwinRig(tmp_path, [[0, 1, 2]])


def run(rig: TwinRig, run_id: str, *target: int, throttle: int | None = None) -> RunHistory:
    done = rig.run(replace(rig.prepared({0: target}, throttle=throttle), run_id=run_id))
    rig.transport.sleep(5)
    return done


def cancelled(rig: TwinRig, run_id: str, *target: int) -> None:
    """Leave a run that was cancelled while its move was in flight."""

    def cancel() -> None:
        post_request(rig.path(run_id), lambda number: CancelRequested(rig.transport.now_ms(), number, is_now=True))

    rig.after(4, cancel)
    assert run(rig, run_id, *target, throttle=RATE).state == "cancelled"


def undo(rig: TwinRig, run_id: str) -> str:
    """Roll a run back; return the id of the run that did it."""
    found = roll_back(rig.client, RollbackRequest(run_id), RunContext(rig.state_dir), rig.transport)
    assert found.run is not None, found.plan.skipped
    assert (found.run.state, found.plan.skipped) == ("done", ())
    rig.transport.sleep(5)
    return found.run.run_id


def seen(rig: TwinRig, run_id: str) -> Rollback:
    return preview_rollback(rig.client, RollbackRequest(run_id), RunContext(rig.state_dir))


def left_alone(rig: TwinRig, run_id: str) -> str:
    """Why a rollback leaves the partition."""
    found = seen(rig, run_id)
    assert found.plan.plan.assignments == ()
    (why,) = found.plan.skipped
    return why.removeprefix(f"t-0: its replicas are {list(rig.replicas[0])}, ")


def since(run_id: str) -> str:
    return f"as run {run_id} left it since; roll back that run first"


OTHERS = "changed since by somebody else; look at it"


def test_the_order_that_a_cancelled_move_left_goes_back(rig: TwinRig) -> None:
    cancelled(rig, A, 3, 1, 2)
    assert rig.replicas[0] == (1, 2, 0)
    undo(rig, A)
    assert rig.replicas[0] == (0, 1, 2)


def test_an_order_that_others_made_after_a_cancelled_move_is_left(rig: TwinRig) -> None:
    cancelled(rig, A, 3, 1, 2)
    rig.client.alter_partition_reassignments({tp(0): (2, 0, 1)}).raise_if_any()
    rig.transport.sleep(5)
    assert left_alone(rig, A) == OTHERS


def test_an_order_that_others_made_after_a_failed_move_is_left(rig: TwinRig) -> None:
    rig.between_steps(4, lambda: rig.client.alter_partition_reassignments({tp(0): None}).raise_if_any())
    assert run(rig, A, 3, 1, 2, throttle=RATE).state == "failed"
    (assignment,) = seen(rig, A).plan.plan.assignments
    assert assignment.replicas == (0, 1, 2)
    rig.client.alter_partition_reassignments({tp(0): (2, 0, 1)}).raise_if_any()
    rig.transport.sleep(5)
    assert left_alone(rig, A) == OTHERS


def test_two_runs_are_undone_in_reverse_order(rig: TwinRig) -> None:
    run(rig, A, 3, 1, 2)
    run(rig, B, 4, 1, 2)
    undo(rig, B)
    assert rig.replicas[0] == (3, 1, 2)
    undo(rig, A)
    assert rig.replicas[0] == (0, 1, 2)


def test_a_rollback_that_was_itself_undone_gives_the_list_back(rig: TwinRig) -> None:
    run(rig, A, 3, 1, 2)
    run(rig, B, 4, 1, 2)
    undo(rig, undo(rig, B))
    assert rig.replicas[0] == (4, 1, 2)
    assert left_alone(rig, A) == since(B)
    undo(rig, B)
    undo(rig, A)
    assert rig.replicas[0] == (0, 1, 2)


def test_a_rollback_of_an_earlier_run_is_named(rig: TwinRig) -> None:
    run(rig, A, 3, 1, 2)
    run(rig, B, 3, 1, 4)
    undo(rig, B)
    back = undo(rig, A)
    assert rig.replicas[0] == (0, 1, 2)
    assert left_alone(rig, B) == since(back)


def test_a_list_that_a_later_cancelled_run_left_is_of_that_run(rig: TwinRig) -> None:
    run(rig, A, 0, 1, 3)
    cancelled(rig, B, 4, 1, 3)
    assert rig.replicas[0] == (1, 3, 0)
    assert left_alone(rig, A) == since(B)
    undo(rig, B)
    undo(rig, A)
    assert rig.replicas[0] == (0, 1, 2)


def test_a_list_that_a_later_cancelled_run_found_is_not_of_that_run(rig: TwinRig) -> None:
    run(rig, A, 0, 1, 3)
    cancelled(rig, B, 0, 1, 4)
    assert rig.replicas[0] == (0, 1, 3)
    undo(rig, A)
    assert rig.replicas[0] == (0, 1, 2)


def test_a_list_in_between_is_of_the_later_run_that_moves_it(rig: TwinRig) -> None:
    run(rig, A, 0, 1, 3)
    rig.stop_after(4)
    assert run(rig, B, 4, 1, 3, throttle=RATE).state == "paused"
    assert rig.replicas[0] == (4, 1, 3, 0)
    assert left_alone(rig, A) == f"as run {B} is moving it; resume or cancel that run first"


@contextmanager
def stopped_at_once(_: str, stop: Callable[[], None]) -> Iterator[None]:
    stop()
    yield None


def test_a_rollback_resumed_later_leaves_lists_that_a_later_run_made(rig: TwinRig) -> None:
    context = RunContext(rig.state_dir)
    run(rig, A, 3, 1, 2)
    paused = roll_back(rig.client, RollbackRequest(A), replace(context, watch=stopped_at_once), rig.transport).run
    assert paused is not None
    assert paused.state == "paused"
    rig.transport.sleep(5)
    undo(rig, A)
    again = "19700101T010000Z-00000000"
    run(rig, again, 3, 1, 2)
    resumed = resume_run(rig.client, rig.path(paused.run_id), context, clock=rig.transport)
    assert (resumed.state, rig.replicas[0]) == ("failed", (3, 1, 2))
    assert resumed.moves[0].problem == f"its replicas are [3, 1, 2], {since(again)}"


def test_a_rollback_that_is_resumed_goes_on_with_lists_that_are_its_own(rig: TwinRig) -> None:
    context = RunContext(rig.state_dir)
    run(rig, A, 3, 1, 2)
    paused = roll_back(rig.client, RollbackRequest(A), replace(context, watch=stopped_at_once), rig.transport).run
    assert paused is not None
    rig.transport.sleep(5)
    run(rig, "19700101T010000Z-00000000", 4, 1, 2)
    undo(rig, "19700101T010000Z-00000000")
    resumed = resume_run(rig.client, rig.path(paused.run_id), context, clock=rig.transport)
    assert (resumed.state, rig.replicas[0]) == ("done", (0, 1, 2))
