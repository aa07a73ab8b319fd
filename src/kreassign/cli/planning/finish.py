"""The last steps of every task: search, check, write, show."""

from __future__ import annotations

from dataclasses import replace

from kreassign.cli.options.plan import PlanOptions
from kreassign.cli.planning.show import show
from kreassign.errors import IllegalPlan, InvariantBroken
from kreassign.model import TopicPartition
from kreassign.operations.plan_files import write_plan
from kreassign.operations.plan_inputs import Inputs
from kreassign.planner.problem.partitions import Assignment
from kreassign.planner.problem.problem import Problem
from kreassign.planner.results.explain import explain
from kreassign.planner.results.outcome import Origin, Outcome, outcome_of
from kreassign.planner.tasks import ignore_dead_brokers


def solved(inputs: Inputs, problem: Problem, task: str, options: PlanOptions, *, dead_are_mended: bool = False) -> None:
    """Search a plan for a problem within the budget, then write and show it. Raises Infeasible.

    Unless `dead_are_mended`, what is on dead brokers or was lost with a directory stays as it is, and that is said.
    """
    problem, left = (problem, ()) if dead_are_mended else ignore_dead_brokers(problem)
    problem = options.budgeted(problem)
    try:
        outcome = outcome_of(problem, options.solving.solve(problem), origin(inputs, task, options, left))
    except IllegalPlan as error:
        raise InvariantBroken(f"the search made an illegal plan: {error}") from error
    delivered(outcome, options)


def given(inputs: Inputs, problem: Problem, assignment: Assignment, task: str, options: PlanOptions) -> None:
    """Judge an assignment that needs no search, then write and show it. Raises IllegalPlan."""
    budget = options.budgeted(problem).budget
    judged = replace(problem, budget=budget)
    delivered(outcome_of(judged, assignment, origin(inputs, task, options)), options)


def origin(inputs: Inputs, task: str, options: PlanOptions, left: tuple[str, ...] = ()) -> Origin:
    """What the side file says of where a plan comes from, and what it was not to touch."""
    return Origin(task, inputs.cluster_id, inputs.snapshot_id, options.rate, left)


def delivered(outcome: Outcome, options: PlanOptions) -> None:
    """Write the plan where it is wanted, and show it."""
    explained = [line for name in options.explain for line in explain(outcome, TopicPartition.parse(name))]
    if options.out:
        write_plan(options.out, outcome.plan, outcome.facts)
    if options.current_out:
        write_plan(options.current_out, outcome.current)
    show(outcome, options.out, explained, options.output_format)
