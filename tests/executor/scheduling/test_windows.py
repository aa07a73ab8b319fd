"""When a run may move data, by clocks that change."""

from __future__ import annotations

from datetime import datetime
from itertools import islice
from math import inf
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kreassign.executor.scheduling import Schedule, Window
from kreassign.executor.scheduling.windows import longest_s, moment, open_interval, open_intervals

BERLIN = "Europe/Berlin"
NIGHT = Window(22 * 60, 6 * 60)


def at(text: str, zone: str = BERLIN, *, fold: int = 0) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone), fold=fold).timestamp() * 1000


def shown(hours: Schedule, at_ms: float) -> tuple[str, str]:
    found = open_interval(hours, at_ms)
    assert found is not None
    begins, ends = (moment(hours, time).split()[1] for time in (found.begins_ms, found.ends_ms))
    return begins, ends


def test_a_window_over_midnight_is_open_on_both_days() -> None:
    hours = Schedule((NIGHT,), BERLIN)
    for inside in ("2026-06-01T23:00", "2026-06-02T05:59"):
        found = open_interval(hours, at(inside))
        assert found is not None
        assert (found.begins_ms, found.ends_ms) == (at("2026-06-01T22:00"), at("2026-06-02T06:00"))


def test_outside_a_window_the_next_one_is_told() -> None:
    found = open_interval(Schedule((NIGHT,), BERLIN), at("2026-06-02T06:00"))
    assert found is not None
    assert found.begins_ms == at("2026-06-02T22:00")


@pytest.mark.parametrize(("day", "long_h"), [("2026-03-28", 7), ("2026-10-24", 9), ("2026-06-01", 8)])
def test_a_night_on_which_the_clock_changes_is_shorter_or_longer(day: str, long_h: int) -> None:
    found = open_interval(Schedule((NIGHT,), BERLIN), at(f"{day}T12:00"))
    assert found is not None
    assert found.seconds == long_h * 3600


def test_of_a_time_that_the_clock_shows_twice_the_first_ends_a_window_and_the_second_begins_one() -> None:
    ends = open_interval(Schedule((Window(22 * 60, 150),), BERLIN), at("2026-10-24T12:00"))
    begins = open_interval(Schedule((Window(150, 6 * 60),), BERLIN), at("2026-10-24T12:00"))
    assert ends is not None
    assert begins is not None
    assert ends.ends_ms == at("2026-10-25T02:30")
    assert begins.begins_ms == at("2026-10-25T02:30", fold=1) == ends.ends_ms + 3_600_000


def test_a_window_of_times_that_the_clock_leaves_out_is_left_out_that_day() -> None:
    hours = Schedule((Window(135, 165),), BERLIN)
    found = open_interval(hours, at("2026-03-29T00:00"))
    assert found is not None
    assert found.begins_ms == at("2026-03-30T02:15")


def test_windows_that_meet_are_one_and_the_whole_day_never_ends() -> None:
    assert shown(Schedule((Window(60, 120), Window(120, 180)), BERLIN), at("2026-06-01T00:30")) == ("01:00", "03:00")
    always = open_interval(Schedule((Window(0, 24 * 60),), BERLIN), at("2026-06-01T00:30"))
    assert always is not None
    assert always.ends_ms == inf


def test_a_deadline_cuts_a_window_short_and_after_it_there_is_none() -> None:
    hours = Schedule((NIGHT,), BERLIN, deadline_ms=round(at("2026-06-02T01:00")))
    assert shown(hours, at("2026-06-01T12:00")) == ("22:00", "01:00")
    assert open_interval(hours, at("2026-06-02T01:00")) is None
    before_any = Schedule((NIGHT,), BERLIN, deadline_ms=round(at("2026-06-01T20:00")))
    assert open_interval(before_any, at("2026-06-01T12:00")) is None


def test_without_windows_all_the_time_before_the_deadline_is_open() -> None:
    assert sum(one.seconds for one in open_intervals(Schedule(deadline_ms=90_000), 30_000)) == 60
    assert longest_s(Schedule(deadline_ms=90_000), 30_000) == 60


def test_openings_come_back_every_day() -> None:
    found = islice(open_intervals(Schedule((NIGHT,), BERLIN), at("2026-06-02T05:00")), 12)
    assert [one.seconds / 3600 for one in found] == [1, *[8] * 11]


MINUTES = st.integers(0, 24 * 60 - 1)
WINDOWS = st.lists(st.tuples(MINUTES, MINUTES).filter(lambda ends: ends[0] != ends[1]), min_size=1, max_size=3)


@given(WINDOWS, st.sampled_from([BERLIN, "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu"]), st.data())
def test_nothing_is_open_at_a_time_that_no_window_names(
    spans: list[tuple[int, int]], zone: str, data: st.DataObject
) -> None:
    hours = Schedule(tuple(Window(*span) for span in spans), zone)
    at_ms = data.draw(st.integers(1_770_000_000_000, 1_800_000_000_000))
    found = open_interval(hours, at_ms)
    assert found is not None
    assert found.ends_ms > at_ms
    local = datetime.fromtimestamp(at_ms / 1000, ZoneInfo(zone))
    minute = local.hour * 60 + local.minute
    named = any(a <= minute < b if a < b else minute >= a or minute < b for a, b in spans)
    if found.begins_ms <= at_ms:
        assert named
