"""Values that requests to a cluster take and return.

`Batch` has the outcome of each part of a request that covers many: partial failure as a value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Generic, NamedTuple, NoReturn, TypeVar

from kreassign.errors import ClusterError, InputError
from kreassign.model.cluster import TopicPartition

Key = TypeVar("Key")
Value = TypeVar("Value")
Other = TypeVar("Other")


@dataclass(frozen=True, slots=True)
class Batch(Generic[Key, Value]):
    """Outcome per key: either in `ok` with its value, or in `failed` with its error, never both.

    Keys keep the order in which the cluster answered. A call whose whole request failed says so by raising, not
    by a batch, unless some of its keys did get an answer.
    """

    ok: Mapping[Key, Value] = field(default_factory=dict)
    failed: Mapping[Key, ClusterError] = field(default_factory=dict)

    def __post_init__(self) -> None:
        assert not self.ok.keys() & self.failed.keys(), "a key cannot both succeed and fail"

    def __len__(self) -> int:
        return len(self.ok) + len(self.failed)

    def __iter__(self) -> Iterator[Key]:
        yield from self.ok
        yield from self.failed

    def __getitem__(self, key: Key) -> Value:
        """The value of a key; raises the key's own error if it failed."""
        if key in self.failed:
            _raise(key, self.failed[key])
        return self.ok[key]

    def raise_if_any(self) -> Mapping[Key, Value]:
        """Raise the first error, which names its key as its `item`, if any key failed; else return all values."""
        for key, error in self.failed.items():
            _raise(key, error)
        return self.ok

    def map(self, change: Callable[[Value], Other]) -> Batch[Key, Other]:
        """The same outcomes with every value changed."""
        return Batch({key: change(value) for key, value in self.ok.items()}, self.failed)


def _raise(key: object, error: ClusterError) -> NoReturn:
    """Raise the error of a key. One error can stand for all keys of a request, so it does not know them."""
    if error.item is None:
        raise error.about(key) from error
    raise error


def join(parts: list[Batch[Key, Value]]) -> Batch[Key, Value]:
    """Put the outcomes of several calls about different keys together."""
    ok: dict[Key, Value] = {}
    failed: dict[Key, ClusterError] = {}
    for part in parts:
        ok.update(part.ok)
        failed.update(part.failed)
    return Batch(ok, failed)


# New topics and partitions.


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


# Leader elections that an operator can ask for.


class ElectionType(IntEnum):
    """How a leader is chosen, with Kafka's number for it (KIP-460)."""

    PREFERRED = 0
    UNCLEAN = 1


@dataclass(frozen=True, slots=True)
class PreferredElectionResult:
    """What became of a preferred leader election (KIP-183, `ElectPreferredLeadersResult`).

    A partition is well if its preferred replica leads it now, which it may have done before.
    """

    outcomes: Batch[TopicPartition, None]

    def partition_result(self, topic_partition: TopicPartition) -> None:
        """Return if the partition is well, raise its error if not; `InputError` if no election was attempted for it."""
        if topic_partition not in set(self.outcomes):
            raise InputError(f"no preferred leader election was attempted for partition {topic_partition}")
        self.outcomes[topic_partition]

    def partitions(self) -> frozenset[TopicPartition]:
        """The partitions for which an election was attempted, whatever became of it.

        When all partitions were asked for, those that did not need one are not among them.
        """
        return frozenset(self.outcomes)

    def all(self) -> None:
        """Return if every partition is well, raise the first error if not."""
        self.outcomes.raise_if_any()


# Offsets.


class OffsetSpec(IntEnum):
    """Kafka's names for them, with its numbers (`timestamp` of ListOffsets).

    Where tiered storage (KIP-405) has moved older segments away, a log begins twice: `EARLIEST` is the first offset
    that can be read, from wherever it is kept, `EARLIEST_LOCAL` the first that the broker has on its own disks. All
    other logs begin once, so that both are the same. Sizes are of what is on disks, and so is what a move copies:
    whatever goes with a size is measured from `EARLIEST_LOCAL`.
    """

    LATEST = -1
    EARLIEST = -2
    EARLIEST_LOCAL = -4
    EARLIEST_PENDING_UPLOAD = -6
    """The first offset of a tiered topic that remote storage does not have yet (KIP-1023, Kafka 4.2)."""


# Groups as their coordinator knows them: the classic protocol, in which members join, and generations are numbered.

