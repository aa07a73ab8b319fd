"""Values of a pace."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kreassign.errors import InputError
from kreassign.executor.events import PaceRequested, RunStarted
from kreassign.executor.journal.file import event_from_json, event_to_json, kind_of
from kreassign.executor.scheduling.windows import local_time, opening
from kreassign.model.pace import Pace, PaceChange, Schedule, Window, check_time_zone
from tests.executor.run_events import started


@pytest.mark.parametrize("part", [float("nan"), float("inf"), -0.1, 1.0, 5.0])
def test_a_disk_reserve_is_a_part_of_a_disk(part: float) -> None:
    with pytest.raises(InputError, match=r"is no disk reserve: .* from 0 to below 1"):
        Pace(disk_reserve=part)
    with pytest.raises(InputError, match=f"^{part} is no disk reserve"):
        PaceChange(disk_reserve=part)


def test_a_disk_reserve_of_nothing_is_one() -> None:
    assert Pace().changed(PaceChange(disk_reserve=0.0)).disk_reserve == 0.0


@pytest.mark.parametrize(("hours", "said"), [
    ({"deadline_ms": 253_402_300_799_999}, "a deadline must be in the years 1970 to 9998; leave it out"),
    ({"deadline_ms": -1}, "a deadline must be in the years 1970 to 9998; leave it out"),
])  # fmt: skip
def test_hours_that_no_clock_shows_are_refused(hours: dict[str, Any], said: str) -> None:
    """A run that takes them could no longer show its own hours."""
    with pytest.raises(InputError, match=said):
        Schedule(**hours)


ELSEWHERE = Schedule((Window(0, 60),), "Mars/Base")
"""Hours of a machine that knows a time zone more."""


@pytest.mark.parametrize("event", [
    replace(started(), pace=Pace(hours=ELSEWHERE)), PaceRequested(1_000, 1, PaceChange(hours=ELSEWHERE)),
], ids=kind_of)  # fmt: skip
def test_a_journal_with_an_unknown_time_zone_is_not_damaged(event: RunStarted | PaceRequested) -> None:
    assert event_from_json(kind_of(event), event_to_json(event)) == event


def test_an_unknown_time_zone_is_refused_only_where_it_is_chosen() -> None:
    with pytest.raises(InputError, match="unknown time zone 'Mars/Base'; write for example Europe/Berlin"):
        check_time_zone(ELSEWHERE)
    assert local_time(ELSEWHERE, 0) == "1970-01-01 00:00 UTC"
    unknown = "when its window opens is unknown: this machine does not know the time zone Mars/Base"
    assert opening(ELSEWHERE, 0) == unknown
