"""Configuration keys of topics and brokers, and validation of their values, in Kafka's words.

Limits are in `validated_keys.toml`, from Kafka 4.4.0; of brokers, it has the keys whose values are validated. The twin
stores other keys that can be changed while a broker runs (`ssl.`, `sasl.`, `remote.` and more) as they are. All keys of
a real broker, with their documentation, are in `documented_configs.json`; `python scripts/release_data.py` writes it.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from typing import Any, assert_never

from kreassign.model.text import packaged_text

# Keys with their types, limits and defaults.

MAX_INT = 2**31 - 1
MAX_LONG = 2**63 - 1


class ValueType(IntEnum):
    """The type of a value, with Kafka's number for it (DescribeConfigs)."""

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


@dataclass(frozen=True, slots=True)
class Limits:
    """The least and the greatest number allowed, None for no limit; `instead` is one further number allowed."""

    least: int | None = None
    greatest: int | None = None
    instead: int | None = None


@dataclass(frozen=True, slots=True)
class Words:
    """An enumeration: the only words allowed."""

    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ReplicaPairs:
    """Pairs of partition and broker, or `*` (KIP-73)."""


@dataclass(frozen=True, slots=True)
class Key:
    """One configuration key. `default` is None if it has none.

    `server_keys` are its names in brokers' settings, the most precise first. `fallback` is a broker key, with its
    default, that replaces `default` in responses. `is_quota` marks keys that brokers do not list until they are set.
    """

    name: str
    type: ValueType
    default: str | None = None
    check: Limits | Words | ReplicaPairs | None = None
    server_keys: tuple[str, ...] = ()
    fallback: tuple[str, str] | None = None
    is_quota: bool = False


@dataclass(frozen=True, slots=True)
class DocumentedKey:
    """A key as a broker documents it. `default` is None if it has none, or if it is secret."""

    type: ValueType
    default: str | None
    is_read_only: bool
    documentation: str


@cache
def documented_keys(kind: str) -> dict[str, DocumentedKey]:
    """All keys of "brokers" or "topics", by name."""
    keys = json.loads(packaged_text(__name__, "documented_configs.json"))[kind]
    return {name: DocumentedKey(**{**key, "type": ValueType(key["type"])}) for name, key in keys.items()}


def _checked_key(name: str, kind: str, row: Mapping[str, Any]) -> Key:
    """A key of "topics" or "brokers" as a row of `validated_keys.toml` and Kafka's documentation describe it."""
    documented = documented_keys(kind).get(name)
    check: Limits | Words | ReplicaPairs | None = None
    if "least" in row:
        check = Limits(row["least"], row.get("greatest"), row.get("instead"))
    elif "words" in row:
        check = Words(tuple(row["words"]))
    elif "replica_pairs" in row:
        check = ReplicaPairs()
    fallback = row.get("fallback")
    return Key(
        name,
        documented.type if documented else ValueType.LONG,
        row.get("default", documented.default if documented else None),
        check,
        tuple(row.get("server_keys", ())),
        (fallback, str(documented_keys("brokers")[fallback].default)) if fallback else None,
        is_quota=documented is None,
    )


_TABLE = tomllib.loads(packaged_text(__name__, "validated_keys.toml"))
TOPIC_KEYS: dict[str, Key] = {name: _checked_key(name, "topics", row) for name, row in _TABLE["topics"].items()}
"""Keys of topics, in the order in which Kafka validates their values."""
BROKER_KEYS: dict[str, Key] = {
    # Defaults of topics, under the name that brokers have for them; a key with a fallback has no limits there.
    key.server_keys[0]: Key(key.server_keys[0], key.type, fallback=key.fallback)
    if key.fallback
    else Key(key.server_keys[0], key.type, key.default, key.check)
    for key in TOPIC_KEYS.values()
    if key.server_keys
} | {name: _checked_key(name, "brokers", row) for name, row in _TABLE["brokers"].items()}
"""Keys of brokers that can be changed while they run."""
PER_BROKER_FAMILIES = ("ssl.", "sasl.")
PER_BROKER_KEYS = frozenset(_TABLE["per_broker"])
"""Keys that must be set for each broker separately."""
PER_LISTENER_KEYS = frozenset(_TABLE["per_listener"])
"""Keys that apply to one listener, and must name it."""
THREAD_COUNTS = frozenset(_TABLE["thread_counts"])
"""Keys of brokers that can be halved or doubled at most in one change."""


@cache
def static_broker_keys() -> frozenset[str]:
    """Keys of a broker's settings file that cannot be changed while it runs: those that it reports as read-only."""
    read_only = {name for name, key in documented_keys("brokers").items() if key.is_read_only}
    return frozenset(read_only | {"unclean.leader.election.interval.ms"})  # brokers do not report it


