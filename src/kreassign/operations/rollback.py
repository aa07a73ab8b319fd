"""Roll back what a run really did, by another run."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from kreassign.admin import AdminClient
from kreassign.clock import SYSTEM_CLOCK, Clock
from kreassign.errors import ClusterError, Drifted, InputError
from kreassign.executor.brokers import listed_brokers
from kreassign.executor.client_guard import ClientGuard
from kreassign.executor.cluster.readings import live_of_two, ongoing_moves, partitions_of, topic_ids_of, topics_with
from kreassign.executor.cluster.requests import read_copies, read_factors
from kreassign.executor.events import RunStarted
from kreassign.executor.guards import NAMED, GuardName, Reaction
from kreassign.executor.history.run_history import (
    Present,
    RollbackPlan,
    UnreadableJournal,
    may_go_back,
    read_history,
    rollback_plan,
)
from kreassign.executor.journal import first_event
from kreassign.executor.preflight import hindrances, prepare, read_cluster
from kreassign.executor.preview import RunPreview
from kreassign.executor.throttle_ledger import FoundThrottles
from kreassign.model import Partition, TopicPartition, TopicPartitionReplica
from kreassign.model.authorization import error_text
from kreassign.model.pace import PaceChange, Schedule
from kreassign.model.plan_facts import PlanOrigin, is_another
from kreassign.model.run import MoveHistory, RunHistory
from kreassign.model.text import agreeing, counted, each_partition
from kreassign.model.throttle import NO_THROTTLE, ThrottleRates
from kreassign.operations import run_journals, steering
from kreassign.operations.broker_changes import read_maintenance
from kreassign.operations.connect import Warn, tell_nobody, warn_program, warn_without_topic_ids
from kreassign.operations.list_owners import Later, OpenList, changed_by, later_runs
from kreassign.operations.plan_files import PlanFile
from kreassign.operations.run import (
    RunContext,
    RunRequest,
    cancel_interrupted_run,
    new_run_id,
    preview_run,
    refuse_unless_free,
    start_run,
    with_others,
)
from kreassign.operations.run_journals import LAST, InForce, find_journal, is_active, refuse_run_of_other_cluster
from kreassign.operations.run_outlook import Effects, outages_of, refuse_changed, refuse_drift
from kreassign.report.text import format_bytes

NO_CHANGE = PaceChange()


@dataclass(frozen=True, slots=True)
class RollbackRequest:
    """Run to undo, and settings: by default those of the run, except its hours.

    `is_stepwise`: whether partitions go back one replica at a time; None: as in the run.
    """

    run_id: str
    throttle: ThrottleRates = NO_THROTTLE
    guards: Mapping[GuardName, Reaction] = field(default_factory=dict)
    pace: PaceChange = NO_CHANGE
    found: FoundThrottles = FoundThrottles.REFUSE
    is_stepwise: bool | None = None
    clients: ClientGuard | None = None

    def is_stepwise_after(self, undone: RunHistory) -> bool:
        """True if partitions go back from this run one replica at a time."""
        return undone.pace.is_stepwise if self.is_stepwise is None else self.is_stepwise


@dataclass(frozen=True, slots=True)
class Rollback:
    """A run to undo, its rollback plan, and the run that executed it; None if not needed, or not yet executed.

    If the run to undo was itself a rollback, it `undoes` the run of this id: then moves go forward again.
    `in_flight` moves of a run that is to end first are cancelled, and not in the plan. `factors` has a sentence per
    change of replication factors, `outages` one per topic whose producers with acks=all are refused meanwhile. `ahead`
    is the run of a preview; None if none is needed, or if the run to undo must end first.
    """

    undone: RunHistory
    plan: RollbackPlan
    run: RunHistory | None = None
    undoes: str | None = None
    in_flight: int = 0
    factors: tuple[str, ...] = ()
    outages: tuple[str, ...] = ()
    ahead: RunStarted | None = None


def roll_back(
    client: AdminClient, request: RollbackRequest, context: RunContext, clock: Clock = SYSTEM_CLOCK
) -> Rollback:
    """End the run if it goes on, and undo it. Raises InputError, IllegalPlan, ClusterError."""
    return start_rollback(client, end_run_to_undo(client, request, context, clock), request, context, clock)


# The rollback that a guard demanded.


def is_demanded(run: RunHistory) -> bool:
    """True if the run has ended, and a guard demanded its rollback."""
    return run.wants_rollback and run.ended_ms is not None


def demand_sentence(run_id: str, why: str = "") -> str:
    """A sentence about a rollback that a guard demanded and that was not made."""
    return (
        f"a guard demanded the rollback of run {run_id}, and it was not made: {why and f'{why}; '}"
        f"`kreassign rollback {run_id}` makes it, or says what is in its way"
    )


# Prepare and begin.


def preview_rollback(client: AdminClient, request: RollbackRequest, context: RunContext) -> Rollback:
    """Predict a rollback of the run in its present state; changes nothing.

    Raises what `start_rollback` would raise before it begins, if the run to undo has ended.
    """
    path = _journal(client, request.run_id, context)
    found = _prepared(client, path, read_history(path), request, context)
    if not len(found.plan.plan) or not is_settled(found.undone):
        return found
    return replace(found, ahead=_prepared_run(client, found, request, context))


def end_run_to_undo(
    client: AdminClient, request: RollbackRequest, context: RunContext, clock: Clock = SYSTEM_CLOCK
) -> Rollback:
    """Cancel the run at once if it goes on or was interrupted; return the rollback then."""
    path = _journal(client, request.run_id, context)
    return _prepared(client, path, _ended(client, path, context, clock), request, context)


def _prepared(
    client: AdminClient, path: Path, done: RunHistory, request: RollbackRequest, context: RunContext
) -> Rollback:
    is_stepwise = request.is_stepwise_after(done)
    in_flight = () if is_settled(done) else _in_flight(client, done)
    to_undo = replace(done, moves=tuple(move for move in done.moves if move.topic_partition not in in_flight))
    names = {move.topic_partition for move in to_undo.moves}
    later = later_runs(path, to_undo, context.state_dirs, names)
    maintained = partial(reordered_by_maintenance, client, context)
    plan = plan_rollback(client, to_undo, context.warn, later, is_stepwise=is_stepwise, maintained=maintained)
    factors = read_factors(client, plan.plan.replicas, plan.expected).sentences
    outages = outages_of(client, plan.plan.replicas, _rates(request, done)).sentences
    undoes = first_event(path).undoes
    return Rollback(done, plan, undoes=undoes, in_flight=len(in_flight), factors=factors, outages=outages)


def _in_flight(client: AdminClient, run: RunHistory) -> Collection[TopicPartition]:
    """Partitions that this run moves still, by its journal and the cluster."""
    unended = [move.topic_partition for move in run.moves if move.submitted_ms is not None and move.ended_ms is None]
    return ongoing_moves(client, unended).keys()


def _rates(request: RollbackRequest, done: RunHistory) -> ThrottleRates:
    """The throttle asked for, by default that of the run."""
    return request.throttle if request.throttle != NO_THROTTLE else done.rates


def start_rollback(
    client: AdminClient,
    prepared: Rollback,
    request: RollbackRequest,
    context: RunContext,
    clock: Clock = SYSTEM_CLOCK,
    seen: Rollback | None = None,
) -> Rollback:
    """Undo, by a run that is checked, throttled, journaled and resumable like any other; an empty plan does nothing.

    Raises Drifted if it would do anything else than the run of the preview that was `seen`; of a run that went on then,
    also what it did since is undone (`done_since`).
    """
    if seen is not None and not is_settled(seen.undone):
        _refuse_changed_since(seen, prepared)
    # What the preview warned of was read.
    quiet = context if seen is None else replace(context, warn=tell_nobody)
    started = _prepared_run(client, prepared, request, quiet, clock) if len(prepared.plan.plan) else None
    if seen is not None and is_settled(seen.undone):
        refuse_drift(seen.ahead, started)
    if started is None:
        return prepared
    context = replace(context, journal_to=context.destination(prepared.undone.journal_to))
    return replace(prepared, run=start_run(client, started, context, clock=clock))


def _refuse_changed_since(seen: Rollback, prepared: Rollback) -> None:
    """Raise Drifted if a move that had ended when the preview was made goes back otherwise than shown.

    What the run had not ended, it has changed itself since: a step, or a directory of several.
    """
    then, now = _steps_back(seen.plan), _steps_back(prepared.plan)
    ended = (move.topic_partition for move in seen.undone.moves if move.ended_ms is not None)
    compared = [name for name in ended if name in then]
    try:
        refuse_changed({name: then[name] for name in compared}, {name: now[name] for name in compared if name in now})
    except Drifted as error:
        over = f"run {prepared.undone.run_id} has ended ({prepared.undone.state}), and is not undone"
        raise Drifted(f"{over}: {error}", differences=error.differences) from error


def _steps_back(plan: RollbackPlan) -> Effects:
    """Each partition of the plan with the list that it has now, and the one that it gets."""
    return {one.topic_partition: (plan.expected[one.topic_partition], one) for one in plan.plan.assignments}


def done_since(seen: Rollback, prepared: Rollback) -> str:
    """A sentence about what goes back otherwise than was seen, because the run went on; "" if nothing does."""
    then, now = _steps_back(seen.plan), _steps_back(prepared.plan)
    changed = sorted(name for name in now if then.get(name) != now[name])
    new, further = [name for name in changed if name not in then], [name for name in changed if name in then]
    ways = ((new, "moves back, too"), (further, "moves back further than shown"))
    what = "; ".join(each_partition(names, NAMED, way) for names, way in ways if names)
    return f"run {seen.undone.run_id} went on since the preview: {what}" if what else ""


def preview_rollback_run(
    client: AdminClient, previewed: Rollback, request: RollbackRequest, context: RunContext
) -> RunPreview | None:
    """Predict the run of a rollback that was previewed; None if it has none. Changes nothing."""
    if previewed.ahead is None:
        return None
    of = _request(request, first_event(_journal(client, request.run_id, context)), previewed)
    return replace(preview_run(client, previewed.ahead, replace(of, measure_for_s=0.0)), factors=(), outages=())


def _journal(client: AdminClient, run_id: str, context: RunContext) -> Path:
    here = client.describe_cluster().cluster_id
    path = find_journal(context.state_dir, run_id, InForce(here))
    refuse_run_of_other_cluster(path, here)
    if run_id == LAST:
        refuse_unnamed_rollback(path)
    return path


def refuse_unnamed_rollback(path: Path) -> None:
    """Raise InputError if the run of this journal is a rollback: to roll that back, it has to be named."""
    if (undoes := first_event(path).undoes) is not None:
        raise InputError(
            f"the latest run, {path.stem}, is itself the rollback of run {undoes}: to roll it back moves everything "
            f"forward again. Name the run that is meant, `kreassign rollback {path.stem}` or an earlier one"
        )


def rollback_sentences(found: Rollback, *, has_cost: bool = True) -> Iterator[str]:
    """Effects of a rollback, as sentences that begin small and have no full stop; `has_cost`: with bytes copied."""
    undone, plan = found.undone, found.plan
    if not is_settled(undone):
        moves = f", with {counted(found.in_flight, 'move')} in flight" if found.in_flight else ""
        yield (
            f"run {undone.run_id} is not at its end ({undone.state}): it is cancelled first{moves}; what it completes "
            "until then moves back, too"
        )
    if found.undoes is not None:
        yield f"run {undone.run_id} was itself the rollback of run {found.undoes}: this moves everything forward again"
    if not len(plan.plan) and not plan.skipped and is_settled(undone):
        unmoved = "nothing moves back, for every partition that the run moved is where it was before"
        yield f"rollback of run {undone.run_id}: {unmoved}"
        return
    cost = f", {counted(plan.copy_count, 'copy', 'copies')}, {format_bytes(plan.copied_bytes)}" if has_cost else ""
    yield (
        f"rollback of run {undone.run_id}: {len(plan.plan)} of {counted(len(undone.moves), 'partition')} "
        f"{agreeing(len(plan.plan), 'move')} back{cost}"
    )


def is_settled(run: RunHistory) -> bool:
    """True if the run has ended and restored its throttle, so that a rollback need not end it first."""
    return run.ended_ms is not None and not run.throttle_residue


def _prepared_run(
    client: AdminClient,
    prepared: Rollback,
    request: RollbackRequest,
    context: RunContext,
    clock: Clock = SYSTEM_CLOCK,
) -> RunStarted:
    """The run of the rollback, checked against the cluster."""
    refuse_unless_free(client, context)
    now_ms = clock.now_ms()
    first = first_event(_journal(client, request.run_id, context))
    asked = _request(request, first, prepared)
    if request.throttle == NO_THROTTLE:  # a rate of the run for a broker that is down by now is no reason to refuse
        live = live_of_two(client)
        kept = tuple(one for one in asked.throttle.per_broker if one.broker in live)
        asked = replace(asked, throttle=replace(asked.throttle, per_broker=kept))
    # A rollback is never refused for producer outages, nor for factors: it restores what was there before the run.
    chosen = replace(asked.settings(new_run_id(now_ms), now_ms), allows_producer_outage=True, allows_factor_change=True)
    started = prepare(client, asked.plan.plan, chosen, expected=asked.plan.expected, origin=asked.plan.origin)
    started = replace(started, undoes=prepared.undone.run_id)
    # The run removed the throttles as requested: present ones were set since, and their owner is unknown.
    told = FoundThrottles.REFUSE if first.found is FoundThrottles.REMOVE else first.found
    found = told if request.found is FoundThrottles.REFUSE else request.found
    return with_others(client, started, found, context)


def plan_rollback(
    client: AdminClient,
    done: RunHistory,
    warn: Warn = warn_program,
    later: Iterable[Later] = (),
    *,
    is_stepwise: bool = False,
    maintained: Maintained = lambda _, __: {},
) -> RollbackPlan:
    """Plan the rollback for the present cluster. Warns if its journal has no topic ids.

    Runs that did anything `later`, the latest first, are named where they left what is not touched, and so is
    maintenance where lists are `maintained`.
    Raises ClusterError, also where a topic cannot be read: an unread topic may still exist.
    """
    named = {
        TopicPartitionReplica(change.broker, move.topic, move.partition)
        for move in done.moves
        for change in move.log_dirs
    }
    live = live_of_two(client)
    copies = read_copies(client, (one for one in named if one.broker in live))
    topic_ids = {move.topic: move.topic_id for move in done.moves}
    topics = topics_with(client, topic_ids, {move.topic_partition for move in done.moves})
    for error in (*topics.unknown.values(), *copies.unknown.values()):
        raise error
    present = Present(live, topic_ids_of(topics.known))
    unnamed = (move.topic for move in done.moves if move.topic_id is None and move.topic in present.topic_ids)
    warn_without_topic_ids(warn, f"the journal of run {done.run_id}", unnamed)
    partitions_now, locations = partitions_of(topics.known), copies.known
    back = rollback_plan(done.moves, partitions_now, locations, present)
    view = read_cluster(client, back.plan, back.expected, is_stepwise=is_stepwise)
    lists = _open_lists(done, partitions_now)
    of_runs = changed_by(lists, later, done.run_id)
    may_go = {move.topic_partition for move in done.moves if _is_as_left(move, partitions_now)}
    # What is as the run left it needs no record: where that cannot be read, it goes back all the same.
    open_lists = {name: one.replicas for name, one in lists.items() if name not in of_runs.keys() | may_go}
    of_maintenance = maintained(open_lists, present.topic_ids)
    # A partition that cannot be moved now must not prevent the others from going back.
    present = replace(present, hindrances=dict(hindrances(back.plan, view)), changed_by={**of_maintenance, **of_runs})
    return rollback_plan(done.moves, partitions_now, locations, present)


def _open_lists(done: RunHistory, now: Mapping[TopicPartition, Partition]) -> dict[TopicPartition, OpenList]:
    """Present lists of partitions that the run moved and that are not where they were before."""
    return {
        name: OpenList(now[name].replicas, move.submitted_ms)
        for move in done.moves
        if move.submitted_ms is not None
        and (name := move.topic_partition) in now
        and now[name].replicas != move.undone_to
    }


def _is_as_left(move: MoveHistory, now: Mapping[TopicPartition, Partition]) -> bool:
    return move.topic_partition in now and may_go_back(move, now[move.topic_partition])


Maintained = Callable[[Mapping[TopicPartition, tuple[int, ...]], Mapping[str, str]], Mapping[TopicPartition, str]]
"""Words on the maintenance that left these lists, given the ids of topics."""


def reordered_by_maintenance(
    client: AdminClient,
    context: RunContext,
    lists: Mapping[TopicPartition, tuple[int, ...]],
    topic_ids: Mapping[str, str],
) -> dict[TopicPartition, str]:
    """Words on the maintenance that left these lists, by its record; none for those that it did not leave."""
    if not lists:
        return {}
    try:
        known = read_maintenance(client, context)
    except (ClusterError, InputError) as error:
        unread = f"whose record could not be read ({error_text(error)})"
        return dict.fromkeys(lists, f"changed since by somebody else or by maintenance, {unread}; look at it")
    found = {}
    for record in (known.doubtful, known.record):
        for name, replicas in lists.items():
            order, brokers = record.orders.get(name), sorted(record.brokers.keys() & set(replicas))
            if order is None or not brokers or not order.is_changed(replicas):
                continue
            if is_another(order.topic_id, topic_ids.get(name.topic)):
                continue
            way = f"`kreassign maintenance exit {','.join(map(str, brokers))}`"
            found[name] = f"as the maintenance of {listed_brokers(brokers)} left it since; roll back after {way}"
    return found


def is_in_place(client: AdminClient, path: Path, run: RunHistory, state_dirs: Iterable[Path]) -> bool:
    """True if a list is as this run left it, and no later one here made it so; also while that cannot be read."""
    names = {move.topic_partition for move in run.moves}
    try:
        topics = topics_with(client, {name.topic for name in names}, names)
    except ClusterError:
        return True
    now, later = partitions_of(topics.known), tuple(later_runs(path, run, state_dirs, names))
    if topics.unknown or any(isinstance(one, UnreadableJournal) for one in later):
        return True
    changed = changed_by(_open_lists(run, now), later, run.run_id)
    present = Present(topic_ids=topic_ids_of(topics.known), changed_by=changed)
    return len(rollback_plan(run.moves, now, present=present).plan) > 0


def _request(request: RollbackRequest, first: RunStarted, prepared: Rollback) -> RunRequest:
    """Settings of the run to undo, unless requested otherwise; not its hours, which may be over."""
    chosen = {setting.guard: setting.reaction for setting in first.guards} | dict(request.guards)
    # A rollback that is itself rolled back would repeat what a guard wanted undone.
    reactions = {
        guard: Reaction.CANCEL if reaction is Reaction.ROLLBACK else reaction for guard, reaction in chosen.items()
    }
    pace = replace(prepared.undone.pace, hours=Schedule(), is_stepwise=request.is_stepwise_after(prepared.undone))
    limit_s = None if first.lost_after_ms is None else first.lost_after_ms / 1000
    plan, done = prepared.plan, prepared.undone
    origin = PlanOrigin(done.cluster_id, {move.topic: move.topic_id for move in done.moves if move.topic_id})
    file = PlanFile(plan.plan, dict(plan.expected), None, origin)
    rates, pace = _rates(request, prepared.undone), pace.changed(request.pace)
    clients = request.clients or first.clients
    return RunRequest(file, rates, reactions, pace, give_up_after_s=limit_s, clients=clients)


def _ended(client: AdminClient, path: Path, context: RunContext, clock: Clock) -> RunHistory:
    """End the run: cancel it at once if it goes on or was interrupted."""
    if is_active(path):
        steering.cancel(path, is_now=True)
        with context.watch(path.stem, None) as show:
            for progress in run_journals.watch(path):
                if show is not None:
                    show(progress)
        return read_history(path)
    found = read_history(path)
    if not is_settled(found):
        return cancel_interrupted_run(client, path, context, clock, is_now=True)
    return found
