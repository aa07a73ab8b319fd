"""Tasks about replica lists: another replication factor, repair, and going back to a given assignment."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from kreassign.errors import InputError
from kreassign.model.plan import Plan
from kreassign.planner.arrays import IntArray
from kreassign.planner.problem.cluster import Assignment, Partitions
from kreassign.planner.problem.problem import Problem, RackRule, Rules
from kreassign.planner.problem.selection import TopicChoice
from kreassign.planner.results.plans import assignment_of


def change_factors(problem: Problem, factor: int, topics: TopicChoice | None = None) -> Problem:
    """Every partition of the topics gets `factor` replicas.

    Raises InputError when that is less than 1 or more than there are brokers to hold them.
    """
    partitions, hosts = problem.partitions, int(problem.brokers.staying.sum())
    if not 1 <= factor <= hosts:
        raise InputError(f"a replication factor of {factor} needs {factor} live brokers; there are {hosts}")
    chosen = (topics or TopicChoice()).of(partitions)
    wanted = np.where(chosen, factor, partitions.wanted_factors).astype(np.int32)
    return replace(problem, partitions=replace(partitions, wanted_factors=wanted))


def repair(problem: Problem, *, racks: bool = True, factors: bool = True) -> Problem:
    """Every replica on a dead broker, or lost with a log directory, is recreated elsewhere.

    `racks` also repairs partitions that break the rack rule, `factors` gives partitions with fewer replicas than most
    of their topic as many as those.
    """
    partitions = problem.partitions
    wanted = np.maximum(partitions.wanted_factors, usual_factors(partitions)) if factors else partitions.wanted_factors
    return replace(
        problem,
        rules=replace(problem.rules, repair_racks=racks),
        partitions=replace(partitions, wanted_factors=wanted.astype(np.int32)),
    )


def usual_factors(partitions: Partitions) -> IntArray:
    """The most frequent replication factor of each partition's topic (of equally frequent ones the larger), (P,)."""
    factors = partitions.factors
    counts = np.zeros((len(partitions.topic_names), int(factors.max(initial=0)) + 1), np.int64)
    np.add.at(counts, (partitions.topics, factors), 1)
    largest_of_equals = counts.shape[1] - 1 - np.argmax(counts[:, ::-1], axis=1)
    usual: IntArray = largest_of_equals[partitions.topics].astype(np.int32)
    return usual


def restore(problem: Problem, wanted: Plan) -> tuple[Problem, Assignment]:
    """The lists of a plan, as they are; nothing is searched.

    Returns the problem to evaluate the assignment by: factors are those of the plan, and the rack rule does not apply.
    Raises IllegalPlan for partitions, brokers and log directories that are not there.
    """
    assignment = assignment_of(problem, wanted)
    rules = Rules(racks=RackRule.NONE, between_log_dirs=True, failover=problem.rules.failover)
    factors = np.diff(assignment.offsets).astype(np.int32)
    return replace(problem, rules=rules, partitions=replace(problem.partitions, wanted_factors=factors)), assignment
