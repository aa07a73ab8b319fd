"""Run the machine: `handle(run, event)` takes an event and returns instructions; the time comes with events.

The table from (state, event) to the handler joins the rows of each handler module; states only lead to later states,
so those modules import each other in one direction. Clocks, sockets and files are elsewhere, as are the states of a
single move (`move.py`, `move_rules.py`) and of a single setting of the throttle (`setting.py`).

A run follows from its events alone, so replaying a journal gives the same run, and `RunResumed` is one more row of the
table. A setting is to be restored from the moment `ThrottleIntended` is written until the value before it was **read
back**. A snapshot, a run as text between two events, only saves the time of replaying.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from dataclasses import dataclass, field, fields, is_dataclass, replace
from enum import Enum
from types import MappingProxyType
from typing import Any

from kreassign.errors import InvariantBroken, JournalDamaged
from kreassign.executor import events
from kreassign.executor.instructions import Instruction, Wait
from kreassign.executor.state import control, finishing, health_check, moving, preparing
from kreassign.executor.state.phases import Waiting
from kreassign.executor.state.run import MoveIndex, Rows, Run, candidate
from kreassign.executor.state.view import RunView
from kreassign.model import TopicPartition

# Convert values of the executor to JSON and back, whatever their classes; only for texts that the same program reads.
#
# Unlike events (`journal/file.py`), which are read for years, such a text is only readable while every class in it
# has the same fields: their names are in the text. Otherwise ValueError is raised, and the events are read
# instead.

PACKAGES = ("kreassign.executor.", "kreassign.model.")
"""Only classes of these packages are created from a text."""

_PLAIN: dict[type, str] = {tuple: "t", list: "l", set: "s", frozenset: "f"}
_PLAIN_BY_TAG: dict[str, Any] = {tag: kind for kind, tag in _PLAIN.items()}


def to_tagged_json(value: Any) -> str:
    """Write a value as text: dataclasses, named tuples, enums and Python's own collections. Raises TypeError."""
    writer = _Writer()
    content = writer.written(value)
    return json.dumps({"classes": writer.classes, "value": content}, separators=(",", ":"), ensure_ascii=False)


def from_tagged_json(text: str, wanted: type) -> Any:
    """Read a value of the wanted class. Raises ValueError where a class has changed."""
    try:
        document = json.loads(text)
        found = _Reader([_class(*named) for named in document["classes"]]).read(document["value"])
    except (LookupError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"not what this version of kreassign wrote: {error}") from error
    if type(found) is not wanted:
        raise ValueError(f"not what this version of kreassign wrote: {type(found).__name__} is no {wanted.__name__}")
    return found


class _Writer:
    def __init__(self) -> None:
        self.classes: list[tuple[str, str, list[str]]] = []
        self._numbers: dict[type, int] = {}

    def written(self, value: Any) -> Any:
        kind = type(value)
        if value is None or kind in {str, int, float, bool}:
            return value
        if kind in _PLAIN:
            return [_PLAIN[kind], *map(self.written, value)]
        if kind is dict or kind is Counter:
            flat = (self.written(part) for item in value.items() for part in item)
            return ["c" if kind is Counter else "d", *flat]
        if isinstance(value, Enum):
            return ["e", self._number(kind, []), value.value]
        if isinstance(value, tuple):
            return ["n", self._number(kind, list(kind._fields)), *map(self.written, value)]
        if is_dataclass(value):
            names = [field.name for field in fields(value)]
            return ["o", self._number(kind, names), *(self.written(getattr(value, name)) for name in names)]
        raise TypeError(f"{kind.__name__} has no place in a snapshot")

    def _number(self, kind: type, names: list[str]) -> int:
        if kind not in self._numbers:
            self._numbers[kind] = len(self.classes)
            self.classes.append((kind.__module__, kind.__qualname__, names))
        return self._numbers[kind]


class _Reader:
    def __init__(self, classes: list[tuple[Any, list[str]]]) -> None:
        self._classes = classes

    def read(self, value: Any) -> Any:
        if type(value) is not list:
            return sys.intern(value) if type(value) is str else value
        tag, *parts = value
        if tag in _PLAIN_BY_TAG:
            return _PLAIN_BY_TAG[tag](map(self.read, parts))
        if tag in {"d", "c"}:
            items = map(self.read, parts)
            return (Counter if tag == "c" else dict)(dict(zip(items, items, strict=True)))
        kind, names = self._classes[parts[0]]
        if tag == "e":
            return kind(parts[1])
        values = list(map(self.read, parts[1:]))
        return kind(*values) if tag == "n" else _made(kind, dict(zip(names, values, strict=True)))


def _made(kind: Any, values: dict[str, Any]) -> Any:
    """Create a dataclass from all its fields, including those that its initializer does not take."""
    made = object.__new__(kind)
    for name, value in values.items():
        object.__setattr__(made, name, value)
    return made


def _class(module: str, name: str, names: list[str]) -> tuple[Any, list[str]]:
    if not module.startswith(PACKAGES):
        raise ValueError(f"{module}.{name} is no class of a run")
    kind: Any = sys.modules[module]
    for part in name.split("."):
        kind = getattr(kind, part)
    is_made = isinstance(kind, type) and (is_dataclass(kind) or issubclass(kind, Enum | tuple))
    known = [field.name for field in fields(kind)] if is_dataclass(kind) else list(getattr(kind, "_fields", ()))
    if not is_made or known != names:
        raise ValueError(f"{name} has other fields now")
    return kind, names


