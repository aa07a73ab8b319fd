"""Finish a run: elect preferred leaders, restore the throttle, verify the result.

An election moves load at once, so leaders are elected a step at a time. Every end passes through restoring, except a
pause while copies are in flight: each setting that the run changed gets its old value, and is read to confirm it.
"""

from __future__ import annotations

from dataclasses import replace

from kreassign.executor import throttle_ledger
from kreassign.executor.events import (
    CallFailed,
    ConfigsRead,
    LeadersElected,
    ThrottleRestored,
    TimePassed,
    Verified,
    topic_ids_of_moves,
)
from kreassign.executor.instructions import ElectLeaders, ReadConfigs, RestoreThrottle, Verify, Wait
from kreassign.executor.state import throttling
from kreassign.executor.state.move import MoveRecord, MoveStatus
from kreassign.executor.state.phases import (
    Afterwards,
    Cancelled,
    ConfirmingRestore,
    Done,
    Electing,
    Failed,
    Names,
    Paused,
    Restore,
    Restoring,
    Verifying,
    WritingBack,
    failing,
    within,
)
from kreassign.executor.state.run import Next, Rows, Run, row

VERIFY_PATIENCE_MS = 20_000
"""How long brokers may take to show what the controller already knows."""

RESTORING = "restoring the throttle"
"""Kind of messages about restoring."""

CALL_PATIENCE_MS = 60_000
"""How long an unanswered query is retried."""


# --- preferred leaders ---------------------------------------------------------------------------------------------


def elect(run: Run) -> Next:
    """Begin with the partitions whose leader is not their first replica."""
    return _elect_step(run, tuple(name for name, record in run.moves.records.items() if _waits_for_leader(record)))


def _elect_step(run: Run, waiting: Names, since_ms: int | None = None) -> Next:
    if not waiting:
        return restore(run, Afterwards.VERIFY)
    at_once = run.control.pace.elections_per_step
    now = waiting[:at_once]
    topic_ids = topic_ids_of_moves(run.moves.records[name].move for name in now)
    return Next(Electing(waiting[at_once:], now, since_ms), (ElectLeaders(now, topic_ids),))


def _waits_for_leader(record: MoveRecord) -> bool:
    seen = record.observation
    return record.status is MoveStatus.COMPLETE and seen is not None and seen.leader != record.move.target[0]


def _after_election(run: Run, state: Electing, event: LeadersElected) -> Next:
    """Ask again for what was refused: a replica may just have been out of sync for a second."""
    since_ms = event.at_ms if state.since_ms is None and event.refused else state.since_ms
    if since_ms is not None and event.at_ms - since_ms < VERIFY_PATIENCE_MS:
        again = tuple(refusal.topic_partition for refusal in event.refused)
        return _elect_later(run, Electing((*state.remaining, *again), since_ms=since_ms))
    for refusal in event.refused:
        run.note(f"the preferred leader of {refusal.topic_partition} could not be elected: {refusal.message}")
    return _elect_later(run, Electing(state.remaining, since_ms=since_ms))


def _elect_later(run: Run, state: Electing) -> Next:
    return Next(state, (Wait(),)) if state.remaining else restore(run, Afterwards.VERIFY)


def _next_step(run: Run, state: Electing, _: TimePassed) -> Next:
    return _elect_step(run, state.remaining, state.since_ms)


def _no_election(run: Run, state: Electing, event: CallFailed) -> Next:
    """Ask again for all of it while the cluster may only be silent for a moment."""
    since_ms = event.at_ms if state.since_ms is None else state.since_ms
    if event.at_ms - since_ms < CALL_PATIENCE_MS:
        return Next(Electing((*state.asked, *state.remaining), since_ms=since_ms), (Wait(),))
    run.note(f"preferred leaders could not be elected: {event.message}")
    return restore(run, Afterwards.VERIFY)


# --- restoring the throttle ----------------------------------------------------------------------------------------


def restore(run: Run, afterwards: Afterwards) -> Next:
    """Start restoring: read the present values first."""
    return Next(Restoring(Restore(afterwards)), (_read(run),))


