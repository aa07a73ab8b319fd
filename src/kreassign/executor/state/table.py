"""The machine: `handle(run, event)` takes a fact and gives back orders. Pure; the time comes with the events.

    new ─▶ preparing ─▶ throttling ─▶ moving ─▶ electing ─▶ restoring ─▶ verifying ─▶ done | cancelled | failed
                                       └──▶ paused ◀── (stop, cluster out of reach) ── resume leads back

The table from (phase, event) to what follows is the sum of one module per phase; phases only enter later ones, so
those modules import each other in one direction. What does not live here: clocks, sockets, files; how a single move
goes on (`moves.py`); which configs a throttle needs (`throttling.py`).

The state of a run is the fold of its events, so a journal read back gives the same `Execution`, and `RunResumed` is
one more row of the table. A throttle is owed from the moment `ThrottleIntended` is written until the value before it
was **read back**; every end of a run passes through `restoring`, except a pause while copies are in flight.
"""

from __future__ import annotations

from types import MappingProxyType

from kreassign.errors import InvariantBroken
from kreassign.executor.events import Event, StopRequested
from kreassign.executor.state import control, electing, inspection, moving, preparing, restoring, verifying
from kreassign.executor.state.execution import Execution, Instructions
from kreassign.executor.state.rows import Rows

TRANSITIONS: Rows = MappingProxyType({
    **preparing.ROWS,
    **moving.ROWS,
    **inspection.ROWS,
    **electing.ROWS,
    **restoring.ROWS,
    **verifying.ROWS,
    **control.ROWS,
})  # fmt: skip


def handle(run: Execution, event: Event) -> Instructions:
    """Take in what happened; what to do now, in this order.

    No orders: the run is at rest, or the event was an intention or a request, and what was ordered before still holds.
    """
    row = TRANSITIONS.get((run.phase, type(event)))
    if row is None:
        raise InvariantBroken(f"run {run.run_id}: {type(event).__name__} cannot happen while {run.phase}")
    instructions = row.follow(run, event)
    if run.phase not in row.leads_to:
        raise InvariantBroken(f"run {run.run_id}: {type(event).__name__} may not lead to {run.phase}")
    return instructions


def hears(run: Execution, kind: type[Event]) -> bool:
    """Whether such an event can happen now."""
    return (run.phase, kind) in TRANSITIONS


def can_stop(run: Execution) -> bool:
    """Whether a request to leave is heard now; else the run is about to end anyway."""
    return hears(run, StopRequested)
