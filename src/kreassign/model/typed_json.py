"""Values as JSON documents, by the types of their fields. Pure.

A dataclass is an object of its fields, a closed choice its value.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

from kreassign.model.documents import Json
from kreassign.model.text import printable


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
    """Keys of the document of a dataclass: its fields, then the properties that it `ALSO_SHOWS`."""
    return (*(field.name for field in fields(kind)), *getattr(kind, "ALSO_SHOWS", ()))
