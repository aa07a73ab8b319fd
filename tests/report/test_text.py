from __future__ import annotations

import pytest

from kreassign.report import text


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        (None, "-"),
        (0, "0 B"),
        (999, "999 B"),
        (999.6, "1 kB"),
        (1234, "1.23 kB"),
        (45_600_000, "45.6 MB"),
        (999_600_000, "1 GB"),
        (7e15, "7 PB"),
        (-1_500_000, "-1.5 MB"),
    ],
)
def test_bytes_have_three_digits(count: float | None, expected: str) -> None:
    assert text.format_bytes(count) == expected


def test_rates_are_bytes_per_second() -> None:
    assert (text.format_rate(20_000_000.0), text.format_rate(0.0), text.format_rate(None)) == ("20 MB/s", "0 B/s", "-")


@pytest.mark.parametrize(
    ("seconds", "expected"), [(None, "-"), (0.4, "0:00"), (59.6, "1:00"), (723, "12:03"), (11_045, "3:04:05")]
)
def test_durations_count_up_to_hours(seconds: float | None, expected: str) -> None:
    assert text.format_duration(seconds) == expected


def test_times_are_told_in_utc() -> None:
    assert text.format_time(1_762_250_400_999) == "2025-11-04 10:00:00 UTC"
    assert text.format_time(None) == "-"


def test_counts_are_grouped_and_name_what_they_count() -> None:
    assert (text.format_count(1200), text.format_count(None)) == ("1,200", "-")
