"""A broker that dies is waited for. It is named soon, and nobody says meanwhile when its copies end."""

from __future__ import annotations

from pathlib import Path

import pytest

from kreassign.executor.events import CancelIntended, CancelRequested, Event, SubmissionIntended
from kreassign.executor.guards import GuardName, Reaction
from kreassign.executor.history.run_history import history
from kreassign.executor.progress import ProgressMeter
from kreassign.executor.state import RunView
from kreassign.model.pace import Order
from kreassign.model.run import MoveStatus, RunHistory
from tests.executor.twin_runs import RATE, TwinRig, pace

pytestmark = pytest.mark.thorough


def shown(rig: TwinRig) -> list[tuple[int, RunHistory]]:
    """Display for a watcher, with the time since now."""
    meters: list[ProgressMeter] = []
    found: list[tuple[int, RunHistory]] = []
    begun_ms = rig.transport.now_ms()

    def follow(event: Event, run: RunView) -> None:
        meters.append(meters[0] if meters else ProgressMeter(run))
        meters[0].follow(event)
        found.append((rig.transport.now_ms() - begun_ms, history(run, meters[0])))

    rig.listener = follow
    return found


def test_a_dead_destination_is_named_within_15_s_until_it_is_back(tmp_path: Path) -> None:
    rig = TwinRig(tmp_path, [[0, 1]])
    found = shown(rig)
    rig.after(5, lambda: rig.twin.crash(2))
    rig.after(40, lambda: rig.twin.start(2))
    rig.run(rig.prepared({0: (2, 1)}, throttle=RATE // 4))
    named = [at_ms for at_ms, progress in found if "broker 2 is down, and 1 move copies to it" in progress.outlook]
    assert 5_000 < named[0] <= 20_000
    assert named[-1] < 60_000
    assert found[-1][1].outlook == ()


def test_a_draining_cancelled_run_gives_up_a_lost_destination(tmp_path: Path) -> None:
    rig = TwinRig(tmp_path, [[0, 1], [1, 0]])
    rig.after(5, lambda: rig.twin.crash(2))
    rig.ask_after(8, lambda at_ms, number: CancelRequested(at_ms, number, is_now=False))
    done = rig.run(rig.prepared({0: (2, 1), 1: (3, 0)}, throttle=RATE // 2))
    assert done.ended_ms is not None
    assert done.ended_ms - done.started_ms < 240_000
    assert [(move.status, bool(move.problem)) for move in done.moves] == [("failed", True), ("complete", False)]
    assert "had been down for 60 s" in str(done.moves[0].problem)
    assert not rig.twin.metadata.reassigning
    assert set(rig.replicas[0]) == {0, 1}


def test_copies_wait_for_a_destination_that_restarts(tmp_path: Path) -> None:
    """By default nothing is cancelled, nothing more is started to it, and the rest goes on."""
    rig = TwinRig(tmp_path, [[0, 1], [1, 0], [0, 1]])
    told: set[str | None] = set()
    sent_ms: dict[int, int] = {}

    def listen(event: Event, run: RunView) -> None:
        told.update((run.hindrance(event.at_ms), *run.outlook))
        if isinstance(event, SubmissionIntended):
            sent_ms.update({name.partition: event.at_ms for name in event.partitions})

    rig.listener = listen
    begun_ms = rig.transport.now_ms()
    rig.after(5, lambda: rig.twin.crash(2))
    rig.after(605, lambda: rig.twin.start(2))
    plan = {0: (2, 1), 1: (3, 0), 2: (2, 1)}
    done = rig.run(rig.prepared(plan, throttle=RATE // 2, pace=pace(Order.NAME, moves=2), lost_after_ms=None))
    assert (done.state, rig.replicas, rig.throttles) == ("done", plan, {})
    assert not any(isinstance(event, CancelIntended) for event in rig.seen)
    assert sent_ms[2] - begun_ms > 600_000
    assert "broker 2 is down, and 1 move copies to it; the copies go on when it is back" in told
    assert "broker 2 is down, and 1 move to it waits for it" in told


@pytest.mark.parametrize("reaction", [Reaction.HOLD, Reaction.WARN])
@pytest.mark.parametrize(("lost_after_ms", "state"), [(None, "done"), (300_000, "failed")])
def test_a_move_waits_for_a_restart_of_the_only_broker_of_its_partition(
    tmp_path: Path, lost_after_ms: int | None, state: str, reaction: Reaction
) -> None:
    rig = TwinRig(tmp_path, [[1], [0]])
    rig.after(2, lambda: rig.twin.crash(0))
    rig.after(900, lambda: rig.twin.start(0))
    started = rig.prepared(
        {0: (2,), 1: (3,)},
        throttle=RATE // 2,
        guards={GuardName.MIN_ISR: reaction},
        pace=pace(Order.NAME, moves=1),
        lost_after_ms=lost_after_ms,
    )
    done = rig.run(started)
    assert (done.state, rig.replicas[1]) == (state, (3,) if lost_after_ms is None else (0,))
    assert lost_after_ms is None or "had no leader for 300 s" in str(done.moves[1].problem)


def test_a_run_gives_up_a_destination_after_the_chosen_time(tmp_path: Path) -> None:
    rig = TwinRig(tmp_path, [[0, 1]])
    rig.after(5, lambda: rig.twin.crash(2))
    done = rig.run(rig.prepared({0: (2, 1)}, throttle=RATE // 2, lost_after_ms=300_000))
    assert done.ended_ms is not None
    assert done.ended_ms - done.started_ms > 300_000
    assert (done.state, set(rig.replicas[0])) == ("failed", {0, 1})
    assert "its destination broker 2 had been down for 300 s; plan it again" in str(done.moves[0].problem)


def test_the_first_view_after_resume_has_the_copied_bytes(tmp_path: Path) -> None:
    rig = TwinRig(tmp_path, [[0, 1], [1, 0]])
    before = shown(rig)
    rig.stop_after(15)
    rig.run(rig.prepared({0: (2, 1), 1: (3, 0)}, pace=pace(moves=1)))
    last = before[-1][1]
    assert [move.status for move in last.moves].count(MoveStatus.COMPLETE) == 1
    assert last.measured.done_bytes > 10 * RATE
    found = shown(rig)
    rig.resume()
    first = found[0][1]
    assert [move.status for move in first.moves].count(MoveStatus.COMPLETE) == 1
    assert first.measured.done_bytes >= last.measured.done_bytes
