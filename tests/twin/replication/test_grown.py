"""Arrays that become longer."""

from __future__ import annotations

import numpy as np
import pytest

from kreassign.twin.replication.hardware import grown


@pytest.mark.parametrize("numbers", [
    np.zeros(0), np.array([1.5, 2.5]), np.array([True, False]), np.zeros((0, 0), np.int32),
    np.arange(6, dtype=np.int32).reshape(2, 3),
])  # fmt: skip
@pytest.mark.parametrize("more", [0, 1, 3])
def test_zeros_follow_at_the_end_of_every_axis(numbers: np.ndarray, more: int) -> None:
    larger, padded = grown(numbers, more), np.pad(numbers, (0, more))
    assert larger.dtype == numbers.dtype
    assert np.array_equal(larger, padded)
    larger[...] = 1
    assert np.array_equal(numbers, padded[tuple(map(slice, numbers.shape))])
