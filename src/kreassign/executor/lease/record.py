"""What every throttle of the cluster was before anyone's run, as texts that fit beside committed offsets. Pure.

Only settings that were set are in it: what it does not name was not set.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from kreassign.errors import InputError
from kreassign.executor.lease.pieces import cut, whole
from kreassign.executor.throttle.ledger import ConfigKey, ConfigOverride, ConfigValue
from kreassign.model import ConfigResource, ResourceType
from kreassign.model.printable import shortened


@dataclass(frozen=True, slots=True)
class OriginalValues:
    """What was set on the topics and brokers of `scope` before run `run_id`, which began at `at_ms`, or any before it.

    Without a scope the record is of all topics and brokers.
    """

    run_id: str
    at_ms: int
    values: tuple[ConfigValue, ...] = ()
    scope: frozenset[ConfigResource] | None = None

    def known(self, keys: Iterable[ConfigKey]) -> Mapping[ConfigKey, str | None]:
        """The values of those of these settings that the record is about; None where nothing was set."""
        values = {one.key: one.value for one in self.values}
        return {key: values.get(key) for key in keys if self.covers(key.resource)}

    def covers(self, resource: ConfigResource) -> bool:
        """Whether the record is about this topic or broker."""
        return self.scope is None or resource in self.scope

    def extended(self, present: Iterable[ConfigValue], scope: frozenset[ConfigResource]) -> OriginalValues:
        """The same for more topics and brokers, of which no run has changed anything yet."""
        if self.scope is None:
            return self
        new = (one for one in present if one.key.resource in scope and not self.covers(one.key.resource))
        return replace(self, values=(*self.values, *_set(new)), scope=self.scope | scope)


def present_values(
    run_id: str, at_ms: int, present: Iterable[ConfigValue], scope: frozenset[ConfigResource]
) -> OriginalValues:
    """A record of what is set now on these topics and brokers."""
    return OriginalValues(run_id, at_ms, _set(one for one in present if one.key.resource in scope), scope)


def _set(values: Iterable[ConfigValue]) -> tuple[ConfigValue, ...]:
    return tuple(one for one in values if one.value is not None)


def left_settings(record: OriginalValues, present: Iterable[ConfigValue]) -> tuple[ConfigOverride, ...]:
    """Which of the settings that a record is about are not as they were."""
    values = {one.key: one.value for one in present}
    known = record.known(values)
    return tuple(ConfigOverride(key, before, values[key]) for key, before in known.items() if values[key] != before)


def pieces(record: OriginalValues) -> tuple[str, ...]:
    """A record as texts, one per offset."""
    values = [[int(one.key.resource.type), one.key.resource.name, one.key.name, one.value] for one in record.values]
    scope = None if record.scope is None else sorted([int(one.type), one.name] for one in record.scope)
    return cut(json.dumps([record.run_id, record.at_ms, values, scope], separators=(",", ":")))


def joined(found: Mapping[int, str]) -> OriginalValues | None:
    """The record of these texts by partition; None if there is none. Raises ValueError if it is not whole."""
    text = whole(found)
    if text is None:
        return None
    try:
        run_id, at_ms, values, scope = json.loads(text)
        resources = None if scope is None else frozenset(_resource(*one) for one in scope)
        return OriginalValues(_text(run_id), int(at_ms), tuple(_value(*one) for one in values), resources)
    except (ValueError, TypeError, ArithmeticError, RecursionError, InputError) as error:
        raise ValueError(f"it holds what this version does not write: {error}") from error


def _resource(kind: int, name: str) -> ConfigResource:
    return ConfigResource(ResourceType(kind), _text(name))


def _value(kind: int, resource: str, name: str, value: str) -> ConfigValue:
    return ConfigValue(ConfigKey(_resource(kind, resource), _text(name)), _text(value))


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{shortened(repr(value))} is no text")
    return value
