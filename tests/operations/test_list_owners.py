"""A rollback takes back lists that its run made, and names the later run that made another."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from kreassign.errors import ClusterError, JournalUnreadable
from kreassign.executor.events import CancelRequested, Event
from kreassign.executor.history.run_history import read_history
from kreassign.executor.journal import post_request
from kreassign.executor.journal.folder import cluster_folder
from kreassign.executor.state import RunView
from kreassign.model.run import MoveStatus, RunHistory
from kreassign.operations.broker_changes import FILE_NAME
from kreassign.operations.maintenance import Way, maintain
from kreassign.operations.rollback import Rollback, RollbackRequest, preview_rollback, roll_back
from kreassign.operations.run import RunContext, cancel_interrupted_run, resume_run
from kreassign.operations.run_journals import forget_journal
from tests.executor.twin_runs import RATE, TwinRig, pace, tp

A, B, C = (f"19700101T00000{number}Z-00000000" for number in (0, 1, 2))
LATE, LATER = (f"19700101T0{number}0000Z-00000000" for number in (1, 2))


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


@pytest.fixture
def maintained(rig: TwinRig) -> Callable[[Way], None]:
    """The maintenance of broker 3."""

    def go(way: Way) -> None:
        context = RunContext(rig.state_dir, 1.0, warn=lambda _: None)
        assert maintain(rig.client, (3,), way, context, clock=rig.transport).is_finished
        rig.transport.sleep(5)

    return go


def test_an_order_that_maintenance_made_is_named(rig: TwinRig, maintained: Callable[[Way], None]) -> None:
    run(rig, A, 3, 1, 2)
    maintained(Way.ENTER)
    assert rig.replicas[0] == (1, 2, 3)
    way = "roll back after `kreassign maintenance exit 3`"
    assert left_alone(rig, A) == f"as the maintenance of broker 3 left it since; {way}"
    maintained(Way.EXIT)
    undo(rig, A)
    assert rig.replicas[0] == (0, 1, 2)


def test_a_list_of_others_during_maintenance_is_theirs(rig: TwinRig, maintained: Callable[[Way], None]) -> None:
    run(rig, A, 3, 1, 2)
    maintained(Way.ENTER)
    rig.client.alter_partition_reassignments({tp(0): (1, 4, 2)}).raise_if_any()
    rig.transport.sleep(30)
    assert left_alone(rig, A) == OTHERS


def test_without_its_record_maintenance_may_have_made_a_list(rig: TwinRig, maintained: Callable[[Way], None]) -> None:
    run(rig, A, 3, 1, 2)
    maintained(Way.ENTER)
    (cluster_folder(rig.state_dir, rig.twin.cluster_id) / FILE_NAME).write_text("{")
    assert left_alone(rig, A).startswith("changed since by somebody else or by maintenance, whose record could not be")


def test_a_list_as_the_run_left_it_goes_back_without_the_record(rig: TwinRig) -> None:
    run(rig, A, 3, 1, 2)
    (cluster_folder(rig.state_dir, rig.twin.cluster_id) / FILE_NAME).write_text("{")
    assert len(seen(rig, A).plan.plan.assignments) == 1


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
def elsewhere(rig: TwinRig) -> Iterator[Path]:
    """Let runs of this block be journaled in another state directory of the cluster."""
    home, rig.state_dir = rig.state_dir, rig.state_dir / "beside"
    try:
        yield rig.state_dir
    finally:
        rig.state_dir = home


def test_a_later_run_of_another_state_directory_is_named(rig: TwinRig) -> None:
    run(rig, A, 3, 1, 2)
    with elsewhere(rig) as beside:
        run(rig, B, 0, 1, 2)
        run(rig, C, 3, 1, 2)
    context = RunContext(rig.state_dir, beside=(beside,))
    found = preview_rollback(rig.client, RollbackRequest(A), context)
    assert found.plan.skipped == (f"t-0: its replicas are [3, 1, 2], {since(C)}",)


def damage(path: Path) -> None:
    """Alter an event in the middle of a journal: its end shows a run that left nothing."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE events SET body = '{}' WHERE rowid = 3")


