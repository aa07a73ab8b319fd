"""Loads that a plan may not rest on where loads are required."""

from __future__ import annotations

import pytest

from kreassign.errors import InputError
from kreassign.model.load_basis import LEAST_MEASURED_S, DoubtfulLoad, LoadBasis
from kreassign.model.partition import TopicPartition

DOUBTFUL = DoubtfulLoad(TopicPartition("t", 0), "short", "topic", 1.5)


@pytest.mark.parametrize(("basis", "named"), [
    (LoadBasis("mean", taken_ms=0, partitions=9), "28 hours old"),
    (LoadBasis("mean", taken_ms=100_000_000, partitions=9, unsized=2), "the sizes of 2 of 9 partitions"),
    (LoadBasis("cluster", taken_ms=100_000_000, partitions=9, measured_for_s=7.0), "measured for 7 s only"),
    (LoadBasis("mean", taken_ms=100_000_000, partitions=9, reasons={"short": 1}, doubtful=(DOUBTFUL,)), "1 of 9"),
])  # fmt: skip
def test_what_is_wrong_with_loads_is_told(basis: LoadBasis, named: str) -> None:
    with pytest.raises(InputError, match=named):
        basis.require(100_000_000, 3_600)


def test_loads_that_are_known_and_new_enough_are_taken() -> None:
    LoadBasis("mean", taken_ms=0, partitions=9).require(100_000_000)
    LoadBasis("cluster", taken_ms=96_400_000, partitions=9, measured_for_s=LEAST_MEASURED_S).require(100_000_000, 3_600)
