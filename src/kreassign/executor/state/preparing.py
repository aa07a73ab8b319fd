"""Into a run, and into one that was left: the rates of the throttle come first, then the moves.

Also a throttle that is changed during the run comes this way: what is owed already keeps the value before the run.
"""

from __future__ import annotations

from kreassign.executor.events import (
    CallFailed,
    ConfigsRead,
    RunResumed,
    RunStarted,
    ThrottleIntended,
    ThrottleSet,
    TimePassed,
)
from kreassign.executor.guards.settings import reactions
from kreassign.executor.instructions import ReadConfigs, SetThrottle, Wait
from kreassign.executor.state import moving, restoring, throttle_rates, verifying
from kreassign.executor.state.execution import Execution, Instructions, Phase
from kreassign.executor.state.move import MoveRecord
from kreassign.executor.state.move_index import MoveIndex
from kreassign.executor.state.move_steps import move_steps
from kreassign.executor.state.rows import Rows, row
from kreassign.executor.throttle import ledger

CONFIG_PATIENCE_MS = 60_000
"""How long reading settings is tried again."""


def enter(run: Execution) -> Instructions:
    """Put the throttle in force as it shall be now, then move."""
    if not run.active or not (run.rates.is_limited or run.pending_restores):
        return moving.enter(run)
    run.waiting_since_ms = None
    return _read(run)


def _begin(run: Execution, event: RunStarted) -> Instructions:
    run.run_id, run.cluster_id, run.started_ms = event.run_id, event.cluster_id, event.at_ms
    run.rates, run.live_brokers = event.rates, event.live_brokers
    run.reactions, run.pace = reactions(event.guards), event.pace
    run.records = {
        move.topic_partition: MoveRecord(move, move_steps=move_steps(move) if event.pace.is_stepwise else ())
        for move in event.moves
    }
    run.index = MoveIndex.unseen(run.records.values())
    return enter(run)


def _take_up(run: Execution, event: RunResumed) -> Instructions:
    """Go on wherever the run was left. Nothing is sent before a look, but for the throttle that was owed anyway."""
    run.live_brokers = event.live_brokers
    run.ended_ms = run.waiting_since_ms = None
    run.is_stopping = run.is_abandoned = run.has_just_restored = run.is_held = False
    run.before, run.is_unsure = {}, True
    run.inspected_ms, run.absent_since_ms = None, {}
    run.measured_ms = None
    run.index = MoveIndex.unseen(run.records.values())
    return enter(run)


def _read(run: Execution) -> Instructions:
    """Ask for what is not known: a setting that is owed has its old value in the journal."""
    rearranging = {broker for record in run.active for broker in record.move.rearranging}
    run.awaited |= (ledger.brokers_of(_flows(run)) | rearranging).difference(run.live_brokers)
    unknown = tuple(key for key in _keys(run) if key not in run.pending_restores)
    if not unknown:
        return _set(run)
    run.phase = Phase.PREPARING
    return (ReadConfigs(unknown),)


def _take_in(run: Execution, event: ConfigsRead) -> Instructions:
    run.live_brokers = tuple(broker for broker in run.live_brokers if broker not in event.down)
    run.awaited |= set(event.down)
    if event.problems:
        return _try_again(run, event.at_ms, event.problems)
    run.before |= {present.key: present.value for present in event.values}
    return _set(run)


def _set(run: Execution) -> Instructions:
    """Set the rates, and again what is owed where nobody knows whether it was written.

    That is all of it in a run that was taken up, and in any run that of brokers that are back.
    """
    run.before |= {key: override.before for key, override in run.pending_restores.items()}
    changes = {
        override.key: override
        for override in ledger.changes(throttle_rates.wanted(run), run.before, run.pending_restores)
    }
    back = run.awaited.intersection(run.live_brokers)
    again = {key: override for key, override in run.pending_restores.items() if run.is_unsure or key.broker in back}
    run.is_unsure, run.awaited = False, run.awaited - back
    if not (changes or again):
        return moving.enter(run)
    run.phase = Phase.THROTTLING
    return (SetThrottle(tuple({**again, **changes}.values())),)


def _keys(run: Execution) -> tuple[ledger.ConfigKey, ...]:
    """Every setting that the throttle of this run changes."""
    rearranging = {broker for record in run.active for broker in record.move.rearranging}
    between = ledger.keys_to_change(_flows(run), run.live_brokers)
    return (*between, *ledger.log_dir_keys(rearranging, run.live_brokers))


def _flows(run: Execution) -> ledger.Flows:
    return ledger.flows({record.move.topic_partition: record.move.reassignment for record in run.active})


def _could_not_read(run: Execution, event: CallFailed) -> Instructions:
    return _try_again(run, event.at_ms, (event.message,))


def _try_again(run: Execution, at_ms: int, problems: tuple[str, ...]) -> Instructions:
    if run.is_patient(at_ms, CONFIG_PATIENCE_MS):
        return (Wait(),)
    return _go_on_or_abandon(run, at_ms, problems)


def _read_again(run: Execution, _: TimePassed) -> Instructions:
    return _read(run)


def _after_setting(run: Execution, event: ThrottleSet) -> Instructions:
    moving.confirm(run, event)
    return _go_on_or_abandon(run, event.at_ms, event.problems) if event.problems else moving.enter(run)


def _go_on_or_abandon(run: Execution, at_ms: int, problems: tuple[str, ...]) -> Instructions:
    """Without its throttle nothing is started; but what is in flight already must be watched to its end."""
    for problem in problems:
        run.note(problem)
    if run.in_flight:
        return moving.enter(run)
    run.is_abandoned = True
    run.note("the throttle could not be set, so nothing more was started")
    return restoring.enter(run) if run.pending_restores else verifying.end(run, at_ms)


_INTO_MOVING = (Phase.PREPARING, Phase.THROTTLING, Phase.MOVING)
_ABANDONED = (Phase.RESTORING, Phase.FAILED)
_TAKE_UP = row(_take_up, *_INTO_MOVING, Phase.ELECTING, Phase.RESTORING)

ROWS: Rows = {
    (Phase.NEW, RunStarted): row(_begin, Phase.PREPARING, Phase.MOVING),
    (Phase.PREPARING, ConfigsRead): row(_take_in, *_INTO_MOVING, *_ABANDONED),
    (Phase.PREPARING, CallFailed): row(_could_not_read, Phase.PREPARING, Phase.MOVING, *_ABANDONED),
    (Phase.PREPARING, TimePassed): row(_read_again, Phase.PREPARING),
    (Phase.THROTTLING, ThrottleIntended): row(moving.owe, Phase.THROTTLING),
    (Phase.THROTTLING, ThrottleSet): row(_after_setting, Phase.MOVING, Phase.RESTORING),
    **{(phase, RunResumed): _TAKE_UP for phase in Phase if phase is not Phase.NEW},
}
