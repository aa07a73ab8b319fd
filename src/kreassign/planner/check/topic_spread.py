"""Independent check of topic spread: which topics are not shared out as evenly as asked, without the search's code."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil, floor

import numpy as np

from kreassign.planner.arrays import NOWHERE, FloatArray
from kreassign.planner.check.evaluate import share_of_each
from kreassign.planner.goals import REPLICAS, Goal
from kreassign.planner.problem.cluster import Assignment
from kreassign.planner.problem.problem import Problem

SHOWN = 100
ROUNDING = 1e-9


def topics_outside(problem: Problem, assignment: Assignment) -> tuple[str, ...]:
    """A sentence for each topic of which a broker holds too many or too few replicas; empty if spread is no goal."""
    tolerance = problem.rules.topic_spread
    if tolerance is None:
        return ()
    found = list(_sentences(problem, assignment, tolerance))
    more = len(found) - SHOWN
    return tuple(found[:SHOWN]) + ((f"and {more} topics more are not spread",) if more > 0 else ())


def _sentences(problem: Problem, assignment: Assignment, tolerance: float) -> Iterator[str]:
    partitions, ids = problem.partitions, problem.brokers.ids
    topics = partitions.topics[assignment.owners]
    order, names = np.argsort(topics), partitions.topic_names
    first, end = (np.searchsorted(topics[order], np.arange(len(names)), side) for side in ("left", "right"))
    for topic, shares in shares_by_topic(problem, REPLICAS):
        held = np.bincount(assignment.replicas[order[first[topic] : end[topic]]], minlength=len(ids)).tolist()
        total = sum(held)
        off = []
        for broker, (count, middle) in enumerate(zip(held, (total * shares).tolist(), strict=True)):
            least, most = least_and_most(middle, tolerance)
            if not least <= count <= most:
                said = f"broker {ids[broker]} holds {count} of {total} replicas, its share is {middle:.3g}"
                off.append((abs(count - middle), broker, said))
        if off:
            yield f"topic {names[topic]}: {max(off)[2]}"


def shares_by_topic(problem: Problem, goal: Goal) -> Iterator[tuple[int, FloatArray]]:
    """Each topic with the part of it that each broker should have, (N,): none that is not of its broker set."""
    parts, partitions = share_of_each(problem, goal), problem.partitions
    for topic, tenant in dict(zip(partitions.topics.tolist(), partitions.broker_sets.tolist(), strict=True)).items():
        usable = parts * ((tenant == NOWHERE) | (problem.brokers.broker_sets == tenant))
        yield topic, usable / usable.sum() if usable.any() else usable


def least_and_most(middle: float, tolerance: float) -> tuple[int, int]:
    """How many of a topic a broker with this share of it may have: always the whole numbers beside its share."""
    return floor(middle * (1 - tolerance) + ROUNDING), ceil(middle * (1 + tolerance) - ROUNDING)
