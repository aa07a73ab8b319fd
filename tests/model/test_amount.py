"""Amounts of bytes as people write them."""

from __future__ import annotations

import pytest

from kreassign.errors import InputError
from kreassign.model.amount import ESTIMATED, format_amount, format_load, parse_amount


@pytest.mark.parametrize(("text", "count"), [
    ("0", 0), ("1000000", 1_000_000), ("20MB/s", 20_000_000), ("1.5 GB", 1_500_000_000), ("512KiB", 524_288),
    (" 2 tb/s ", 2_000_000_000_000),
])  # fmt: skip
def test_an_amount_has_a_number_and_may_have_a_unit(text: str, count: int) -> None:
    assert parse_amount(text) == count


@pytest.mark.parametrize("text", ["", "fast", "-1", "1 MB per second", "1XB", "1,5GB", "inf"])
def test_anything_else_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(InputError, match="is not an amount; write for example 20MB/s"):
        parse_amount(text)


@pytest.mark.parametrize("text", ["9223372036854775808", "9.3 EB", "10000 PB", "9" * 400])
def test_what_kafka_cannot_hold_is_refused(text: str) -> None:
    with pytest.raises(InputError, match=r"too large|is not an amount"):
        parse_amount(text)


@pytest.mark.parametrize(("amount", "unit", "text"), [
    (0, "B", "0 B"),
    (999, "B", "999 B"),
    (45_600_000, "B/s", "45.6 MB/s"),
    (2e18, "B", "2 EB"),
    (-1500, "B", "-1.5 kB"),
    (3, "", "3"),
    (1234567, "kg", "1.23457e+06 kg"),
])  # fmt: skip
def test_amounts_are_written_with_their_unit(amount: float, unit: str, text: str) -> None:
    assert format_amount(amount, unit) == text


@pytest.mark.parametrize(("load", "unit", "mean", "text"), [
    (3_000_000, "B/s", 2_000_000, "3 MB/s"),
    (0.7, "of a CPU", 0.5, "0.7 of a CPU"),
    (12, "", 10, "12"),
    (540.0, ESTIMATED, 500.0, "108% of the mean"),
    (0.0, ESTIMATED, 0.0, "0 estimated"),
])  # fmt: skip
def test_loads_are_written_with_their_unit_and_estimates_beside_the_mean(
    load: float, unit: str, mean: float, text: str
) -> None:
    assert format_load(load, unit, mean) == text
