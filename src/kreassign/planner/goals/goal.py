"""What a goal is: a load that every replica brings to its broker, and that shall be even."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kreassign.planner.problem.arrays import FloatArray
from kreassign.planner.problem.partitions import Partitions

Column = Callable[[Partitions], FloatArray]
"""From the partitions to one number for each: shape (partitions,)."""


@dataclass(frozen=True, slots=True)
class Goal:
    """One resource to balance.

    A replica adds `leader(partitions)[p]` to its broker while it leads partition p, and `follower(partitions)[p]`
    while it follows. That is all the search knows of a goal, so a goal of the user's own is such a value too.
    `name` is also the key of the broker's capacity for it, `unit` what one of it is called when shown. `counts` says
    that loads are whole numbers, so that its bands are too.
    """

    name: str
    unit: str
    leader: Column
    follower: Column
    counts: bool = False


def nothing(partitions: Partitions) -> FloatArray:
    """The column of a resource that this role does not use."""
    return partitions.write_bytes_per_s * 0.0


def one_each(partitions: Partitions) -> FloatArray:
    """The column of a resource that counts."""
    return nothing(partitions) + 1.0
