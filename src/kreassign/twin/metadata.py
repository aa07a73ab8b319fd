"""The metadata log: its records, the cluster state that results from them, and what each node knows of it.

Every change of a cluster is a record; which records a command leads to is
decided in `controller/`. `ClusterMetadata.apply` is the only code that changes the state.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields, replace
from enum import IntEnum
from operator import attrgetter
from typing import NamedTuple, assert_never

from kreassign.errors import InvariantBroken
from kreassign.model import NO_LEADER, ConfigResource, TopicPartition
from kreassign.model.cluster import ResourceType

# Records.

UNASSIGNED = "00000000-0000-0000-0000-000000000000"
"""The directory id of a replica whose broker has not reported its directory yet."""


class LeaderRecovery(IntEnum):
    """State of recovery after a leader was elected out of sync, with Kafka's number."""

    RECOVERED = 0
    RECOVERING = 1


class LogDirInfo(NamedTuple):
    """A log directory as its broker registers it: an absolute path, and the id stored in it."""

    path: str
    directory_id: str


@dataclass(frozen=True, slots=True)
class BrokerRegistered:
    """A broker registered, for the first time or after a restart. It is fenced until it is ready."""

    broker_id: int
    host: str
    port: int
    rack: str | None
    log_dirs: tuple[LogDirInfo, ...]
    broker_epoch: int


@dataclass(frozen=True, slots=True)
class BrokerFenced:
    """A broker must not lead or be in sync until it is unfenced."""

    broker_id: int


@dataclass(frozen=True, slots=True)
class BrokerUnfenced:
    """A broker is ready to lead and to be in sync."""

    broker_id: int


@dataclass(frozen=True, slots=True)
class BrokerShuttingDown:
    """A broker asked to hand over its leaderships; this holds until it registers again."""

    broker_id: int


@dataclass(frozen=True, slots=True)
class BrokerUnregistered:
    """A broker was removed from the cluster. Replica lists may still name it."""

    broker_id: int


@dataclass(frozen=True, slots=True)
class LogDirFailed:
    """A directory of a broker went offline, until the broker registers again."""

    broker_id: int
    directory_id: str


@dataclass(frozen=True, slots=True)
class TopicCreated:
    """A topic was created, still without partitions. The id is a UUID in its usual text form."""

    name: str
    topic_id: str


@dataclass(frozen=True, slots=True)
class TopicDeleted:
    """A topic was deleted, with its partitions, their moves and its configuration."""

    name: str


@dataclass(frozen=True, slots=True)
class PartitionCreated:
    """A partition was created. `directories` has one directory id per replica, in the order of `replicas`.

    A cluster loaded from a snapshot begins with such records too, so they can contain a move in progress.
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
    """A partition changed; fields that are None stay as they are.

    Every such record adds one to the partition epoch. A record that names a leader, even the present one, adds one to
    the leader epoch.
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
    """A dynamic configuration was set, or deleted (value None). A broker resource named "" is the default of all."""

    resource: ConfigResource
    name: str
    value: str | None


CORDONED_LOG_DIRS = "cordoned.log.dirs"


def cordoned_paths(value: str | None) -> frozenset[str]:
    """The directories in a value of `cordoned.log.dirs`; `*` stands for all of them."""
    return frozenset(path.strip() for path in (value or "").split(",") if path.strip())


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


class MetadataLog:
    """A store of metadata records. This one stores nothing: most twins are never reopened, and write many records."""

    def append(self, records: Iterable[Record]) -> None:
        """Write records, all of them or none."""

    def read(self) -> Iterator[Record]:
        """Read all records from the first."""
        return iter(())


# The state that results from the records.


@dataclass(frozen=True, slots=True)
class BrokerState(BrokerRegistered):
    """A broker as it registered, and what came since. `failed_dirs` are ids of directories that went offline.

    `cordon` is the value of `cordoned.log.dirs` by its last heartbeat: the controller hears of no change while the
    broker is down, and of no cordon from its registration until it is ready.
    """

    fenced: bool = True
    shutting_down: bool = False
    failed_dirs: frozenset[str] = frozenset()
    cordon: str | None = None

    @property
    def is_active(self) -> bool:
        """True if the broker may lead and be in sync."""
        return not self.fenced and not self.shutting_down


