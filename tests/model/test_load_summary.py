"""Summary of a load's tables."""

from __future__ import annotations

import pytest

from kreassign.model.load import MeasuredHour, PartitionLoad


@pytest.mark.parametrize(("share", "is_complete"), [(0.0, False), (0.899, False), (0.9, True), (1.0, True)])
def test_an_hour_is_complete_when_nine_tenths_of_it_were_measured(share: float, is_complete: bool) -> None:
    assert MeasuredHour(0, share).is_complete is is_complete


def test_the_load_of_a_partition_is_called_by_its_partition() -> None:
    assert str(PartitionLoad("orders", 3, None, None, None, None, None, "none", "unknown", "short")) == "orders-3"
