"""Brokers act on every metadata record that is about their copies."""

from __future__ import annotations

from typing import assert_never

from kreassign.model import ConfigResource
from kreassign.model.config import ResourceType
from kreassign.model.throttle import (
    FOLLOWER_THROTTLED_RATE,
    FOLLOWER_THROTTLED_REPLICAS,
    LEADER_THROTTLED_RATE,
    LEADER_THROTTLED_REPLICAS,
    LOG_DIR_RATE,
)
from kreassign.twin.metadata.records import (
    BrokerFenced,
    BrokerRegistered,
    BrokerShuttingDown,
    BrokerUnfenced,
    BrokerUnregistered,
    ConfigChanged,
    LogDirFailed,
    LogDirInfo,
    PartitionChanged,
    PartitionCreated,
    Record,
    TopicCreated,
    TopicDeleted,
)
from kreassign.twin.metadata.state import ClusterMetadata, PartitionState
from kreassign.twin.replication.directory_moves import DirectoryMoves
from kreassign.twin.replication.partition_logs import EMPTY, NOWHERE
from kreassign.twin.replication.replicas import Replicas
from kreassign.twin.replication.retention import LOG_SETTINGS, kept_bytes, tiering_of
from kreassign.twin.replication.throttles import UNTHROTTLED, ThrottledReplicas, TopicThrottle, parse_rate

CORDONED_LOG_DIRS = "cordoned.log.dirs"
SKIPS_TIERED = "follower.fetch.last.tiered.offset.enable"
"""Whether an empty replica of a tiered topic begins after all that remote storage has (KIP-1023)."""


