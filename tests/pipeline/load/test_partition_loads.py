"""Rates of partitions, and what they are worth, of hours made by hand."""

from __future__ import annotations

import numpy as np
import pytest

from kreassign.pipeline.load.accuracy import UNSEEN_PEAK
from kreassign.pipeline.load.hours import HOUR_MS, value_of
from kreassign.pipeline.tables.schemas import Row
from tests.pipeline.load.hours_known import loads


def hour(number: int = 0, **values: object) -> Row:
    """An hour with 60 intervals, in which 3,600 records of 10 bytes were written."""
    return {
        "hour_ms": number * HOUR_MS, "new_records": 3600, "good_records": 3600, "rate_sum": 60_000_000,
        "squared_seconds": 60.0**3, "sized_records": 3600, "new_bytes": 36_000, "sample_count": 60,
        "first_ms": number * HOUR_MS, "last_ms": (number + 1) * HOUR_MS, "rate_bins": [0], "rate_counts": [60],
    } | values  # fmt: skip


def told(*rows: Row) -> Row:
    (row,) = loads(list(rows))
    return row


def read(bin_: int) -> float:
    """The rate as which a bin is read."""
    return float(value_of(np.array([bin_]))[0])


def test_rates_are_sums_over_sums() -> None:
    row = told(
        hour(0), hour(1, new_records=7200, new_bytes=108_000, sized_records=7200, seconds=1800.0, good_seconds=900.0)
    )
    assert row["bytes_per_record"] == 144_000 / 10_800
    assert row["write_records_per_s"] == 10_800 / 5400
    assert row["write_bytes_per_s"] == pytest.approx(2 * 144_000 / 10_800)
    assert (row["sample_count"], row["span_s"], row["covered_share"]) == (120, 7200.0, 4500 / 7200)
    assert (row["record_size_basis"], row["reset_count"], row["coverage"], row["verdict"]) == (
        "growth", 0, "measured", "short",
    )  # fmt: skip
    assert (row["cluster_id"], row["topic"], row["partition"]) == ("c", "t", 0)


def test_percentiles_are_of_the_intervals_of_all_hours() -> None:
    row = told(hour(0, rate_bins=[10, 50], rate_counts=[30, 20]), hour(1, rate_bins=[100, 300], rate_counts=[48, 2]))
    # Of 100 intervals: places 49.5, 94.05 and 98.01, from 0 on, a half up.
    assert row["p50_write_bytes_per_s"] == pytest.approx(10 * read(100))
    assert row["p95_write_bytes_per_s"] == pytest.approx(10 * read(100))
    assert row["p99_write_bytes_per_s"] == pytest.approx(10 * read(300))
    median = told(hour(0, rate_bins=[10, 50], rate_counts=[51, 49]))
    assert median["p50_write_bytes_per_s"] == pytest.approx(10 * read(10))
    assert median["p95_write_bytes_per_s"] == pytest.approx(10 * read(50))


def test_hours_with_more_rounds_say_no_more_of_percentiles() -> None:
    """Every 30 seconds in the busy hour of a day, every minute in the others: 8 % of the rounds, 4 % of the time."""
    often = {"rate_bins": [300], "rate_counts": [120], "sample_count": 120}
    row = told(*(hour(number, **(often if number == 3 else {})) for number in range(24)))
    assert row["p95_write_bytes_per_s"] == pytest.approx(10 * read(0))
    assert row["p99_write_bytes_per_s"] == pytest.approx(10 * read(300))


def test_few_measured_hours_give_a_wide_interval() -> None:
    row = told(hour(0))
    assert row["low_write_bytes_per_s"] < 0.05 * row["write_bytes_per_s"]
    assert row["high_write_bytes_per_s"] > 3 * row["write_bytes_per_s"]
    assert row["low_p95_write_bytes_per_s"] == pytest.approx(10 * read(0), rel=0.03)
    # What is above the percentile may not have been seen at all.
    assert row["high_p95_write_bytes_per_s"] == pytest.approx(UNSEEN_PEAK * row["write_bytes_per_s"])
    steep = told(hour(0, rate_bins=[0, 400], rate_counts=[59, 1]))
    assert steep["high_p95_write_bytes_per_s"] == pytest.approx(10 * read(400), rel=0.03)


def test_a_day_of_hours_tells_a_narrow_interval() -> None:
    day = told(*(hour(number) for number in range(24)))
    for name in ("write_bytes_per_s", "p95_write_bytes_per_s"):
        assert day[f"low_{name}"] == pytest.approx(10.0, rel=0.03)
        assert day[f"high_{name}"] == pytest.approx(10.0, rel=0.03)
        assert day[f"low_{name}"] < 10.0 < day[f"high_{name}"]
    assert (day["verdict"], day["covered_share"]) == ("enough", 1.0)


