"""Documents with fields that nobody would write: one that is whole, in which fields at any depth are changed.

A field is dropped, given twice, renamed, given another type, made enormous, swapped with another one or nested. Then,
now and then, the bytes of the text are damaged as well. What a form cannot say (a lone surrogate, a number without an
end, a key that is there twice) is written as it stands: the writer here knows no rules.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from random import Random
from typing import Any

EVIL_NAMES = (
    "\x1b[2J\x1b]0;owned\x07", "\x9b31mred", "\u202eexe.txt", "\u2066a\u2069", "\u200f", "a\nb", "a\rb", "a\tb",
    "\x08\x7f", "\x00", "\x85next", "\u2028line", "\ud800", "[red]bold[/red]", "<script>", "é" * 50, "t\u0301", "|a|b|",
    "=1+1", "\ufeff",
)  # fmt: skip
"""Names that want to take over a terminal, a page or a table."""
MANY = 2_000
DEEP = 20_000
MOST_BYTES = 2_000_000
"""What is larger costs more time than it finds; how much memory files of any size take is measured elsewhere."""
DAMAGED = 0.15
"""How often bytes are damaged besides."""


@dataclass(slots=True)
class Verbatim:
    """A value as it is written, sound or not."""

    text: str


@dataclass(slots=True)
class Pairs:
    """An object, whose keys may be there more than once."""

    items: list[list[Any]] = field(default_factory=list)


def tree(value: Any) -> Any:
    """A document as it is changed here."""
    if isinstance(value, dict):
        return Pairs([[key, tree(one)] for key, one in value.items()])
    return [tree(one) for one in value] if isinstance(value, list) else value


_NUMBERS = (
    "-1", "0", "1", "2", "1.5", "-0", "1e400", "-1e400", "2147483647", "2147483648", "9223372036854775807",
    "9223372036854775808", "-9223372036854775808", "9" * 25, "9" * 400, "9" * 5_000, "1e-400", "0.1",
)  # fmt: skip
_WORDS = tuple(
    json.dumps(name) for name in (*EVIL_NAMES, "", "nan", "any", "t" * 300, "x" * 40_000, "../..", "a,b:c=d")
)
JSON_VALUES = (
    *_NUMBERS, *_WORDS, "NaN", "Infinity", "null", "true", "[]", "{}", r'"\ud800"', r'"\u0000"', "[[]]", '{"":{}}',
    "[" * DEEP + "]" * DEEP, '{"a":' * DEEP + "1" + "}" * DEEP, "tru", "'single'", "0x10", "[1,]", "/* no */ 1",
)  # fmt: skip
TOML_VALUES = (
    *_NUMBERS, *_WORDS, "nan", "-inf", "true", "[]", "{}", r'"\ud800"', r'"\u0000"', "1979-05-27", "07:32:00",
    "1979-05-27T07:32:00Z", "[" * DEEP + "]" * DEEP, "0x10", "'''a\nb'''", "{ a = { b = [ { c = 1 } ] } }", "1_000",
    '"1 TB"', '"-1 MB"', '"1e30 TB"', '"1 µs"',
)  # fmt: skip
TEXT_VALUES = (
    "", " ", "-1", "0", "1", "nan", "inf", "1e400", "9" * 25, "9" * 5_000, r"\ud800", r"\u0000", r"\u001b[2J",
    "\x1b[2J", "²", "/nowhere/x", "\\", "a\\", "\\u12", "true", "x" * 40_000, "SASL_SSL", "SSL", "PLAIN",
    "a=b:c", "${file:/x:y}", "${env:HOME}", "../..", "١٢", "\x9b31m", "%s%n{0}",
)  # fmt: skip
"""Values of files of properties."""


def _text(value: Any, is_key: str, then: str) -> str:
    match value:
        case Verbatim():
            return value.text
        case Pairs():
            return (
                f"{{{then.join(f'{json.dumps(key)}{is_key}{_text(one, is_key, then)}' for key, one in value.items)}}}"
            )
        case list():
            return f"[{then.join(_text(one, is_key, then) for one in value)}]"
        case _:
            return json.dumps(value)


def json_text(value: Any) -> str:
    """The document as JSON."""
    return _text(value, ":", ",")


def toml_text(value: Any) -> str:
    """The document as TOML: a line for each key of the top, all below it inline."""
    if not isinstance(value, Pairs):
        return _text(value, " = ", ", ")
    return "".join(f"{json.dumps(key)} = {_text(one, ' = ', ', ')}\n" for key, one in value.items)


def properties_text(value: Any) -> str:
    """The document as a file of properties: what is below the top has no form there."""
    items = value.items if isinstance(value, Pairs) else [("", value)]
    return "".join(f"{key}={one.text if isinstance(one, Verbatim) else one}\n" for key, one in items)


@dataclass(frozen=True, slots=True)
class Form:
    """Form of a kind of file, and the odd values that it can have."""

    text: Callable[[Any], str]
    values: tuple[str, ...]


JSON = Form(json_text, JSON_VALUES)
TOML = Form(toml_text, TOML_VALUES)
PROPERTIES = Form(properties_text, TEXT_VALUES)


@dataclass(frozen=True, slots=True)
class _Place:
    """A value, `cell[at]`, and the object or list in which it is at a position; None at the top."""

    cell: list[Any]
    at: int
    holder: Pairs | list[Any] | None = None
    position: int = 0

    @property
    def value(self) -> Any:
        return self.cell[self.at]

    def put(self, value: Any) -> None:
        self.cell[self.at] = value


def _places(top: list[Any]) -> Iterator[_Place]:
    todo = [_Place(top, 0)]
    while todo:
        place = todo.pop()
        yield place
        value = place.value
        if isinstance(value, Pairs):
            todo += [_Place(pair, 1, value, number) for number, pair in enumerate(value.items)]
        elif isinstance(value, list):
            todo += [_Place(value, number, value, number) for number in range(min(len(value), 50))]


def _change(top: list[Any], form: Form, chance: Random) -> None:
    places = list(_places(top))
    place = chance.choice(places[1:] if len(places) > 1 and chance.random() < 0.97 else places)
    holder, where, value = place.holder, place.position, place.value
    odd = Verbatim(chance.choice(form.values))
    choices: list[Callable[[], object]] = [lambda: place.put(odd)] * 3
    if isinstance(holder, Pairs):
        name, pairs = chance.choice((*EVIL_NAMES, "", "version", "x" * 300)), holder.items
        choices += [
            lambda: pairs.pop(where),
            lambda: pairs.append([*pairs[where]]),
            lambda: pairs.append([pairs[where][0], odd]),
            lambda: pairs.__setitem__(where, [name, value]),
            lambda: pairs.append([name, odd]),
        ]
    elif holder is not None:
        choices += [
            lambda: holder.pop(where),
            lambda: holder.append(deepcopy(value)),
            lambda: holder.insert(where, odd),
            lambda: holder.extend([value] * (MANY - len(holder))),
            lambda: chance.shuffle(holder),
        ]
    if isinstance(value, str):
        choices += [lambda: place.put(chance.choice(EVIL_NAMES)), lambda: place.put(value * 100)]
    if isinstance(value, int | float) and not isinstance(value, bool):
        choices += [lambda: place.put(value * chance.choice((-1, 1000, 10**9))), lambda: place.put(str(value))]
    other = chance.choice(places)
    choices += [lambda: place.put([value]), lambda: place.put(Pairs([["a", value]]))]
    if not isinstance(other.value, Pairs | list):
        choices.append(lambda: place.put(other.value))
    chance.choice(choices)()


def damaged(content: bytes, chance: Random) -> bytes:
    """Bytes that are cut off, flipped, put in, taken out, moved, or written as another encoding."""
    at = chance.randrange(len(content) + 1)
    end = min(len(content), at + chance.choice((1, 4, 64)))
    choices: tuple[Callable[[], bytes], ...] = (
        lambda: content[:at],
        lambda: content[at:],
        lambda: content[:at] + bytes([byte ^ 1 << chance.randrange(8) for byte in content[at:end]]) + content[end:],
        lambda: content[:at] + chance.randbytes(end - at) + content[end:],
        lambda: content[:at] + content[end:],
        lambda: content[:at] + content[at:end] * 50 + content[end:],
        lambda: content[:at] + bytes(end - at) + content[at:],
        lambda: b"\xef\xbb\xbf" + content,
        lambda: content.decode("latin-1").encode("utf-16"),
        lambda: content.replace(b"\n", b"\r\n"),
        lambda: gzip.compress(content, mtime=0),
        lambda: content + content,
        lambda: b"",
    )
    return chance.choice(choices)()


def changed(document: Any, form: Form, chance: Random) -> bytes:
    """A document with up to four fields that are not as they were, of at most `MOST_BYTES`."""
    while True:
        top = [deepcopy(document)]
        for _ in range(chance.choice((1, 1, 1, 2, 4))):
            _change(top, form, chance)
        content = form.text(top[0]).encode("utf-8", "surrogatepass")
        content = damaged(content, chance) if chance.random() < DAMAGED else content
        if len(content) <= MOST_BYTES:
            return content
