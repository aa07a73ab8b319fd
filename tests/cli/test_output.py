import click
import pytest

from kreassign.cli.output import parse_quantity


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
