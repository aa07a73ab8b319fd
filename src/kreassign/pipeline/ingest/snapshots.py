"""PURE. What a cluster reports about itself → rows of the snapshot tables, of `samples` and of `throttles`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np

from kreassign.model import (
    Batch,
    Broker,
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
from kreassign.pipeline.ingest.placed_copies import PlacedCopies, placed_copies
from kreassign.pipeline.tables.schemas import (
    BROKERS,
    CLUSTERS,
    LOG_DIRS,
    PARTITIONS,
    REPLICAS,
    SAMPLES,
    THROTTLES,
    Row,
    Table,
)
from kreassign.pipeline.tables.snapshot_columns import UNKNOWN, Lists, partition_sizes

_NOT_MOVING = OngoingReassignment((), (), ())


@dataclass(frozen=True, slots=True)
class Observation:
    """Everything that one snapshot is made of.

    The answers were given one after the other from `taken_ms` on, not at one instant: a partition that moves or
    a topic that comes or goes meanwhile can be in one answer and not in the next.
    """

    taken_ms: int
    cluster: Cluster
    topics: tuple[Topic, ...]
    log_dirs: Batch[int, tuple[LogDir, ...]]
    reassignments: Mapping[TopicPartition, OngoingReassignment]

    @property
    def snapshot_id(self) -> str:
        """Time and cluster: sorts by time, and is safe as the name of a file."""
        return f"{_utc(self.taken_ms)}-{file_name_part(self.cluster.cluster_id)}"


@dataclass(frozen=True, slots=True)
class SampleRound:
    """Everything that one round of samples is made of; `taken_ms` is when the end offsets were asked."""

    taken_ms: int
    cluster_id: str
    topics: tuple[Topic, ...]
    start_offsets: Mapping[TopicPartition, int]
    end_offsets: Mapping[TopicPartition, int]
    log_dirs: Batch[int, tuple[LogDir, ...]]

    @property
    def file_stem(self) -> str:
        """Name of the round's file: time and cluster."""
        return f"{_utc(self.taken_ms)}-{file_name_part(self.cluster_id)}"


def snapshot_tables(seen: Observation) -> tuple[tuple[Table, Iterable[Row]], ...]:
    """Rows of every snapshot table, in the order in which to write them: `clusters` is the seal and comes last.

    Those of partitions and replicas, of which there may be a million, are made as they are read.
    """
    return (
        (BROKERS, broker_rows(seen)),
        (LOG_DIRS, log_dir_rows(seen)),
        (PARTITIONS, partition_rows(seen)),
        (REPLICAS, replica_rows(seen)),
        (CLUSTERS, cluster_rows(seen)),
    )


def cluster_rows(seen: Observation) -> list[Row]:
    """The one row of table `clusters`."""
    row = {
        "controller_id": seen.cluster.controller_id,
        "broker_count": len(seen.cluster.brokers),
        "topic_count": len(seen.topics),
        "partition_count": sum(len(topic.partitions) for topic in seen.topics),
    }
    return [_snapshot_columns(seen) | row]


def broker_rows(seen: Observation) -> list[Row]:
    """Rows of table `brokers`."""
    return [_snapshot_columns(seen) | _broker_row(broker, seen.log_dirs) for broker in seen.cluster.brokers]


def log_dir_rows(seen: Observation) -> list[Row]:
    """Rows of table `log_dirs`: of the brokers that answered."""
    head = _snapshot_columns(seen)
    return [head | _log_dir_row(broker, dir_) for broker, dirs in seen.log_dirs.ok.items() for dir_ in dirs]


def partition_rows(seen: Observation) -> Iterator[Row]:
    """Rows of table `partitions`."""
    head = _snapshot_columns(seen)
    return (
        head | _partition_row(topic, partition, seen.reassignments.get(partition.topic_partition, _NOT_MOVING))
        for topic in seen.topics
        for partition in topic.partitions
    )


def replica_rows(seen: Observation) -> Iterator[Row]:
    """Rows of table `replicas`: one per place in a replica list."""
    head = _snapshot_columns(seen)
    copies = iter(_placed_rows(_copies(seen.topics, seen.log_dirs)))
    for partition in _partitions(seen.topics):
        moving = seen.reassignments.get(partition.topic_partition, _NOT_MOVING)
        for row in _replica_rows(partition, moving):
            yield head | row | next(copies)


def sample_rows(seen: SampleRound) -> list[Row]:
    """Rows of table `samples`: partitions for which both offsets are known."""
    partitions = list(_partitions(seen.topics))
    leaders = np.fromiter((partition.leader for partition in partitions), np.int32, len(partitions))
    sizes = partition_sizes(_lists(seen.topics), _copies(seen.topics, seen.log_dirs).sizes_bytes, leaders).tolist()
    ids = (topic.topic_id for topic in seen.topics for _ in topic.partitions)
    return [
        _sample_row(seen, partition, topic_id) | {"size_bytes": None if size == UNKNOWN else size}
        for partition, topic_id, size in zip(partitions, ids, sizes, strict=True)
        if partition.topic_partition in seen.start_offsets and partition.topic_partition in seen.end_offsets
    ]


