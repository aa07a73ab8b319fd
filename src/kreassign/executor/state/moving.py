"""Observe the moves, then start, wait, cancel, or finish.

    Observing ─▶ [CheckingHealth ─▶ RecordingVerdicts] ─▶ [CheckingThrottle] ─▶ [SettingLists] ─▶ Submitting …
        ▲                     └─▶ Cancelling ─▶ Observing                                              │
        └──────────── [MeasuringTraffic] ◀── Waiting ◀──── nothing to start ◀──────────────────────────┘

The cluster is observed immediately before anything is sent. When moves start or copies arrive, the lists of throttled
replicas are changed first: a move is never started before its throttle is in force, and a replica that has caught up
is never slowed.

A single answer that is lost, missing, or a refusal for now decides nothing: the move is observed and sent again, with
growing pauses (`move_rules.py`), and stays in flight, with its throttle, until the cluster shows that it had no effect.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice

from kreassign.executor import events, instructions, throttle_ledger
from kreassign.executor.guards import GuardName, Reaction
from kreassign.executor.scheduling.limits import InFlight
from kreassign.executor.scheduling.queue import (
    NextMoves,
    PriorityMerge,
    Rank,
    RouteQueue,
    add_left,
    choose_from,
    ranking,
)
from kreassign.executor.state import admission, finishing, phases, throttling
from kreassign.executor.state.attempts import LEAST_ATTEMPTS
from kreassign.executor.state.move import MoveRecord, NextAction
from kreassign.executor.state.move_rules import conclude
from kreassign.executor.state.run import Next, Rows, Run, WindDown, candidate, row, startable
from kreassign.model import ConfigResource, TopicPartition
from kreassign.model.authorization import is_of_permission
from kreassign.model.run import ACTIVE, IN_FLIGHT, SOMEONE_ELSE, MoveStatus
from kreassign.model.throttle import ThrottledMove

MOVES_PER_REQUEST = 1_000
"""Kafka takes at most 10,000 changes at once and fails the rest; further moves follow in further requests."""

UNSET_PATIENCE_MS = 60_000
"""How long settings that could not be set are retried while nothing is in flight."""

CHECKED_AT_ONCE = 5_000
"""Waiting moves observed together before they start: as many as can be sent while that is fresh."""

SETTING = "setting the throttle"
OTHERS = admission.OTHERS
PERMISSION = "a permission for what every poll asks"
"""Kind of messages about this permission."""

OUT_OF_REACH_MS = 300_000
"""A run that cannot observe its cluster for this long pauses: its moves go on without it."""


def enter(run: Run) -> Next:
    """Begin with a poll, or finish when no move is left."""
    return observe(run) if run.moves.are_left else finishing.elect(run)


def pause(run: Run, _: object, __: object) -> Next:
    """Pause. Copies in flight keep their throttle: without it they would run at full speed unwatched."""
    if run.moves.in_flight or not run.throttle.open:
        return Next(phases.Paused())
    return finishing.restore(run, phases.Afterwards.PAUSE)


def record_overrides(run: Run, state: phases.Throttling | phases.SettingLists, event: events.ThrottleIntended) -> Next:
    """Record that these settings are to be restored from now on."""
    run.throttle.intended_ms = event.at_ms
    for override in event.overrides:
        if run.throttle.of(override.key).doubt is not None:
            run.health.checked_ms = None  # The verdicts about it may be outdated.
        run.throttle.intend(override)
    return Next(state)


def confirm(run: Run, event: events.ThrottleSet) -> None:
    """Confirm settings that were set without a problem: earlier values of ours are gone. Brokers down are set later."""
    throttle = run.throttle
    throttle.intended_ms, throttle.late_ms = None, event.at_ms if event.may_be_made else throttle.late_ms
    throttle.awaited |= {one.broker for one in event.unwritten}
    throttle.unset = frozenset(event.failed)
    for one in event.unwritten:
        run.problems.unset[one.broker] = f"{one}; it is set when the broker is back"
    if not event.problems:
        for setting in throttle.open:
            # Doubtful settings were left alone.
            if setting.doubt is None and setting.key.broker not in throttle.awaited:
                throttle.put(setting.confirmed())


# --- observing and choosing ----------------------------------------------------------------------------------------


def observe(run: Run) -> Next:
    """Poll moves that may have progressed; waiting ones right before they start, or when no others are left."""
    return _poll(run, _observing(run))


def _observing(run: Run) -> phases.Observing:
    return phases.Observing(tuple(run.moves.index.to_observe) or tuple(islice(run.moves.index.queue, CHECKED_AT_ONCE)))


def _poll(run: Run, state: phases.Observing) -> Next:
    records = [run.moves.records[name] for name in state.moves]
    sizes = GuardName.DISK in run.identity.reactions
    return Next(
        state,
        (
            instructions.ObserveMoves(
                tuple(record.step for record in records), _unsent(records), _producer_guard(run), sizes
            ),
        ),
    )


def _unsent(records: Iterable[MoveRecord]) -> frozenset[TopicPartition]:
    return frozenset(record.name for record in records if record.status is MoveStatus.PLANNED)


def _producer_guard(run: Run) -> instructions.ProducerGuard | None:
    """Between the preflight and the start of a move, its ISR or min.insync.replicas may have changed."""
    reaction = run.identity.reactions.get(GuardName.MIN_ISR, Reaction.WARN)
    if reaction is Reaction.WARN or run.identity.allows_producer_outage:
        return None
    return instructions.ProducerGuard(
        None if run.health.first is None else frozenset(run.health.first.under_min_isr.first)
    )


def _after_observation(run: Run, state: phases.Observing, event: events.MovesObserved) -> Next:
    run.moves.observed_ms = event.at_ms
    run.moves.absent = run.moves.absent if event.absent is None else event.absent
    had = [(record, record.bytes_received) for record in run.moves.in_flight]
    actions = _take_in(run, state, event)
    admission.take_in_poll(run, event.at_ms, has_progress=event.has_progress)
    if not state.chosen:
        run.moves.speed.note_poll(had, has_progress=event.has_progress)
    if run.control.wind_down is not None:
        return _wind_down(run, actions, event.at_ms)
    cancelling = [record.name for record, action in actions if action is NextAction.CANCEL]
    cancelling += admission.postponed(run, event.at_ms)
    ready = [record for record, action in actions if action is NextAction.SUBMIT]
    is_resized = any(one.size_bytes is not None for one in event.observations)
    chosen = state.chosen if state.chosen and not is_resized else _choose(run, ready, event.at_ms)
    names = {record.name for record in ready}
    starting = tuple(name for name in chosen if name in names)
    if chosen and not starting and not state.chosen and not admission.is_held_by_guards(run):
        return _poll(run, phases.Observing(chosen[:CHECKED_AT_ONCE], chosen=chosen[:CHECKED_AT_ONCE]))
    return _check_then_proceed(run, starting, tuple(cancelling), event.at_ms)


def _check_then_proceed(run: Run, starting: phases.Names, cancelling: phases.Names, at_ms: int) -> Next:
    if not admission.is_health_check_due(run, starting, at_ms):
        return proceed(run, starting, cancelling)
    active = tuple(run.moves.active)
    lost = run.health.lost if run.control.replans else ()
    in_force = tuple(setting.expected for setting in run.throttle.watched)
    check = instructions.CheckHealth(
        tuple(record.step for record in active),
        in_force,
        admission.first_look(run),
        lost,
        run.identity.allows_producer_outage,
        second_look=bool(run.health.suspected),
        unsent=_unsent(active),
        left_alone=frozenset(record.name for record in active if record.is_list_left_alone),
    )
    return Next(phases.CheckingHealth(starting, cancelling), (check,))


def _take_in(run: Run, state: phases.Observing, event: events.MovesObserved) -> list[tuple[MoveRecord, NextAction]]:
    """Actions that the observed, unfinished moves need now."""
    records = run.moves.records
    for observation in event.observations:
        records[observation.topic_partition].see(observation, event.at_ms)
    run.tell(PERMISSION, event.at_ms)
    seen = dict.fromkeys((*state.moves, *(observation.topic_partition for observation in event.observations)))
    unread = {one.topic_partition: one.message for one in event.unread}
    for name in seen:
        run.tell("unread", event.at_ms, *([unread[name]] if name in unread else ()), of=name)
    for name in unread:
        if name in event.withheld:
            admission.watch_leader(run, records[name], event.at_ms)
        else:
            records[name].leaderless_since_ms = None  # It may have had one meanwhile.
        if records[name].status not in ACTIVE:
            run.tell("unread", event.at_ms, of=name)
        run.moves.index.sort(records[name])  # Out of the queue, where it would stand before moves that can start.
    observed = [record for name in seen if name not in unread and (record := records[name]).status in ACTIVE]
    unsent = [record for record in observed if record.is_unsent]
    begun_again = [(record, record.was_refused) for record in observed if record.is_begun_again]
    actions = [(record, conclude(record, event.at_ms)) for record in observed]
    for record, action in actions:
        admission.watch_leader(run, record, event.at_ms)
        run.moves.index.sort(record, action)
        _tell(run, record, event.at_ms)
    for record in unsent:
        # Directories may have been as the plan wants them from the first: nobody moved anything.
        if record.status is MoveStatus.COMPLETE and record.move.original != record.move.target:
            run.problems.passing.pop(f"{OTHERS} {record.name}", None)
            run.note(f"was moved by {SOMEONE_ELSE}, as the plan does", record.name)
    for record, was_refused in begun_again:
        if record.status is not MoveStatus.CANCELLING:
            when = "while the cluster refused it to the run" if was_refused else "after the run had cancelled it"
            run.note(f"was reassigned by {SOMEONE_ELSE} {when}; that is left alone", record.name)
    return actions


def _tell(run: Run, record: MoveRecord, at_ms: int) -> None:
    """Report problems that begin or end with the observation of a move."""
    is_waiting = record.status is MoveStatus.PLANNED and record.leaderless_since_ms is not None
    sentence = "had no leader when it was to start; nothing is sent before it has one"
    run.tell("leader", at_ms, *([sentence] if is_waiting else ()), of=record.name)
    run.tell(OTHERS, at_ms, *([record.wait_for_others] if record.is_of_others else ()), of=record.name)
    if record.status not in IN_FLIGHT:
        run.tell("cancelling", at_ms, of=record.name)
        run.tell("cancellation", at_ms, of=record.name)


def _choose(run: Run, ready: Iterable[MoveRecord], at_ms: int) -> phases.Names:
    """Choose the moves that start now among those that wait and those to be sent again.

    One that was sent without an answer may be in progress: it goes first, and no other takes its slot.
    """
    admission.foresee(run, at_ms)
    again = [record for record in ready if record.status is MoveStatus.SENT]
    names = {record.name for record in again}
    moving = [record for record in run.moves.in_flight if record.name not in names]
    in_flight = [candidate(record) for record in moving]
    time, pace = admission.time_left(run, moving, at_ms), run.control.pace
    saturation = None if pace.is_eager else run.moves.speed.saturation(in_flight)
    queue, counts = run.moves.index.queue, InFlight.of(pace.caps, in_flight)
    rank = ranking(pace.order, add_left(queue.left.copy(), in_flight))
    brokers, named = admission.OpenBrokers(run), admission.TakenLists(run)
    lists, disks = throttling.list_room(run), run.health.disk_budget.copy()
    budgets = [one for one in (brokers, named, saturation, disks, time, lists) if one is not None]
    unanswered = choose_from(_alone(again, may_begin=True, rank=rank), counts, budgets)
    for waiting in unanswered.waiting:
        counts.add(candidate(run.moves.records[waiting.topic_partition]))
    routes = queue.open_routes(pace.order, counts, saturation)
    choice = choose_from(_alone(again, *routes, may_begin=False, rank=rank), counts, budgets)
    choice = NextMoves((*unanswered.starting, *choice.starting), (*unanswered.waiting, *choice.waiting))
    admission.note_stuck(run, choice, at_ms)
    run.throttle.full_lists = frozenset(lists.full)
    return choice.starting


def _alone(records: Iterable[MoveRecord], *routes: RouteQueue, may_begin: bool, rank: Rank) -> PriorityMerge:
    """These records, each as a route queue of its own, and further route queues."""
    own = ((startable(record),) for record in records if record.may_begin is may_begin)
    return PriorityMerge((*own, *routes), rank)


def proceed(run: Run, starting: phases.Names, cancelling: phases.Names) -> Next:
    """Cancel moves without a destination, then start those that may start.

    A move that was sent without an answer is sent again in any case: it may be in progress.
    """
    records = run.moves.records
    given_up = (record for record in run.moves.in_flight if record.is_given_up)
    moving = (record.name for record in given_up if record.status is MoveStatus.MOVING)
    if names := tuple(dict.fromkeys((*cancelling, *moving))):
        return Next(phases.Cancelling(), (instructions.CancelMoves(names),))
    active = (name for name in starting if records[name].status in ACTIVE)
    is_held = admission.is_held_by_guards(run)
    return _check_then_send(run, tuple(n for n in active if not is_held or records[n].may_begin))


# --- the throttle before a start -----------------------------------------------------------------------------------


def _check_then_send(run: Run, starting: phases.Names) -> Next:
    """Re-read the throttle immediately before changing it.

    Lists are set to wanted entries: unread, that would silently bring back entries that others removed.
    """
    changes = _listing(run, starting)
    topics = _topics(starting, changes)
    if throttling.is_check_due(run, topics):
        return Next(phases.CheckingThrottle(starting, topics), (throttling.check(run, topics),))
    if starting and not throttling.allows_start(run):
        return _list_then_send(run)
    return _set_then_send(run, starting, changes)


def _topics(starting: phases.Names, changes: Iterable[throttle_ledger.ConfigOverride]) -> frozenset[ConfigResource]:
    """Topics of starting moves, or whose lists are about to be changed."""
    changing = (override.key.resource for override in changes if override.is_list)
    return frozenset((*(ConfigResource.topic(name.topic) for name in starting), *changing))


def _after_throttle_check(run: Run, state: phases.CheckingThrottle, event: events.ThrottleChecked) -> Next:
    """Send a batch only if its throttle is known and ours."""
    known = run.throttle.foreign
    run.throttle.close_gone(event.gone)
    asked = throttling.check(run, state.topics).overrides
    throttling.take_in_check(run, event.at_ms, (one.key for one in asked), event.differ, event.unread)
    run.throttle.checked_ms, run.throttle.unread = event.at_ms, event.unread
    if run.throttle.foreign != known:
        run.health.checked_ms = None  # The guards report it at the next inspection.
    is_clear = throttling.allows_start(run) and not event.unread
    return _list_then_send(run, state.starting if is_clear else ())


# --- the lists of throttled replicas -------------------------------------------------------------------------------


def _list_then_send(run: Run, starting: phases.Names = ()) -> Next:
    return _set_then_send(run, starting, _listing(run, starting))


def _set_then_send(run: Run, starting: phases.Names, changes: tuple[throttle_ledger.ConfigOverride, ...]) -> Next:
    return (
        Next(phases.SettingLists(starting), (instructions.SetThrottle(changes),)) if changes else _send(run, starting)
    )


def _listing(run: Run, starting: phases.Names) -> tuple[throttle_ledger.ConfigOverride, ...]:
    """Changes that list exactly the replicas that copy now or are about to; none while the end is near.

    Rates that follow the traffic, or clients, are changed with them, and settings in doubt are set again.
    """
    throttle, limit, found = run.throttle, run.control.rates, run.throttle.found
    if not found or not run.moves.are_left:
        return ()
    flows = _present_flows(run, starting) if limit.is_limited else {}
    is_followed = limit.adaptive is not None or throttling.follows_clients(run) or throttle.unset
    rates = throttling.wanted_rates(run, starting) if is_followed else {}
    doubtful = {ConfigResource.topic(record.name.topic) for record in run.moves.in_flight if record.is_lost}
    changes = (
        throttle.of(key).change_to(value, again=key.resource in throttle.unset)
        for key, value in (throttle_ledger.wanted_lists(flows, found | throttle.adopted) | rates).items()
        if not (throttling.is_left_alone(run, key) or key.resource in doubtful)
    )
    return tuple(change for change in changes if change is not None)


def _present_flows(run: Run, starting: phases.Names) -> throttle_ledger.Flows:
    """Brokers between which data flows now, or is about to: without the copies that have caught up."""
    lagging = {record.name: (record, record.joining) for record in run.moves.copying_with(starting)}
    return {
        name: ThrottledMove(tuple(sorted(record.step.original)), brokers)
        for name, (record, brokers) in sorted(lagging.items())
        if brokers
    }


def _after_listing(run: Run, state: phases.SettingLists, event: events.ThrottleSet) -> Next:
    """Start nothing without its throttle; moves in flight are still observed."""
    throttle = run.throttle
    confirm(run, event)
    run.tell(SETTING, event.at_ms, *event.problems)
    if not event.problems:
        throttle.unset_since_ms = None
        return _send(run, state.starting)
    throttle.unset_since_ms, is_tried_again = phases.within(throttle.unset_since_ms, event.at_ms, UNSET_PATIENCE_MS)
    if run.moves.under_way or not throttle.unset or is_tried_again:
        return Next(phases.Waiting(), (instructions.Wait(),))
    return fail_without_throttle(run, event.at_ms, SETTING, event.problems)


def fail_without_throttle(run: Run, at_ms: int, kind: str, problems: tuple[str, ...]) -> Next:
    """Start nothing without its throttle. Only while nothing is under way: that must be watched to its end."""
    for record in run.moves.in_flight:
        record.unsend()
    run.note_for_good(kind, problems)
    run.note("the throttle could not be set, so nothing more was started")
    return finishing.restore(run, phases.Afterwards.FAIL) if run.throttle.open else Next(phases.Failed(at_ms))


# --- sending and cancelling ----------------------------------------------------------------------------------------


def _send(run: Run, starting: phases.Names) -> Next:
    now, remaining = starting[:MOVES_PER_REQUEST], starting[MOVES_PER_REQUEST:]
    if now:
        steps = [run.moves.records[name].step for name in now]
        log_dirs = {replica: path for step in steps for replica, path in step.log_dir_paths.items()}
        targets = {step.topic_partition: step.target for step in steps}
        changing = frozenset(step.topic_partition for step in steps if len(step.target) != len(step.original))
        return Next(phases.Submitting(remaining), (instructions.SubmitMoves(targets, log_dirs, changing),))
    return Next(phases.Waiting(), (instructions.Wait(),)) if run.moves.are_left else finishing.elect(run)


def _note_sending(run: Run, state: phases.Submitting, event: events.SubmissionIntended) -> Next:
    for name in event.partitions:
        record = run.moves.records[name]
        run.health.disk_budget.promise(startable(record))
        record.sent(event.at_ms, run.identity.run_id)
        run.health.disk_budget.note_leaving(record.name, record.step.reassignment.removing)
        run.moves.index.sort(record)
    return Next(state)


def _after_sending(run: Run, state: phases.Submitting, event: events.MovesSubmitted) -> Next:
    """Continue sending while observations are fresh; after a lost answer, observe before sending more."""
    records = run.moves.records
    for name in event.accepted:
        records[name].accepted()
    for refusal in event.deferred:
        records[refusal.topic_partition].submissions.answered(refusal.message)
    for refusal in event.refused:
        record = records[refusal.topic_partition]
        is_begun = record.name in event.begun
        record.refused(event.at_ms, f"the cluster refused it: {refusal.message}", is_begun=is_begun)
        run.moves.index.sort(record)
    if state.remaining and _may_send_on(run, event):
        return _check_then_send(run, state.remaining)
    return enter(run)


def _may_send_on(run: Run, event: events.MovesSubmitted) -> bool:
    is_fresh = event.at_ms - run.moves.observed_ms < admission.FRESH_MS
    return (
        is_fresh
        and not (event.unknown or event.deferred)
        and run.control.wind_down is None
        and not admission.is_held_by_guards(run)
    )


def _wind_down(run: Run, actions: Sequence[tuple[MoveRecord, NextAction]], at_ms: int) -> Next:
    """The run was cancelled: start nothing, and cancel moves in flight if requested, but for those of others.

    Moves that may finish are guarded as before: their throttle may be removed, their destination may die.
    """
    sent = [r for r, action in actions if r.status is MoveStatus.SENT and action is NextAction.SUBMIT]
    # Moves that may still take effect are cancelled: the answer tells whether they did.
    unsent = [record for record in sent if not (record.submissions.unanswered or record.rearranging)]
    for record in (*unsent, *(record for record in run.moves.active if record.status is MoveStatus.PLANNED)):
        record.cancelled(at_ms)
        run.moves.index.sort(record)
        _tell(run, record, at_ms)
    cancels_all = run.control.wind_down is WindDown.CANCEL
    cancelling = tuple(
        record.name
        for record, action in actions
        if action is NextAction.CANCEL
        or (record.status is MoveStatus.SENT and action is NextAction.SUBMIT)
        or (cancels_all and record.is_under_way and not record.is_diverged)
    )
    if cancelling:
        return Next(phases.Cancelling(), (instructions.CancelMoves(cancelling),))
    return _check_then_proceed(run, (), (), at_ms)


def _note_cancelling(run: Run, state: phases.Cancelling, event: events.CancelIntended) -> Next:
    for name in event.partitions:
        record = run.moves.records[name]
        had_none = record.is_idle  # there was nothing to cancel yet, which is no failure
        record.cancelling(event.at_ms, run.identity.run_id)
        if record.cancellations.count > LEAST_ATTEMPTS and not had_none:
            sentence = f"is in flight still: cancelling it had no effect {LEAST_ATTEMPTS} times"
            run.tell("cancelling", event.at_ms, sentence, of=name)
    return Next(state)


def _after_cancelling(run: Run, _: phases.Cancelling, event: events.MovesCancelled) -> Next:
    """Observe after a refusal too: most often the move was just over."""
    for name in event.idle:
        run.moves.records[name].is_idle = True
    for name in (*event.accepted, *event.idle):
        run.moves.records[name].cancellations.unanswered = 0
    for name in event.accepted:
        # A submission without an answer may begin the move after its cancellation.
        record = run.moves.records[name]
        record.is_list_cancelled = not record.submissions.may_take_effect_later(event.at_ms)
    why: dict[TopicPartition, list[str]] = {name: [] for name in (*event.accepted, *event.idle)}
    for refusal in event.refused:
        name = refusal.topic_partition
        why.setdefault(name, []).append(f"could not be cancelled: {refusal.message}")
    for name, sentences in why.items():
        run.tell("cancellation", event.at_ms, *sentences, of=name)
    return observe(run)


# --- time, and a cluster that does not answer ----------------------------------------------------------------------


def _after_waiting(run: Run, state: phases.Waiting, event: events.TimePassed) -> Next:
    if admission.sleeps_until_window(run, event.at_ms):
        return Next(state, (instructions.Wait(),))
    if throttling.is_measurement_due(run, event.at_ms):
        return Next(phases.MeasuringTraffic(), (throttling.measurement(run),))
    return observe(run)


def after_wait(run: Run, event: events.Event) -> phases.MeasuringTraffic | phases.Observing:
    """The state before an event whose preceding TimePassed is not journaled."""
    return phases.MeasuringTraffic() if isinstance(event, events.TrafficMeasured) else _observing(run)


def _after_measuring(run: Run, _: phases.MeasuringTraffic, event: events.TrafficMeasured) -> Next:
    throttling.take_in_traffic(run, event)
    return observe(run)


def _call_failed(run: Run, _: object, event: events.CallFailed) -> Next:
    """An unreachable cluster may come back by itself; a permission does not, so it is reported at once."""
    run.tell(PERMISSION, event.at_ms, *([event.message] if is_of_permission(event.message) else ()))
    if phases.within(run.health.silent_since_ms, event.at_ms, OUT_OF_REACH_MS)[1]:
        return Next(phases.Waiting(), (instructions.Wait(),))
    run.note(f"the cluster was out of reach for {OUT_OF_REACH_MS // 60_000} minutes: {event.message}")
    return Next(phases.Paused())


SENT = (phases.Submitting, phases.Waiting, phases.Electing, phases.Restoring)
"""States after sending: also those of finishing, when no move is left."""

ROWS: Rows = {
    (phases.Observing, events.MovesObserved): row(
        _after_observation,
        phases.Observing,
        phases.CheckingHealth,
        phases.Cancelling,
        phases.CheckingThrottle,
        phases.SettingLists,
        *SENT,
    ),
    (phases.CheckingThrottle, events.ThrottleChecked): row(_after_throttle_check, phases.SettingLists, *SENT),
    (phases.SettingLists, events.ThrottleIntended): row(record_overrides, phases.SettingLists),
    (phases.SettingLists, events.ThrottleSet): row(_after_listing, *SENT),
    (phases.Submitting, events.SubmissionIntended): row(_note_sending, phases.Submitting),
    (phases.Submitting, events.MovesSubmitted): row(
        _after_sending, phases.CheckingThrottle, phases.SettingLists, *SENT, phases.Observing
    ),
    (phases.Cancelling, events.CancelIntended): row(_note_cancelling, phases.Cancelling),
    (phases.Cancelling, events.MovesCancelled): row(_after_cancelling, phases.Observing),
    (phases.Waiting, events.TimePassed): row(_after_waiting, phases.Waiting, phases.MeasuringTraffic, phases.Observing),
    (phases.MeasuringTraffic, events.TrafficMeasured): row(_after_measuring, phases.Observing),
    **{
        (state, events.CallFailed): row(_call_failed, phases.Waiting, phases.Paused)
        for state in (
            phases.Observing,
            phases.CheckingThrottle,
            phases.Submitting,
            phases.Cancelling,
            phases.CheckingHealth,
        )
    },
}
