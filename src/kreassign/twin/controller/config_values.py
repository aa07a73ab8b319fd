"""Whether configuration values are what their keys want, in Kafka's words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import assert_never

from kreassign.twin.controller.config_keys import (
    BROKER_KEYS,
    MAX_INT,
    MAX_LONG,
    PER_BROKER_FAMILIES,
    PER_BROKER_KEYS,
    PER_LISTENER_KEYS,
    STATIC_BROKER_KEYS,
    TOPIC_KEYS,
    Key,
    Limits,
    ReplicaPairs,
    ValueType,
    Words,
)

_MIN_LAG, _MAX_LAG = "min.compaction.lag.ms", "max.compaction.lag.ms"
REMOTE_STORAGE, DELETE_REMOTE = "remote.storage.enable", "remote.log.delete.on.disable"
_AS_IN_ALL = -2
_BOOLEANS = {"true": True, "false": False}
_WHOLE_NUMBER = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)[dDfF]?")
_PAIR = re.compile(r"([0-9]+:[0-9]+)?")

Parsed = bool | int | float | str | list[str]


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A value is not of its key's type; `reason` says what it should have been."""

    reason: str


def first_fault(values: Mapping[str, str], *, may_be_tiered: bool = False) -> str | None:
    """The first thing that is wrong with all the settings of a topic; None if nothing is."""
    for name in values:
        if name not in TOPIC_KEYS and name != "internal.segment.bytes":
            return f"Unknown topic config name: {name}"
    for key in TOPIC_KEYS.values():
        if key.name in values and (fault := value_fault(key, values[key.name])):
            return fault
    least, most = (_number(values, name) for name in (_MIN_LAG, _MAX_LAG))
    if is_tiered(values) and (fault := _tiering_fault(values, may_be_tiered=may_be_tiered)):
        return fault
    if least > most:
        return f"conflict topic config setting {_MIN_LAG} ({least}) > {_MAX_LAG} ({most})"
    return None


def is_tiered(values: Mapping[str, str]) -> bool:
    """Whether a topic with these settings has its older segments in remote storage."""
    return _is_on(values, REMOTE_STORAGE)


def _is_on(values: Mapping[str, str], name: str) -> bool:
    return name in values and values[name].strip().lower() == "true"


def _number(values: Mapping[str, str], name: str) -> int:
    """What a number of a topic with these settings is, if it is not set by its default."""
    return int(values.get(name, str(TOPIC_KEYS[name].default)))


def untiering_fault(before: Mapping[str, str], after: Mapping[str, str]) -> str | None:
    """What is wrong with a topic that shall be tiered no longer; None if its remote segments shall be deleted."""
    if not is_tiered(before) or is_tiered(after) or _is_on(after, DELETE_REMOTE):
        return None
    return (
        "It is invalid to disable remote storage without deleting remote data. "
        "If you want to keep the remote data and turn to read only, please set "
        "`remote.storage.enable=true,remote.log.copy.disable=true`. "
        "If you want to disable remote storage and delete all remote data, please set "
        "`remote.storage.enable=false,remote.log.delete.on.disable=true`."
    )


def _tiering_fault(values: Mapping[str, str], *, may_be_tiered: bool) -> str | None:
    if not may_be_tiered:
        return (
            "Tiered Storage functionality is disabled in the broker. "
            "Topic cannot be configured with remote log storage."
        )
    if values.get("cleanup.policy", "delete").strip() not in {"delete", ""}:
        return (
            "Remote log storage only supports topics with cleanup.policy=delete or cleanup.policy being an empty list."
        )
    return next(filter(None, (_local_fault(unit, values) for unit in ("bytes", "ms"))), None)


def _local_fault(unit: str, values: Mapping[str, str]) -> str | None:
    """What is wrong with how much brokers keep of a tiered topic themselves, as bytes or as time."""
    whole, local = f"retention.{unit}", f"local.retention.{unit}"
    most, kept = (_number(values, name) for name in (whole, local))
    if most < 0 or kept == _AS_IN_ALL or 0 <= kept <= most:
        return None
    beginning = f"Invalid value {kept} for configuration {local}: Value must not be"
    return (
        f"{beginning} -1 as {whole} value is set as {most}."
        if kept < 0
        else f"{beginning} more than {whole} property value: {most}"
    )


