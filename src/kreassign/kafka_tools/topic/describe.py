"""The lines of `--describe`."""

from __future__ import annotations

import base64
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kreassign.model import NO_LEADER, ConfigEntry, OngoingReassignment, Partition, Topic
from kreassign.model.config import ConfigSource
from kreassign.model.java_hash import string_hash

_UNKNOWN = "N/A"
_MIN_ISR = "min.insync.replicas"


@dataclass(frozen=True, slots=True)
class Description:
    """A partition as `--describe` sees it: with its move, if it is on one, and the configuration of its topic."""

    partition: Partition
    move: OngoingReassignment | None
    min_isr: int

    @property
    def replication_factor(self) -> int:
        """The replication factor; replicas that are being added do not count yet."""
        move = self.move
        if move is None or not {*move.adding, *move.removing}.intersection(self.partition.replicas):
            return len(self.partition.replicas)  # The move may have ended between two questions.
        return len(move.replicas) - len(move.adding)

    @property
    def has_leader(self) -> bool:
        """Whether it has a leader."""
        return self.partition.leader != NO_LEADER

    @property
    def is_under_replicated(self) -> bool:
        """Whether fewer replicas are in sync than its replication factor."""
        return len(self.partition.isr) < self.replication_factor

    @property
    def is_under_min_isr(self) -> bool:
        """Whether it rejects records of producers with acks=all."""
        return not self.has_leader or len(self.partition.isr) < self.min_isr

    @property
    def is_at_min_isr(self) -> bool:
        """Whether it would be under the minimum with one replica less."""
        return len(self.partition.isr) == self.min_isr

    def is_unavailable(self, live_brokers: frozenset[int]) -> bool:
        """Whether it has no live leader."""
        return not self.has_leader or self.partition.leader not in live_brokers


def min_isr(config: Mapping[str, ConfigEntry]) -> int:
    """The least replicas in sync that a topic needs."""
    entry = config.get(_MIN_ISR)
    return int(entry.value) if entry is not None and entry.value is not None else 1


def overrides(config: Mapping[str, ConfigEntry]) -> list[str]:
    """The settings of a topic that are not Kafka's defaults, wherever they were made, in the order of Kafka's tool."""
    names = sorted(config, key=lambda name: _bucket(name, len(config)))
    return [f"{name}={config[name].value or ''}" for name in names if config[name].source is not ConfigSource.DEFAULT]


def _bucket(name: str, count: int) -> int:
    """Where a Java `HashMap` of so many names keeps this one: that is the order in which Kafka's tool prints them."""
    size = 16
    while count > size * 3 // 4:
        size *= 2
    value = string_hash(name) % 2**32
    return (value ^ value >> 16) % size


def topic_line(topic: Topic, replication_factor: int, settings: Iterable[str]) -> str:
    """The line above the partitions of a topic."""
    cells = [f"Topic: {topic.name}"]
    if topic.topic_id is not None:
        cells.append(f"TopicId: {short_id(topic.topic_id)}")
    cells += [
        f"PartitionCount: {len(topic.partitions)}",
        f"ReplicationFactor: {replication_factor}",
        f"Configs: {','.join(settings)}",
    ]
    return "\t".join(cells)


def partition_line(description: Description) -> str:
    """The line of one partition."""
    found, move = description.partition, description.move
    cells = [
        "",
        f"Topic: {found.topic_partition.topic}",
        f"Partition: {found.topic_partition.partition}",
        f"Leader: {found.leader if description.has_leader else 'none'}",
        f"Replicas: {_joined(found.replicas)}",
        f"Isr: {_joined(found.isr)}",
    ]
    if move is not None:
        cells += [f"Adding Replicas: {_joined(move.adding)}", f"Removing Replicas: {_joined(move.removing)}"]
    cells += [
        f"Elr: {_optional(found.eligible_leaders)}",
        f"LastKnownElr: {_optional(found.last_known_eligible_leaders)}",
    ]
    return "\t".join(cells)


def _optional(brokers: tuple[int, ...] | None) -> str:
    return _UNKNOWN if brokers is None else _joined(brokers)


def _joined(brokers: Iterable[int]) -> str:
    return ",".join(map(str, brokers))


def short_id(topic_id: str) -> str:
    """A topic id as Kafka's tools write it: 22 characters instead of 36."""
    return base64.urlsafe_b64encode(uuid.UUID(topic_id).bytes).decode().rstrip("=")
