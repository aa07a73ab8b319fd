"""TOML that cannot be read is refused by one kind of error."""

from __future__ import annotations

import re

import pytest

from kreassign.model.documents import read_toml


def test_a_document_is_read_with_the_numbers_that_toml_has() -> None:
    assert read_toml("a = 1\n[b]\nc = [inf, 'x']") == {"a": 1, "b": {"c": [float("inf"), "x"]}}


@pytest.mark.parametrize(("text", "said"), [
    (f"a = {'9' * 5_000}", "a number in it has more digits than any size, rate or time"),
    ("a = " + "[" * 100_000, "it is nested too deeply"),
], ids=["digits", "depth"])  # fmt: skip
def test_what_python_refuses_otherwise_is_refused_with_words_for_a_user(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=f"^{said}$"):
        read_toml(text)


def test_what_is_no_toml_is_told_with_its_line() -> None:
    with pytest.raises(ValueError, match=r"^Invalid value \(at line 2, column 5\)$"):
        read_toml("a = 1\nb = x")


WRONG = "Invalid value (at line 2, column 5)"


@pytest.mark.parametrize(("text", "said"), [
    ('["orders"]\na = x', WRONG),
    ('[["a"]]\na = x', WRONG),
    ("a = [\n    x]", WRONG),
    ("{\n}", "Invalid statement (at line 1, column 1); it looks like JSON"),
    ("[\n  1\n]", "Invalid initial character for a key part (at line 1, column 2); it looks like JSON"),
    ("a: 1\nb: 2", "Expected '=' after a key in a key/value pair (at line 1, column 2); it looks like YAML"),
    ('a = "x\nb = 2', "a text has no closing quote (at line 1, column 7)"),
    ("[a]\n[a]", "Cannot declare a twice (at line 2, column 3)"),
    ("[a.'b c']\n[a.'b c']", "Cannot declare a.b c twice (at line 2, column 9)"),
    ("a: {b: 1}\nb: 2", "Expected '=' after a key in a key/value pair (at line 1, column 2)"),
])  # fmt: skip
def test_toml_with_an_error_is_not_taken_for_another_format(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(said)}$"):
        read_toml(text)
