"""Split a large problem into small ones that are solved separately, and merge their plans. Pure.

Partitioned optimization (POP; Narayanan et al., SOSP 2021): partitions are assigned at random to k subproblems, and
every subproblem has all brokers with a k-th of the load that each may still take. The mean per broker and goal is

    mean_i = load_i + (mean - load) / k

where load is the present load of the broker, in all or only in this subproblem's partitions. So the random assignment
costs nothing: a broker at its share in the whole is at its share in every part, and a broker above it gives a k-th of
the excess in each. One more search, which begins with the merged plan, repairs the rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from kreassign.errors import Infeasible
from kreassign.planner.arrays import FloatArray, IndexArray
from kreassign.planner.problem.problem import Assignment, Budget, Partitions, Problem
from kreassign.planner.search.search import Solution, solve, unwatched

DEFAULT_SEED = 1


@dataclass(frozen=True, slots=True, eq=False)
class Subproblem:
    """A subproblem; its partitions are those with these `indices` in the whole, ascending."""

    indices: IndexArray
    problem: Problem


def split(problem: Problem, count: int, seed: int = DEFAULT_SEED) -> tuple[Subproblem, ...]:
    """Split a problem into at most `count` non-empty subproblems; deterministic for a given seed.

    Topics stay whole if a rule concerns all partitions of a topic. Log directories are left to the final repair.
    """
    problem = problem.with_limits()
    assigned = _assigned(problem, count, np.random.default_rng(seed))
    load, mean = problem.present_loads, problem.limits.mean
    parts = [np.flatnonzero(assigned == part) for part in range(count)]
    return tuple(Subproblem(indices, _part(problem, indices, (load, mean), count)) for indices in parts if len(indices))


Answer = Assignment | str
"""An assignment, or the reason why there is none."""

SolveAll = Callable[[Sequence[Problem]], Sequence[Answer]]
"""Function that solves problems, anywhere and in any order, and returns the answers in the order of the problems."""


def solve_in_subproblems(
    problem: Problem, count: int, seed: int, solve_all: SolveAll, watch: Callable[[str], None] = unwatched
) -> Solution:
    """Split, solve, merge, and repair the whole once. Raises what `solve` raises for the whole."""
    if count <= 1:
        return solve(problem, watch=watch)
    parts = split(problem, count, seed)
    watch(f"searching plans of {len(parts)} parts")
    return solve(problem, merged(problem, parts, solve_all([part.problem for part in parts])), watch)


def attempt(problem: Problem) -> Answer:
    """Solve a problem; return the assignment, or the text of its refusal: both can be sent between processes."""
    try:
        return solve(problem).assignment
    except Infeasible as refusal:
        return str(refusal)


def merged(problem: Problem, parts: Sequence[Subproblem], found: Sequence[Answer]) -> Assignment:
    """Merge the assignments of the parts; a part without one stays as it is, for the repair."""
    counts = problem.partitions.factors.astype(np.int64)
    for part, answer in zip(parts, found, strict=True):
        if isinstance(answer, Assignment):
            counts[part.indices] = np.diff(answer.offsets)
    offsets = np.concatenate(([0], np.cumsum(counts)))
    replicas, log_dirs = (np.empty(offsets[-1], np.int32) for _ in range(2))
    for part, answer in zip(parts, found, strict=True):
        own = answer if isinstance(answer, Assignment) else Assignment.current(part.problem.partitions)
        places = _spans(offsets[part.indices], np.diff(own.offsets).astype(np.int64))
        replicas[places], log_dirs[places] = own.replicas, own.log_dirs
    return Assignment(offsets.astype(np.int32), replicas, log_dirs)


def subset(partitions: Partitions, indices: IndexArray) -> Partitions:
    """Select partitions by index, in the given order."""
    slots = _slots(partitions, indices)
    whole = {"topic_names", "offsets"}
    per_replica = {"replicas", "log_dirs", "is_lost", "in_sync", "future_log_dirs"}
    chosen = {
        one.name: getattr(partitions, one.name)[slots if one.name in per_replica else indices]
        for one in fields(Partitions)
        if one.name not in whole and getattr(partitions, one.name) is not None
    }
    offsets = np.concatenate(([0], np.cumsum(partitions.factors[indices]))).astype(np.int32)
    return Partitions(topic_names=partitions.topic_names, offsets=offsets, **chosen)


def _slots(partitions: Partitions, indices: IndexArray) -> IndexArray:
    """Places of the replicas of these partitions."""
    return _spans(partitions.offsets[indices].astype(np.int64), partitions.factors[indices].astype(np.int64))


def _spans(starts: IndexArray, lengths: IndexArray) -> IndexArray:
    """Concatenate the indices of all spans."""
    ends = np.cumsum(lengths)
    spans: IndexArray = np.arange(ends[-1] if len(ends) else 0) + np.repeat(starts - (ends - lengths), lengths)
    return spans


def _assigned(problem: Problem, count: int, generator: np.random.Generator) -> IndexArray:
    """Subproblem of each partition: round-robin after a shuffle, so that sizes are equal up to a topic."""
    partitions, rules = problem.partitions, problem.rules
    if rules.topic_spread is None and rules.topic_leaders is None and not rules.least_topic_leaders:
        units, names = len(partitions), np.arange(len(partitions))
    else:
        units, names = len(partitions.topic_names), partitions.topics.astype(np.int64)
    numbers_of_units = np.empty(units, np.int64)
    numbers_of_units[generator.permutation(units)] = np.arange(units) % count
    numbers: IndexArray = numbers_of_units[names]
    return numbers


def _part(problem: Problem, indices: IndexArray, whole: tuple[FloatArray, FloatArray], count: int) -> Problem:
    now, gone = problem.partitions, problem.gone
    part = replace(
        problem,
        gone=gone and replace(gone, replicas=gone.replicas[_slots(now, indices)]),
        partitions=subset(now, indices),
        budget=_budget(problem.budget, count),
    )
    # The repair of the whole enforces rules that only the whole can judge.
    rules = replace(problem.rules, between_log_dirs=False, failover=None)
    part = replace(part, log_dirs=None, rules=rules)
    load, mean = whole
    own = part.present_loads
    shares = np.maximum(own + (mean - load) / count, 0.0)
    names = [band.goal.name for band in problem.bands]
    room = {
        name: np.maximum(own[:, column] + (problem.brokers.capacity_of(name) - load[:, column]) / count, 0.0)
        for column, name in enumerate(names)
        if name in problem.brokers.capacity
    }
    brokers = problem.brokers
    # A goal without any load keeps equal shares.
    usable = {name: share for name, share in zip(names, shares.T, strict=True) if share[brokers.staying].sum() > 0}
    shared = replace(brokers, shares={**brokers.shares, **usable}, capacity={**brokers.capacity, **room})
    return replace(part, brokers=shared)


def _budget(budget: Budget, count: int) -> Budget:
    """Divide every limit among the parts; the repair may use the remainder."""
    limits = {
        one.name: None if (limit := getattr(budget, one.name)) is None else limit // count
        for one in fields(Budget)
        if one.name != "rate_bytes_per_s"
    }
    return replace(budget, **limits)
