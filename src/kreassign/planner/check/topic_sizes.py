"""Topics whose partitions are of unequal size: a large one is hard to place, and its consumers have most to do."""

from __future__ import annotations

import numpy as np

from kreassign.model.plan_facts import UnevenTopic
from kreassign.planner.problem.problem import Problem

TIMES = 2.0
SHARE = 0.01
"""Of what a broker holds on the average; the usual bands are twenty times as wide."""


def uneven_topics_by_size(problem: Problem) -> tuple[UnevenTopic, ...]:
    """Topics whose largest partition is `TIMES` as large as the others are on the average, the largest first.

    Only where it is larger by `SHARE` at least of what a broker holds, so that small topics are left out. Partitions of
    unknown size do not count.
    """
    partitions = problem.partitions
    known = np.flatnonzero(partitions.may_move | (partitions.size_bytes > 0))
    topics, sizes = partitions.topics[known], partitions.size_bytes[known]
    order = np.lexsort((-sizes, topics))
    found, first, counts = np.unique(topics[order], return_index=True, return_counts=True)
    largest = sizes[order[first]]
    others = (np.bincount(topics, sizes, len(partitions.topic_names))[found] - largest) / np.maximum(counts - 1, 1)
    held = float((partitions.size_bytes * partitions.factors).sum()) / max(1, int(problem.brokers.staying.sum()))
    uneven = (counts > 1) & (largest > TIMES * others) & (largest - others >= SHARE * held)
    places = np.flatnonzero(uneven).tolist()
    return tuple(
        UnevenTopic(
            str(partitions.name(int(known[order[first[place]]]))),
            int(largest[place]),
            int(others[place]),
            int(counts[place]),
        )
        for place in sorted(places, key=lambda one: -largest[one])
    )