# Snapshots: convert a run between two events to text and back, so that it need not be replayed from the beginning.
#
# A snapshot only saves time: its content follows from the events before it. If it cannot be read, because another
# version wrote it or it is damaged, the events are read instead.


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A run without its index, and the moves in each place of the index, which shares its records with the run."""

    run: Run
    is_waiting: bool
    at_ms: int
    queued: tuple[TopicPartition, ...]
    in_flight: tuple[TopicPartition, ...]
    unsettled: tuple[TopicPartition, ...]
    beside: dict[str, object]


TRANSITIONS: Rows = MappingProxyType({
    **preparing.ROWS,
    **moving.ROWS,
    **health_check.ROWS,
    **finishing.ROWS,
    **control.LEASE_ROWS,
    **control.REQUEST_ROWS,
})  # fmt: skip

DURING_A_WAIT = (
    *events.Request.__args__,
    events.RunResumed,
    events.StopRequested,
    events.ClockStepped,
    events.BrokersForgotten,
    events.TimePassed,
)
"""Events that do not end a wait."""

_CANNOT_BE = (InvariantBroken, LookupError, ValueError, TypeError, AttributeError, ArithmeticError)
"""Errors that the table raises for a readable event of a journal whose fields make no sense."""


def handle(run: Run, event: events.Event) -> tuple[Instruction, ...]:
    """Process an event; return the instructions that follow, in order.

    No instructions: the run is at rest, or the event was an intention or a request, and earlier instructions hold.
    """
    before = type(run.state)
    row = TRANSITIONS.get((before, type(event)))
    if row is None:
        raise InvariantBroken(
            f"run {run.identity.run_id}: {type(event).__name__} cannot happen while {run.state.phase} "
            f"({before.__name__})"
        )
    run.health.note_silence(event)
    after, instructions = row.handler(run, run.state, event)
    if type(after) not in row.leads_to:
        raise InvariantBroken(
            f"run {run.identity.run_id}: {type(event).__name__} may not lead from {before.__name__} to "
            f"{type(after).__name__}"
        )
    run.state = after
    return instructions


@dataclass(slots=True)
class Machine:
    """A run that follows events: new ones, or those of a journal."""

    _run: Run = field(default_factory=Run)
    _is_waiting: bool = False
    at_ms: int = 0
    """Time of the last event."""

    @classmethod
    def from_snapshot(cls, text: str) -> tuple[Machine, dict[str, object]]:
        """Machine of a stored run, and the data that `snapshot` was given. Raises ValueError if unreadable."""
        found: Snapshot = from_tagged_json(text, Snapshot)
        records, index = found.run.moves.records, found.run.moves.index
        try:
            for name in found.queued:
                index.queue.add(candidate(records[name]))
            index.in_flight |= {name: records[name] for name in found.in_flight}
            index.unsettled |= {name: records[name] for name in found.unsettled}
        except LookupError as error:
            raise ValueError(f"a snapshot of a run without its move {error}") from error
        return cls(found.run, found.is_waiting, found.at_ms), found.beside

    def snapshot(self, beside: dict[str, object]) -> str:
        """The run as text, with further data of its reader."""
        moves, index = self._run.moves, self._run.moves.index
        bare = replace(self._run, moves=replace(moves, index=MoveIndex()))
        places = (tuple(index.queue), tuple(index.in_flight), tuple(index.unsettled))
        return to_tagged_json(Snapshot(bare, self._is_waiting, self.at_ms, *places, beside))

    @property
    def view(self) -> RunView:
        """Read-only view of the run, always current."""
        return RunView(self._run)

    def handle(self, event: events.Event) -> tuple[Instruction, ...]:
        """Process a new event; see `handle`. Raises InvariantBroken if it cannot happen in this state."""
        instructions = handle(self._run, event)
        self.at_ms = event.at_ms
        # No instructions: pending ones still hold.
        self._is_waiting = Wait() in instructions or (self._is_waiting and not instructions)
        return instructions

    def replay(self, event: events.Event) -> tuple[Instruction, ...]:
        """Replay the next event of a journal.

        TimePassed is not journaled; the next event implies it, unless it came during the wait:
        a request from elsewhere, a signal, or another process that resumed the run. Raises JournalDamaged when the
        event does not follow from those before.
        """
        try:
            if self._is_waiting and not isinstance(event, DURING_A_WAIT):
                self._end_wait(event)
            return self.handle(event)
        except _CANNOT_BE as error:
            # Every row is readable, and none is missing; yet another version of this table may have written them.
            raise JournalDamaged(
                f"the journal of run {self.view.run_id} tells what cannot be ({error}); it was damaged, or written by "
                "another version of kreassign"
            ) from error

    def _end_wait(self, event: events.Event) -> None:
        state = self._run.state
        if isinstance(state, Waiting):
            # The time does not decide: the event shows what was due when the wait was over.
            self._run.state = moving.after_wait(self._run, event)
        else:
            self.handle(events.TimePassed(event.at_ms))

    def accepts(self, kind: type[events.Event]) -> bool:
        """True if such an event is possible in this state."""
        return (type(self._run.state), kind) in TRANSITIONS
