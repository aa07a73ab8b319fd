"""What people ask of a run while it goes on: leave, hold, go on, cancel, change the throttle or the pace."""

from __future__ import annotations

from kreassign.executor.events import (
    BrokersForgotten,
    CancelRequested,
    ClockStepped,
    Event,
    HoldRequested,
    PaceRequested,
    ReleaseRequested,
    StopRequested,
    ThrottleRequested,
)
from kreassign.executor.state import moving, preparing, throttle_watch
from kreassign.executor.state.phases import (
    AT_REST,
    OVER,
    STATES,
    Electing,
    Observing,
    Paused,
    Phase,
    Preparing,
    Restoring,
    Resuming,
    RunState,
    Throttling,
)
from kreassign.executor.state.run import Run, WindDown
from kreassign.executor.state.transition import Handler, Next, Rows, row


def _hold(run: Run, state: RunState, event: HoldRequested) -> Next:
    run.control.last_request, run.control.is_held = event.request, True
    return Next(state)


def _set_clock(run: Run, state: RunState, event: ClockStepped) -> Next:
    run.wall_ahead_ms = event.ahead_ms
    return Next(state)


def _release(run: Run, state: RunState, event: ReleaseRequested) -> Next:
    run.control.last_request, run.control.is_held = event.request, False
    return Next(state)


def _cancel(run: Run, state: RunState, event: CancelRequested) -> Next:
    control = run.control
    control.last_request = event.request
    control.wind_down = WindDown.CANCEL if event.is_now else control.wind_down or WindDown.FINISH
    return Next(state)


def _change_pace(run: Run, state: RunState, event: PaceRequested) -> Next:
    """In force from the next choice on: what is in flight beyond a new limit goes on to its end."""
    run.control.last_request = event.request
    run.control.pace = run.control.pace.changed(event.change)
    return Next(state)


def _change_rates(run: Run, event: ThrottleRequested) -> None:
    run.control.last_request = event.request
    run.control.rates = run.control.rates.changed(event.rate_bytes_per_s, event.brokers, event.adaptive)


def _change_throttle(run: Run, state: RunState, event: ThrottleRequested) -> Next:
    _change_rates(run, event)
    return Next(state)


def _change_throttle_and_set_it(run: Run, _: RunState, event: ThrottleRequested) -> Next:
    _change_rates(run, event)
    throttle_watch.note_request(run)
    return preparing.enter(run)


def _forget_brokers(run: Run, state: RunState, event: BrokersForgotten) -> Next:
    """What is under way to them is cancelled like any move whose destination is down."""
    by = "" if event.operator is None else f" by {event.operator.user}@{event.operator.host}"
    for override in run.throttle.forget(event.brokers):
        run.note(f"{override.then}; that broker was given up as lost{by}, so nothing was restored there")
    return Next(state)


_AFTER_A_CHANGE = (Resuming, Preparing, Throttling, Observing, Electing, Restoring)
_WITH_MOVES_LEFT = tuple(one for one in STATES if one.phase in {Phase.PREPARING, Phase.THROTTLING, Phase.MOVING})
_GOING_ON = tuple(one for one in STATES if one.phase not in AT_REST | {Phase.NEW})
_AFTER_THE_MOVES = tuple(one for one in _GOING_ON if one not in _WITH_MOVES_LEFT)


_REQUESTS: tuple[tuple[type[Event], Handler], ...] = (
    (HoldRequested, _hold),
    (ReleaseRequested, _release),
    (CancelRequested, _cancel),
    (PaceRequested, _change_pace),
    (ClockStepped, _set_clock),
)
"""They change only what is decided next, and are accepted in every state of a run that goes on."""

ROWS: Rows = {
    **{(state, StopRequested): row(moving.pause, Paused, Restoring) for state in _WITH_MOVES_LEFT},
    **{(state, event): row(handler, state) for state in _GOING_ON for event, handler in _REQUESTS},
    **{(state, ThrottleRequested): row(_change_throttle_and_set_it, *_AFTER_A_CHANGE) for state in _WITH_MOVES_LEFT},
    **{(state, ThrottleRequested): row(_change_throttle, state) for state in _AFTER_THE_MOVES},
    **{
        (state, BrokersForgotten): row(_forget_brokers, state)
        for state in STATES
        if state.phase not in OVER | {Phase.NEW}
    },
}
