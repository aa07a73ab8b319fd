"""A journal is read back to what its process knew, at every row."""

from __future__ import annotations

from pathlib import Path

from kreassign.executor.events import Event, HoldRequested, LeadersElected, ReleaseRequested, Request
from kreassign.executor.history.run_history import history, read_history
from kreassign.executor.journal import read_events
from kreassign.executor.state import Machine, RunView
from kreassign.model.pace import Pace
from tests.executor.twin_runs import TwinRig


class Known:
    """Knowledge of a process after each event."""

    def __init__(self) -> None:
        self.after: list[tuple[Event, object]] = []

    def note(self, event: Event, run: RunView) -> None:
        # A request during a wait does not tell whether the wait was over by then; what comes next does.
        state = run.phase if isinstance(event, Request) else run._run.state
        self.after.append((event, (state, history(run))))


def read_back(events: tuple[Event, ...]) -> list[tuple[Event, object]]:
    machine, known = Machine(), Known()
    for event in events:
        machine.replay(event)
        known.note(event, machine.view)
    return known.after


def test_leaders_that_are_elected_in_several_steps_are_read_back(tmp_path: Path) -> None:
    rig = TwinRig(tmp_path, [[0, 1]] * 5)
    found = rig.run(rig.prepared(dict.fromkeys(range(5), (1, 0)), pace=Pace(elections_per_step=2)))
    assert found.state == "done"
    assert sum(isinstance(event, LeadersElected) for event in read_events(rig.path())) == 3
    assert read_history(rig.path()) == found


def test_every_row_of_a_run_is_read_back_to_what_its_process_knew(tmp_path: Path) -> None:
    rig = TwinRig(tmp_path, [[0, 1], [1, 0], [0, 1]])
    known = Known()
    rig.listener = known.note
    rig.ask_after(4, HoldRequested)
    rig.ask_after(9, ReleaseRequested)
    rig.after(6, lambda: rig.twin.crash(4))
    rig.run(rig.prepared({0: (2, 1), 1: (0, 1), 2: (2, 1)}, pace=Pace(elections_per_step=1)))
    written = read_events(rig.path())
    lived = [entry for entry in known.after if entry[0] in written]
    assert read_back(written) == lived
