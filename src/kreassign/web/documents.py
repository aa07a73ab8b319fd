"""Records as JSON, JSON as records, and the JSON Schema of both: all from the types of their fields. Pure."""

from __future__ import annotations

import json
import math
import types
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from kreassign.errors import InputError
from kreassign.model.printable import printable, shortened
from kreassign.model.strict_json import loads

Record = TypeVar("Record")
Json = Any

_PLAIN = {str: "string", int: "integer", float: "number", bool: "boolean"}


def document(value: object) -> Json:
    """A record as a JSON value. Text is printable, whatever a cluster calls its things; no number is infinite."""
    found: Json = value
    if is_dataclass(value) and not isinstance(value, type):
        found = {field.name: document(getattr(value, field.name)) for field in fields(value)}
    elif isinstance(value, Mapping):
        found = {printable(str(key)): document(one) for key, one in value.items()}
    elif isinstance(value, tuple | list):
        found = [document(one) for one in value]
    elif isinstance(value, str):
        found = printable(value.value if isinstance(value, Enum) else value)
    elif isinstance(value, float) and not math.isfinite(value):
        found = None
    return found


def text(value: object) -> str:
    """The same as text, on one line, without any character that could be markup where it is taken for a page."""
    found = json.dumps(document(value), separators=(",", ":"))
    return found.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def parsed(kind: type[Record], content: bytes) -> Record:
    """The record that a document describes. Raises InputError, which says what it lacks, or has too much."""
    try:
        found = loads(content.decode("utf-8"))
    except ValueError as error:
        raise InputError(f"the request is no JSON: {error}") from None
    if not isinstance(found, dict):
        raise InputError("the request is no JSON object")
    hints = _hints(kind)
    described: Any = kind  # every record is a dataclass
    known = {field.name: field for field in fields(described)}
    for name in found.keys() - known.keys():
        raise InputError(f"the request has a field {shortened(printable(name))!r}, which is not known")
    for name, field in known.items():
        if name not in found and field.default is MISSING:
            raise InputError(f"the request lacks the field {name!r}")
    return kind(**{name: _checked(name, value, hints[name]) for name, value in found.items()})


def _checked(name: str, value: Json, kind: Any) -> Json:
    origin = get_origin(kind)
    if origin in {Union, types.UnionType}:
        chosen = [one for one in get_args(kind) if one is not type(None)]
        return None if value is None else _checked(name, value, chosen[0])
    if origin is tuple and isinstance(value, list):
        return tuple(_checked(name, one, get_args(kind)[0]) for one in value)
    # Python's True is an int.
    if origin is None and isinstance(value, kind) and (kind is bool) == isinstance(value, bool):
        return value
    raise InputError(f"the field {name!r} is {shortened(json.dumps(value))}, which is no {_said(kind)}")


def _said(kind: Any) -> str:
    return _PLAIN.get(kind, "list")


def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


def schema(kind: Any, known: dict[str, Json]) -> Json:
    """The JSON Schema of a type; those of records are added to `known` and referred to."""
    origin = get_origin(kind)
    if kind in _PLAIN:
        return {"type": _PLAIN[kind]}
    if origin in {Union, types.UnionType}:
        return {"anyOf": [schema(one, known) for one in get_args(kind)]}
    if kind is type(None):
        return {"type": "null"}
    if origin is tuple:
        return {"type": "array", "items": schema(get_args(kind)[0], known)}
    if origin is dict:
        return {"type": "object", "additionalProperties": schema(get_args(kind)[1], known)}
    if kind.__name__ not in known:
        known[kind.__name__] = {}  # for those that refer to it meanwhile
        known[kind.__name__] = _of_record(kind, known)
    return {"$ref": f"#/components/schemas/{kind.__name__}"}


def _of_record(kind: type[Any], known: dict[str, Json]) -> Json:
    hints = _hints(kind)
    return {
        "type": "object",
        "description": " ".join((kind.__doc__ or "").split()),
        "properties": {field.name: schema(hints[field.name], known) for field in fields(kind)},
        "required": [field.name for field in fields(kind) if field.default is MISSING],
        "additionalProperties": False,
    }
