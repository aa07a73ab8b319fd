import pytest
from hypothesis import given
from hypothesis import strategies as st

from kreassign.model.text import combined_hash, share_of, string_hash

LEAST = -(2**31)


@pytest.mark.parametrize(("text", "expected"), [
    ("", 0),
    ("a", 97),
    ("Aa", 2112),
    ("BB", 2112),
    ("hello", 99162322),
    ("hello world", 1794106052),
    ("The quick brown fox jumps over the lazy dog", -609428141),
    ("polygenelubricants", LEAST),
    ("\u20ac", 0x20AC),
    ("\ud83d", 0xD83D),
    ("\U0001f600", 31 * 0xD83D + 0xDE00),
])  # fmt: skip
def test_a_text_has_the_hash_that_java_gives_it(text: str, expected: int) -> None:
    assert string_hash(text) == expected


@given(st.text(), st.integers(0, 2**31 - 1))
def test_a_number_goes_on_with_the_hash_of_a_text(text: str, number: int) -> None:
    assert LEAST <= combined_hash(text, number) < -LEAST
    assert (combined_hash(text, number) - 31 * string_hash(text) - number) % 2**32 == 0


@given(st.text(max_size=8), st.integers(1, 50))
def test_a_longer_text_goes_on_with_the_hash_of_its_beginning(text: str, number: int) -> None:
    assert string_hash(text + chr(number)) == combined_hash(text, number)


@pytest.mark.parametrize(("hash_code", "count", "expected"), [
    (7, 5, 2), (-7, 5, 2), (0, 3, 0), (2**31 - 1, 50, 47), (LEAST + 1, 50, 47),
])  # fmt: skip
def test_a_hash_belongs_to_one_of_many_by_its_amount(hash_code: int, count: int, expected: int) -> None:
    assert share_of(hash_code, count) == expected


def test_the_least_hash_belongs_to_the_first_partition() -> None:
    assert share_of(string_hash("polygenelubricants"), 50) == 0
    assert share_of(LEAST, 7) == 0
