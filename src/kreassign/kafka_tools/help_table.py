"""The table of options that Kafka's tools print: two columns, folded at blanks and hyphens."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import zip_longest

from kreassign.kafka_tools.options import Option, Value

_WIDTH = 39
_GAP = "  "
_INDENT = "  "
# A word with the blanks behind it, or blanks at the start of a line; a hyphen or dot before a letter may end a line
# too.
_PIECE = re.compile(r"\s+|(?:(?![-.][A-Za-z])\S)*[-.](?=[A-Za-z])|(?:(?![-.][A-Za-z])\S)+\s*")


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
