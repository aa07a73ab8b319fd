"""Brokers and their log directories as arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from kreassign.errors import InputError
from kreassign.planner.problem.arrays import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Brokers:
    """N brokers, by ascending id; every array has shape (N,).

    `racks` are indices into `rack_names`, or NOWHERE. A broker that is not live holds nothing in the end, as one that
    `must_empty`; neither receives or leads. `may_receive` and `may_lead` are False for those excluded from it.
    `capacity` has a hard limit per goal name, infinite for none; `shares` which part of the total a broker should
    carry relative to the others, per goal name, where that is not left to the capacities.
    """

    ids: IntArray
    racks: IntArray
    rack_names: tuple[str, ...]
    is_live: BoolArray
    may_receive: BoolArray
    may_lead: BoolArray
    must_empty: BoolArray
    broker_sets: IntArray
    capacity: Mapping[str, FloatArray]
    shares: Mapping[str, FloatArray]

    def __post_init__(self) -> None:
        if not len(self.ids):
            raise InputError("there is no broker to plan for")
        if len(np.unique(self.ids)) != len(self.ids):
            repeated = sorted({int(one) for one in self.ids if (self.ids == one).sum() > 1})
            raise InputError(f"given more than once: broker {', '.join(map(str, repeated))}")

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def staying(self) -> BoolArray:
        """Those that may hold replicas in the end."""
        return self.is_live & ~self.must_empty

    @property
    def receiving(self) -> BoolArray:
        """Those that replicas may be copied to."""
        return self.staying & self.may_receive

    def capacity_of(self, goal: str) -> FloatArray:
        """The hard limit of every broker, infinite where there is none."""
        return self.capacity.get(goal, np.full(len(self), np.inf))

    def weights(self, goal: str) -> FloatArray:
        """Which part of the total each broker should carry; sums to 1. Follows the capacities when all have one."""
        limits = self.capacity_of(goal)
        usable = self.staying
        if goal in self.shares:
            weights = np.where(usable, self.shares[goal], 0.0)
        elif np.isfinite(limits[usable]).all():
            weights = np.where(usable, limits, 0.0)
        else:
            weights = usable.astype(float)
        total = weights.sum()
        return weights / total if total else weights


@dataclass(frozen=True, slots=True, eq=False)
class LogDirs:
    """D log directories, by broker and path; every array has shape (D,). `brokers` are broker indices."""

    brokers: IntArray
    paths: tuple[str, ...]
    capacity_bytes: FloatArray
    may_receive: BoolArray
    must_empty: BoolArray

    def __len__(self) -> int:
        return len(self.paths)
