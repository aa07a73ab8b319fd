"""Command lines as joptsimple, the option parser of Kafka's tools, reads them, and the help that it prints.

Long options only (one dash does as well as two), never abbreviated, value after a blank or an equals sign. Words that
are no options are ignored, and so is everything after `--`. The help is a table of two columns, folded at blanks and
hyphens.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import zip_longest

from kreassign.kafka_tools.failures import ParserError, ToolError
from kreassign.model.whole_number import signed_number

_WIDTH = 39
_GAP = "  "
_INDENT = "  "

# Bytes that are no text reach Python as halves of surrogate pairs; Java reads each of them as this character.
_HALF = re.compile("[\ud800-\udfff]")

# A word with the blanks behind it, or blanks at the start of a line; a hyphen or dot before a letter may end a line
# too.
_PIECE = re.compile(r"\s+|(?:(?![-.][A-Za-z])\S)*[-.](?=[A-Za-z])|(?:(?![-.][A-Za-z])\S)+\s*")


class Value(Enum):
    """Whether an option takes a value."""

    NONE = "none"
    REQUIRED = "required"
    OPTIONAL = "optional"


@dataclass(frozen=True, slots=True)
class Option:
    """One option. `value_name`, `value_type` and `default` say in the help what the value is."""

    name: str
    description: str
    value: Value = Value.NONE
    value_name: str = ""
    value_type: str = "String"
    default: int | str | None = None


@dataclass(frozen=True, slots=True)
class Options:
    """What stood on a command line: names in their order, each with its value, if it had one.

    `word_count` counts all words, those too that are neither options nor values.
    """

    found: tuple[tuple[str, str | None], ...]
    word_count: int

    @property
    def names(self) -> tuple[str, ...]:
        """The options given, in their order; one that was given twice is there twice."""
        return tuple(name for name, _value in self.found)

    def has(self, name: str) -> bool:
        """Whether the option was given."""
        return name in self.names

    def text(self, name: str) -> str | None:
        """The value of an option, None if it has none; raises `ToolError` if it was given several values."""
        values = [value for found, value in self.found if found == name and value is not None]
        if len(values) > 1:
            raise ToolError(f"Found multiple arguments for option {name}, but you asked for only one")
        return values[0] if values else None

    def number(self, name: str, default: int, *, bits: int = 64) -> int:
        """The value of an option as a signed number of so many bits, or the default.

        Java's `Long` has 64 bits, its `Integer` 32. Raises `ToolError` for any other text.
        """
        text = self.text(name)
        if text is None:
            return default
        limit = 2 ** (bits - 1)
        number = signed_number(text)
        if number is None or not -limit <= number < limit:
            raise ToolError(f"Cannot parse argument '{text}' of option {name}")
        return number


def parse(known: Iterable[Option], words: Sequence[str]) -> Options:
    """Read the words of a command line; raises `ParserError` for an unknown option or a missing value."""
    table = {option.name: option for option in known}
    words = [_HALF.sub("\N{REPLACEMENT CHARACTER}", word) for word in words]
    if broken := next((word for word in words if "\0" in word), None):
        raise ParserError("IllegalOptionSpecificationException", f"{broken} is not a legal option character")
    found: list[tuple[str, str | None]] = []
    at = 0
    while at < len(words) and words[at] != "--":
        word = words[at]
        at += 1
        if not _is_option(word):
            continue
        option, value = _recognised(table, word)
        if option.value is Value.NONE:
            value = None
        elif value is None and at < len(words) and (option.value is Value.REQUIRED or not _is_option(words[at])):
            value = words[at]
            at += 1
        if value is None and option.value is Value.REQUIRED:
            missing = f"Option {option.name} requires an argument"
            raise ParserError("OptionMissingRequiredArgumentException", missing)
        found.append((option.name, value))
    return Options(tuple(found), len(words))


def _recognised(table: dict[str, Option], word: str) -> tuple[Option, str | None]:
    name, equals, value = word.removeprefix("-").removeprefix("-").partition("=")
    if name not in table:
        # After a single dash joptsimple takes each letter for an option of its own, and trips over the first.
        shown = name if word.startswith("--") else name[:1]
        raise ParserError("UnrecognizedOptionException", f"{shown} is not a recognized option")
    return table[name], value if equals else None


def _is_option(word: str) -> bool:
    return word.startswith("-") and word != "-"


def help_table(options: Iterable[Option]) -> str:
    """The table, options sorted by name, every column as wide as its widest line."""
    rows = [(_heading(option), _description(option)) for option in sorted(options, key=lambda option: option.name)]
    folded = [line for row in [("Option", "Description"), ("------", "-----------"), *rows] for line in _row(*row)]
    left, right = (max(map(len, column)) for column in zip(*folded, strict=True))
    return "\n".join(f"{option:<{left}}{_GAP}{text:<{right}}" for option, text in folded)


def _heading(option: Option) -> str:
    argument = f"{option.value_type}: {option.value_name}"
    match option.value:
        case Value.NONE:
            return f"--{option.name}"
        case Value.REQUIRED:
            return f"--{option.name} <{argument}>"
        case Value.OPTIONAL:
            return f"--{option.name} [{argument}]"


def _description(option: Option) -> str:
    return option.description if option.default is None else f"{option.description} (default: {option.default})"


def _row(heading: str, description: str) -> Iterator[tuple[str, str]]:
    return zip_longest(_folded(heading), _folded(description), fillvalue="")


def _folded(text: str) -> Iterator[str]:
    for line in text.split("\n"):
        folded = ""
        for piece in _PIECE.findall(line):
            if len(folded) + len(piece) > _WIDTH:
                yield folded.rstrip(" ")
                folded = _INDENT
            folded += piece
        yield folded.rstrip(" ")
