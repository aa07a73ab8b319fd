import click
import pytest

from kreassign.cli.options.values import parse_duration, parse_quantity


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("1000", 1000),
        ("20MB/s", 20_000_000),
        ("20 mb", 20_000_000),
        ("512KiB", 524_288),
        ("1.5GB/s", 1_500_000_000),
        ("0", 0),
        ("7B/s", 7),
    ],
)
def test_amounts_are_read_in_decimal_and_binary_units(text: str, count: int) -> None:
    assert parse_quantity(text) == count


@pytest.mark.parametrize("text", ["", "MB", "-1", "20 bananas", "1e6", "20MB/h", "1.MB"])
def test_an_amount_that_cannot_be_read_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(click.BadParameter, match="20MB/s"):
        parse_quantity(text)


@pytest.mark.parametrize(
    ("text", "seconds"), [("5s", 5), ("500ms", 0.5), ("1.5m", 90), ("2h", 7200), ("7", 7), (" 3 s ", 3), ("0s", 0)]
)
def test_durations_are_read_with_their_unit(text: str, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "s", "5 parsecs", "-1s", "1s2s"])
def test_what_is_no_duration_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(click.BadParameter, match="write for example 5s"):
        parse_duration(text)
