"""Starting a plan in batches (KIP-1335). Pure: what is complete comes in, what to submit next comes out.

Either a batch starts at once and all of it must be complete before the next, or incrementally: each partition that is
complete lets the next one start. Both go through the plan by topic and partition, whatever the order in its file.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import Enum, auto

from kreassign.model import Partition, TopicPartition
from kreassign.model.plan import partition_order


@dataclass(frozen=True, slots=True)
class BatchOptions:
    """How a plan is divided. A batch size of 0 submits it in one request, as Kafka's tool always did.

    `wait_timeout_ms` limits the wait for each batch; None waits for ever, as KIP-1335 does. With `requires_isr` a
    partition is complete only once all of its target is in sync.
    """

    batch_size: int = 0
    is_incremental: bool = False
    poll_interval_ms: int = 1_000
    wait_timeout_ms: int | None = None
    warns_about_others: bool = False
    requires_isr: bool = False


ALL_AT_ONCE = BatchOptions()


class BatchQueue:
    """What of a plan waits, what is in flight, and what to submit next."""

    def __init__(self, partitions: Iterable[TopicPartition], options: BatchOptions) -> None:
        self._waiting = deque(sorted(partitions, key=partition_order))
        self._options = options
        self._in_flight: set[TopicPartition] = set()

    @property
    def waiting(self) -> tuple[TopicPartition, ...]:
        """What has not been submitted yet, in order."""
        return tuple(self._waiting)

    @property
    def in_flight(self) -> tuple[TopicPartition, ...]:
        """What was submitted and is not known to be complete, in order."""
        return tuple(sorted(self._in_flight, key=partition_order))

    def next_batch(self, complete: AbstractSet[TopicPartition] = frozenset()) -> tuple[TopicPartition, ...]:
        """What to submit now that these are complete; nothing if it must wait, or if nothing is left."""
        self._in_flight -= complete
        batch = tuple(self._waiting.popleft() for _ in range(min(self._free_slots(), len(self._waiting))))
        self._in_flight.update(batch)
        return batch

    def _free_slots(self) -> int:
        if self._options.batch_size == 0:
            return len(self._waiting)
        if self._options.is_incremental:
            return self._options.batch_size - len(self._in_flight)
        return 0 if self._in_flight else self._options.batch_size


class MoveState(Enum):
    """What has become of a submitted partition."""

    MOVING = auto()
    COMPLETE = auto()
    LAGGING = auto()
    """It has its target, but not all of it is in sync: Kafka 4.3 ends a move past replicas that were there before."""
    ELSEWHERE = auto()


def move_states(
    targets: Mapping[TopicPartition, tuple[int, ...]],
    ongoing: Collection[TopicPartition],
    current: Mapping[TopicPartition, Partition],
) -> dict[TopicPartition, MoveState]:
    """The state of each target: complete is a partition that is not being reassigned and has exactly its target."""
    return {
        partition: MoveState.MOVING if partition in ongoing else _arrived(current.get(partition), target)
        for partition, target in targets.items()
    }


def _arrived(found: Partition | None, target: tuple[int, ...]) -> MoveState:
    if found is None or found.replicas != target:
        return MoveState.ELSEWHERE
    return MoveState.LAGGING if out_of_sync(found) else MoveState.COMPLETE


def out_of_sync(partition: Partition) -> tuple[int, ...]:
    """The replicas that are not in the ISR, in their order."""
    return tuple(broker for broker in partition.replicas if broker not in partition.isr)
