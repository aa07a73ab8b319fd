"""JSON without what Python's reader takes although no JSON has it, or no file of ours can mean it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kreassign.model.strict_json import finite, loads

DOCUMENTS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@pytest.mark.parametrize(("text", "complaint"), [
    ("[NaN]", "NaN is not a number in JSON"),
    ('{"a": -Infinity}', "-Infinity is not a number in JSON"),
    ("1e999", "1e999 is not a finite number"),
    (f'{{"a": {"9" * 5000}}}', r"^9+.* is larger than any size"),
    (r'{"topics": ["a", "\ud800"]}', r"\$\.topics\[1\] is '\\ud800', which has half of a surrogate pair"),
    (r'{"a": {"\uDFFF": 1}}', r"a key of \$\.a is '\\udfff', which has half"),
])  # fmt: skip
def test_what_is_no_value_is_refused_by_its_name_or_place(text: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        loads(text)


@given(DOCUMENTS, st.booleans())
def test_any_other_document_is_read_as_ever(document: object, is_ascii: bool) -> None:
    text = json.dumps(document, ensure_ascii=is_ascii)
    assert loads(text) == document


@pytest.mark.parametrize("text", ["nan", "inf", "-Infinity", "1e400", "9" * 400])
def test_a_number_is_finite(text: str) -> None:
    with pytest.raises(ValueError, match="is not a finite number"):
        finite(text)
