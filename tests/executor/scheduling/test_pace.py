"""Values of a pace."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kreassign.errors import InputError
from kreassign.executor.events import PaceRequested, RunStarted
from kreassign.executor.journal.file import event_from_json, event_to_json, kind_of
from kreassign.executor.scheduling.windows import opening
from kreassign.model.pace import Pace, PaceChange, Schedule, UtcOffset, Window
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


ELSEWHERE = Schedule((Window(0, 60),), "Mars/Base", offsets=(UtcOffset(0, 2 * 3_600), UtcOffset(10**12, 3_600)))
"""Hours of a machine that knows a time zone more."""


@pytest.mark.parametrize("event", [
    replace(started(), pace=Pace(hours=ELSEWHERE)), PaceRequested(1_000, 1, PaceChange(hours=ELSEWHERE)),
], ids=kind_of)  # fmt: skip
def test_a_journal_keeps_the_clock_of_an_unknown_time_zone(event: RunStarted | PaceRequested) -> None:
    back = event_from_json(kind_of(event), event_to_json(event))
    assert (back, hours_in(back).offsets) == (event, ELSEWHERE.offsets)
    until = "until 1970-01-02 01:00 Mars/Base"
    assert opening(hours_in(back), 0) == f"opens in 22 h 0 min, from 1970-01-02 00:00 Mars/Base {until}"


def hours_in(event: RunStarted | PaceRequested) -> Schedule:
    hours = event.pace.hours if isinstance(event, RunStarted) else event.change.hours
    assert hours is not None
    return hours


def test_an_event_has_the_clock_of_its_hours() -> None:
    """Winter in Berlin, until ten years later; an event that was read keeps the clock that it had."""
    berlin = replace(ELSEWHERE, time_zone="Europe/Berlin", offsets=())
    event = PaceRequested(1_765_000_000_000, 1, PaceChange(hours=berlin))
    offsets = hours_in(event).offsets
    assert offsets[:2] == ((1_764_806_400_000, 3_600), (1_774_746_000_000, 7_200))
    assert len(offsets) == 21
    assert hours_in(replace(event, at_ms=0)).offsets == offsets


@pytest.mark.parametrize("hours", [
    replace(ELSEWHERE, offsets=()), Schedule(time_zone="Mars/Base"), Schedule(time_zone="../etc"),
])  # fmt: skip
def test_an_unknown_time_zone_without_its_clock_is_refused(hours: Schedule) -> None:
    for make in (
        lambda: replace(started(), pace=Pace(hours=hours)),
        lambda: PaceRequested(0, 1, PaceChange(hours=hours)),
    ):
        with pytest.raises(InputError, match=f"unknown time zone '{hours.time_zone}'; write for example Europe/Berlin"):
            make()


@pytest.mark.parametrize("seconds", [86_400, -86_400, 10**18])
def test_offsets_that_no_clock_has_are_refused(seconds: int) -> None:
    with pytest.raises(InputError, match="a local clock is less than a day ahead of UTC, or behind it"):
        replace(ELSEWHERE, offsets=(UtcOffset(0, seconds),))


def test_hours_at_a_time_that_no_clock_shows_are_refused() -> None:
    with pytest.raises(InputError, match="no clock shows the time 1000000000000000000, in ms since 1970"):
        Schedule(time_zone="Europe/Berlin").dated(10**18)
