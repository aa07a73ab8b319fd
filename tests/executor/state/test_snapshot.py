"""A run as text, and the run of that text."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kreassign.executor.events import MovesObserved
from kreassign.executor.state.machine import Machine, Snapshot, from_tagged_json, to_tagged_json
from kreassign.executor.state.run import MoveIndex
from kreassign.model import TopicPartition
from tests.executor.run_events import MOVES, WHOLE, look, machine_after, seen, started
from tests.executor.state.played import MOVING, UNTOUCHED

MIXED = (started(throttle=None), MovesObserved(1_000, (seen(MOVES[0], MOVING),)), look(2_000, UNTOUCHED, MOVES[1]))
"""One move is in flight, and one waits that was not seen before."""


def facts(machine: Machine) -> object:
    """The contents of a snapshot; waiting moves may be in another order."""
    found = from_tagged_json(machine.snapshot({}), Snapshot)
    bare = replace(found.run, moves=replace(found.run.moves, index=MoveIndex()))
    return replace(found, run=bare, queued=tuple(sorted(found.queued)))


@pytest.mark.parametrize("events", [*(WHOLE[:count] for count in range(1, len(WHOLE) + 1)), MIXED[:2], MIXED], ids=len)
def test_a_run_that_is_read_back_is_the_same_and_goes_on_alike(events: tuple[Any, ...]) -> None:
    machine, rest = machine_after(*events)[0], WHOLE[len(events) :] if events[0] is WHOLE[0] else ()
    again, beside = Machine.from_snapshot(machine.snapshot({"polls": 7}))
    assert (beside, again.at_ms, facts(again)) == ({"polls": 7}, events[-1].at_ms, facts(machine))
    assert [again.replay(event) for event in rest] == [machine.replay(event) for event in rest]


@pytest.mark.parametrize("place", ["queued", "in_flight", "unsettled"])
def test_a_snapshot_of_a_move_that_its_run_does_not_have_cannot_be_read(place: str) -> None:
    found = from_tagged_json(machine_after(started(throttle=None))[0].snapshot({}), Snapshot)
    without = replace(found.run, moves=replace(found.run.moves, index=MoveIndex()))
    where: dict[str, Any] = dict.fromkeys(("queued", "in_flight", "unsettled"), ())
    where[place] = (TopicPartition("b", 7),)
    with pytest.raises(ValueError, match="a snapshot of a run without its move"):
        Machine.from_snapshot(to_tagged_json(replace(found, run=without, **where)))
