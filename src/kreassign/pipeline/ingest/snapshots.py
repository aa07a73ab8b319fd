"""Turn what a cluster reports about itself into rows of tables, or into one whole snapshot in columns.

Pure. The rows belong to the snapshot tables, `samples` and `throttles`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

import numpy as np
import numpy.typing as npt

from kreassign import model
from kreassign.model.cluster import LogDirReplicas
from kreassign.model.snapshot import ClusterSnapshot
from kreassign.model.throttle import BROKER_THROTTLES, TOPIC_THROTTLES
from kreassign.pipeline.tables import schemas
from kreassign.pipeline.tables.snapshot_columns import (
    UNKNOWN,
    Amounts,
    Ids,
    Lists,
    SnapshotColumns,
    ends_of,
    leader_sizes,
    partition_sizes,
)

# Copies that brokers report → their replicas in the partitions' lists.
#
# In columns: for a million replicas, Python objects would take more memory than the data itself.


@dataclass(frozen=True, slots=True, eq=False)
class PlacedCopies:
    """Log directory and size of S replicas, in the order of the replica lists.

    `log_dirs` and `sizes_bytes` (S,) are UNKNOWN if no broker reported them. `futures` (F,) are the indices of
    replicas, in order, with another copy being built, in the directories `future_log_dirs`, with
    `future_sizes_bytes` so far. Directories are indices into `paths`.
    """

    paths: tuple[str, ...]
    log_dirs: Ids
    sizes_bytes: Amounts
    futures: Amounts
    future_log_dirs: Ids
    future_sizes_bytes: Amounts


@dataclass(frozen=True, slots=True, eq=False)
class _Copies:
    """Copies as brokers report them: broker id, row of the partition, directory (index into `paths`) and size; (C,)."""

    paths: tuple[str, ...]
    brokers: Amounts
    rows: Amounts
    log_dirs: Amounts
    sizes_bytes: Amounts
    is_future: npt.NDArray[np.bool_]


def placed_copies(
    topics: Sequence[model.Topic], replicas: Lists, log_dirs: model.Batch[int, tuple[model.LogDir, ...]]
) -> PlacedCopies:
    """Place the copies of brokers that answered; `replicas` has the list of every partition, in order of `topics`."""
    counts = np.array([len(topic.partitions) for topic in topics], np.int32)
    firsts = dict(zip((topic.name for topic in topics), ends_of(counts).tolist(), strict=False))
    copies = _reported_copies(log_dirs, firsts, dict(zip(firsts, counts.tolist(), strict=True)))
    places = _places(replicas, copies)
    found_dirs = np.full(len(replicas.values), UNKNOWN, np.int32)
    sizes = np.full(len(replicas.values), UNKNOWN, np.int64)
    current, future = (np.flatnonzero((places != UNKNOWN) & (copies.is_future == one)) for one in (False, True))
    found_dirs[places[current]] = copies.log_dirs[current]
    sizes[places[current]] = copies.sizes_bytes[current]
    future = future[np.argsort(places[future])]
    return PlacedCopies(
        copies.paths,
        found_dirs,
        sizes,
        places[future],
        copies.log_dirs[future].astype(np.int32),
        copies.sizes_bytes[future],
    )


def _reported_copies(
    log_dirs: model.Batch[int, tuple[model.LogDir, ...]], firsts: Mapping[str, int], counts: Mapping[str, int]
) -> _Copies:
    """Collect all reported copies of known partitions."""
    paths: dict[str, int] = {}
    parts = [
        _of_log_dir(broker, paths.setdefault(log_dir.path, len(paths)), log_dir, firsts, counts)
        for broker, dirs in log_dirs.ok.items()
        for log_dir in dirs
    ]
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)] if parts else [np.zeros(0, np.int64)] * 5
    brokers, rows, dirs, sizes, is_future = columns
    return _Copies(tuple(paths), brokers, rows, dirs, sizes, is_future.astype(bool))


def _of_log_dir(
    broker: int, place: int, log_dir: model.LogDir, firsts: Mapping[str, int], counts: Mapping[str, int]
) -> tuple[Amounts, ...]:
    held = log_dir.replicas
    copies = held if isinstance(held, LogDirReplicas) else LogDirReplicas.of(held)
    lengths = np.diff(np.array(copies.ends))
    first = np.repeat(np.fromiter((firsts.get(topic, 0) for topic in copies.topics), np.int64), lengths)
    # Partitions created or deleted since the topics were described have no row.
    most = np.repeat(np.fromiter((counts.get(topic, 0) for topic in copies.topics), np.int64), lengths)
    numbers = np.array(copies.partitions)
    known = numbers < most
    count = int(known.sum())
    return (
        np.full(count, broker),
        (first + numbers)[known],
        np.full(count, place),
        np.array(copies.sizes_bytes)[known],
        np.array(copies.is_future)[known],
    )


def _places(replicas: Lists, copies: _Copies) -> Amounts:
    """Index of each copy's replica, (C,); UNKNOWN if its partition's list lacks the broker."""
    width = int(max(replicas.values.max(initial=0), copies.brokers.max(initial=0))) + 1
    keys = replicas.owners.astype(np.int64) * width + replicas.values
    order = np.argsort(keys)
    wanted = copies.rows * width + copies.brokers
    nearest = np.minimum(np.searchsorted(keys[order], wanted), max(len(keys) - 1, 0))
    if not len(keys):
        return np.full(len(wanted), UNKNOWN, np.int64)
    return np.where(keys[order][nearest] == wanted, order[nearest], UNKNOWN)


_NOT_MOVING = model.OngoingReassignment((), (), ())


@dataclass(frozen=True, slots=True)
class SnapshotAnswers:
    """All answers that one snapshot is made of.

    They were given one after the other from `taken_ms` on, not at one instant: a partition that moves, or a topic
    created or deleted meanwhile, can be in one answer and not in the next. `in_maintenance` are brokers in the record
    of the cluster, None if that was not read; `nameable` is whether lists may name those without an open log directory.
    `cleanup_policies` has the topics whose policy was read.
    """

    taken_ms: int
    cluster: model.Cluster
    topics: tuple[model.Topic, ...]
    log_dirs: model.Batch[int, tuple[model.LogDir, ...]]
    reassignments: Mapping[model.TopicPartition, model.OngoingReassignment]
    in_maintenance: frozenset[int] | None = None
    nameable: Mapping[int, bool] = field(default_factory=dict)
    cleanup_policies: Mapping[str, str] = field(default_factory=dict)

    @property
    def snapshot_id(self) -> str:
        """Time and cluster: sorts by time, and is safe as a file name."""
        return f"{_utc(self.taken_ms)}-{file_name_part(self.cluster.cluster_id)}"


@dataclass(frozen=True, slots=True)
class SampleRound:
    """All answers that one round of samples is made of; `taken_ms` is when end offsets were requested."""

    taken_ms: int
    cluster_id: str
    topics: tuple[model.Topic, ...]
    start_offsets: Mapping[model.TopicPartition, int]
    end_offsets: Mapping[model.TopicPartition, int]
    log_dirs: model.Batch[int, tuple[model.LogDir, ...]]

    @property
    def file_stem(self) -> str:
        """File name of the round: time and cluster."""
        return f"{_utc(self.taken_ms)}-{file_name_part(self.cluster_id)}"


def snapshot_tables(seen: SnapshotAnswers) -> tuple[tuple[schemas.Table, Iterable[schemas.Row]], ...]:
    """Rows of every snapshot table, in writing order: `clusters` is the seal and comes last.

    Rows of partitions and replicas, up to a million, are generated while they are read.
    """
    return (
        (schemas.BROKERS, broker_rows(seen)),
        (schemas.LOG_DIRS, log_dir_rows(seen)),
        (schemas.PARTITIONS, partition_rows(seen)),
        (schemas.REPLICAS, replica_rows(seen)),
        (schemas.CLUSTERS, cluster_rows(seen)),
    )


def cluster_rows(seen: SnapshotAnswers) -> list[schemas.Row]:
    """The single row of table `clusters`."""
    row = {
        "controller_id": seen.cluster.controller_id,
        "broker_count": len(seen.cluster.brokers),
        "topic_count": len(seen.topics),
        "partition_count": sum(len(topic.partitions) for topic in seen.topics),
    }
    return [_snapshot_columns(seen) | row]


def broker_rows(seen: SnapshotAnswers) -> list[schemas.Row]:
    """Rows of table `brokers`."""
    head, answers = _snapshot_columns(seen), seen.log_dirs
    not_asked = {broker.id: "was not asked" for broker in seen.cluster.brokers if broker.id not in answers.ok}
    errors = not_asked | {broker: str(error) for broker, error in answers.failed.items()}
    return [
        head
        | {
            "broker": broker.id,
            "host": broker.host,
            "port": broker.port,
            "rack": broker.rack,
            "is_fenced": broker.is_fenced,
            "log_dirs_error": errors.get(broker.id),
            "in_maintenance": None if seen.in_maintenance is None else broker.id in seen.in_maintenance,
            "may_be_named": seen.nameable.get(broker.id),
        }
        for broker in seen.cluster.brokers
    ]


def log_dir_rows(seen: SnapshotAnswers) -> list[schemas.Row]:
    """Rows of table `log_dirs`, for the brokers that answered."""
    head = _snapshot_columns(seen)
    return [
        head
        | {
            "broker": broker,
            "path": log_dir.path,
            "error": log_dir.error,
            "total_bytes": log_dir.total_bytes,
            "usable_bytes": log_dir.usable_bytes,
            "is_cordoned": log_dir.is_cordoned,
            "replica_count": len(log_dir.replicas),
            "replica_bytes": sum(replica.size_bytes for replica in log_dir.replicas),
        }
        for broker, dirs in seen.log_dirs.ok.items()
        for log_dir in dirs
    ]


def partition_rows(seen: SnapshotAnswers) -> Iterator[schemas.Row]:
    """Rows of table `partitions`."""
    head = _snapshot_columns(seen)
    for topic in seen.topics:
        for partition in topic.partitions:
            moving = seen.reassignments.get(partition.topic_partition, _NOT_MOVING)
            yield head | {
                "topic": topic.name,
                "topic_id": topic.topic_id,
                "partition": partition.topic_partition.partition,
                "is_internal": topic.is_internal,
                "cleanup_policy": seen.cleanup_policies.get(topic.name),
                "leader": partition.leader,
                "leader_epoch": partition.leader_epoch,
                "replicas": list(partition.replicas),
                "isr": list(partition.isr),
                "adding": list(moving.adding),
                "removing": list(moving.removing),
            }


def replica_rows(seen: SnapshotAnswers) -> Iterator[schemas.Row]:
    """Rows of table `replicas`: one per position in a replica list."""
    head = _snapshot_columns(seen)
    copies = iter(_placed_rows(_copies(seen.topics, seen.log_dirs)))
    for partition in _partitions(seen.topics):
        moving = seen.reassignments.get(partition.topic_partition, _NOT_MOVING)
        topic, number = partition.topic_partition
        for position, broker in enumerate(partition.replicas):
            row = {
                "topic": topic,
                "partition": number,
                "broker": broker,
                "position": position,
                "is_leader": broker == partition.leader,
                "is_in_sync": broker in partition.isr,
                "is_adding": broker in moving.adding,
                "is_removing": broker in moving.removing,
            }
            yield head | row | next(copies)


def sample_rows(seen: SampleRound) -> list[schemas.Row]:
    """Rows of table `samples`: partitions with both offsets known, and the size of their leader's replica.

    Sizes of different replicas differ by what producers did not write, so no other stands in for it.
    """
    partitions = list(_partitions(seen.topics))
    leaders = np.fromiter((partition.leader for partition in partitions), np.int32, len(partitions))
    sizes = leader_sizes(_lists(seen.topics), _copies(seen.topics, seen.log_dirs).sizes_bytes, leaders).tolist()
    ids = (topic.topic_id for topic in seen.topics for _ in topic.partitions)
    return [
        {
            "cluster_id": seen.cluster_id,
            "taken_ms": seen.taken_ms,
            "topic": name.topic,
            "topic_id": topic_id,
            "partition": name.partition,
            "leader": partition.leader,
            "start_offset": seen.start_offsets[name],
            "end_offset": seen.end_offsets[name],
            "size_bytes": None if size == UNKNOWN else size,
        }
        for partition, topic_id, size in zip(partitions, ids, sizes, strict=True)
        if (name := partition.topic_partition) in seen.start_offsets and name in seen.end_offsets
    ]


def file_name_part(text: str) -> str:
    """Replace all but letters, digits, dash and underscore by underscores: ids come from outside."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", text)