@dataclass(frozen=True, slots=True)
class PartitionState(PartitionCreated):
    """State of a partition at the controller, with the fields of the record that begins it (KIP-455, KIP-966).

    `replicas` is the full list: the target in its order, then the removed ones. `directories` has one directory id per
    replica. `elr` are eligible leaders outside the ISR, `last_known_elr` other brokers that led last.
    """

    @property
    def is_reassigning(self) -> bool:
        """True if a move is in progress."""
        return bool(self.adding or self.removing)

    @property
    def has_leader(self) -> bool:
        """True if the partition has a leader."""
        return self.leader != NO_LEADER

    @property
    def has_preferred_leader(self) -> bool:
        """True if the first replica leads."""
        return bool(self.replicas) and self.leader == self.replicas[0]

    def directory_of(self, broker_id: int) -> str:
        """The directory id of the replica on this broker; ValueError if there is none."""
        return self.directories[self.replicas.index(broker_id)]

    def changed_by(self, record: PartitionChanged) -> PartitionState:
        """The partition after a record."""
        changes = {name: value for name in _CHANGING if (value := getattr(record, name)) is not None}
        return replace(
            self,
            leader_epoch=self.leader_epoch + (record.leader is not None),
            partition_epoch=self.partition_epoch + 1,
            **{**changes, "directories": self._directories_after(record)},
        )

    def _directories_after(self, record: PartitionChanged) -> tuple[str, ...]:
        """Directory ids after a record, by position in `replicas`.

        Of two changes in one request each knows only the state before both, so the later one may leave the directories
        out although the earlier one changed their number.
        """
        if record.directories is not None:
            return record.directories
        if record.replicas is None or len(record.replicas) == len(self.directories):
            return self.directories
        known = dict(zip(self.replicas, self.directories, strict=True))
        return tuple(known.get(broker, UNASSIGNED) for broker in record.replicas)


_FIRST_FIELDS = attrgetter(*(one.name for one in fields(PartitionCreated)))
_CHANGING = tuple(one.name for one in fields(PartitionChanged) if one.name != "topic_partition")


@dataclass(slots=True)
class TopicState:
    """A topic with its partitions by number. Only `ClusterMetadata.apply` changes it."""

    name: str
    topic_id: str
    partitions: dict[int, PartitionState] = field(default_factory=dict)