def first_broker_fault(values: Mapping[str, str], *, is_for_one: bool) -> str | None:
    """The first thing that is wrong with all the dynamic settings of one broker, or of all brokers together."""
    if static := STATIC_BROKER_KEYS & values.keys():
        return f"Cannot update these configs dynamically: {_listed(static)}"
    if unprefixed := PER_LISTENER_KEYS & values.keys():
        return (
            "These security configs can be dynamically updated only per-listener using the listener prefix: "
            f"{_listed(unprefixed)}"
        )
    for name, value in values.items():
        if name in BROKER_KEYS and (fault := value_fault(BROKER_KEYS[name], value)):
            return fault
    own = {name for name in values if name in PER_BROKER_KEYS or name.startswith(PER_BROKER_FAMILIES)}
    if own and not is_for_one:
        return f"Cannot update these configs at default cluster level, broker id must be specified: {_listed(own)}"
    return None


def value_fault(key: Key, value: str) -> str | None:
    """What is wrong with one value; None if nothing is."""
    parsed = parse(key, value)
    if isinstance(parsed, Unreadable):
        return f"Invalid value {value} for configuration {key.name}: {parsed.reason}"
    match key.check:
        case None:
            return None
        case Limits():
            assert isinstance(parsed, int | float)
            shown, reason_why = str(parsed), _beyond(key.check, parsed)
        case Words():
            shown, reason_why = _not_a_word(key.check, parsed)
        case ReplicaPairs():
            assert isinstance(parsed, list)
            shown, reason_why = f"[{', '.join(parsed)}]", _not_pairs(key.name, parsed)
        case _:
            assert_never(key.check)
    return f"Invalid value {shown} for configuration {key.name}: {reason_why}" if reason_why else None


def parse(key: Key, value: str) -> Parsed | Unreadable:
    """The value as Kafka reads it."""
    text = value.strip()
    match key.type:
        case ValueType.BOOLEAN:
            return _BOOLEANS.get(text.lower(), Unreadable("Expected value to be either true or false"))
        case ValueType.INT:
            return _whole_number(text, MAX_INT, "INT")
        case ValueType.LONG:
            return _whole_number(text, MAX_LONG, "LONG")
        case ValueType.DOUBLE:
            number = _NUMBER.fullmatch(text)
            return float(number[1]) if number else Unreadable("Not a number of type DOUBLE")
        case ValueType.LIST:
            return re.split(r"\s*,\s*", text) if text else []
        case _:
            return text


def _whole_number(text: str, most: int, kind: str) -> int | Unreadable:
    if _WHOLE_NUMBER.fullmatch(text) and -most - 1 <= int(text) <= most:
        return int(text)
    return Unreadable(f"Not a number of type {kind}")


def shown_value(key: Key, value: str) -> str:
    """A value as Kafka shows it again after reading it."""
    parsed = parse(key, value)
    if isinstance(parsed, Unreadable):
        return value
    if isinstance(parsed, list):
        return ",".join(parsed)
    return str(parsed).lower() if isinstance(parsed, bool) else str(parsed)


def _beyond(limits: Limits, number: float) -> str | None:
    if limits.instead is not None:
        assert limits.least is not None
        assert limits.greatest is not None
        if number == limits.instead or limits.least <= number <= limits.greatest:
            return None
        return f"Value must be between {limits.least} and {limits.greatest} or equal to {limits.instead}"
    if limits.least is not None and number < limits.least:
        return f"Value must be at least {limits.least}"
    if limits.greatest is not None and number > limits.greatest:
        return f"Value must be no more than {limits.greatest}"
    return None


def _not_a_word(allowed: Words, parsed: Parsed) -> tuple[str, str | None]:
    given = parsed if isinstance(parsed, list) else [str(parsed)]
    strange = next((word for word in given if word not in allowed.words), None)
    return str(strange), None if strange is None else f"String must be one of: {', '.join(allowed.words)}"


def _not_pairs(name: str, items: list[str]) -> str | None:
    trimmed = [item.strip() for item in items]
    if "".join(trimmed) == "*" or all(map(_PAIR.fullmatch, trimmed)):
        return None
    return (
        f"{name} must be the literal '*' or a list of replicas in the following format: "
        "[partitionId]:[brokerId],[partitionId]:[brokerId],..."
    )


def _listed(names: Iterable[str]) -> str:
    return f"[{', '.join(sorted(names))}]"
