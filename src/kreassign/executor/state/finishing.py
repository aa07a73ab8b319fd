"""Finish a run: elect preferred leaders, restore the throttle, verify the result.

An election moves load at once, so leaders are elected a step at a time. A leader may be lost after its move was last
observed: where verification shows this twice in a row, it is elected again. Every end passes through restoring, except
a pause while copies are in flight: each setting that the run changed gets its old value, and is read to confirm it.
"""

from __future__ import annotations

from dataclasses import replace

from kreassign.executor import events
from kreassign.executor.instructions import ElectLeaders, ReadConfigs, RestoreThrottle, Verify, Wait
from kreassign.executor.state import phases, throttling
from kreassign.executor.state.move import MoveRecord
from kreassign.executor.state.run import Next, Rows, Run, row
from kreassign.executor.state.setting import UNREADABLE, Conclusion, Seen, Setting, SettingEvent, SettingState
from kreassign.executor.throttle_ledger import ConfigValue, items
from kreassign.model.run import MoveStatus

VERIFY_PATIENCE_MS = 20_000
"""How long brokers may take to show what the controller already knows."""

RESTORING = "restoring the throttle"
"""Kind of messages about restoring."""

LEADS_AFTERWARDS = "the end of that (`kreassign maintenance exit`) lets it lead"
"""Advice about a preferred leader in maintenance."""

CALL_PATIENCE_MS = 60_000
"""How long an unanswered query is retried."""


# --- preferred leaders ---------------------------------------------------------------------------------------------


def elect(run: Run) -> Next:
    """Begin with the partitions whose leader is not their first replica."""
    run.problems.unelected = ()
    waiting = phases.Electing(tuple(name for name, record in run.moves.records.items() if _waits_for_leader(record)))
    return _elect_step(run, waiting) if waiting.remaining else restore(run, phases.Afterwards.VERIFY)


def _elect_step(run: Run, state: phases.Electing, _: events.TimePassed | None = None) -> Next:
    at_once = run.control.pace.elections_per_step
    now = state.remaining[:at_once]
    moves = {name: run.moves.records[name].move for name in now}
    order = ElectLeaders(
        now, events.topic_ids_of_moves(moves.values()), {name: move.target[0] for name, move in moves.items()}
    )
    return Next(replace(state, remaining=state.remaining[at_once:], asked=now), (order,))


def _waits_for_leader(record: MoveRecord) -> bool:
    seen = record.observation
    return record.status is MoveStatus.COMPLETE and seen is not None and seen.leader != record.move.target[0]


def _after_election(run: Run, state: phases.Electing, event: events.LeadersElected) -> Next:
    """Ask again for each that was refused: a replica may just have been out of sync for a second."""
    for name in event.spared:
        leader = run.moves.records[name].move.target[0]
        run.note(f"got no election of broker {leader}, which was in maintenance: {LEADS_AFTERWARDS}", name)
    refused, again = dict(state.refused), []
    for refusal in event.refused:
        name = refusal.topic_partition
        refused[name], is_tried_again = phases.within(refused.get(name), event.at_ms, VERIFY_PATIENCE_MS)
        if is_tried_again:
            again.append(name)
        else:
            run.problems.unelected += (name,)
            run.note(f"has a preferred leader that could not be elected: {refusal.message}", name)
    waiting = (*state.remaining, *again)
    if not waiting:
        return _after_electing(run, state)
    return Next(replace(state, remaining=waiting, asked=(), refused=refused, silent_since_ms=None), (Wait(),))


def _no_election(run: Run, state: phases.Electing, event: events.CallFailed) -> Next:
    """Ask again for all of it while the cluster may only be silent for a moment."""
    since_ms, is_tried_again = phases.within(state.silent_since_ms, event.at_ms, CALL_PATIENCE_MS)
    if is_tried_again:
        return Next(replace(state, remaining=(*state.asked, *state.remaining), silent_since_ms=since_ms), (Wait(),))
    run.problems.unelected += (*state.asked, *state.remaining)
    run.note(f"preferred leaders could not be elected: {event.message}")
    return _after_electing(run, state)


def _after_electing(run: Run, state: phases.Electing) -> Next:
    if state.differs_since_ms is None:
        return restore(run, phases.Afterwards.VERIFY)
    return Next(phases.Verifying(state.differs_since_ms), (Wait(),))


# --- restoring the throttle ----------------------------------------------------------------------------------------


def restore(run: Run, afterwards: phases.Afterwards) -> Next:
    """Start restoring: read the present values first."""
    return Next(phases.Restoring(phases.RestoreProgress(afterwards)), (_read(run),))


def _write_back(run: Run, state: phases.Restoring, event: events.ConfigsRead) -> Next:
    """Write the old values that are not set."""
    order = _take_in(run, state.restore, event)
    if not run.throttle.open:
        return _after_restoring(run, state.restore, event.at_ms)
    if not order.overrides:
        return _restore_later(run, state.restore, event.at_ms, event.problems)
    run.throttle.apply(SettingEvent.WRITE_BACK, (run.throttle.of(override.key) for override in order.overrides))
    return Next(phases.WritingBack(state.restore), (order,))


