"""Brokers, log directories and partitions as arrays: a million replicas without a million objects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from kreassign.errors import InputError
from kreassign.model import TopicPartition
from kreassign.planner.arrays import BoolArray, BytesArray, FloatArray, IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Brokers:
    """N brokers, by ascending id; every array has shape (N,).

    `racks` are indices into `rack_names`, or NOWHERE. A broker that is not live holds nothing in the end, as one that
    `must_empty`; neither receives or leads. `may_receive` and `may_lead` are False for those excluded from it.
    `capacity` has a hard limit per goal name, infinite for none; `shares` which part of the total a broker should
    carry relative to the others, per goal name, where that is not left to the capacities.
    """

    ids: IntArray
    racks: IntArray
    rack_names: tuple[str, ...]
    is_live: BoolArray
    may_receive: BoolArray
    may_lead: BoolArray
    must_empty: BoolArray
    broker_sets: IntArray
    capacity: Mapping[str, FloatArray]
    shares: Mapping[str, FloatArray]

    def __post_init__(self) -> None:
        if not len(self.ids):
            raise InputError("there is no broker to plan for")
        if len(np.unique(self.ids)) != len(self.ids):
            repeated = sorted({int(one) for one in self.ids if (self.ids == one).sum() > 1})
            raise InputError(f"given more than once: broker {', '.join(map(str, repeated))}")

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def staying(self) -> BoolArray:
        """Those that may hold replicas in the end."""
        return self.is_live & ~self.must_empty

    @property
    def receiving(self) -> BoolArray:
        """Those that replicas may be copied to."""
        return self.staying & self.may_receive

    def capacity_of(self, goal: str) -> FloatArray:
        """The hard limit of every broker, infinite where there is none."""
        return self.capacity.get(goal, np.full(len(self), np.inf))

    def weights(self, goal: str) -> FloatArray:
        """Which part of the total each broker should carry; sums to 1. Follows the capacities when all have one."""
        limits = self.capacity_of(goal)
        usable = self.staying
        if goal in self.shares:
            weights = np.where(usable, self.shares[goal], 0.0)
        elif np.isfinite(limits[usable]).all():
            weights = np.where(usable, limits, 0.0)
        else:
            weights = usable.astype(float)
        total = weights.sum()
        return weights / total if total else weights


@dataclass(frozen=True, slots=True, eq=False)
class LogDirs:
    """D log directories, by broker and path; every array has shape (D,). `brokers` are broker indices."""

    brokers: IntArray
    paths: tuple[str, ...]
    capacity_bytes: FloatArray
    may_receive: BoolArray
    must_empty: BoolArray

    def __len__(self) -> int:
        return len(self.paths)


@dataclass(frozen=True, slots=True, eq=False)
class Partitions:
    """P partitions with S replicas, sorted by topic and number.

    The replicas of partition p are `replicas[offsets[p]:offsets[p + 1]]`, as indices into the brokers, in the order of
    the replica list: the first one is the preferred leader. `log_dirs` (S) are indices into the log directories or
    NOWHERE. `topics` (P) are indices into `topic_names`, `broker_sets` (P) into the problem's sets or NOWHERE.
    `is_lost` (S) tells copies that are gone from a broker that lives. Loads are those of one copy; see `PartitionFacts`
    for their meaning. `follower_reads` (P) is what each follower sends to consumers; None if only leaders do.
    `coordinated` (P) is how many groups and transactional ids the leader coordinates, None if nobody said.
    """

    topic_names: tuple[str, ...]
    topics: IntArray
    numbers: IntArray
    offsets: IntArray
    replicas: IntArray
    log_dirs: IntArray
    size_bytes: BytesArray
    write_bytes_per_s: FloatArray
    read_bytes_per_s: FloatArray
    leader_cpu: FloatArray
    follower_cpu: FloatArray
    wanted_factors: IntArray
    may_move: BoolArray
    broker_sets: IntArray
    is_lost: BoolArray
    follower_reads: FloatArray | None = None
    coordinated: FloatArray | None = None

    def __post_init__(self) -> None:
        expected = dict.fromkeys(_PER_PARTITION, len(self.topics)) | dict.fromkeys(_PER_REPLICA, len(self.replicas))
        for name, length in expected.items():
            if (given := len(getattr(self, name))) != length:
                raise InputError(f"partitions: {name} has {given} values, expected {length}")
        if len(self.offsets) != len(self) + 1 or self.offsets[-1] != len(self.replicas):
            raise InputError("partitions: offsets do not fit the replicas")

    def __len__(self) -> int:
        return len(self.topics)

    @property
    def follower_read_bytes_per_s(self) -> FloatArray:
        """What each follower sends to consumers, (P,)."""
        return np.zeros(len(self)) if self.follower_reads is None else self.follower_reads

    @property
    def coordinated_count(self) -> FloatArray:
        """How many groups and transactional ids the leader coordinates, (P,)."""
        return np.zeros(len(self)) if self.coordinated is None else self.coordinated

    @property
    def factors(self) -> IntArray:
        """How many replicas each partition has now."""
        return np.diff(self.offsets).astype(np.int32)

    @property
    def owners(self) -> IntArray:
        """The partition of each replica, shape (S,)."""
        return np.repeat(np.arange(len(self), dtype=np.int32), self.factors)

    def within_reach(self, is_live: BoolArray) -> BoolArray:
        """Which partitions have a copy left that another can be made from, shape (P,)."""
        usable = is_live[self.replicas] & ~self.is_lost
        return np.bincount(self.owners[usable], minlength=len(self)) > 0

    def name(self, partition: int) -> TopicPartition:
        """Topic and number of the partition with this index."""
        return TopicPartition(self.topic_names[self.topics[partition]], int(self.numbers[partition]))

    def list_of(self, partition: int) -> IntArray:
        """Broker indices of one partition's replicas, preferred leader first."""
        return self.replicas[self.offsets[partition] : self.offsets[partition + 1]]


_PER_PARTITION = (
    "numbers", "size_bytes", "write_bytes_per_s", "read_bytes_per_s", "leader_cpu", "follower_cpu", "wanted_factors",
    "may_move", "broker_sets",
)  # fmt: skip
_PER_REPLICA = ("log_dirs", "is_lost")


@dataclass(frozen=True, slots=True, eq=False)
class Assignment:
    """Where replicas are to be: the same shape as in `Partitions`, with factors of its own.

    `replicas` are broker indices, the wanted leader first in each list; `log_dirs` indices of log directories, or
    NOWHERE where the broker chooses.
    """

    offsets: IntArray
    replicas: IntArray
    log_dirs: IntArray

    @classmethod
    def current(cls, partitions: Partitions) -> Assignment:
        """Everything where it is now."""
        return cls(partitions.offsets, partitions.replicas, partitions.log_dirs)

    @property
    def owners(self) -> IntArray:
        """The partition of each replica, as in `Partitions`."""
        factors = np.diff(self.offsets)
        return np.repeat(np.arange(len(factors), dtype=np.int32), factors)

    def lists(self) -> list[list[int]]:
        """The replica list of every partition, as broker indices."""
        replicas, offsets = self.replicas.tolist(), self.offsets.tolist()
        return [replicas[start:end] for start, end in pairwise(offsets)]
