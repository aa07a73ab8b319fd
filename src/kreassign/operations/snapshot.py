"""What a cluster looks like now: what the tables hold, and the whole with configuration, offsets and write rates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from kreassign.admin import AdminClient
from kreassign.clock import Clock, SystemClock
from kreassign.errors import Unsupported
from kreassign.executor.cluster.write_rates import OffsetSamples, sample_offsets
from kreassign.model import (
    Broker,
    Cluster,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    OngoingReassignment,
    Partition,
    Topic,
    TopicPartitionReplica,
)
from kreassign.model.config import ResourceType
from kreassign.model.snapshot import (
    ClusterSnapshot,
    SnapshotBroker,
    SnapshotLogDir,
    SnapshotPartition,
    SnapshotTopic,
)
from kreassign.operations.snapshot_files import write_snapshot
from kreassign.operations.warnings import Warn, warn_of_failures, warn_program
from kreassign.pipeline.ingest.snapshots import Copies, Observation, copies_of, snapshot_tables
from kreassign.pipeline.tables.parquet import write_rows

__all__ = [
    "Observation",
    "SnapshotOutputs",
    "described_cluster",
    "observe",
    "store_snapshot",
    "whole_snapshot",
]

OWN = frozenset({ConfigSource.DYNAMIC_TOPIC, ConfigSource.DYNAMIC_BROKER})
DEFAULTS = frozenset({ConfigSource.DYNAMIC_DEFAULT_BROKER})
_Configs = Mapping[ConfigResource, Mapping[str, ConfigEntry]]
SYSTEM_CLOCK = SystemClock()
_NOT_MOVING = OngoingReassignment((), (), ())


@dataclass(frozen=True, slots=True)
class SnapshotOutputs:
    """Where a snapshot is written: a directory of tables, a file of the whole, or both.

    `measure_for_s` is how long offsets are watched for the write rates in the file; 0 leaves them out.
    """

    data: Path | str | None = None
    file: Path | None = None
    measure_for_s: float = 5.0


def store_snapshot(
    client: AdminClient, outputs: SnapshotOutputs, clock: Clock = SYSTEM_CLOCK, warn: Warn = warn_program
) -> Observation:
    """Read the cluster and write what was read; nothing is written unless all of it could be read."""
    seen = observe(client, clock.now_ms(), warn)
    if outputs.file is not None:
        whole = whole_snapshot(client, seen, clock, outputs.measure_for_s, warn)
    if outputs.data is not None:
        for table, rows in snapshot_tables(seen):
            write_rows(outputs.data, table, rows, file_stem=seen.snapshot_id)
    if outputs.file is not None:
        write_snapshot(outputs.file, whole)
    return seen


def observe(client: AdminClient, taken_ms: int, warn: Warn = warn_program) -> Observation:
    """Ask the cluster for everything that the tables hold; warns of what single brokers or topics did not answer."""
    cluster = described_cluster(client)
    topics = client.describe_topics()
    reassignments = client.list_partition_reassignments()
    log_dirs = client.describe_log_dirs()
    warn_of_failures(warn, "topic metadata", topics.failed)
    warn_of_failures(warn, "log directories", {f"broker {broker}": error for broker, error in log_dirs.failed.items()})
    return Observation(taken_ms, cluster, tuple(topics.ok.values()), log_dirs, reassignments)


def described_cluster(client: AdminClient) -> Cluster:
    """Brokers and controller; the fenced brokers too, where the cluster names them (Kafka 4.0 and later)."""
    try:
        return client.describe_cluster(include_fenced=True)
    except Unsupported:
        return client.describe_cluster()


def whole_snapshot(
    client: AdminClient, seen: Observation, clock: Clock, seconds: float, warn: Warn = warn_program
) -> ClusterSnapshot:
    """Read what the tables do not hold, and twice, so many seconds apart, how far each partition is."""
    partitions = [partition.topic_partition for topic in seen.topics for partition in topic.partitions]
    offsets = sample_offsets(client, clock, partitions, seconds)
    warn_of_failures(warn, "offsets", offsets.failed)
    configs = _configs(client, seen, warn)
    copies = copies_of(seen.log_dirs)
    return ClusterSnapshot(
        seen.taken_ms,
        seen.cluster.cluster_id,
        tuple(_broker(broker, seen, configs) for broker in seen.cluster.brokers),
        tuple(_topic(topic, seen, copies, offsets, configs) for topic in seen.topics),
        _broker_defaults(configs),
    )


def _configs(client: AdminClient, seen: Observation, warn: Warn) -> _Configs:
    topics = [ConfigResource.topic(topic.name) for topic in seen.topics]
    brokers = [ConfigResource.broker(broker.id) for broker in seen.cluster.brokers if not broker.is_fenced]
    found = client.describe_configs([*topics, *brokers])
    warn_of_failures(warn, "configuration", found.failed)
    return found.ok


def _set_values(entries: Mapping[str, ConfigEntry], sources: frozenset[ConfigSource] = OWN) -> dict[str, str]:
    """What somebody set while the cluster ran; secrets have no value and stay out."""
    return {name: entry.value for name, entry in entries.items() if entry.source in sources and entry.value is not None}


def _broker_defaults(configs: _Configs) -> dict[str, str]:
    """What is set for all brokers, as they show it."""
    brokers = (entries for resource, entries in configs.items() if resource.type is ResourceType.BROKER)
    return {name: value for entries in brokers for name, value in _set_values(entries, DEFAULTS).items()}


def _broker(broker: Broker, seen: Observation, configs: _Configs) -> SnapshotBroker:
    log_dirs = tuple(
        SnapshotLogDir(each.path, each.total_bytes, each.usable_bytes, each.error is not None, each.is_cordoned)
        for each in seen.log_dirs.ok.get(broker.id, ())
    )
    return SnapshotBroker(broker, log_dirs, _set_values(configs.get(ConfigResource.broker(broker.id), {})))


def _topic(
    topic: Topic,
    seen: Observation,
    copies: Copies,
    offsets: OffsetSamples,
    configs: _Configs,
) -> SnapshotTopic:
    partitions = tuple(
        _partition(partition, seen.reassignments.get(partition.topic_partition, _NOT_MOVING), copies, offsets)
        for partition in topic.partitions
    )
    set_values = _set_values(configs.get(ConfigResource.topic(topic.name), {}))
    return SnapshotTopic(topic.name, partitions, set_values, topic.topic_id)


def _partition(
    partition: Partition, moving: OngoingReassignment, copies: Copies, offsets: OffsetSamples
) -> SnapshotPartition:
    key = partition.topic_partition
    replicas = [TopicPartitionReplica(broker, *key) for broker in partition.replicas]
    places = [copies.current.get(replica, (None, None)) for replica in replicas]
    found = SnapshotPartition(
        partition.replicas,
        partition.isr,
        partition.leader,
        partition.leader_epoch,
        tuple(path for path, _ in places),
        tuple(size for _, size in places),
        moving.adding,
        moving.removing,
        {replica.broker: copies.future[replica][0] for replica in replicas if replica in copies.future},
        offsets.starts.get(key),
        offsets.ends.get(key),
    )
    return replace(found, write_bytes_per_s=offsets.write_rate(key, found.size_bytes))
