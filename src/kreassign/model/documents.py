"""Read JSON and TOML strictly: key by key, each with its type. Unknown keys are refused.

JSON follows its standard: no NaN, infinities, overflowing numbers, or half surrogate pairs.
"""

from __future__ import annotations

import json
import math
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NoReturn, Self

from kreassign.errors import InputError
from kreassign.model.text import LARGEST_AMOUNT, LARGEST_ID, parse_amount, shortened

# Standard JSON: no NaN, infinities, overflowing numbers, or half surrogate pairs.
#
# Python's parser accepts all of these. None is a size, a rate or a name, and each fails later, far from its file.

# A JSON value as the standard library parses it.
Json = Any

_MOST_DIGITS = 4_300
"""The longest integer that Python parses; beyond this it raises an error of its own."""
_HALF_ESCAPED = re.compile(r"\\u[dD][89a-fA-F]")
_HALF = re.compile("[\ud800-\udfff]")


def read_json(text: str, *, takes_nan: bool = False) -> Json:
    """Parse a document. Raises ValueError, which names the refused number, or the position in the text.

    With `takes_nan`, NaN and the infinities of other writers become null.
    """
    try:
        constant = _nothing if takes_nan else _refuse
        document = json.loads(text, parse_constant=constant, parse_float=finite, parse_int=_whole)
        # Only escapes can produce halves, and most files have none: skip the walk through the document.
        if _HALF_ESCAPED.search(text):
            _refuse_halves(document)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    return document


def is_half(text: str) -> bool:
    """True if a text has half a surrogate pair, so that it cannot be encoded."""
    return _HALF.search(text) is not None


def finite(text: str) -> float:
    """Parse a finite number. Raises ValueError for other text, overflow, `nan` and `inf`."""
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{shortened(text)} is not a finite number")
    return value


def _whole(text: str) -> int:
    if len(text) > _MOST_DIGITS:
        raise ValueError(f"{shortened(text)} is larger than any size, rate or time")
    return int(text)


def _refuse_halves(document: Json) -> None:
    for place, value in _texts(document, "$"):
        if is_half(value):
            raise ValueError(f"{place} is {value!r}, which has half of a surrogate pair and is no text")


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number in JSON")


def _nothing(_: str) -> None:
    return None


def _texts(value: Json, place: str) -> Iterator[tuple[str, str]]:
    match value:
        case str():
            yield place, value
        case list():
            for number, one in enumerate(value):
                yield from _texts(one, f"{place}[{number}]")
        case dict():
            for name, one in value.items():
                yield f"a key of {place}", name
                yield from _texts(one, f"{place}.{name}")


# Report unreadable TOML as one kind of error, also where Python's parser raises others. Pure. `nan` and `inf` are
# numbers in TOML: a caller that takes a number checks that it is finite, and names its key.


