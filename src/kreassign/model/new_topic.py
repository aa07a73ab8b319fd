"""What is requested when a topic is created or gets more partitions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kreassign.errors import InputError


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic to create: counts that the cluster places, or `assignments` with the replicas of each partition."""

    name: str
    partition_count: int = -1
    replication_factor: int = -1
    assignments: tuple[tuple[int, ...], ...] = ()
    configs: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.assignments and (self.partition_count, self.replication_factor) != (-1, -1):
            raise InputError(f"topic {self.name}: give either counts or assignments, not both")


@dataclass(frozen=True, slots=True)
class NewPartitions:
    """How many partitions a topic shall have in all, and optionally where the new ones go."""

    total_count: int
    assignments: tuple[tuple[int, ...], ...] = ()
