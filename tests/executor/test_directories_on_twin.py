"""Runs on the twin whose plans name log directories: copies between brokers and between directories in one run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from kreassign.executor.cluster.observations import replica_locations
from kreassign.executor.cluster.readings import partitions_of
from kreassign.executor.events import CancelRequested, PlannedMove, RunStarted, SubmissionIntended
from kreassign.executor.history.run_history import rollback_plan
from kreassign.executor.journal import read_events
from kreassign.executor.journal.file import event_from_json, event_to_json
from kreassign.executor.preflight import RunSettings, prepare
from kreassign.model import TopicPartition
from kreassign.model.pace import Cap, Caps, Order, Pace
from kreassign.model.plan import PartitionAssignment, Plan
from kreassign.model.run import RunHistory
from kreassign.model.throttle import NO_THROTTLE, ThrottleRates
from tests.executor.deaths import die
from tests.executor.twin_runs import RATE, TwinRig, tp

pytestmark = pytest.mark.thorough

D0, D1 = "/data/{}/d0", "/data/{}/d1"
HOME = {0: (0, 1), 1: (0, 1), 2: (0, 1)}
Expectations = Mapping[int, tuple[tuple[int, ...], tuple[str, ...]]]


@pytest.fixture
def rig(tmp_path: Path) -> TwinRig:
    return TwinRig(tmp_path, [list(replicas) for replicas in HOME.values()])


def where(rig: TwinRig, number: int) -> dict[int, str | None]:
    """In which directory each copy of a partition is, by broker."""
    found = replica_locations(rig.client.describe_log_dirs(range(5), partitions=[tp(number)]).ok)
    return {replica.broker: place.current for replica, place in found.items()}


def other(rig: TwinRig, number: int, broker: int) -> str:
    """The directory of a broker in which a copy is not."""
    return (D1 if where(rig, number)[broker] == D0.format(broker) else D0).format(broker)


def started(rig: TwinRig, wishes: Expectations, pace: Pace | None = None, throttle: int | None = RATE) -> RunStarted:
    plan = Plan(tuple(PartitionAssignment(tp(number), *wish) for number, wish in wishes.items()))
    return prepare(
        rig.client, plan, RunSettings("run-1", rig.transport.now_ms(), ThrottleRates(throttle), pace=pace or Pace())
    )


def mixed(rig: TwinRig) -> Expectations:
    """Partition 0 goes to another broker, 1 changes a directory, 2 does both."""
    return {
        0: ((2, 1), (D1.format(2), "any")),
        1: ((0, 1), (other(rig, 1, 0), "any")),
        2: ((3, 1), (D1.format(3), other(rig, 2, 1))),
    }


def assert_in_place(rig: TwinRig, wishes: Expectations) -> None:
    for number, (replicas, log_dirs) in wishes.items():
        assert rig.replicas[number] == replicas
        found = where(rig, number)
        wanted = {broker: path for broker, path in zip(replicas, log_dirs, strict=True) if path != "any"}
        assert {broker: found[broker] for broker in wanted} == wanted


def test_moves_between_brokers_and_between_directories_are_made_in_one_run(rig: TwinRig) -> None:
    wishes = mixed(rig)
    found = rig.run(started(rig, wishes))
    assert (found.state, found.problems, found.throttle_residue, rig.throttles) == ("done", (), (), {})
    assert_in_place(rig, wishes)
    assert [move.bytes_copied // RATE for move in found.moves] == [10, 10, 20]


def test_copies_between_directories_are_throttled_with_a_rate_of_their_own(rig: TwinRig) -> None:
    during: list[dict[str, str]] = []
    rig.after(3, lambda: during.append(rig.throttles))
    found = rig.run(started(rig, {1: ((0, 1), (other(rig, 1, 0), "any"))}))
    assert during == [{"broker 0 replica.alter.log.dirs.io.max.bytes.per.second": str(RATE)}]
    assert found.ended_ms is not None
    assert (found.ended_ms - found.started_ms) / 1000 > 8
    assert rig.throttles == {}


def test_a_directory_limit_counts_copies_within_a_broker(rig: TwinRig) -> None:
    wishes = {number: ((0, 1), (D1.format(0), "any")) for number in HOME}
    homes = {number: where(rig, number)[0] for number in HOME}
    moving = [number for number, home in homes.items() if home != D1.format(0)]
    pace = Pace(Order.NAME, Caps(log_dir=Cap(moves=1)))
    found = rig.run(started(rig, wishes, pace))
    assert (found.state, found.problems) == ("done", ())
    sent = [event.partitions for event in rig.seen if isinstance(event, SubmissionIntended)]
    assert [[name.partition for name in names] for names in sent] == [[number] for number in moving]
    assert_in_place(rig, wishes)


def undo(rig: TwinRig, done: RunHistory) -> RunHistory:
    copies = rig.client.describe_log_dirs(range(5), partitions=[tp(number) for number in HOME]).ok
    back = rollback_plan(done.moves, partitions_of(rig.client.describe_topics(["t"]).ok), replica_locations(copies))
    settings = RunSettings("run-2", rig.transport.now_ms(), ThrottleRates(5 * RATE))
    return rig.run(prepare(rig.client, back.plan, settings, expected=back.expected))


def test_a_rollback_brings_copies_back_to_their_directories(rig: TwinRig) -> None:
    homes = {number: where(rig, number) for number in HOME}
    done = rig.run(started(rig, mixed(rig), throttle=None))
    assert done.state == "done"
    undone = undo(rig, done)
    assert (undone.state, undone.problems, rig.replicas) == ("done", (), HOME)
    assert where(rig, 1) == homes[1]
    assert where(rig, 2)[1] == homes[2][1]


def test_cancelling_at_once_gives_up_copies_between_directories_too(rig: TwinRig) -> None:
    homes = {number: where(rig, number) for number in HOME}
    rig.ask_after(4, lambda at_ms, number: CancelRequested(at_ms, number, is_now=True))
    found = rig.run(started(rig, mixed(rig)))
    assert (found.state, found.problems, rig.throttles) == ("cancelled", (), {})
    assert {number: where(rig, number) for number in HOME} == homes
    under_way = replica_locations(rig.client.describe_log_dirs(range(5), partitions=None).ok)
    assert not [place for place in under_way.values() if place.future is not None]


@pytest.mark.parametrize("is_written", [True, False], ids=["not done", "done"])
def test_a_run_with_directories_that_dies_at_any_row_is_carried_on(tmp_path: Path, is_written: bool) -> None:
    def new(folder: str) -> tuple[TwinRig, Expectations]:
        rig = TwinRig(tmp_path / folder, [[0, 1]])
        return rig, {0: ((3, 1), (D1.format(3), other(rig, 0, 1)))}

    whole, wishes = new("whole")
    whole.run(started(whole, wishes, throttle=None))
    for row in range(1, len(read_events(whole.path())) - is_written):
        rig, wishes = new(str(row))
        die(rig, started(rig, wishes, throttle=None), row, is_written=is_written)
        found = rig.resume()
        assert (found.state, found.problems) == ("done", ()), row
        assert_in_place(rig, wishes)


def test_with_steps_each_copy_goes_to_its_directory(rig: TwinRig) -> None:
    wishes: Expectations = {0: ((3, 2), (D1.format(3), D0.format(2))), 1: ((4, 1), ("any", other(rig, 1, 1)))}
    found = rig.run(started(rig, wishes, Pace(is_stepwise=True)))
    assert (found.state, found.problems) == ("done", ())
    assert_in_place(rig, wishes)


def test_directories_are_kept_in_the_journal_and_older_journals_have_none() -> None:
    move = PlannedMove(TopicPartition("t", 0), (0, 1), (0, 1), 7)
    event = RunStarted(0, "r", "c", (move,), NO_THROTTLE, ())
    older = event_to_json(event).replace(',"log_dirs":[]', "")
    assert older != event_to_json(event)
    assert event_from_json("RunStarted", older) == event
