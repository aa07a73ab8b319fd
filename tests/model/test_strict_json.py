"""JSON without what Python's reader takes although no JSON has it, or no file of ours can mean it."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kreassign.model.documents import finite, is_half, read_json

DOCUMENTS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(DOCUMENTS, st.booleans())
def test_any_other_document_is_read_as_ever(document: object, is_ascii: bool) -> None:
    text = json.dumps(document, ensure_ascii=is_ascii)
    assert read_json(text) == document


@pytest.mark.parametrize(("text", "value"), [("1.5", 1.5), ("-2", -2.0), ("1e308", 1e308), ("0", 0.0)])
def test_any_other_number_is_read(text: str, value: float) -> None:
    assert finite(text) == value


@pytest.mark.parametrize(("text", "said"), [
    ("x", "could not convert string to float: 'x'"),
    ("nan", "nan is not a finite number"),
    ("-Infinity", "-Infinity is not a finite number"),
    ("1e" + "9" * 38, f"1e{'9' * 38} is not a finite number"),
    ("1e" + "9" * 39, f"1e{'9' * 38}… is not a finite number"),
])  # fmt: skip
def test_a_number_that_is_none_is_named_as_far_as_a_message_has_room(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(said)}$"):
        finite(text)


@pytest.mark.parametrize(("text", "said"), [
    ("[NaN]", "NaN is not a number in JSON"),
    ('{"a": -Infinity}', "-Infinity is not a number in JSON"),
    ("[1e400]", "1e400 is not a finite number"),
    ("[" + "9" * 4301, f"{'9' * 40}… is larger than any size, rate or time"),
    (r'"\uD800"', r"$ is '\ud800', which has half of a surrogate pair and is no text"),
    (r'{"a": [1, {"b": "\uDbff"}]}', r"$.a[1].b is '\udbff', which has half of a surrogate pair and is no text"),
    (r'{"\udc00": 1}', r"a key of $ is '\udc00', which has half of a surrogate pair and is no text"),
    (r'[[], "x", {"a": {"\ude00x": 1}}]',
     r"a key of $[2].a is '\ude00x', which has half of a surrogate pair and is no text"),
    ("[" * 100_000, "it is nested too deeply"),
], ids=range(9))  # fmt: skip
def test_a_refusal_names_the_number_or_the_place(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(said)}$"):
        read_json(text)


ANOTHER = "it is a text of another kind"
YAML = "it looks like YAML"
TOML = "it looks like TOML or a file of properties"
NO_VALUE = "line 1, column 1: a value is missing, or is not JSON"
ALONE = "the value before it stands in no object"


@pytest.mark.parametrize(("text", "said"), [
    ("version: 1\npartitions:\n", YAML),
    ("<!doctype html>\n<style>p { color: red }</style>", "it looks like HTML or XML"),
    ("a = 1\nb = 2", TOML),
    ("once", ANOTHER),
    ("41ab", ANOTHER),
    ("NaN", ANOTHER),
    ("1e999", ANOTHER),
    ('\u00a0{"version": 1}', NO_VALUE),
    ('\f{"version": 1}', NO_VALUE),
    ('WARN: slow\nWARN: again\n{"version": 1}', NO_VALUE),
    ('level=info a\nlevel=info b\n{"version": 1}', NO_VALUE),
    ('2026-11-30 slow\n{"version": 1}', f"line 1, column 5: {ALONE}"),
    ('"version": 1,\n"partitions": [', f"line 1, column 10: {ALONE}"),
    ("[1, 2\n3]", "line 2, column 1: a comma or the closing bracket is missing"),
])  # fmt: skip
def test_a_format_is_named_only_where_nothing_is_json(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(said)}$"):
        read_json(text)


def test_numbers_may_have_as_many_digits_as_python_reads() -> None:
    assert read_json("9" * 4300) == int("9" * 4300)


def test_nan_of_other_writers_is_null_where_that_is_allowed() -> None:
    assert read_json('[NaN, Infinity, {"a": -Infinity}, 1.5]', takes_nan=True) == [None, None, {"a": None}, 1.5]
    with pytest.raises(ValueError, match=r"^1e400 is not a finite number$"):
        read_json("[1e400]", takes_nan=True)
    with pytest.raises(ValueError, match=r"^\$\[0\] is '\\ud800', which has half"):
        read_json(r'["\ud800"]', takes_nan=True)


@pytest.mark.parametrize(("text", "has_half"), [
    ("", False), ("a\U0001f600", False), ("\ud7ff\ue000", False), ("a\ud800", True), ("\udfffb", True),
])  # fmt: skip
def test_half_of_a_pair_is_found_wherever_it_stands(text: str, has_half: bool) -> None:
    assert is_half(text) is has_half


def test_a_pair_written_as_two_escapes_is_a_text() -> None:
    assert read_json(r'["\ud83d\ude00"]') == ["\U0001f600"]