def _confirm(run: Run, state: phases.ConfirmingRestore, event: events.ConfigsRead) -> Next:
    """Values written just now that do not show are not rewritten at once."""
    _take_in(run, state.restore, event)
    if not run.throttle.open:
        return _after_restoring(run, state.restore, event.at_ms)
    return _restore_later(run, state.restore, event.at_ms, event.problems)


def _take_in(run: Run, how: phases.RestoreProgress, event: events.ConfigsRead) -> RestoreThrottle:
    """Close the settings that are restored, or changed by others; return the writes for the rest."""
    throttle = run.throttle
    if event.others_move:
        _leave_rates(run, event)
    values = {present.key: present for present in event.values}
    changes, shared = [], []
    for setting in throttle.open:
        present = values.get(setting.key)
        if present is None:
            # Settings of a broker that is down cannot be read, but the controller may take them, or has them already.
            is_written = setting.key.broker in event.down
            is_there = not setting.pending.is_open and setting.doubt is None
            if is_written and is_there and not throttle.may_change_later(event.at_ms):
                throttle.apply(SettingEvent.CONTROLLER_TOOK, (setting,))
                continue
        else:
            is_written = _conclude_setting(run, how, event, setting, present) is Conclusion.WRITE
        if is_written:
            changes.append(setting.pending)
            if present is not None and setting.pending.is_list and items(present.value) - setting.pending.our_items:
                shared.append(setting.key)
    return RestoreThrottle(tuple(changes), tuple(shared))


def _conclude_setting(
    run: Run, how: phases.RestoreProgress, event: events.ConfigsRead, setting: Setting, present: ConfigValue
) -> Conclusion:
    """Conclude from a value at the end; what guards reported is not repeated. Values of others are kept, and named."""
    is_gone = setting.key.resource in event.gone
    conclusion = setting.meaning_at_end(present.value, is_gone=is_gone)
    if conclusion is Conclusion.RESTORED and not is_gone and run.throttle.may_change_later(event.at_ms):
        return Conclusion.AS_SET  # It is read again.
    if conclusion is Conclusion.DOUBT:
        setting = setting.doubted(present, event.at_ms)
        if setting.is_undecided:
            run.throttle.put(setting)
            return conclusion
        conclusion = setting.certain(present.value)
        if setting.state is SettingState.IN_FORCE:
            setting = _note_change(run, setting, present, conclusion)
            run.throttle.is_lost = run.throttle.is_lost or how.afterwards is phases.Afterwards.VERIFY
        run.throttle.put(setting)
    else:
        run.throttle.settle(setting)
    if conclusion in {Conclusion.RESTORED, Conclusion.THEIRS}:
        ends = SettingEvent.READ_BACK if conclusion is Conclusion.RESTORED else SettingEvent.FOREIGN
        run.throttle.apply(SettingEvent.TOPIC_GONE if is_gone else ends, (run.throttle.of(setting.key),))
    if conclusion is Conclusion.THEIRS:
        run.note(f"someone else changed a throttle during the run, and it was left so: {present.then}")
    return conclusion


def _note_change(run: Run, setting: Setting, present: ConfigValue, conclusion: Conclusion) -> Setting:
    """Report once what others certainly changed, and the run writes back."""
    is_theirs = conclusion is Conclusion.WRITE and setting.seen(present.value) is not Seen.EARLIER
    if setting.told == present or not is_theirs:
        return setting
    ours = f"the run had set it to {setting.pending.value!r}"
    run.note(f"someone else changed a throttle during the run: {present.then}, and {ours}")
    return replace(setting, told=present)


def _read(run: Run) -> ReadConfigs:
    return ReadConfigs(tuple(run.throttle.pending), run.throttle.is_alongside)


def _leave_rates(run: Run, event: events.ConfigsRead) -> None:
    """Keep a rate where moves of others had one: without it they would go on unthrottled."""
    for present in event.values:
        setting = run.throttle.of(present.key)
        if setting.is_open and setting.key.broker is not None and setting.original is not None:
            run.throttle.apply(SettingEvent.LEAVE, (setting,))
            run.note(f"moves of others went on, so that a throttle was left that they had before: {present.then}")


def _read_back(run: Run, state: phases.WritingBack, event: events.ThrottleRestored) -> Next:
    """Read the values written. For a broker that is down, the controller's acceptance has to suffice."""
    throttle = run.throttle
    run.tell(RESTORING, event.at_ms, *event.problems)
    state = replace(state, restore=replace(state.restore, unwritten=tuple(map(str, event.unwritten))))
    down = (setting for setting in throttle.open if setting.key.broker in event.by_controller)
    for setting in throttle.apply(SettingEvent.CONTROLLER_TOOK, down):
        run.note(f"broker {setting.key.broker} was down: the controller took the values that it had before the run")
    for setting in throttle.forget(event.unregistered):
        run.note(
            f"{setting.pending.then}; the cluster did not know that broker any more, so nothing was restored there"
        )
    if not throttle.open:
        return _after_restoring(run, state.restore, event.at_ms)
    return Next(phases.ConfirmingRestore(state.restore), (_read(run),))


