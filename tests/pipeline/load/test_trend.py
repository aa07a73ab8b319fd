"""Trend of a partition from hours of some weeks, on histories whose answer is known."""

from __future__ import annotations

import math
from collections.abc import Callable

import pyarrow as pa
import pytest

from kreassign.pipeline.load.hours import HOUR_MS
from kreassign.pipeline.load.partition_loads import HOUR_COLUMNS, LOADS, partition_loads
from kreassign.pipeline.tables.schemas import Row
from tests.pipeline.load.hours_known import hour_table, loads

LAST = 489_600
"""The hour of the day of the last hour is 0."""


def history(count: int, rate: Callable[[int], float], partition: int = 0, **values: object) -> list[Row]:
    """So many hours up to the last one; of an hour that is so old the rate, in records of a byte per second."""
    return [
        {
            "partition": partition, "hour_ms": (LAST - age) * HOUR_MS, "new_records": round(3600 * rate(age)),
            "sized_records": round(3600 * rate(age)), "new_bytes": round(3600 * rate(age)),
        } | values
        for age in range(count)
    ]  # fmt: skip


def told(row: Row, *names: str) -> tuple[object, ...]:
    return tuple(row[name] for name in names)


def within(window_days: int, rows: list[Row]) -> Row:
    """Trend of these hours with a window of so many days."""
    batches = hour_table(rows).select(list(HOUR_COLUMNS)).to_batches()
    (row,) = pa.Table.from_batches(partition_loads(batches, window_days), schema=LOADS).to_pylist()
    return dict(row)


GROWTH = 0.05