@pytest.mark.parametrize("lose", [Path.unlink, damage])
def test_a_list_given_back_twice_is_of_the_run_without_a_journal(rig: TwinRig, lose: Callable[[Path], None]) -> None:
    run(rig, A, 3, 1, 2)
    run(rig, B, 4, 1, 2)
    run(rig, C, 3, 1, 2)
    back = undo(rig, undo(rig, C))
    assert rig.replicas[0] == (3, 1, 2)
    assert left_alone(rig, A) == since(C)
    lose(rig.path(C))
    assert left_alone(rig, A) == since(back)


@pytest.mark.parametrize("lose", [Path.unlink, damage])
def test_a_list_given_back_by_a_run_without_a_journal_is_left(rig: TwinRig, lose: Callable[[Path], None]) -> None:
    run(rig, A, 3, 1, 2)
    run(rig, B, 4, 1, 2)
    back = undo(rig, B)
    lose(rig.path(B))
    assert left_alone(rig, A) == since(back)


def test_a_list_that_an_unreadable_run_may_have_left_is_left(tmp_path: Path) -> None:
    rig = TwinRig(tmp_path, [[0, 1, 2], [0, 1, 2]])
    rig.run(replace(rig.prepared({0: (3, 1, 2), 1: (3, 1, 2)}, throttle=None), run_id=A))
    rig.transport.sleep(5)
    run(rig, B, 0, 1, 2)
    run(rig, C, 3, 1, 2)
    damage(rig.path(C))
    found = seen(rig, A)
    assert [one.topic_partition for one in found.plan.plan.assignments] == [tp(1)]
    (why,) = found.plan.skipped
    assert why.startswith(f"t-0: its replicas are [3, 1, 2], perhaps as run {C} left it since, whose journal cannot be")
    forget_journal(rig.path(C))
    assert len(seen(rig, A).plan.plan) == 2


def test_a_move_that_a_resumed_earlier_run_made_since_is_named(tmp_path: Path) -> None:
    rig = TwinRig(tmp_path, [[0, 1, 2], [0, 1, 2]])

    def pause(_: Event, now: RunView) -> None:
        if any(record.status is MoveStatus.COMPLETE for record in now.records.values()):
            assert rig.runner is not None
            rig.runner.request_stop()

    rig.listener = pause
    planned = rig.prepared({0: (3, 1, 2), 1: (3, 1, 2)}, throttle=None, pace=pace(moves=1))
    assert rig.run(replace(planned, run_id=A)).state == "paused"
    rig.listener = None
    rig.transport.sleep(5)
    first = next(name for name, replicas in rig.replicas.items() if replicas != (0, 1, 2))
    rig.run(replace(rig.prepared({1 - first: (3, 1, 2)}, throttle=None), run_id=B))
    rig.transport.sleep(5)
    undo(rig, B)
    assert rig.resume(A).state == "done"
    assert rig.replicas == {0: (3, 1, 2), 1: (3, 1, 2)}
    found = seen(rig, B)
    assert found.plan.skipped == (f"t-{1 - first}: its replicas are [3, 1, 2], {since(A)}",)
    rig.transport.sleep(5)
    undo(rig, A)
    assert rig.replicas == {0: (0, 1, 2), 1: (0, 1, 2)}


# A rollback that was paused before its first write.


@contextmanager
def stopped_at_once(_: str, stop: Callable[[], None]) -> Iterator[None]:
    stop()
    yield None


@dataclass(frozen=True, slots=True)
class Paused:
    """A rollback of run A that was paused before it sent anything."""

    rig: TwinRig
    path: Path
    context: RunContext

    def resumed(self) -> RunHistory:
        return resume_run(self.rig.client, self.path, self.context, clock=self.rig.transport)


def rolled_back_soon(rig: TwinRig, *beside: Path) -> Paused:
    context = RunContext(rig.state_dir, beside=beside)
    run(rig, A, 3, 1, 2)
    found = roll_back(rig.client, RollbackRequest(A), replace(context, watch=stopped_at_once), rig.transport).run
    assert found is not None
    assert found.state == "paused"
    rig.transport.sleep(5)
    return Paused(rig, rig.path(found.run_id), context)


def made_again(paused: Paused) -> None:
    """Let a later run make the list that the rollback expects."""
    undo(paused.rig, A)
    run(paused.rig, LATE, 3, 1, 2)


