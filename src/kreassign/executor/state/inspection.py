"""After an inspection: tell what the guards say, throttle brokers that are back, then go on with the moves."""

from __future__ import annotations

from kreassign.executor.events import HealthObserved, VerdictsRecorded
from kreassign.executor.instructions import RecordVerdicts
from kreassign.executor.state import guarding, moving, preparing
from kreassign.executor.state.execution import Execution, Instructions, Phase
from kreassign.executor.state.rows import Rows, row


def _after_inspection(run: Execution, event: HealthObserved) -> Instructions:
    verdicts = guarding.judge(run, event)
    run.returned = run.awaited.intersection(event.health.live)
    return (RecordVerdicts(verdicts),) if guarding.are_news(run, verdicts) else _go_on(run)


def _after_verdicts(run: Execution, event: VerdictsRecorded) -> Instructions:
    guarding.take_in(run, event)
    return _go_on(run)


def _go_on(run: Execution) -> Instructions:
    if run.ending is not None:
        return (moving.look(run),)
    if not run.returned:
        return moving.proceed(run)
    run.live_brokers = tuple(sorted({*run.live_brokers, *run.returned}))
    run.returned = frozenset()
    return preparing.enter(run)


_ONWARD = (Phase.MOVING, Phase.PREPARING, Phase.THROTTLING, Phase.ELECTING, Phase.RESTORING)

ROWS: Rows = {
    (Phase.MOVING, HealthObserved): row(_after_inspection, *_ONWARD),
    (Phase.MOVING, VerdictsRecorded): row(_after_verdicts, *_ONWARD),
}
