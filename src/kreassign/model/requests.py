"""Arguments and results of requests to a cluster.

`Batch` has the outcome of each part of a request about many items: partial failure as a value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Generic, NamedTuple, NoReturn, TypeVar

from kreassign.errors import ClusterError, InputError
from kreassign.model.cluster import TopicPartition
from kreassign.model.error_codes import has_code

Key = TypeVar("Key")
Value = TypeVar("Value")
Other = TypeVar("Other")


@dataclass(frozen=True, slots=True)
class Batch(Generic[Key, Value]):
    """Outcome per key: in `ok` with its value, or in `failed` with its error, never both.

    Keys keep the order in which the cluster answered. A request that failed as a whole raises instead,
    unless some of its keys did get an answer.
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
        """The value of a key; raises the error of a failed key."""
        if key in self.failed:
            _raise(key, self.failed[key])
        return self.ok[key]

    def raise_if_any(self, *expected: int) -> Mapping[Key, Value]:
        """Raise the first error without one of these expected codes, with its key as `item`; else return all values."""
        for key, error in self.failed.items():
            if not has_code(error, *expected):
                _raise(key, error)
        return self.ok

    def map(self, change: Callable[[Value], Other]) -> Batch[Key, Other]:
        """Map every value; failures stay."""
        return Batch({key: change(value) for key, value in self.ok.items()}, self.failed)


def _raise(key: object, error: ClusterError) -> NoReturn:
    """Raise the error of a key. One error may stand for all keys of a request, so it does not name the key yet."""
    if error.item is None:
        raise error.about(key) from error
    raise error


LOOKS = 2
"""Brokers that must agree on an odd answer, where there are so many."""

TRIES = 3
"""Brokers that are asked at most: one that does not answer is not waited for twice."""


def answers_of_two(brokers: Sequence[int], ask: Callable[[int], Value]) -> list[Value]:
    """Answers of two of the live `brokers`, or of one if only one is live. Raises ClusterError.

    A broker that lags shows what was. One that does not answer is passed over for another one.
    """
    looks: list[Value] = []
    failure = ClusterError("the cluster lists no live broker")
    for broker in brokers[:TRIES]:
        try:
            looks.append(ask(broker))
        except ClusterError as error:
            failure = error
        if len(looks) == LOOKS:
            break
    if len(looks) < min(LOOKS, max(1, len(brokers))):
        raise failure
    return looks


def join(parts: list[Batch[Key, Value]]) -> Batch[Key, Value]:
    """Join the outcomes of several calls about different keys."""
    ok: dict[Key, Value] = {}
    failed: dict[Key, ClusterError] = {}
    for part in parts:
        ok.update(part.ok)
        failed.update(part.failed)
    return Batch(ok, failed)


# New topics and partitions.


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic to create: counts, which the cluster places, or `assignments` with the replicas of each partition."""

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
    """The new total number of partitions of a topic, and optionally the replicas of new ones."""

    total_count: int
    assignments: tuple[tuple[int, ...], ...] = ()


# Leader elections by request.


class ElectionType(IntEnum):
    """The kind of election, with Kafka's number (KIP-460)."""

    PREFERRED = 0
    UNCLEAN = 1


@dataclass(frozen=True, slots=True)
class PreferredElectionResult:
    """The result of a preferred leader election (KIP-183, `ElectPreferredLeadersResult`).

    A partition succeeds if its preferred replica is the leader now, also if it was before.
    """

    outcomes: Batch[TopicPartition, None]

    def partition_result(self, topic_partition: TopicPartition) -> None:
        """Raise the error of a failed partition; `InputError` if no election was attempted for it."""
        if topic_partition not in set(self.outcomes):
            raise InputError(f"no preferred leader election was attempted for partition {topic_partition}")
        self.outcomes[topic_partition]

    def partitions(self) -> frozenset[TopicPartition]:
        """Partitions with an attempted election, successful or not.

        If all partitions were requested, those that needed no election are not included.
        """
        return frozenset(self.outcomes)

    def all(self) -> None:
        """Raise the first error, if any partition failed."""
        self.outcomes.raise_if_any()


# Offsets.


class OffsetSpec(IntEnum):
    """Kafka's names of special offsets, with its numbers (`timestamp` of ListOffsets).

    With tiered storage (KIP-405) a log begins twice: `EARLIEST` is the first readable offset, wherever it is
    stored, `EARLIEST_LOCAL` the first on the broker's own disks. All other logs begin once, so that both are equal.
    Sizes are of data on disks, and so is what a move copies: offsets that relate to a size are measured from
    `EARLIEST_LOCAL`.
    """

    LATEST = -1
    EARLIEST = -2
    EARLIEST_LOCAL = -4
    EARLIEST_PENDING_UPLOAD = -6
    """The first offset of a tiered topic that is not in remote storage yet (KIP-1023, Kafka 4.2)."""


