"""Runs on the twin that keep to their hours."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest

from kreassign.executor.events import CancelIntended, MovesObserved, MovesSubmitted, PaceRequested
from kreassign.executor.journal import read_events
from kreassign.model.pace import AtWindowEnd, Pace, PaceChange, Schedule, Window
from kreassign.model.run import RunHistory
from tests.executor.run_events import fold_with_progress
from tests.executor.twin_runs import RATE, TwinRig, tp

pytestmark = pytest.mark.thorough

SIX = [[0, 1]] * 6
TARGETS = dict.fromkeys(range(6), (3, 1))
MINUTE_MS = 60_000


def window(rig: TwinRig, after_min: int, *, long_min: int = 1) -> Window:
    """A window that opens so many minutes after the minute of now."""
    minute = rig.transport.now_ms() // MINUTE_MS % (24 * 60) + after_min
    return Window(minute % (24 * 60), (minute + long_min) % (24 * 60))


def to_next_minute(rig: TwinRig) -> None:
    rig.transport.sleep((MINUTE_MS - rig.transport.now_ms() % MINUTE_MS) / 1000)


def run(rig: TwinRig, hours: Schedule, throttle: int | None = RATE) -> RunHistory:
    return rig.run(rig.prepared(TARGETS, pace=Pace(hours=hours), throttle=throttle))


@pytest.fixture
def rig(tmp_path: Path) -> TwinRig:
    found = TwinRig(tmp_path, SIX)
    to_next_minute(found)
    return found


def test_a_run_waits_for_its_window_asks_nothing_meanwhile_and_says_so(rig: TwinRig) -> None:
    begun_ms = rig.transport.now_ms()
    found = run(rig, Schedule((window(rig, 10, long_min=3),)))
    assert found.state == "done", found.problems
    submitted = next(event for event in rig.seen if isinstance(event, MovesSubmitted))
    assert submitted.at_ms >= begun_ms + 10 * MINUTE_MS
    before = [event for event in rig.seen if isinstance(event, MovesObserved) and event.at_ms < submitted.at_ms]
    assert len(before) < 5
    execution, _ = fold_with_progress(read_events(rig.path())[: read_events(rig.path()).index(before[0]) + 1])
    assert execution.outlook[0].startswith("waits for its window, which opens ")


def test_what_would_not_end_in_one_window_waits_for_the_next(tmp_path: Path) -> None:
    # Six copies of fifteen megabytes take more than 80 s in all.
    rig = TwinRig(tmp_path, SIX, size_bytes=15 * RATE)
    to_next_minute(rig)
    found = run(rig, Schedule((window(rig, 0), window(rig, 3))))
    assert found.state == "done", found.problems
    starts = sorted(move.submitted_ms or 0 for move in found.moves)
    assert [later - unconfirmed > 2 * MINUTE_MS for unconfirmed, later in pairwise(starts)].count(True) == 1
    first = [move for move in found.moves if (move.submitted_ms or 0) < found.started_ms + MINUTE_MS]
    assert 2 <= len(first) <= 5
    assert all((move.completed_ms or 0) <= found.started_ms + MINUTE_MS for move in first)


def test_a_run_ends_at_its_deadline_with_what_fitted(rig: TwinRig) -> None:
    deadline_ms = rig.transport.now_ms() + 40_000
    found = run(rig, Schedule(deadline_ms=deadline_ms))
    done = [move for move in found.moves if move.status == "complete"]
    assert (found.state, len(done)) == ("failed", 3)
    assert all(move.completed_ms is not None and move.completed_ms <= deadline_ms for move in done)
    assert rig.throttles == {}


def hang(rig: TwinRig) -> None:
    """The destination hangs until after the window of a minute: its copies take longer than the run reckoned with."""
    rig.after(20, lambda: rig.twin.freeze(3))
    rig.after(70, lambda: rig.twin.unfreeze(3))


def test_a_window_that_closes_cancels_moves_for_the_next_if_asked(
    rig: TwinRig,
) -> None:
    hang(rig)
    hours = Schedule((window(rig, 0), window(rig, 5, long_min=50)), at_end=AtWindowEnd.CANCEL)
    closes_ms = rig.transport.now_ms() + MINUTE_MS
    found = run(rig, hours)
    assert (found.state, rig.replicas) == ("done", TARGETS)
    cancelled = [event for event in rig.seen if isinstance(event, CancelIntended)]
    # Asking a broker that hangs takes its time.
    assert [closes_ms <= event.at_ms <= closes_ms + 20_000 for event in cancelled] == [True]
    again = [event for event in rig.seen if isinstance(event, MovesSubmitted) and event.at_ms > closes_ms]
    assert {name for event in again for name in event.accepted} >= set(cancelled[0].partitions)
    assert again[0].at_ms >= closes_ms + 4 * MINUTE_MS
    assert rig.throttles == {}


def test_an_order_set_by_others_after_a_window_closed_stays(tmp_path: Path) -> None:
    """Our own cancellation leaves another order, too: only that one is ours to move on from."""
    rig = TwinRig(tmp_path, [[0, 1, 2]], size_bytes=30 * RATE)
    to_next_minute(rig)
    hang(rig)
    hours = Schedule((window(rig, 0), window(rig, 5, long_min=50)), at_end=AtWindowEnd.CANCEL)
    reorder = partial(rig.client.alter_partition_reassignments, {tp(0): (2, 1, 0)})
    rig.between_steps(240, lambda: reorder().raise_if_any())
    rig.end_within(3_600)
    found = rig.run(rig.prepared({0: (3, 1, 2)}, pace=Pace(hours=hours)))
    assert [type(event) for event in rig.seen].count(CancelIntended) == 1
    assert rig.replicas == {0: (2, 1, 0)}
    assert (found.moves[0].problem or "").startswith("its replicas were [2, 1, 0] and not [0, 1, 2]")


def test_the_hours_of_a_run_are_changed_while_it_waits(rig: TwinRig) -> None:
    begun_ms = rig.transport.now_ms()
    change = PaceChange(hours=Schedule())
    rig.ask_after(20, lambda at_ms, number: PaceRequested(at_ms, number, change))
    found = run(rig, Schedule((window(rig, 600),)))
    assert found.state == "done", found.problems
    assert found.ended_ms is not None
    assert found.ended_ms - begun_ms < 5 * MINUTE_MS
