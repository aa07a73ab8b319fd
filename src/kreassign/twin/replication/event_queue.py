"""What is due when: a queue of things to do at set times, first come first served within a millisecond."""

from __future__ import annotations

import heapq
from typing import Generic, TypeVar

Task = TypeVar("Task")


class EventQueue(Generic[Task]):
    """Tasks in order of time. A task that has become pointless stays; whoever takes it looks whether it still holds."""

    def __init__(self) -> None:
        self._queue: list[tuple[int, int, Task]] = []
        self._order = 0

    @property
    def next_ms(self) -> int | None:
        """When the first task is due."""
        return self._queue[0][0] if self._queue else None

    def add(self, due_ms: int, task: Task) -> None:
        """Remember a task."""
        heapq.heappush(self._queue, (due_ms, self._order, task))
        self._order += 1

    def take(self, now_ms: int) -> Task | None:
        """The first task that is due, which is forgotten; None if none is."""
        if not self._queue or self._queue[0][0] > now_ms:
            return None
        return heapq.heappop(self._queue)[2]
