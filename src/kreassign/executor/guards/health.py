"""How the cluster is, as far as guards want to know. Values, and how they come from answers of the cluster. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from kreassign.executor.throttle.ledger import ConfigValue
from kreassign.model import NO_LEADER, ConfigResource, OngoingReassignment, Partition, TopicPartition

NAMED = 20
"""So many troubled partitions are named; the rest is counted."""


@dataclass(frozen=True, slots=True)
class Troubled:
    """Partitions in some trouble: how many, and the first of them; of the first inspection of a run, all.

    `fresh` are the first of those that were not in it when the run began, `fresh_count` how many; None if unknown.
    """

    count: int = 0
    first: tuple[TopicPartition, ...] = ()
    fresh_count: int | None = None
    fresh: tuple[TopicPartition, ...] = ()

    @classmethod
    def of(cls, partitions: Iterable[TopicPartition], before: Troubled | None = None) -> Troubled:
        """These; `before` are those of the first inspection."""
        found = sorted(partitions)
        if before is None:
            return cls(len(found), tuple(found))
        if before.count > len(before.first):
            return cls(len(found), tuple(found[:NAMED]))  # an older journal named only some
        known = set(before.first)
        fresh = [name for name in found if name not in known]
        return cls(len(found), tuple(found[:NAMED]), len(fresh), tuple(fresh[:NAMED]))

    def __str__(self) -> str:
        return _named(self.first, self.count)

    @property
    def news(self) -> str:
        """The fresh ones."""
        return _named(self.fresh, self.fresh_count or 0)


@dataclass(frozen=True, slots=True)
class LogDirSpace:
    """Free space of a log directory, in bytes."""

    broker: int
    path: str
    total_bytes: int
    usable_bytes: int


@dataclass(frozen=True, slots=True)
class Health:
    """One inspection of the cluster.

    What the run itself explains is not trouble: replicas that it adds are out of sync until they have caught up, and in
    a run that plans moves again, `under_replicated` leaves out replicas on the brokers that it goes on without.
    `foreign_moves` are planned partitions on their way to another target than ours; `foreign_configs`, settings of the
    throttle with another value than ours, and `unread_configs` of whom nobody could read them. `cordoned` are brokers
    in maintenance, and those all of whose directories refuse new copies.
    """

    live: tuple[int, ...]
    offline: Troubled = Troubled()
    under_min_isr: Troubled = Troubled()
    under_replicated: Troubled = Troubled()
    log_dir_space: tuple[LogDirSpace, ...] = ()
    cordoned: tuple[int, ...] = ()
    foreign_moves: tuple[TopicPartition, ...] = ()
    foreign_configs: tuple[ConfigValue, ...] = ()
    unread_configs: tuple[ConfigResource, ...] = ()


def offline(partitions: Iterable[Partition]) -> tuple[TopicPartition, ...]:
    """Partitions without a leader."""
    return tuple(one.topic_partition for one in partitions if one.leader == NO_LEADER)


def under_replicated(
    partitions: Iterable[Partition],
    ongoing: Mapping[TopicPartition, OngoingReassignment],
    lost: Collection[int] = (),
) -> tuple[Partition, ...]:
    """Partitions with a replica out of sync that no reassignment is just adding, and that is not on a `lost` broker."""
    return tuple(one for one in partitions if set(one.replicas).difference(one.isr, _adding(one, ongoing), lost))


def under_min_isr(partitions: Iterable[Partition], minima: Mapping[str, int]) -> tuple[TopicPartition, ...]:
    """Those of these partitions that producers with acks=all cannot write to; `minima` is by topic, 1 by default."""
    return tuple(
        one.topic_partition
        for one in partitions
        if one.leader != NO_LEADER and len(one.isr) < min(minima.get(one.topic_partition.topic, 1), len(one.replicas))
    )


def _named(partitions: Sequence[TopicPartition], count: int) -> str:
    named = partitions[:NAMED]
    more = f" and {count - len(named)} more" if count > len(named) else ""
    return ", ".join(map(str, named)) + more


def _adding(partition: Partition, ongoing: Mapping[TopicPartition, OngoingReassignment]) -> tuple[int, ...]:
    move = ongoing.get(partition.topic_partition)
    return move.adding if move is not None else ()
