"""Rows that become hours and kept samples, worked out by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from kreassign.pipeline.load.hours import HOUR_MS, opened
from kreassign.pipeline.load.hours import hours as hours_of
from kreassign.pipeline.load.judge import JUDGED, TO_JUDGE, in_order, judge, samples_of
from kreassign.pipeline.load.rates import rates
from kreassign.pipeline.tables.schemas import Row
from tests.pipeline.load.samples import judged, to_judge

BEGIN_MS = 489_514 * HOUR_MS
MINUTE_MS = 60_000
KEY = {"cluster_id": "c", "topic": "t", "partition": 0}
TWICE = "another row has the same time"
AHEAD = "end_offset is ahead of the samples after it, and comes back"


def at(minute: float, end: int, **values: Any) -> Row:
    """A sample so many minutes after the beginning, of a log of records of 100 bytes and 1,000 bytes more."""
    return {"taken_ms": BEGIN_MS + int(minute * MINUTE_MS), "end_offset": end, "size_bytes": 1000 + 100 * end} | values


def steady(*minutes: float, **values: Any) -> list[Row]:
    """Samples of a log to which a record a second is written."""
    return [at(minute, int(minute * 60), **values) for minute in minutes]


def found(name: str, rows: list[Row]) -> list[Any]:
    """Values of one column of `JUDGED`."""
    values: list[Any] = judged(to_judge(rows))[name].combine_chunks().drop_null().to_pylist()
    return values


def hours(rows: list[Row]) -> list[Row]:
    return found("hour", rows)


def kept(rows: list[Row], *names: str) -> list[tuple[Any, ...]]:
    """Samples that are kept: the minute, and these columns."""
    return [((row["taken_ms"] - BEGIN_MS) / MINUTE_MS, *(row[name] for name in names)) for row in found("kept", rows)]


SPOILT = [
    *steady(0, 10, 20, 20), at(30, 999_999), at(40, 2400, size_bytes=None), *steady(50, 70, 80, leader=2),
]  # fmt: skip
"""One sample is there twice, one is odd, one has no size; then another broker leads."""


def test_an_hour_adds_up_what_the_samples_in_it_say() -> None:
    first, second = hours(SPOILT)
    assert first == KEY | {
        "epoch": 0, "hour_ms": BEGIN_MS, "is_open": True,
        # Intervals of 10, 10, 20 and 10 minutes, each with a record a second; the first sample ends none.
        "seconds": 3000.0, "good_seconds": 3000.0, "squared_seconds": 3 * 600.0**2 + 1200.0**2,
        "good_records": 3000, "rate_sum": 4_000_000, "reversal_sum": 0, "new_records": 3000, "most_new_records": 1200,
        # At both ends of these a size is known, and the same leader.
        "sized_records": 1200, "new_bytes": 120_000, "contradicted_count": 0,
        "mean_size_bytes": (1000 + 61_000 + 121_000 + 301_000) / 4,
        "sample_count": 5, "odd_count": 1, "first_ms": BEGIN_MS, "last_ms": BEGIN_MS + 50 * MINUTE_MS,
        "last_leader": 2, "last_start_offset": 0, "last_end_offset": 3000, "last_size_bytes": 301_000,
        "rate_bins": [0], "rate_counts": [4], "new_count": 5, "new_twice_count": 1,
    }  # fmt: skip
    assert second == KEY | {
        "epoch": 0, "hour_ms": BEGIN_MS + HOUR_MS, "is_open": True,
        # The interval that began in the hour before ends in this one.
        "seconds": 1800.0, "good_seconds": 1800.0, "squared_seconds": 1200.0**2 + 600.0**2,
        "good_records": 1800, "rate_sum": 2_000_000, "reversal_sum": 0, "new_records": 1800, "most_new_records": 1200,
        # Not those right after the change of leader.
        "sized_records": 600, "new_bytes": 60_000, "contradicted_count": 0,
        "mean_size_bytes": (421_000 + 481_000) / 2,
        "sample_count": 2, "odd_count": 0, "first_ms": BEGIN_MS + 70 * MINUTE_MS,
        "last_ms": BEGIN_MS + 80 * MINUTE_MS, "last_leader": 2, "last_start_offset": 0, "last_end_offset": 4800,
        "last_size_bytes": 481_000, "rate_bins": [0], "rate_counts": [2], "new_count": 2, "new_twice_count": 0,
    }  # fmt: skip


def test_what_is_not_good_counts_for_the_mean_alone() -> None:
    """A gap of 40 minutes among intervals of five, and a truncation."""
    rows = [*steady(0, 5, 10, 15, 55), at(57.5, 100, topic_id="id-1"), at(60, 250), at(65, 550)]
    first, second = hours(rows)
    names = (
        "seconds",
        "good_seconds",
        "squared_seconds",
        "good_records",
        "new_records",
        "most_new_records",
        "rate_sum",
    )
    assert [first[name] for name in names] == [3300.0, 900.0, 3 * 300.0**2, 900, 3300, 2400, 3_000_000]
    assert [first[name] for name in ("rate_counts", "sample_count", "odd_count")] == [[3], 6, 0]
    assert [second[name] for name in names] == [450.0, 450.0, 150.0**2 + 300.0**2, 450, 450, 300, 2_000_000]


def test_a_rate_is_told_in_millionths_and_by_its_bin() -> None:
    # 7 records in 600 s, 1,200 in 600 s, and none: bins of 0.011667, of 2, and of nothing.
    rows = [at(0, 0), at(10, 7), at(20, 1207), at(30, 1207)]
    (hour,) = hours(rows)
    assert (hour["rate_sum"], hour["new_records"], hour["most_new_records"]) == (11_667 + 2_000_000, 1207, 1200)
    assert (hour["rate_bins"], hour["rate_counts"]) == ([-1_000_000, -445, 70], [1, 1, 1])


def test_repeated_answers_show_in_rates_that_take_each_other_back() -> None:
    """Half of the answers are those of the round before: 0, 2, 0, 2 and 0 records a second in place of one."""
    (hour,) = hours([at(10 * number, 1200 * (number // 2)) for number in range(6)])
    assert (hour["rate_sum"], hour["reversal_sum"]) == (4_000_000, 6_000_000 - 1_500_000)
    (steady_hour,) = hours(steady(0, 10, 20, 30, 40, 50))
    assert steady_hour["reversal_sum"] == 0


def test_rates_weigh_records_of_each_interval_unless_sizes_are_rounded() -> None:
    def bins(unit: int) -> list[int]:
        sizes = (1, 60_001, 240_001)
        rows = [at(10 * number, 600 * number, size_bytes=size // unit * unit) for number, size in enumerate(sizes)]
        (hour,) = hours(rows)
        return list(hour["rate_bins"])

    assert bins(1) == [-69, 41], "0.5 and 1.5 records of the mean size per second"
    assert bins(60_000) == [0]


def test_of_an_hour_of_odd_samples_nothing_is_known() -> None:
    rows = [*steady(0, 20, 40, 50), at(70, 10**9), *steady(130, 140, 150)]
    _, odd, _ = hours(rows)
    of_samples = ("mean_size_bytes", "first_ms", "last_ms", "last_leader", "last_end_offset", "last_size_bytes")
    assert [odd[name] for name in of_samples] == [None] * 6
    counts = ("seconds", "new_records", "sample_count", "odd_count", "new_count")
    assert [odd[name] for name in counts] == [0.0, 0, 0, 1, 0]
    assert (odd["rate_bins"], odd["rate_counts"]) == ([], [])


def test_partitions_and_epochs_have_hours_of_their_own() -> None:
    rows = [*steady(0, 10), *(row | {"topic_id": "id-2"} for row in steady(20, 30)), *steady(0, 10, partition=1)]
    told = [(hour["partition"], hour["epoch"], hour["new_records"], hour["first_ms"]) for hour in hours(rows)]
    assert told == [(0, 0, 600, BEGIN_MS), (0, 1, 600, BEGIN_MS + 20 * MINUTE_MS), (1, 0, 600, BEGIN_MS)]
    both = hours([*steady(0, 10), *steady(0, 10, topic="u"), *steady(0, 10, cluster_id="d")])
    assert [(hour["cluster_id"], hour["topic"], hour["sample_count"]) for hour in both] == [
        ("c", "t", 2), ("c", "u", 2), ("d", "t", 2),
    ]  # fmt: skip


EVERY_TEN = range(0, 330, 10)


@pytest.mark.parametrize(("late_ms", "first_open"), [(0, 1), (1, 2)])
def test_hours_stay_open_while_a_sample_in_them_can_be_judged_again(late_ms: int, first_open: int) -> None:
    """The latest is from 5:20. The ninth after that of 1:50 is from 3:20, two hours before; or a millisecond more."""
    rows = steady(*EVERY_TEN)
    rows[-1]["taken_ms"] += late_ms
    assert [(hour["hour_ms"] - BEGIN_MS) // HOUR_MS for hour in hours(rows) if hour["is_open"]] == [
        *range(first_open, 6)
    ]


def test_before_open_hours_as_many_samples_are_kept_as_their_rules_look_at() -> None:
    rows = steady(*EVERY_TEN)
    rows[-1]["taken_ms"] += 1
    names = ("is_closed", "is_clean", "epoch", "is_set_aside", "is_read_again", "reason")
    before = [one for one in kept(rows, *names) if one[0] < 120]
    assert before == [(minute, True, True, 0, False, True, None) for minute in range(70, 120, 10)]
    after = [one for one in kept(rows, *names) if one[0] >= 120]
    assert [one[0] for one in after] == pytest.approx([*range(120, 330, 10)])
    assert {one[1:] for one in after} == {(False, None, None, False, True, None)}
    (open_from,) = {one[1] for one in kept(rows, "open_from_ms")}
    assert open_from == BEGIN_MS + 2 * HOUR_MS


def test_odd_samples_of_closed_hours_are_set_aside() -> None:
    rows = steady(*EVERY_TEN)
    rows[1], rows[-5] = at(10, 10**9), at(280, 10**9)
    rows[-1]["taken_ms"] += 1
    told = [one for one in kept(rows, "reason", "is_closed", "is_set_aside", "is_read_again", "is_clean") if one[1]]
    assert told == [(10, AHEAD, True, True, False, False), (280, AHEAD, False, True, True, None)]
    # Neighbours are five that count, among three of any kind.
    rows = steady(*EVERY_TEN)
    rows[9] = at(90, 10**9)
    rows[-1]["taken_ms"] += 1
    neighbours = [one for one in kept(rows, "is_set_aside", "is_read_again") if one[0] < 120 and one[2]]
    assert neighbours == [(minute, minute == 90, True) for minute in range(60, 120, 10)]


def test_of_the_last_samples_three_are_kept_though_they_do_not_count() -> None:
    rows = steady(*EVERY_TEN)
    rows[-1]["taken_ms"] += 1
    for place in (10, 11):
        rows.insert(place, dict(rows[place]))
    neighbours = [one for one in kept(rows, "reason") if one[0] < 120]
    assert [one for one in neighbours if one[1]] == [(100, TWICE)]


def test_closed_samples_are_neighbours_that_make_no_hour() -> None:
    closed = {"is_closed": True, "is_new": False, "is_clean": True, "epoch": 3, "open_from_ms": BEGIN_MS + HOUR_MS}
    rows = [*steady(40, 50, **closed), *steady(60, 70)]
    (hour,) = hours(rows)
    assert (hour["hour_ms"], hour["seconds"], hour["epoch"], hour["new_count"]) == (BEGIN_MS + HOUR_MS, 1200.0, 3, 2)
    assert kept(rows, "is_closed", "is_read_again") == [
        (40, True, True), (50, True, True), (60, False, True), (70, False, True),
    ]  # fmt: skip


def test_only_new_samples_are_counted_as_new() -> None:
    old = {"is_new": False, "open_from_ms": BEGIN_MS}
    (hour,) = hours([*steady(0, 10, **old), *steady(20, 20, 30)])
    assert (hour["sample_count"], hour["new_count"], hour["new_twice_count"]) == (4, 2, 1)
    (hour,) = hours([*steady(0, 10, 20, 20, **old), *steady(30)])
    assert (hour["sample_count"], hour["new_count"], hour["new_twice_count"]) == (4, 1, 0)


def test_new_samples_of_closed_hours_are_late_and_count_for_nothing() -> None:
    old = {"is_new": False, "open_from_ms": BEGIN_MS + HOUR_MS}
    rows = [*steady(65, **old), *steady(59, 60, 70), *steady(50, partition=1)]
    assert found("late_count", rows) == [1]
    assert [(hour["partition"], hour["sample_count"]) for hour in hours(rows)] == [(0, 3), (1, 1)]
    assert [minute for (minute,) in kept(rows)] == [60, 65, 70, 50]


def test_where_all_are_late_nothing_else_is_told() -> None:
    rows = steady(10, 20, open_from_ms=BEGIN_MS + HOUR_MS)
    table = judged(to_judge(rows))
    assert (table.num_rows, found("late_count", rows)) == (1, [2])


def test_bad_samples_are_set_aside_as_they_are() -> None:
    bad = at(10, 600, reason="size_bytes is negative")
    told_before = {"is_new": False, "reason": AHEAD, "open_from_ms": BEGIN_MS}
    rows = [at(0, 0), bad, at(20, 1200), at(30, 1800, **told_before)]
    names = ("reason", "is_closed", "is_set_aside", "is_read_again", "is_clean", "epoch", "is_new")
    assert kept(rows, *names) == [
        (10, "size_bytes is negative", True, True, False, None, None, True),
        (0, None, False, False, True, None, None, True),
        (20, None, False, False, True, None, None, True),
        (30, None, False, False, True, None, None, False),
    ]
    (hour,) = hours(rows)
    assert (hour["sample_count"], hour["new_records"]) == (3, 1800)
    alone = judged(to_judge([bad]))
    assert alone["kept"].combine_chunks().drop_null().to_pylist()[0]["end_offset"] == 600


def test_reasons_of_loads_before_stay_whatever_they_are() -> None:
    closed = {"is_closed": True, "is_new": False, "is_clean": False, "epoch": 0, "open_from_ms": BEGIN_MS + HOUR_MS}
    reasons = (AHEAD, "of another time", TWICE, "of yet another time")
    rows = [row | {"reason": reason} for row, reason in zip(steady(30, 40, 50, 55, **closed), reasons, strict=True)]
    told = kept([*rows, *steady(60, 70)], "reason")
    assert told[-5:] == [(40, reasons[1]), (50, reasons[2]), (55, reasons[3]), (60, None), (70, None)]


def test_rows_may_come_in_several_batches_or_in_none() -> None:
    table = to_judge(SPOILT)
    batches = [batch for start in range(0, len(SPOILT), 2) for batch in table.slice(start, 2).to_batches()]
    assert pa.Table.from_batches(judge(batches), schema=JUDGED).equals(judged(table))
    assert list(judge([])) == []
    assert table.column_names == list(TO_JUDGE)


def test_each_row_has_one_column() -> None:
    for row in judged(to_judge(SPOILT)).to_pylist():
        assert sum(value is not None for value in row.values()) == 1


def test_an_hour_says_where_its_first_and_its_last_sample_are() -> None:
    rows = [*steady(0, 20, 40, 50), at(70, 10**9), *steady(130, 140, 150)]
    table = to_judge(rows)
    order, series = in_order(table)
    _, samples = samples_of(table.take(order), series)
    told = rates(samples)
    found = hours_of(samples, told, opened(samples, told).is_open, np.ones(len(rows), np.bool_))
    assert found is not None
    assert (found.first.tolist(), found.last.tolist(), found.rates.begins.tolist()) == (
        [0, 4, 5],
        [3, -1, 7],
        [0, 1, 1, 2],
    )


def test_sums_of_sizes_are_exact_however_large() -> None:
    rows = [at(minute / 2, 0, size_bytes=2**48 - 1) for minute in range(119)]
    assert [hour["mean_size_bytes"] for hour in hours(rows)] == [2**48 - 1]


def test_of_rows_with_equal_times_one_with_a_size_counts() -> None:
    unknown, empty = at(0, 0, size_bytes=None), at(0, 0, size_bytes=0)
    for rows in ([unknown, empty], [empty, unknown]):
        (hour,) = hours(rows)
        assert (hour["last_size_bytes"], hour["sample_count"]) == (0, 1)