def _could_not_read(run: Run, state: phases.Restoring | phases.ConfirmingRestore, event: events.CallFailed) -> Next:
    return _restore_later(run, state.restore, event.at_ms, (event.message,))


def _restore_later(run: Run, how: phases.RestoreProgress, at_ms: int, problems: tuple[str, ...]) -> Next:
    since_ms, is_tried_again = phases.within(how.failing_since_ms, at_ms, CALL_PATIENCE_MS)
    if is_tried_again:
        return Next(phases.Restoring(replace(how, failing_since_ms=since_ms)), (Wait(),))
    run.problems.unrestored = tuple(dict.fromkeys((*problems, *how.unwritten)))
    # The operator sees the remaining settings and may restore them by hand.
    run.throttle.apply(SettingEvent.UNWATCHED, run.throttle.open)
    return _after_restoring(run, how, at_ms)


def _after_restoring(run: Run, how: phases.RestoreProgress, at_ms: int) -> Next:
    if not run.throttle.open:
        run.problems.unrestored = ()
        run.tell(RESTORING, at_ms)
    match how.afterwards:
        case phases.Afterwards.PAUSE:
            return Next(phases.Paused())
        case phases.Afterwards.FAIL:
            return Next(phases.Failed(at_ms))
        case phases.Afterwards.VERIFY:
            return _verify(run, phases.Verifying())


# --- verification --------------------------------------------------------------------------------------------------


def _verify(run: Run, state: phases.Verifying, _: events.TimePassed | None = None) -> Next:
    made = tuple(record.move for record in run.moves.records.values() if record.status is MoveStatus.COMPLETE)
    settings = (
        setting.ever_ours
        for setting in run.throttle.settings.values()
        if not (setting.was_ended or setting.state in UNREADABLE)
    )
    return Next(state, (Verify(made, tuple(override for override in settings if override is not None)),))


def _conclude(run: Run, state: phases.Verifying, event: events.Verified) -> Next:
    run.problems.findings = event.findings
    if not event.findings:
        run.problems.unelected = ()
    since_ms, is_tried_again = phases.within(state.differs_since_ms, event.at_ms, VERIFY_PATIENCE_MS)
    if event.findings and is_tried_again:
        led_by_others = tuple(name for name in event.led_by_others if name not in run.problems.unelected)
        # At the first look brokers may just not have heard of the election.
        if led_by_others and state.differs_since_ms is not None:
            return _elect_step(run, phases.Electing(led_by_others, differs_since_ms=since_ms))
        return Next(phases.Verifying(differs_since_ms=since_ms), (Wait(),))
    return _end(run, event.at_ms)


def _could_not_verify(run: Run, state: phases.Verifying, event: events.CallFailed) -> Next:
    since_ms, is_tried_again = phases.within(state.silent_since_ms, event.at_ms, CALL_PATIENCE_MS)
    if is_tried_again:
        return Next(replace(state, silent_since_ms=since_ms), (Wait(),))
    run.problems.findings = (f"the result could not be verified: {event.message}",)
    return _end(run, event.at_ms)


def _end(run: Run, at_ms: int) -> Next:
    """Choose the end state. Failures outweigh cancellations."""
    statuses = {record.status for record in run.moves.records.values()}
    if MoveStatus.FAILED in statuses or run.problems.findings or run.throttle.open or throttling.was_lost(run):
        return Next(phases.Failed(at_ms))
    return Next(phases.Cancelled(at_ms) if MoveStatus.CANCELLED in statuses else phases.Done(at_ms))


_RESTORED = (phases.Restoring, phases.Verifying, phases.Paused, phases.Failed)

ROWS: Rows = {
    (phases.Electing, events.LeadersElected): row(_after_election, phases.Electing, phases.Restoring, phases.Verifying),
    (phases.Electing, events.TimePassed): row(_elect_step, phases.Electing),
    (phases.Electing, events.CallFailed): row(_no_election, phases.Electing, phases.Restoring, phases.Verifying),
    (phases.Restoring, events.ConfigsRead): row(_write_back, phases.WritingBack, *_RESTORED),
    (phases.Restoring, events.CallFailed): row(_could_not_read, *_RESTORED),
    (phases.Restoring, events.TimePassed): row(lambda run, state, _: Next(state, (_read(run),)), phases.Restoring),
    (phases.WritingBack, events.ThrottleRestored): row(
        _read_back, phases.ConfirmingRestore, phases.Verifying, phases.Paused, phases.Failed
    ),
    (phases.ConfirmingRestore, events.ConfigsRead): row(_confirm, *_RESTORED),
    (phases.ConfirmingRestore, events.CallFailed): row(_could_not_read, *_RESTORED),
    (phases.Verifying, events.Verified): row(
        _conclude, phases.Verifying, phases.Electing, phases.Done, phases.Cancelled, phases.Failed
    ),
    (phases.Verifying, events.CallFailed): row(_could_not_verify, phases.Verifying, phases.Failed),
    (phases.Verifying, events.TimePassed): row(_verify, phases.Verifying),
}
