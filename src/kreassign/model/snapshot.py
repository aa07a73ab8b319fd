"""A cluster as it was found, as one value: what a snapshot file holds, and a twin can be made of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from kreassign.errors import InputError
from kreassign.model.cluster import Broker
from kreassign.model.partition import TopicPartition


@dataclass(frozen=True, slots=True)
class SnapshotLogDir:
    """A log directory: bytes of its file system, and how many are free; None where the broker does not report them.

    An offline one has failed. A cordoned one works, but takes nothing new unless it is named (Kafka 4.3).
    """

    path: str
    total_bytes: int | None = None
    usable_bytes: int | None = None
    is_offline: bool = False
    is_cordoned: bool = False


@dataclass(frozen=True, slots=True)
class SnapshotBroker:
    """A broker with its log directories (none if it did not answer) and its dynamic configuration."""

    broker: Broker
    log_dirs: tuple[SnapshotLogDir, ...] = ()
    configs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SnapshotPartition:
    """A partition and its copies.

    `log_dirs` and `sizes_bytes` go with `replicas`, place by place, None where a broker did not report one.
    `future_log_dirs` names the directory to which a broker is moving its copy. Offsets are those of the leader, and
    `write_bytes_per_s` is what producers added while the snapshot was taken; None where it is not known.
    """

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    leader_epoch: int
    log_dirs: tuple[str | None, ...]
    sizes_bytes: tuple[int | None, ...]
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    future_log_dirs: Mapping[int, str] = field(default_factory=dict)
    start_offset: int | None = None
    end_offset: int | None = None
    write_bytes_per_s: float | None = None

    def __post_init__(self) -> None:
        if not len(self.replicas) == len(self.log_dirs) == len(self.sizes_bytes):
            raise InputError(
                f"{len(self.replicas)} replicas have {len(self.log_dirs)} log directories and {len(self.sizes_bytes)} "
                f"sizes; there must be one of each for every replica"
            )

    @property
    def is_moving(self) -> bool:
        """Whether the partition is being reassigned."""
        return bool(self.adding or self.removing)

    @property
    def size_bytes(self) -> int | None:
        """The size of the leader's copy, else of the largest; None if no broker reported one."""
        sizes = dict(zip(self.replicas, self.sizes_bytes, strict=True))
        known = [size for size in sizes.values() if size is not None]
        leaders = sizes.get(self.leader)
        return max(known, default=None) if leaders is None else leaders


@dataclass(frozen=True, slots=True)
class SnapshotTopic:
    """A topic: its partitions in the order of their numbers, and its dynamic configuration.

    `topic_id` is None before Kafka 2.8.
    """

    name: str
    partitions: tuple[SnapshotPartition, ...]
    configs: Mapping[str, str] = field(default_factory=dict)
    topic_id: str | None = None


@dataclass(frozen=True, slots=True)
class ClusterSnapshot:
    """A whole cluster; `taken_ms` is when it was begun to be looked at, by the clock of who looked.

    `broker_defaults` is the dynamic configuration of all brokers together.
    """

    taken_ms: int
    cluster_id: str
    brokers: tuple[SnapshotBroker, ...]
    topics: tuple[SnapshotTopic, ...] = ()
    broker_defaults: Mapping[str, str] = field(default_factory=dict)

    @property
    def partitions(self) -> Iterator[tuple[TopicPartition, SnapshotPartition]]:
        """All partitions of all topics."""
        for topic in self.topics:
            for number, partition in enumerate(topic.partitions):
                yield TopicPartition(topic.name, number), partition