@dataclass(slots=True)
class ClusterMetadata:
    """Everything that the controller knows, with indices. Only `apply` changes it.

    `offset` counts the records applied. `topic_names` maps topic ids to names. `reassigning` are the partitions with a
    move in progress, `leaderless` those without a leader, `imbalanced` those not led by their first replica, `hosted`
    those with a replica on a broker, whether it is registered or not.
    """

    brokers: dict[int, BrokerState] = field(default_factory=dict)
    topics: dict[str, TopicState] = field(default_factory=dict)
    configs: dict[ConfigResource, dict[str, str]] = field(default_factory=dict)
    topic_names: dict[str, str] = field(default_factory=dict)
    reassigning: set[TopicPartition] = field(default_factory=set)
    leaderless: set[TopicPartition] = field(default_factory=set)
    imbalanced: set[TopicPartition] = field(default_factory=set)
    hosted: dict[int, set[TopicPartition]] = field(default_factory=dict)
    offset: int = 0

    # --- reading ----------------------------------------------------------------------------------------------

    def partition(self, topic_partition: TopicPartition) -> PartitionState | None:
        """The partition; None if there is none."""
        topic = self.topics.get(topic_partition.topic)
        return topic.partitions.get(topic_partition.partition) if topic else None

    def present(self, topic_partition: TopicPartition) -> PartitionState:
        """The partition, which was created and not deleted."""
        partition = self.partition(topic_partition)
        if partition is None:
            raise InvariantBroken(f"the metadata log speaks of {topic_partition}, which it never created")
        return partition

    def is_active(self, broker_id: int) -> bool:
        """True if a broker is registered, not fenced and not shutting down."""
        broker = self.brokers.get(broker_id)
        return broker is not None and broker.is_active

    def config(self, resource: ConfigResource, name: str) -> str | None:
        """The dynamic value of a key on this very resource; None if it is not set."""
        return self.configs.get(resource, {}).get(name)

    def partitions_on(self, broker_id: int) -> list[PartitionState]:
        """The partitions that have a replica on this broker, by topic and number."""
        return [self.present(topic_partition) for topic_partition in sorted(self.hosted.get(broker_id, ()))]

    def copy(self) -> ClusterMetadata:
        """An independent copy of the state."""
        return ClusterMetadata(
            dict(self.brokers),
            {name: TopicState(name, topic.topic_id, dict(topic.partitions)) for name, topic in self.topics.items()},
            {resource: dict(values) for resource, values in self.configs.items()},
            dict(self.topic_names),
            set(self.reassigning),
            set(self.leaderless),
            set(self.imbalanced),
            {broker_id: set(hosted) for broker_id, hosted in self.hosted.items()},
            self.offset,
        )

    # --- applying records -------------------------------------------------------------------------------------

    def apply(self, record: Record) -> None:
        """Apply a record to the state."""
        match record:
            case PartitionChanged():
                self._change_partition(record)
            case PartitionCreated():
                self._create_partition(record)
            case ConfigChanged(resource, name, value):
                self._configure(resource, name, value)
            case TopicCreated(name, topic_id):
                self.topics[name] = TopicState(name, topic_id)
                self.topic_names[topic_id] = name
            case TopicDeleted(name):
                self._delete_topic(name)
            case BrokerRegistered(broker_id, host, port, rack, log_dirs, broker_epoch):
                self.brokers[broker_id] = BrokerState(broker_id, host, port, rack, log_dirs, broker_epoch)
            case BrokerUnregistered(broker_id):
                del self.brokers[broker_id]
            case BrokerUnfenced(broker_id):
                cordon = self.config(ConfigResource.broker(broker_id), CORDONED_LOG_DIRS)
                self.brokers[broker_id] = replace(self.brokers[broker_id], fenced=False, cordon=cordon)
            case _:
                self.brokers[record.broker_id] = _changed(self.brokers[record.broker_id], record)
        self.offset += 1

    def _create_partition(self, record: PartitionCreated) -> None:
        topic_partition = record.topic_partition
        known = self.partition(topic_partition)
        self._store(PartitionState(*_FIRST_FIELDS(record)))
        self._move(topic_partition, set(known.replicas) if known else set(), set(record.replicas))

    def _change_partition(self, record: PartitionChanged) -> None:
        topic_partition = record.topic_partition
        old = self.present(topic_partition)
        new = old.changed_by(record)
        self._store(new)
        if record.replicas is not None:
            self._move(topic_partition, set(old.replicas), set(new.replicas))

    def _store(self, partition: PartitionState) -> None:
        topic_partition = partition.topic_partition
        self.topics[topic_partition.topic].partitions[topic_partition.partition] = partition
        _file(self.reassigning, topic_partition, belongs=partition.is_reassigning)
        _file(self.leaderless, topic_partition, belongs=not partition.has_leader)
        _file(self.imbalanced, topic_partition, belongs=not partition.has_preferred_leader)

    def _move(self, topic_partition: TopicPartition, before: set[int], after: set[int]) -> None:
        for broker_id in after - before:
            self.hosted.setdefault(broker_id, set()).add(topic_partition)
        for broker_id in before - after:
            self._leave(topic_partition, broker_id)

    def _leave(self, topic_partition: TopicPartition, broker_id: int) -> None:
        hosted = self.hosted[broker_id]
        hosted.discard(topic_partition)
        if not hosted:
            del self.hosted[broker_id]

    def _delete_topic(self, name: str) -> None:
        topic = self.topics.pop(name)
        del self.topic_names[topic.topic_id]
        self.configs.pop(ConfigResource(ResourceType.TOPIC, name), None)
        for partition in topic.partitions.values():
            for index in (self.reassigning, self.leaderless, self.imbalanced):
                index.discard(partition.topic_partition)
            for broker_id in set(partition.replicas):
                self._leave(partition.topic_partition, broker_id)

    def _configure(self, resource: ConfigResource, name: str, value: str | None) -> None:
        values = self.configs.setdefault(resource, {})
        configure(values, name, value)
        if not values:
            del self.configs[resource]
        if name == CORDONED_LOG_DIRS and resource.type is ResourceType.BROKER and resource.name:
            broker = self.brokers.get(int(resource.name))
            if broker is not None and not broker.fenced:
                self.brokers[broker.broker_id] = replace(broker, cordon=value)


