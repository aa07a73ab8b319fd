"""Handle requests of operators and the loss of the lease, in any state.

Operators ask a run to leave, hold, go on, cancel, or change the throttle or the pace. A run without the lease of its
cluster changes nothing, and asks for the lease until it has it again.
"""

from __future__ import annotations

from dataclasses import replace

from kreassign.executor import events
from kreassign.executor.instructions import TakeLease, Wait
from kreassign.executor.state import moving, phases, preparing, throttling
from kreassign.executor.state.run import Handler, Next, Rows, Run, WindDown, row
from kreassign.model.run import AT_REST, OVER, Phase

# Requests of operators.


def _hold(run: Run, state: phases.RunState, event: events.HoldRequested) -> Next:
    run.control = replace(run.control, last_request=event.request, held_by=event.by)
    return Next(state)


def _set_clock(run: Run, state: phases.RunState, event: events.ClockStepped) -> Next:
    run.wall_ahead_ms = event.ahead_ms
    return Next(state)


def _release(run: Run, state: phases.RunState, event: events.ReleaseRequested) -> Next:
    run.control = replace(run.control, last_request=event.request, held_by="")
    return Next(state)


def _cancel(run: Run, state: phases.RunState, event: events.CancelRequested) -> Next:
    wind_down = WindDown.CANCEL if event.is_now else run.control.wind_down or WindDown.FINISH
    run.control = replace(run.control, last_request=event.request, wind_down=wind_down)
    return Next(state)


def _change_pace(run: Run, state: phases.RunState, event: events.PaceRequested) -> Next:
    """Takes effect with the next choice: moves in flight beyond a new limit finish."""
    run.control = replace(run.control, last_request=event.request, pace=run.control.pace.changed(event.change))
    return Next(state)


def _change_rates(run: Run, event: events.ThrottleRequested) -> None:
    run.clients = run.clients.overruled
    rates = run.control.rates.changed(event.rate_bytes_per_s, event.brokers, event.adaptive)
    run.control = replace(run.control, last_request=event.request, rates=rates)


def _change_throttle(run: Run, state: phases.RunState, event: events.ThrottleRequested) -> Next:
    _change_rates(run, event)
    return Next(state)


def _change_throttle_and_set_it(run: Run, _: phases.RunState, event: events.ThrottleRequested) -> Next:
    _change_rates(run, event)
    throttling.note_request(run)
    return preparing.enter(run)


def _forget_brokers(run: Run, state: phases.RunState, event: events.BrokersForgotten) -> Next:
    """Moves to these brokers are cancelled like any move whose destination is down."""
    by = "" if event.operator is None else f" by {event.operator.name}"
    for setting in run.throttle.forget(event.brokers):
        run.note(f"{setting.pending.then}; that broker was given up as lost{by}, so nothing was restored there")
    return Next(state)


_RESUMED = (phases.Resuming, phases.Preparing, phases.Throttling, phases.Observing, phases.Electing, phases.Restoring)
"""States where a process begins, which asks for the lease first of all, and where a changed throttle leads."""

_WITH_MOVES_LEFT = tuple(one for one in phases.STATES if one.phase in {Phase.PREPARING, Phase.THROTTLING, Phase.MOVING})
_GOING_ON = tuple(one for one in phases.STATES if one.phase not in AT_REST | {Phase.NEW})
_AFTER_THE_MOVES = tuple(one for one in _GOING_ON if one not in _WITH_MOVES_LEFT)


_REQUESTS: tuple[tuple[type[events.Event], Handler], ...] = (
    (events.HoldRequested, _hold),
    (events.ReleaseRequested, _release),
    (events.CancelRequested, _cancel),
    (events.PaceRequested, _change_pace),
    (events.ClockStepped, _set_clock),
)
"""These requests change only later decisions, and are accepted in every state of a run that goes on."""

REQUEST_ROWS: Rows = {
    **{(state, events.StopRequested): row(moving.pause, phases.Paused, phases.Restoring) for state in _WITH_MOVES_LEFT},
    **{(state, event): row(handler, state) for state in _GOING_ON for event, handler in _REQUESTS},
    **{(state, events.ThrottleRequested): row(_change_throttle_and_set_it, *_RESUMED) for state in _WITH_MOVES_LEFT},
    **{(state, events.ThrottleRequested): row(_change_throttle, state) for state in _AFTER_THE_MOVES},
    **{
        (state, events.BrokersForgotten): row(_forget_brokers, state)
        for state in phases.STATES
        if state.phase not in OVER | {Phase.NEW}
    },
}


