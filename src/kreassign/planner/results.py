"""A finished plan with its report: replica lists, independent evaluation, facts file, and answers to "why not".

`outcome_of` checks, explains and prices an assignment. `plan_of` and `assignment_of` translate between a plan
(broker ids, paths) and an assignment in arrays (indices). `explain` is about one partition.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import accumulate

import numpy as np

from kreassign.errors import IllegalPlan, InputError
from kreassign.model import TopicPartition, plan_facts
from kreassign.model.load import LoadBasis
from kreassign.model.plan import ANY_LOG_DIR, PartitionAssignment, Plan, absent, not_live, of_another_cluster
from kreassign.model.text import format_amount
from kreassign.planner.arrays import NOWHERE, BoolArray, FloatArray, ints
from kreassign.planner.check import topics
from kreassign.planner.check.cost import BytesBound, bytes_bound, changes_of, least_seconds, predict, rack_bytes
from kreassign.planner.check.evaluate import Evaluation, evaluate, full_log_dirs
from kreassign.planner.check.failover import STATES, Losses, losses
from kreassign.planner.check.racks import rack_excess
from kreassign.planner.problem.fingerprint import fingerprint
from kreassign.planner.problem.holds import Hold, first_names, held_sentences
from kreassign.planner.problem.policy import known_topic
from kreassign.planner.problem.problem import Assignment, Partitions, Problem
from kreassign.planner.reasons import distance_from_band, reasons_of

# Translate between a plan (broker ids, paths) and an assignment in arrays (indices).


def plan_of(problem: Problem, assignment: Assignment) -> Plan:
    """Replica lists of all changed partitions, in the order of the partitions.

    An entry's log directory is `any` where a replica keeps its directory or may use any.
    """
    return Plan(
        tuple(_plan_entry(problem, assignment, partition) for partition in changed_partitions(problem, assignment))
    )


def current_plan(problem: Problem, assignment: Assignment) -> Plan:
    """Present lists of the partitions that change: the rollback target, and the state expected at the start."""
    present = Assignment.current(problem.partitions)
    return Plan(
        tuple(_plan_entry(problem, present, partition) for partition in changed_partitions(problem, assignment))
    )


def changed_partitions(problem: Problem, assignment: Assignment) -> list[int]:
    """Ascending indices of the partitions that an assignment changes."""
    indices: list[int] = np.flatnonzero(changes_of(problem, assignment).differs).tolist()
    return indices


def assignment_of(problem: Problem, plan: Plan, cluster_id: str = "") -> Assignment:
    """The present assignment with the plan's replica lists in it.

    A replica that stays on its broker keeps its log directory unless the plan names another. Raises IllegalPlan, which
    names every unknown partition, broker and log directory, and repeated partitions; or the cluster, if it has none.
    """
    if strange := of_another_cluster(plan.topics, problem.partitions.topic_names, cluster_id):
        raise IllegalPlan((strange,))
    problems = [f"{name} is named more than once" for name in plan.duplicate_partitions]
    places = {entry.topic_partition: index_of(problem.partitions, entry.topic_partition) for entry in plan.assignments}
    problems += [
        f"{name}: {absent(name, problem.partitions.topic_names)}" for name, place in places.items() if place is None
    ]
    known = {int(broker): index for index, broker in enumerate(problem.brokers.ids)}
    dirs = directories(problem)
    problems += list(_unknown(problem, plan, known, dirs))
    if problems:
        raise IllegalPlan(tuple(problems))
    lists = {places[entry.topic_partition]: [known[broker] for broker in entry.replicas] for entry in plan.assignments}
    named = {places[entry.topic_partition]: _named_dirs(entry, known, dirs) for entry in plan.assignments}
    return _joined(problem.partitions, lists, named)


def index_of(partitions: Partitions, name: TopicPartition) -> int | None:
    """Index of a partition; None if there is no such partition."""
    try:
        topic = partitions.topic_names.index(name.topic)
    except ValueError:
        return None
    # Search for values of the array's own type, or NumPy converts the whole array each time.
    start, end = np.searchsorted(partitions.topics, np.array([topic, topic + 1], partitions.topics.dtype))
    number = np.array(name.partition, partitions.numbers.dtype)
    place = int(start + np.searchsorted(partitions.numbers[start:end], number))
    return place if place < end and partitions.numbers[place] == name.partition else None


def _plan_entry(problem: Problem, assignment: Assignment, partition: int) -> PartitionAssignment:
    places = slice(assignment.offsets[partition], assignment.offsets[partition + 1])
    hosts, chosen = assignment.replicas[places], assignment.log_dirs[places].tolist()
    now = problem.partitions
    present = dict(zip(now.list_of(partition).tolist(), now.log_dirs[now.span(partition)].tolist(), strict=True))
    paths = problem.log_dirs.paths if problem.log_dirs is not None else ()
    return PartitionAssignment(
        problem.partitions.name(partition),
        tuple(problem.brokers.ids[hosts].tolist()),
        tuple(
            ANY_LOG_DIR if directory in (NOWHERE, present.get(host)) else paths[directory]
            for host, directory in zip(hosts.tolist(), chosen, strict=True)
        ),
    )


def directories(problem: Problem) -> dict[tuple[int, str], int]:
    """Index of each log directory, by broker id and path."""
    dirs = problem.log_dirs
    if dirs is None:
        return {}
    ids = problem.brokers.ids[dirs.brokers].tolist()
    return {place: index for index, place in enumerate(zip(ids, dirs.paths, strict=True))}


def _unknown(problem: Problem, plan: Plan, brokers: dict[int, int], dirs: dict[tuple[int, str], int]) -> Iterable[str]:
    live = problem.brokers.ids[problem.brokers.is_live].tolist()
    for entry in plan.assignments:
        yield from (f"{entry.topic_partition}: {wrong}" for wrong in entry.wrong_in_itself)
        for broker, path in zip(entry.replicas, entry.log_dirs, strict=True):
            if broker not in brokers:
                yield f"{entry.topic_partition}: {not_live(broker, live)}"
            elif path != ANY_LOG_DIR and (broker, path) not in dirs:
                yield f"{entry.topic_partition}: broker {broker} has no log directory {path}"


def _named_dirs(
    entry: PartitionAssignment, brokers: dict[int, int], dirs: dict[tuple[int, str], int]
) -> dict[int, int]:
    return {
        brokers[broker]: dirs[broker, path]
        for broker, path in zip(entry.replicas, entry.log_dirs, strict=True)
        if path != ANY_LOG_DIR
    }


def _joined(now: Partitions, lists: dict[int | None, list[int]], named: dict[int | None, dict[int, int]]) -> Assignment:
    hosts = Assignment.current(now).lists()
    dirs = Assignment(now.offsets, now.log_dirs, now.log_dirs).lists()
    for partition, wanted in lists.items():
        assert partition is not None, "unknown partitions were refused before"
        present = dict(zip(hosts[partition], dirs[partition], strict=True)) | named[partition]
        hosts[partition], dirs[partition] = wanted, [present.get(host, NOWHERE) for host in wanted]
    return Assignment(
        ints([0, *accumulate(map(len, hosts))]),
        ints(host for one in hosts for host in one),
        ints(directory for one in dirs for directory in one),
    )


# The plan with its report.


@dataclass(frozen=True, slots=True)
class Origin:
    """Purpose of a plan and sources of its inputs. Without a rate, no time is predicted.

    `left` are sentences on what the plan was not to touch; `topic_ids` is by name, as far as known; `loads` is the
    basis of the rates; `rack_prices` are the prices of copies between racks. `limits` are the brokers' limits with
    their sources, `unknown_goals` the requested goals without any data.
    """

    task: str
    cluster_id: str | None = None
    snapshot_id: str | None = None
    rate_bytes_per_s: float | None = None
    left: tuple[str, ...] = ()
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    loads: LoadBasis | None = None
    rack_prices: plan_facts.RackPrices = plan_facts.NO_PRICES
    limits: tuple[plan_facts.GoalLimit, ...] = ()
    unknown_goals: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """A plan, the present lists of its partitions, its independent evaluation, and its facts file."""

    problem: Problem
    assignment: Assignment
    plan: Plan
    current: Plan
    evaluation: Evaluation
    facts: plan_facts.PlanFacts


def outcome_of(problem: Problem, assignment: Assignment, origin: Origin) -> Outcome:
    """Check, explain and price an assignment. Raises IllegalPlan if it breaks a rule of the problem."""
    evaluation = evaluate(problem, assignment)
    if evaluation.violations:
        raise IllegalPlan(evaluation.violations)
    plan = plan_of(problem, assignment)
    prediction, rate = None, origin.rate_bytes_per_s
    if rate is not None:
        least_s = 0.0 if evaluation.unfinished else least_seconds(_measured_by(problem, evaluation), rate)
        prediction = replace(predict(problem, assignment, rate), least_s=least_s)
    failover = _worst_losses(problem, assignment)
    facts = plan_facts.PlanFacts(
        plan_id=plan_facts.plan_id(plan),
        input_hash=fingerprint(problem),
        task=origin.task,
        totals=_totals(evaluation, _bound(problem, evaluation)),
        cluster_id=origin.cluster_id,
        snapshot_id=origin.snapshot_id,
        topic_ids={topic: origin.topic_ids[topic] for topic in plan.topics if topic in origin.topic_ids},
        loads=origin.loads,
        partitions=_partitions(problem, assignment, reasons_of(problem, assignment, evaluation)),
        brokers=_brokers(evaluation),
        means=means_of(evaluation),
        prediction=prediction,
        remaining=(
            *origin.left,
            *evaluation.out_of_reach,
            *evaluation.unfinished,
            *evaluation.above_limits.values(),
            *_missed(problem, evaluation),
            *topics.topics_outside(problem, assignment),
            *topics.uneven_topics(problem, assignment),
            *topics.leaders_elsewhere(problem, assignment),
            *topics.leaders_kept(problem, assignment),
            *topics.outside_broker_sets(problem, assignment),
            *full_log_dirs(problem, assignment),
            *(failover[1].sentences() if failover else ()),
        ),
        leader_racks=topics.leader_racks(problem, assignment),
        topic_leaders=topics.topic_leaders(problem, assignment),
        racks=rack_bytes(problem, assignment, origin.rack_prices),
        limits=origin.limits,
        unknown_goals=origin.unknown_goals,
        uneven_topics=topics.uneven_topics_by_size(problem)[: plan_facts.MOST_UNEVEN],
        losses=tuple(one for state, when in zip(failover, STATES, strict=False) for one in state.worst(when)),
    )
    return Outcome(problem, assignment, plan, current_plan(problem, assignment), evaluation, facts)


def _missed(problem: Problem, evaluation: Evaluation) -> Iterator[str]:
    """Missed bands that the task aims at; a load above its limit is named for that alone."""
    aimed = problem.aimed_goals
    for miss in evaluation.misses():
        if miss.goal in aimed and (miss.broker, miss.goal) not in evaluation.above_limits:
            yield str(miss)


def _worst_losses(problem: Problem, assignment: Assignment) -> tuple[Losses, ...]:
    """Losses of one more broker or rack before and after the plan; empty unless failover is a goal."""
    if problem.rules.failover is None:
        return ()
    return losses(problem, Assignment.current(problem.partitions)), losses(problem, assignment)


def least_bytes(problem: Problem, evaluation: Evaluation) -> int:
    """Bytes that any plan as good must copy: to meet the bands if this one does, else only forced copies."""
    return _bound(problem, evaluation).total


def _bound(problem: Problem, evaluation: Evaluation) -> BytesBound:
    return BytesBound(0, 0, 0) if evaluation.unfinished else bytes_bound(_measured_by(problem, evaluation))


def _measured_by(problem: Problem, evaluation: Evaluation) -> Problem:
    """The problem that bounds a plan: without the bands if the plan misses any."""
    return replace(problem, bands=()) if evaluation.misses() else problem


def _totals(evaluation: Evaluation, bound: BytesBound) -> plan_facts.Totals:
    return plan_facts.Totals(
        moved_bytes=evaluation.moved_bytes,
        moves=evaluation.moves,
        leader_changes=evaluation.leader_changes,
        log_dir_bytes=evaluation.log_dir_bytes,
        log_dir_moves=evaluation.log_dir_moves,
        least_bytes=bound.total,
        binding=bound.binding,
    )


def _partitions(
    problem: Problem, assignment: Assignment, reasons: dict[int, tuple[plan_facts.Reason, ...]]
) -> tuple[plan_facts.PlannedPartition, ...]:
    return tuple(
        plan_facts.PlannedPartition(
            problem.partitions.name(partition),
            tuple(problem.brokers.ids[problem.partitions.list_of(partition)].tolist()),
            int(problem.partitions.size_bytes[partition]),
            _paths(problem, partition),
            reasons[partition],
        )
        for partition in changed_partitions(problem, assignment)
    )


def _paths(problem: Problem, partition: int) -> tuple[str, ...]:
    dirs = problem.log_dirs
    chosen = problem.partitions.log_dirs[problem.partitions.span(partition)].tolist()
    return () if dirs is None or NOWHERE in chosen else tuple(dirs.paths[directory] for directory in chosen)


def means_of(evaluation: Evaluation) -> tuple[plan_facts.GoalMean, ...]:
    """Mean load of the brokers for each goal, before and after."""
    return tuple(
        plan_facts.GoalMean(goal, unit, evaluation.mean(index, before=True), evaluation.mean(index))
        for index, (goal, unit) in enumerate(zip(evaluation.goals, evaluation.units, strict=True))
    )


def _brokers(evaluation: Evaluation) -> tuple[plan_facts.PlannedBroker, ...]:
    return tuple(
        plan_facts.PlannedBroker(
            broker,
            dict(zip(evaluation.goals, evaluation.before[index].tolist(), strict=True)),
            dict(zip(evaluation.goals, evaluation.after[index].tolist(), strict=True)),
            int(evaluation.bytes_in[index]),
            int(evaluation.bytes_out[index]),
            int(evaluation.peak_bytes[index]),
        )
        for index, broker in enumerate(evaluation.broker_ids)
    )


# Explain why the replicas of one partition move or stay.


def explain(outcome: Outcome, name: TopicPartition) -> tuple[str, ...]:
    """Sentences about one partition: the change and its reasons, and for each replica that stays, why.

    Raises InputError for an unknown partition.
    """
    partition = known_partition(outcome.problem.partitions, name)
    planned = [fact for fact in outcome.facts.partitions if fact.topic_partition == name]
    moved = [sentence for fact in planned for sentence in plan_facts.reason_sentences(fact.reasons)]
    return (_list_change(outcome, partition), *moved, *_staying(outcome, partition))


def known_partition(partitions: Partitions, name: TopicPartition) -> int:
    """The index of a partition. Raises InputError for an unknown one."""
    place = index_of(partitions, name)
    if place is None:
        known_topic(name.topic, partitions.topic_names)
        numbers = partitions.numbers[partitions.topics == partitions.topic_names.index(name.topic)]
        known = f": topic {name.topic} has partitions {numbers.min()} to {numbers.max()}" if numbers.size else ""
        raise InputError(f"there is no partition {name} in this cluster{known}")
    return place


def stay_sentences(outcome: Outcome, names: Iterable[TopicPartition]) -> Iterator[str]:
    """Why these partitions, which the plan does not change, stay where they are: one sentence per reason."""
    partitions = outcome.problem.partitions
    places = {name: index_of(partitions, name) for name in names}
    known = partitions.holds_of(place for place in places.values() if place is not None)
    yield from held_sentences((name, hold) for name, hold in known if hold)
    free = [*(name for name, hold in known if not hold), *(name for name, place in places.items() if place is None)]
    if free:
        yield f"{first_names(sorted(free))} came there while the plan was made; give the command again"


def _list_change(outcome: Outcome, partition: int) -> str:
    problem = outcome.problem
    before = problem.brokers.ids[problem.partitions.list_of(partition)].tolist()
    after = problem.brokers.ids[outcome.assignment.list_of(partition)].tolist()
    name = problem.partitions.name(partition)
    return f"{name} stays on {before}" if before == after else f"{name} goes from {before} to {after}"


def _staying(outcome: Outcome, partition: int) -> Iterator[str]:
    problem, final = outcome.problem, outcome.assignment.list_of(partition).tolist()
    if not problem.partitions.may_move[partition]:
        hold = Hold(int(problem.partitions.holds[partition]))
        yield f"it {hold.keeps()}"
        return
    if problem.rules.only_forced and set(final) >= set(problem.partitions.list_of(partition).tolist()):
        yield "the task does not demand that a replica leaves its broker, and only what must moves"
        return
    if not problem.rules.between_brokers:
        yield "this task copies nothing from broker to broker"
        return
    for broker in problem.partitions.list_of(partition).tolist():
        if broker in final:
            why = _why_not(outcome, partition, broker, final)
            yield f"the replica on broker {problem.brokers.ids[broker]} stays: {why}"


def _why_not(outcome: Outcome, partition: int, broker: int, final: list[int]) -> str:
    problem, evaluation = outcome.problem, outcome.evaluation
    if problem.rules.only_forced:
        return "the task does not demand that it moves"
    barred = _barred(problem, partition, broker, final)
    free = ~np.logical_or.reduce(list(barred.values()))
    if not free.any():
        counts = (f"{int(brokers.sum())} {why}" for why, brokers in barred.items() if brokers.any())
        return f"no other broker can take it ({', '.join(counts)})"
    gain, goal = _gains(outcome, partition, broker, leads=final[0] == broker)
    gain = np.where(free, gain, -np.inf)
    best = int(np.argmax(gain))
    target, size = problem.brokers.ids[best], int(problem.partitions.size_bytes[partition])
    if gain[best] > 0:
        return (
            f"broker {target} could take it and {goal[best]} would gain, but for its {format_amount(size, 'B')} "
            "other moves gain more, or the budget is spent"
        )
    inside = not distance_from_band(evaluation.after[broker], evaluation.low[broker], evaluation.high[broker]).any()
    state = "its broker is within all bands" if inside else "its broker is outside a band"
    return f"{state}, and moving it, at best to broker {target}, would bring no broker nearer to its bands"


def _barred(problem: Problem, partition: int, broker: int, final: list[int]) -> dict[str, BoolArray]:
    """Brokers that cannot take the replica, (N,) each, by reason."""
    count = len(problem.brokers)
    there = np.isin(np.arange(count), final)
    wanted = problem.partitions.broker_sets[partition]
    others = problem.brokers.broker_sets != wanted if wanted >= 0 else np.zeros(count, bool)
    return {
        "has a replica already": there,
        "may receive nothing": ~problem.brokers.receiving & ~there,
        "of another broker set": others & ~there,
        "rack": _breaks_racks(problem, partition, broker, final) & ~there,
    }


def _breaks_racks(problem: Problem, partition: int, broker: int, final: list[int]) -> BoolArray:
    excess = rack_excess(problem, Assignment.current(problem.partitions))[partition]
    racks, limits = problem.rack_of_broker, problem.rack_limits
    others = np.array([one for one in final if one != broker], np.int64)
    rest = np.bincount(racks[others], minlength=int(racks.max()) + 1)
    result: BoolArray = rest[racks] >= limits.of(partition, rest, int(excess))
    return result


def _gains(outcome: Outcome, partition: int, broker: int, *, leads: bool) -> tuple[FloatArray, list[str]]:
    """Decrease of the distance from the bands (N,) by moving the replica to each broker, and the goal gaining most."""
    problem, evaluation = outcome.problem, outcome.evaluation
    columns = [band.goal.leader if leads else band.goal.follower for band in problem.bands]
    load = np.array([float(column(problem.partitions)[partition]) for column in columns])
    low, high, after = evaluation.low, evaluation.high, evaluation.after
    left = distance_from_band(after[broker], low[broker], high[broker]) - distance_from_band(
        after[broker] - load, low[broker], high[broker]
    )
    taken = distance_from_band(after, low, high) - distance_from_band(after + load, low, high)
    middle = np.maximum(after.mean(axis=0), np.finfo(float).tiny)
    relative = (left + taken) / middle
    return relative.sum(axis=1), [evaluation.goals[goal] for goal in np.argmax(relative, axis=1)]
