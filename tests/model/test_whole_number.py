"""Whole numbers as texts spell them, and the one place that reads them."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kreassign.model.whole_number import LARGEST_ID, parse_whole, signed_number
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


@pytest.mark.parametrize("text", ["", "--1", "1-", "9" * 20, "-" + "9" * 5_000, "²"])
def test_what_no_number_of_64_bits_can_be_is_none(text: str) -> None:
    assert signed_number(text) is None


# Who asks `isdigit` whether `int` can be called gets an exception for `²`, and for 5,000 digits.
ASKED = re.compile(r"\.is(digit|decimal|numeric)\(")
MAY_ASK = (
    "model/jackson.py",  # looks at single characters
    "model/znodes/",  # read what Kafka wrote
    "twin/controller/",  # values of configuration, in Kafka's own order of checks
    "twin/faults/by_hand.py",  # looks at a single character
)


def test_texts_from_outside_are_read_as_numbers_in_one_place() -> None:
    assert_none(
        Finding(source.path, number, "asks whether digits are digits; read them with model.whole_number")
        for source in product()
        if not source.path.removeprefix("src/kreassign/").startswith(MAY_ASK)
        for number, text in enumerate(source.lines, start=1)
        if ASKED.search(text)
    )
