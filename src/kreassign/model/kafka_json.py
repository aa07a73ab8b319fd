"""JSON as Kafka's tools parse it: values and their types, with Kafka's (and Jackson's) error messages.

Text after the closing brace is ignored, as there.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NoReturn

from kreassign.errors import MalformedPlan
from kreassign.model.documents import Json, is_half

# The error message of Jackson, the JSON parser of Kafka's tools, about a text that is not JSON. The standard
# library parses. Only a text that it refuses is scanned again, slowly, for the sentence and the position that operators
# know. Errors inside a number get shorter messages than Jackson's; columns count characters from 1.

_JSON = json.JSONEncoder(ensure_ascii=False)
_SOURCE = "[Source: REDACTED (`StreamReadFeature.INCLUDE_SOURCE_IN_LOCATION` disabled); line: {line}, column: {column}]"
_VALUES = "(JSON String, Number, Array, Object or token 'null', 'true' or 'false')"
_NAMES = {"{": "Object", "[": "Array"}
_OPENERS = {"}": "{", "]": "["}
_CLOSERS = {"{": "}", "[": "]"}
_BLANKS = " \t\r\n"
_CONTROLS = frozenset(map(chr, range(0x20)))
_DEEPEST = 1000
TOO_DEEP = "a value that is nested too deeply"
_LONGEST_NUMBER = 1000
_LONGEST_TOKEN = 256
_NUMBER = re.compile(r"-?(0|[1-9]\d*)(?:\.(\d+))?(?:[eE][+-]?\d+)?", re.ASCII)
_NUMERIC = frozenset("0123456789.eE")
_STRING_STOP = re.compile(r'["\\\x00-\x1f]')
_LINE_END = re.compile(r"\r\n|\r|\n")


def explain(text: str) -> str | None:
    """Jackson's message about the first error in `text`, with the position on a second line; None if there is none."""
    try:
        _Scan(text).document()
    except _JacksonError as fault:
        return str(fault)
    return None


def quote(value: Any) -> str:
    """Format a JSON value like Jackson: compact, with doubles in Java's notation."""
    if isinstance(value, float):
        return _java_double(value)
    if isinstance(value, list):
        return f"[{','.join(map(quote, value))}]"
    if isinstance(value, dict):
        return f"{{{','.join(f'{quote(name)}:{quote(item)}' for name, item in value.items())}}}"
    return _JSON.encode(value)


def _java_double(number: float) -> str:
    if math.isinf(number):
        return '"Infinity"' if number > 0 else '"-Infinity"'
    if number == 0 or 1e-3 <= abs(number) < 1e7:
        return repr(number)
    sign, digits, exponent = Decimal(repr(number)).normalize().as_tuple()
    mantissa = "".join(map(str, digits))
    return f"{'-' * sign}{mantissa[0]}.{mantissa[1:] or '0'}E{int(exponent) + len(mantissa) - 1}"


class _JacksonError(Exception):
    """The first error that Jackson would report."""


