"""What the metadata log says. Every change of a cluster is one of these, and there is no other way to change it.

The state that they make is `ClusterMetadata`; which of them a command leads to is decided in `controller/`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from kreassign.model import ConfigResource, TopicPartition

UNASSIGNED = "00000000-0000-0000-0000-000000000000"
"""The directory id of a replica whose broker has not said yet where it put it."""


class LeaderRecovery(IntEnum):
    """Whether the leader was elected without being in sync and has not finished recovering, with Kafka's number."""

    RECOVERED = 0
    RECOVERING = 1


@dataclass(frozen=True, slots=True)
class LogDirInfo:
    """A log directory as its broker registers it: an absolute path, and the id written inside."""

    path: str
    directory_id: str


@dataclass(frozen=True, slots=True)
class BrokerRegistered:
    """A broker introduced itself, for the first time or again after a restart. It is fenced until it is ready."""

    broker_id: int
    host: str
    port: int
    rack: str | None
    log_dirs: tuple[LogDirInfo, ...]
    broker_epoch: int


@dataclass(frozen=True, slots=True)
class BrokerFenced:
    """A broker is not to lead or to be in sync any more, until it is unfenced."""

    broker_id: int


@dataclass(frozen=True, slots=True)
class BrokerUnfenced:
    """A broker is ready."""

    broker_id: int


@dataclass(frozen=True, slots=True)
class BrokerShuttingDown:
    """A broker asked to be relieved of its leaderships; it stays so until it registers again."""

    broker_id: int


@dataclass(frozen=True, slots=True)
class BrokerUnregistered:
    """A broker was taken out of the cluster. Replica lists go on naming it."""

    broker_id: int


@dataclass(frozen=True, slots=True)
class LogDirFailed:
    """A directory of a broker went offline, until the broker registers again."""

    broker_id: int
    directory_id: str


@dataclass(frozen=True, slots=True)
class TopicCreated:
    """There is a new topic, still without partitions. The id is a UUID in its usual text form."""

    name: str
    topic_id: str


@dataclass(frozen=True, slots=True)
class TopicDeleted:
    """A topic is gone, with its partitions, their moves and its configuration."""

    name: str


@dataclass(frozen=True, slots=True)
class PartitionCreated:
    """There is a new partition. `directories` has one directory id per replica, in the order of `replicas`.

    A cluster loaded from a snapshot begins with such records too, so that they can carry a move in progress.
    """

    topic_partition: TopicPartition
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    leader_epoch: int
    partition_epoch: int
    directories: tuple[str, ...]
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    leader_recovery: LeaderRecovery = LeaderRecovery.RECOVERED
    elr: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class PartitionChanged:
    """Something about a partition is different now; None is what stays as it is.

    Every such record adds one to the partition epoch. One that names a leader, be it the present one, adds one to the
    leader epoch.
    """

    topic_partition: TopicPartition
    replicas: tuple[int, ...] | None = None
    adding: tuple[int, ...] | None = None
    removing: tuple[int, ...] | None = None
    isr: tuple[int, ...] | None = None
    leader: int | None = None
    leader_recovery: LeaderRecovery | None = None
    directories: tuple[str, ...] | None = None
    elr: tuple[int, ...] | None = None
    last_known_elr: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class ConfigChanged:
    """A dynamic configuration was set, or taken back (value None). A broker resource named "" is the default of all."""

    resource: ConfigResource
    name: str
    value: str | None


Record = (
    BrokerRegistered
    | BrokerFenced
    | BrokerUnfenced
    | BrokerShuttingDown
    | BrokerUnregistered
    | LogDirFailed
    | TopicCreated
    | TopicDeleted
    | PartitionCreated
    | PartitionChanged
    | ConfigChanged
)
