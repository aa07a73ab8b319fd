"""Times at which a run may move data, by clocks that change; moves that cannot end in the window are not started."""

from __future__ import annotations

from datetime import datetime
from itertools import islice
from math import inf
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kreassign.executor.scheduling.limits import PacedMove
from kreassign.executor.scheduling.windows import (
    TimeLeft,
    forecast,
    local_time,
    longest_s,
    open_interval,
    open_intervals,
    shortfalls,
)
from kreassign.model import TopicPartition
from kreassign.model.pace import Order, Schedule, UtcOffset, Window
from tests.executor.scheduling.choosing import choose

BERLIN = "Europe/Berlin"
NIGHT = Window(22 * 60, 6 * 60)


def at(text: str, zone: str = BERLIN, *, fold: int = 0) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone), fold=fold).timestamp() * 1000


def shown(hours: Schedule, at_ms: float) -> tuple[str, str]:
    found = open_interval(hours, at_ms)
    assert found is not None
    begins, ends = (local_time(hours, time).split()[1] for time in (found.begins_ms, found.ends_ms))
    return begins, ends


def test_a_window_over_midnight_is_open_on_both_days() -> None:
    hours = Schedule((NIGHT,), BERLIN)
    for inside in ("2026-06-01T23:00", "2026-06-02T05:59"):
        found = open_interval(hours, at(inside))
        assert found is not None
        assert (found.begins_ms, found.ends_ms) == (at("2026-06-01T22:00"), at("2026-06-02T06:00"))


@pytest.mark.parametrize(("zone", "around"), [
    (BERLIN, "2026-03-29T01:00"), (BERLIN, "2026-10-25T01:00"), ("Australia/Lord_Howe", "2026-04-04T15:00"),
    ("Africa/Casablanca", "2026-02-15T02:00"), ("Pacific/Apia", "2011-12-30T10:00"),
    ("Asia/Kolkata", "2026-01-01T00:00"),
])  # fmt: skip
def test_a_clock_of_offsets_shows_what_the_time_zone_does(zone: str, around: str) -> None:
    """Both ways, minute by minute, also where local times are skipped or shown twice."""
    known, at_ms = ZoneInfo(zone), at(around, "UTC")
    clock = Schedule(time_zone=zone).dated(round(at_ms)).clock
    for minute in range(-26 * 60, 26 * 60, 5):
        instant_s = at_ms / 1000 + 60 * minute
        ours, theirs = (datetime.fromtimestamp(instant_s, one) for one in (clock, known))
        assert (ours.replace(tzinfo=None), ours.fold) == (theirs.replace(tzinfo=None), theirs.fold)
        for fold in (0, 1):
            local = ours.replace(fold=fold)
            assert local.timestamp() == local.replace(tzinfo=known).timestamp()


