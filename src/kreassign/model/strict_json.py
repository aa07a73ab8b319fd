"""JSON as its standard has it: without NaN, infinities, numbers that overflow, and half surrogate pairs.

Python's reader takes all of these. None of them is a size, a rate or a name, and each fails later, far from its file.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any, NoReturn

from kreassign.model.printable import shortened

# A JSON value as the standard library reads it.
Json = Any

_MOST_DIGITS = 4_300
"""Of a number that Python makes of a text; of more it raises what nobody expects."""
_HALF_ESCAPED = re.compile(r"\\u[dD][89a-fA-F]")
_HALF = re.compile("[\ud800-\udfff]")


def loads(text: str, *, takes_nan: bool = False) -> Json:
    """Read a document. Raises ValueError, which names the number, or the place of the text, that is refused.

    With `takes_nan` what other writers put for a number that is none, such as NaN, is null.
    """
    try:
        constant = _nothing if takes_nan else _refuse
        document = json.loads(text, parse_constant=constant, parse_float=finite, parse_int=_whole)
        # Only escapes can bring halves in, and most files have none; so most are not walked through.
        if _HALF_ESCAPED.search(text):
            _refuse_halves(document)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    return document


def is_half(text: str) -> bool:
    """Whether a text has half of a surrogate pair, so that it cannot be encoded."""
    return _HALF.search(text) is not None


def finite(text: str) -> float:
    """The number that a text spells; ValueError if it is none, overflows, or is `nan` or `inf`."""
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
