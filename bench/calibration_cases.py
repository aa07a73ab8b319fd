"""Throttled plans that differ in what bounds them, on four brokers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kreassign.model import TopicPartition

MEGABYTE = 1_000_000
BROKERS = 4


@dataclass(frozen=True, slots=True)
class Partition:
    """One partition: where it is, where it goes, and how much is in it."""

    before: tuple[int, ...]
    target: tuple[int, ...]
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Case:
    """One topic and its plan. `writes_per_s` records of `record_bytes` bytes are written to it in turn meanwhile."""

    name: str
    throttle_bytes_per_s: int
    partitions: tuple[Partition, ...]
    writes_per_s: float = 0.0
    record_bytes: int = 10_000

    @property
    def topic(self) -> str:
        """The name of the topic."""
        return self.name.replace(" ", "-")

    @property
    def targets(self) -> Mapping[TopicPartition, tuple[int, ...]]:
        """The plan."""
        return {TopicPartition(self.topic, number): each.target for number, each in enumerate(self.partitions)}

    @property
    def moved_bytes(self) -> int:
        """What has to be copied, without what is written meanwhile."""
        return sum(each.size_bytes * len(set(each.target) - set(each.before)) for each in self.partitions)


def _each(count: int, megabytes: int, *moves: tuple[tuple[int, ...], tuple[int, ...]]) -> tuple[Partition, ...]:
    """Partitions of one size that take these moves in turn."""
    return tuple(Partition(*moves[number % len(moves)], megabytes * MEGABYTE) for number in range(count))


def _uneven() -> tuple[Partition, ...]:
    sizes = (4, 60, 12, 30, 8, 45, 20, 6, 36, 15, 24, 50)
    return tuple(
        Partition((number % BROKERS,), ((number + 1 + number // BROKERS) % BROKERS,), size * MEGABYTE)
        for number, size in enumerate(sizes)
    )


CASES: tuple[Case, ...] = (
    Case("few big", 5 * MEGABYTE, _each(3, 150, ((0,), (1,)), ((1,), (2,)), ((2,), (3,)))),
    Case("many small", 16 * MEGABYTE, _each(42, 12, ((0,), (3,)), ((1,), (3,)), ((2,), (3,)))),
    Case("uneven", 5 * MEGABYTE, _uneven()),
    Case("leader bound", 8 * MEGABYTE, _each(9, 30, ((0,), (1,)), ((0,), (2,)), ((0,), (3,)))),
    Case("follower bound", 8 * MEGABYTE, _each(9, 30, ((0,), (3,)), ((1,), (3,)), ((2,), (3,)))),
    Case("factor increase", 10 * MEGABYTE, _each(6, 40, ((0,), (0, 1, 2)), ((1,), (1, 2, 3)))),
    Case("live producers", 8 * MEGABYTE, _each(6, 40, ((0, 1), (2, 3)), ((1, 0), (1, 2))), writes_per_s=100),
    Case("higher rate", 20 * MEGABYTE, _each(8, 60, ((0,), (2,)), ((1,), (2,)), ((0,), (3,)), ((1,), (3,)))),
)
