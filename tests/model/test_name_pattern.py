"""Regular expressions for names: one reading, here and in Java."""

from __future__ import annotations

import pytest

from kreassign.model.text import SetWithinSetError, name_pattern


@pytest.mark.parametrize("text", [
    "[[a]b]", "[ab[^c]]*", "[a-z[A-Z]]+", "[^[a]b]", "[]a[b]]", r"[\]a[b]]", "x[a]y[b[c]]", "[a[b", "[[:alpha:]]",
    "[&&b]", "[^&&b]", "[]&&a]", "[a-z&&[^b]]", r"[\d&&a]", "[a||b]", "[a-z--b]", "[--b]", "[a~~b]",
])  # fmt: skip
def test_a_set_within_a_set_is_refused_wherever_it_begins(text: str) -> None:
    with pytest.raises(SetWithinSetError, match="has a set of characters within a set"):
        name_pattern(text)


@pytest.mark.parametrize(("text", "name"), [
    (r"[a\[b]", "["), (r"\[[a]", "[a"), (r"[\\]", "\\"), ("[]a]", "]"), ("[^]a]", "b"), ("[a][b]", "ab"),
    ("[a-]", "-"), (r"[+-\-]", ","), (r"[&\&]", "&"), ("[a&b|c]", "&"), ("a&&b", "a&&b"), ("[a]--[b]", "a--b"),
])  # fmt: skip
def test_brackets_and_signs_with_one_reading_are_taken(text: str, name: str) -> None:
    assert name_pattern(text).fullmatch(name)
