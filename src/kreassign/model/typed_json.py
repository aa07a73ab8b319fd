"""Values as JSON documents, and JSON as values, by the types of their fields. Pure.

A dataclass is an object of its fields, a named tuple a list of them, a closed choice its value.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import cache
from types import MappingProxyType, NoneType, UnionType
from typing import Any, NoReturn, Union, get_args, get_origin, get_type_hints

from kreassign.model.documents import Json, shown_value
from kreassign.model.text import printable

JSON_TYPES: Mapping[type, str] = MappingProxyType({
    str: "string", int: "integer", float: "number", bool: "boolean", NoneType: "null", list: "array", dict: "object",
})  # fmt: skip
"""Names of JSON Schema for Python's types."""
UNSHOWN: Mapping[str, bool] = MappingProxyType({"is_shown": False})
"""Metadata of a field that documents leave out: journals have it, and programs have no use for it."""


def to_document(value: object) -> Json:
    """Convert a value to a JSON value, for programs to read. Text is made printable; infinite numbers become null."""
    found: Json = value
    if is_dataclass(value):
        found = {name: to_document(getattr(value, name)) for name in names_in(type(value))}
    elif isinstance(value, Mapping):
        found = {printable(str(key)): to_document(one) for key, one in value.items()}
    elif isinstance(value, tuple | list):
        found = [*map(to_document, value)]
    elif isinstance(value, str):
        found = printable(value.value if isinstance(value, Enum) else value)
    elif isinstance(value, float) and not math.isfinite(value):
        found = None
    return found


def names_in(kind: Any) -> tuple[str, ...]:
    """Keys of the document of a dataclass: its fields but `UNSHOWN` ones, then the properties that it `ALSO_SHOWS`."""
    shown = (field.name for field in fields(kind) if field.metadata.get("is_shown", True))
    return (*shown, *getattr(kind, "ALSO_SHOWS", ()))


class Reader:
    """Reader of parsed JSON. Raises TypeError or ValueError for what does not fit."""

    def value(self, value: Json, wanted: Any, name: str) -> Any:
        """Read a value of the wanted type; errors name the field."""
        if wanted in JSON_TYPES:
            return self.plain(value, wanted, name)
        origin, inner = get_origin(wanted), get_args(wanted)
        found: Any = None
        if origin in {Union, UnionType}:
            only = next(one for one in inner if one is not NoneType)
            found = None if value is None else self.value(value, only, name)
        elif origin is tuple:
            found = tuple(self.value(one, inner[0], name) for one in self.plain(value, list, name))
        elif origin is Mapping:
            found = {key: self.value(one, inner[1], name) for key, one in self.plain(value, dict, name).items()}
        elif is_dataclass(wanted):
            found = self.record(self.plain(value, dict, name), wanted)
        elif issubclass(wanted, tuple):
            hints = zip(hints_of(wanted).items(), self.plain(value, list, name), strict=True)
            found = wanted(*(self.value(one, hint, key) for (key, hint), one in hints))
        else:
            found = wanted(value)  # a closed choice
        return found

    def record(self, values: Mapping[str, Json], kind: Any) -> Any:
        """Read the fields of a dataclass; those with a default may be missing."""
        hints, needed = hints_of(kind), needed_in(kind)
        if strange := [name for name in values if name not in needed]:
            raise TypeError(f"there is no field {shown_value(strange[0])}")
        if missing := [name for name, is_needed in needed.items() if is_needed and name not in values]:
            raise TypeError(f"it has no {missing[0]!r}")
        return kind(**{name: self.value(one, hints[name], name) for name, one in values.items()})

    def plain(self, value: Json, wanted: type, name: str) -> Any:
        """Take a value that is of this type already. Python's True is an int, but no integer."""
        if type(value) is not wanted and (wanted is not float or type(value) is not int):
            refuse(value, wanted, name)
        return value


def refuse(value: Json, wanted: type, name: str) -> NoReturn:
    """Raise TypeError for a value of another type."""
    raise TypeError(f"{name} is {shown_value(value)}, which is no {JSON_TYPES[wanted]}")


@cache
def hints_of(kind: Any) -> dict[str, Any]:
    """Types of the fields of a class, by name."""
    return get_type_hints(kind)


@cache
def needed_in(kind: Any) -> dict[str, bool]:
    """Fields of a dataclass by name: true for those without a default."""
    return {one.name: one.default is MISSING and one.default_factory is MISSING for one in fields(kind)}
