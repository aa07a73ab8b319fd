"""What people ask of a run while it runs: to leave, hold, go on, come to its end, change its throttle or its pace."""

from __future__ import annotations

from kreassign.executor.events import (
    CancelRequested,
    HoldRequested,
    PaceRequested,
    ReleaseRequested,
    StopRequested,
    ThrottleRequested,
)
from kreassign.executor.state import moving, preparing
from kreassign.executor.state.execution import AT_REST, Ending, Execution, Instructions, Phase
from kreassign.executor.state.rows import Key, Row, Rows, row


def _stop(run: Execution, _: StopRequested) -> Instructions:
    return moving.pause(run)


def _hold(run: Execution, event: HoldRequested) -> Instructions:
    run.last_request = event.request
    run.is_held = True
    return ()


def _release(run: Execution, event: ReleaseRequested) -> Instructions:
    run.last_request = event.request
    run.is_held = False
    return ()


def _cancel(run: Execution, event: CancelRequested) -> Instructions:
    run.last_request = event.request
    run.ending = Ending.RECALL if event.is_now else run.ending or Ending.FINISH
    return ()


def _change_pace(run: Execution, event: PaceRequested) -> Instructions:
    """In force from the next choice on: what is in flight beyond a new limit goes on to its end."""
    run.last_request = event.request
    run.pace = run.pace.changed(event.change)
    return ()


def _change_rate_and_set_it(run: Execution, event: ThrottleRequested) -> Instructions:
    _change_rate(run, event)
    return preparing.enter(run)


def _change_rate(run: Execution, event: ThrottleRequested) -> Instructions:
    run.last_request = event.request
    run.rates = run.rates.changed(event.rate_bytes_per_s, event.brokers, event.adaptive)
    return ()


_BEFORE_THE_END = (Phase.PREPARING, Phase.THROTTLING, Phase.MOVING)
_AFTER_THE_MOVES = tuple(phase for phase in Phase if phase not in AT_REST | {Phase.NEW, *_BEFORE_THE_END})


def _everywhere() -> dict[Key, Row]:
    """A wish that changes only what is decided next is heard in every phase of a run that goes on."""
    wishes = (
        (HoldRequested, _hold),
        (ReleaseRequested, _release),
        (CancelRequested, _cancel),
        (PaceRequested, _change_pace),
    )
    return {
        (phase, event): row(follow, phase)
        for phase in (*_BEFORE_THE_END, *_AFTER_THE_MOVES)
        for event, follow in wishes
    }


ROWS: Rows = {
    **{(phase, StopRequested): row(_stop, Phase.PAUSED, Phase.RESTORING) for phase in _BEFORE_THE_END},
    **_everywhere(),
    **{(phase, ThrottleRequested): row(_change_rate_and_set_it, *_BEFORE_THE_END) for phase in _BEFORE_THE_END},
    **{(phase, ThrottleRequested): row(_change_rate, phase) for phase in _AFTER_THE_MOVES},
}