# Validate and parse values.

_MIN_LAG, _MAX_LAG = "min.compaction.lag.ms", "max.compaction.lag.ms"
REMOTE_STORAGE, DELETE_REMOTE = "remote.storage.enable", "remote.log.delete.on.disable"
_AS_IN_ALL = -2
_BOOLEANS = {"true": True, "false": False}
_WHOLE_NUMBER = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)[dDfF]?")
_PAIR = re.compile(r"([0-9]+:[0-9]+)?")

Parsed = bool | int | float | str | list[str]


@dataclass(frozen=True, slots=True)
class UnreadableValue:
    """A value that is not of its key's type; `reason` names the expected type."""

    reason: str


def first_fault(values: Mapping[str, str], *, may_be_tiered: bool = False) -> str | None:
    """The first error in all settings of a topic; None if there is none."""
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
    """True if a topic with these settings has its older segments in remote storage."""
    return _is_on(values, REMOTE_STORAGE)


def _is_on(values: Mapping[str, str], name: str) -> bool:
    return name in values and values[name].strip().lower() == "true"


def _number(values: Mapping[str, str], name: str) -> int:
    """The number that a topic with these settings has for a key; the default if it is not set."""
    return int(values.get(name, str(TOPIC_KEYS[name].default)))


def untiering_fault(before: Mapping[str, str], after: Mapping[str, str]) -> str | None:
    """The error in turning tiering off for a topic; None if its remote segments are to be deleted."""
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
    """The error in the local retention of a tiered topic, in bytes or in time."""
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
    """The first error in all dynamic settings of one broker, or of all brokers together; None if there is none."""
    if static := static_broker_keys() & values.keys():
        return f"Cannot update these configs dynamically: {_listed_words(static)}"
    if unprefixed := PER_LISTENER_KEYS & values.keys():
        return (
            "These security configs can be dynamically updated only per-listener using the listener prefix: "
            f"{_listed_words(unprefixed)}"
        )
    for name, value in values.items():
        if name in BROKER_KEYS and (fault := value_fault(BROKER_KEYS[name], value)):
            return fault
    own = {name for name in values if name in PER_BROKER_KEYS or name.startswith(PER_BROKER_FAMILIES)}
    if own and not is_for_one:
        return (
            f"Cannot update these configs at default cluster level, broker id must be specified: {_listed_words(own)}"
        )
    return None


def value_fault(key: Key, value: str) -> str | None:
    """The error in one value; None if it is valid."""
    parsed = parse_value(key, value)
    if isinstance(parsed, UnreadableValue):
        return f"Invalid value {value} for configuration {key.name}: {parsed.reason}"
    match key.check:
        case None:
            return None
        case Limits():
            assert isinstance(parsed, int | float)
            shown, reason_why = str(parsed), _beyond_limits(key.check, parsed)
        case Words():
            shown, reason_why = _not_a_word(key.check, parsed)
        case ReplicaPairs():
            assert isinstance(parsed, list)
            shown, reason_why = f"[{', '.join(parsed)}]", _not_pairs(key.name, parsed)
        case _:
            assert_never(key.check)
    return f"Invalid value {shown} for configuration {key.name}: {reason_why}" if reason_why else None


def parse_value(key: Key, value: str) -> Parsed | UnreadableValue:
    """Parse a value as Kafka does."""
    text = value.strip()
    match key.type:
        case ValueType.BOOLEAN:
            return _BOOLEANS.get(text.lower(), UnreadableValue("Expected value to be either true or false"))
        case ValueType.INT:
            return _whole_number(text, MAX_INT, "INT")
        case ValueType.LONG:
            return _whole_number(text, MAX_LONG, "LONG")
        case ValueType.DOUBLE:
            number = _NUMBER.fullmatch(text)
            return float(number[1]) if number else UnreadableValue("Not a number of type DOUBLE")
        case ValueType.LIST:
            return re.split(r"\s*,\s*", text) if text else []
        case _:
            return text


def _whole_number(text: str, most: int, kind: str) -> int | UnreadableValue:
    if _WHOLE_NUMBER.fullmatch(text) and -most - 1 <= int(text) <= most:
        return int(text)
    return UnreadableValue(f"Not a number of type {kind}")


def shown_value(key: Key, value: str) -> str:
    """A value as Kafka shows it after parsing it."""
    parsed = parse_value(key, value)
    if isinstance(parsed, UnreadableValue):
        return value
    if isinstance(parsed, list):
        return ",".join(parsed)
    return str(parsed).lower() if isinstance(parsed, bool) else str(parsed)


def _beyond_limits(limits: Limits, number: float) -> str | None:
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


def _listed_words(names: Iterable[str]) -> str:
    return f"[{', '.join(sorted(names))}]"
