"""A row of the table: what a handler does with an event in a state, and where that may lead."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from kreassign.executor.events import Event
from kreassign.executor.instructions import Instruction
from kreassign.executor.state.phases import RunState
from kreassign.executor.state.run import Run


class Next(NamedTuple):
    """The state that follows and the instructions to execute in it, in order."""

    state: RunState
    instructions: tuple[Instruction, ...] = ()


Handler = Callable[[Run, Any, Any], Next]
"""From the run, its state and the event. Changes what outlives the state; decides, but does not set, the next state."""


class Row(NamedTuple):
    """What to do, and the states to which that may lead."""

    handler: Handler
    leads_to: frozenset[type[RunState]]


Key = tuple[type[RunState], type[Event]]
Rows = Mapping[Key, Row]


def row(handler: Handler, *leads_to: type[RunState]) -> Row:
    """A row that may lead to these states."""
    return Row(handler, frozenset(leads_to))