def file_name_part(text: str) -> str:
    """The text with everything but letters, digits, dash and underscore replaced: an id comes from outside."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", text)


def _utc(time_ms: int) -> str:
    return f"{datetime.fromtimestamp(time_ms // 1000, UTC):%Y%m%dT%H%M%S}.{time_ms % 1000:03}Z"


def _partitions(topics: Iterable[Topic]) -> Iterable[Partition]:
    return (partition for topic in topics for partition in topic.partitions)


def _snapshot_columns(seen: Observation) -> Row:
    return {"snapshot_id": seen.snapshot_id, "cluster_id": seen.cluster.cluster_id, "taken_ms": seen.taken_ms}


def _broker_row(broker: Broker, log_dirs: Batch[int, tuple[LogDir, ...]]) -> Row:
    error = log_dirs.failed.get(broker.id)
    if error is None and broker.id not in log_dirs.ok:
        reason: str | None = "was not asked"
    else:
        reason = str(error) if error else None
    return {
        "broker": broker.id,
        "host": broker.host,
        "port": broker.port,
        "rack": broker.rack,
        "is_fenced": broker.is_fenced,
        "log_dirs_error": reason,
    }


def _log_dir_row(broker: int, log_dir: LogDir) -> Row:
    return {
        "broker": broker,
        "path": log_dir.path,
        "error": log_dir.error,
        "total_bytes": log_dir.total_bytes,
        "usable_bytes": log_dir.usable_bytes,
        "is_cordoned": log_dir.is_cordoned,
        "replica_count": len(log_dir.replicas),
        "replica_bytes": sum(replica.size_bytes for replica in log_dir.replicas),
    }


def _partition_row(topic: Topic, partition: Partition, moving: OngoingReassignment) -> Row:
    return {
        "topic": topic.name,
        "topic_id": topic.topic_id,
        "partition": partition.topic_partition.partition,
        "is_internal": topic.is_internal,
        "leader": partition.leader,
        "leader_epoch": partition.leader_epoch,
        "replicas": list(partition.replicas),
        "isr": list(partition.isr),
        "adding": list(moving.adding),
        "removing": list(moving.removing),
    }


def _replica_rows(partition: Partition, moving: OngoingReassignment) -> Iterable[Row]:
    """Without where their copies are."""
    topic, number = partition.topic_partition
    for position, broker in enumerate(partition.replicas):
        yield {
            "topic": topic,
            "partition": number,
            "broker": broker,
            "position": position,
            "is_leader": broker == partition.leader,
            "is_in_sync": broker in partition.isr,
            "is_adding": broker in moving.adding,
            "is_removing": broker in moving.removing,
        }


def _placed_rows(copies: PlacedCopies) -> Iterator[Row]:
    """Where the copies of each replica are."""
    paths, futures = copies.paths, zip(copies.future_log_dirs.tolist(), copies.future_sizes_bytes.tolist(), strict=True)
    built = dict(zip(copies.futures.tolist(), futures, strict=True))
    known = zip(copies.log_dirs.tolist(), copies.sizes_bytes.tolist(), strict=True)
    for place, (log_dir, size) in enumerate(known):
        future_log_dir, future_size = built.get(place, (UNKNOWN, UNKNOWN))
        yield {
            "log_dir": None if log_dir == UNKNOWN else paths[log_dir],
            "size_bytes": None if size == UNKNOWN else size,
            "future_log_dir": None if future_log_dir == UNKNOWN else paths[future_log_dir],
            "future_size_bytes": None if future_size == UNKNOWN else future_size,
        }


def _lists(topics: Sequence[Topic]) -> Lists:
    return Lists.of([partition.replicas for partition in _partitions(topics)])


def _copies(topics: Sequence[Topic], log_dirs: Batch[int, tuple[LogDir, ...]]) -> PlacedCopies:
    return placed_copies(topics, _lists(topics), log_dirs)


def _sample_row(seen: SampleRound, partition: Partition, topic_id: str | None) -> Row:
    """Without the size."""
    topic, number = partition.topic_partition
    return {
        "cluster_id": seen.cluster_id,
        "taken_ms": seen.taken_ms,
        "topic": topic,
        "topic_id": topic_id,
        "partition": number,
        "leader": partition.leader,
        "start_offset": seen.start_offsets[partition.topic_partition],
        "end_offset": seen.end_offsets[partition.topic_partition],
    }


# What somebody set; a broker that has no throttle shows a default without a source of its own.
_SET = frozenset({ConfigSource.DYNAMIC_TOPIC, ConfigSource.DYNAMIC_BROKER, ConfigSource.DYNAMIC_DEFAULT_BROKER})


@dataclass(frozen=True, slots=True)
class CollectedRound:
    """One round: the cluster as it was, offsets and sizes, and the throttles by resource."""

    seen: Observation
    samples: SampleRound
    throttles: Mapping[ConfigResource, Mapping[str, ConfigEntry]]


def round_tables(collected: CollectedRound) -> Iterator[tuple[Table, Iterable[Row]]]:
    """Rows of every table of a round, in the order in which to write them: `clusters`, the seal, comes last."""
    yield SAMPLES, sample_rows(collected.samples)
    yield THROTTLES, throttle_rows(collected)
    yield from snapshot_tables(collected.seen)


def throttle_rows(collected: CollectedRound) -> list[Row]:
    """Rows of table `throttles`: only what somebody set."""
    head = {"cluster_id": collected.samples.cluster_id, "taken_ms": collected.samples.taken_ms}
    return [
        head | {"resource_type": resource.type.name.lower(), "resource": resource.name, "name": name, "value": value}
        for resource, entries in collected.throttles.items()
        for name, value in _set_values(entries)
    ]


def _set_values(entries: Mapping[str, ConfigEntry]) -> Iterator[tuple[str, str]]:
    # An empty list of replicas throttles nothing; Kafka shows it where a list was set and emptied.
    return ((name, entry.value) for name, entry in sorted(entries.items()) if entry.value and entry.source in _SET)
