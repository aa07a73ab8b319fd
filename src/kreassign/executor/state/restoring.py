"""Paying back: every setting that the run changed gets its old value, and is read to prove it.

Every end of a run passes through here, except a pause while copies are in flight.
"""

from __future__ import annotations

from kreassign.executor.events import CallFailed, ConfigsRead, ThrottleRestored, TimePassed
from kreassign.executor.instructions import ReadConfigs, RestoreThrottle, Wait
from kreassign.executor.state import verifying
from kreassign.executor.state.execution import Execution, Instructions, Phase
from kreassign.executor.state.rows import Rows, row
from kreassign.executor.state.verifying import CALL_PATIENCE_MS
from kreassign.executor.throttle import ledger


def enter(run: Execution) -> Instructions:
    """Begin to restore: first see what is there."""
    run.phase = Phase.RESTORING
    run.waiting_since_ms = None
    run.has_just_restored, run.unrestored = False, ()
    return (ReadConfigs(tuple(run.pending_restores)),)


def _pay_back(run: Execution, event: ConfigsRead) -> Instructions:
    """Close the debts whose old value is there; write the others, then come back to read once more."""
    found = ledger.restoration(run.pending_restores.values(), event.values)
    for key in (*found.restored, *(present.key for present in found.foreign)):
        del run.pending_restores[key]
    for present in found.foreign:
        del run.ledger[present.key]
        run.note(f"someone else changed a throttle during the run, and it stays so: {present}")
    if not run.pending_restores:
        return _after_restoring(run, event.at_ms)
    # What a broker that is down has cannot be read, but perhaps written.
    changes = (
        *found.changes,
        *(override for override in run.pending_restores.values() if override.key.broker in event.down),
    )
    if changes and not run.has_just_restored:
        run.has_just_restored = True
        return (RestoreThrottle(changes),)
    return _restore_later(run, event.at_ms, event.problems)


def _read_back(run: Execution, event: ThrottleRestored) -> Instructions:
    """See whether it is there now. Where the controller took it for a broker that is down, its word has to do."""
    for problem in event.problems:
        run.note(problem)
    run.unrestored = tuple(map(str, event.unwritten))
    for key in [key for key in run.pending_restores if key.broker in event.by_controller]:
        del run.pending_restores[key], run.ledger[key]
        run.note(f"broker {key.broker} is down: the controller took the values that it had before the run")
    return (ReadConfigs(tuple(run.pending_restores)),) if run.pending_restores else _after_restoring(run, event.at_ms)


def _could_not_read(run: Execution, event: CallFailed) -> Instructions:
    return _restore_later(run, event.at_ms, (event.message,))


def _restore_later(run: Execution, at_ms: int, problems: tuple[str, ...]) -> Instructions:
    run.has_just_restored = False
    if run.is_patient(at_ms, CALL_PATIENCE_MS):
        return (Wait(),)
    for problem in (*problems, *run.unrestored):
        run.note(problem)
    return _after_restoring(run, at_ms)


def _restore_again(run: Execution, _: TimePassed) -> Instructions:
    return (ReadConfigs(tuple(run.pending_restores)),)


def _after_restoring(run: Execution, at_ms: int) -> Instructions:
    if run.is_stopping:
        run.phase = Phase.PAUSED
        return ()
    return verifying.end(run, at_ms) if run.is_abandoned else verifying.enter(run)


_ONWARD = (Phase.RESTORING, Phase.VERIFYING, Phase.PAUSED, Phase.FAILED)

ROWS: Rows = {
    (Phase.RESTORING, ConfigsRead): row(_pay_back, *_ONWARD),
    (Phase.RESTORING, ThrottleRestored): row(_read_back, *_ONWARD),
    (Phase.RESTORING, CallFailed): row(_could_not_read, *_ONWARD),
    (Phase.RESTORING, TimePassed): row(_restore_again, Phase.RESTORING),
}
