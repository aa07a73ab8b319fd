"""A cluster: brokers, log directories, topics, partitions and dynamic configuration."""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from itertools import islice, pairwise
from typing import NamedTuple, Self, overload

from kreassign.errors import InputError
from kreassign.model.text import agreeing, parse_whole, shortened

# A partition and its copies.


_TOPIC_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")


def is_topic_name(text: str) -> bool:
    """True if Kafka lets a topic have this name."""
    return _TOPIC_NAME.fullmatch(text) is not None and text not in {".", ".."}


def unified_name(topic: str) -> str:
    """The name in metrics, with dots as underscores: two topics must not differ in that alone."""
    return topic.replace(".", "_")


class TopicPartition(NamedTuple):
    """One partition of one topic; sorts by topic, then number. Its text is `topic-partition`."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"

    @classmethod
    def parse(cls, text: str) -> TopicPartition:
        """Parse `topic-partition`, the form that `str` writes; topics may contain dashes."""
        topic, dash, number = text.rpartition("-")
        try:
            return cls(topic, parse_whole(number if dash and topic else ""))
        except ValueError:
            said = f"{shortened(text)!r} is not a partition; write topic-partition, for example orders-3"
            raise InputError(said) from None


class TopicPartitionReplica(NamedTuple):
    """One copy of a partition on one broker; sorts by **broker** first, as Kafka's tool does."""

    broker: int
    topic: str
    partition: int

    @property
    def topic_partition(self) -> TopicPartition:
        """The partition that this copy belongs to."""
        return TopicPartition(self.topic, self.partition)

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}-{self.broker}"


NO_LEADER = -1


@dataclass(frozen=True, slots=True)
class Partition:
    """A partition as in the cluster's metadata.

    `replicas` is the full ordered list: during a reassignment the target order followed by the replicas being
    removed; the first is the preferred leader. `leader` is `NO_LEADER` without a leader. `eligible_leaders`
    and `last_known_eligible_leaders` (KIP-966) are None if the cluster does not report them.
    """

    topic_partition: TopicPartition
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    leader_epoch: int = -1
    offline: tuple[int, ...] = ()
    eligible_leaders: tuple[int, ...] | None = None
    last_known_eligible_leaders: tuple[int, ...] | None = None

    def __str__(self) -> str:
        leader = "none" if self.leader == NO_LEADER else self.leader
        replicas = f"replicas {listed_ids(self.replicas)}, isr {listed_ids(self.isr)}"
        return f"{self.topic_partition}: {replicas}, leader {leader}"

    @property
    def preferred_leader(self) -> int:
        """The first replica, or `NO_LEADER` for a partition without replicas."""
        return self.replicas[0] if self.replicas else NO_LEADER

    @property
    def under_replicated(self) -> bool:
        """True if a replica is out of sync. During a move this counts the adding replicas too."""
        return not set(self.replicas) <= set(self.isr)

    def joined_with(self, other: Partition) -> Partition:
        """This partition, but with the newer leader of both, and in sync only what the `other` shows so, too."""
        if (self.isr, self.leader) == (other.isr, other.leader):
            return self
        newer = max(self, other, key=lambda one: one.leader_epoch)
        isr = tuple(each for each in self.isr if each in other.isr)
        return replace(self, isr=isr, leader=newer.leader, leader_epoch=newer.leader_epoch)


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic and its partitions, ordered by number."""

    name: str
    topic_id: str | None
    is_internal: bool
    partitions: tuple[Partition, ...]

    def joined_with(self, other: Topic) -> Topic:
        """This topic, as the `other` description shows it, too: by `Partition.joined_with`."""
        theirs = {one.topic_partition: one for one in other.partitions}
        joined = tuple(one.joined_with(theirs.get(one.topic_partition, one)) for one in self.partitions)
        return self if joined == self.partitions else replace(self, partitions=joined)


def first_twice(ids: Iterable[int]) -> int | None:
    """The first id that is given again; None if each is given once."""
    counts = Counter(ids)
    return next((one for one, count in counts.items() if count > 1), None)


def listed_ids(brokers: Iterable[int]) -> str:
    """Broker ids as in Kafka's tools: `1,2,3`."""
    return ",".join(map(str, brokers))


def without(brokers: Iterable[int], others: Collection[int]) -> tuple[int, ...]:
    """The brokers without the others, in their order."""
    return tuple(broker for broker in brokers if broker not in others)


def named_brokers(brokers: Collection[int], words: str = "") -> str:
    """Broker ids with their noun, and words that begin with a verb in the plural: `broker 3 is down`, `brokers 3,4`."""
    named = f"broker{'' if len(brokers) == 1 else 's'} {listed_ids(brokers)}"
    return f"{named} {agreeing(len(brokers), words)}" if words else named


# Copies in a log directory, packed: a broker may have thousands, and a cluster a million.

# Type codes of `array` for signed numbers of 8, 32 and 64 bits.
_INT8, _INT32, _INT64 = "b", "i", "q"


@dataclass(frozen=True, slots=True)
class LogDirReplica:
    """A copy of a partition in one log directory.

    `size_bytes` is the size of its segments. `is_future` marks the copy that a move between directories is
    building; only for such a copy does `offset_lag` mean anything (records behind the current copy).
    """

    topic_partition: TopicPartition
    size_bytes: int
    offset_lag: int
    is_future: bool


