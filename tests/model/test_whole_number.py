"""Whole numbers as texts spell them, and the one place that reads them."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kreassign.model.text import LARGEST_ID, parse_whole, signed_number
from tests.checks.source import Finding, assert_none, product

NO_NUMBERS = ["", "nan", "inf", "-1", "+1", "1.5", "1e3", " 1", "1_0", "²", "٣", "0x1", "9" * 5_000, "1\n"]


@given(st.integers(0, LARGEST_ID), st.integers(0, 5_000))
def test_digits_are_read_however_many_zeros_are_before_them(number: int, zeros: int) -> None:
    assert parse_whole("0" * zeros + str(number)) == number


@pytest.mark.parametrize("text", [*NO_NUMBERS, str(LARGEST_ID + 1)], ids=range(len(NO_NUMBERS) + 1))
def test_what_is_no_number_or_too_large_is_refused_with_how_it_begins(text: str) -> None:
    with pytest.raises(ValueError, match="is not a whole number from 0 to 2147483647") as refusal:
        parse_whole(text)
    assert repr(text)[1:-1][:20] in str(refusal.value)
    assert len(str(refusal.value)) < 120


@given(st.integers(-(2**63), 2**63 - 1))
def test_a_sign_is_read_where_it_may_be(number: int) -> None:
    assert signed_number(str(number)) == number
    assert signed_number(f"{number:+}") == number


@pytest.mark.parametrize(("text", "least", "most"), [
    ("-2", -2, 2), ("2", -2, 2), ("-0", 0, 5), ("5", 5, 5), ("007", 7, 9), ("9223372036854775808", 0, 2**63),
])  # fmt: skip
def test_a_number_is_read_up_to_its_bounds(text: str, least: int, most: int) -> None:
    assert parse_whole(text, least=least, most=most) == int(text)


@pytest.mark.parametrize(("text", "least", "most"), [
    ("-3", -2, 2), ("3", -2, 2), ("4", 5, 5), ("6", 5, 5), ("+1", 0, 5), ("-1", 0, 5),
])  # fmt: skip
def test_a_number_beyond_its_bounds_is_refused_with_them(text: str, least: int, most: int) -> None:
    with pytest.raises(ValueError, match=rf"^'{re.escape(text)}' is not a whole number from {least} to {most}$"):
        parse_whole(text, least=least, most=most)


def test_ids_are_the_default_bounds_of_a_number() -> None:
    assert (parse_whole("0"), parse_whole("2147483647")) == (0, LARGEST_ID)
    for text in ("-1", "2147483648"):
        with pytest.raises(ValueError, match=f"'{text}' is not a whole number from 0 to 2147483647"):
            parse_whole(text)


@pytest.mark.parametrize(("text", "number"), [
    ("9" * 19, 10**19 - 1), ("-" + "9" * 19, 1 - 10**19), ("9" * 20, None), ("1" + "0" * 19, None),
    ("0" * 30 + "1", 1), ("", None), ("²", None), ("-000", 0), ("+0012", 12), ("+", None), ("1-2", None),
])  # fmt: skip
def test_a_number_has_at_most_nineteen_digits_without_the_zeros_before_it(text: str, number: int | None) -> None:
    assert signed_number(text) == number


# Who asks `isdigit` whether `int` can be called gets an exception for `²`, and for 5,000 digits.
ASKED = re.compile(r"\.is(digit|decimal|numeric)\(")
MAY_ASK = (
    "model/kafka_json.py",  # looks at single characters
    "model/znodes/",  # read what Kafka wrote
    "twin/controller/",  # values of configuration, in Kafka's own order of checks
    "twin/faults/schedule.py",  # looks at a single character
)


def test_texts_from_outside_are_read_as_numbers_in_one_place() -> None:
    assert_none(
        Finding(source.path, number, "asks whether digits are digits; read them with model.whole_number")
        for source in product()
        if not source.path.removeprefix("src/kreassign/").startswith(MAY_ASK)
        for number, text in enumerate(source.lines, start=1)
        if ASKED.search(text)
    )
