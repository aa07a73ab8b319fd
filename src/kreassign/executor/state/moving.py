"""Looking at the moves and drawing the conclusions: start, wait, cancel, go on to the end.

Nothing is sent that was not looked at just before. When moves start or copies arrive, the lists of throttled replicas
are changed first: a move is never started before its throttle is in force, and a replica that has caught up is never
slowed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice

from kreassign.executor import scheduling
from kreassign.executor.events import (
    CallFailed,
    CancelIntended,
    MovesCancelled,
    MovesObserved,
    MovesSubmitted,
    PlannedMove,
    SubmissionIntended,
    ThrottleIntended,
    ThrottleSet,
    TimePassed,
    TrafficMeasured,
)
from kreassign.executor.instructions import CancelMoves, ObserveMoves, SetThrottle, SubmitMoves, Wait
from kreassign.executor.state import (
    disk_admission,
    electing,
    guarding,
    restoring,
    saturation,
    schedule_window,
    throttle_rates,
)
from kreassign.executor.state.execution import Ending, Execution, Instructions, Phase
from kreassign.executor.state.move import ACTIVE, MoveRecord, MoveStatus, NextAction, conclude
from kreassign.executor.state.move_index import candidate
from kreassign.executor.state.rows import Rows, row
from kreassign.executor.throttle import ledger
from kreassign.model import TopicPartition, TopicPartitionReplica
from kreassign.model.throttle import ThrottledMove

MOVES_PER_REQUEST = 1_000
"""Kafka takes at most 10,000 changes at once and fails the rest; the others follow in further requests."""

UNSET_PATIENCE_MS = 60_000
"""How long settings that could not be made are tried again while nothing is in flight."""

CHECKED_AT_ONCE = 5_000
"""So many moves that waited are looked at together before they start: what can be sent while that look is fresh."""

OUT_OF_REACH_MS = 300_000
"""A run that cannot look at its cluster for so long pauses: its moves go on without it."""


def enter(run: Execution) -> Instructions:
    """Begin with a look, or go on to the end when no move is left."""
    if not run.is_active:
        return electing.enter(run)
    run.phase = Phase.MOVING
    run.waiting_since_ms = None
    run.starting = ()
    return (look(run),)


def pause(run: Execution) -> Instructions:
    """Leave. Copies in flight keep their throttle: without it they would run at full speed while nobody looks."""
    if run.in_flight or not run.pending_restores:
        run.phase = Phase.PAUSED
        return ()
    run.is_stopping = True
    return restoring.enter(run)


def owe(run: Execution, event: ThrottleIntended) -> Instructions:
    """From now on these settings are owed."""
    for override in event.overrides:
        run.pending_restores[override.key] = run.ledger[override.key] = override
    return ()


def confirm(run: Execution, event: ThrottleSet) -> None:
    """What was set without a problem has no other value of ours any more. Brokers that are down get theirs later."""
    run.awaited |= {one.broker for one in event.unwritten}
    run.unset = frozenset(event.failed)
    for one in event.unwritten:
        run.note(f"{one}; it is set when the broker is back")
    if not event.problems:
        run.pending_restores = {
            key: override if key.broker in run.awaited else override.restored()
            for key, override in run.pending_restores.items()
        }
        run.ledger |= {key: run.pending_restores[key] for key in run.pending_restores}


def look(run: Execution) -> ObserveMoves:
    """At what may have gone on; what waits is looked at right before it starts, or when there is nothing else."""
    run.checking = ()
    names = tuple(run.index.to_look_at) or tuple(islice(run.index.queue, CHECKED_AT_ONCE))
    return _look_at(run, names)


def _look_at(run: Execution, names: tuple[TopicPartition, ...]) -> ObserveMoves:
    run.looking_at = names
    return ObserveMoves(tuple(run.records[name].step for name in names))


def _judge(run: Execution, event: MovesObserved) -> Instructions:
    run.waiting_since_ms, run.looked_ms = None, event.at_ms
    had = [(record, record.bytes_received) for record in run.in_flight]
    for observation in event.observations:
        run.records[observation.topic_partition].see(observation, event.at_ms)
    seen = dict.fromkeys((*run.looking_at, *(observation.topic_partition for observation in event.observations)))
    looked_at = [record for name in seen if (record := run.records[name]).status in ACTIVE]
    wishes = [(record, conclude(record, event.at_ms)) for record in looked_at]
    for record, wish in wishes:
        run.index.sort(record, wish)
    schedule_window.look(run, event.at_ms)
    if not run.checking:
        saturation.note(run, had)
    if run.ending is not None:
        return _wind_up(run, wishes, event.at_ms)
    run.recalling = tuple(record.name for record, wish in wishes if wish is NextAction.CANCEL)
    schedule_window.call_back(run, event.at_ms)
    return _choose(run, [record for record, wish in wishes if wish is NextAction.SUBMIT], event.at_ms)


def _choose(run: Execution, ready: Sequence[MoveRecord], at_ms: int) -> Instructions:
    """What starts now: of what was chosen before this look, all that is `ready`; else by the rules of pacing."""
    names = {record.name for record in ready}
    chosen, run.checking = run.checking or _paced(run, ready, at_ms), ()
    run.starting = tuple(name for name in chosen if name in names)
    if len(run.starting) < len(chosen) and not run.starting and not guarding.holds(run):
        run.checking = chosen[:CHECKED_AT_ONCE]
        return (_look_at(run, run.checking),)
    return (guarding.inspection(run),) if guarding.is_due(run, at_ms) else proceed(run)


def _paced(run: Execution, ready: Iterable[MoveRecord], at_ms: int) -> tuple[TopicPartition, ...]:
    """Of what waits and what has to be sent again, the moves whose turn it is."""
    again = [record for record in ready if record.status is MoveStatus.SENT]
    names = {record.name for record in again}
    moving = [record for record in run.in_flight if record.name not in names]
    in_flight = [candidate(record) for record in moving]
    time, busy = schedule_window.time_left(run, moving, at_ms), saturation.busy(run, in_flight)
    queue, counts = run.index.queue, scheduling.InFlight.of(run.pace.caps, in_flight)
    routes = (*((candidate(record),) for record in again), *queue.open_routes(run.pace.order, counts, busy))
    rank = scheduling.ranking(run.pace.order, scheduling.add_left(queue.left.copy(), in_flight))
    supplies = [supply for supply in (busy, run.room.copy(), time) if supply is not None]
    choice = scheduling.choose_in_turn(scheduling.PriorityMerge(routes, rank), counts, supplies)
    disk_admission.note_stuck(run, choice)
    return choice.starting


def proceed(run: Execution) -> Instructions:
    """Cancel what has no destination any more, then start what may start.

    A move that was sent already is sent again in any case: it may well be under way.
    """
    given_up = tuple(record.move.topic_partition for record in run.in_flight if record.is_given_up)
    moving = (name for name in given_up if run.records[name].status is MoveStatus.MOVING)
    if cancelling := tuple(dict.fromkeys((*run.recalling, *moving))):
        run.recalling = ()
        return (CancelMoves(cancelling),)
    active = (name for name in run.starting if run.records[name].status in ACTIVE)
    allowed = (name for name in active if not guarding.holds(run) or run.records[name].status is MoveStatus.SENT)
    run.starting = tuple(allowed)
    return _list_then_send(run)


def _list_then_send(run: Execution) -> Instructions:
    changes = _listing(run)
    return (SetThrottle(changes),) if changes else _send(run)


def _listing(run: Execution) -> tuple[ledger.ConfigOverride, ...]:
    """The changes that list exactly the replicas that copy now or are about to; none while the end is near.

    Rates that follow the traffic are changed with them, and what may not have been set is set again.
    """
    if not run.before or not run.is_active:
        return ()
    flows = _present_flows(run) if run.rates.is_limited else {}
    rates = throttle_rates.wanted(run) if run.rates.adaptive is not None or run.unset else {}
    return ledger.changes(ledger.wanted_lists(flows, run.before) | rates, run.before, run.pending_restores, run.unset)


def _present_flows(run: Execution) -> ledger.Flows:
    """Between which brokers data flows now, or is about to: without the copies that have caught up."""
    starting = [run.records[partition] for partition in run.starting]
    records = {record.move.topic_partition: record for record in (*run.in_flight, *starting)}
    moving = {partition: (record.step.original, _joining(record)) for partition, record in sorted(records.items())}
    return {
        partition: ThrottledMove(tuple(sorted(original)), lagging)
        for partition, (original, lagging) in moving.items()
        if lagging
    }


def _joining(record: MoveRecord) -> tuple[int, ...]:
    return tuple(broker for broker in record.lagging if broker in record.step.adding)


def _after_listing(run: Execution, event: ThrottleSet) -> Instructions:
    """Without its throttle nothing is started; what is in flight is watched all the same."""
    confirm(run, event)
    for problem in event.problems:
        run.note(problem)
    if not event.problems:
        run.unset_since_ms = None
        return _send(run)
    run.starting = ()
    run.unset_since_ms = event.at_ms if run.unset_since_ms is None else run.unset_since_ms
    if run.in_flight or not run.unset or event.at_ms - run.unset_since_ms < UNSET_PATIENCE_MS:
        return (Wait(),)
    run.is_abandoned = True
    run.note("the throttle could not be set, so nothing more was started")
    return restoring.enter(run)


def _send(run: Execution) -> Instructions:
    now, run.starting = run.starting[:MOVES_PER_REQUEST], run.starting[MOVES_PER_REQUEST:]
    if now:
        move_steps = [run.records[name].step for name in now]
        return (SubmitMoves({step.topic_partition: step.target for step in move_steps}, _places(move_steps)),)
    return (Wait(),) if run.is_active else electing.enter(run)


def _places(moves: Iterable[PlannedMove]) -> dict[TopicPartitionReplica, str]:
    return {replica: path for move in moves for replica, path in move.log_dir_paths.items()}


def _note_sending(run: Execution, event: SubmissionIntended) -> Instructions:
    for partition in event.partitions:
        record = run.records[partition]
        record.sent(event.at_ms)
        disk_admission.promise(run, record)
        run.index.sort(record)
    return ()


def _after_sending(run: Execution, event: MovesSubmitted) -> Instructions:
    """Send on while what was seen is fresh; after a lost answer, look before anything else is sent."""
    for partition in event.accepted:
        run.records[partition].accepted()
    for refusal in event.refused:
        record = run.records[refusal.topic_partition]
        record.fail(event.at_ms, f"the cluster refused it: {refusal.message}")
        run.index.sort(record)
    if run.starting and _may_send_on(run, event):
        return _send(run)
    run.starting = ()
    return (look(run),) if run.is_active else electing.enter(run)


def _may_send_on(run: Execution, event: MovesSubmitted) -> bool:
    is_fresh = event.at_ms - run.looked_ms < guarding.FRESH_MS
    return is_fresh and not event.unknown and run.ending is None and not guarding.holds(run)


# --- a run that was cancelled --------------------------------------------------------------------------------------


def _wind_up(run: Execution, wishes: Iterable[tuple[MoveRecord, NextAction]], at_ms: int) -> Instructions:
    """Start nothing; with RECALL also take back what is in flight."""
    unsent = [record for record, wish in wishes if record.status is MoveStatus.SENT and wish is NextAction.SUBMIT]
    for record in (*unsent, *(record for record in run.active if record.status is MoveStatus.PLANNED)):
        record.cancelled(at_ms)
        run.index.sort(record)
    run.checking = run.starting = ()
    recall = [
        record.move.topic_partition
        for record, wish in wishes
        if wish is NextAction.CANCEL or (run.ending is Ending.RECALL and record.status is MoveStatus.MOVING)
    ]
    return (CancelMoves(tuple(recall)),) if recall else _list_then_send(run)


def _note_cancelling(run: Execution, event: CancelIntended) -> Instructions:
    for partition in event.partitions:
        run.records[partition].recall()
    return ()


def _after_cancelling(run: Execution, event: MovesCancelled) -> Instructions:
    """Also a refusal asks for a look: most often the move was just over."""
    for refusal in event.refused:
        run.note(f"{refusal.topic_partition} could not be cancelled: {refusal.message}")
    return (look(run),)


# --- time, and a cluster that does not answer ----------------------------------------------------------------------


def _look_again(run: Execution, event: TimePassed) -> Instructions:
    if schedule_window.sleeps(run, event.at_ms):
        return (Wait(),)
    order = look(run)
    return (throttle_rates.measurement(run) if throttle_rates.is_due(run, event.at_ms) else order,)


def _after_measuring(run: Execution, event: TrafficMeasured) -> Instructions:
    throttle_rates.take_in(run, event)
    return (look(run),)


def _blind(run: Execution, event: CallFailed) -> Instructions:
    run.starting = run.checking = ()
    if run.is_patient(event.at_ms, OUT_OF_REACH_MS):
        return (Wait(),)
    run.note(f"the cluster was out of reach for {OUT_OF_REACH_MS // 60_000} minutes: {event.message}")
    run.phase = Phase.PAUSED
    return ()


_ONWARD = (Phase.MOVING, Phase.ELECTING, Phase.RESTORING)

ROWS: Rows = {
    (Phase.MOVING, MovesObserved): row(_judge, *_ONWARD),
    (Phase.MOVING, ThrottleIntended): row(owe, Phase.MOVING),
    (Phase.MOVING, ThrottleSet): row(_after_listing, *_ONWARD),
    (Phase.MOVING, SubmissionIntended): row(_note_sending, Phase.MOVING),
    (Phase.MOVING, MovesSubmitted): row(_after_sending, *_ONWARD),
    (Phase.MOVING, CancelIntended): row(_note_cancelling, Phase.MOVING),
    (Phase.MOVING, MovesCancelled): row(_after_cancelling, Phase.MOVING),
    (Phase.MOVING, CallFailed): row(_blind, Phase.MOVING, Phase.PAUSED),
    (Phase.MOVING, TimePassed): row(_look_again, Phase.MOVING),
    (Phase.MOVING, TrafficMeasured): row(_after_measuring, Phase.MOVING),
}
