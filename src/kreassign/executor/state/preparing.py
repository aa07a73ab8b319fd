"""Begin or resume a run: set the rates of the throttle first, then go on to the moves.

A throttle that is changed during the run comes this way too: an override that is pending keeps its original value.
"""

from __future__ import annotations

from dataclasses import replace

from kreassign.executor import events, throttle_ledger
from kreassign.executor.client_guard import ClientWatch
from kreassign.executor.guards import DEFAULTS, GuardName, reactions
from kreassign.executor.instructions import ReadConfigs, SetThrottle, Wait
from kreassign.executor.state import finishing, moving, phases, throttling
from kreassign.executor.state.move import MoveRecord
from kreassign.executor.state.run import Control, CopySpeed, MoveIndex, Next, Rows, Run, RunIdentity, row
from kreassign.executor.state.steps import move_steps
from kreassign.executor.throttle_ledger import ConfigKey, ConfigValue, FoundThrottles
from kreassign.model.cluster import without
from kreassign.model.run import OVER, MoveStatus, Phase
from kreassign.model.throttle import involved_brokers

READING = "reading the throttle"
"""Kind of messages about reading the throttle."""

CONFIG_PATIENCE_MS = 60_000
"""How long reading settings is retried."""


def enter(run: Run) -> Next:
    """Set the wanted throttle, then move."""
    throttle = run.throttle
    if not run.moves.active or not (run.control.rates.is_limited or throttle.open or throttle.adopted):
        return moving.enter(run)
    if throttle.is_unread and throttling.is_guarded(run):
        return _see(run, phases.Resuming())
    return _read(run, phases.Preparing())


def _begin(run: Run, _: phases.New, event: events.RunStarted) -> Next:
    run.identity = RunIdentity(
        event.run_id,
        event.cluster_id,
        event.at_ms,
        event.plan_id,
        reactions=reactions(event.guards),
        allows_producer_outage=event.allows_producer_outage,
        journal_to=event.journal_to,
        undoes=event.undoes,
    ).led_by(event.operator)
    for value in event.originals:
        run.throttle.put(replace(run.throttle.of(value.key), original=value))
    for value in event.adopted:
        run.throttle.put(replace(run.throttle.of(value.key), adopted=value))
    run.throttle.takes_found = event.found is FoundThrottles.RESTORE
    run.throttle.is_alongside = event.found is FoundThrottles.ALONGSIDE
    run.control = Control(
        event.rates, event.pace, replans=event.replans, avoid=event.avoid, lost_after_ms=event.lost_after_ms
    )
    run.clients = ClientWatch(event.clients)
    run.throttle.live_brokers = event.live_brokers
    run.moves.records = {
        move.topic_partition: MoveRecord(move, steps=move_steps(move) if event.pace.is_stepwise else ())
        for move in event.moves
    }
    run.moves.index = MoveIndex.unseen(run.moves.records.values())
    return enter(run)


def _resume(run: Run, _: object, event: events.RunResumed) -> Next:
    run.identity = replace(run.identity.led_by(event.operator), journal_to=event.journal_to)
    lost_after_ms = run.control.lost_after_ms if event.lost_after_ms is None else event.lost_after_ms
    run.control = replace(run.control, replans=run.control.replans or event.replans, lost_after_ms=lost_after_ms)
    if event.clients is not None:
        run.clients = replace(run.clients, guard=event.clients)
        # The run began without this guard.
        default = {GuardName.CLIENTS: DEFAULTS[GuardName.CLIENTS]}
        run.identity = replace(run.identity, reactions=default | {**run.identity.reactions})
    run.throttle.live_brokers = event.live_brokers
    for made in event.made_since:
        record = run.moves.records[made.topic_partition]
        if record.status is MoveStatus.PLANNED:
            record.fail(event.at_ms, made.message)
    return resume(run, event.at_ms)


