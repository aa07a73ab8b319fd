"""Even out the brokers, with all topics or with some."""

from __future__ import annotations

from dataclasses import replace

from kreassign.planner.problem.arrays import BoolArray
from kreassign.planner.problem.problem import Problem
from kreassign.planner.tasks.topic_choice import TopicChoice


def rebalance(problem: Problem, topics: TopicChoice | None = None) -> Problem:
    """All brokers within their bands by moving only these topics; the others count, but stay."""
    return problem if topics is None else movable_only(problem, topics.of(problem.partitions))


def movable_only(problem: Problem, partitions: BoolArray) -> Problem:
    """The same problem with all partitions but these (shape (P,)) fixed to where they are."""
    may_move = problem.partitions.may_move & partitions
    return replace(problem, partitions=replace(problem.partitions, may_move=may_move))