def _utc(time_ms: int) -> str:
    return f"{datetime.fromtimestamp(time_ms // 1000, UTC):%Y%m%dT%H%M%S}.{time_ms % 1000:03}Z"


def _partitions(topics: Iterable[model.Topic]) -> Iterable[model.Partition]:
    return (partition for topic in topics for partition in topic.partitions)


def _snapshot_columns(seen: SnapshotAnswers) -> schemas.Row:
    return {"snapshot_id": seen.snapshot_id, "cluster_id": seen.cluster.cluster_id, "taken_ms": seen.taken_ms}


def _placed_rows(copies: PlacedCopies) -> Iterator[schemas.Row]:
    """Log directory and size columns of each replica."""
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


def _lists(topics: Sequence[model.Topic]) -> Lists:
    return Lists.of([partition.replicas for partition in _partitions(topics)])


def _copies(topics: Sequence[model.Topic], log_dirs: model.Batch[int, tuple[model.LogDir, ...]]) -> PlacedCopies:
    return placed_copies(topics, _lists(topics), log_dirs)


# Sources of explicit settings; a broker without a throttle shows a default without such a source.
_SET = frozenset(
    {model.ConfigSource.DYNAMIC_TOPIC, model.ConfigSource.DYNAMIC_BROKER, model.ConfigSource.DYNAMIC_DEFAULT_BROKER}
)
_THROTTLES = frozenset({*BROKER_THROTTLES, *TOPIC_THROTTLES})