def read_toml(text: str) -> dict[str, Any]:
    """Parse a document. Raises ValueError with the problem, mostly with line and column."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise
    except ValueError:
        raise ValueError("a number in it has more digits than any size, rate or time") from None
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


# Tables of TOML and objects of JSON, key by key.

LARGEST_NUMBER = sys.float_info.max
_TEXT = "a text without the character U+0000, which no name and no path has"


class KeyedTable:
    """One table of TOML, or one object of JSON.

    Keys are taken one by one; a default of None means that the key is required. Every error is an
    InputError that names the file, the table, the key, the value found, and the allowed ones.
    """

    def __init__(self, where: str, values: Mapping[str, object]) -> None:
        self.where = where
        self._values = values
        self._asked: set[str] = set()

    @classmethod
    def from_toml(cls, text: str, name: str) -> Self:
        """The top table of a file; `name` is used in errors."""
        try:
            return cls(name, read_toml(text))
        except ValueError as error:
            raise InputError(f"{name}: this is not TOML: {error}") from error

    @classmethod
    def from_json(cls, text: str, name: str) -> Self:
        """The top object of a file; `name` is used in errors."""
        try:
            found = read_json(text)
        except ValueError as error:
            raise InputError(f"{name}: this is not JSON: {error}") from error
        if not isinstance(found, dict):
            raise InputError(f"{name}: this is JSON, but not an object")
        return cls(name, found)

    @contextmanager
    def taken_whole(self) -> Iterator[Self]:
        """Take all keys within the block; keys left at its end are refused."""
        with self.naming_errors():
            yield self
        strangers = [key for key in self._values if key not in self._asked]
        if strangers:
            raise self._error(f"there is no key {strangers[0]!r} here; there are {', '.join(sorted(self._asked))}")

    @contextmanager
    def naming_errors(self) -> Iterator[None]:
        """Add the place in the file to errors raised within the block."""
        try:
            yield
        except InputError as error:
            raise error if str(error).startswith(self.where) else self._error(str(error)) from error

    def has(self, key: str) -> bool:
        """True if the key is present."""
        self._asked.add(key)
        return key in self._values

    # One value

    def text(self, key: str, default: str | None = None) -> str:
        """Take a text."""
        found: str = self._value(key, str, default, _TEXT)
        return found if _is_sound(found) else self._refuse(key, found, _TEXT)

    def flag(self, key: str, *, default: bool) -> bool:
        """Take a boolean."""
        found: bool = self._value(key, bool, default, "true or false")
        return found

    def whole(self, key: str, default: int | None = None, *, least: int = 0, most: int = LARGEST_AMOUNT) -> int:
        """Take a whole number from `least` to `most`."""
        allowed = f"a whole number of at least {least}" + ("" if most == LARGEST_AMOUNT else f" and at most {most}")
        found: int = self._value(key, int, default, allowed)
        return found if least <= found <= most else self._refuse(key, found, allowed)

    def number(self, key: str, default: float | None = None, *, most: float = LARGEST_NUMBER) -> float:
        """Take a number from 0 to `most`."""
        allowed = "a number of at least 0" + (f" and at most {most:g}" if most != LARGEST_NUMBER else "")
        found = self._value(key, (int, float), default, allowed)
        return float(found) if 0 <= found <= most else self._refuse(key, found, allowed)

    def amount(self, key: str, default: int | None = None, *, least: int = 0) -> int:
        """Take bytes or bytes per second, at least `least`: a whole number, or a text such as `20MB/s`."""
        allowed = "an amount such as 20MB/s, 1.5 GB or 1000000" + (f", at least {least}" if least else "")
        found = self._value(key, (int, str), default, allowed)
        try:
            amount = parse_amount(found) if isinstance(found, str) else found
        except InputError:
            self._refuse(key, found, allowed)
        return amount if least <= amount <= LARGEST_AMOUNT else self._refuse(key, found, allowed)

    # Many values

    def texts(self, key: str) -> tuple[str, ...]:
        """Take a list of texts; empty without the key."""
        found: tuple[str, ...] = self._list(key, str, "a list of texts")
        return found if all(map(_is_sound, found)) else self._refuse(key, found, f"a list, each {_TEXT}")

    def wholes(self, key: str, *, least: int = 0, most: int = LARGEST_ID) -> tuple[int, ...]:
        """Take a list of whole numbers from `least` to `most`; empty without the key."""
        found: tuple[int, ...] = self._list(key, int, "a list of whole numbers")
        is_fit = all(least <= one <= most for one in found)
        return found if is_fit else self._refuse(key, found, f"a list of whole numbers from {least} to {most}")

    def text_map(self, key: str) -> dict[str, str]:
        """Take a table of texts; empty without the key."""
        allowed = 'a table of texts such as { "retention.bytes" = "1000000" }'
        found: dict[str, str] = self._value(key, dict, {}, allowed)
        is_fit = all(isinstance(text, str) and _is_sound(text) for item in found.items() for text in item)
        return found if is_fit else self._refuse(key, found, allowed)

    def table(self, key: str) -> KeyedTable:
        """Take a nested table; empty without the key."""
        return KeyedTable(f"{self.where}: [{key}]", self._value(key, dict, {}, "a table"))

    def tables(self, key: str) -> tuple[KeyedTable, ...]:
        """Take a list of tables; empty without the key."""
        found = self._list(key, dict, f"tables, each beginning with [[{key}]]")
        return tuple(KeyedTable(f"{self.where}: [[{key}]] {place}", each) for place, each in enumerate(found, start=1))

    def raw_tables(self, key: str) -> tuple[Mapping[str, object] | str, ...]:
        """Take a list of tables, or of texts, unparsed for the caller; empty without the key."""
        return self._list(key, (dict, str), f"tables, each beginning with [[{key}]], or texts")

    # Helpers

    def _value(self, key: str, kinds: type | tuple[type, ...], default: object, allowed: str) -> Any:
        self._asked.add(key)
        found = self._values.get(key, default)
        if key not in self._values and default is None:
            raise self._error(f"the key {key!r} is missing; it must be {allowed}")
        return found if _is(found, kinds) else self._refuse(key, found, allowed)

    def _list(self, key: str, kind: type | tuple[type, ...], allowed: str) -> tuple[Any, ...]:
        found = self._value(key, list, [], allowed)
        return tuple(found) if all(_is(each, kind) for each in found) else self._refuse(key, found, allowed)

    def _refuse(self, key: str, found: object, allowed: str) -> NoReturn:
        raise self._error(f"{key!r} is {shortened(repr(found))}; it must be {allowed}")

    def _error(self, text: str) -> InputError:
        return InputError(f"{self.where}: {text}")


def _is_sound(text: str) -> bool:
    return "\0" not in text


def _is(found: object, kinds: type | tuple[type, ...]) -> bool:
    # In Python a boolean is an integer too.
    return isinstance(found, kinds) and (kinds is bool or not isinstance(found, bool))
