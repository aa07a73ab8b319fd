"""Read JSON and TOML strictly: one document in UTF-8, key by key, each with its type. Unknown keys are refused.

JSON follows its standard: no NaN, infinities, overflowing numbers, or half surrogate pairs. A key may not be there
twice, and nothing may follow the document: the rest of a bad merge or of two joined files would be ignored otherwise.
"""

from __future__ import annotations

import json
import math
import re
import sys
import tomllib
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE, BOM_UTF32_BE, BOM_UTF32_LE
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import date, time
from itertools import islice
from typing import Any, NoReturn, Self, TypeGuard

from kreassign.errors import InputError, InvariantBroken
from kreassign.model.text import LARGEST_AMOUNT, LARGEST_ID, parse_amount, shortened

# The text of a file. UTF-16 and binary files are named, because their first bytes say what they are.

_UTF_16 = (
    "UTF-16, as `>` writes it in Windows PowerShell; write it in UTF-8 (`Out-File -Encoding utf8`, or "
    "`iconv -f UTF-16 -t UTF-8`)"
)
_UTF_32 = "UTF-32; write it in UTF-8 (`iconv -f UTF-32 -t UTF-8`)"
_BEGINNINGS = (
    (BOM_UTF32_LE, _UTF_32),
    (BOM_UTF32_BE, _UTF_32),
    (BOM_UTF16_LE, _UTF_16),
    (BOM_UTF16_BE, _UTF_16),
    (b"\x1f\x8b", "a compressed file (gzip), such as a snapshot; unpack any other (`gunzip -k`)"),
    (b"\x28\xb5\x2f\xfd", "a compressed file; unpack it (`unzstd`)"),
    (b"\xfd7zXZ\0", "a compressed file; unpack it (`unxz -k`)"),
    (b"\x04\x22\x4d\x18", "a compressed file; unpack it (`unlz4`)"),
    (b"BZh", "a compressed file; unpack it (`bunzip2 -k`)"),
    (b"PAR1", "a Parquet file, such as a snapshot in columns"),
    (b"Obj\x01", "a file of Avro"),
    (b"SQLite format 3\0", "a database of SQLite, such as the journal of a run"),
    (b"PK\x03\x04", "a ZIP archive"),
)
_CONFLICT = re.compile(r"^(?:<{7} .*|\|{7} .*|={7}|>{7} .*)\r?$", re.MULTILINE)


def decoded(content: bytes) -> str:
    """Decode the content of a text file in UTF-8; a byte order mark is skipped.

    Raises InputError, which names another encoding or format and what to do, or the line of the first wrong byte.
    """
    refuse_other_kind(content)
    try:
        return content.removeprefix(BOM_UTF8).decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InputError(
            f"not a text in UTF-8: line {line} has the byte 0x{content[error.start]:02x}; save it in UTF-8"
        ) from error


def refuse_other_kind(content: bytes) -> None:
    """Raise InputError if a content, of which the beginning is enough, is no text of single bytes."""
    if (kind := other_kind(content)) is not None:
        raise InputError(f"not a text in UTF-8: it is {kind}")


def other_kind(content: bytes) -> str | None:
    """The encoding or format of a content that is no text of single bytes, and what to do; None if none is known."""
    known = next((what for beginning, what in _BEGINNINGS if content.startswith(beginning)), None)
    if known is None and len(content) > 1 and (content[0] == 0) != (content[1] == 0):  # the first character is ASCII
        return _UTF_16
    return known


def conflict_in(text: str) -> str | None:
    """The first conflict marker of Git in a text, with its line; None without."""
    marker = _CONFLICT.search(text)
    if marker is None:
        return None
    return f"line {line_at(text, marker.start())} is a conflict marker of Git; resolve the conflict first"


class OtherKindError(ValueError):
    """A text of which nothing is JSON. The message names its kind alone: it may be a secret, named by mistake."""


