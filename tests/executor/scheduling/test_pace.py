"""Values of a pace."""

from __future__ import annotations

import pytest

from kreassign.errors import InputError
from kreassign.model.pace import Pace, PaceChange


@pytest.mark.parametrize("part", [float("nan"), float("inf"), -0.1, 1.0, 5.0])
def test_a_disk_reserve_is_a_part_of_a_disk(part: float) -> None:
    with pytest.raises(InputError, match=r"is no disk reserve: .* from 0 to below 1"):
        Pace(disk_reserve=part)
    with pytest.raises(InputError, match=f"^{part} is no disk reserve"):
        PaceChange(disk_reserve=part)


def test_a_disk_reserve_of_nothing_is_one() -> None:
    assert Pace().changed(PaceChange(disk_reserve=0.0)).disk_reserve == 0.0