def resume(run: Run, at_ms: int, *, others_may_restore: bool = False) -> Next:
    """Continue from any state. Nothing is sent before a poll, except settings that are pending anyway.

    No duration spans two processes: a clock may have been set in between, without observations. While
    `others_may_restore` settings of this run, missing ones are no breach: they are reported, and set again unasked.
    """
    for record in run.moves.active:
        record.resumed(at_ms)
    throttle = run.throttle
    were_set = tuple(sorted(setting.key for setting in throttle.in_force)) if others_may_restore else ()
    run.moves.speed, throttle.unset_since_ms = CopySpeed(), None
    throttle.intended_ms, throttle.late_ms = None, throttle.intended_ms or throttle.late_ms
    throttle.unread, throttle.is_asked_for = (), False
    throttle.is_lost = throttle.is_lost and not others_may_restore
    for setting in [*throttle.settings.values()]:
        throttle.put(setting.resumed(reads_first=not others_may_restore))
    # An operator's pause outlives the loss of the lease; another process begins without.
    run.control = replace(run.control, held_by=run.control.held_by if others_may_restore else "")
    # Findings and unrestored settings of an earlier end are checked again.
    run.problems.unrestored = run.problems.findings = ()
    run.tell(finishing.RESTORING, at_ms)
    run.health.checked_ms, run.health.absent_since_ms, run.health.lost = None, {}, ()
    run.traffic.measured_ms = None
    run.clients = run.clients.resumed
    run.moves.index = MoveIndex.unseen(run.moves.records.values())
    if were_set and run.moves.active and throttling.is_guarded(run):
        return _see(run, phases.Resuming(were_set=were_set))
    return enter(run)


def _see(run: Run, state: phases.Resuming, _: events.TimePassed | None = None) -> Next:
    return Next(state, (throttling.check_of_all(run),))


def _after_seeing(run: Run, state: phases.Resuming, event: events.ThrottleChecked) -> Next:
    """Set again only settings that are still ours. Others stay as they are: the guard reports them and reacts."""
    if not state.were_set:
        throttling.take_in_check_of_all(run, event)
    if event.unread:
        return _try_again(run, state, event.at_ms, tuple(f"{one} could not be read" for one in event.unread))
    run.tell(READING, event.at_ms)
    if state.were_set:
        throttling.note_differences(run, state.were_set, event)
        return enter(run)
    return Next(phases.Resuming(), (Wait(),)) if run.throttle.is_unread else enter(run)


def _read(run: Run, state: phases.Preparing, _: events.TimePassed | None = None) -> Next:
    """Read settings of unknown value; the original value of a pending override is in the journal."""
    throttle = run.throttle
    rearranging = {broker for record in run.moves.active for broker in record.move.rearranging}
    throttle.awaited |= rearranging.union(involved_brokers(_flows(run))).difference(throttle.live_brokers)
    unknown = tuple(key for key in _keys(run) if not throttle.of(key).is_open)
    return Next(state, (ReadConfigs(unknown),)) if unknown else _set(run)


def _take_in(run: Run, state: phases.Preparing, event: events.ConfigsRead) -> Next:
    throttle = run.throttle
    throttle.live_brokers = without(throttle.live_brokers, event.down)
    throttle.awaited |= set(event.down)
    if event.problems:
        return _try_again(run, state, event.at_ms, event.problems)
    run.tell(READING, event.at_ms)
    for present in event.values:
        throttling.take_in_first(run, event.at_ms, present)
    return _set(run)


def _set(run: Run) -> Next:
    """Set the rates, and again every pending override that may not have been written, or may be lost.

    In a resumed run those are all of them, and in any run those of brokers that are back. Settings that others have
    changed are set again only on request. A cancelled run with nothing in flight needs none.
    """
    throttle = run.throttle
    if run.control.wind_down is not None and not run.moves.in_flight:
        return moving.enter(run)
    for setting in throttle.open:
        throttle.put(replace(setting, found=ConfigValue(setting.key, setting.pending.before)))
    back = throttle.awaited.intersection(throttle.live_brokers)
    orders = {
        setting.key: setting.pending
        for setting in throttle.open
        if setting.is_due or (setting.key.broker in back and setting.doubt is None)
    }
    for key, value in (throttling.wanted_rates(run) | _adopted(run)).items():
        setting = throttle.of(key)
        is_needed = throttling.is_limited(run, key)
        change = setting.change_to(value, is_needed=is_needed) if setting.doubt is None or setting.is_due else None
        if change is not None:
            orders[key] = change
    throttle.is_asked_for, throttle.awaited = False, throttle.awaited - back
    for setting in [*throttle.settings.values()]:
        throttle.put(replace(setting, is_due=False))
    return Next(phases.Throttling(), (SetThrottle(tuple(orders.values())),)) if orders else moving.enter(run)


