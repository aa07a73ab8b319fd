"""What Kafka's decoder does not take: nulls where none may be, and strings of more than 32,767 bytes.

Kafka closes the connection of whoever sends them, and so must a twin. kafka-python's decoder lets every string and list
be null and, in flexible versions, of any length, so this is checked afterwards, by the same published message
definitions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from kreassign.wire.api import Api, Message

MAX_STRING_BYTES = 32_767


@dataclass(frozen=True, slots=True)
class _Field:
    name: str
    may_be_null: bool
    is_list: bool
    is_text: bool
    fields: tuple[_Field, ...]

    def parts(self, value: Any) -> Iterable[Any]:
        """The items of a list, or the one value."""
        return value if self.is_list else (value,)


def fault_of(api: Api, version: int, message: Message) -> str | None:
    """What a decoded request has, or has not, although this version forbids it; None if it is as it must be."""
    return _fault(_fields(api, version), message)


def _fault(fields: tuple[_Field, ...], holder: Message) -> str | None:
    for field in fields:
        value = getattr(holder, field.name)
        if value is None:
            if not field.may_be_null:
                return f"no {field.name}"
            continue
        for part in field.parts(value) if field.fields or field.is_text else ():
            found = _overlong(field, part) if field.is_text else _fault(field.fields, part)
            if found is not None:
                return found
    return None


def _overlong(field: _Field, value: str | None) -> str | None:
    # Most strings are so short that their bytes need not be counted.
    if value is None or 4 * len(value) <= MAX_STRING_BYTES:
        return None
    length = len(value.encode())
    return f"a {field.name} of {length:,} bytes" if length > MAX_STRING_BYTES else None


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
            is_text = kind.removeprefix("[]") == "string"
            found.append(_Field(_snake(definition["name"]), may_be_null, is_list, is_text, inner))
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