class RecordApplier:
    """Applies metadata records to copies, leaders and throttles."""

    def __init__(self, replicas: Replicas, moves: DirectoryMoves) -> None:
        self.replicas = replicas
        self._moves = moves
        self._directories: dict[str, int] = {}
        self._skips_tiered: dict[str, bool] = {}

    def apply(self, record: Record, metadata: ClusterMetadata) -> None:
        """Act on a record that `metadata` has just applied."""
        match record:
            case PartitionChanged(topic_partition) | PartitionCreated(topic_partition):
                partition = metadata.partition(topic_partition)
                assert partition is not None
                self._conform(partition, metadata)
            case ConfigChanged(resource, name) if resource.type is ResourceType.TOPIC and name in LOG_SETTINGS:
                self._keep(resource.name, metadata)
            case ConfigChanged(resource, name, value):
                self.configure(resource, name, value)
            case TopicDeleted(name):
                self._delete_topic(name)
            case BrokerRegistered(broker_id=broker_id, log_dirs=log_dirs):
                self.register(broker_id, log_dirs)
                self.set_eligible(broker_id, is_eligible=False)
            case BrokerFenced(broker_id) | BrokerUnfenced(broker_id) | BrokerShuttingDown(broker_id):
                self.set_eligible(broker_id, is_eligible=metadata.is_active(broker_id))
            case BrokerUnregistered(broker_id):
                self.set_eligible(broker_id, is_eligible=False)
            case TopicCreated() | LogDirFailed():
                pass  # A topic without partitions has no copies; of a failed directory the broker knew first.
            case _:
                assert_never(record)

    # Partitions

    def _conform(self, partition: PartitionState, metadata: ClusterMetadata) -> None:
        """Make copies, leader and ISR of a partition what the record says."""
        replicas, logs = self.replicas, self.replicas.state.logs
        row = logs.row(partition.topic_partition)
        if row is None:
            row = self._create(partition, metadata)
        # In ZooKeeper mode a replica can be wanted on a broker that does not exist.
        found = (replicas.state.fleet.find_broker(broker) for broker in partition.replicas)
        wanted = {broker for broker in found if broker is not None}
        present = {replicas.state.fleet.owner_of(log_dir) for log_dir in logs.replica_dirs(row)}
        leader = self._broker(partition.leader)
        if wanted != present or leader != int(logs.table["leader"][row]):
            with replicas.changing(row):
                replicas.lead(row, leader)
                for broker in sorted(present - wanted):
                    self._moves.cancel(row, broker)
                    replicas.drop(row, broker)
                for broker in sorted(wanted - present):
                    log_dir = self._assigned_dir(partition, broker)
                    replicas.place(row, broker, log_dir, skips_tiered=self._skips(broker))
        replicas.isr.set(row, frozenset(map(self._broker, partition.isr)))

    def _create(self, partition: PartitionState, metadata: ClusterMetadata) -> int:
        """A new, empty partition: all of its replicas have everything from the start."""
        replicas = self.replicas
        row = replicas.state.logs.add(partition.topic_partition, EMPTY, replicas.state.now_ms)
        settings = metadata.configs.get(ConfigResource.topic(partition.topic_partition.topic), {})
        replicas.state.logs.keep(row, kept_bytes(settings), tiering_of(settings))
        with replicas.changing(row):
            for broker in map(self._broker, partition.replicas):
                replicas.log_dirs.place(row, broker, self._assigned_dir(partition, broker))
            replicas.lead(row, self._broker(partition.leader))
        return row

    def _assigned_dir(self, partition: PartitionState, broker: int) -> int | None:
        """Where the controller says that a replica is, if it knows."""
        place = partition.replicas.index(self.replicas.state.fleet.broker_ids[broker])
        return self.find_dir(broker, partition.directories[place])

    def _delete_topic(self, topic: str) -> None:
        """Remove all copies of a topic."""
        replicas = self.replicas
        for row in replicas.state.logs.rows(topic):
            with replicas.changing(row):
                replicas.lead(row, NOWHERE)
                for log_dir in replicas.state.logs.replica_dirs(row):
                    broker = replicas.state.fleet.owner_of(log_dir)
                    self._moves.cancel(row, broker)
                    replicas.drop(row, broker)
            replicas.state.logs.remove(row)
        replicas.state.throttles.pop(topic, None)

    def _broker(self, broker: int) -> int:
        return NOWHERE if broker < 0 else self.replicas.state.fleet.broker(broker)

    # Brokers

    def register(self, broker_id: int, log_dirs: tuple[LogDirInfo, ...]) -> None:
        """Learn which log directory has which id."""
        for log_dir in log_dirs:
            self._directories[log_dir.directory_id] = self.replicas.state.fleet.log_dir(broker_id, log_dir.path)

    def find_dir(self, broker: int, directory_id: str) -> int | None:
        """The log directory of a broker (both by index) with an id; None if the broker has none with it."""
        log_dir = self._directories.get(directory_id)
        return log_dir if log_dir is not None and self.replicas.state.fleet.owner_of(log_dir) == broker else None

    def set_eligible(self, broker: int, *, is_eligible: bool) -> None:
        """A broker may join ISRs, or not because it is fenced or shutting down."""
        self.replicas.isr.set_eligible(self._broker(broker), is_eligible=is_eligible)

    # Configuration

    def configure(self, resource: ConfigResource, name: str, value: str | None) -> None:
        """A dynamic configuration was set, or deleted (None)."""
        if resource.type is ResourceType.BROKER and name == SKIPS_TIERED:
            self._skips_tiered.pop(resource.name, None)
            self._skips_tiered |= {} if value is None else {resource.name: value.strip().lower() == "true"}
        elif resource.type is ResourceType.TOPIC:
            self._configure_topic(resource.name, name, value)
        elif resource.name and (broker := self.replicas.state.fleet.find_broker(int(resource.name))) is not None:
            self._configure_broker(broker, name, value)

    def _skips(self, broker: int) -> bool:
        """Whether a broker lets new replicas skip what is tiered: by its own setting, or by that of all."""
        own = str(self.replicas.state.fleet.broker_ids[broker])
        return self._skips_tiered.get(own, self._skips_tiered.get("", False))

    def _keep(self, topic: str, metadata: ClusterMetadata) -> None:
        settings = metadata.configs.get(ConfigResource.topic(topic), {})
        for row in self.replicas.state.logs.rows(topic):
            with self.replicas.changing(row):
                self.replicas.state.logs.keep(row, kept_bytes(settings), tiering_of(settings))

    def _configure_broker(self, broker: int, name: str, value: str | None) -> None:
        replicas, fleet = self.replicas, self.replicas.state.fleet
        if name == CORDONED_LOG_DIRS:
            fleet.cordon(broker, value)
            return
        limits = {
            LEADER_THROTTLED_RATE: fleet.leader_limit,
            FOLLOWER_THROTTLED_RATE: fleet.follower_limit,
            LOG_DIR_RATE: fleet.dir_limit,
        }
        if name in limits:
            limits[name][broker] = parse_rate(value)
            replicas.state.must_share = True

    def _configure_topic(self, topic: str, name: str, value: str | None) -> None:
        old = self.replicas.state.throttles.get(topic, UNTHROTTLED)
        if name == LEADER_THROTTLED_REPLICAS:
            listed = ThrottledReplicas.parse(value)
            self._throttle(topic, TopicThrottle(listed, old.followers), old.leaders.differs(listed))
        elif name == FOLLOWER_THROTTLED_REPLICAS:
            listed = ThrottledReplicas.parse(value)
            self._throttle(topic, TopicThrottle(old.leaders, listed), old.followers.differs(listed))

    def _throttle(self, topic: str, throttle: TopicThrottle, partitions: frozenset[int] | None) -> None:
        """Exchange the lists of a topic; `partitions` are those that may be concerned, None for all."""
        replicas = self.replicas
        rows = [
            row
            for row in replicas.state.logs.rows(topic)
            if partitions is None or int(replicas.state.logs.table["partition"][row]) in partitions
        ]
        replicas.exchange_throttle(topic, throttle, rows)
