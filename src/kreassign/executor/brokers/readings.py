"""What the cluster says of brokers that are to be taken out of service, read through the port."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from kreassign.errors import Unsupported
from kreassign.executor.brokers.cordon import CORDONED_LOG_DIRS, is_closed
from kreassign.executor.cluster.permissions import unseen_topics
from kreassign.model import (
    Batch,
    Cluster,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    LogDir,
    OngoingReassignment,
    Partition,
    Topic,
    TopicPartition,
)
from kreassign.model.authorization import error_text


class BrokerPort(Protocol):
    """The calls, each with the meaning that `AdminClient` gives it. All raise ClusterError."""

    def describe_cluster(self, *, include_fenced: bool = False) -> Cluster:
        """The live brokers; with `include_fenced` all that are registered."""
        ...

    def describe_topics(self, names: Iterable[str] | None) -> Batch[str, Topic]:
        """Partitions of topics."""
        ...

    def list_partition_reassignments(
        self, partitions: Iterable[TopicPartition] | None
    ) -> Mapping[TopicPartition, OngoingReassignment]:
        """Which partitions are on their way."""
        ...

    def describe_configs(
        self, resources: Iterable[ConfigResource], *, names: Iterable[str] | None
    ) -> Batch[ConfigResource, Mapping[str, ConfigEntry]]:
        """Values of some keys."""
        ...

    def describe_log_dirs(self, brokers: Iterable[int] | None) -> Batch[int, tuple[LogDir, ...]]:
        """What is in the log directories of brokers."""
        ...


@dataclass(frozen=True, slots=True)
class CordonReading:
    """How the log directories of a live broker stand: its own value of `cordoned.log.dirs`, and what it tells of them.

    `is_known`: whether the broker has that setting (Kafka 4.3).
    """

    is_known: bool
    value: str | None
    log_dirs: tuple[LogDir, ...]

    @property
    def is_closed(self) -> bool:
        """Whether the broker gets no new replicas that somebody else places."""
        return self.is_known and is_closed(self.value, self.log_dirs)


@dataclass(frozen=True, slots=True)
class BrokerReading:
    """What the cluster says of one broker.

    `replicas` are the partitions whose list names it, `arriving` and `leaving` those that are being reassigned to it
    and away from it, with the move. `copies` are the partitions of which its log directories hold something. `cordon`
    is None for one that is not live, or that did not answer: `unread` says why. Whether one that is not live
    `is_registered` is None where the cluster cannot tell (before Kafka 4.0).
    """

    broker: int
    is_live: bool
    is_registered: bool | None
    cordon: CordonReading | None = None
    replicas: tuple[TopicPartition, ...] = ()
    arriving: Mapping[TopicPartition, OngoingReassignment] = field(default_factory=dict)
    leaving: Mapping[TopicPartition, OngoingReassignment] = field(default_factory=dict)
    copies: tuple[TopicPartition, ...] = ()
    unread: str = ""

    @property
    def is_closed(self) -> bool:
        """Whether it gets no new replicas but from those who name it."""
        return self.cordon is not None and self.cordon.is_closed

    @property
    def offline_log_dirs(self) -> tuple[str, ...]:
        """Its log directories of which nobody can tell what they hold."""
        return () if self.cordon is None else tuple(one.path for one in self.cordon.log_dirs if one.error)


@dataclass(frozen=True, slots=True)
class Readings:
    """What the cluster says of the brokers in question.

    `live` are all that are; `partitions` is how all of them stand, and `moving` which are being reassigned. `unseen`
    are topics with replicas on the brokers, and where one is not live on any broker, that this client may not see: they
    are in none of these.
    """

    live: frozenset[int]
    brokers: tuple[BrokerReading, ...]
    partitions: tuple[Partition, ...] = ()
    moving: frozenset[TopicPartition] = frozenset()
    unseen: tuple[str, ...] = ()


def read_brokers(port: BrokerPort, brokers: Sequence[int]) -> Readings:
    """What the cluster says of these brokers now. Raises ClusterError."""
    # The controller first: what it does not list any more, brokers show as done now or a moment later.
    ongoing = port.list_partition_reassignments(None)
    topics = port.describe_topics(None).ok
    partitions = tuple(partition for topic in topics.values() for partition in topic.partitions)
    live = frozenset(one.id for one in port.describe_cluster().brokers)
    registered = _registered(port)
    configs, log_dirs = _read_own(port, brokers, live)
    unseen = unseen_topics(port, topics, (one for dirs in log_dirs.ok.values() for one in dirs))
    found = (
        BrokerReading(
            broker,
            broker in live,
            True if broker in live else None if registered is None else broker in registered,
            replicas=tuple(sorted(one.topic_partition for one in partitions if broker in one.replicas)),
            arriving={name: move for name, move in ongoing.items() if broker in move.adding},
            leaving={name: move for name, move in ongoing.items() if broker in move.removing},
        )
        for broker in brokers
    )
    with_own = tuple(_with_own(one, configs, log_dirs) for one in found)
    return Readings(live, with_own, partitions, frozenset(ongoing), unseen)


_Configs = Batch[ConfigResource, Mapping[str, ConfigEntry]]
_LogDirs = Batch[int, tuple[LogDir, ...]]


def _registered(port: BrokerPort) -> set[int] | None:
    try:
        return {one.id for one in port.describe_cluster(include_fenced=True).brokers}
    except Unsupported:
        return None


def _read_own(port: BrokerPort, brokers: Sequence[int], live: Collection[int]) -> tuple[_Configs, _LogDirs]:
    """What only the brokers themselves know; of what one that is not live holds, the others know a part."""
    asked = [broker for broker in brokers if broker in live]
    resources = map(ConfigResource.broker, asked)
    configs = port.describe_configs(resources, names=(CORDONED_LOG_DIRS,)) if asked else Batch()
    return configs, port.describe_log_dirs(asked if len(asked) == len(brokers) else sorted(live))


def _with_own(found: BrokerReading, configs: _Configs, log_dirs: _LogDirs) -> BrokerReading:
    """With what the broker told of itself, if it is live."""
    resource = ConfigResource.broker(found.broker)
    trouble = configs.failed.get(resource) or log_dirs.failed.get(found.broker)
    if trouble is not None or not found.is_live:
        return replace(found, unread="" if trouble is None else error_text(trouble))
    entry, dirs = configs.ok[resource].get(CORDONED_LOG_DIRS), log_dirs.ok[found.broker]
    own = entry.value if entry is not None and entry.source is ConfigSource.DYNAMIC_BROKER else None
    copies = tuple(sorted({copy.topic_partition for one in dirs for copy in one.replicas}))
    return replace(found, cordon=CordonReading(entry is not None, own, dirs), copies=copies)
