"""Continue after a health check: record verdicts, plan lost moves again, throttle brokers that are back."""

from __future__ import annotations

from kreassign.executor.events import CallFailed, HealthObserved, MovesReplanned, VerdictsRecorded
from kreassign.executor.instructions import RecordVerdicts, ReplanMoves, Wait
from kreassign.executor.state import admission, moving, phases, preparing
from kreassign.executor.state.move import MoveRecord, Replan
from kreassign.executor.state.run import Next, Rows, Run, row
from kreassign.executor.throttle_ledger import ConfigKey
from kreassign.model import ConfigResource
from kreassign.model.run import ACTIVE, MoveStatus
from kreassign.model.throttle import FOLLOWER_THROTTLED_RATE

# Replanning: other destinations for moves whose destination is lost, if the operator asked for that.
#
#     CheckingHealth ─▶ [RecordingVerdicts] ─▶ Replanning ─▶ Preparing ─▶ [Throttling] ─▶ Observing
#
# The new targets are chosen and recorded before anything is cancelled, so that a process that resumes the run knows
# both the original and the new target. New destinations are throttled before they receive anything.


def moves_to_replan(run: Run) -> tuple[MoveRecord, ...]:
    """Moves to plan again.

    Moves sent without an answer are left out, because they may or may not be in progress; so are those in progress
    without a leader: there is nothing to copy from, and the controller cancels no move for which it would have to
    elect uncleanly.
    """
    lost = set(run.health.lost)
    if not (run.control.replans and lost) or run.control.wind_down is not None:
        return ()
    return tuple(
        record
        for record in run.moves.active
        if (record.is_waiting or (record.status is MoveStatus.MOVING and record.has_leader))
        and not (record.is_given_up or record.is_of_others)
        and lost.intersection(record.lagging)
    )


def begin_replanning(run: Run, records: tuple[MoveRecord, ...], returned: frozenset[int]) -> Next:
    """Request other destinations."""
    made = (record.wanted for record in run.moves.records.values() if record.status in ACTIVE | {MoveStatus.COMPLETE})
    settings = run.throttle.settings.values()
    known = frozenset(one.key for one in settings if one.is_open or one.found or one.original or one.adopted)
    question = ReplanMoves(
        tuple(record.move for record in records),
        run.health.lost,
        frozenset(record.name for record in records if record.status is MoveStatus.MOVING),
        tuple(made),
        run.control.rates,
        known,
        run.control.pace.disk_reserve,
        {record.name: run.traffic.writes.get(record.name, record.move.write_bytes_per_s) for record in records},
        run.identity.operator,
        run.control.avoid,
    )
    return Next(phases.Replanning(returned), (question,))


def _take_in_targets(run: Run, state: phases.Replanning, event: MovesReplanned) -> Next:
    run.throttle.live_brokers = tuple(sorted({*run.throttle.live_brokers, *state.returned}))
    run.tell(admission.REPLANNING, event.at_ms)
    if run.control.wind_down is None:  # A run cancelled meanwhile begins nothing elsewhere.
        _change_targets(run, event)
    return preparing.enter(run)


def _change_targets(run: Run, event: MovesReplanned) -> None:
    records, throttle = run.moves.records, run.throttle
    run.health.replaced |= set(event.lost)
    for one in event.targets:
        record = records[one.topic_partition]
        record.replan(Replan(event.at_ms, event.lost, one.before, one.target))
        run.moves.index.sort(record)
    for refusal in event.refused:
        record = records[refusal.topic_partition]
        lost = sorted(set(event.lost).intersection(record.lagging))
        record.give_up(event.at_ms, f"{admission.away_text(run, lost)}, and no other could be found: {refusal.message}")
        run.moves.index.sort(record)
    chosen = {broker for one in event.targets for broker in set(one.target).difference(one.before)}
    throttle.live_brokers = tuple(sorted({*throttle.live_brokers, *chosen}))
    if run.control.rates.is_limited:
        # As for brokers that are back: if their settings cannot be read now, nothing starts until they are.
        throttle.awaited |= {broker for broker in chosen if throttle.of(_rate_of(broker)).found is None}


def _rate_of(destination: int) -> ConfigKey:
    return ConfigKey(ConfigResource.broker(destination), FOLLOWER_THROTTLED_RATE)


def _could_not_ask(run: Run, _: phases.Replanning, event: CallFailed) -> Next:
    """The next inspection retries."""
    sentence = f"moves whose destination is lost could not be planned again yet: {event.message}"
    run.tell(admission.REPLANNING, event.at_ms, sentence)
    return Next(phases.Waiting(), (Wait(),))


def _after_check(run: Run, state: phases.CheckingHealth, event: HealthObserved) -> Next:
    starting, verdicts = admission.judge(run, state.starting, event)
    awaited = run.throttle.awaited.intersection(event.health.live)
    # Read their present settings before setting them again.
    returned = frozenset(one for one in awaited if ConfigResource.broker(one) not in event.health.unread_configs)
    if admission.are_news(run, verdicts):
        return Next(phases.RecordingVerdicts(starting, state.cancelling, returned), (RecordVerdicts(verdicts),))
    return _go_on(run, starting, state.cancelling, returned)


def _after_verdicts(run: Run, state: phases.RecordingVerdicts, event: VerdictsRecorded) -> Next:
    admission.take_in_verdicts(run, event)
    return _go_on(run, state.starting, state.cancelling, state.returned)


def _go_on(run: Run, starting: phases.Names, cancelling: phases.Names, returned: frozenset[int]) -> Next:
    if lost := moves_to_replan(run):
        return begin_replanning(run, lost, returned)
    if returned or run.throttle.is_due:
        run.throttle.live_brokers = tuple(sorted({*run.throttle.live_brokers, *returned}))
        return preparing.enter(run)
    return moving.observe(run) if run.control.wind_down is not None else moving.proceed(run, starting, cancelling)


_ONWARD = (
    phases.Observing,
    phases.Cancelling,
    phases.CheckingThrottle,
    phases.SettingLists,
    *moving.SENT,
    phases.Resuming,
    phases.Preparing,
    phases.Throttling,
    phases.Replanning,
)

ROWS: Rows = {
    (phases.CheckingHealth, HealthObserved): row(_after_check, phases.RecordingVerdicts, *_ONWARD),
    (phases.RecordingVerdicts, VerdictsRecorded): row(_after_verdicts, *_ONWARD),
    (phases.Replanning, MovesReplanned): row(
        _take_in_targets,
        phases.Resuming,
        phases.Preparing,
        phases.Throttling,
        phases.Observing,
        phases.Electing,
        phases.Restoring,
    ),
    (phases.Replanning, CallFailed): row(_could_not_ask, phases.Waiting),
}