def _write_back(run: Run, state: Restoring, event: ConfigsRead) -> Next:
    """Write the old values that are not set."""
    order = _take_in(run, state.restore, event)
    if not run.throttle.pending:
        return _after_restoring(run, state.restore, event.at_ms)
    if not order.overrides:
        return _restore_later(run, state.restore, event.at_ms, event.problems)
    run.throttle.in_force -= {override.key for override in order.overrides}
    return Next(WritingBack(state.restore), (order,))


def _confirm(run: Run, state: ConfirmingRestore, event: ConfigsRead) -> Next:
    """Values written just now that do not show are not rewritten at once."""
    _take_in(run, state.restore, event)
    if not run.throttle.pending:
        return _after_restoring(run, state.restore, event.at_ms)
    return _restore_later(run, state.restore, event.at_ms, event.problems)


def _take_in(run: Run, how: Restore, event: ConfigsRead) -> RestoreThrottle:
    """Close the overrides that are restored; return the writes for the others.

    An unexpected value waits for a second reading, because one may be stale; so does the old value before we wrote it.
    A broker can be behind for longer than that. So its value is overwritten when it is the old value or an earlier
    one of ours; if the old value is really set, nothing changes.
    Values that others changed are kept, and named.
    """
    throttle = run.throttle
    if event.others_move:
        _leave_rates(run, event)
    throttling.take_in_check_at_end(run, event, is_end=how.afterwards is Afterwards.VERIFY)
    settled = (
        throttle.with_every_rate(one) for key, one in throttle.pending.items() if not throttling.is_undecided(run, key)
    )
    found = throttle_ledger.restoration(settled, event.values)
    unwritten = [key for key in found.restored if key in throttle.in_force]
    for key in (*found.restored, *(present.key for present in found.foreign)):
        if key not in unwritten:
            throttle.close(key)
            if key.resource in event.gone:
                throttle.given_up.add(key)
    for present in found.foreign:
        run.note(f"someone else changed a throttle during the run, and it was left so: {present.then}")
    # Settings of a broker that is down cannot be read, but the controller may take them.
    silent = (one for one in throttle.pending.values() if one.key.broker in event.down)
    changes = (*found.changes, *(throttle.pending[key] for key in unwritten), *silent)
    return RestoreThrottle(changes, found.shared)


def _read(run: Run) -> ReadConfigs:
    return ReadConfigs(tuple(run.throttle.pending), run.throttle.is_alongside)


def _leave_rates(run: Run, event: ConfigsRead) -> None:
    """Keep a rate where moves of others had one: without it they would go on unthrottled."""
    throttle = run.throttle
    for present in event.values:
        if present.key in throttle.pending and present.key.broker is not None and present.key in throttle.originals:
            throttle.close(present.key)
            throttle.left.add(present.key)
            run.note(f"moves of others went on, so that a throttle was left that they had before: {present.then}")


def _read_back(run: Run, state: WritingBack, event: ThrottleRestored) -> Next:
    """Read the values written. For a broker that is down, the controller's acceptance has to suffice."""
    throttle = run.throttle
    run.tell(RESTORING, event.at_ms, *event.problems)
    state = replace(state, restore=replace(state.restore, unwritten=tuple(map(str, event.unwritten))))
    for key in [key for key in throttle.pending if key.broker in event.by_controller]:
        throttle.close(key)
        throttle.carried.add(key)
        run.note(f"broker {key.broker} was down: the controller took the values that it had before the run")
    for override in throttle.forget(event.unregistered):
        run.note(f"{override.then}; the cluster did not know that broker any more, so nothing was restored there")
    if not throttle.pending:
        return _after_restoring(run, state.restore, event.at_ms)
    return Next(ConfirmingRestore(state.restore), (_read(run),))


def _could_not_read(run: Run, state: Restoring | ConfirmingRestore, event: CallFailed) -> Next:
    return _restore_later(run, state.restore, event.at_ms, (event.message,))