@dataclass(frozen=True, slots=True)
class CollectedRound:
    """Answers of one round: the cluster, offsets and sizes, and settings by resource, throttles among them."""

    seen: SnapshotAnswers
    samples: SampleRound
    configs: Mapping[model.ConfigResource, Mapping[str, model.ConfigEntry]]


def round_tables(collected: CollectedRound) -> Iterator[tuple[schemas.Table, Iterable[schemas.Row]]]:
    """Rows of every table of a round, in writing order: `clusters`, the seal, comes last."""
    yield schemas.SAMPLES, sample_rows(collected.samples)
    yield schemas.THROTTLES, throttle_rows(collected)
    yield from snapshot_tables(collected.seen)


def throttle_rows(collected: CollectedRound) -> list[schemas.Row]:
    """Rows of table `throttles`: only explicitly set values.

    An empty replica list throttles nothing; Kafka shows it where a list was set and emptied.
    """
    head = {"cluster_id": collected.samples.cluster_id, "taken_ms": collected.samples.taken_ms}
    return [
        head
        | {"resource_type": resource.type.name.lower(), "resource": resource.name, "name": name, "value": entry.value}
        for resource, entries in collected.configs.items()
        for name, entry in sorted(entries.items())
        if name in _THROTTLES and entry.value and entry.source in _SET
    ]


