"""After a health check: write down what guards say, replan lost moves, throttle brokers that are back, then go on."""

from __future__ import annotations

from kreassign.executor.events import HealthObserved, VerdictsRecorded
from kreassign.executor.instructions import RecordVerdicts
from kreassign.executor.state import health_watch, moving, preparing, replanning
from kreassign.executor.state.phases import (
    Cancelling,
    CheckingHealth,
    CheckingThrottle,
    Names,
    Observing,
    Preparing,
    RecordingVerdicts,
    Replanning,
    Resuming,
    SettingLists,
    Throttling,
)
from kreassign.executor.state.run import Run
from kreassign.executor.state.transition import Next, Rows, row
from kreassign.model import ConfigResource


def _after_check(run: Run, state: CheckingHealth, event: HealthObserved) -> Next:
    starting, verdicts = health_watch.judge(run, state.starting, event)
    awaited = run.throttle.awaited.intersection(event.health.live)
    # What they have now is read before it is set again.
    returned = frozenset(one for one in awaited if ConfigResource.broker(one) not in event.health.unread_configs)
    if health_watch.are_news(run, verdicts):
        return Next(RecordingVerdicts(starting, state.cancelling, returned), (RecordVerdicts(verdicts),))
    return _go_on(run, starting, state.cancelling, returned)


def _after_verdicts(run: Run, state: RecordingVerdicts, event: VerdictsRecorded) -> Next:
    health_watch.take_in(run, event)
    return _go_on(run, state.starting, state.cancelling, state.returned)


def _go_on(run: Run, starting: Names, cancelling: Names, returned: frozenset[int]) -> Next:
    if lost := replanning.needed(run):
        return replanning.begin(run, lost, returned)
    is_winding_down = run.control.wind_down is not None
    if (returned or run.throttle.due) and (run.identity.guards_to_the_end or not is_winding_down):
        run.throttle.live_brokers = tuple(sorted({*run.throttle.live_brokers, *returned}))
        return preparing.enter(run)
    return moving.observe(run) if is_winding_down else moving.proceed(run, starting, cancelling)


_ONWARD = (
    Observing,
    Cancelling,
    CheckingThrottle,
    SettingLists,
    *moving.SENT,
    Resuming,
    Preparing,
    Throttling,
    Replanning,
)

ROWS: Rows = {
    (CheckingHealth, HealthObserved): row(_after_check, RecordingVerdicts, *_ONWARD),
    (RecordingVerdicts, VerdictsRecorded): row(_after_verdicts, *_ONWARD),
}
