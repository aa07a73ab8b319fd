"""The copies in a log directory, packed: a broker may have thousands, and a cluster a million."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import Self, overload

from kreassign.model.partition import TopicPartition

# What arrays call numbers with a sign, of so many bits.
_INT8, _INT32, _INT64 = "b", "i", "q"


@dataclass(frozen=True, slots=True)
class LogDirReplica:
    """A copy of a partition in one log directory.

    `size_bytes` is what its segments take. `is_future` marks the copy that a move between directories is
    building; only for such a copy does `offset_lag` mean anything (records behind the current copy).
    """

    topic_partition: TopicPartition
    size_bytes: int
    offset_lag: int
    is_future: bool


class LogDirReplicas(Sequence[LogDirReplica]):
    """Copies by topic, in columns; each one is made when it is looked at. Equal to any sequence of the same copies.

    The copies of `topics[i]` are those from `ends[i]` to `ends[i + 1]` of `partitions`, `sizes_bytes`, `lags` and
    `is_future`.
    """

    __slots__ = ("ends", "is_future", "lags", "partitions", "sizes_bytes", "topics")

    def __init__(self) -> None:
        self.topics: list[str] = []
        self.ends = array(_INT32, [0])
        self.partitions = array(_INT32)
        self.sizes_bytes = array(_INT64)
        self.lags = array(_INT64)
        self.is_future = array(_INT8)

    @classmethod
    def of(cls, copies: Iterable[LogDirReplica]) -> Self:
        """Copies one by one, packed."""
        found = cls()
        for copy in copies:
            topic, partition = copy.topic_partition
            found.add(topic, [(partition, copy.size_bytes, copy.offset_lag, copy.is_future)])
        return found

    def add(self, topic: str, copies: Iterable[tuple[int, int, int, bool]]) -> None:
        """Copies of a topic: partition, size in bytes, lag, and whether it is a future one."""
        for partition, size_bytes, lag, is_future in copies:
            self.partitions.append(partition)
            self.sizes_bytes.append(size_bytes)
            self.lags.append(lag)
            self.is_future.append(is_future)
        if self.topics and self.topics[-1] == topic:
            self.ends[-1] = len(self.partitions)
        else:
            self.topics.append(topic)
            self.ends.append(len(self.partitions))

    def __len__(self) -> int:
        return len(self.partitions)

    def __iter__(self) -> Iterator[LogDirReplica]:
        rows = zip(self.partitions, self.sizes_bytes, self.lags, self.is_future, strict=True)
        for topic, (start, end) in zip(self.topics, pairwise(self.ends), strict=True):
            for partition, size_bytes, lag, is_future in islice(rows, end - start):
                yield LogDirReplica(TopicPartition(topic, partition), size_bytes, lag, bool(is_future))

    @overload
    def __getitem__(self, place: int) -> LogDirReplica: ...

    @overload
    def __getitem__(self, place: slice) -> tuple[LogDirReplica, ...]: ...

    def __getitem__(self, place: int | slice) -> LogDirReplica | tuple[LogDirReplica, ...]:
        return tuple(self)[place]

    def __eq__(self, other: object) -> bool:
        return tuple(self) == tuple(other) if isinstance(other, LogDirReplicas | tuple) else NotImplemented

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return f"LogDirReplicas.of({tuple(self)!r})"
