"""PURE. CPU that was measured as a part of a broker's, in cores: then it is the same on brokers of any size."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

import numpy as np

from kreassign.planner.arrays import BoolArray, FloatArray
from kreassign.planner.problem.from_columns import ReplicaColumns

CoresOf = Callable[[Iterable[int]], Mapping[int, float]]
"""How many cores brokers have, without those of which nobody said it."""


def with_cores(columns: ReplicaColumns, is_leader: BoolArray, cores_of: CoresOf) -> ReplicaColumns:
    """The columns with CPU in cores; as they are where no cores are known.

    `is_leader` says of each replica whether it leads. What leading costs was measured on the leader. What following
    does is the mean of the parts that it takes of the followers' brokers, and the same work is a part of 1 / cores of
    each: hence the harmonic mean. NaN, so not measured, where the cores of these brokers are not known.
    """
    if columns.leader_cpu is None or columns.follower_cpu is None:
        return columns
    brokers, places = np.unique(columns.brokers, return_inverse=True)
    cores = cores_of(brokers.tolist())
    if not cores:
        return columns
    keys = columns.topics.astype(np.int64) << 32 | columns.partitions
    _, owners = np.unique(keys, return_inverse=True)
    each = np.array([cores.get(broker, np.nan) for broker in brokers.tolist()])[places]

    def harmonic_mean(which: BoolArray) -> FloatArray:
        known = which & ~np.isnan(each)
        parts = np.bincount(owners, np.where(known, 1.0 / each, 0.0))
        with np.errstate(invalid="ignore"):
            return (np.bincount(owners, known) / parts)[owners]

    return replace(
        columns,
        leader_cpu=columns.leader_cpu * harmonic_mean(is_leader),
        follower_cpu=columns.follower_cpu * harmonic_mean(~is_leader),
    )
