"""Jackson's errors for texts that are not JSON, and its output of values: read off Jackson 2.21 of Kafka 4.3.1.

Ours are fewer words about what is odd inside a number, and columns that count characters, not UTF-16 code units.
"""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kreassign.model.kafka_json import explain, quote

VALUES = "(JSON String, Number, Array, Object or token 'null', 'true' or 'false')"
VALUE = f"expected a valid value {VALUES}"
NAME = "was expecting double-quote to start field name"
COLON = "was expecting a colon to separate field name and value"
ESCAPE = "in character escape sequence"
UNQUOTED = "has to be escaped using backslash to be included in"
HEX = "expected a hex-digit for character escape sequence"
BLANK = "Expected space separating root-level values"
BETWEEN = "only regular white space (\\r, \\n, \\t) is allowed between tokens"
COMMENT = (
    "maybe a (non-standard) comment? (not recognized as one since Feature 'ALLOW_COMMENTS' not enabled for parser)"
)
END = "Unexpected end-of-input"


def source(line: int, column: int) -> str:
    redacted = "REDACTED (`StreamReadFeature.INCLUDE_SOURCE_IN_LOCATION` disabled)"
    return f"[Source: {redacted}; line: {line}, column: {column}]"


def char(character: str) -> str:
    return f"Unexpected character ('{character}' (code {ord(character)}))"


def comma(name: str) -> str:
    return f"was expecting comma to separate {name} entries"


def token(word: str) -> str:
    return f"Unrecognized token '{word}': was expecting {VALUES}"


def unclosed(name: str, column: int) -> str:
    return f"{END}: expected close marker for {name} (start marker at {source(1, column)})"


def unopened(character: str, wanted: str, name: str, column: int) -> str:
    return f"Unexpected close marker '{character}': expected '{wanted}' (for {name} starting at {source(1, column)})"


