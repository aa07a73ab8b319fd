"""Values of Kafka's JSON files by their kinds, and what is said of a value of another kind."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kreassign.errors import MalformedPlan
from kreassign.model.kafka_json import array, decode, field, integer, json_list, json_object, string

BLANKS = " \t\r\n"


def refusal(read: Callable[[object], object], value: object) -> str:
    with pytest.raises(MalformedPlan) as refused:
        read(value)
    return str(refused.value)


@pytest.mark.parametrize(("text", "value"), [
    ("{}", {}), (f"{BLANKS}[1, 2]", [1, 2]), ('{"a": 1} and more', {"a": 1}), ('"x"y', "x"), ("7 8", 7),
    ("null", None), ("true ", True), ("-1.5e3\t", -1500.0), ("[[]]]", [[]]),
])  # fmt: skip
def test_the_value_that_a_text_begins_with_is_read(text: str, value: object) -> None:
    assert decode(text) == value


@pytest.mark.parametrize(("text", "said"), [
    ("", "The input string shouldn't be empty\n at [Source: UNKNOWN; byte offset: #UNKNOWN]"),
    ("\x0b{}", "Illegal character ((CTRL-CHAR, code 11)): only regular white space (\\r, \\n, \\t) is allowed"),
    ("\u00a0{}", "Unexpected character ('\u00a0' (code 160)): expected a valid value "),
    ("7x", "Unexpected character ('x' (code 120)): Expected space separating root-level values\n"),
    ("nullx", "Unrecognized token 'nullx': was expecting (JSON String, "),
    ("NaN", "Unrecognized token 'NaN': was expecting (JSON String, "),
    ("{", "Unexpected end-of-input: expected close marker for Object (start marker at [Source: REDACTED "),
    ("9" * 1001, "Number value length (1001) exceeds the maximum allowed (1000, "),
])  # fmt: skip
def test_what_is_no_value_is_refused_in_jacksons_words(text: str, said: str) -> None:
    assert refusal(lambda _: decode(text), text).startswith(said)


@pytest.mark.parametrize("read", [json_object, array, json_list, string, integer])
def test_blanks_are_no_value_of_any_kind(read: Callable[[object], object]) -> None:
    assert refusal(read, decode(BLANKS)).endswith(", received ")


def test_a_field_has_to_be_there() -> None:
    assert field({"a": None}, "a") is None
    assert refusal(lambda _: field({"a": 1}, "b"), None) == "No such field exists: `b`"


@pytest.mark.parametrize(("read", "value"), [
    (json_object, {"a": [1]}), (array, [1, "x"]), (json_list, []), (string, ""), (string, "\U0001f600"),
    (integer, 0), (integer, 2**31 - 1), (integer, -(2**31)),
])  # fmt: skip
def test_a_value_of_the_kind_that_is_asked_for_is_taken(read: Callable[[object], object], value: object) -> None:
    assert read(value) == value


@pytest.mark.parametrize(("read", "value", "said"), [
    (json_object, [], "Expected JSON object, received []"),
    (array, {}, "Expected JSON array, received {}"),
    (json_list, "x", 'Expected `JSON array` value, received "x"'),
    (string, None, "Expected `String` value, received null"),
    (string, "a\udfff", "'a\\udfff' has half of a surrogate pair, which no name or path can have"),
    (integer, 2**31, "Expected `Integer` value, received 2147483648"),
    (integer, -(2**31) - 1, "Expected `Integer` value, received -2147483649"),
    (integer, True, "Expected `Integer` value, received true"),
    (integer, 1.0, "Expected `Integer` value, received 1.0"),
    (lambda value: integer(value, "Int"), "1", 'Expected `Int` value, received "1"'),
])  # fmt: skip
def test_a_value_of_another_kind_is_refused_in_kafkas_words(
    read: Callable[[object], object], value: object, said: str
) -> None:
    assert refusal(read, value) == said
