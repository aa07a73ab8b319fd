"""The end: compare the cluster with the plan, more than once if need be, and say how the run ended."""

from __future__ import annotations

from kreassign.executor.events import CallFailed, TimePassed, Verified
from kreassign.executor.instructions import Verify, Wait
from kreassign.executor.state.execution import Execution, Instructions, Phase
from kreassign.executor.state.move import MoveStatus
from kreassign.executor.state.rows import Rows, row
from kreassign.executor.throttle.ledger import ConfigValue

VERIFY_PATIENCE_MS = 20_000
"""How long brokers may take to show what the controller already knows."""

CALL_PATIENCE_MS = 60_000
"""How long a cluster that does not answer is asked again."""


def enter(run: Execution) -> Instructions:
    """Begin to verify."""
    run.phase = Phase.VERIFYING
    run.waiting_since_ms = None
    return (_verify(run),)


def end(run: Execution, at_ms: int) -> Instructions:
    """Say how it ended. What failed weighs more than what was cancelled."""
    statuses = {record.status for record in run.records.values()}
    run.ended_ms = at_ms
    if MoveStatus.FAILED in statuses or run.findings or run.pending_restores or run.is_abandoned:
        run.phase = Phase.FAILED
    else:
        run.phase = Phase.CANCELLED if MoveStatus.CANCELLED in statuses else Phase.DONE
    return ()


def _verify(run: Execution) -> Verify:
    return Verify(
        moves=tuple(record.move for record in run.records.values() if record.status is MoveStatus.COMPLETE),
        configs=tuple(ConfigValue(override.key, override.before) for override in run.ledger.values()),
    )


def _conclude(run: Execution, event: Verified) -> Instructions:
    run.findings = event.findings
    if event.findings and run.is_patient(event.at_ms, VERIFY_PATIENCE_MS):
        return (Wait(),)
    return end(run, event.at_ms)


def _could_not_verify(run: Execution, event: CallFailed) -> Instructions:
    if run.is_patient(event.at_ms, CALL_PATIENCE_MS):
        return (Wait(),)
    run.findings = (f"the result could not be verified: {event.message}",)
    return end(run, event.at_ms)


def _verify_again(run: Execution, _: TimePassed) -> Instructions:
    return (_verify(run),)


ROWS: Rows = {
    (Phase.VERIFYING, Verified): row(_conclude, Phase.VERIFYING, *(Phase.DONE, Phase.CANCELLED, Phase.FAILED)),
    (Phase.VERIFYING, CallFailed): row(_could_not_verify, Phase.VERIFYING, Phase.FAILED),
    (Phase.VERIFYING, TimePassed): row(_verify_again, Phase.VERIFYING),
}