# The lease: a run that has lost it changes nothing, and asks until it holds the lease again, for however long.
#
# Changes made by others meanwhile are unknown, so a run that gets the lease back begins like a resumed run: it observes
# its moves before it sends anything. Only its throttle is set again unasked: a run that held the lease in between had
# to restore the values from before any run, which is no breach. Differences are reported without naming a culprit.

LEASE_LOST = "lease"
"""Kind of messages about a lost lease."""

ASK_EVERY_MS = 10_000
"""Interval at which a run that has lost the lease asks for it."""


def _begin_with_lease(run: Run, state: phases.RunState, event: events.LeaseTaken) -> Next:
    lease = f"held since generation {event.generation} of the group"
    run.control = replace(run.control, has_had_lease=True, lease=lease)
    return Next(state)


def _begin_without_lease(run: Run, state: phases.RunState, event: events.LeaseForgone) -> Next:
    run.control = replace(run.control, lease=f"none: {event.reason}")
    return Next(state)


def _lose_lease(run: Run, _: phases.RunState, event: events.LeaseLost) -> Next:
    run.control = replace(run.control, lease=event.reason, has_had_lease=True)
    run.tell(LEASE_LOST, event.at_ms, f"{event.reason}; nothing is changed until it is had again")
    return Next(phases.AwaitingLease(event.at_ms), (TakeLease(),))


def _lease_refused(run: Run, _: phases.AwaitingLease, event: events.LeaseRefused) -> Next:
    run.control = replace(run.control, lease=event.reason)
    return Next(phases.AwaitingLease(event.at_ms), (Wait(),))


def _wait_or_ask(_: Run, state: phases.AwaitingLease, event: events.TimePassed) -> Next:
    return Next(state, (TakeLease(),) if event.at_ms - state.asked_ms >= ASK_EVERY_MS else (Wait(),))


def _go_on_with_lease(run: Run, state: phases.AwaitingLease, event: events.LeaseTaken) -> Next:
    _begin_with_lease(run, state, event)
    run.tell(LEASE_LOST, event.at_ms)
    return preparing.resume(run, event.at_ms, others_may_restore=True)


def _go_on_without_lease(run: Run, state: phases.AwaitingLease, event: events.LeaseForgone) -> Next:
    """The run never had a lease, and could not tell for a while that the cluster can keep none."""
    _begin_without_lease(run, state, event)
    run.control = replace(run.control, has_had_lease=False)
    run.tell(LEASE_LOST, event.at_ms)
    return preparing.resume(run, event.at_ms, others_may_restore=True)


def _pause_without_lease(_: Run, __: phases.AwaitingLease, ___: events.StopRequested) -> Next:
    """Write nothing back: the present holder of the lease may be using it."""
    return Next(phases.Paused())


_WAITING_OR_CHANGING = (phases.SettingLists, phases.Submitting, phases.Cancelling, phases.Waiting, phases.WritingBack)
"""Other states in which a run waits, or changes the cluster; the rest only query, which needs no lease.

A run that verifies its result changes nothing more, so that losing the lease keeps it from no end.
"""


LEASE_ROWS: Rows = {
    **{(state, events.LeaseTaken): row(_begin_with_lease, state) for state in _RESUMED},
    **{(state, events.LeaseForgone): row(_begin_without_lease, state) for state in _RESUMED},
    **{
        (state, events.LeaseLost): row(_lose_lease, phases.AwaitingLease)
        for state in (*_RESUMED, *_WAITING_OR_CHANGING)
    },
    (phases.AwaitingLease, events.TimePassed): row(_wait_or_ask, phases.AwaitingLease),
    (phases.AwaitingLease, events.LeaseRefused): row(_lease_refused, phases.AwaitingLease),
    (phases.AwaitingLease, events.LeaseTaken): row(_go_on_with_lease, *_RESUMED),
    (phases.AwaitingLease, events.LeaseForgone): row(_go_on_without_lease, *_RESUMED),
    (phases.AwaitingLease, events.StopRequested): row(_pause_without_lease, phases.Paused),
}
