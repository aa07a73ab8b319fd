"""The state of a cluster as its metadata log tells it. `ClusterMetadata.apply` is the only code that changes it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import assert_never

from kreassign.errors import InvariantBroken
from kreassign.model import NO_LEADER, ConfigResource, TopicPartition
from kreassign.model.config import ResourceType
from kreassign.twin.metadata.records import (
    UNASSIGNED,
    BrokerFenced,
    BrokerRegistered,
    BrokerShuttingDown,
    BrokerUnfenced,
    BrokerUnregistered,
    ConfigChanged,
    LeaderRecovery,
    LogDirFailed,
    LogDirInfo,
    PartitionChanged,
    PartitionCreated,
    Record,
    TopicCreated,
    TopicDeleted,
)


@dataclass(frozen=True, slots=True)
class BrokerState:
    """A registered broker. `failed_dirs` are ids of directories that went offline since it registered."""

    broker_id: int
    host: str
    port: int
    rack: str | None
    log_dirs: tuple[LogDirInfo, ...]
    broker_epoch: int
    fenced: bool = True
    shutting_down: bool = False
    failed_dirs: frozenset[str] = frozenset()

    @property
    def is_active(self) -> bool:
        """Whether the broker may lead and be in sync."""
        return not self.fenced and not self.shutting_down


@dataclass(frozen=True, slots=True)
class PartitionState:
    """What the controller stores of a partition (KIP-455, KIP-966).

    `replicas` is the full list: the target in its order, then what is being removed. `directories` has one directory
    id per replica. `elr` are eligible leaders outside the ISR, `last_known_elr` whoever else was the last to lead.
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

    @property
    def is_reassigning(self) -> bool:
        """Whether a move is in progress."""
        return bool(self.adding or self.removing)

    @property
    def has_leader(self) -> bool:
        """Whether anybody leads."""
        return self.leader != NO_LEADER

    @property
    def has_preferred_leader(self) -> bool:
        """Whether the first replica leads."""
        return bool(self.replicas) and self.leader == self.replicas[0]

    def directory_of(self, broker_id: int) -> str:
        """The directory id of the replica on this broker, which must be one."""
        return self.directories[self.replicas.index(broker_id)]

    def changed_by(self, record: PartitionChanged) -> PartitionState:
        """The partition as a record makes it."""
        return PartitionState(
            self.topic_partition,
            self.replicas if record.replicas is None else record.replicas,
            self.isr if record.isr is None else record.isr,
            self.leader if record.leader is None else record.leader,
            self.leader_epoch if record.leader is None else self.leader_epoch + 1,
            self.partition_epoch + 1,
            self._directories_after(record),
            self.adding if record.adding is None else record.adding,
            self.removing if record.removing is None else record.removing,
            self.leader_recovery if record.leader_recovery is None else record.leader_recovery,
            self.elr if record.elr is None else record.elr,
            self.last_known_elr if record.last_known_elr is None else record.last_known_elr,
        )

    def _directories_after(self, record: PartitionChanged) -> tuple[str, ...]:
        """Directories by place. Of two changes in one request each knows only the state before both.

        So the later one may leave the directories out although the earlier one has made their number another.
        """
        if record.directories is not None:
            return record.directories
        if record.replicas is None or len(record.replicas) == len(self.directories):
            return self.directories
        known = dict(zip(self.replicas, self.directories, strict=True))
        return tuple(known.get(broker, UNASSIGNED) for broker in record.replicas)


@dataclass(slots=True)
class TopicState:
    """A topic; its partitions by number. Changed by `ClusterMetadata.apply` alone."""

    name: str
    topic_id: str
    partitions: dict[int, PartitionState] = field(default_factory=dict)


@dataclass(slots=True)
class ClusterMetadata:
    """Everything that the controller knows, and indices of it. Read it freely; change it by `apply` alone.

    `offset` counts the records applied. `topic_names` leads from topic ids to names. `reassigning` are the partitions
    with a move in progress, `leaderless` those that nobody leads, `imbalanced` those not led by their first replica,
    `hosted` those that have a replica on a broker, whether it is registered or not.
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

    def is_active(self, broker_id: int) -> bool:
        """Whether a broker is registered, not fenced and not shutting down."""
        broker = self.brokers.get(broker_id)
        return broker is not None and broker.is_active

    def config(self, resource: ConfigResource, name: str) -> str | None:
        """The dynamic value of a key on this very resource; None if it has none."""
        return self.configs.get(resource, {}).get(name)

    def partitions_on(self, broker_id: int) -> list[PartitionState]:
        """The partitions that have a replica on this broker, by topic and number."""
        return [self._present(topic_partition) for topic_partition in sorted(self.hosted.get(broker_id, ()))]

    def copy(self) -> ClusterMetadata:
        """The same state, which goes on by itself."""
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

    # --- the one change ---------------------------------------------------------------------------------------

    def apply(self, record: Record) -> None:
        """Do what a record says."""
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
            case _:
                self.brokers[record.broker_id] = _changed(self.brokers[record.broker_id], record)
        self.offset += 1

    def _create_partition(self, record: PartitionCreated) -> None:
        topic_partition = record.topic_partition
        known = self.partition(topic_partition)
        self._store(
            PartitionState(
                topic_partition,
                record.replicas,
                record.isr,
                record.leader,
                record.leader_epoch,
                record.partition_epoch,
                record.directories,
                record.adding,
                record.removing,
                record.leader_recovery,
                record.elr,
                record.last_known_elr,
            )
        )
        self._move(topic_partition, set(known.replicas) if known else set(), set(record.replicas))

    def _change_partition(self, record: PartitionChanged) -> None:
        topic_partition = record.topic_partition
        old = self._present(topic_partition)
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
        if value is None:
            values.pop(name, None)
        else:
            values[name] = value
        if not values:
            del self.configs[resource]

    def _present(self, topic_partition: TopicPartition) -> PartitionState:
        partition = self.partition(topic_partition)
        if partition is None:
            raise InvariantBroken(f"the metadata log speaks of {topic_partition}, which it never created")
        return partition


def _file(index: set[TopicPartition], topic_partition: TopicPartition, *, belongs: bool) -> None:
    if belongs:
        index.add(topic_partition)
    else:
        index.discard(topic_partition)


def _changed(
    broker: BrokerState, record: BrokerFenced | BrokerUnfenced | BrokerShuttingDown | LogDirFailed
) -> BrokerState:
    match record:
        case BrokerFenced():
            return replace(broker, fenced=True)
        case BrokerUnfenced():
            return replace(broker, fenced=False)
        case BrokerShuttingDown():
            return replace(broker, shutting_down=True)
        case LogDirFailed(directory_id=directory_id):
            return replace(broker, failed_dirs=broker.failed_dirs | {directory_id})
        case _:
            assert_never(record)
