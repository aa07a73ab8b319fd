"""A run as text, and the run of that text."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kreassign.executor.state import Machine
from kreassign.executor.state.run import Run
from tests.executor.run_events import WHOLE, machine_after


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
