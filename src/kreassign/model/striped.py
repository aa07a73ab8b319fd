"""The striped placer: Kafka's own placement of new partitions, since 2.8 in KRaft mode.

Kafka's `--generate` has used it since 4.1. Racks take turns, and so do the brokers within a rack, each starting at a
random position that moves on by one with every partition. Loads and present assignments are not considered.
"""

from __future__ import annotations

from collections.abc import Iterable, MutableSequence
from dataclasses import dataclass
from typing import Any, Protocol

from kreassign.errors import Infeasible, InvariantBroken

NOBODY = -1


class RandomSource(Protocol):
    """A source of random numbers, such as `random.Random`."""

    def randrange(self, stop: int, /) -> int:
        """A number from 0 to `stop` - 1."""
        ...


@dataclass(frozen=True, slots=True)
class UsableBroker:
    """A broker that may hold replicas. A fenced broker is used only when no other is left, and never leads."""

    id: int
    rack: str | None = None
    is_fenced: bool = False


def place(
    brokers: Iterable[UsableBroker], partition_count: int, replication_factor: int, random: RandomSource
) -> tuple[tuple[int, ...], ...]:
    """The replica lists of `partition_count` partitions of one topic.

    Raises `Infeasible`, in Kafka's words, if these brokers cannot provide the replication factor.
    """
    usable = tuple(brokers)
    _check(usable, replication_factor)
    stripes = _Stripes(usable, random)
    return tuple(stripes.next_partition(replication_factor) for _ in range(partition_count))


def _check(brokers: tuple[UsableBroker, ...], replication_factor: int) -> None:
    """Raise `Infeasible` unless so many replicas can be placed."""
    if replication_factor <= 0:
        raise _impossible(f"Invalid replication factor {replication_factor}: the replication factor must be positive.")
    if all(broker.is_fenced for broker in brokers):
        raise _impossible("All brokers are currently fenced, or have all their log directories cordoned.")
    if replication_factor > len(brokers):
        raise _impossible(
            f"The target replication factor of {replication_factor} cannot be reached because only {len(brokers)} "
            "broker(s) are registered or some brokers have all their log directories cordoned."
        )


class BrokerRing:
    """Brokers that take turns: each epoch goes round once, starting one broker later than the epoch before."""

    def __init__(self, brokers: Iterable[int], start: int = 0) -> None:
        self.brokers = list(brokers)
        self._start = start
        self._taken = 0
        self._epoch = 0

    def next(self, epoch: int) -> int:
        """The next broker of this epoch, or `NOBODY` after a full round."""
        if not self.brokers:
            return NOBODY
        if epoch != self._epoch:
            self._epoch = epoch
            self._taken = 0
            self._start = (self._start + 1) % len(self.brokers)
        if self._taken == len(self.brokers):
            return NOBODY
        self._taken += 1
        return self.brokers[(self._start + self._taken - 1) % len(self.brokers)]


@dataclass(frozen=True, slots=True)
class _Rack:
    fenced: BrokerRing
    unfenced: BrokerRing

    def next(self, epoch: int) -> int:
        broker = self.unfenced.next(epoch)
        return broker if broker != NOBODY else self.fenced.next(epoch)


class _Stripes:
    """The state of the placement of one topic."""

    def __init__(self, brokers: tuple[UsableBroker, ...], random: RandomSource) -> None:
        self._random = random
        self._leader_count = sum(not broker.is_fenced for broker in brokers)
        names = sorted({broker.rack for broker in brokers}, key=lambda name: (name is not None, str(name)))
        # Draw random numbers in a fixed order (racks by name, fenced brokers first): a seed gives one placement.
        self._racks = [self._rack([broker for broker in brokers if broker.rack == name]) for name in names]
        self._order = list(self._racks)
        self._first_rack = random.randrange(len(self._racks))
        self._epoch = 0

    def _rack(self, brokers: list[UsableBroker]) -> _Rack:
        fenced, unfenced = (sorted(one.id for one in brokers if one.is_fenced == wanted) for wanted in (True, False))
        return _Rack(self._ring(fenced), self._ring(unfenced))

    def _ring(self, brokers: list[int]) -> BrokerRing:
        return BrokerRing(brokers, self._random.randrange(len(brokers)) if brokers else 0)

    def next_partition(self, replication_factor: int) -> tuple[int, ...]:
        """The replicas of the next partition, leader first."""
        if self._epoch == self._leader_count > 1:
            self._shuffle()
            self._epoch = 0
        self._first_rack %= len(self._order)
        leader_rack, leader = self._leader()
        replicas = [leader]
        # The first round skips the rack of the leader.
        rack, passed_over = self._first_rack, False
        while len(replicas) < replication_factor:
            if rack == leader_rack and not passed_over:
                passed_over = True
            elif (broker := self._order[rack].next(self._epoch)) != NOBODY:
                replicas.append(broker)
            rack = (rack + 1) % len(self._order)
        self._epoch += 1
        self._first_rack += 1
        return tuple(replicas)

    def _leader(self) -> tuple[int, int]:
        """Index of the first rack from the starting one with an unfenced broker left, and that broker."""
        for step in range(len(self._order)):
            rack = (self._first_rack + step) % len(self._order)
            broker = self._order[rack].unfenced.next(self._epoch)
            if broker != NOBODY:
                return rack, broker
        raise InvariantBroken("there is an unfenced broker")

    def _shuffle(self) -> None:
        _shuffle(self._order, self._random)
        for rack in self._racks:
            _shuffle(rack.fenced.brokers, self._random)
            _shuffle(rack.unfenced.brokers, self._random)


def _shuffle(items: MutableSequence[Any], random: RandomSource) -> None:
    """Shuffle by Fisher and Yates from the end, as Java's library does."""
    for last in range(len(items) - 1, 0, -1):
        other = random.randrange(last + 1)
        items[last], items[other] = items[other], items[last]


def _impossible(message: str) -> Infeasible:
    return Infeasible(message, goals=("replication factor",))
