"""Assignments that others made: whether they were made for this cluster, and what they do to its racks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from kreassign.model import TopicPartition
from kreassign.planner.check.legality import rack_excess
from kreassign.planner.problem.cluster import Assignment
from kreassign.planner.problem.problem import Problem
from kreassign.planner.results.plans import index_of


def held_by_others(
    problem: Problem, expected: Mapping[TopicPartition, tuple[int, ...]]
) -> dict[TopicPartition, tuple[int, ...]]:
    """The partitions that other brokers hold than those expected, and which; the order of a list does not count.

    What is no partition of the cluster is not among them.
    """
    places = {name: index_of(problem.partitions, name) for name in expected}
    present = {
        name: tuple(problem.brokers.ids[problem.partitions.list_of(place)].tolist())
        for name, place in places.items()
        if place is not None
    }
    return {name: brokers for name, brokers in present.items() if set(brokers) != set(expected[name])}


def crowded(problem: Problem, assignment: Assignment) -> tuple[TopicPartition, ...]:
    """The partitions that get more replicas in one rack than its rule allows and than they have now."""
    factors = np.diff(assignment.offsets).astype(np.int32)
    judged = replace(problem, partitions=replace(problem.partitions, wanted_factors=factors))
    before, after = (rack_excess(judged, one) for one in (Assignment.current(problem.partitions), assignment))
    return tuple(problem.partitions.name(int(place)) for place in np.flatnonzero(after > before))