class _Scan:
    """One pass over a text; errors are raised as `_JacksonError`."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._open: list[tuple[str, int]] = []  # open brackets with their positions
        self._just_opened = False

    def document(self) -> None:
        """Read one value; text after it is ignored."""
        self._value()
        while self._open:
            bracket, start = self._open[-1]
            opened = f"(start marker at {self._source(start)})"
            character = self._token(f": expected close marker for {_NAMES[bracket]} {opened}")
            if character == _CLOSERS[bracket]:
                self._at += 1
                self._open.pop()
                self._just_opened = False
            else:
                self._entry(bracket, character)

    def _entry(self, bracket: str, character: str) -> None:
        if character in _OPENERS:
            start = f"(for {_NAMES[bracket]} starting at {self._source(self._open[-1][1])})"
            self._fail(f"Unexpected close marker '{character}': expected '{_CLOSERS[bracket]}' {start}", self._at)
        if not self._just_opened:
            if character != ",":
                self._unexpected(f"was expecting comma to separate {_NAMES[bracket]} entries")
            self._at += 1
        if bracket == "{":
            self._name()
        self._value()

    def _name(self) -> None:
        if self._token() != '"':
            self._unexpected("was expecting double-quote to start field name")
        self._string("name", " in field name")
        if self._token() != ":":
            self._unexpected("was expecting a colon to separate field name and value")
        self._at += 1

    def _value(self) -> None:
        character = self._token()
        self._just_opened = False
        if character in _NAMES:
            self._opener(character)
        elif character == '"':
            self._string("string value", ": was expecting closing quote for a string value")
        elif character in "-0123456789":
            self._number()
        elif character.isidentifier() or character == "$":
            self._word()
        else:
            self._no_value(character)

    def _opener(self, bracket: str) -> None:
        if len(self._open) == _DEEPEST:
            depth = f"Document nesting depth ({_DEEPEST + 1}) exceeds the maximum allowed ({_DEEPEST}, "
            raise _JacksonError(f"{depth}from `StreamReadConstraints.getMaxNestingDepth()`)")
        self._open.append((bracket, self._at))
        self._at += 1
        self._just_opened = True

    def _no_value(self, character: str) -> NoReturn:
        if character in _OPENERS and not self._open:
            name = _NAMES[_OPENERS[character]]
            self._fail(f"Unexpected close marker '{character}': no open {name} to close", self._at)
        if character == "}" and self._open[-1][0] == "[":
            self._unexpected("expected a value")
        self._unexpected(f"expected a valid value {_VALUES}")

    def _string(self, kind: str, unfinished: str) -> None:
        self._at += 1
        while True:
            found = _STRING_STOP.search(self._text, self._at)
            if found is None:
                self._end(unfinished)
            self._at = found.start()
            if found[0] == '"':
                self._at += 1
                return
            if found[0] != "\\":
                shown = f"Illegal unquoted character ({_shown_character(found[0])})"
                self._fail(f"{shown}: has to be escaped using backslash to be included in {kind}", self._at)
            self._escape()

    def _escape(self) -> None:
        character = self._after_backslash()
        if character == "u":
            for _ in range(4):
                if self._after_backslash() not in "0123456789abcdefABCDEF":
                    self._unexpected("expected a hex-digit for character escape sequence")
        elif character not in '"\\/bfnrt':
            self._fail(f"Unrecognized character escape {_shown_character(character)}", self._at)
        self._at += 1

    def _after_backslash(self) -> str:
        self._at += 1
        if self._at >= len(self._text):
            self._end(" in character escape sequence")
        return self._text[self._at]

    def _word(self) -> None:
        start = self._at
        while self._at < len(self._text) and _continues_word(self._text[self._at]):
            self._at += 1
        word = self._text[start : self._at]
        if word not in ("true", "false", "null"):
            shown = word if len(word) < _LONGEST_TOKEN else f"{word[:_LONGEST_TOKEN]}..."
            self._fail(f"Unrecognized token '{shown}': was expecting {_VALUES}", start)

    def _number(self) -> None:
        found = _NUMBER.match(self._text, self._at)
        self._at = self._at + 1 if found is None else found.end()
        follower = self._text[self._at : self._at + 1]
        if found is None and not follower:
            self._end(" in a Number value")
        if found is None or (follower and follower in _NUMERIC):
            self._fail(f"Unexpected character ({_shown_character(follower)}) in numeric value", self._at)
        integer, fraction = found.groups("")
        length = len(integer) + len(fraction)
        if length > _LONGEST_NUMBER:
            size = f"Number value length ({length}) exceeds the maximum allowed ({_LONGEST_NUMBER}, "
            raise _JacksonError(f"{size}from `StreamReadConstraints.getMaxNumberLength()`)")
        if not self._open and follower not in _BLANKS:
            self._unexpected("Expected space separating root-level values")

    def _token(self, unfinished: str | None = None) -> str:
        """The next character that is no blank; the end of the text is an error."""
        while self._text[self._at : self._at + 1].strip(_BLANKS) == "":
            if self._at == len(self._text):
                self._end(unfinished or f" within/between {_NAMES[self._open[-1][0]]} entries")
            self._at += 1
        character = self._text[self._at]
        if character in _CONTROLS:
            rule = "only regular white space (\\r, \\n, \\t) is allowed between tokens"
            self._fail(f"Illegal character ({_shown_character(character)}): {rule}", self._at + 1)
        if character == "/":
            option = "not recognized as one since Feature 'ALLOW_COMMENTS' not enabled for parser"
            self._unexpected(f"maybe a (non-standard) comment? ({option})")
        return character

    def _unexpected(self, comment: str) -> NoReturn:
        self._fail(f"Unexpected character ({_shown_character(self._text[self._at])}): {comment}", self._at)

    def _end(self, unfinished: str) -> NoReturn:
        self._fail(f"Unexpected end-of-input{unfinished}", len(self._text))

    def _fail(self, message: str, place: int) -> NoReturn:
        raise _JacksonError(f"{message}\n at {self._source(place)}")

    def _source(self, place: int) -> str:
        ends = [found.end() for found in _LINE_END.finditer(self._text, 0, place)]
        return _SOURCE.format(line=len(ends) + 1, column=place - (ends[-1] if ends else 0) + 1)


def _continues_word(character: str) -> bool:
    return character == "$" or f"a{character}".isidentifier()


def _shown_character(character: str) -> str:
    code = ord(character)
    if code < 0x20 or 0x7F <= code < 0xA0:
        return f"(CTRL-CHAR, code {code})"
    return f"'{character}' (code {code})" if code < 0x100 else f"'{character}' (code {code} / 0x{code:x})"


# Values by type.


@dataclass(frozen=True, slots=True)
class _Missing:
    """Stands for a blank text, which Jackson reads as a missing value and not as an error."""


_MISSING = _Missing()


def decode(text: str) -> Json:
    """Parse the value at the beginning of a text; raises `MalformedPlan` with Jackson's message."""
    if not text:
        raise MalformedPlan("The input string shouldn't be empty\n at [Source: UNKNOWN; byte offset: #UNKNOWN]")
    start = len(text) - len(text.lstrip(" \t\r\n"))
    if start == len(text):
        return _MISSING
    try:
        value, _end = _DECODER.raw_decode(text, start)
    except (ValueError, RecursionError) as error:
        raise MalformedPlan(explain(text) or f"The input is {TOO_DEEP}") from error
    if not isinstance(value, dict | list | str) and (problem := explain(text)):
        raise MalformedPlan(problem)  # a blank must follow a bare number, which only the slow scan checks
    return value


