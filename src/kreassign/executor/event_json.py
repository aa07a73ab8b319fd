"""Events as JSON text and back, by the types of their fields. Pure.

The kind of an event is the name of its class. Dataclasses and named tuples become objects, tuples arrays, closed
choices their values. What does not fit the types on the way back raises ValueError.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from types import MappingProxyType, NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

from kreassign.errors import InputError, InvariantBroken
from kreassign.executor.events import Event

KINDS: Mapping[str, type[Event]] = MappingProxyType({kind.__name__: kind for kind in get_args(Event)})


def kind_of(event: Event) -> str:
    """The name under which an event is kept."""
    return type(event).__name__


def to_json(event: Event) -> str:
    """The fields of an event, on one line."""
    return json.dumps(event, separators=(",", ":"), ensure_ascii=False, default=_plain)


def from_json(kind: str, text: str) -> Event:
    """The event of this kind with these fields. Raises ValueError."""
    if kind not in KINDS:
        raise ValueError(f"no event is called {kind!r}; a newer version of kreassign may have written it")
    try:
        event: Event = _read(json.loads(text), KINDS[kind])
    except (InputError, InvariantBroken, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise ValueError(f"a {kind} cannot be read: {error}") from error
    return event


def _plain(value: Any) -> object:
    """One level of what JSON does not know; the encoder itself goes on from there."""
    if is_dataclass(value):
        return {name: getattr(value, name) for name in value.__dataclass_fields__}
    assert isinstance(value, Enum), f"{value!r} has no place in an event"
    return value.value


def _read(value: Any, wanted: Any) -> Any:
    """A value of the wanted type, from what the JSON parser made."""
    origin = get_origin(wanted)
    if origin is UnionType:
        inner = next(option for option in get_args(wanted) if option is not NoneType)
        return None if value is None else _read(value, inner)
    if origin is tuple:
        return tuple(_read(item, get_args(wanted)[0]) for item in _checked(value, list))
    if is_dataclass(wanted):
        return _read_fields(_checked(value, dict), wanted)
    if issubclass(wanted, tuple):
        return _read_tuple(_checked(value, list), wanted)
    if issubclass(wanted, Enum):
        return wanted(value)
    return _checked(value, wanted)


def _read_fields(values: dict[str, Any], wanted: Any) -> Any:
    hints = _hints(wanted)
    unknown = values.keys() - {field.name for field in fields(wanted)}
    if unknown:
        raise ValueError(f"unknown fields {sorted(unknown)}")
    return wanted(**{name: _read(value, hints[name]) for name, value in values.items()})


def _read_tuple(values: list[Any], wanted: Any) -> Any:
    """A named tuple: JSON knows only arrays."""
    hints = list(_hints(wanted).values())
    return wanted(*(_read(value, hint) for value, hint in zip(values, hints, strict=True)))


def _checked(value: Any, wanted: type) -> Any:
    if type(value) is not wanted:
        raise TypeError(f"{value!r} is no {wanted.__name__}")
    return value


@cache
def _hints(wanted: type) -> dict[str, Any]:
    return get_type_hints(wanted)
