"""What replication has to do at set times, and the queue that keeps such things in order of time."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import Generic, TypeVar

from kreassign.model import TopicPartition
from kreassign.twin.replication.copies import CopyKey


@dataclass(frozen=True, slots=True)
class StartCopy:
    """A follower's first fetch is due."""

    key: CopyKey
    serial: int


@dataclass(frozen=True, slots=True)
class Join:
    """A leader may ask the controller to add a follower to the ISR."""

    row: int
    broker: int


@dataclass(frozen=True, slots=True)
class ReviewLag:
    """A leader checks whether a member of the ISR is still behind."""

    key: CopyKey
    serial: int


@dataclass(frozen=True, slots=True)
class DeleteCopy:
    """The files of a removed copy are due to be deleted."""

    topic_partition: TopicPartition
    broker: int
    log_dir: int
    size: float


@dataclass(frozen=True, slots=True)
class ReachRetention:
    """A log is about to reach its retention."""

    row: int


Task = StartCopy | Join | ReviewLag | DeleteCopy | ReachRetention
"""A task is not cancelled: whoever executes it checks whether it still makes sense."""

Item = TypeVar("Item")


class EventQueue(Generic[Item]):
    """Items in order of time, those of the same millisecond in the order in which they were added."""

    def __init__(self) -> None:
        self._queue: list[tuple[int, int, Item]] = []
        self._order = 0

    @property
    def next_ms(self) -> int | None:
        """When the first item is due."""
        return self._queue[0][0] if self._queue else None

    def add(self, due_ms: int, item: Item) -> None:
        """Add an item."""
        heapq.heappush(self._queue, (due_ms, self._order, item))
        self._order += 1

    def take(self, now_ms: int) -> Item | None:
        """Remove and return the first item that is due; None if none is."""
        if not self._queue or self._queue[0][0] > now_ms:
            return None
        return heapq.heappop(self._queue)[2]
