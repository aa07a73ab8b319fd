"""Records as JSON texts: the name of the record, then its fields; what is at its default is left out."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, fields
from typing import Any, get_args

from kreassign.model import ConfigResource, TopicPartition
from kreassign.model.config import ResourceType
from kreassign.twin.metadata.records import LeaderRecovery, LogDirInfo, Record

_KIND = "record"
_CLASSES: Mapping[str, type[Any]] = {kind.__name__: kind for kind in get_args(Record)}
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def to_json(record: Record) -> str:
    """The text of a record, on one line."""
    shown = {_KIND: type(record).__name__}
    for field in fields(record):
        value = getattr(record, field.name)
        if not _is_default(field, value):
            shown[field.name] = _shown(value)
    return _ENCODER.encode(shown)


def from_json(text: str | bytes) -> Record:
    """The record of a text. ValueError, KeyError or TypeError if it is none."""
    try:
        shown = json.loads(text)
        kind = _CLASSES[shown.pop(_KIND)]
        record: Record = kind(**{name: _read(name, value) for name, value in shown.items()})
    except (AttributeError, RecursionError) as error:
        raise ValueError(f"this is no record: {error}") from error
    return record


def _is_default(field: Field[Any], value: object) -> bool:
    return field.default is not MISSING and bool(value == field.default)


def _shown(value: Any) -> Any:
    if isinstance(value, tuple) and value and isinstance(value[0], LogDirInfo):
        return [[log_dir.path, log_dir.directory_id] for log_dir in value]
    return value


def _read(name: str, value: Any) -> Any:
    if name in _READERS:
        return _READERS[name](value)
    return tuple(value) if isinstance(value, list) else value


def _resource(value: list[Any]) -> ConfigResource:
    resource_type, name = value
    return ConfigResource(ResourceType(resource_type), name)


_READERS: Mapping[str, Callable[[Any], Any]] = {
    "topic_partition": lambda value: TopicPartition(*value),
    "log_dirs": lambda value: tuple(LogDirInfo(*log_dir) for log_dir in value),
    "leader_recovery": LeaderRecovery,
    "resource": _resource,
}