def _restore_later(run: Run, how: Restore, at_ms: int, problems: tuple[str, ...]) -> Next:
    since_ms, is_tried_again = within(how.failing_since_ms, at_ms, CALL_PATIENCE_MS)
    if is_tried_again:
        return Next(Restoring(failing(how, since_ms)), (Wait(),))
    run.problems.unrestored = tuple(dict.fromkeys((*problems, *how.unwritten)))
    # The operator sees the remaining settings and may restore them by hand.
    run.throttle.in_force.clear()
    return _after_restoring(run, how, at_ms)


def _restore_again(run: Run, state: Restoring, _: TimePassed) -> Next:
    return Next(state, (_read(run),))


def _after_restoring(run: Run, how: Restore, at_ms: int) -> Next:
    if not run.throttle.pending:
        run.problems.unrestored = ()
        run.tell(RESTORING, at_ms)
    match how.afterwards:
        case Afterwards.PAUSE:
            return Next(Paused())
        case Afterwards.FAIL:
            return Next(Failed(at_ms))
        case Afterwards.VERIFY:
            return _verify(run, Verifying())


# --- verification --------------------------------------------------------------------------------------------------


def _verify(run: Run, state: Verifying) -> Next:
    made = tuple(record.move for record in run.moves.records.values() if record.status is MoveStatus.COMPLETE)
    gone = run.throttle.carried | run.throttle.left
    readable = (override for override in run.throttle.ever_set if override.key not in gone)
    return Next(state, (Verify(made, tuple(readable)),))


def _conclude(run: Run, state: Verifying, event: Verified) -> Next:
    run.problems.findings = event.findings
    since_ms, is_tried_again = within(state.failing_since_ms, event.at_ms, VERIFY_PATIENCE_MS)
    if event.findings and is_tried_again:
        return Next(Verifying(since_ms), (Wait(),))
    return _end(run, event.at_ms)


def _could_not_verify(run: Run, state: Verifying, event: CallFailed) -> Next:
    since_ms, is_tried_again = within(state.failing_since_ms, event.at_ms, CALL_PATIENCE_MS)
    if is_tried_again:
        return Next(Verifying(since_ms), (Wait(),))
    run.problems.findings = (f"the result could not be verified: {event.message}",)
    return _end(run, event.at_ms)


def _verify_again(run: Run, state: Verifying, _: TimePassed) -> Next:
    return _verify(run, state)


def _end(run: Run, at_ms: int) -> Next:
    """Choose the end state. Failures outweigh cancellations."""
    statuses = {record.status for record in run.moves.records.values()}
    if MoveStatus.FAILED in statuses or run.problems.findings or run.throttle.pending:
        return Next(Failed(at_ms))
    if throttling.was_lost(run):
        return Next(Failed(at_ms))
    return Next(Cancelled(at_ms) if MoveStatus.CANCELLED in statuses else Done(at_ms))


_RESTORED = (Restoring, Verifying, Paused, Failed)

ROWS: Rows = {
    (Electing, LeadersElected): row(_after_election, Electing, Restoring),
    (Electing, TimePassed): row(_next_step, Electing),
    (Electing, CallFailed): row(_no_election, Electing, Restoring),
    (Restoring, ConfigsRead): row(_write_back, WritingBack, *_RESTORED),
    (Restoring, CallFailed): row(_could_not_read, *_RESTORED),
    (Restoring, TimePassed): row(_restore_again, Restoring),
    (WritingBack, ThrottleRestored): row(_read_back, ConfirmingRestore, Verifying, Paused, Failed),
    (ConfirmingRestore, ConfigsRead): row(_confirm, *_RESTORED),
    (ConfirmingRestore, CallFailed): row(_could_not_read, *_RESTORED),
    (Verifying, Verified): row(_conclude, Verifying, Done, Cancelled, Failed),
    (Verifying, CallFailed): row(_could_not_verify, Verifying, Failed),
    (Verifying, TimePassed): row(_verify_again, Verifying),
}