NO_OFFSET = -1
"""The offset of a partition for which a group has committed none."""

DEAD = "Dead"
"""The state of a group that does not exist."""


@dataclass(frozen=True, slots=True)
class GroupCandidate:
    """Who wants to join a group, and as what.

    `instance_id` is `group.instance.id` (KIP-345): who joins under it again takes the place of its former self, which
    is fenced from then on. All members of a group must share a `protocol`; `metadata` is shown to whoever describes
    the group.
    """

    group_id: str
    instance_id: str
    protocol_type: str
    protocol: str
    metadata: bytes
    session_timeout_ms: int


@dataclass(frozen=True, slots=True)
class Membership:
    """What a member shows to the coordinator with each of its requests, so that a former one is found out."""

    group_id: str
    instance_id: str
    member_id: str
    generation: int


@dataclass(frozen=True, slots=True)
class GroupMember:
    """A member as others are shown it. `client_host` is the address from which it joined."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    metadata: bytes


@dataclass(frozen=True, slots=True)
class Group:
    """A group as it is described: `state` is Kafka's word, `DEAD` for a group that does not exist."""

    group_id: str
    state: str
    protocol_type: str
    protocol: str
    members: tuple[GroupMember, ...] = ()


@dataclass(frozen=True, slots=True)
class CommittedOffset:
    """What a group committed for a partition; `offset` is NO_OFFSET where it has committed nothing."""

    offset: int
    metadata: str = ""


# How far each copy of a partition is (KIP-179, `replicaStatus`).
#
# A moving replica fetches from the leader like any follower, so its own log end offset is exact progress:
#
#     lag_records = leader's log end - replica's log end
#     lag_bytes   = lag_records x leader's size / (leader's log end - leader's log start)
#
# A log starts here where the broker's own copy does. Tiered storage (KIP-405) keeps older segments elsewhere: they
# count in no size, no follower copies them, and a new replica begins at the leader's local start, or with KIP-1023
# after it.


@dataclass(frozen=True, slots=True)
class ReplicaStatus:
    """One replica, measured at its own broker at `status_time_ms` (milliseconds since the epoch).

    `log_start_offset` and `log_end_offset` are of what the replica has itself: the former is its local log start offset
    where tiered storage has older segments. `lag_records` is the leader's end minus this
    replica's end, never negative. `lag_bytes` estimates the same in bytes, as `lag_records` times the mean size
    of the leader's records; it is None when the leader's size is not known. `size_bytes` is what the replica
    takes on disk, None when its broker did not say. A replica that its broker does not host yet has lag in full,
    offsets of -1 and a size of 0.
    """

    topic_partition: TopicPartition
    broker: int
    is_leader: bool
    status_time_ms: int
    log_start_offset: int
    log_end_offset: int
    lag_records: int
    lag_bytes: int | None
    size_bytes: int | None

    def done_bytes(self, leader: ReplicaStatus | None) -> int:
        """What has been copied: the leader's size without the lag, which grows evenly where files do not.

        What remote storage has already, a new copy may have skipped (KIP-1023): then it starts after the leader's.
        """
        whole = leader.size_bytes if leader else None
        if leader is None or self.lag_bytes is None or whole is None:
            return self.size_bytes or 0
        skipped, held = self.log_start_offset - leader.log_start_offset, leader.log_end_offset - leader.log_start_offset
        skipped_bytes = round(whole * skipped / held) if 0 < skipped <= held else 0
        return max(0, whole - skipped_bytes - self.lag_bytes)


class OffsetRange(NamedTuple):
    """The first offset that a copy has itself, and that after its last; -1 and -1 where there is no copy."""

    start: int
    end: int


NO_COPY = OffsetRange(-1, -1)


@dataclass(frozen=True, slots=True)
class Copy:
    """What a broker says of its copy; `size_bytes` is None where it does not say."""

    offsets: OffsetRange
    size_bytes: int | None

    def lag_behind(self, leader: Copy) -> tuple[int, int | None]:
        """By how many records and (None: unknown) bytes this copy is behind that of the leader."""
        # A copy that does not exist yet will start where the leader's log starts.
        records = max(0, leader.offsets.end - max(self.offsets.end, leader.offsets.start))
        if records == 0:
            return 0, 0
        if leader.size_bytes is None:
            return records, None
        return records, round(records * leader.size_bytes / (leader.offsets.end - leader.offsets.start))
