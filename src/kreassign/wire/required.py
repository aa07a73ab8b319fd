"""Fields that a request must have: Kafka closes the connection where one is sent as null, and so must a twin.

kafka-python's decoder lets every string and list be null, so this is checked afterwards, by the same published
message definitions.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from kreassign.wire.api import Api, Message


@dataclass(frozen=True, slots=True)
class _Field:
    name: str
    may_be_null: bool
    is_list: bool
    fields: tuple[_Field, ...]


def missing_field(api: Api, version: int, message: Message) -> str | None:
    """The first field of a decoded request that is null although this version forbids it; None if there is none."""
    return _missing(_fields(api, version), message)


def _missing(fields: tuple[_Field, ...], holder: Message) -> str | None:
    for field in fields:
        value = getattr(holder, field.name)
        if value is None:
            if not field.may_be_null:
                return field.name
            continue
        for part in (value if field.is_list else (value,)) if field.fields else ():
            if (found := _missing(field.fields, part)) is not None:
                return found
    return None


@cache
def _fields(api: Api, version: int) -> tuple[_Field, ...]:
    return _of(api.request.json["fields"], version)


def _of(definitions: list[Mapping[str, Any]], version: int) -> tuple[_Field, ...]:
    """What can be null at all, or holds something that can: strings, bytes, lists and structures of this version."""
    found = []
    for definition in definitions:
        kind = definition["type"]
        inner = _of(definition.get("fields", []), version)
        is_list = kind.startswith("[]")
        if _covers(definition["versions"], version) and (is_list or inner or kind in {"string", "bytes"}):
            may_be_null = _covers(definition.get("nullableVersions", "none"), version) or "tag" in definition
            found.append(_Field(_snake(definition["name"]), may_be_null, is_list, inner))
    return tuple(found)


def _covers(versions: str, version: int) -> bool:
    """Whether a range as the definitions write it (`3`, `0-5`, `2+`, `none`) has this version."""
    if versions == "none":
        return False
    low, dash, high = versions.rstrip("+").partition("-")
    last = int(high) if dash else version if versions.endswith("+") else int(low)
    return int(low) <= version <= last


def _snake(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
