"""Starting a plan in steps (KIP-1335). Pure: what is done comes in, what to submit next comes out.

Batches start all at once and wait for all of them; incrementally, whatever is done makes room for the next. Both go
through the plan by topic and partition, whatever its order in the file.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import Enum, auto

from kreassign.model import OngoingReassignment, TopicPartition
from kreassign.model.plan import partition_order


@dataclass(frozen=True, slots=True)
class Pace:
    """How a plan is started. A batch size of 0 submits it in one request, as Kafka's tool always did.

    `wait_timeout_ms` bounds the wait for room for the next step; None waits for ever, as KIP-1335 does.
    """

    batch_size: int = 0
    is_incremental: bool = False
    poll_interval_ms: int = 1_000
    wait_timeout_ms: int | None = None
    warns_about_others: bool = False


class Steps:
    """What of a plan waits, what is in flight, and what to submit next."""

    def __init__(self, partitions: Iterable[TopicPartition], pace: Pace) -> None:
        self._waiting = deque(sorted(partitions, key=partition_order))
        self._pace = pace
        self._in_flight: set[TopicPartition] = set()

    @property
    def waiting(self) -> tuple[TopicPartition, ...]:
        """What has not been submitted yet, in order."""
        return tuple(self._waiting)

    @property
    def in_flight(self) -> tuple[TopicPartition, ...]:
        """What was submitted and is not known to be done, in order."""
        return tuple(sorted(self._in_flight, key=partition_order))

    def next(self, done: AbstractSet[TopicPartition] = frozenset()) -> tuple[TopicPartition, ...]:
        """What to submit now that these are done; nothing if there is no room yet, or nothing left."""
        self._in_flight -= done
        step = tuple(self._waiting.popleft() for _ in range(min(self._room(), len(self._waiting))))
        self._in_flight.update(step)
        return step

    def _room(self) -> int:
        if self._pace.batch_size == 0:
            return len(self._waiting)
        if self._pace.is_incremental:
            return self._pace.batch_size - len(self._in_flight)
        return 0 if self._in_flight else self._pace.batch_size


class State(Enum):
    """How a submitted partition stands."""

    MOVING = auto()
    DONE = auto()
    ELSEWHERE = auto()


def states(
    targets: Mapping[TopicPartition, tuple[int, ...]],
    ongoing: Mapping[TopicPartition, OngoingReassignment],
    current: Mapping[TopicPartition, tuple[int, ...]],
) -> dict[TopicPartition, State]:
    """How partitions stand: done is what is not being reassigned any more and has exactly its target."""
    return {
        partition: State.MOVING
        if partition in ongoing
        else State.DONE
        if current.get(partition) == target
        else State.ELSEWHERE
        for partition, target in targets.items()
    }
