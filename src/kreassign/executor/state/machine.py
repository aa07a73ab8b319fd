"""The machine: `handle(run, event)` takes an event and returns instructions. Pure; the time comes with the events.

The table from (state, event) to what follows is the sum of one module per part of a run; states only lead to later
ones, so those modules import each other in one direction. What does not live here: clocks, sockets, files; how a single
move goes on (`move.py`); which settings a throttle needs (`throttle/ledger.py`).

A run is the fold of its events, so a journal read back gives the same run, and `RunResumed` is one more row of the
table. A setting is to be restored from the moment `ThrottleIntended` is written until the value before it was **read
back**.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType

from kreassign.errors import InvariantBroken, JournalDamaged
from kreassign.executor.events import (
    BrokersForgotten,
    ClockStepped,
    Event,
    Request,
    RunResumed,
    StopRequested,
    TimePassed,
)
from kreassign.executor.instructions import Instruction, Wait
from kreassign.executor.state import control, finishing, health_check, lease, moving, preparing, replanning
from kreassign.executor.state.phases import Waiting
from kreassign.executor.state.run import Run
from kreassign.executor.state.snapshot import snapshot_of, text_of
from kreassign.executor.state.transition import Rows
from kreassign.executor.state.view import RunView

TRANSITIONS: Rows = MappingProxyType({
    **preparing.ROWS,
    **moving.ROWS,
    **health_check.ROWS,
    **replanning.ROWS,
    **finishing.ROWS,
    **lease.ROWS,
    **control.ROWS,
})  # fmt: skip

DURING_A_WAIT = (*Request.__args__, RunResumed, StopRequested, ClockStepped, BrokersForgotten, TimePassed)
"""Events after which a wait is not over."""

_CANNOT_BE = (InvariantBroken, LookupError, ValueError, TypeError, AttributeError, ArithmeticError)
"""What the table raises for an event of a journal whose row can be read and whose fields mean nothing."""


def handle(run: Run, event: Event) -> tuple[Instruction, ...]:
    """Take in what happened; what to do now, in this order.

    No instructions: the run is at rest, or the event was an intention or a request, and earlier instructions hold.
    """
    before = type(run.state)
    row = TRANSITIONS.get((before, type(event)))
    if row is None:
        raise InvariantBroken(
            f"run {run.identity.run_id}: {type(event).__name__} cannot happen while {run.state.phase} "
            f"({before.__name__})"
        )
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
    """A run that follows events: those that happen now, or those of a journal."""

    _run: Run = field(default_factory=Run)
    _is_waiting: bool = False
    _at_ms: int = 0

    @classmethod
    def from_snapshot(cls, text: str) -> tuple[Machine, dict[str, object]]:
        """The machine of a run as it was, and what `snapshot` was given. Raises ValueError where it cannot be read."""
        found = snapshot_of(text)
        return cls(found.run, found.is_waiting, found.at_ms), found.beside

    def snapshot(self, beside: dict[str, object]) -> str:
        """The run as it is, as text, with what its reader wants to have beside it."""
        return text_of(self._run, is_waiting=self._is_waiting, at_ms=self._at_ms, beside=beside)

    @property
    def at_ms(self) -> int:
        """When the last event was."""
        return self._at_ms

    @property
    def view(self) -> RunView:
        """What others may know of the run, always as it is now."""
        return RunView(self._run)

    def handle(self, event: Event) -> tuple[Instruction, ...]:
        """Take in what happens now; see `handle`. Raises InvariantBroken where it cannot happen."""
        instructions = handle(self._run, event)
        self._at_ms = event.at_ms
        # No instructions: what was to be done before still holds.
        self._is_waiting = Wait() in instructions or (self._is_waiting and not instructions)
        return instructions

    def replay(self, event: Event) -> tuple[Instruction, ...]:
        """Take in the next event of a journal.

        That a wait was over is not written down. Whatever comes after a wait shows it, unless it came during the wait:
        a request from elsewhere, a signal, or another process that resumed the run. Raises JournalDamaged when the
        event does not follow from those before.
        """
        try:
            if self._is_waiting and not isinstance(event, DURING_A_WAIT):
                self._end_wait(event)
            return self.handle(event)
        except _CANNOT_BE as error:
            # Every row can be read, and none is missing; yet another version of this table may have written them.
            raise JournalDamaged(
                f"the journal of run {self.view.run_id} tells what cannot be ({error}); it was damaged, or written by "
                "another version of kreassign"
            ) from error

    def _end_wait(self, event: Event) -> None:
        state = self._run.state
        if isinstance(state, Waiting):
            # Not by the time: what was due when the wait was over shows in what came of it.
            self._run.state = moving.after_wait(self._run, state, event)
        else:
            self.handle(TimePassed(event.at_ms))

    def accepts(self, kind: type[Event]) -> bool:
        """Whether such an event can happen now."""
        return (type(self._run.state), kind) in TRANSITIONS
