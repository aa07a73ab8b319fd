"""Dynamic configuration of topics and brokers."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple


class ResourceType(IntEnum):
    """What a configuration belongs to, with Kafka's number for it."""

    TOPIC = 2
    BROKER = 4


class ConfigResource(NamedTuple):
    """The owner of configuration: a topic, or a broker by its id in digits; no name stands for all brokers."""

    type: ResourceType
    name: str

    @classmethod
    def topic(cls, name: str) -> ConfigResource:
        """The configuration of a topic."""
        return cls(ResourceType.TOPIC, name)

    @classmethod
    def broker(cls, broker_id: int) -> ConfigResource:
        """The configuration of one broker."""
        return cls(ResourceType.BROKER, str(broker_id))

    @classmethod
    def all_brokers(cls) -> ConfigResource:
        """What holds for every broker that has no value of its own (`--entity-default` of `kafka-configs`)."""
        return cls(ResourceType.BROKER, "")

    def __str__(self) -> str:
        return "all brokers" if self == self.all_brokers() else f"{self.type.name.lower()} {self.name}"


class ConfigSource(IntEnum):
    """Where a value comes from, with Kafka's number for it (DescribeConfigs)."""

    UNKNOWN = 0
    DYNAMIC_TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    DYNAMIC_BROKER_LOGGER = 6
    CLIENT_METRICS = 7
    GROUP = 8


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    """The value of one key. `value` is None for secrets and for keys without a value."""

    name: str
    value: str | None
    source: ConfigSource
    is_sensitive: bool = False
    is_read_only: bool = False


class ConfigOperation(IntEnum):
    """What to do with a key, with Kafka's number for it (KIP-339)."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


@dataclass(frozen=True, slots=True)
class ConfigChange:
    """One step of an incremental change; only DELETE has no value."""

    operation: ConfigOperation
    name: str
    value: str | None = None

    @classmethod
    def set(cls, name: str, value: str) -> ConfigChange:
        """Give the key this value."""
        return cls(ConfigOperation.SET, name, value)

    @classmethod
    def delete(cls, name: str) -> ConfigChange:
        """Take the key back to its default; no error if it has none of its own."""
        return cls(ConfigOperation.DELETE, name)

    @classmethod
    def append(cls, name: str, value: str) -> ConfigChange:
        """Add to a list."""
        return cls(ConfigOperation.APPEND, name, value)

    @classmethod
    def subtract(cls, name: str, value: str) -> ConfigChange:
        """Take out of a list."""
        return cls(ConfigOperation.SUBTRACT, name, value)
