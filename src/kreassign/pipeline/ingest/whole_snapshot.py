"""PURE. What a cluster reports about itself → a whole snapshot, in columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kreassign.model import Batch, LogDir, OngoingReassignment, Partition, TopicPartition
from kreassign.model.log_dir_replicas import LogDirReplicas
from kreassign.model.snapshot import ClusterSnapshot
from kreassign.pipeline.ingest.snapshots import Observation
from kreassign.pipeline.tables.snapshot_columns import (
    UNKNOWN,
    Amounts,
    Ids,
    Lists,
    SnapshotColumns,
    ends_of,
    partition_sizes,
)

_NOT_MOVING = OngoingReassignment((), (), ())


@dataclass(frozen=True, slots=True)
class ObservedOffsets:
    """Where logs begin and end, as far as leaders answered, and what producers write, given the size of one copy."""

    starts: Mapping[TopicPartition, int]
    ends: Mapping[TopicPartition, int]
    write_rate: Callable[[TopicPartition, int | None], float | None]


@dataclass(frozen=True, slots=True, eq=False)
class _Copies:
    """Copies as brokers report them: id, row of the partition, directory as an index into `paths`, and size; (C,)."""

    paths: tuple[str, ...]
    brokers: Amounts
    rows: Amounts
    log_dirs: Amounts
    sizes_bytes: Amounts
    is_future: npt.NDArray[np.bool_]


def whole_columns(head: ClusterSnapshot, seen: Observation, offsets: ObservedOffsets) -> SnapshotColumns:
    """The columns of a snapshot; `head` has what is no column, with the topics in the order of what was seen."""
    found = [partition for topic in seen.topics for partition in topic.partitions]
    counts = np.array([len(topic.partitions) for topic in seen.topics], np.int32)
    moving = [seen.reassignments.get(one.topic_partition, _NOT_MOVING) for one in found]
    replicas = Lists.of([one.replicas for one in found])
    leaders = np.fromiter((one.leader for one in found), np.int32, len(found))
    firsts = dict(zip((topic.name for topic in seen.topics), ends_of(counts).tolist(), strict=False))
    copies = _copies(seen.log_dirs, firsts, dict(zip(firsts, counts.tolist(), strict=True)))
    log_dirs, sizes, future_brokers, future_log_dirs = _placed(replicas, copies)
    return SnapshotColumns(
        head=head,
        counts=counts,
        leaders=leaders,
        leader_epochs=np.fromiter((one.leader_epoch for one in found), np.int32, len(found)),
        replicas=replicas,
        isr=Lists.of([one.isr for one in found]),
        adding=Lists.of([one.adding for one in moving]),
        removing=Lists.of([one.removing for one in moving]),
        paths=copies.paths,
        log_dirs=log_dirs,
        sizes_bytes=sizes,
        future_brokers=future_brokers,
        future_log_dirs=future_log_dirs,
        start_offsets=_offsets(found, offsets.starts),
        end_offsets=_offsets(found, offsets.ends),
        write_bytes_per_s=np.fromiter(
            _rates(found, partition_sizes(replicas, sizes, leaders), offsets), np.float64, len(found)
        ),
    )


def _offsets(found: list[Partition], offsets: Mapping[TopicPartition, int]) -> Amounts:
    return np.fromiter((offsets.get(one.topic_partition, UNKNOWN) for one in found), np.int64, len(found))


def _rates(found: list[Partition], sizes: Amounts, offsets: ObservedOffsets) -> Iterator[float]:
    for one, size in zip(found, sizes.tolist(), strict=True):
        rate = offsets.write_rate(one.topic_partition, None if size == UNKNOWN else size)
        yield float("nan") if rate is None else rate


def _copies(log_dirs: Batch[int, tuple[LogDir, ...]], firsts: Mapping[str, int], counts: Mapping[str, int]) -> _Copies:
    """All copies of partitions that are known."""
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
    broker: int, place: int, log_dir: LogDir, firsts: Mapping[str, int], counts: Mapping[str, int]
) -> tuple[Amounts, ...]:
    held = log_dir.replicas
    copies = held if isinstance(held, LogDirReplicas) else LogDirReplicas.of(held)
    lengths = np.diff(np.array(copies.ends))
    first = np.repeat(np.fromiter((firsts.get(topic, 0) for topic in copies.topics), np.int64), lengths)
    # What came since the topics were described, or went, has no row.
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


def _placed(replicas: Lists, copies: _Copies) -> tuple[Ids, Amounts, Lists, Ids]:
    """Directory and size of each replica; and who builds another copy of each partition, and in which directory."""
    places = _places(replicas, copies)
    log_dirs = np.full(len(replicas.values), UNKNOWN, np.int32)
    sizes = np.full(len(replicas.values), UNKNOWN, np.int64)
    current, future = (np.flatnonzero((places != UNKNOWN) & (copies.is_future == one)) for one in (False, True))
    log_dirs[places[current]] = copies.log_dirs[current]
    sizes[places[current]] = copies.sizes_bytes[current]
    future = future[np.argsort(places[future])]
    built = Lists(
        ends_of(np.bincount(copies.rows[future], minlength=len(replicas.lengths))),
        copies.brokers[future].astype(np.int32),
    )
    return log_dirs, sizes, built, copies.log_dirs[future].astype(np.int32)


def _places(replicas: Lists, copies: _Copies) -> Amounts:
    """Which replica each copy is, as an index; UNKNOWN for what its partition's list does not name, (C,)."""
    width = int(max(replicas.values.max(initial=0), copies.brokers.max(initial=0))) + 1
    keys = replicas.owners.astype(np.int64) * width + replicas.values
    order = np.argsort(keys)
    wanted = copies.rows * width + copies.brokers
    nearest = np.minimum(np.searchsorted(keys[order], wanted), max(len(keys) - 1, 0))
    if not len(keys):
        return np.full(len(wanted), UNKNOWN, np.int64)
    return np.where(keys[order][nearest] == wanted, order[nearest], UNKNOWN)
