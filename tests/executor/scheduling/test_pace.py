"""Values of a pace."""

from __future__ import annotations

from typing import Any

import pytest

from kreassign.errors import InputError
from kreassign.model.pace import Pace, PaceChange, Schedule


@pytest.mark.parametrize("part", [float("nan"), float("inf"), -0.1, 1.0, 5.0])
def test_a_disk_reserve_is_a_part_of_a_disk(part: float) -> None:
    with pytest.raises(InputError, match=r"is no disk reserve: .* from 0 to below 1"):
        Pace(disk_reserve=part)
    with pytest.raises(InputError, match=f"^{part} is no disk reserve"):
        PaceChange(disk_reserve=part)


def test_a_disk_reserve_of_nothing_is_one() -> None:
    assert Pace().changed(PaceChange(disk_reserve=0.0)).disk_reserve == 0.0


@pytest.mark.parametrize(("hours", "said"), [
    ({"time_zone": "Mars/Base"}, "unknown time zone 'Mars/Base'; write for example Europe/Berlin"),
    ({"deadline_ms": 253_402_300_799_999}, "a deadline must be in the years 1970 to 9998; leave it out"),
    ({"deadline_ms": -1}, "a deadline must be in the years 1970 to 9998; leave it out"),
])  # fmt: skip
def test_hours_that_no_clock_shows_are_refused(hours: dict[str, Any], said: str) -> None:
    """A run that takes them could no longer show its own hours."""
    with pytest.raises(InputError, match=said):
        Schedule(**hours)
