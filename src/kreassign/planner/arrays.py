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
