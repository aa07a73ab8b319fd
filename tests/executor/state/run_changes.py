"""What an event changes of a run: every field of it that is another one afterwards, by its path, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar

from kreassign.executor.events import Event
from kreassign.executor.instructions import Instruction
from kreassign.executor.state.machine import handle
from kreassign.executor.state.move import MoveRecord
from kreassign.executor.state.move_index import MoveIndex
from kreassign.executor.state.phases import RunState
from kreassign.executor.state.run import Run
from tests.executor.run_events import machine_after

Changes = dict[str, object]
T = TypeVar("T")


def run_after(*events: Event) -> Run:
    """The run after these events, to be changed and gone on with."""
    return machine_after(*events)[0]._run


def handled(run: Run, event: Event, state: RunState | None = None) -> tuple[tuple[Instruction, ...], Changes]:
    """What is ordered after an event, in the state of the run or in this one, and what it changes."""
    run.state = run.state if state is None else state
    return changed(run, lambda: handle(run, event))


def changed(run: Run, act: Callable[[], T]) -> tuple[T, Changes]:
    """What comes of something that is done to a run, and what that changes of it."""
    before = deepcopy(dict(_facts(run)))
    found = act()
    return found, {path: value for path, value in _facts(run) if path not in before or before[path] != value}


def record_changes(record: MoveRecord, act: Callable[[], object]) -> Changes:
    """The same of a single move."""
    before = deepcopy(dict(_facts(record)))
    act()
    return {path: value for path, value in _facts(record) if before[path] != value}


def _facts(value: Any, path: str = "") -> Iterator[tuple[str, object]]:
    """Of what changes itself each field, of the moves each one by its name, and of their index the names in it."""
    for field in fields(value):
        found, where = getattr(value, field.name), f"{path}{field.name}"
        if isinstance(found, MoveIndex):
            yield from ((f"{where}.{place}", [*map(str, getattr(found, place))]) for place in _PLACES)
        elif is_dataclass(found) and not isinstance(found, type) and not _is_frozen(found):
            yield from _facts(found, f"{where}.")
        elif field.name == "records":
            for name, record in found.items():
                yield from _facts(record, f"{name}.")
        else:
            yield where, found


_PLACES = ("queue", "in_flight", "unsettled")


def _is_frozen(value: Any) -> bool:
    return bool(type(value).__dataclass_params__.frozen)