_HTML, _SCRIPT, _JSON, _TOML = "HTML or XML", "a script", "JSON", "TOML or a file of properties"
_TOML_LINE = r"(?:\[{1,2}[A-Za-z_][\w. -]*\]{1,2}|[\w.\"'-]+ *=.*)"
_YAML_LINE = r"(?:---|(?:- )?[\w.\"'-]+:(?: .*)?)"
_TEXT_KINDS = {
    _HTML: re.compile(r"<[!?A-Za-z]"),
    _SCRIPT: re.compile("#!"),
    _TOML: re.compile(rf"{_TOML_LINE}(?:\n{_TOML_LINE})?\Z"),
    "YAML": re.compile(rf"{_YAML_LINE}\n{_YAML_LINE}\Z"),
    "CSV": re.compile(r"[\w\"][^{}\[\]\n]*[,;\t][^\s{}\[\]][^{}\[\]\n]*\n.*[,;\t]"),
    _JSON: re.compile(r"\{|\[$", re.MULTILINE),
}
"""Formats by the first two lines of a text that are neither blank nor comments."""
_CERTAIN = (_HTML, _SCRIPT, _JSON)
"""Formats in which a brace, or a quote at the beginning, is no sign of damaged JSON."""


def text_kind(text: str) -> str | None:
    """The format that a text looks like; None if none is known."""
    lines = (line.strip() for line in text[:2_000].splitlines())
    first = "\n".join(islice((line for line in lines if line and not re.match("#(?!!)", line)), 2))
    kind = next((kind for kind, pattern in _TEXT_KINDS.items() if pattern.match(first)), None)
    return None if kind not in _CERTAIN and ("{" in text or first.startswith('"')) else kind


def line_at(text: str, position: int) -> int:
    """Number of the line of a position, from 1 on."""
    return text.count("\n", 0, position) + 1


# Standard JSON: no NaN, infinities, overflowing numbers, or half surrogate pairs.
#
# Python's parser accepts all of these. None is a size, a rate or a name, and each fails later, far from its file.

# A JSON value as the standard library parses it.
Json = Any

_MOST_SHOWN = 40
_MOST_DIGITS = 4_300
"""The longest integer that Python parses; beyond this it raises an error of its own."""
_HALF_ESCAPED = re.compile(r"\\u[dD][89a-fA-F]")
_MAY_BE_JSON = re.compile(r'\A[\s\ufeff]*[\["]|\{')
_ANOTHER = "it is a text of another kind"
_HALF = re.compile("[\ud800-\udfff]")


def read_json(text: str, *, takes_nan: bool = False) -> Json:
    """Parse a text with one document. Raises ValueError, which names the refused number, or the line in the text.

    OtherKindError if nothing of the text is JSON. With `takes_nan`, NaN and infinities of other writers become null.
    """
    try:
        constant = (lambda _: None) if takes_nan else _refuse
        document = json.loads(
            text, parse_constant=constant, parse_float=finite, parse_int=_whole, object_pairs_hook=_once_each
        )
        # Only escapes can produce halves, and most files have none: skip the walk through the document.
        if _HALF_ESCAPED.search(text):
            _refuse_halves(document)
    except json.JSONDecodeError as error:
        if instead := kind_instead_of_json(text):
            raise OtherKindError(instead) from error
        raise ValueError(_plain(error, text)) from error
    except ValueError as error:  # it quotes a number, which is the beginning of a secret where it stands alone
        if text.lstrip()[0] not in '{["':
            raise OtherKindError(_ANOTHER) from error
        raise
    except _KeyTwiceError as error:
        raise ValueError(_key_twice(text)) from error
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    return document


_PLAIN = {
    "Expecting value": "a value is missing, or is not JSON",
    "Expecting property name enclosed in double quotes": "a name in double quotes is missing",
    "Expecting ':' delimiter": "a colon is missing",
    "Expecting ',' delimiter": "a comma or the closing bracket is missing",
    "Unexpected UTF-8 BOM (decode using utf-8-sig)": "a byte order mark stands there, a second one",
    "Extra data": "the value before it stands in no object",
    "Unterminated string starting at": "a text has no closing quote",
    "Invalid control character at": "a text has an unescaped control character",
}
"""Errors of Python's parser in plain words; each other one is about a comma or a backslash."""


def _plain(error: json.JSONDecodeError, text: str) -> str:
    if not text.strip():
        return "it is empty"
    if conflict := conflict_in(text):
        return conflict
    if error.msg == "Extra data" and text.lstrip()[0] in "{[":
        what = "a second document begins" if text[error.pos] in "{[" else "more follows after the document"
        return f"{what} in line {error.lineno}; a file holds one document"
    if error.pos >= len(text.rstrip()):
        return f"it ends in line {line_at(text.rstrip(), error.pos)} before the document is complete; it was cut off"
    what = _PLAIN.get(error.msg, "a comma is one too many" if "comma" in error.msg else "a backslash escapes nothing")
    return f"line {error.lineno}, column {error.colno}: {what}"


