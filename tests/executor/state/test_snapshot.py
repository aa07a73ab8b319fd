"""A run as text, and the run of that text."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kreassign.executor import tagged_json
from kreassign.executor.events import PlacementState, PlannedMove
from kreassign.executor.state import Machine, MoveStatus
from kreassign.executor.state.move import NextAction
from kreassign.executor.state.move_index import MoveIndex
from kreassign.executor.state.run import Run
from kreassign.executor.state.snapshot import snapshot_of
from kreassign.model import TopicPartition
from tests.executor.run_events import SUBMITTED, WHOLE, look, machine_after, started


def without_index(machine: Machine) -> Run:
    """What the run knows; the sums of its queue may differ by the order of adding."""
    run = machine._run
    return replace(run, moves=replace(run.moves, index=type(run.moves.index)()))


@pytest.mark.parametrize("count", range(1, len(WHOLE) + 1))
def test_a_run_that_is_read_back_is_the_same_and_goes_on_alike(count: int) -> None:
    machine = machine_after(*WHOLE[:count])[0]
    again, beside = Machine.from_snapshot(machine.snapshot({"beside": count}))
    assert (beside, again.at_ms, again.view.phase) == ({"beside": count}, machine.at_ms, machine.view.phase)
    assert without_index(again) == without_index(machine)
    assert [again.replay(event) for event in WHOLE[count:]] == [machine.replay(event) for event in WHOLE[count:]]


def test_a_snapshot_has_every_move_in_its_place() -> None:
    moves = tuple(PlannedMove(TopicPartition("a", number), (0, 1), (2, 1), 1_000) for number in range(3))
    machine = machine_after(started(*moves, throttle=None))[0]
    run = machine._run
    first, second, _ = run.moves.records.values()
    first.status = MoveStatus.MOVING
    run.moves.index.sort(first)
    run.moves.index.sort(second, NextAction.SUBMIT)
    index = Machine.from_snapshot(machine.snapshot({}))[0]._run.moves.index
    assert index == run.moves.index
    assert [[*index.in_flight], [*index.queue], [*index.unsettled]] == [[one.topic_partition] for one in moves]
    assert index.in_flight[first.name] is not first


def test_whether_a_run_waits_and_since_when_is_kept() -> None:
    waiting = machine_after(*SUBMITTED, look(5_000, PlacementState.MOVING))[0]
    found = snapshot_of(waiting.snapshot({"polls": 7}))
    assert (found.is_waiting, found.at_ms, found.beside) == (True, 5_000, {"polls": 7})
    found = snapshot_of(machine_after(*SUBMITTED)[0].snapshot({}))
    assert (found.is_waiting, found.at_ms, found.beside) == (False, 4_000, {})


@pytest.mark.parametrize("place", ["queued", "in_flight", "unsettled"])
def test_a_snapshot_of_a_move_that_its_run_does_not_have_cannot_be_read(place: str) -> None:
    found = snapshot_of(machine_after(started(throttle=None))[0].snapshot({}))
    bare = replace(found.run, moves=replace(found.run.moves, index=MoveIndex()))
    where: dict[str, Any] = dict.fromkeys(("queued", "in_flight", "unsettled"), ())
    where[place] = (TopicPartition("b", 7),)
    text = tagged_json.dumps(replace(found, run=bare, **where))
    with pytest.raises(ValueError, match="a snapshot of a run without its move"):
        snapshot_of(text)
