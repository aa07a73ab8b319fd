"""Brokers in time: bytes are copied, fall behind, catch up and are deleted, in virtual milliseconds.

A fluid model that goes from event to event. Copies in sync cost nothing: their sizes are linear in time. Copies out of
sync are flows, each with its fair share of the disks, networks and throttles on its path.

Not modelled: producers are never slowed down and do not wait for acknowledgements (acks=1); consumers read nothing;
records have one size; logs have no segments, so that sizes are smooth. Real brokers hand out whole answers in turn
instead of flows: the time when all copies of a plan are done is right, the order among similar copies is not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import assert_never

import numpy as np
from numpy.typing import NDArray

from kreassign.errors import InputError
from kreassign.model import ConfigResource, TopicPartition
from kreassign.model.cluster import ResourceType
from kreassign.model.throttle import (
    FOLLOWER_THROTTLED_RATE,
    FOLLOWER_THROTTLED_REPLICAS,
    LEADER_THROTTLED_RATE,
    LEADER_THROTTLED_REPLICAS,
    LOG_DIR_RATE,
)
from kreassign.twin.metadata import (
    CORDONED_LOG_DIRS,
    BrokerFenced,
    BrokerRegistered,
    BrokerShuttingDown,
    BrokerUnfenced,
    BrokerUnregistered,
    ClusterMetadata,
    ConfigChanged,
    LogDirFailed,
    LogDirInfo,
    PartitionChanged,
    PartitionCreated,
    PartitionState,
    Record,
    TopicCreated,
    TopicDeleted,
)
from kreassign.twin.replication.hardware import (
    UNTHROTTLED,
    BrokerHardware,
    ReplicationSettings,
    ThrottledReplicas,
    TopicThrottle,
    parse_rate,
)
from kreassign.twin.replication.partition_logs import (
    EMPTY,
    LOG_SETTINGS,
    NOWHERE,
    RETENTION_BYTES,
    Traffic,
    kept_bytes,
    tiering_of,
)
from kreassign.twin.replication.readings import ReplicaReadings
from kreassign.twin.replication.replicas import DirectoryMoves, Replicas
from kreassign.twin.replication.state import CopyKey, ReplicaEvent
from kreassign.twin.replication.stepper import ReplicationSteps

# Metadata records: what brokers do with their copies when they read a record.

SKIPS_TIERED = "follower.fetch.last.tiered.offset.enable"
"""True if an empty replica of a tiered topic begins after all that remote storage has (KIP-1023)."""


class RecordApplier:
    """Applies metadata records to copies, leaders and throttles."""

    def __init__(self, replicas: Replicas, moves: DirectoryMoves) -> None:
        self.replicas = replicas
        self._moves = moves
        self._directories: dict[str, int] = {}
        self._skips_tiered: dict[str, bool] = {}

    def apply(self, record: Record, metadata: ClusterMetadata) -> None:
        """Apply a record that `metadata` has just applied."""
        match record:
            case PartitionChanged(topic_partition) | PartitionCreated(topic_partition):
                self._conform(metadata.present(topic_partition), metadata)
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
                pass  # A topic without partitions has no copies; the broker knew of a failed directory first.
            case _:
                assert_never(record)

    # Partitions

    def _conform(self, partition: PartitionState, metadata: ClusterMetadata) -> None:
        """Bring the copies, leader and ISR of a partition in line with its record."""
        replicas, logs = self.replicas, self.replicas.state.logs
        row = logs.row(partition.topic_partition)
        if row is None:
            row = self._create(partition, metadata)
        # In ZooKeeper mode a replica can be assigned to a broker that does not exist.
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
        """Create an empty partition, with all replicas complete from the start; return its row."""
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
        """The log directory of a replica according to the controller; None if it does not know."""
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
            replicas.log_dirs.forget(row)
            replicas.state.logs.remove(row)
        replicas.state.throttles.pop(topic, None)

    def _broker(self, broker: int) -> int:
        return NOWHERE if broker < 0 else self.replicas.state.fleet.broker(broker)

    # Brokers

    def register(self, broker_id: int, log_dirs: tuple[LogDirInfo, ...]) -> None:
        """Note the directory ids of a broker."""
        for log_dir in log_dirs:
            self._directories[log_dir.directory_id] = self.replicas.state.fleet.log_dir(broker_id, log_dir.path)

    def find_dir(self, broker: int, directory_id: str) -> int | None:
        """The log directory of a broker (both by index) with an id; None if the broker has none with it."""
        log_dir = self._directories.get(directory_id)
        return log_dir if log_dir is not None and self.replicas.state.fleet.owner_of(log_dir) == broker else None

    def set_eligible(self, broker: int, *, is_eligible: bool) -> None:
        """Allow or forbid a broker to join ISRs; fenced brokers and those shutting down may not."""
        self.replicas.isr.set_eligible(self._broker(broker), is_eligible=is_eligible)

    # Configuration

    def configure(self, resource: ConfigResource, name: str, value: str | None) -> None:
        """Apply a dynamic configuration that was set, or deleted (None)."""
        if resource.type is ResourceType.BROKER and name == SKIPS_TIERED:
            self._skips_tiered.pop(resource.name, None)
            self._skips_tiered |= {} if value is None else {resource.name: value.strip().lower() == "true"}
        elif resource.type is ResourceType.TOPIC:
            self._configure_topic(resource.name, name, value)
        elif resource.name and (broker := self.replicas.state.fleet.find_broker(int(resource.name))) is not None:
            self._configure_broker(broker, name, value)

    def _skips(self, broker: int) -> bool:
        """True if new replicas on a broker skip the tiered part: by its own setting, else by the default of all."""
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
        """Replace the throttle lists of a topic; `partitions` are those that may have changed, None for all."""
        replicas = self.replicas
        rows = [
            row
            for row in replicas.state.logs.rows(topic)
            if partitions is None or int(replicas.state.logs.table["partition"][row]) in partitions
        ]
        replicas.exchange_throttle(topic, throttle, rows)


# Load a whole cluster at once: arrays instead of a million single changes.


def load_cluster(
    applier: RecordApplier,
    metadata: ClusterMetadata,
    traffic: Mapping[TopicPartition, Traffic],
    held_bytes: Mapping[tuple[TopicPartition, int], int],
) -> None:
    """Load a whole cluster. Nothing may have been loaded before.

    Members of the ISR are complete. The others have the first `held_bytes`, by partition and broker, of the leader's
    log; without an entry, adding replicas are empty and all others complete. A partition without `traffic` is empty.
    """
    replicas = applier.replicas
    if len(replicas.state.logs):
        raise InputError("the twin has partitions already; load a cluster into a new one")
    for broker in metadata.brokers.values():
        applier.register(broker.broker_id, broker.log_dirs)
        applier.set_eligible(broker.broker_id, is_eligible=broker.is_active)
    behind = list(_take_all(applier, metadata, traffic))
    _sum_up(replicas)
    for row, broker_id in behind:
        _set_back(replicas, row, broker_id, metadata, held_bytes)
    for resource, values in metadata.configs.items():
        for name, value in values.items():
            if resource.type is not ResourceType.TOPIC or name not in LOG_SETTINGS:
                applier.configure(resource, name, value)


def _take_all(
    applier: RecordApplier, metadata: ClusterMetadata, traffic: Mapping[TopicPartition, Traffic]
) -> Iterator[tuple[int, int]]:
    for topic in metadata.topics.values():
        applier.replicas.state.logs.reserve(len(topic.partitions))
        settings = metadata.configs.get(ConfigResource.topic(topic.name), {})
        tiering = tiering_of(settings)
        for partition in topic.partitions.values():
            found = traffic.get(partition.topic_partition, EMPTY)
            if RETENTION_BYTES in settings or tiering is not None:
                found = replace(found, retention_bytes=kept_bytes(settings), tiering=tiering)
            yield from _take(applier, partition, found)


def _take(applier: RecordApplier, partition: PartitionState, traffic: Traffic) -> Iterator[tuple[int, int]]:
    """Add one partition as if all of it were in sync; yield row and broker id of the replicas that are not."""
    replicas = applier.replicas
    row = replicas.state.logs.add(partition.topic_partition, traffic, replicas.state.now_ms)
    dirs = []
    for broker_id, directory_id in zip(partition.replicas, partition.directories, strict=True):
        broker = replicas.state.fleet.broker(broker_id)
        log_dir = applier.find_dir(broker, directory_id)
        if log_dir is None:
            log_dir = replicas.log_dirs.choose(broker)
        replicas.log_dirs.log_counts[log_dir] += 1
        dirs.append(log_dir)
        if broker_id == partition.leader:
            replicas.state.logs.set_leader(row, broker, log_dir)
        elif broker_id not in partition.isr:
            yield row, broker_id
    replicas.state.logs.place_all(row, dirs)


def _sum_up(replicas: Replicas) -> None:
    """Compute the traffic of all partitions, with every replica in sync and no topic throttled."""
    logs, fleet, in_sync_traffic = replicas.state.logs, replicas.state.fleet, replicas.state.in_sync_traffic
    table, brokers, log_dirs = logs.table, len(fleet.broker_ids), len(fleet.paths)
    leaders = np.where(logs.dirs[:, 0] == NOWHERE, NOWHERE, table["leader"])
    rates = np.where(table["flows"], table["write_rate"], 0.0)
    growths = np.where(table["full_length"], 0.0, rates)
    sizes = table["end"] - table["start"]
    led = leaders != NOWHERE
    in_sync_traffic.net_in += np.bincount(leaders[led], rates[led], brokers)
    for dirs in logs.dirs.T:
        there = dirs != NOWHERE
        in_sync_traffic.size += np.bincount(dirs[there], sizes[there], log_dirs)
        in_sync_traffic.write += np.bincount(dirs[there], rates[there], log_dirs)
        in_sync_traffic.growth += np.bincount(dirs[there], growths[there], log_dirs)
        owners = fleet.owner[dirs]
        follows = there & led & (owners != leaders)
        _sum_up_followers(replicas, leaders[follows], owners[follows], rates[follows])
    for row in np.flatnonzero(np.isfinite(table["retention"]) & (rates > 0) & ~table["full_length"]).tolist():
        replicas.expect_retention(row)
    replicas.state.must_share = True


def _sum_up_followers(
    replicas: Replicas, leaders: NDArray[np.int32], followers: NDArray[np.int32], rates: NDArray[np.float64]
) -> None:
    in_sync_traffic, brokers = replicas.state.in_sync_traffic, len(replicas.state.fleet.broker_ids)
    in_sync_traffic.net_out += np.bincount(leaders, rates, brokers)
    in_sync_traffic.net_in += np.bincount(followers, rates, brokers)
    pairs = leaders.astype(np.int64) * brokers + followers
    in_sync_traffic.followed += np.bincount(pairs, minlength=brokers**2).reshape(brokers, brokers).astype(np.int32)
    in_sync_traffic.sent += np.bincount(pairs, rates, brokers**2).reshape(brokers, brokers)


def _set_back(
    replicas: Replicas,
    row: int,
    broker_id: int,
    metadata: ClusterMetadata,
    held_bytes: Mapping[tuple[TopicPartition, int], int],
) -> None:
    topic_partition, broker = replicas.state.logs.topic_partition(row), replicas.state.fleet.broker(broker_id)
    key = CopyKey(row, broker)
    partition = metadata.partition(topic_partition)
    is_new = partition is not None and broker_id in partition.adding
    with replicas.changing(row):
        replicas.isr.outside.add((row, broker))
        replicas.mark_behind(row, broker, replicas.state.dir_of(row, broker))
        entry = replicas.state.copies.entry(key)
        held = held_bytes.get((topic_partition, broker_id), 0 if is_new else float(entry["position"] - entry["begin"]))
        entry["position"] = min(float(entry["begin"]) + held, float(entry["position"]))
        entry["started"] = False
    replicas.start_later(key, int(replicas.state.copies.entry(key)["serial"]))


# Replication of a cluster, for the core of a twin.

DEFAULT_SETTINGS = ReplicationSettings()


class Replication:
    """Copies of a cluster and all changes of them.

    Usage: `load` once, `apply` every record after the metadata has applied it, `advance` time and react to the events
    that it reports. `readings` has the brokers' answers about their copies.
    """

    def __init__(
        self,
        hardware: Mapping[int, BrokerHardware],
        settings: ReplicationSettings = DEFAULT_SETTINGS,
        now_ms: int = 0,
    ) -> None:
        self._replicas = Replicas(hardware, settings, now_ms)
        self._moves = DirectoryMoves(self._replicas)
        self._applier = RecordApplier(self._replicas, self._moves)
        self._progress = ReplicationSteps(self._replicas, self._moves)
        self.readings = ReplicaReadings(self._replicas)

    @property
    def now_ms(self) -> int:
        """The virtual time in milliseconds."""
        return self._replicas.state.now_ms

    @property
    def is_copying(self) -> bool:
        """True if any copy is catching up, or soon will: whether waiting for copies makes sense."""
        self._progress.resolve()
        live = self._replicas.state.copies.live
        begins = ~live["started"] & ~live["is_future"]
        return bool(self._replicas.isr.joining) or bool((begins | (live["rate"] > 0)).any())

    def load(
        self,
        metadata: ClusterMetadata,
        traffic: Mapping[TopicPartition, Traffic],
        held_bytes: Mapping[tuple[TopicPartition, int], int] | None = None,
    ) -> None:
        """Load an existing cluster: see `load_cluster`. All brokers, which must have hardware, count as up."""
        load_cluster(self._applier, metadata, traffic, held_bytes or {})

    def apply(self, record: Record, metadata: ClusterMetadata) -> None:
        """Apply a record that `metadata` has just applied."""
        self._applier.apply(record, metadata)

    # Time

    def next_event_ms(self) -> int | None:
        """Time of the next event if nothing is changed before; None for never.

        Includes events that are not reported, such as the first fetch of a copy.
        """
        return self._progress.next_ms

    def advance(self, to_ms: int) -> tuple[ReplicaEvent, ...]:
        """Let time pass until an event is reported, or until `to_ms`; `now_ms` tells which.

        The events of one millisecond come together, sorted by kind and replica. React to them (with records, or not at
        all) before more time passes.
        """
        if to_ms < self.now_ms:
            raise InputError(f"time cannot go back from {self.now_ms} ms to {to_ms} ms")
        while (next_ms := self._progress.next_ms) is not None and next_ms <= to_ms:
            if not self._replicas.state.events:
                self._progress.move_on(next_ms)
            if self._replicas.state.events:
                return self._take_events()
        self._replicas.state.now_ms = to_ms
        return ()

    def _take_events(self) -> tuple[ReplicaEvent, ...]:
        events = sorted(self._replicas.state.events, key=lambda event: (type(event).__name__, event))
        self._replicas.state.events.clear()
        return tuple(events)

    # Actions of operators and producers

    def alter_log_dir(self, topic_partition: TopicPartition, broker: int, path: str) -> bool:
        """Move a copy to another log directory of its broker; False if the broker has no such copy.

        In that case the broker uses the directory for the copy it may get later. Naming the present directory cancels a
        running move. Raises InputError for a directory that the broker does not have.
        """
        replicas, log_dir = self._replicas, self._replicas.state.fleet.log_dir(broker, path)
        row, index = replicas.state.logs.row(topic_partition), replicas.state.fleet.broker(broker)
        if row is None or replicas.state.dir_of(row, index) == NOWHERE:
            replicas.log_dirs.wanted[topic_partition, index] = log_dir
            return False
        self._moves.alter(row, index, log_dir)
        return True

    def set_write_rate(self, topic_partition: TopicPartition, bytes_per_s: float) -> None:
        """Set the rate at which producers write to a partition from now on."""
        row = self._replicas.state.logs.row(topic_partition)
        if row is None or bytes_per_s < 0:
            raise InputError(f"cannot write {bytes_per_s} bytes per second to {topic_partition}")
        with self._replicas.changing(row):
            self._replicas.state.logs.table["write_rate"][row] = bytes_per_s

    # Failures

    def crash(self, broker: int) -> None:
        """Stop a broker, or freeze it: it neither writes nor sends nor fetches. The controller is not informed."""
        self._set_up(broker, is_up=False)

    def restore(self, broker: int) -> None:
        """Bring a broker back with its data. It must then be unfenced to join ISRs."""
        self._set_up(broker, is_up=True)

    def _set_up(self, broker: int, *, is_up: bool) -> None:
        replicas, index = self._replicas, self._replicas.state.fleet.broker(broker)
        if bool(replicas.state.fleet.up[index]) == is_up:
            return
        replicas.positions.settle()
        replicas.state.fleet.up[index] = is_up
        replicas.reconsider(index)
        if is_up:
            replicas.start_again(index)

    def set_link(self, one: int, other: int, *, is_cut: bool) -> None:
        """Cut the link between two brokers in both directions, or restore it."""
        replicas = self._replicas
        first, second = replicas.state.fleet.broker(one), replicas.state.fleet.broker(other)
        replicas.positions.settle()
        replicas.state.fleet.cut[first, second] = replicas.state.fleet.cut[second, first] = is_cut
        replicas.reconsider(first)

    def set_remote(self, broker: int, *, is_cut: bool) -> None:
        """Cut a broker off from remote storage: new copies of tiered topics do not begin there; or reconnect it."""
        self._replicas.state.fleet.has_remote[self._replicas.state.fleet.broker(broker)] = not is_cut

    def slow_dir(self, broker: int, path: str, factor: float) -> None:
        """Let a log directory run at `factor` times its speed; 1.0 restores it."""
        self._replicas.positions.settle()
        self._replicas.state.fleet.slow(self._replicas.state.fleet.log_dir(broker, path), factor)
        self._replicas.state.must_share = True

    def set_filled(self, broker: int, path: str, *, is_filled: bool) -> None:
        """Let something other than Kafka take all the room of a log directory (`LogDirFull` follows), or free it."""
        self._replicas.positions.settle()
        self._replicas.state.fleet.occupy(self._replicas.state.fleet.log_dir(broker, path), is_occupied=is_filled)
        self._replicas.state.must_share = True

    def fail_dir(self, broker: int, path: str) -> None:
        """Take a log directory offline with all copies in it. The controller is not informed."""
        log_dir = self._replicas.state.fleet.log_dir(broker, path)
        self._moves.fail(log_dir)
        self._set_failed(log_dir, has_failed=True)

    def restore_dir(self, broker: int, path: str) -> None:
        """Bring a failed log directory back with its data."""
        self._set_failed(self._replicas.state.fleet.log_dir(broker, path), has_failed=False)

    def _set_failed(self, log_dir: int, *, has_failed: bool) -> None:
        self._replicas.positions.settle()
        self._replicas.state.fleet.failed[log_dir] = has_failed
        self._replicas.reconsider_dir(log_dir)
