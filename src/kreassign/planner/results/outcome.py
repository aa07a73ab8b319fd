"""A finished plan with all that is to be said about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from kreassign.errors import IllegalPlan
from kreassign.model.load_basis import LoadBasis
from kreassign.model.plan import Plan
from kreassign.model.plan_facts import PlanFacts, PlannedBroker, PlannedPartition, Prediction, Reason, Totals, plan_id
from kreassign.planner.arrays import NOWHERE
from kreassign.planner.check.bounds import BytesBound, bytes_bound, least_seconds
from kreassign.planner.check.changes import predict
from kreassign.planner.check.evaluate import Evaluation, evaluate
from kreassign.planner.check.topic_spread import topics_outside
from kreassign.planner.problem.cluster import Assignment
from kreassign.planner.problem.problem import Problem, fingerprint
from kreassign.planner.results.plans import changed_partitions, current_plan, plan_of
from kreassign.planner.results.reasons import reasons_of


@dataclass(frozen=True, slots=True)
class Origin:
    """What a plan is for and where its inputs come from. Without a rate, no time is predicted.

    `left` are sentences on what the plan was not to touch; `topic_ids` is by name, as far as known; `loads` is what the
    rates of the problem rest on.
    """

    task: str
    cluster_id: str | None = None
    snapshot_id: str | None = None
    rate_bytes_per_s: float | None = None
    left: tuple[str, ...] = ()
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    loads: LoadBasis | None = None


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
        prediction=None if rate is None else _prediction(problem, assignment, evaluation, rate),
        remaining=(
            *origin.left,
            *evaluation.out_of_reach,
            *evaluation.unfinished,
            *map(str, evaluation.misses()),
            *topics_outside(problem, assignment),
        ),
    )
    return Outcome(problem, assignment, plan, current_plan(problem, assignment), evaluation, facts)


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
