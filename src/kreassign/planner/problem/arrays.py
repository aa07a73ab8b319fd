"""Names of the array types that the planner computes with."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

BoolArray = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int32]
BytesArray = npt.NDArray[np.int64]
IndexArray = npt.NDArray[np.int64]
"""Of the search: all its whole numbers have one type, so that every function is compiled once."""