def _keys(run: Run) -> tuple[throttle_ledger.ConfigKey, ...]:
    """Every setting that the throttle of this run changes."""
    rearranging = {broker for record in run.moves.active for broker in record.move.rearranging}
    between = throttle_ledger.keys_to_change(_flows(run), run.throttle.live_brokers)
    log_dirs = throttle_ledger.log_dir_keys(rearranging, run.throttle.live_brokers)
    return tuple(dict.fromkeys((*between, *log_dirs, *run.throttle.adopted)))


def _adopted(run: Run) -> dict[ConfigKey, str | None]:
    """Adopted settings stay as they are until the end, unless this run has another rate for them."""
    rates, found = throttling.wanted_rates(run), run.throttle.found
    return {
        key: value
        for key, value in run.throttle.adopted.items()
        if key in found and rates.get(key) in {None, found[key]}
    }


def _flows(run: Run) -> throttle_ledger.Flows:
    return throttle_ledger.flows({record.name: record.wanted.reassignment for record in run.moves.active})


def _could_not_read(run: Run, state: phases.Preparing | phases.Resuming, event: events.CallFailed) -> Next:
    return _try_again(run, state, event.at_ms, (event.message,))


def _try_again(run: Run, state: phases.Preparing | phases.Resuming, at_ms: int, problems: tuple[str, ...]) -> Next:
    since_ms, is_tried_again = phases.within(state.failing_since_ms, at_ms, CONFIG_PATIENCE_MS)
    if isinstance(state, phases.Resuming) and run.throttle.is_asked_for:
        # Keep watching the moves: it is retried after each inspection, and nothing starts before.
        run.tell(READING, at_ms, *problems)
        return moving.enter(run)
    if is_tried_again:
        return Next(replace(state, failing_since_ms=since_ms), (Wait(),))
    return _continue_or_fail(run, at_ms, READING, problems)


def _after_setting(run: Run, _: phases.Throttling, event: events.ThrottleSet) -> Next:
    """Settings that may not have been set are retried from the first poll on, before anything is started."""
    moving.confirm(run, event)
    if event.problems and not (event.may_pass and event.failed):
        return _continue_or_fail(run, event.at_ms, moving.SETTING, event.problems)
    if not event.problems:
        run.tell(moving.SETTING, event.at_ms)
    return moving.enter(run)


def _continue_or_fail(run: Run, at_ms: int, kind: str, problems: tuple[str, ...]) -> Next:
    if run.moves.under_way:
        run.tell(kind, at_ms, *problems)
        return moving.enter(run)
    return moving.fail_without_throttle(run, at_ms, kind, problems)


_INTO_MOVING = (phases.Resuming, phases.Preparing, phases.Throttling, phases.Observing)

ROWS: Rows = {
    (phases.New, events.RunStarted): row(_begin, phases.Preparing, phases.Observing),
    (phases.Resuming, events.ThrottleChecked): row(_after_seeing, *_INTO_MOVING, phases.Restoring, phases.Failed),
    (phases.Resuming, events.CallFailed): row(_could_not_read, *_INTO_MOVING, phases.Restoring),
    (phases.Resuming, events.TimePassed): row(_see, phases.Resuming),
    (phases.Preparing, events.ConfigsRead): row(
        _take_in, phases.Preparing, phases.Throttling, phases.Observing, phases.Restoring, phases.Failed
    ),
    (phases.Preparing, events.CallFailed): row(
        _could_not_read, phases.Preparing, phases.Observing, phases.Restoring, phases.Failed
    ),
    (phases.Preparing, events.TimePassed): row(_read, phases.Preparing),
    (phases.Throttling, events.ThrottleIntended): row(moving.record_overrides, phases.Throttling),
    (phases.Throttling, events.ThrottleSet): row(_after_setting, phases.Observing, phases.Restoring),
    **{
        (state, events.RunResumed): row(_resume, *_INTO_MOVING, phases.Electing, phases.Restoring)
        for state in phases.STATES
        if state.phase not in OVER | {Phase.NEW}
    },
}