def kind_instead_of_json(text: str) -> str | None:
    """Sentence about the kind of a text of which nothing is JSON; None for an empty text, or one with a conflict."""
    if not text.strip() or conflict_in(text):
        return None
    if (kind := text_kind(text)) not in (None, _JSON):
        return f"it looks like {kind}"
    return None if _MAY_BE_JSON.search(text) else _ANOTHER


class _KeyTwiceError(Exception):
    """An object has a key twice."""


def _once_each(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _KeyTwiceError
    return found


def _key_twice(text: str) -> str:
    seen: set[tuple[str | int, ...]] = set()
    for path, position in places(text):
        if path in seen:
            key = shown_value(path[-1])
            return f"the key {key} is in one object twice, in line {line_at(text, position)} again"
        seen.add(path)
    raise InvariantBroken("no key is there twice")


_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{},:]|[^\s\[\]{},:"]+')


def places(text: str) -> Iterator[tuple[tuple[str | int, ...], int]]:
    """Path and position of each value in a well-formed text, in order. Slow: for errors."""
    path: list[Any] = []
    opened: list[str] = []
    is_key = False
    for token in _TOKEN.finditer(text):
        match token[0]:
            case "}" | "]":
                opened.pop()
                path.pop()
                is_key = False
            case ",":
                is_key = opened[-1] == "{"
                path[-1] = "" if is_key else path[-1] + 1
            case ":":
                continue
            case word if is_key:
                path[-1], is_key = json.loads(word, strict=False), False
            case word:
                yield tuple(path), token.start()
                if word in ("{", "["):
                    opened.append(word)
                    is_key = word == "{"
                    path.append("" if is_key else 0)


def is_id(value: Json) -> TypeGuard[int]:
    """True for a number that Kafka can give to a broker or a partition."""
    return type(value) is int and 0 <= value <= LARGEST_ID


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


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number in JSON")


def _refuse_halves(document: Json) -> None:
    for place, value in _texts(document, "$"):
        if is_half(value):
            raise ValueError(f"{place} is {value!r}, which has half of a surrogate pair and is no text")


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
    except tomllib.TOMLDecodeError as error:
        if conflict := conflict_in(text):
            raise ValueError(conflict) from error
        if (kind := text_kind(text)) not in (None, _TOML):
            raise ValueError(f"{error}; it looks like {kind}") from error
        raise ValueError(_plain_toml(str(error))) from error
    except ValueError:
        raise ValueError("a number in it has more digits than any size, rate or time") from None
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


_KEYS = re.compile(r"\((?:'[^']*'(?:, |,(?=\))|(?=\))))+\)")
"""A path of keys, as Python's parser shows it: `('clusters', 'prod')`."""


def _plain_toml(text: str) -> str:
    """The message of Python's parser, with keys as they are written, and an unclosed text called so."""
    dotted = _KEYS.sub(lambda found: ".".join(re.findall(r"'([^']*)'", found[0])), text)
    return dotted.replace(r"Illegal character '\n'", "a text has no closing quote")


def shown_value(value: object, depth: int = 3) -> str:
    """A value of TOML or JSON as its file writes it, not as Python does; the beginning of a long one."""
    match value:
        case None:
            text = "null"
        case bool():
            text = str(value).lower()
        case date() | time():
            text = value.isoformat()
        case list() | tuple() | dict() if not depth:
            text = "…"
        case list() | tuple():
            text = f"[{', '.join(shown_value(one, depth - 1) for one in value[:_MOST_SHOWN])}]"
        case dict():
            entries = islice(value.items(), _MOST_SHOWN)
            text = f"{{{', '.join(f'{key!r}: {shown_value(one, depth - 1)}' for key, one in entries)}}}"
        case _:
            text = repr(value)
    return shortened(text)


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
        raise self._error(f"{key!r} is {shown_value(found)}; it must be {allowed}")

    def _error(self, text: str) -> InputError:
        return InputError(f"{self.where}: {text}")


def _is_sound(text: str) -> bool:
    return "\0" not in text


def _is(found: object, kinds: type | tuple[type, ...]) -> bool:
    # In Python a boolean is an integer too.
    return isinstance(found, kinds) and (kinds is bool or not isinstance(found, bool))
