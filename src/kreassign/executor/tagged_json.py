"""Values of the executor as JSON and back, whatever their classes: for what is written and read by the same program.

Unlike events (`event_json.py`), which are read for years, such a text is only understood while every class in it has
the fields that it had: their names are in the text. Anything else raises ValueError, and the reader does without. Pure.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

PACKAGES = ("kreassign.executor.", "kreassign.model.")
"""Only classes of these packages are made from a text."""

_PLAIN: dict[type, str] = {tuple: "t", list: "l", set: "s", frozenset: "f"}
_PLAIN_BY_TAG: dict[str, Any] = {tag: kind for kind, tag in _PLAIN.items()}


def dumps(value: Any) -> str:
    """The text of a value: dataclasses, named tuples, enums and Python's own collections of them. Raises TypeError."""
    writer = _Writer()
    content = writer.written(value)
    return json.dumps({"classes": writer.classes, "value": content}, separators=(",", ":"), ensure_ascii=False)


def loads(text: str, wanted: type) -> Any:
    """The value of a text, of the wanted class. Raises ValueError where a class is not what it was."""
    try:
        document = json.loads(text)
        found = _Reader([_class(*named) for named in document["classes"]]).read(document["value"])
    except (LookupError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"not what this version of kreassign wrote: {error}") from error
    if type(found) is not wanted:
        raise ValueError(f"not what this version of kreassign wrote: {type(found).__name__} is no {wanted.__name__}")
    return found


class _Writer:
    def __init__(self) -> None:
        self.classes: list[tuple[str, str, list[str]]] = []
        self._numbers: dict[type, int] = {}

    def written(self, value: Any) -> Any:
        kind = type(value)
        if value is None or kind in {str, int, float, bool}:
            return value
        if kind in _PLAIN:
            return [_PLAIN[kind], *map(self.written, value)]
        if kind is dict or kind is Counter:
            flat = (self.written(part) for item in value.items() for part in item)
            return ["c" if kind is Counter else "d", *flat]
        if isinstance(value, Enum):
            return ["e", self._number(kind, []), value.value]
        if isinstance(value, tuple):
            return ["n", self._number(kind, list(kind._fields)), *map(self.written, value)]
        if is_dataclass(value):
            names = [field.name for field in fields(value)]
            return ["o", self._number(kind, names), *(self.written(getattr(value, name)) for name in names)]
        raise TypeError(f"{kind.__name__} has no place in a snapshot")

    def _number(self, kind: type, names: list[str]) -> int:
        if kind not in self._numbers:
            self._numbers[kind] = len(self.classes)
            self.classes.append((kind.__module__, kind.__qualname__, names))
        return self._numbers[kind]


class _Reader:
    def __init__(self, classes: list[tuple[Any, list[str]]]) -> None:
        self._classes = classes

    def read(self, value: Any) -> Any:
        if type(value) is not list:
            return sys.intern(value) if type(value) is str else value
        tag, *parts = value
        if tag in _PLAIN_BY_TAG:
            return _PLAIN_BY_TAG[tag](map(self.read, parts))
        if tag in {"d", "c"}:
            items = map(self.read, parts)
            return (Counter if tag == "c" else dict)(dict(zip(items, items, strict=True)))
        kind, names = self._classes[parts[0]]
        if tag == "e":
            return kind(parts[1])
        values = list(map(self.read, parts[1:]))
        return kind(*values) if tag == "n" else _made(kind, dict(zip(names, values, strict=True)))


def _made(kind: Any, values: dict[str, Any]) -> Any:
    """A dataclass with these fields, also those that its initializer does not take."""
    made = object.__new__(kind)
    for name, value in values.items():
        object.__setattr__(made, name, value)
    return made


def _class(module: str, name: str, names: list[str]) -> tuple[Any, list[str]]:
    if not module.startswith(PACKAGES):
        raise ValueError(f"{module}.{name} is no class of a run")
    kind: Any = sys.modules[module]
    for part in name.split("."):
        kind = getattr(kind, part)
    is_made = isinstance(kind, type) and (is_dataclass(kind) or issubclass(kind, Enum | tuple))
    known = [field.name for field in fields(kind)] if is_dataclass(kind) else list(getattr(kind, "_fields", ()))
    if not is_made or known != names:
        raise ValueError(f"{name} has other fields now")
    return kind, names