FAULTS = [
    # Brackets
    ("[1}", unopened("}", "]", "Array", 1), 1, 3),
    ("[[1,2}", unopened("}", "]", "Array", 2), 1, 6),
    ('{"a":[[1}', unopened("}", "]", "Array", 7), 1, 9),
    ("}", "Unexpected close marker '}': no open Object to close", 1, 1),
    ("[", unclosed("Array", 1), 1, 2),
    ("{", unclosed("Object", 1), 1, 2),
    ("[1", unclosed("Array", 1), 1, 3),
    ('{"a":[', unclosed("Array", 6), 1, 7),
    ('[{"a":1', unclosed("Object", 2), 1, 8),
    ("[1,", f"{END} within/between Array entries", 1, 4),
    ('{"a":1,', f"{END} within/between Object entries", 1, 8),
    ('[{"a":1,', f"{END} within/between Object entries", 1, 9),
    ('{"a":[1,', f"{END} within/between Array entries", 1, 9),
    ("[" * 1000, unclosed("Array", 1000), 1, 1001),
    # Entries
    ("[[] 1]", f"{char('1')}: {comma('Array')}", 1, 5),
    ("[{} 1]", f"{char('1')}: {comma('Array')}", 1, 5),
    ("[1 [", f"{char('[')}: {comma('Array')}", 1, 4),
    ('{"a":1 b', f"{char('b')}: {comma('Object')}", 1, 8),
    ('{"a":[1] "b":2}', f"{char(chr(34))}: {comma('Object')}", 1, 10),
    ("[1:2]", f"{char(':')}: {comma('Array')}", 1, 3),
    ("[,]", f"{char(',')}: {VALUE}", 1, 2),
    ("[1,,2]", f"{char(',')}: {VALUE}", 1, 4),
    ("{,}", f"{char(',')}: {NAME}", 1, 2),
    ('{"a":1,,', f"{char(',')}: {NAME}", 1, 8),
    ("{1", f"{char('1')}: {NAME}", 1, 2),
    ('{"a",1}', f"{char(',')}: {COLON}", 1, 5),
    ('{"a":,}', f"{char(',')}: {VALUE}", 1, 6),
    ('{"a":]', f"{char(']')}: {VALUE}", 1, 6),
    ('[{"a":}', f"{char('}')}: {VALUE}", 1, 7),
    ('{"a":[1,}', f"{char('}')}: expected a value", 1, 9),
    ("[[1,}", f"{char('}')}: expected a value", 1, 5),
    ('{"a', f"{END} in field name", 1, 4),
    ('{"a"', f"{END} within/between Object entries", 1, 5),
    ("[/", f"{char('/')}: {COMMENT}", 1, 2),
    ("[1 /", f"{char('/')}: {COMMENT}", 1, 4),
    # Strings
    ('"', f"{END}: was expecting closing quote for a string value", 1, 2),
    ('{"a\tb":1}', f"Illegal unquoted character ((CTRL-CHAR, code 9)): {UNQUOTED} name", 1, 4),
    ('["\x1f"]', f"Illegal unquoted character ((CTRL-CHAR, code 31)): {UNQUOTED} string value", 1, 3),
    ('["\\u12XX"]', f"{char('X')}: {HEX}", 1, 7),
    ('["\\u123g"]', f"{char('g')}: {HEX}", 1, 8),
    ('["\\u12', f"{END} {ESCAPE}", 1, 7),
    ('["\\u1234', f"{END}: was expecting closing quote for a string value", 1, 9),
    ('["\\X"]', "Unrecognized character escape 'X' (code 88)", 1, 4),
    ('["\\B"]', "Unrecognized character escape 'B' (code 66)", 1, 4),
    ('["\\\x1f"]', "Unrecognized character escape (CTRL-CHAR, code 31)", 1, 4),
    ('["\\ "]', "Unrecognized character escape ' ' (code 32)", 1, 4),
    ('["\\~"]', "Unrecognized character escape '~' (code 126)", 1, 4),
    ('["\\\x7f"]', "Unrecognized character escape (CTRL-CHAR, code 127)", 1, 4),
    ('["\\\x9f"]', "Unrecognized character escape (CTRL-CHAR, code 159)", 1, 4),
    ('["\\\xa0"]', "Unrecognized character escape '\xa0' (code 160)", 1, 4),
    ('["\\\xff"]', "Unrecognized character escape '\xff' (code 255)", 1, 4),
    ('["\\\u0100"]', "Unrecognized character escape '\u0100' (code 256 / 0x100)", 1, 4),
    ('["\\\ud7ff"]', "Unrecognized character escape '\ud7ff' (code 55295 / 0xd7ff)", 1, 4),
    ('["\\\ud800"]', "Unrecognized character escape '\ud800' (code 55296 / 0xd800)", 1, 4),
    ('["\\\ue000"]', "Unrecognized character escape '\ue000' (code 57344 / 0xe000)", 1, 4),
    ('["\\\U0001f600"]', "Unrecognized character escape '\U0001f600' (code 128512 / 0x1f600)", 1, 4),
    ('["\ud800" x', f"{char('x')}: {comma('Array')}", 1, 6),
    ('["\u00e9\U0001f600" x', f"{char('x')}: {comma('Array')}", 1, 7),
    # Words
    ("[X]", token("X"), 1, 2),
    ("[$a]", token("$a"), 1, 2),
    ("[a$b]", token("a$b"), 1, 2),
    ("[a1_\u00e9 x", token("a1_\u00e9"), 1, 2),
    ("nul", token("nul"), 1, 1),
    ("[tru", token("tru"), 1, 2),
    ("TRUE", token("TRUE"), 1, 1),
    ("[true,false,null x", f"{char('x')}: {comma('Array')}", 1, 18),
    ("a" * 255, token("a" * 255), 1, 1),
    ("a" * 256, token(f"{'a' * 256}..."), 1, 1),
    ("a" * 257, token(f"{'a' * 256}..."), 1, 1),
    ("[NaN]", token("NaN"), 1, 2),
    ("Infinity", token("Infinity"), 1, 1),
    # Numbers
    ("[+1]", f"{char('+')}: {VALUE}", 1, 2),
    ("-", f"{END} in a Number value", 1, 2),
    ("[-", f"{END} in a Number value", 1, 3),
    ("[-]", f"{char(']')} in numeric value", 1, 3),
    ("[- ]", f"{char(' ')} in numeric value", 1, 3),
    ("[--1]", f"{char('-')} in numeric value", 1, 3),
    ("[-Infinity]", f"{char('I')} in numeric value", 1, 3),
    ("[-.1]", f"{char('.')} in numeric value", 1, 3),
    ("[00]", f"{char('0')} in numeric value", 1, 3),
    ("[-01]", f"{char('1')} in numeric value", 1, 4),
    ("1.", f"{char('.')} in numeric value", 1, 2),
    ("[-1.]", f"{char('.')} in numeric value", 1, 4),
    ("[1e", f"{char('e')} in numeric value", 1, 3),
    ("[1E-x]", f"{char('E')} in numeric value", 1, 3),
    ("[0.5e]", f"{char('e')} in numeric value", 1, 5),
    ("[0 x", f"{char('x')}: {comma('Array')}", 1, 4),
    ("[1.5x", f"{char('x')}: {comma('Array')}", 1, 5),
    ("[1e5 x", f"{char('x')}: {comma('Array')}", 1, 6),
    ("[1e+5 x", f"{char('x')}: {comma('Array')}", 1, 7),
    ("[1e-5x]", f"{char('x')}: {comma('Array')}", 1, 6),
    ("1.5x", f"{char('x')}: {BLANK}", 1, 4),
    ("-1x", f"{char('x')}: {BLANK}", 1, 3),
    ("0x", f"{char('x')}: {BLANK}", 1, 2),
    # Characters that are nothing, and places
    ("[\x1f]", f"Illegal character ((CTRL-CHAR, code 31)): {BETWEEN}", 1, 3),
    ("\x0b{}", f"Illegal character ((CTRL-CHAR, code 11)): {BETWEEN}", 1, 2),
    ("[\x7f]", f"Unexpected character ((CTRL-CHAR, code 127)): {VALUE}", 1, 2),
    ("[\xa0]", f"{char(chr(0xA0))}: {VALUE}", 1, 2),
    ("#", f"{char('#')}: {VALUE}", 1, 1),
    ("\n[x]", token("x"), 2, 2),
    ("\r\n[\r\n\rx]", token("x"), 4, 1),
    ("[\n1,\n\n x]", token("x"), 4, 2),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message", "line", "column"), FAULTS, ids=range(len(FAULTS)))
def test_the_first_fault_of_a_text_is_told_with_its_place(text: str, message: str, line: int, column: int) -> None:
    assert explain(text) == f"{message}\n at {source(line, column)}"


LIMIT = "exceeds the maximum allowed (1000, from `StreamReadConstraints"


@pytest.mark.parametrize(("text", "message"), [
    ("[" * 1001, f"Document nesting depth (1001) {LIMIT}.getMaxNestingDepth()`)"),
    ('{"a":' * 1001, f"Document nesting depth (1001) {LIMIT}.getMaxNestingDepth()`)"),
    ("9" * 1001, f"Number value length (1001) {LIMIT}.getMaxNumberLength()`)"),
    (f"[-{'9' * 1001}]", f"Number value length (1001) {LIMIT}.getMaxNumberLength()`)"),
    (f"[{'9' * 500}.{'9' * 501}]", f"Number value length (1001) {LIMIT}.getMaxNumberLength()`)"),
], ids=range(5))  # fmt: skip
def test_what_is_too_deep_or_too_long_is_told_without_a_place(text: str, message: str) -> None:
    assert explain(text) == message


@pytest.mark.parametrize("text", [
    "7 x", "7", "-0.5e+10", "true x", '"a"b', "{}x", "[]]", '"\\u00e9\\"\\\\\\/\\b\\f\\n\\r\\t"', "[0, -0, 10]",
    '{"a":{"b":[1,"c",{}]},"d":[[],[]]}', "9" * 1000, f"-{'9' * 1000}", f"[{'9' * 500}.{'9' * 500}]",
    f"{'[' * 1000}{']' * 1000}", "[1\t,\r\n2 ]",
], ids=range(15))  # fmt: skip
def test_after_a_value_nothing_is_a_fault(text: str) -> None:
    assert explain(text) is None


DOCUMENTS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(DOCUMENTS, st.sampled_from([None, 1, "\t"]))
def test_no_json_has_a_fault(document: object, indent: int | str | None) -> None:
    assert explain(json.dumps(document, indent=indent)) is None
    assert explain(json.dumps(document, ensure_ascii=False)) is None


@pytest.mark.parametrize(("value", "text"), [
    (None, "null"), (True, "true"), (-7, "-7"), ('\u00fc"', '"\u00fc\\""'), ([], "[]"), ({}, "{}"),
    ([1, [2.0, "a"]], '[1,[2.0,"a"]]'), ({"a": {"b": 1e10}, "\u00fc": [None]}, '{"a":{"b":1.0E10},"\u00fc":[null]}'),
    (0.0, "0.0"), (-0.0, "-0.0"), (0.001, "0.001"), (0.000999, "9.99E-4"), (-0.001, "-0.001"), (1e-7, "1.0E-7"),
    (9999999.5, "9999999.5"), (1e7, "1.0E7"), (-1e7, "-1.0E7"), (12345678.9, "1.23456789E7"), (1.5e300, "1.5E300"),
    (float("inf"), '"Infinity"'), (float("-inf"), '"-Infinity"'),
])  # fmt: skip
def test_values_are_quoted_as_jackson_prints_them(value: object, text: str) -> None:
    assert quote(value) == text