# Groups as reported by their coordinator: the classic protocol, in which members join and generations are numbered.

NO_OFFSET = -1
"""The offset of a partition without a committed offset."""

DEAD = "Dead"
"""The state of a group that does not exist."""


@dataclass(frozen=True, slots=True)
class GroupCandidate:
    """The identity under which a member joins a group.

    `instance_id` is `group.instance.id` (KIP-345): a member that joins with the same id replaces the former one, which
    is fenced from then on. All members of a group must share a `protocol`; `metadata` is shown in descriptions of
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
    """A member's identity for each request to the coordinator, which refuses former members by it."""

    group_id: str
    instance_id: str
    member_id: str
    generation: int


@dataclass(frozen=True, slots=True)
class GroupMember:
    """A member in the description of a group. `client_host` is the address from which it joined."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    metadata: bytes


@dataclass(frozen=True, slots=True)
class Group:
    """The description of a group: `state` is Kafka's word, `DEAD` for a group that does not exist."""

    group_id: str
    state: str
    protocol_type: str
    protocol: str
    members: tuple[GroupMember, ...] = ()


@dataclass(frozen=True, slots=True)
class FetchedRecords:
    """Keys and values of records of a partition, the offset after them, and the high watermark."""

    records: tuple[tuple[bytes | None, bytes | None], ...]
    next_offset: int
    high_watermark: int


@dataclass(frozen=True, slots=True)
class CommittedOffset:
    """The committed offset of a partition; `offset` is NO_OFFSET without one."""

    offset: int
    metadata: str = ""


# Progress of each copy of a partition (KIP-179, `replicaStatus`).
#
# A moving replica fetches from the leader like any follower, so its own log end offset is exact progress:
#
#     lag_records = leader's log end - replica's log end
#     lag_bytes   = lag_records x leader's size / (leader's log end - leader's log start)
#
# A log starts here where the broker's own copy starts. Tiered storage (KIP-405) keeps older segments elsewhere:
# no size includes them, no follower copies them, and a new replica begins at the leader's local start, or with KIP-1023
# after it.


@dataclass(frozen=True, slots=True)
class ReplicaStatus:
    """One replica, measured at its own broker at `status_time_ms` (milliseconds since the epoch).

    `log_start_offset` and `log_end_offset` are of the replica's own data: the former is its local log start offset
    if tiered storage has older segments. `lag_records` is the leader's end minus this
    replica's end, never negative. `lag_bytes` estimates the same in bytes, as `lag_records` times the mean size
    of the leader's records; it is None if the leader's size is unknown. `size_bytes` is its size
    on disk, None if its broker did not report it. A replica that its broker does not host yet has full lag,
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

    def done_bytes(self, leader: ReplicaStatus | None) -> int | None:
        """Copied bytes: the leader's size minus the lag, which changes evenly where file sizes do not; None if unknown.

        A new copy may have skipped data in remote storage (KIP-1023): then it starts after the leader's start.
        """
        whole = leader.size_bytes if leader else None
        if leader is None or self.lag_bytes is None or whole is None:
            return self.size_bytes
        skipped, held = self.log_start_offset - leader.log_start_offset, leader.log_end_offset - leader.log_start_offset
        skipped_bytes = round(whole * skipped / held) if 0 < skipped <= held else 0
        return max(0, whole - skipped_bytes - self.lag_bytes)


class OffsetRange(NamedTuple):
    """The first offset of a copy, and the offset after its last; -1 and -1 without a copy."""

    start: int
    end: int


NO_COPY = OffsetRange(-1, -1)


@dataclass(frozen=True, slots=True)
class Copy:
    """A broker's report of its copy; `size_bytes` is None if not reported."""

    offsets: OffsetRange
    size_bytes: int | None

    def lag_behind(self, leader: Copy) -> tuple[int, int | None]:
        """Lag of this copy behind the leader's, in records and (None: unknown) bytes."""
        # A copy that does not exist yet will start at the start of the leader's log.
        records = max(0, leader.offsets.end - max(self.offsets.end, leader.offsets.start))
        if records == 0:
            return 0, 0
        if leader.size_bytes is None:
            return records, None
        return records, round(records * leader.size_bytes / (leader.offsets.end - leader.offsets.start))