@pytest.mark.parametrize(("values", "size", "basis"), [
    ({}, 10.0, "growth"),
    ({"new_bytes": 1}, 1 / 3600, "growth"),
    ({"sized_records": 1, "new_bytes": 5}, 5.0, "growth"),
    # Nothing that was measured: the whole log, of 200 records.
    ({"sized_records": 0, "new_bytes": 0}, 4.0, "log"),
    ({"sized_records": 0, "new_bytes": 7}, 4.0, "log"),
    ({"new_bytes": 0}, 4.0, "log"),
    ({"new_bytes": 0, "last_start_offset": 299}, 800.0, "log"),
    ({"new_bytes": 0, "last_start_offset": 300}, None, None),
    ({"new_bytes": 0, "last_size_bytes": None}, None, None),
])  # fmt: skip
def test_the_size_of_a_record_is_that_of_those_that_came_else_of_the_log(
    values: Row, size: float | None, basis: str | None
) -> None:
    last = {"last_start_offset": 100, "last_end_offset": 300, "last_size_bytes": 800}
    row = told(hour(0, **last | values))
    assert (row["bytes_per_record"], row["record_size_basis"]) == (size, basis)
    assert row["write_bytes_per_s"] == (None if size is None else pytest.approx(size))
    assert row["coverage"] == ("measured" if basis else "no size")


@pytest.mark.parametrize(("values", "coverage"), [
    ({"sample_count": 2}, "measured"), ({"sample_count": 1}, "one sample"), ({"sample_count": 1, "epoch": 1}, "reset"),
    ({"sample_count": 1, "epoch": 2}, "reset"), ({"sample_count": 2, "epoch": 1}, "measured"),
    ({"sample_count": 2, "sized_records": 0}, "no size"),
])  # fmt: skip
def test_coverage_says_what_rates_rest_on(values: Row, coverage: str) -> None:
    row = told(hour(0, **values))
    assert (row["coverage"], row["reset_count"]) == (coverage, values.get("epoch", 0))
    assert row["verdict"] == ("short" if coverage == "measured" else "unknown")


@pytest.mark.parametrize(("span_ms", "verdict"), [(24 * HOUR_MS, "gaps"), (24 * HOUR_MS - 1, "short")])
def test_less_than_a_day_is_short_and_more_has_gaps(span_ms: int, verdict: str) -> None:
    row = told(hour(0), hour(23, last_ms=span_ms))
    assert (row["verdict"], row["span_s"]) == (verdict, span_ms / 1000)


def test_of_half_a_second_there_is_a_rate_and_of_nothing_none() -> None:
    row = told(hour(0, seconds=0.5, good_seconds=0.25, new_records=2, last_ms=500))
    assert (row["write_records_per_s"], row["span_s"], row["covered_share"]) == (4.0, 0.5, 0.5)
    row = told(hour(0, seconds=0.0, good_seconds=0.0, new_records=0, sample_count=1, last_ms=0))
    assert (row["write_records_per_s"], row["write_bytes_per_s"], row["span_s"], row["covered_share"]) == (
        None,
        None,
        0.0,
        0.0,
    )


def test_no_more_than_the_whole_span_is_covered() -> None:
    # The first interval began before the first hour.
    assert told(hour(0, first_ms=HOUR_MS // 2))["covered_share"] == 1.0


def test_an_idle_partition_is_known_whatever_its_records_weigh() -> None:
    idle = {
        "new_records": 0,
        "good_records": 0,
        "rate_sum": 0,
        "sized_records": 0,
        "new_bytes": 0,
        "rate_bins": [-1_000_000],
    }
    row = told(*(hour(number, **idle) for number in range(24)))
    assert (row["write_bytes_per_s"], row["p95_write_bytes_per_s"], row["high_p95_write_bytes_per_s"]) == (
        0.0,
        0.0,
        0.0,
    )
    assert (row["bytes_per_record"], row["coverage"], row["verdict"]) == (None, "measured", "enough")
    (short,) = loads([hour(0, **idle)])
    assert short["verdict"] == "short"


def test_each_partition_has_a_row_of_its_own_in_order() -> None:
    rows = [hour(0, partition=2, new_records=7200), hour(0, topic="s", new_records=0), hour(0)]
    found = [(row["topic"], row["partition"], row["write_records_per_s"]) for row in loads(rows)]
    assert sorted(found) == [("s", 0, 0.0), ("t", 0, 1.0), ("t", 2, 2.0)]


def test_what_is_written_slowly_is_known_as_well() -> None:
    """A byte in two seconds."""
    slow = {"new_records": 1800, "good_records": 1800, "rate_sum": 30_000_000, "sized_records": 1800, "new_bytes": 1800}
    row = told(*(hour(number, **slow, rate_bins=[-69]) for number in range(24)))
    assert (row["write_bytes_per_s"], row["verdict"]) == (0.5, "enough")
    assert row["p95_write_bytes_per_s"] == pytest.approx(0.5, rel=0.01)


@pytest.mark.parametrize(("factor", "verdict"), [(1.0, "enough"), (1.15, "gaps")])
def test_a_percentile_that_may_be_more_than_a_tenth_off_is_not_enough(factor: float, verdict: str) -> None:
    """Half of the records of a day are larger, and the size of those of an hour is not known."""
    rows = [hour(number, new_bytes=round(36_000 * (factor if number % 2 else 1))) for number in range(24)]
    rows[4] |= {"sized_records": 0, "new_bytes": 0}
    assert told(*rows)["verdict"] == verdict