# A whole snapshot, in columns.


@dataclass(frozen=True, slots=True)
class ObservedOffsets:
    """Start and end offsets, as far as leaders answered, and the write rate given the size of one copy."""

    starts: Mapping[model.TopicPartition, int]
    ends: Mapping[model.TopicPartition, int]
    write_rate: Callable[[model.TopicPartition, int | None], float | None]


def whole_columns(head: ClusterSnapshot, seen: SnapshotAnswers, offsets: ObservedOffsets) -> SnapshotColumns:
    """Columns of a snapshot; `head` has all that is not a column, with topics in the order of `seen`."""
    found = [partition for topic in seen.topics for partition in topic.partitions]
    moving = [seen.reassignments.get(one.topic_partition, _NOT_MOVING) for one in found]
    replicas = Lists.of([one.replicas for one in found])
    leaders = np.fromiter((one.leader for one in found), np.int32, len(found))
    copies = placed_copies(seen.topics, replicas, seen.log_dirs)
    futures = copies.futures
    return SnapshotColumns(
        head=head,
        counts=np.array([len(topic.partitions) for topic in seen.topics], np.int32),
        leaders=leaders,
        leader_epochs=np.fromiter((one.leader_epoch for one in found), np.int32, len(found)),
        replicas=replicas,
        isr=Lists.of([one.isr for one in found]),
        adding=Lists.of([one.adding for one in moving]),
        removing=Lists.of([one.removing for one in moving]),
        paths=copies.paths,
        log_dirs=copies.log_dirs,
        sizes_bytes=copies.sizes_bytes,
        future_brokers=Lists(
            ends_of(np.bincount(replicas.owners[futures], minlength=len(found))), replicas.values[futures]
        ),
        future_log_dirs=copies.future_log_dirs,
        start_offsets=_offsets(found, offsets.starts),
        end_offsets=_offsets(found, offsets.ends),
        write_bytes_per_s=np.fromiter(
            _rates(found, partition_sizes(replicas, copies.sizes_bytes, leaders), offsets), np.float64, len(found)
        ),
    )


def _offsets(found: list[model.Partition], offsets: Mapping[model.TopicPartition, int]) -> Amounts:
    return np.fromiter((offsets.get(one.topic_partition, UNKNOWN) for one in found), np.int64, len(found))


def _rates(found: list[model.Partition], sizes: Amounts, offsets: ObservedOffsets) -> Iterator[float]:
    for one, size in zip(found, sizes.tolist(), strict=True):
        rate = offsets.write_rate(one.topic_partition, None if size == UNKNOWN else size)
        yield float("nan") if rate is None else rate
