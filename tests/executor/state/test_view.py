"""Others know a run only by its read view: nobody outside the machine imports its insides."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from kreassign import executor
from kreassign.executor.events import PlacementState
from kreassign.executor.guards import GuardName, Reaction, Verdict
from kreassign.executor.state import Phase, RunView
from tests.executor.run_events import PREPARED, SUBMITTED, WHOLE, look, machine_after, replayed, started

SOURCE = Path(executor.__file__).parent.parent
STATE = SOURCE / "executor" / "state"


def imports(path: Path) -> Iterator[str]:
    """Every module of the machine that a file imports, and others."""
    text = path.read_text(encoding="utf-8")
    # Reading all of the product as programs would take a second.
    for node in ast.walk(ast.parse(text if "executor.state" in text else "")):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module
        elif isinstance(node, ast.Import):
            yield from (name.name for name in node.names)


def test_nobody_outside_the_machine_imports_its_insides() -> None:
    outside = [path for path in SOURCE.rglob("*.py") if STATE not in path.parents]
    strangers = {
        f"{path.relative_to(SOURCE)}: {name}"
        for path in outside
        for name in imports(path)
        if name.startswith("kreassign.executor.state.")
    }
    assert len(outside) > 100
    assert strangers == set()


def test_a_view_shows_the_run_as_it_is_and_lets_nobody_change_it() -> None:
    view, _ = replayed(*SUBMITTED)
    assert (view.phase, view.step, view.ended_ms) == (Phase.MOVING, "Observing", None)
    assert view.can_be_resumed
    done, _ = replayed(*WHOLE)
    assert (done.phase, done.ended_ms, done.can_be_resumed) == (Phase.DONE, 12_000, False)
    changeable = [name for name, value in vars(RunView).items() if isinstance(value, property) and value.fset]
    assert changeable == []


def test_a_run_can_be_resumed_while_moves_are_left_or_settings_are_to_be_restored() -> None:
    unthrottled = replayed(started(throttle=None), look(1_000, PlacementState.UNTOUCHED))[0]
    assert (unthrottled.can_be_resumed, dict(unthrottled.pending_restores)) == (True, {})
    assert replayed(*PREPARED)[0].can_be_resumed
    assert not replayed(*WHOLE)[0].can_be_resumed


def test_a_run_that_nobody_executes_foresees_nothing_and_no_guard_speaks() -> None:
    machine, _ = machine_after(*SUBMITTED)
    run = machine._run
    run.moves.outlook = ("waits for its window",)
    run.health.verdicts = (Verdict(GuardName.DISK, Reaction.HOLD, "full", "make room"),)
    run.moves.absent = (2,)
    going_on, left = machine.view, machine.view.as_left
    assert going_on.outlook == (*going_on.lost_destinations, "waits for its window")
    assert (len(going_on.lost_destinations), going_on.verdicts) == (1, run.health.verdicts)
    assert (left.outlook, left.verdicts) == ((), ())


def test_a_view_of_a_run_that_was_left_is_of_the_same_run() -> None:
    view = replayed(replace(started(), at_ms=7, plan_id="p"), *PREPARED[1:])[0]
    left = view.as_left
    assert (left.run_id, left.cluster_id, left.plan_id, left.started_ms) == ("run-1", "cluster-1", "p", 7)
    assert (left.records, left.phase) == (view.records, view.phase)