def _refuse_constant(name: str) -> Json:
    raise ValueError(name)


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)


def field(fields: dict[str, Json], name: str) -> Json:
    """A required field."""
    if name not in fields:
        raise MalformedPlan(f"No such field exists: `{name}`")
    return fields[name]


def json_object(value: Json) -> dict[str, Json]:
    """Check that the value is an object."""
    if isinstance(value, dict):
        return value
    raise MalformedPlan(f"Expected JSON object, received {_shown(value)}")


def array(value: Json) -> list[Json]:
    """Check that the value is an array of any values."""
    if isinstance(value, list):
        return value
    raise MalformedPlan(f"Expected JSON array, received {_shown(value)}")


def json_list(value: Json) -> list[Json]:
    """Check that the value is an array of values of one type: like `array`, with another message."""
    if isinstance(value, list):
        return value
    raise MalformedPlan(f"Expected `JSON array` value, received {_shown(value)}")


def string(value: Json) -> str:
    """Check that the value is a string."""
    if not isinstance(value, str):
        raise MalformedPlan(f"Expected `String` value, received {_shown(value)}")
    if is_half(value):  # Java accepts it, and later sends a question mark instead
        raise MalformedPlan(f"{value!r} has half of a surrogate pair, which no name or path can have")
    return value


def integer(value: Json, kind: str = "Integer") -> int:
    """Check that the value is a number of 32 bits; `kind` is its name in the message."""
    if type(value) is int and -(2**31) <= value < 2**31:
        return value
    raise MalformedPlan(f"Expected `{kind}` value, received {_shown(value)}")


def _shown(value: Json) -> str:
    try:
        return "" if value is _MISSING else quote(value)
    except RecursionError:  # Jackson reads a thousand levels, more than Python's stack has frames for
        return TOO_DEEP
