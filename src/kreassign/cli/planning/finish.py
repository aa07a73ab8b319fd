"""The last steps of every task: search, check, write, show."""

from __future__ import annotations

from dataclasses import replace

from kreassign.cli.plan_files import write_plan
from kreassign.cli.planning.inputs import Inputs
from kreassign.cli.planning.options import PlanOptions
from kreassign.cli.planning.show import show
from kreassign.errors import IllegalPlan, InputError, InvariantBroken
from kreassign.model import TopicPartition
from kreassign.planner.explain import explain
from kreassign.planner.outcome import Origin, Outcome, outcome_of
from kreassign.planner.partitions import Assignment
from kreassign.planner.problem import Problem
from kreassign.planner.search import solve


def solved(inputs: Inputs, problem: Problem, task: str, options: PlanOptions, *, dead_are_mended: bool = False) -> None:
    """Search a plan for a problem within the budget, then write and show it. Raises Infeasible."""
    if not dead_are_mended:
        refuse_dead(problem)
    problem = options.budgeted(problem)
    try:
        outcome = outcome_of(problem, solve(problem).assignment, origin(inputs, task, options))
    except IllegalPlan as error:
        raise InvariantBroken(f"the search made an illegal plan: {error}") from error
    delivered(outcome, options)


def given(inputs: Inputs, problem: Problem, assignment: Assignment, task: str, options: PlanOptions) -> None:
    """Judge an assignment that needs no search, then write and show it. Raises IllegalPlan."""
    budget = options.budgeted(problem).budget
    judged = replace(problem, budget=budget)
    delivered(outcome_of(judged, assignment, origin(inputs, task, options)), options)


def origin(inputs: Inputs, task: str, options: PlanOptions) -> Origin:
    """What the side file says of where a plan comes from."""
    return Origin(task, inputs.cluster_id, inputs.snapshot_id, options.rate)


def delivered(outcome: Outcome, options: PlanOptions) -> None:
    """Write the plan where it is wanted, and show it."""
    explained = [line for name in options.explain for line in explain(outcome, TopicPartition.parse(name))]
    if options.out:
        write_plan(options.out, outcome.plan, outcome.facts)
    if options.current_out:
        write_plan(options.current_out, outcome.current)
    show(outcome, options.out, explained, options.output_format)


def refuse_dead(problem: Problem) -> None:
    """Raise InputError for a task that is not about them when dead brokers hold replicas, or failed directories did."""
    brokers = problem.brokers
    dead = brokers.ids[~brokers.is_live & ~brokers.must_empty].tolist()
    holding = sorted(set(dead) & set(brokers.ids[problem.partitions.replicas].tolist()))
    if holding:
        raise InputError(
            f"broker {', '.join(map(str, holding))} holds replicas but is not live; bring it back and take a new "
            "snapshot, or plan `repair` or `drain-brokers` first"
        )
    lost = brokers.ids[problem.partitions.replicas[problem.partitions.is_lost]]
    if len(lost):
        broker = int(lost[0])
        raise InputError(
            f"broker {broker} has lost {int((lost == broker).sum())} replicas with a log directory; plan `repair` "
            "first, or mend the directory and take a new snapshot"
        )
