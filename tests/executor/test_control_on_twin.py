"""Controls of a run while it runs, on a twin: hold, go on, cancel, change the throttle, leave."""

from __future__ import annotations

from pathlib import Path

import pytest

from kreassign.executor.events import (
    CancelRequested,
    MovesObserved,
    StopRequested,
    SubmissionIntended,
    ThrottleIntended,
    ThrottleRequested,
)
from kreassign.executor.journal import read_events
from tests.executor.twin_runs import RATE, TwinRig, tp

pytestmark = pytest.mark.thorough

THREE = [[0, 1], [1, 0], [0, 1]]
AWAY = {0: (2, 1), 1: (3, 0), 2: (2, 1)}


@pytest.fixture
def rig(tmp_path: Path) -> TwinRig:
    return TwinRig(tmp_path, THREE)


def test_a_run_on_the_twin_moves_everything_and_leaves_no_throttle(rig: TwinRig) -> None:
    found = rig.run(rig.prepared(AWAY))
    assert (found.state, found.problems, found.throttle_residue) == ("done", (), ())
    assert rig.replicas == AWAY
    assert rig.throttles == {}
    # Broker 2 got two copies of ten megabytes at one megabyte a second.
    assert found.ended_ms is not None
    assert 18 <= (found.ended_ms - found.started_ms) / 1000 <= 30


def test_a_throttle_raised_during_the_run_is_restored(rig: TwinRig) -> None:
    rig.ask_after(3, lambda at_ms, number: ThrottleRequested(at_ms, number, 20 * RATE))
    found = rig.run(rig.prepared(AWAY))
    assert (found.state, found.throttle_bytes_per_s, rig.throttles) == ("done", 20 * RATE, {})
    assert found.ended_ms is not None
    assert (found.ended_ms - found.started_ms) / 1000 < 15


def test_a_throttle_taken_off_during_the_run_leaves_nothing(tmp_path: Path) -> None:
    rig = TwinRig(tmp_path, THREE, size_bytes=4_000 * RATE)
    during: list[dict[str, str]] = []
    rig.ask_after(3, lambda at_ms, number: ThrottleRequested(at_ms, number, None))
    rig.after(5.5, lambda: during.append(rig.throttles))
    found = rig.run(rig.prepared({0: (2, 1)}))
    assert (found.state, found.problems) == ("done", ())
    # Entries are taken out of lists, for others may have some, too; one that is empty throttles nothing.
    assert [{name: value for name, value in moment.items() if value} for moment in during] == [{}]
    assert rig.throttles == {}


def test_a_throttle_can_be_set_on_a_run_that_began_without_one(tmp_path: Path) -> None:
    rig = TwinRig(tmp_path, THREE, size_bytes=2_000 * RATE)
    during: list[dict[str, str]] = []
    rig.ask_after(1, lambda at_ms, number: ThrottleRequested(at_ms, number, 50 * RATE))
    rig.after(8, lambda: during.append(rig.throttles))
    found = rig.run(rig.prepared({0: (2, 1)}, throttle=None))
    assert (found.state, rig.throttles) == ("done", {})
    assert during[0]["broker 2 follower.replication.throttled.rate"] == str(50 * RATE)
    assert during[0]["topic t follower.replication.throttled.replicas"] == "0:2"


def test_a_run_cancelled_at_once_takes_back_moves_and_throttle(rig: TwinRig) -> None:
    rig.ask_after(3, lambda at_ms, number: CancelRequested(at_ms, number, is_now=True))
    found = rig.run(rig.prepared(AWAY))
    assert (found.state, found.problems, rig.throttles) == ("cancelled", (), {})
    assert {move.status for move in found.moves} == {"cancelled"}
    assert {number: set(replicas) for number, replicas in rig.replicas.items()} == {0: {0, 1}, 1: {0, 1}, 2: {0, 1}}
    assert not rig.twin.metadata.reassigning


def test_a_move_that_ended_before_its_cancellation_counts_as_made(rig: TwinRig) -> None:
    # The reorder is over at once, the copy is not.
    rig.ask_after(4, lambda at_ms, number: CancelRequested(at_ms, number, is_now=True))
    found = rig.run(rig.prepared({0: (1, 0), 2: (2, 1)}))
    assert [(move.partition, move.status) for move in found.moves] == [(0, "complete"), (2, "cancelled")]
    assert found.state == "cancelled"


def test_a_request_is_heard_once_also_by_a_run_that_is_resumed(rig: TwinRig) -> None:
    rig.ask_after(3, lambda at_ms, number: ThrottleRequested(at_ms, number, 2 * RATE))
    rig.stop_after(5)
    assert rig.run(rig.prepared(AWAY)).state == "paused"
    found = rig.resume()
    assert found.state == "done"
    events = read_events(rig.path())
    assert sum(isinstance(event, ThrottleRequested) for event in events) == 1
    assert sum(isinstance(event, StopRequested) for event in events) == 1
    assert found.throttle_bytes_per_s == 2 * RATE


def test_replicas_leave_the_throttled_lists_one_by_one_as_they_catch_up(tmp_path: Path) -> None:
    rig = TwinRig(tmp_path, [[0, 1], [0, 1], [1, 0]])
    during: list[str] = []

    def note() -> None:
        during.append(rig.throttles.get("topic t follower.replication.throttled.replicas", ""))

    for second in range(2, 40):
        rig.after(second, note)
    rig.run(rig.prepared({0: (2, 1), 1: (2, 1), 2: (3, 0)}))
    assert "0:2,1:2,2:3" in during
    assert "0:2,1:2" in during


def test_nothing_is_sent_twice_and_no_throttle_written_in_vain(rig: TwinRig) -> None:
    rig.run(rig.prepared(AWAY))
    sent = [partition for event in rig.seen if isinstance(event, SubmissionIntended) for partition in event.partitions]
    assert sorted(sent) == [tp(0), tp(1), tp(2)]
    looks = sum(isinstance(event, MovesObserved) for event in rig.seen)
    writes = sum(isinstance(event, ThrottleIntended) for event in rig.seen)
    assert writes <= 2 + len(AWAY) < looks
