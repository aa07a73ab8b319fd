"""JSON as Kafka's tools read it: values and their kinds, with Kafka's (and Jackson's) words for what is wrong.

Anything after the closing brace is ignored, as there.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from kreassign.errors import MalformedPlan
from kreassign.model.jackson import explain, quote
from kreassign.model.strict_json import is_half

# A JSON value as the standard library reads it; every use checks its type first.
Json = Any


@dataclass(frozen=True, slots=True)
class _Missing:
    """Stands for a text of blanks, which Jackson reads as no value rather than as an error."""


_MISSING = _Missing()


def decode(text: str) -> Json:
    """The value that a text begins with; `MalformedPlan` with Jackson's words if it is none."""
    if not text:
        raise MalformedPlan("The input string shouldn't be empty\n at [Source: UNKNOWN; byte offset: #UNKNOWN]")
    start = len(text) - len(text.lstrip(" \t\r\n"))
    if start == len(text):
        return _MISSING
    try:
        value, _end = _DECODER.raw_decode(text, start)
    except (ValueError, RecursionError) as error:
        raise MalformedPlan(explain(text) or f"{error}") from error
    if not isinstance(value, dict | list | str) and (problem := explain(text)):
        raise MalformedPlan(problem)  # a bare number must be followed by a blank, which only the slow scan looks at
    return value


def _refuse_constant(name: str) -> Json:
    raise ValueError(name)


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)


def field(fields: dict[str, Json], name: str) -> Json:
    """A field that has to be there."""
    if name not in fields:
        raise MalformedPlan(f"No such field exists: `{name}`")
    return fields[name]


def json_object(value: Json) -> dict[str, Json]:
    """The value, which has to be an object."""
    if isinstance(value, dict):
        return value
    raise MalformedPlan(f"Expected JSON object, received {_shown(value)}")


def array(value: Json) -> list[Json]:
    """The value, which has to be an array of anything."""
    if isinstance(value, list):
        return value
    raise MalformedPlan(f"Expected JSON array, received {_shown(value)}")


def json_list(value: Json) -> list[Json]:
    """The value, which has to be an array of values of one kind: as `array`, with other words."""
    if isinstance(value, list):
        return value
    raise MalformedPlan(f"Expected `JSON array` value, received {_shown(value)}")


def string(value: Json) -> str:
    """The value, which has to be a text."""
    if not isinstance(value, str):
        raise MalformedPlan(f"Expected `String` value, received {_shown(value)}")
    if is_half(value):  # Java takes it, and then sends a question mark in its place
        raise MalformedPlan(f"{value!r} has half of a surrogate pair, which no name or path can have")
    return value


def integer(value: Json, kind: str = "Integer") -> int:
    """The value, which has to be a number of 32 bits; `kind` is what the refusal calls it."""
    if type(value) is int and -(2**31) <= value < 2**31:
        return value
    raise MalformedPlan(f"Expected `{kind}` value, received {_shown(value)}")


def _shown(value: Json) -> str:
    return "" if value is _MISSING else quote(value)