def test_a_rollback_resumed_later_leaves_lists_that_a_later_run_made(rig: TwinRig) -> None:
    paused = rolled_back_soon(rig)
    made_again(paused)
    resumed = paused.resumed()
    assert (resumed.state, rig.replicas[0]) == ("failed", (3, 1, 2))
    assert resumed.moves[0].problem == f"its replicas are [3, 1, 2], {since(LATE)}"


def test_a_rollback_that_is_resumed_goes_on_with_lists_that_are_its_own(rig: TwinRig) -> None:
    paused = rolled_back_soon(rig)
    run(rig, LATE, 4, 1, 2)
    undo(rig, LATE)
    resumed = paused.resumed()
    assert (resumed.state, rig.replicas[0]) == ("done", (0, 1, 2))


def test_a_resumed_rollback_asks_without_the_journal_of_its_run(rig: TwinRig) -> None:
    paused = rolled_back_soon(rig)
    made_again(paused)
    rig.path(A).unlink()
    assert (paused.resumed().state, rig.replicas[0]) == ("failed", (3, 1, 2))


def test_a_resumed_rollback_asks_runs_of_other_state_directories(rig: TwinRig) -> None:
    paused = rolled_back_soon(rig, rig.state_dir / "beside")
    undo(rig, A)
    with elsewhere(rig):
        run(rig, LATE, 3, 1, 2)
    assert (paused.resumed().state, rig.replicas[0]) == ("failed", (3, 1, 2))


def test_a_rollback_is_not_resumed_beside_an_unreadable_later_run(rig: TwinRig) -> None:
    paused = rolled_back_soon(rig)
    made_again(paused)
    damage(rig.path(LATE))
    with pytest.raises(JournalUnreadable, match=LATE):
        paused.resumed()
    assert read_history(paused.path).state == "paused"


def test_a_rollback_that_is_cancelled_ends_cancelled_beside_later_runs(rig: TwinRig) -> None:
    paused = rolled_back_soon(rig)
    made_again(paused)
    cancelled = cancel_interrupted_run(rig.client, paused.path, paused.context, rig.transport, is_now=True)
    assert (cancelled.state, rig.replicas[0]) == ("cancelled", (3, 1, 2))


def test_a_rollback_goes_on_beside_a_list_that_brokers_show_differently(tmp_path: Path) -> None:
    rig = TwinRig(tmp_path, [[0, 1, 2], [0, 1, 2]])
    paused = rolled_back_soon(rig)
    run(rig, LATE, 4, 1, 2)
    undo(rig, LATE)
    rig.show_differently(1)
    rig.after(20, rig.show_alike)
    resumed = paused.resumed()
    assert (resumed.state, rig.replicas[0]) == ("done", (0, 1, 2))


def test_a_rollback_is_not_resumed_while_a_list_is_unknown(rig: TwinRig) -> None:
    paused = rolled_back_soon(rig)
    run(rig, LATE, 4, 1, 2)
    rig.show_differently(0)
    with pytest.raises(ClusterError, match="brokers do not agree about topic t"):
        paused.resumed()
    rig.show_alike()
    assert read_history(paused.path).state == "paused"
    assert paused.resumed().state == "failed"


def test_a_rollback_that_waits_between_steps_leaves_lists_of_later_runs(rig: TwinRig) -> None:
    @contextmanager
    def stopped_between_steps(_: str, stop: Callable[[], None] | None) -> Iterator[Callable[[RunHistory], None]]:
        def show(now: RunHistory) -> None:
            if stop and now.moves[0].status is MoveStatus.PLANNED and now.moves[0].submitted_ms is not None:
                stop()

        yield show

    run(rig, A, 3, 4, 2)
    request, context = RollbackRequest(A, is_stepwise=True), RunContext(rig.state_dir)
    found = roll_back(rig.client, request, replace(context, watch=stopped_between_steps), rig.transport).run
    assert found is not None
    assert found.state == "paused"
    step = rig.replicas[0]
    assert step not in {(3, 4, 2), (0, 1, 2)}
    rig.transport.sleep(5)
    run(rig, LATE, 3, 4, 1)
    run(rig, LATER, *step)
    resumed = resume_run(rig.client, rig.path(found.run_id), context, clock=rig.transport)
    assert (resumed.state, rig.replicas[0]) == ("failed", step)
    assert resumed.moves[0].problem == f"its replicas are {list(step)}, {since(LATER)}"
