"""Independent check of topic spread: which topics are not shared out as evenly as asked, without the search's code."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil, floor

import numpy as np

from kreassign.planner.arrays import NOWHERE, FloatArray
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
    partitions, brokers = problem.partitions, problem.brokers
    topics = partitions.topics[assignment.owners]
    order = np.argsort(topics, kind="stable")
    bounds = np.searchsorted(topics[order], np.arange(len(partitions.topic_names) + 1))
    tenants = dict(zip(partitions.topics.tolist(), partitions.broker_sets.tolist(), strict=True))
    parts = _parts(problem)
    for topic, name in enumerate(partitions.topic_names):
        held = np.bincount(assignment.replicas[order[bounds[topic] : bounds[topic + 1]]], minlength=len(brokers))
        tenant = tenants.get(topic, NOWHERE)
        usable = parts * ((tenant == NOWHERE) | (brokers.broker_sets == tenant))
        total, whole = int(held.sum()), float(usable.sum())
        middles = total * usable / whole if whole else np.zeros(len(brokers))
        wide = [
            (abs(count - middle), broker)
            for broker, (count, middle) in enumerate(zip(held.tolist(), middles.tolist(), strict=True))
            if not _low(middle, tolerance) <= count <= _high(middle, tolerance)
        ]
        if wide:
            _, broker = max(wide)
            yield (
                f"topic {name}: broker {brokers.ids[broker]} holds {held[broker]} of {total} replicas, "
                f"its share is {middles[broker]:.3g}"
            )


def _low(middle: float, tolerance: float) -> int:
    return floor(middle * (1 - tolerance) + ROUNDING)


def _high(middle: float, tolerance: float) -> int:
    return ceil(middle * (1 + tolerance) - ROUNDING)


def _parts(problem: Problem) -> FloatArray:
    """Share of all replicas that each broker should hold: as `shares` says, else by its limit, else all the same."""
    brokers = problem.brokers
    stays = brokers.is_live & ~brokers.must_empty
    limit = brokers.capacity.get("replicas")
    part = np.ones(len(brokers))
    if "replicas" in brokers.shares:
        part = brokers.shares["replicas"]
    elif limit is not None and np.isfinite(limit[stays]).all():
        part = limit
    return np.where(stays, part, 0.0)
