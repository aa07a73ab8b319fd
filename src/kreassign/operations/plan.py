"""Plans: from the present state of a cluster to what to change, one at a time or many at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kreassign.clock import SystemClock
from kreassign.errors import IllegalPlan, InputError, InvariantBroken
from kreassign.model.spark_options import LOCAL_SPARK, SparkOptions
from kreassign.operations.plan_inputs import Inputs
from kreassign.operations.plan_tasks import Task, WhatIf, described
from kreassign.operations.spark_jobs import SPARK_LOG, spark_jobs
from kreassign.planner import Budget, Problem
from kreassign.planner.problem.cluster import Assignment
from kreassign.planner.results.outcome import Origin, Outcome, outcome_of
from kreassign.planner.results.pareto import ANY_RATE, Choice
from kreassign.planner.results.pareto import pareto as pareto_choices
from kreassign.planner.search.search import unwatched
from kreassign.planner.search.subproblems import DEFAULT_SEED, Answer, attempt, solve_in_subproblems
from kreassign.planner.tasks import fit_in, ignore_dead_brokers
from kreassign.planner.tasks.what_if import RightSize, what_if
from kreassign.planner.tasks.what_if import brokers_needed as right_size

NO_BUDGET = Budget()


@dataclass(frozen=True, slots=True)
class Search:
    """Where plans are searched: in this process or on the executors of Spark, as a whole or in `parts`.

    `seed` decides how the problem is cut. `spark_options` and `log_file` are Spark's, and unused without `on_spark`.
    """

    on_spark: bool = False
    parts: int = 1
    seed: int = DEFAULT_SEED
    spark_options: SparkOptions = LOCAL_SPARK
    log_file: Path = Path(SPARK_LOG)

    def solve(self, problem: Problem, watch: Callable[[str], None] = unwatched) -> Assignment:
        """The plan for one problem. Raises Infeasible, and DataError when Spark fails."""
        return solve_in_subproblems(problem, self.parts, self.seed, self.solve_all, watch).assignment

    def solve_all(self, problems: Sequence[Problem]) -> list[Answer]:
        """The plans for several problems, each as a whole; one that has none does not keep the others from theirs."""
        if not self.on_spark:
            return [attempt(problem) for problem in problems]
        jobs = spark_jobs("planning on Spark")
        with jobs.session.spark_session(self.log_file, self.spark_options, name="kreassign plan") as spark:
            found: list[Answer] = jobs.parallel.map_on_executors(spark, attempt, problems)
        return found


LOCAL = Search()


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """What is asked of a plan, whatever the task: at most this budget, and only what is done in `fit_in_s` seconds.

    `rate_bytes_per_s` is what each broker may send and receive: the time is predicted with it, and `fit_in_s` needs it.
    With `require_load` there is no plan that rests on doubtful or unknown loads, or on any that were measured more than
    `max_load_age_s` ago (None: whenever).
    """

    budget: Budget = NO_BUDGET
    fit_in_s: float | None = None
    rate_bytes_per_s: int | None = None
    search: Search = LOCAL
    require_load: bool = False
    max_load_age_s: float | None = None

    def check_loads(self, inputs: Inputs) -> None:
        """Raise InputError, which names the first doubtful loads, where they are not to be planned with."""
        if self.require_load:
            inputs.loads.require(SystemClock().now_ms(), self.max_load_age_s)

    def budgeted(self, problem: Problem) -> Problem:
        """The problem with the budget. Raises InputError for a time without a rate."""
        problem = replace(problem, budget=self.budget)
        if self.fit_in_s is None:
            return problem
        if self.rate_bytes_per_s is None:
            raise InputError("--fit-in needs --rate: what each broker may send and receive")
        return fit_in(problem, self.fit_in_s, self.rate_bytes_per_s)


PLAIN = PlanRequest()


@dataclass(frozen=True, slots=True, eq=False)
class Alternatives:
    """Several plans of which none beats another in bytes, balance, time and changes of leaders."""

    choices: tuple[Choice, ...]
    problem: Problem
    origin: Origin

    def outcome(self, choice: Choice) -> Outcome:
        """One of the plans, with the facts about it."""
        origin = replace(self.origin, task=f"rebalance, {choice.asked_for}")
        return outcome_of(self.problem, choice.assignment, origin)


@dataclass(frozen=True, slots=True, eq=False)
class Question:
    """One problem of many: what it is called, where it comes from, and what the facts say of the task."""

    name: str
    task: str
    inputs: Inputs
    problem: Problem


@dataclass(frozen=True, slots=True, eq=False)
class Reply:
    """The outcome of one question, or in words why there is none."""

    name: str
    outcome: Outcome | None
    refusal: str | None = None


def make_plan(
    inputs: Inputs, task: Task, request: PlanRequest = PLAIN, watch: Callable[[str], None] = unwatched
) -> Outcome:
    """Search a plan within the budget, or judge the task's own. Raises Infeasible, IllegalPlan, InputError.

    `watch` hears what is done meanwhile, which may take a while on a large cluster.
    """
    request.check_loads(inputs)
    posed = task.pose(inputs)
    if posed.assignment is not None:
        judged = replace(posed.problem, budget=request.budgeted(posed.problem).budget)
        return outcome_of(judged, posed.assignment, _origin(inputs, _name(task, inputs), request, posed.left))
    problem, left = (posed.problem, ()) if posed.repairs_dead else ignore_dead_brokers(posed.problem)
    problem = request.budgeted(problem)
    try:
        found = request.search.solve(problem, watch)
        watch("checking the plan, and finding the reason of each change")
        return outcome_of(problem, found, _origin(inputs, _name(task, inputs), request, left))
    except IllegalPlan as error:
        raise InvariantBroken(f"the search made an illegal plan: {error}") from error


def make_plans(questions: Sequence[Question], request: PlanRequest = PLAIN) -> list[Reply]:
    """Many plans at once, each problem solved as a whole; doubtful loads keep only their own cluster from a plan."""
    refusals = [_refusal(question.inputs, request) for question in questions]
    asked = [question for question, refusal in zip(questions, refusals, strict=True) if refusal is None]
    posed = [ignore_dead_brokers(question.problem) for question in asked]
    problems = [request.budgeted(problem) for problem, _ in posed]
    answers = request.search.solve_all(problems)
    replies = (
        Reply(question.name, None, answer)
        if isinstance(answer, str)
        else Reply(question.name, outcome_of(problem, answer, _origin(question.inputs, question.task, request, left)))
        for question, problem, (_, left), answer in zip(asked, problems, posed, answers, strict=True)
    )
    return [
        next(replies) if refusal is None else Reply(question.name, None, refusal)
        for question, refusal in zip(questions, refusals, strict=True)
    ]


def pareto(inputs: Inputs, request: PlanRequest = PLAIN) -> Alternatives:
    """Several plans to choose from. Raises Infeasible, InputError."""
    request.check_loads(inputs)
    problem, left = ignore_dead_brokers(inputs.problem)
    problem = request.budgeted(problem)
    choices = pareto_choices(problem, request.rate_bytes_per_s or ANY_RATE)
    return Alternatives(choices, problem, _origin(inputs, "rebalance", request, left))


def brokers_needed(inputs: Inputs, circumstances: WhatIf, at_most: float, request: PlanRequest = PLAIN) -> RightSize:
    """How many brokers like these the load needs, each using at most this fraction of its limits.

    Of the request only `require_load` counts. Raises InputError.
    """
    request.check_loads(inputs)
    return right_size(what_if(inputs.problem, circumstances.circumstances(inputs)), at_most)


def _refusal(inputs: Inputs, request: PlanRequest) -> str | None:
    try:
        request.check_loads(inputs)
    except InputError as refusal:
        return str(refusal)
    return None


def _name(task: Task, inputs: Inputs) -> str:
    return f"{task.name} {described(task.circumstances(inputs))}" if isinstance(task, WhatIf) else task.name


def _origin(inputs: Inputs, task: str, request: PlanRequest, left: tuple[str, ...] = ()) -> Origin:
    """What the facts file says of where a plan comes from, and what it was not to touch."""
    return Origin(
        task,
        inputs.cluster_id,
        inputs.snapshot_id,
        request.rate_bytes_per_s,
        left,
        inputs.topic_ids,
        inputs.loads,
        inputs.rack_prices,
        inputs.limits,
        inputs.unknown_goals,
    )
