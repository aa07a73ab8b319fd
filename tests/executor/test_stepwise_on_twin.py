"""Runs that give each partition one new replica at a time, on the twin."""

from __future__ import annotations

from pathlib import Path

import pytest

from kreassign.executor.cluster.readings import partitions_of
from kreassign.executor.events import CancelRequested, SubmissionIntended
from kreassign.executor.history.run_history import rollback_plan
from kreassign.executor.journal import read_events
from kreassign.executor.preflight import RunSettings, prepare
from kreassign.model.pace import AtWindowEnd, Pace, Schedule, Window
from kreassign.model.run import RunHistory
from kreassign.model.throttle import ThrottleRates
from kreassign.twin.cluster import Twin
from tests.executor.deaths import die
from tests.executor.twin_runs import RATE, TwinRig

pytestmark = pytest.mark.thorough

HOME = {0: (0, 1), 1: (1, 0)}
AWAY = {0: (3, 2), 1: (4, 1)}
STEPWISE = Pace(is_stepwise=True)


@pytest.fixture
def rig(tmp_path: Path) -> TwinRig:
    return TwinRig(tmp_path, [list(replicas) for replicas in HOME.values()])


def watched(rig: TwinRig) -> list[tuple[int, int]]:
    """At each step of the twin, per partition: how many replicas are being added, and how many are in sync."""
    seen: list[tuple[int, int]] = []

    def note(twin: Twin, _: object) -> None:
        states = twin.metadata.topics["t"].partitions.values()
        seen.extend((len(state.adding), len(state.isr)) for state in states)

    rig.twin.watch(note)
    return seen


def test_one_replica_at_a_time_never_has_fewer_in_sync(rig: TwinRig) -> None:
    seen = watched(rig)
    found = rig.run(rig.prepared(AWAY, pace=STEPWISE))
    assert (found.state, found.problems, rig.replicas, rig.throttles) == ("done", (), AWAY, {})
    assert max(adding for adding, _ in seen) == 1
    assert min(in_sync for _, in_sync in seen) == 2
    sent = [event.partitions for event in rig.seen if isinstance(event, SubmissionIntended)]
    assert sorted(name.partition for names in sent for name in names) == [0, 0, 1]
    assert {move.bytes_copied // RATE for move in found.moves} == {20, 10}


def test_without_steps_both_replicas_are_added_at_once(rig: TwinRig) -> None:
    seen = watched(rig)
    rig.run(rig.prepared(AWAY))
    assert max(adding for adding, _ in seen) == 2


@pytest.mark.parametrize("is_written", [True, False], ids=["not done", "done"])
def test_a_run_in_steps_killed_at_any_row_resumes_its_step(tmp_path: Path, is_written: bool) -> None:
    whole = TwinRig(tmp_path / "whole", [[0, 1]])
    whole.run(whole.prepared({0: (3, 2)}, pace=STEPWISE, throttle=None))
    rows = len(read_events(whole.path()))
    for row in range(1, rows - is_written):
        rig = TwinRig(tmp_path / str(row), [[0, 1]])
        seen = watched(rig)
        die(rig, rig.prepared({0: (3, 2)}, pace=STEPWISE, throttle=None), row, is_written=is_written)
        found = rig.resume()
        assert (found.state, found.problems, found.throttle_residue) == ("done", (), ()), row
        assert (rig.replicas, rig.throttles) == ({0: (3, 2)}, {}), row
        assert max(adding for adding, _ in seen) == 1, row


def undo(rig: TwinRig, done: RunHistory) -> RunHistory:
    back = rollback_plan(done.moves, partitions_of(rig.client.describe_topics(["t"]).ok))
    assert back.skipped == ()
    settings = RunSettings("run-2", rig.transport.now_ms(), ThrottleRates(5 * RATE), pace=done.pace)
    return rig.run(prepare(rig.client, back.plan, settings, expected=back.expected))


@pytest.mark.parametrize(
    ("seconds", "after"),
    [(3, [{0, 1}, {0, 1}]), (18, [{0, 3}, {1, 4}])],
    ids=["in the first step", "in the second step"],
)
def test_a_run_in_steps_that_is_cancelled_on_its_way_is_undone_from_there(
    rig: TwinRig, seconds: float, after: list[set[int]]
) -> None:
    rig.ask_after(seconds, lambda at_ms, number: CancelRequested(at_ms, number, is_now=True))
    done = rig.run(rig.prepared(AWAY, pace=STEPWISE))
    assert done.state == "cancelled"
    assert {name: set(brokers) for name, brokers in rig.replicas.items()} == dict(enumerate(after))
    if rig.replicas != HOME:
        undone = undo(rig, done)
        assert (undone.state, undone.problems) == ("done", ())
    assert (rig.replicas, rig.throttles) == (HOME, {})


def test_a_step_cancelled_at_the_windows_end_starts_again(rig: TwinRig) -> None:
    rig.transport.sleep(60 - rig.transport.now_ms() / 1000 % 60)
    minute = rig.transport.now_ms() // 60_000
    rig.after(5, lambda: rig.twin.freeze(3))
    rig.after(50, lambda: rig.twin.unfreeze(3))
    windows = (Window(minute % 1440, (minute + 1) % 1440), Window((minute + 5) % 1440, (minute + 90) % 1440))
    found = rig.run(rig.prepared(AWAY, pace=Pace(hours=Schedule(windows, at_end=AtWindowEnd.CANCEL), is_stepwise=True)))
    assert (found.state, rig.replicas, rig.throttles) == ("done", AWAY, {})