def configure(values: dict[str, str], name: str, value: str | None) -> None:
    """Set a key of a configuration, or delete it (None)."""
    if value is None:
        values.pop(name, None)
    else:
        values[name] = value


def _file(index: set[TopicPartition], topic_partition: TopicPartition, *, belongs: bool) -> None:
    if belongs:
        index.add(topic_partition)
    else:
        index.discard(topic_partition)


def _changed(broker: BrokerState, record: BrokerFenced | BrokerShuttingDown | LogDirFailed) -> BrokerState:
    match record:
        case BrokerFenced():
            return replace(broker, fenced=True)
        case BrokerShuttingDown():
            return replace(broker, shutting_down=True)
        case LogDirFailed(directory_id=directory_id):
            return replace(broker, failed_dirs=broker.failed_dirs | {directory_id})
        case _:
            assert_never(record)


# Metadata of nodes that have not read the latest records. A node that is up to date has no copy: it uses the metadata
# itself. A node gets a copy only when it falls behind.


class _StaleView:
    """A copy of the metadata that is `behind` records late; None if it stands still."""

    def __init__(self, metadata: ClusterMetadata) -> None:
        self.metadata = metadata
        self.behind: int | None = None
        self._unread: deque[Record] = deque()

    def apply(self, records: Iterable[Record]) -> None:
        """Queue written records, and apply those that are old enough."""
        self._unread.extend(records)
        while self.behind is not None and len(self._unread) > self.behind:
            self.metadata.apply(self._unread.popleft())


class StaleViews:
    """Metadata views of the nodes that are behind.

    A view holds for a whole node, or for its answers to one API alone: then its other answers are up to date. In place
    of a node, None stands for all nodes.
    """

    def __init__(self, metadata: ClusterMetadata) -> None:
        self._metadata = metadata
        self._views: dict[tuple[int | None, int | None], _StaleView] = {}

    def of(self, node_id: int, api_key: int | None = None) -> ClusterMetadata:
        """The metadata that a node knows, or answers a request of this API from."""
        found = None if api_key is None else self.of_answers(node_id, api_key)
        if found is None and (view := self._views.get((node_id, None))) is not None:
            found = view.metadata
        return self._metadata if found is None else found

    def of_answers(self, node_id: int, api_key: int) -> ClusterMetadata | None:
        """The metadata from which a node answers this API, if only these answers are held back; else None."""
        view = self._views.get((node_id, api_key)) or self._views.get((None, api_key))
        return None if view is None else view.metadata

    def hold_back(self, node_id: int | None, behind: int | None = None, api_key: int | None = None) -> None:
        """Keep a node behind from now on: by so many records, or (None) where it is now.

        For a node that is behind already only the lag changes; its unread records are kept.
        """
        held = (node_id, api_key)
        if held not in self._views:
            self._views[held] = _StaleView(self._metadata.copy())
        self._views[held].behind = behind

    def forget(self, node_id: int | None, api_key: int) -> None:
        """Let a node answer requests of this API as if it had read no record."""
        self._views[node_id, api_key] = _StaleView(ClusterMetadata())

    def release(self, node_id: int | None, api_key: int | None = None) -> None:
        """Bring a node up to date."""
        self._views.pop((node_id, api_key), None)

    def apply(self, records: Iterable[Record]) -> None:
        """Pass applied records on to the views."""
        for view in self._views.values():
            view.apply(records)