def test_after_its_last_offset_a_clock_goes_on() -> None:
    clock = Schedule(time_zone=BERLIN, offsets=(UtcOffset(0, 3_600), UtcOffset(1_000, 7_200))).clock
    assert [datetime.fromtimestamp(s, clock).hour for s in (-3_600, 10**9 // 86_400 * 86_400)] == [0, 2]


def test_outside_a_window_the_next_one_is_told() -> None:
    found = open_interval(Schedule((NIGHT,), BERLIN), at("2026-06-02T06:00"))
    assert found is not None
    assert found.begins_ms == at("2026-06-02T22:00")


@pytest.mark.parametrize(("day", "long_h"), [("2026-03-28", 7), ("2026-10-24", 9), ("2026-06-01", 8)])
def test_a_night_on_which_the_clock_changes_is_shorter_or_longer(day: str, long_h: int) -> None:
    found = open_interval(Schedule((NIGHT,), BERLIN), at(f"{day}T12:00"))
    assert found is not None
    assert found.seconds == long_h * 3600


def test_a_repeated_hour_ends_windows_early_and_begins_them_late() -> None:
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


def _move(number: int, size_bytes: int, source: int, *destinations: int, writes: float = 0.0) -> PacedMove:
    return PacedMove(TopicPartition("t", number), size_bytes, source, destinations, write_bytes_per_s=writes)


def test_what_shares_a_broker_has_to_end_in_time_together() -> None:
    chosen = choose([_move(0, 600, 1, 8), _move(1, 600, 1, 9)], [], order=Order.NAME, supplies=(TimeLeft(100, 10.0),))
    assert [partition.partition for partition in chosen.starting] == [0]
    assert chosen.waiting[0].reason == "it would not end in the 100 s that are left for what broker 1 copies"


def test_brokers_do_not_wait_for_each_other() -> None:
    assert len(choose([_move(0, 1000, 1, 8), _move(1, 1000, 2, 9)], [], supplies=(TimeLeft(100, 10.0),)).starting) == 2


def test_a_partition_that_is_written_takes_longer() -> None:
    assert choose([_move(0, 500, 1, 8, writes=5.0)], [], supplies=(TimeLeft(100, 10.0),)).starting
    assert not choose([_move(0, 501, 1, 8, writes=5.0)], [], supplies=(TimeLeft(100, 10.0),)).starting


def test_while_no_rate_is_known_one_move_goes_ahead() -> None:
    waiting = [_move(0, 10, 1, 8), _move(1, 10, 2, 9), _move(2, 0, 3)]
    chosen = choose(waiting, [], order=Order.NAME, supplies=(TimeLeft(100, None),))
    assert [partition.partition for partition in chosen.starting] == [0, 2]


def test_when_no_time_is_left_nothing_starts_not_even_a_change_of_order() -> None:
    assert choose([_move(0, 0, 1)], [], supplies=(TimeLeft(0, 10.0),)).starting == ()


MOVES = st.lists(
    st.tuples(st.integers(0, 500), st.integers(0, 3), st.sets(st.integers(4, 7), min_size=1, max_size=2)), max_size=12
).map(lambda rows: [_move(number, size, source, *sorted(into)) for number, (size, source, into) in enumerate(rows)])


@given(MOVES, st.sampled_from(Order), st.integers(0, 100))
def test_the_sum_of_what_starts_ends_in_time_at_every_broker(
    moves: list[PacedMove], order: Order, seconds: int
) -> None:
    starting = choose(moves, [], order=order, supplies=(TimeLeft(seconds, 10.0),)).starting
    started = [move for move in moves if move.topic_partition in starting]
    for broker in range(4):
        assert sum(move.total_bytes for move in started if move.source == broker) <= seconds * 10
    for broker in range(4, 8):
        assert sum(move.size_bytes for move in started if broker in move.destinations) <= seconds * 10


def test_an_impossible_deadline_is_told_with_the_needed_rate() -> None:
    hours = Schedule(deadline_ms=100_000)
    found = forecast([_move(number, 400, 1, 8) for number in range(5)], hours, 0, 10.0)
    assert (found.in_time, found.in_time_bytes, found.required_bytes_per_s, found.too_long) == (2, 800, 20, ())
    (sentence,) = shortfalls(found, hours, 10.0)
    assert sentence.startswith("at 10 B/s per broker at most 2 of 5 moves (800 B) end by 1970-01-01 00:01 UTC; ")
    assert sentence.endswith("all need at least 20 B/s, or more time")


def test_windows_add_up_but_a_move_has_to_fit_into_one() -> None:
    hours = Schedule((Window(0, 1), Window(2, 3)), deadline_ms=180_000)
    small, large = [_move(number, 600, 1, 8) for number in range(2)], [_move(9, 601, 1, 8)]
    assert forecast(small, hours, 0, 10.0).in_time == 2
    found = forecast(large, hours, 0, 10.0)
    assert (found.in_time, found.too_long) == (0, (large[0].topic_partition,))
    assert "no time to come is long enough for 1 move (t-9)" in shortfalls(found, hours, 10.0)[0]
