"""What has to be known of a cluster to decide upon changes of topics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from kreassign.model.cluster import Broker, LogDir
from kreassign.model.log_dir_replicas import LogDirReplica
from kreassign.model.partition import Topic, TopicPartition


@dataclass(frozen=True, slots=True)
class BrokerView:
    """A registered broker and what it holds: bytes on its disks, and how many replicas.

    One that `may_receive` nothing (it is down, shutting down, or all its directories are cordoned) gets no new replicas
    but may keep and be given what the caller names.
    """

    id: int
    rack: str | None = None
    size_bytes: int = 0
    replica_count: int = 0
    may_receive: bool = True


@dataclass(frozen=True, slots=True)
class TopicsView:
    """Brokers by id, topics by name, bytes of one copy by partition (0 where nobody knows), and what moves already.

    `min_in_sync` is `min.insync.replicas` by topic, 1 where nobody knows.
    """

    brokers: Mapping[int, BrokerView]
    topics: Mapping[str, Topic]
    sizes_bytes: Mapping[TopicPartition, int] = field(default_factory=dict)
    ongoing: AbstractSet[TopicPartition] = frozenset()
    min_in_sync: Mapping[str, int] = field(default_factory=dict)


def topics_view(
    brokers: Iterable[Broker],
    log_dirs: Mapping[int, tuple[LogDir, ...]],
    topics: Mapping[str, Topic],
    *,
    ongoing: AbstractSet[TopicPartition] = frozenset(),
    min_in_sync: Mapping[str, int],
) -> TopicsView:
    """A view from what a cluster says of itself; brokers whose `log_dirs` are not there did not report them."""
    views = (_broker_view(broker, log_dirs.get(broker.id, ())) for broker in brokers)
    leaders = {entry.topic_partition: entry.leader for topic in topics.values() for entry in topic.partitions}
    sizes = {
        copy.topic_partition: copy.size_bytes
        for broker, dirs in log_dirs.items()
        for copy in _copies(dirs)
        if leaders.get(copy.topic_partition) == broker
    }
    return TopicsView({view.id: view for view in views}, topics, sizes, ongoing, min_in_sync)


def _broker_view(broker: Broker, log_dirs: tuple[LogDir, ...]) -> BrokerView:
    copies = _copies(log_dirs)
    is_cordoned = bool(log_dirs) and all(log_dir.is_cordoned for log_dir in log_dirs)
    return BrokerView(
        broker.id,
        broker.rack,
        sum(copy.size_bytes for copy in copies),
        len(copies),
        may_receive=not broker.is_fenced and not is_cordoned,
    )


def _copies(log_dirs: tuple[LogDir, ...]) -> list[LogDirReplica]:
    """All copies but those that a move between directories is building."""
    return [replica for log_dir in log_dirs for replica in log_dir.replicas if not replica.is_future]