def test_a_steady_growth_is_a_trend_and_taken_out_of_the_peak() -> None:
    # Each day writes the same in all its hours, and e^0.05 times what the day before did.
    rows = history(28 * 24, lambda age: 1000 * math.exp(-GROWTH * (age // 24)))
    rows = [row | {"mean_size_bytes": 1e6 - 100.0 * (place // 24)} for place, row in enumerate(rows)]
    (row,) = loads(rows)
    assert told(row, "day_count", "has_trend", "week_spread") == (28, True, 0.02)
    assert row["growth_per_day"] == pytest.approx(GROWTH, rel=1e-3)
    assert row["growth_error_per_day"] == pytest.approx(0.0, abs=1e-3)
    week = [1000 * math.exp(-GROWTH * day) for day in range(7)]
    assert row["recent_write_bytes_per_s"] == pytest.approx(sum(week) / 7, rel=1e-3)
    # Without the growth of a day, what is left within each is that of its hours.
    left = [math.exp(GROWTH * hour / 24) for hour in range(24)]
    assert row["week_peak_ratio"] == pytest.approx(left[23] / (sum(left) / 24), rel=1e-3)
    # 168 hours: the 160th, seven times each, is the 23rd of 24.
    assert row["week_p95_ratio"] == pytest.approx(left[22] / (sum(left) / 24), rel=1e-3)
    assert told(row, "size_growth_bytes_per_day", "size_growth_error_bytes_per_day", "size_spread_bytes") == (
        pytest.approx((100.0, 0.0, 0.0), abs=1e-6)
    )
    # Who knew all but the last week would have told it within a twentieth.
    assert 0 < row["backtest_error"] < 0.05
    assert row["backtest_sigmas"] < 1


def test_without_a_trend_ratios_are_those_of_the_hours_of_the_last_week() -> None:
    def rate(age: int) -> float:
        return 9000.0 if age >= 168 else float(age % 24 + 1)

    (row,) = loads(history(8 * 24, rate))
    # 1 to 24, the mean 12.5; the hours before the week are none of it.
    assert told(row, "week_peak_ratio", "week_p95_ratio") == (24 / 12.5, 23 / 12.5)
    assert told(row, "day_count", "has_trend", "growth_per_day", "recent_write_bytes_per_s") == (8, False, None, 12.5)


@pytest.mark.parametrize(("count", "peak", "p95"), [(23, None, None), (24, 2.0 / (25 / 24), 1.0 / (25 / 24))])
def test_a_day_of_hours_is_enough_for_ratios(count: int, peak: float | None, p95: float | None) -> None:
    (row,) = loads(history(count, lambda age: 0.02 if age == 3 else 0.01))
    found = told(row, "week_peak_ratio", "week_p95_ratio")
    assert found == (pytest.approx((peak, p95)) if peak else (None, None))


def test_ratios_and_peaks_are_those_of_each_partition() -> None:
    rows = [
        *history(24, lambda age: 2.0 if age == 5 else 1.0),
        *history(30, lambda _: 0.0, partition=1),
        *history(48, lambda age: 5.0 if age in {2, 26} else 1.0, partition=2),
    ]
    found = loads(rows)
    assert [row["week_peak_ratio"] for row in found] == [
        pytest.approx(2 / (25 / 24)),
        None,
        pytest.approx(5 / (56 / 48)),
    ]
    assert [told(row, "peak_hour", "peak_write_bytes_per_s") for row in found] == [(19, 2.0), (23, 0.0), (22, 5.0)]
    assert [row["day_count"] for row in found] == [1, 1, 2]


def test_a_peak_is_told_if_each_hour_of_the_day_was_measured_a_little() -> None:
    rows = history(24, lambda _: 1.0)
    rows[4] |= {"seconds": 0.5, "new_records": 4}
    (row,) = loads(rows)
    assert told(row, "peak_hour", "peak_write_bytes_per_s") == (20, 8.0)
    (row,) = loads([*rows[:4], rows[4] | {"seconds": 0.0, "new_records": 0}, *rows[5:]])
    assert told(row, "peak_hour", "peak_write_bytes_per_s") == (None, None)


def test_days_beyond_the_window_say_nothing() -> None:
    rows = history(6 * 24, lambda age: 100.0 if age >= 48 else 4.0 if age < 24 else 2.0)
    names = ("day_count", "recent_write_bytes_per_s", "week_peak_ratio", "week_p95_ratio")
    assert told(within(2, rows), *names) == (2, 3.0, 4 / 3, 4 / 3)
    assert told(within(3, rows), *names) == (
        3,
        pytest.approx(106 / 3),
        pytest.approx(300 / 106),
        pytest.approx(300 / 106),
    )
    assert within(28, rows)["day_count"] == 6
    (usual,) = loads(history(40 * 24, lambda _: 1.0))
    assert usual["day_count"] == 28


@pytest.mark.parametrize(("seconds", "days", "recent"), [(2160.0, 1, 4.0), (2159.0, 0, 4.0)])
def test_a_day_counts_with_nine_tenths_of_it(seconds: float, days: int, recent: float) -> None:
    """21 hours and a part; of what was never measured for a day the mean of all is told."""
    part = {"hour_ms": (LAST - 21) * HOUR_MS, "seconds": seconds, "new_records": round(4 * seconds)}
    rows = [*history(21, lambda _: 4.0), history(1, lambda _: 0.0)[0] | part]
    (row,) = loads(rows)
    assert told(row, "day_count", "recent_write_bytes_per_s") == (days, recent)


def test_without_a_whole_day_the_mean_is_that_of_the_last_week() -> None:
    rows = [*history(3, lambda _: 2.0), *(row for row in history(169, lambda age: 2.0 if age == 167 else 90.0)[167:])]
    (row,) = loads(rows)
    assert told(row, "day_count", "recent_write_bytes_per_s") == (0, 2.0)


def test_sizes_of_days_are_means_of_the_hours_in_which_they_are_known() -> None:
    """Two weeks, 700 bytes more each week; of the first day of each only one hour has a size."""
    rows = history(14 * 24, lambda _: 1.0)
    for age, row in enumerate(rows):
        known = age % (7 * 24) >= 24 or age % 24 == 5
        row["mean_size_bytes"] = 10_000.0 - 700.0 * (age // 168) + (age % 2 if known else 0) if known else None
    (row,) = loads(rows)
    assert row["size_growth_bytes_per_day"] == pytest.approx(100.0)
    assert row["size_spread_bytes"] == pytest.approx(0.0, abs=1e-9)
    (unknown,) = loads([row | {"mean_size_bytes": None} for row in rows])
    assert told(unknown, "size_growth_bytes_per_day", "size_spread_bytes") == (None, None)
