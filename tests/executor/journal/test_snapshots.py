"""A run that is read from a snapshot is the run that its events tell, and goes on like it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from kreassign.executor.events import Event, HoldRequested, ReleaseRequested, ThrottleRequested
from kreassign.executor.history.run_history import (
    SnapshotKeeper,
    fold,
    history,
    latest_start,
    read_history,
    read_progress,
)
from kreassign.executor.journal import Journal, Position, read_events, stored_snapshots
from kreassign.executor.progress import ProgressMeter
from kreassign.executor.runner import Runner
from kreassign.executor.state import Machine, RunView, machine
from kreassign.model.pace import Pace
from tests.executor.deaths import Died, Dying
from tests.executor.journal.test_journal import written
from tests.executor.run_events import WHOLE, fold_with_progress
from tests.executor.twin_runs import RATE, TwinRig

pytestmark = pytest.mark.thorough

TARGETS = {0: (2, 1), 1: (3, 0), 2: (1, 0)}
HOME = [[0, 1], [1, 0], [0, 1]]


def steered(folder: Path) -> TwinRig:
    """A run with all that may happen to it."""
    rig = TwinRig(folder, HOME)
    rig.ask_after(4, HoldRequested)
    rig.ask_after(9, ReleaseRequested)
    rig.ask_after(6, lambda at_ms, number: ThrottleRequested(at_ms, number, 2 * RATE, (1,)))
    rig.after(6, lambda: rig.twin.crash(4))
    return rig


def known(run: RunView) -> tuple[object, ...]:
    """Knowledge of a run; the sums of its queue may differ by the order of adding."""
    index = run._run.moves.index
    bare = replace(run._run, moves=replace(run._run.moves, index=type(index)()))
    return (bare, index.in_flight, index.unsettled, index.queue.moves, index.queue.left + type(index.queue.left)())


@pytest.mark.parametrize("is_stepwise", [False, True])
def test_a_snapshot_after_any_event_is_the_run_and_goes_on_as_it(tmp_path: Path, is_stepwise: bool) -> None:
    rig = steered(tmp_path)
    done = rig.run(rig.prepared(TARGETS, pace=Pace(elections_per_step=1, is_stepwise=is_stepwise)))
    events = read_events(rig.path())
    machine = Machine()
    for number, event in enumerate(events):
        machine.replay(event)
        again = Machine.from_snapshot(machine.snapshot({}))[0]
        assert known(again.view) == known(machine.view), number
        for later in events[number + 1 :]:
            again.replay(later)
        assert history(again.view) == done, number


@pytest.mark.parametrize("every", [1, 3], ids=["a snapshot at every row", "one of three"])
def test_a_run_that_dies_around_a_snapshot_is_carried_on_to_the_same_end(tmp_path: Path, every: int) -> None:
    whole = TwinRig(tmp_path / "whole", HOME)
    whole.run(whole.prepared(TARGETS, throttle=5 * RATE))
    rows = len(read_events(whole.path()))
    for row in range(2, rows - 1):  # after the last one there is nothing to resume
        rig = TwinRig(tmp_path / str(row), HOME)
        begun = rig.prepared(TARGETS, throttle=5 * RATE)
        with Journal.create(rig.state_dir, begun) as journal, pytest.raises(Died):
            keeping(rig, journal, every, row).start(begun)
        start = latest_start(rig.path())
        assert start.position.sequence >= row - every - 1
        journal, events = Journal.resume(rig.path(), rig.twin.cluster_id, start.position)
        with journal:
            found = Runner(rig.client, rig.transport, journal).resume(events, machine=start.machine)
        assert (found.state, found.problems, found.throttle_residue) == ("done", (), ()), row
        assert (rig.replicas, rig.throttles) == (TARGETS, {}), row
        assert read_history(rig.path()) == history(fold(read_events(rig.path()))) == found


def keeping(rig: TwinRig, journal: Journal, every: int, row: int) -> Runner:
    """A run whose process keeps snapshots, and dies at this row."""
    count = 0

    def listen(event: Event, run: RunView) -> None:
        nonlocal count
        count += 1
        if count % every == 0:
            keeper.follow(event, run)

    runner = Runner(rig.client, rig.transport, Dying(journal, row), listener=listen)
    keeper = SnapshotKeeper(journal, runner.snapshot, every_ms=0, every_byte_ms=0)
    return runner


def with_snapshots(folder: Path, *at: int) -> tuple[Path, tuple[Machine, ...]]:
    """A journal of the whole run with snapshots after these many events, and the machines then."""
    path = written(folder, WHOLE[0])
    machine, machines = Machine(), []
    machine.replay(WHOLE[0])
    meter = ProgressMeter(machine.view)
    with Journal.resume(path, "cluster-1")[0] as journal:
        for number, event in enumerate(WHOLE[1:], 2):
            journal.append(event)
            machine.replay(event)
            meter.follow(event)
            if number in at:
                journal.keep_snapshot(machine.snapshot(meter.state()))
                machines.append(Machine.from_snapshot(machine.snapshot({}))[0])
    return path, tuple(machines)


def test_the_two_latest_snapshots_are_kept_and_the_latest_is_used(tmp_path: Path) -> None:
    path, machines = with_snapshots(tmp_path, 4, 6, 9)
    assert [one.position.sequence for one in stored_snapshots(path)] == [9, 6]
    assert known(latest_start(path).machine.view) == known(machines[-1].view)
    assert read_history(path) == history(fold(WHOLE))


@pytest.mark.parametrize("damage", [
    "UPDATE snapshots SET body = zeroblob(100)",
    "UPDATE snapshots SET body = 7",
    "UPDATE snapshots SET digest = 'x'",
    "UPDATE snapshots SET sequence = sequence + 1",
    "DROP TABLE snapshots",
])  # fmt: skip
def test_a_damaged_snapshot_is_passed_over(tmp_path: Path, damage: str) -> None:
    path, _ = with_snapshots(tmp_path, 6, 9)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(damage)
        connection.commit()
    assert latest_start(path).position == Position()
    assert read_history(path) == history(fold(WHOLE))
    Journal.resume(path, "cluster-1", latest_start(path).position)[0].close()


def test_a_snapshot_with_classes_that_have_other_fields_now_is_not_used() -> None:
    machine = Machine()
    machine.replay(WHOLE[0])
    text = machine.snapshot({})
    for old, new in (('"submissions"', '"sendings"'), ("kreassign.executor.state.run", "os"), ('"Run"', '"Sprint"')):
        assert old in text
        with pytest.raises(ValueError, match=r"fields now|no class of a run|not what this version"):
            Machine.from_snapshot(text.replace(old, new))
    for nonsense in ("", "[]", "{}", '{"classes":[],"value":7}', '{"classes":[],"value":["x"]}'):
        with pytest.raises(ValueError, match=r".*"):
            Machine.from_snapshot(nonsense)


def test_only_classes_of_a_run_have_a_place_in_a_snapshot() -> None:
    with pytest.raises(TypeError, match="Path has no place in a snapshot"):
        machine.to_tagged_json(Path("/"))


def test_progress_is_known_from_a_snapshot_as_it_is_from_all_events(tmp_path: Path) -> None:
    rig = TwinRig(tmp_path, HOME, size_bytes=400 * 1_000_000)
    begun = rig.prepared(TARGETS, throttle=RATE)
    with Journal.create(rig.state_dir, begun) as journal:

        def listen(event: Event, run: RunView) -> None:
            if event.at_ms > 100_000:
                runner.request_stop()
            elif event.at_ms < 80_000:
                keeper.follow(event, run)

        runner = Runner(rig.client, rig.transport, journal, listener=listen)
        keeper = SnapshotKeeper(journal, runner.snapshot)
        assert runner.start(begun).state == "paused"
    events = read_events(rig.path())
    assert 0 < latest_start(rig.path()).position.sequence < len(events) - 10
    run, meter = read_progress(rig.path())
    whole, whole_meter = fold_with_progress(events)
    assert history(run, meter) == history(whole, whole_meter)
    assert meter.progress().rate_bytes_per_s is not None


def test_a_meter_that_remembers_other_things_is_not_used() -> None:
    machine = Machine()
    machine.replay(WHOLE[0])
    with pytest.raises(ValueError, match="a meter remembers other things"):
        ProgressMeter.restored(machine.view, {"speed": 7})
