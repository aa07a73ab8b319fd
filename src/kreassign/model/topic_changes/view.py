"""What has to be known of a cluster to decide upon changes of topics."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from kreassign.model.partition import Topic, TopicPartition


@dataclass(frozen=True, slots=True)
class BrokerView:
    """A registered broker and what it holds: bytes on its disks, and how many replicas.

    One that `may_receive` nothing (it is down, shutting down, or all its directories are cordoned) gets no new replicas
    but may keep and be given by hand what the caller wishes.
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
