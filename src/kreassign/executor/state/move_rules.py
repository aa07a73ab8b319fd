"""Conclude from each observation of a move, in each of its states, and choose the action that it needs now.

A reassignment to the target is ours only if the journal has its submission, which is written before it is sent:

    journal                          listed with our target
    no submission, or all refused    of others: the move stays `planned`, and nothing is sent until that has ended
    a submission without an answer   perhaps ours, which nothing in Kafka tells: counts as ours, as written down
    a submission that was accepted   ours
    a cancellation that was          of others, who began it again: it is left alone, and the move is cancelled

What others have moved to the target is complete without a submission, so that a rollback leaves it alone. So it leaves
a step that others made, and all steps before it: it goes back to that list at most.

Directories are a request of their own, sent before the list: a broker may copy between its directories though the list
was refused, lost, or cancelled by others. They stay the run's, whoever moves the list. A move ends only once these
copies are cancelled too.

No single observation ends a move as the run does not expect it: that its partition is gone, is another one, or has
replicas that nobody planned counts once it was seen so for `DOUBT_MS`, and by two brokers (`cluster/readings.py`).

A move is complete when the controller does not list it and brokers show the target. If that would look the same
while replicas are still added, all replicas of the target have to be in sync as well: a controller that is not active
(any more) answers an empty list without an error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from kreassign.executor.events import PartitionObservation, PlacementState
from kreassign.executor.state.move import MoveRecord, NextAction
from kreassign.model import NO_LEADER
from kreassign.model.cluster import named_brokers
from kreassign.model.run import ACTIVE, SOMEONE_ELSE, WAS_DELETED, MoveStatus
from kreassign.model.text import counted

DOUBT_MS = 15_000
"""Brokers may lag behind the controller: an unexpected state counts only after this long without another one."""


def conclude(record: MoveRecord, at_ms: int) -> NextAction:
    """Conclude from the latest observation, and return the action that the move needs now."""
    if record.status not in ACTIVE or record.observation is None:
        return NextAction.NOTHING
    if record.status is MoveStatus.CANCELLING and record.rearranging:
        return _cancel_again(record, record.observation, at_ms)
    if record.is_begun_again:
        return _begun_again(record, at_ms)
    return RULES[record.status, record.observation.placement](record, record.observation, at_ms)


def _complete(record: MoveRecord, observation: PartitionObservation, at_ms: int) -> NextAction:
    record.awaited_replan = record.doubtful_since_ms = None
    if record.is_unsent:
        record.disown()
        if record.step.target != record.step.original:
            record.made_by_others = record.step.target
    if record.next_step():
        return _submit(record, observation, at_ms)
    record.status, record.ended_ms = MoveStatus.COMPLETE, at_ms
    return NextAction.NOTHING


def _gone(record: MoveRecord, _: PartitionObservation, at_ms: int) -> NextAction:
    return _fail_beyond_doubt(record, at_ms, f"its partition {WAS_DELETED}")


def _recreated(record: MoveRecord, _: PartitionObservation, at_ms: int) -> NextAction:
    problem = f"its topic {WAS_DELETED}, and another one created under its name, which is left alone"
    return _fail_beyond_doubt(record, at_ms, problem)


def _fail_beyond_doubt(record: MoveRecord, at_ms: int, problem: str) -> NextAction:
    if _is_beyond_doubt(record, at_ms):
        record.fail(at_ms, problem)
    return NextAction.NOTHING


def _is_beyond_doubt(record: MoveRecord, at_ms: int) -> bool:
    """True once an unexpected state has been seen for long enough."""
    if record.doubtful_since_ms is None:
        record.doubtful_since_ms = at_ms
    return at_ms - record.doubtful_since_ms >= DOUBT_MS


def _under_way(record: MoveRecord, _: PartitionObservation, __: int) -> NextAction:
    record.doubtful_since_ms = None
    record.accepted()
    return NextAction.NOTHING


def _of_others(record: MoveRecord, _: PartitionObservation, __: int) -> NextAction:
    record.leave_to_others()
    return NextAction.NOTHING


def _perhaps_ours(record: MoveRecord, observation: PartitionObservation, at_ms: int) -> NextAction:
    """Take the move for ours, unless each submission of its list was refused; directories are watched beside it."""
    if not record.was_refused:
        return _under_way(record, observation, at_ms)
    if not record.rearranging:
        return _of_others(record, observation, at_ms)
    record.doubtful_since_ms = None
    return NextAction.NOTHING


def _submit(record: MoveRecord, observation: PartitionObservation, at_ms: int) -> NextAction:
    """Wait for a leader: the controller accepts a move without one, but has nothing to copy from, so it never ends."""
    if observation.elsewhere:
        where = f"its copy on {named_brokers(observation.elsewhere)} was put into another directory since the plan"
        return _fail_beyond_doubt(record, at_ms, f"{where}; {SOMEONE_ELSE} moved it")
    record.doubtful_since_ms = None
    if observation.leader != NO_LEADER or not record.step.adding:
        record.leaderless_since_ms = None
        return NextAction.SUBMIT
    if record.leaderless_since_ms is None:
        record.leaderless_since_ms = at_ms
    return NextAction.NOTHING


def _send_again(record: MoveRecord, _: PartitionObservation, at_ms: int) -> NextAction:
    """Send the move again when that is due, or give it up after too many attempts."""
    attempts = record.submissions
    if record.refusal is not None:
        if attempts.had_time(at_ms):
            record.fail(at_ms, record.refusal)
        return NextAction.NOTHING
    if attempts.is_in_vain(at_ms):
        seconds = attempts.tried_ms(at_ms) // 1000
        answer = f"; it answered: {attempts.answer}" if attempts.answer else ""
        record.fail(
            at_ms,
            f"it was sent {counted(attempts.count, 'time')} in {seconds} s and the cluster showed no effect{answer}",
        )
        return NextAction.NOTHING
    return NextAction.SUBMIT if attempts.is_due(at_ms) else NextAction.NOTHING


def _unconfirmed(record: MoveRecord, observation: PartitionObservation, at_ms: int) -> NextAction:
    """An inactive controller lists nothing, so wait until all copies are in sync and in place for a while.

    They may be while another replica of the target is not: Kafka 4.3 completes such a move, earlier ones go on with it.
    """
    if record.status is MoveStatus.CANCELLING:
        return _cancel_unconfirmed(record, observation, at_ms)
    since_ms = record.doubtful_since_ms
    RULES[record.status, PlacementState.MOVING](record, observation, at_ms)
    record.doubtful_since_ms = None if record.lagging else since_ms
    if not record.lagging and _is_beyond_doubt(record, at_ms):
        return _complete(record, observation, at_ms)
    return NextAction.NOTHING


def _cancel_unconfirmed(record: MoveRecord, observation: PartitionObservation, at_ms: int) -> NextAction:
    """The active controller answers a cancellation: if it has nothing to cancel, the move is over."""
    record.doubtful_since_ms = None
    if not record.is_idle:
        return _cancel_again(record, observation, at_ms)
    if record.given_up is not None:
        record.fail(at_ms, record.given_up)
    elif record.awaited_replan is not None and record.lagging:
        ended = f"it ended with {named_brokers(record.lagging)} not in sync, before it could be cancelled"
        record.fail(at_ms, f"{ended}; use `kreassign plan repair`")
    else:
        return _complete(record, observation, at_ms)
    return NextAction.NOTHING


def _cancelled(record: MoveRecord, observation: PartitionObservation, at_ms: int) -> NextAction:
    """Without an answer of the controller a list without the move, and a broker that is behind, show the same.

    An accepted cancellation has cancelled one submission. One that was lost before may begin the move again, and a lost
    cancellation may cancel what is sent next: there is time for both. A controller that had nothing to cancel is asked
    again then.
    """
    submissions, cancellations = record.submissions, record.cancellations
    may_begin = submissions.was_lost or (record.is_idle and submissions.unanswered)
    may_be_hit = cancellations.was_lost and (record.awaited_replan is not None or record.is_postponed)
    if cancellations.unanswered and not _is_beyond_doubt(record, at_ms):
        return _cancel_again(record, observation, at_ms)
    if (may_begin and not submissions.had_time(at_ms)) or (may_be_hit and not cancellations.had_time(at_ms)):
        return NextAction.NOTHING
    if record.is_idle and submissions.unanswered and not submissions.had_time(cancellations.last_ms):
        return NextAction.CANCEL
    record.cancelled(at_ms)
    return NextAction.NOTHING


def _begun_again(record: MoveRecord, at_ms: int) -> NextAction:
    """Once it is no answer of a broker that lags behind the cancellation, the move is over."""
    if _is_beyond_doubt(record, at_ms):
        record.begun_again(at_ms)
    return NextAction.NOTHING


def _cancel_moving(record: MoveRecord, observation: PartitionObservation, at_ms: int) -> NextAction:
    """Cancel again, unless only brokers that are down may go on: nothing can be asked of them."""
    if not record.is_idle or not record.left_behind or record.rearranging:
        return _cancel_again(record, observation, at_ms)
    if observation.replicas != record.step.target or observation.replicas == record.step.original:
        return _cancelled(record, observation, at_ms)
    ended = (
        "its replicas had moved before it could be cancelled; `kreassign plan repair` replaces brokers that are lost"
    )
    record.fail(at_ms, record.given_up or ended)
    return NextAction.NOTHING


def _cancel_settling(record: MoveRecord, observation: PartitionObservation, at_ms: int) -> NextAction:
    """Brokers that are behind show the list of a move for a while that the controller has cancelled for us."""
    if record.cancellations.unanswered:
        return _cancel_again(record, observation, at_ms)
    if record.is_idle and not record.is_list_cancelled:  # the controller had nothing to cancel
        return _doubt(record, observation, at_ms)
    if _is_beyond_doubt(record, at_ms):
        record.cancelled(at_ms)
    return NextAction.NOTHING


def _cancel_again(record: MoveRecord, _: PartitionObservation, at_ms: int) -> NextAction:
    """Retry without limit: a move in progress has not ended, and its throttle stays."""
    return NextAction.CANCEL if record.cancellations.is_due(at_ms) else NextAction.NOTHING


def _drifted(record: MoveRecord, observation: PartitionObservation, at_ms: int) -> NextAction:
    were = f"its replicas were {list(observation.replicas)} and not {list(record.step.original)}"
    return _fail_beyond_doubt(record, at_ms, f"{were}, from which the plan starts; {SOMEONE_ELSE} changed it")


def _returned_to_plan(record: MoveRecord, observation: PartitionObservation, at_ms: int) -> NextAction:
    return (_submit if _is_our_order(record, observation) else _drifted)(record, observation, at_ms)


def _returned_unsent(record: MoveRecord, observation: PartitionObservation, at_ms: int) -> NextAction:
    return (_send_again if _is_our_order(record, observation) else _doubt)(record, observation, at_ms)


def _is_our_order(record: MoveRecord, observation: PartitionObservation) -> bool:
    """True if our own cancellation left the replicas in this order; otherwise others changed it."""
    return record.was_cancelled and observation.replicas in record.cancelled_to


def _partly_untouched(record: MoveRecord, observation: PartitionObservation, at_ms: int) -> NextAction:
    """A restarted broker has forgotten the directory of a copy; send it again. Anything else is unexpected."""
    if not record.step.log_dirs or observation.replicas != record.step.target:
        return _doubt(record, observation, at_ms)
    record.status = MoveStatus.SENT
    return _send_again(record, observation, at_ms)


def _doubt(record: MoveRecord, observation: PartitionObservation, at_ms: int) -> NextAction:
    # Brokers that are behind show a topic that the controller has deleted as they show a cancelled move.
    deleted = ", or deleted its topic" if observation.placement is PlacementState.SETTLING else ""
    return _fail_beyond_doubt(
        record,
        at_ms,
        f"it was no longer on its way to {list(record.step.target)}: the cluster showed the replicas "
        f"{list(observation.replicas)}; {SOMEONE_ELSE} cancelled or changed the move{deleted}",
    )


Rule = Callable[[MoveRecord, PartitionObservation, int], NextAction]

_STATUSES = (MoveStatus.PLANNED, MoveStatus.SENT, MoveStatus.MOVING, MoveStatus.CANCELLING)
_BY_PLACEMENT: Mapping[PlacementState, tuple[Rule, Rule, Rule, Rule]] = {
    #                            planned             sent               moving             cancelling
    PlacementState.UNTOUCHED:   (_submit,            _send_again,       _partly_untouched, _cancelled),
    PlacementState.MOVING:      (_of_others,         _perhaps_ours,     _under_way,        _cancel_moving),
    PlacementState.ARRIVED:     (_complete,          _complete,         _complete,         _complete),
    PlacementState.UNCONFIRMED: (_unconfirmed,       _unconfirmed,      _unconfirmed,      _unconfirmed),
    PlacementState.SETTLING:    (_doubt,             _doubt,            _doubt,            _cancel_settling),
    PlacementState.REORDERED:   (_returned_to_plan,  _returned_unsent,  _doubt,            _cancelled),
    PlacementState.DIVERGED:    (_drifted,           _doubt,            _doubt,            _doubt),
    PlacementState.DELETED:     (_gone,              _gone,             _gone,             _gone),
    PlacementState.RECREATED:   (_recreated,         _recreated,        _recreated,        _recreated),
}  # fmt: skip

RULES: Mapping[tuple[MoveStatus, PlacementState], Rule] = MappingProxyType({
    (status, placement): rule
    for placement, rules in _BY_PLACEMENT.items()
    for status, rule in zip(_STATUSES, rules, strict=True)
})  # fmt: skip