class LogDirReplicas(Sequence[LogDirReplica]):
    """Copies by topic, in columns; items are created on access. Equal to any sequence of the same copies.

    The copies of `topics[i]` are `ends[i]` to `ends[i + 1]` of `partitions`, `sizes_bytes`, `lags` and `is_future`.
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
        """Pack single copies."""
        found = cls()
        for copy in copies:
            topic, partition = copy.topic_partition
            found.add(topic, [(partition, copy.size_bytes, copy.offset_lag, copy.is_future)])
        return found

    def add(self, topic: str, copies: Iterable[tuple[int, int, int, bool]]) -> None:
        """Add copies of a topic: partition, size in bytes, lag, and whether it is a future copy."""
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


# Brokers and their log directories.


@dataclass(frozen=True, slots=True, order=True)
class Broker:
    """A node that clients can connect to. `rack` is None if the broker has none."""

    id: int
    host: str
    port: int
    rack: str | None = None
    is_fenced: bool = False

    def __str__(self) -> str:
        rack = f", rack {self.rack}" if self.rack else ""
        return f"broker {self.id} ({self.host}:{self.port}{rack})"


@dataclass(frozen=True, slots=True)
class Cluster:
    """The nodes of a cluster, as one of them reports them.

    In KRaft mode `controller_id` is a random live broker that forwards to the controller, not the controller.
    """

    cluster_id: str
    controller_id: int
    brokers: tuple[Broker, ...]

    @property
    def broker_ids(self) -> tuple[int, ...]:
        """Ids of the brokers, ascending."""
        return tuple(sorted(broker.id for broker in self.brokers))

    def broker(self, broker_id: int) -> Broker | None:
        """The broker with this id, None if the cluster does not list it."""
        return next((broker for broker in self.brokers if broker.id == broker_id), None)


@dataclass(frozen=True, slots=True)
class LogDir:
    """One log directory of one broker. An offline one has an `error` and no replicas.

    `total_bytes` and `usable_bytes` of the file system are None on brokers before 3.3; `is_cordoned` (KIP-1066)
    is False if the broker does not report it.
    """

    path: str
    error: str | None
    total_bytes: int | None
    usable_bytes: int | None
    is_cordoned: bool
    replicas: Sequence[LogDirReplica]

    def __str__(self) -> str:
        return f"{self.path} ({self.error})" if self.error else self.path

    @property
    def size_bytes(self) -> int:
        """Bytes of its replicas."""
        if isinstance(self.replicas, LogDirReplicas):
            return sum(self.replicas.sizes_bytes)
        return sum(copy.size_bytes for copy in self.replicas)

    @property
    def topics(self) -> frozenset[str]:
        """The topics of its replicas."""
        if isinstance(self.replicas, LogDirReplicas):  # a cluster may have a million copies, which are packed by topic
            return frozenset(self.replicas.topics)
        return frozenset(copy.topic_partition.topic for copy in self.replicas)


# Dynamic configuration of topics and brokers.


class ResourceType(IntEnum):
    """The type of a configuration's owner, with Kafka's number."""

    TOPIC = 2
    BROKER = 4


CLEANUP_POLICY = "cleanup.policy"
"""Setting of a topic: `delete`, `compact`, both, or nothing."""


class ConfigResource(NamedTuple):
    """The owner of a configuration: a topic, or a broker by its id in digits; an empty name means all brokers."""

    type: ResourceType
    name: str

    @classmethod
    def topic(cls, name: str) -> ConfigResource:
        """The owner of a topic's configuration."""
        return cls(ResourceType.TOPIC, name)

    @classmethod
    def broker(cls, broker_id: int) -> ConfigResource:
        """The owner of one broker's configuration."""
        return cls(ResourceType.BROKER, str(broker_id))

    @classmethod
    def all_brokers(cls) -> ConfigResource:
        """The owner of values for all brokers without a value of their own (`--entity-default` of `kafka-configs`)."""
        return cls(ResourceType.BROKER, "")

    def __str__(self) -> str:
        return "all brokers" if self == self.all_brokers() else f"{self.type.name.lower()} {self.name}"


class ConfigSource(IntEnum):
    """The source of a value, with Kafka's number (DescribeConfigs)."""

    UNKNOWN = 0
    DYNAMIC_TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    DYNAMIC_BROKER_LOGGER = 6
    CLIENT_METRICS = 7
    GROUP = 8


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    """The value of one key. `value` is None for secrets and for keys without a value."""

    name: str
    value: str | None
    source: ConfigSource
    is_sensitive: bool = False
    is_read_only: bool = False


class ConfigOperation(IntEnum):
    """The operation on a key, with Kafka's number (KIP-339)."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


@dataclass(frozen=True, slots=True)
class ConfigChange:
    """One step of an incremental change; only DELETE has no value."""

    operation: ConfigOperation
    name: str
    value: str | None = None

    @classmethod
    def set(cls, name: str, value: str) -> ConfigChange:
        """Set the key to this value."""
        return cls(ConfigOperation.SET, name, value)

    @classmethod
    def delete(cls, name: str) -> ConfigChange:
        """Reset the key to its default; no error if it has no value of its own."""
        return cls(ConfigOperation.DELETE, name)

    @classmethod
    def append(cls, name: str, value: str) -> ConfigChange:
        """Append to a list."""
        return cls(ConfigOperation.APPEND, name, value)

    @classmethod
    def subtract(cls, name: str, value: str) -> ConfigChange:
        """Remove from a list."""
        return cls(ConfigOperation.SUBTRACT, name, value)
