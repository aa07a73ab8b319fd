"""Reading and writing the JSON of a znode, and every doubt about it with its path."""

from __future__ import annotations

import json
from typing import Any

from kreassign.errors import DamagedZnode

# A JSON value as the standard library reads it; every use checks its type first.
Json = Any

_COMPACT = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False)


def encode(document: Json) -> bytes:
    """Compact JSON with the keys in the order given, as Kafka writes it."""
    return _COMPACT.encode(document).encode()


def decode(path: str, content: bytes) -> dict[str, Json]:
    """The JSON object of a znode; raises `DamagedZnode`."""
    try:
        document = json.loads(content)
    except ValueError as error:
        raise DamagedZnode(path, f"it is not JSON: {error}") from error
    if not isinstance(document, dict):
        raise DamagedZnode(path, "it is not a JSON object")
    return document


def field(path: str, fields: dict[str, Json], name: str) -> Json:
    """A key that must be there."""
    if name not in fields:
        raise DamagedZnode(path, f"it has no {name!r}")
    return fields[name]


def integer(path: str, value: Json) -> int:
    """A whole number."""
    if type(value) is not int:
        raise DamagedZnode(path, f"{value!r} is not a whole number")
    return value


def string(path: str, value: Json) -> str:
    """A text."""
    if not isinstance(value, str):
        raise DamagedZnode(path, f"{value!r} is not a text")
    return value


def objects(path: str, value: Json) -> list[dict[str, Json]]:
    """A list of JSON objects."""
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise DamagedZnode(path, f"{value!r} is not a list of objects")
    return value


def brokers(path: str, value: Json) -> tuple[int, ...]:
    """A list of broker ids, in its order."""
    if not isinstance(value, list):
        raise DamagedZnode(path, f"{value!r} is not a list of brokers")
    return tuple(integer(path, item) for item in value)


def replica_lists(path: str, value: Json) -> dict[int, tuple[int, ...]]:
    """Replica lists by partition number, which JSON writes as text."""
    if not isinstance(value, dict) or not all(name.isascii() and name.isdigit() for name in value):
        raise DamagedZnode(path, f"{value!r} does not map partitions to replicas")
    return {int(name): brokers(path, ids) for name, ids in value.items()}


def strings(path: str, value: Json) -> dict[str, str]:
    """Texts by name."""
    if not isinstance(value, dict):
        raise DamagedZnode(path, f"{value!r} does not map names to texts")
    return {name: string(path, text) for name, text in value.items()}
