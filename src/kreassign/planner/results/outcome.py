"""A finished plan with all that is to be said about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from kreassign.errors import IllegalPlan
from kreassign.model.load_basis import LoadBasis
from kreassign.model.plan import Plan
from kreassign.model.plan_facts import (
    MOST_UNEVEN,
    GoalMean,
    Limit,
    PlanFacts,
    PlannedBroker,
    PlannedPartition,
    Prediction,
    Reason,
    Totals,
    plan_id,
)
from kreassign.model.rack_prices import NO_PRICES, RackPrices
from kreassign.planner.arrays import NOWHERE
from kreassign.planner.check.bounds import BytesBound, bytes_bound, least_seconds
from kreassign.planner.check.changes import predict
from kreassign.planner.check.evaluate import Evaluation, evaluate
from kreassign.planner.check.failover import STATES, Losses, losses
from kreassign.planner.check.full_log_dirs import full_log_dirs
from kreassign.planner.check.leader_racks import leader_racks, leaders_elsewhere
from kreassign.planner.check.rack_bytes import rack_bytes
from kreassign.planner.check.topic_leaders import topic_leaders, uneven_topics
from kreassign.planner.check.topic_sizes import uneven_topics_by_size
from kreassign.planner.check.topic_spread import topics_outside
from kreassign.planner.problem.cluster import Assignment
from kreassign.planner.problem.problem import Problem, fingerprint
from kreassign.planner.results.plans import changed_partitions, current_plan, plan_of
from kreassign.planner.results.reasons import reasons_of


@dataclass(frozen=True, slots=True)
class Origin:
    """What a plan is for and where its inputs come from. Without a rate, no time is predicted.

    `left` are sentences on what the plan was not to touch; `topic_ids` is by name, as far as known; `loads` is what the
    rates of the problem rest on; `rack_prices` is what copies between racks cost. `limits` says whence those of the
    brokers are known, `unknown_goals` what was asked for of which nothing is known.
    """

    task: str
    cluster_id: str | None = None
    snapshot_id: str | None = None
    rate_bytes_per_s: float | None = None
    left: tuple[str, ...] = ()
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    loads: LoadBasis | None = None
    rack_prices: RackPrices = NO_PRICES
    limits: tuple[Limit, ...] = ()
    unknown_goals: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """The plan, the present lists of the same partitions, its independent evaluation, and its facts file."""

    problem: Problem
    assignment: Assignment
    plan: Plan
    current: Plan
    evaluation: Evaluation
    facts: PlanFacts


def outcome_of(problem: Problem, assignment: Assignment, origin: Origin) -> Outcome:
    """Check, explain and price an assignment. Raises IllegalPlan when it breaks a rule of the problem."""
    evaluation = evaluate(problem, assignment)
    if evaluation.violations:
        raise IllegalPlan(evaluation.violations)
    plan = plan_of(problem, assignment)
    rate = origin.rate_bytes_per_s
    failover = _failover(problem, assignment)
    facts = PlanFacts(
        plan_id=plan_id(plan),
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
        prediction=None if rate is None else _prediction(problem, assignment, evaluation, rate),
        remaining=(
            *origin.left,
            *evaluation.out_of_reach,
            *evaluation.unfinished,
            *map(str, evaluation.misses()),
            *topics_outside(problem, assignment),
            *uneven_topics(problem, assignment),
            *leaders_elsewhere(problem, assignment),
            *full_log_dirs(problem, assignment),
            *(failover[1].sentences() if failover else ()),
        ),
        leader_racks=leader_racks(problem, assignment),
        topic_leaders=topic_leaders(problem, assignment),
        racks=rack_bytes(problem, assignment, origin.rack_prices),
        limits=origin.limits,
        unknown_goals=origin.unknown_goals,
        uneven_topics=uneven_topics_by_size(problem)[:MOST_UNEVEN],
        losses=tuple(one for state, when in zip(failover, STATES, strict=False) for one in state.worst(when)),
    )
    return Outcome(problem, assignment, plan, current_plan(problem, assignment), evaluation, facts)


def _failover(problem: Problem, assignment: Assignment) -> tuple[Losses, ...]:
    """What losing one more broker or rack would bring before and after the plan; nothing unless that is a goal."""
    if problem.rules.failover is None:
        return ()
    return losses(problem, Assignment.current(problem.partitions)), losses(problem, assignment)


def least_bytes(problem: Problem, evaluation: Evaluation) -> int:
    """What any plan must copy that brings about as much: the bands too if this one meets them, else what is forced."""
    return _bound(problem, evaluation).total


def _bound(problem: Problem, evaluation: Evaluation) -> BytesBound:
    return BytesBound(0, 0, 0) if evaluation.unfinished else bytes_bound(_compared(problem, evaluation))


def _compared(problem: Problem, evaluation: Evaluation) -> Problem:
    """The problem that a plan is measured by: without the bands if it misses any."""
    return replace(problem, bands=()) if evaluation.misses() else problem


def _prediction(problem: Problem, assignment: Assignment, evaluation: Evaluation, rate: float) -> Prediction:
    least = 0.0 if evaluation.unfinished else least_seconds(_compared(problem, evaluation), rate)
    return replace(predict(problem, assignment, rate), least_s=least)


def _totals(evaluation: Evaluation, bound: BytesBound) -> Totals:
    return Totals(
        moved_bytes=evaluation.moved_bytes,
        moves=evaluation.moves,
        leader_changes=evaluation.leader_changes,
        log_dir_bytes=evaluation.log_dir_bytes,
        log_dir_moves=evaluation.log_dir_moves,
        least_bytes=bound.total,
        binding=bound.binding,
    )


def _partitions(
    problem: Problem, assignment: Assignment, reasons: dict[int, tuple[Reason, ...]]
) -> tuple[PlannedPartition, ...]:
    return tuple(
        PlannedPartition(
            problem.partitions.name(partition),
            tuple(problem.brokers.ids[problem.partitions.list_of(partition)].tolist()),
            int(problem.partitions.size_bytes[partition]),
            _paths(problem, partition),
            reasons[partition],
        )
        for partition in changed_partitions(problem, assignment)
    )


def _paths(problem: Problem, partition: int) -> tuple[str, ...]:
    dirs, now = problem.log_dirs, problem.partitions
    chosen = now.log_dirs[now.offsets[partition] : now.offsets[partition + 1]].tolist()
    return () if dirs is None or NOWHERE in chosen else tuple(dirs.paths[directory] for directory in chosen)


def means_of(evaluation: Evaluation) -> tuple[GoalMean, ...]:
    """What the loads of brokers are compared with, a mean for each goal of an evaluation."""
    return tuple(
        GoalMean(goal, unit, evaluation.mean(index, before=True), evaluation.mean(index))
        for index, (goal, unit) in enumerate(zip(evaluation.goals, evaluation.units, strict=True))
    )


def _brokers(evaluation: Evaluation) -> tuple[PlannedBroker, ...]:
    return tuple(
        PlannedBroker(
            broker,
            dict(zip(evaluation.goals, evaluation.before[index].tolist(), strict=True)),
            dict(zip(evaluation.goals, evaluation.after[index].tolist(), strict=True)),
            int(evaluation.bytes_in[index]),
            int(evaluation.bytes_out[index]),
            int(evaluation.peak_bytes[index]),
        )
        for index, broker in enumerate(evaluation.broker_ids)
    )
