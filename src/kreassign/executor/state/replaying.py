"""Reading a run back: from the events of its journal to what its process knew.

Nobody writes down that a wait was over. Whatever comes after a wait tells it, unless it came during the wait: a request
from elsewhere, a signal, or another process that took the run up.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kreassign.executor.events import Event, Request, RunResumed, StopRequested, TimePassed
from kreassign.executor.instructions import Wait
from kreassign.executor.state.execution import Execution
from kreassign.executor.state.table import handle

DURING_A_WAIT = (*Request.__args__, RunResumed, StopRequested, TimePassed)


@dataclass(slots=True)
class Replay:
    """An execution that follows the events of a journal, in their order."""

    execution: Execution = field(default_factory=Execution)
    _is_waiting: bool = False

    def follow(self, event: Event) -> None:
        """Take in the next event. Raises InvariantBroken where it cannot have happened."""
        if self._is_waiting and not isinstance(event, DURING_A_WAIT):
            self._handle(TimePassed(event.at_ms))
        self._handle(event)

    def _handle(self, event: Event) -> None:
        instructions = handle(self.execution, event)
        # No orders: what was ordered before still holds.
        self._is_waiting = Wait() in instructions or (self._is_waiting and not instructions)
