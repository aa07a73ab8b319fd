"""Amounts of bytes as people write them."""

from __future__ import annotations

import pytest

from kreassign.errors import InputError
from kreassign.model.text import ESTIMATED, LARGEST_AMOUNT, OF_MEAN, format_amount, format_load, parse_amount, told_load


@pytest.mark.parametrize(("text", "count"), [
    ("0", 0), ("1000000", 1_000_000), ("20MB/s", 20_000_000), ("1.5 GB", 1_500_000_000), ("512KiB", 524_288),
    (" 2 tb/s ", 2_000_000_000_000), ("1 kB", 1000), ("1 mb", 1_000_000), ("1PB", 10**15), ("1eb", 10**18),
    ("1 KiB", 1024), ("1MIB", 1024**2), ("1GiB", 1024**3), ("1TiB", 1024**4), ("1 PiB /s", 1024**5), ("1EiB", 1024**6),
    ("7b", 7), ("7 B/S", 7), ("1.5", 1), ("0.9", 0), ("50MBps", 50_000_000), ("8 KiBps", 8192), ("5kBps", 5000),
])  # fmt: skip
def test_an_amount_has_a_number_and_may_have_a_unit(text: str, count: int) -> None:
    assert parse_amount(text) == count


@pytest.mark.parametrize("text", ["", "fast", "-1", "1 MB per second", "1XB", "1,5GB", "inf"])
def test_anything_else_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(InputError, match="is not an amount; write for example 20MB/s"):
        parse_amount(text)


@pytest.mark.parametrize(("text", "meant"), [
    ("20Mb/s", "20MB/s"), ("1.5 Gb", "1.5GB"), ("8Kib", "8KiB"), ("5MBPS", "5MB/s"), ("5MBit/s", "5MB/s"),
    ("9mbps", "9MB/s"),
])  # fmt: skip
def test_what_would_be_bits_is_refused_with_the_bytes_that_may_be_meant(text: str, meant: str) -> None:
    with pytest.raises(InputError, match=f"would be bits: write {meant} if bytes are meant"):
        parse_amount(text)


@pytest.mark.parametrize(("text", "count"), [
    ("1.005 kB", 1005), ("8.2 MB", 8_200_000), ("9007199254740993", 2**53 + 1), ("9223372036854775807", LARGEST_AMOUNT),
    ("9.223372036854775807 EB", LARGEST_AMOUNT), ("8191 PiB", 8191 * 1024**5),
])  # fmt: skip
def test_an_amount_is_read_to_the_byte(text: str, count: int) -> None:
    assert parse_amount(text) == count


@pytest.mark.parametrize("text", ["9223372036854775808", "9.3 EB", "10000 PB", "8 EiB", "9" * 400, "9" * 5_000])
def test_what_kafka_cannot_hold_is_refused(text: str) -> None:
    with pytest.raises(InputError) as refused:
        parse_amount(text)
    named = text if len(text) <= 40 else f"{text[:40]}…"
    assert str(refused.value) == f"'{named}' is too large; the largest amount is 9223372036854775807 (2^63 - 1)"


@pytest.mark.parametrize(("amount", "unit", "text"), [
    (0, "B", "0 B"),
    (999, "B", "999 B"),
    (999.4, "B", "999 B"),
    (999.5, "B", "1 kB"),
    (1000, "B/s", "1 kB/s"),
    (-999.4, "B", "-999 B"),
    (12.6, "B", "13 B"),
    (999_499, "B", "999 kB"),
    (1_000_000, "B", "1 MB"),
    (1_234_567_890, "B", "1.23 GB"),
    (1e12, "B", "1 TB"),
    (1e15, "B/s", "1 PB/s"),
    (5e20, "B", "500 EB"),
    (45_600_000, "B/s", "45.6 MB/s"),
    (2e18, "B", "2 EB"),
    (-1500, "B", "-1.5 kB"),
    (3, "", "3"),
    (1234567, "kg", "1.23457e+06 kg"),
    (1234567, "", "1.23457e+06"),
    (1.084, OF_MEAN, "108% of the mean"),
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


@pytest.mark.parametrize(("load", "unit", "mean", "told"), [
    (540.0, ESTIMATED, 500.0, (1.08, OF_MEAN)),
    (540.0, ESTIMATED, 0.0, (540.0, ESTIMATED)),
    (540.0, "B", 500.0, (540.0, "B")),
])  # fmt: skip
def test_only_what_is_estimated_becomes_a_part_of_the_mean(
    load: float, unit: str, mean: float, told: tuple[float, str]
) -> None:
    assert told_load(load, unit, mean) == told
