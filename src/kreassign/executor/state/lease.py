"""The lease of the cluster: whoever does not hold it changes nothing, and asks for it until it is had again.

What others did meanwhile is not known, so a run that gets it back begins as a resumed one does: it looks at its moves
before it sends anything. Only its throttle it sets again unasked: a run that had the lease in between restored, as it
has to, what was before anyone's run, and that is no breach. What differs is told, for nobody knows who did it.
"""

from __future__ import annotations

from kreassign.executor.events import (
    LeaseForgone,
    LeaseLost,
    LeaseRefused,
    LeaseTaken,
    StopRequested,
    TimePassed,
)
from kreassign.executor.instructions import TakeLease, Wait
from kreassign.executor.state import preparing
from kreassign.executor.state.phases import (
    AwaitingLease,
    Cancelling,
    Electing,
    Observing,
    Paused,
    Preparing,
    Restoring,
    Resuming,
    RunState,
    SettingLists,
    Submitting,
    Throttling,
    Verifying,
    Waiting,
    WritingBack,
)
from kreassign.executor.state.run import Run
from kreassign.executor.state.transition import Next, Rows, row

LOST = "lease"
"""The kind of what is told of a lease that was lost."""

ASK_EVERY_MS = 10_000
"""How often a run that has lost the lease asks for it."""


def _note(run: Run, state: RunState, event: LeaseTaken | LeaseForgone) -> Next:
    run.control.lease = _in_words(event)
    return Next(state)


def _in_words(event: LeaseTaken | LeaseForgone) -> str:
    if isinstance(event, LeaseTaken):
        return f"held since generation {event.generation} of the group"
    return f"none: {event.reason}"


def _lost(run: Run, _: RunState, event: LeaseLost) -> Next:
    run.control.lease = event.reason
    run.tell(LOST, event.at_ms, f"{event.reason}; nothing is changed until it is had again")
    return Next(AwaitingLease(event.at_ms), (TakeLease(),))


def _refused(run: Run, _: AwaitingLease, event: LeaseRefused) -> Next:
    run.control.lease = event.reason
    return Next(AwaitingLease(event.at_ms), (Wait(),))


def _wait_or_ask(_: Run, state: AwaitingLease, event: TimePassed) -> Next:
    return Next(state, (TakeLease(),) if event.at_ms - state.asked_ms >= ASK_EVERY_MS else (Wait(),))


def _go_on(run: Run, _: AwaitingLease, event: LeaseTaken) -> Next:
    run.control.lease = _in_words(event)
    run.tell(LOST, event.at_ms)
    return preparing.resume(run, event.at_ms, others_may_restore=True)


def _go_on_without(run: Run, _: AwaitingLease, event: LeaseForgone) -> Next:
    run.control.lease = _in_words(event)
    run.tell(LOST, event.at_ms)
    run.note(f"the run went on without the lease of the cluster: {event.reason}")
    return preparing.resume(run, event.at_ms, others_may_restore=True)


def _pause(_: Run, __: AwaitingLease, ___: StopRequested) -> Next:
    """Without writing anything back: whoever holds the lease may be using it."""
    return Next(Paused())


_RESUMED = (Resuming, Preparing, Throttling, Observing, Electing, Restoring)
"""Where a process begins, which asks for the lease first of all."""

_WAITING_OR_CHANGING = (SettingLists, Submitting, Cancelling, Waiting, WritingBack, Verifying)
"""The other states in which a run waits, or changes the cluster; the rest only ask, which needs no lease."""


ROWS: Rows = {
    **{(state, event): row(_note, state) for state in _RESUMED for event in (LeaseTaken, LeaseForgone)},
    **{(state, LeaseLost): row(_lost, AwaitingLease) for state in (*_RESUMED, *_WAITING_OR_CHANGING)},
    (AwaitingLease, TimePassed): row(_wait_or_ask, AwaitingLease),
    (AwaitingLease, LeaseRefused): row(_refused, AwaitingLease),
    (AwaitingLease, LeaseTaken): row(_go_on, *_RESUMED),
    (AwaitingLease, LeaseForgone): row(_go_on_without, *_RESUMED),
    (AwaitingLease, StopRequested): row(_pause, Paused),
}
