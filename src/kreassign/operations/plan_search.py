"""Where plans are searched: in this process or on the executors of Spark, as a whole or in parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kreassign.operations.spark_jobs import spark_jobs
from kreassign.planner.problem.partitions import Assignment
from kreassign.planner.problem.problem import Problem
from kreassign.planner.search.pop import Answer, attempt, solve_in_parts


@dataclass(frozen=True, slots=True)
class Solving:
    """What was asked of the search. `master` and `log_file` are Spark's, and unused without `on_spark`."""

    on_spark: bool
    parts: int
    seed: int
    master: str | None
    log_file: Path

    def solve(self, problem: Problem) -> Assignment:
        """The plan for one problem. Raises Infeasible, and DataError when Spark fails."""
        return solve_in_parts(problem, self.parts, self.seed, self.solve_all).assignment

    def solve_all(self, problems: Sequence[Problem]) -> list[Answer]:
        """The plans for several problems, each as a whole; one that has none does not keep the others from theirs."""
        if not self.on_spark:
            return [attempt(problem) for problem in problems]
        jobs = spark_jobs("planning on Spark")
        with jobs.session.spark_session(self.log_file, self.master, name="kreassign plan") as spark:
            found: list[Answer] = jobs.parallel.map_on_executors(spark, attempt, problems)
        return found
