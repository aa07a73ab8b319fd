"""Names of the array types that the planner computes with, and the index that stands for nothing."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

NOWHERE = -1
"""In arrays of indices: no broker, no log directory, no broker set, no rack."""

BoolArray = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.float64]

IntArray = npt.NDArray[np.int32]
"""Indices and counts of a problem: half the memory of the next two at a million replicas."""

BytesArray = npt.NDArray[np.int64]
"""Sizes, which may exceed 2 GiB."""

IndexArray = npt.NDArray[np.int64]
"""Whole numbers of the search: all have one type, so that every function is compiled once."""


def sums(
    places: npt.NDArray[np.integer], amounts: npt.NDArray[np.bool_ | np.integer | np.floating], count: int
) -> FloatArray:
    """What all amounts at each place come to, for places 0 to `count` - 1; shape (count,)."""
    return np.bincount(places, amounts, count).astype(np.float64)


def pairs(owners: npt.NDArray[np.integer], places: npt.NDArray[np.integer], count: int) -> IndexArray:
    """One number for each pair of an owner and of a place, which is one of `count`; the owner is `// count` of it."""
    return owners.astype(np.int64) * count + places
