"""Array types of the planner, and the index that means "none"."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

NOWHERE = -1
"""In arrays of indices: no broker, no log directory, no broker set or no rack."""

BoolArray = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.float64]

IntArray = npt.NDArray[np.int32]
"""Indices and counts of a problem: half the memory of 64-bit types at a million replicas."""

BytesArray = npt.NDArray[np.int64]
"""Sizes in bytes, which may exceed 2 GiB."""

IndexArray = npt.NDArray[np.int64]
"""Integers of the search: of one type, so that every function is compiled once."""


def ints(values: Iterable[int]) -> IntArray:
    """The values as an array, (N,)."""
    return np.fromiter(values, np.int32)


def sums(
    places: npt.NDArray[np.integer], amounts: npt.NDArray[np.bool_ | np.integer | np.floating], count: int
) -> FloatArray:
    """Sum of the amounts at each place, for places 0 to `count` - 1; shape (count,)."""
    return np.bincount(places, amounts, count).astype(np.float64)


def pairs(owners: npt.NDArray[np.integer], places: npt.NDArray[np.integer], count: int) -> IndexArray:
    """Encode each pair of an owner and a place in 0 to `count` - 1 as one integer: owner * count + place."""
    return owners.astype(np.int64) * count + places
