"""A cluster snapshot with its partitions as columns: a million replicas without a million objects. Pure.

`ClusterSnapshot` has the same data as values, for small clusters. Each can be converted to the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from math import isnan

import numpy as np
import numpy.typing as npt

from kreassign.model.cluster import NO_LEADER
from kreassign.model.replica_columns import ReplicaColumns
from kreassign.model.snapshot import ClusterSnapshot, SnapshotPartition, SnapshotTopic

UNKNOWN = -1
"""Marks an offset, size or directory that was not reported; reported ones are never negative."""

Ids = npt.NDArray[np.int32]
Amounts = npt.NDArray[np.int64]
Rates = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Lists:
    """A list per partition: that of partition p is `values[offsets[p]:offsets[p + 1]]`; shapes (P + 1,) and (any,)."""

    offsets: Ids
    values: Ids

    @property
    def lengths(self) -> Ids:
        """Length of each list, (P,)."""
        return np.diff(self.offsets)

    @property
    def owners(self) -> Ids:
        """Partition of each value."""
        return np.repeat(np.arange(len(self.offsets) - 1, dtype=np.int32), self.lengths)

    @property
    def keys(self) -> Amounts:
        """A number per value, equal for equal values of the same partition; partition << 32 | value."""
        return self.owners.astype(np.int64) << 32 | self.values

    def at(self, partition: int) -> tuple[int, ...]:
        """List of one partition."""
        return tuple(self.values[self.offsets[partition] : self.offsets[partition + 1]].tolist())

    def __iter__(self) -> Iterator[tuple[int, ...]]:
        values = self.values.tolist()
        return (tuple(values[start:end]) for start, end in pairwise(self.offsets.tolist()))

    @classmethod
    def of(cls, lists: Sequence[Sequence[int]]) -> Lists:
        """Convert lists to arrays."""
        lengths = np.fromiter(map(len, lists), np.int32, len(lists))
        offsets = ends_of(lengths)
        return cls(offsets, np.fromiter(chain.from_iterable(lists), np.int32, int(offsets[-1])))


@dataclass(frozen=True, slots=True, eq=False)
class SnapshotColumns:
    """P partitions with S replicas, ordered by topic as in `head.topics`, then by number.

    `head` is the snapshot without partitions; `counts` (T,) has the number of partitions of each topic. `log_dirs` and
    `sizes_bytes` (S,) go with the values of `replicas`. Directories are indices into `paths`. A broker in
    `future_brokers` is moving its copy to the directory at the same place in `future_log_dirs`. Values that were not
    reported are `UNKNOWN`, rates NaN.
    """

    head: ClusterSnapshot
    counts: Ids
    leaders: Ids
    leader_epochs: Ids
    replicas: Lists
    isr: Lists
    adding: Lists
    removing: Lists
    paths: tuple[str, ...]
    log_dirs: Ids
    sizes_bytes: Amounts
    future_brokers: Lists
    future_log_dirs: Ids
    start_offsets: Amounts
    end_offsets: Amounts
    write_bytes_per_s: Rates

    def __len__(self) -> int:
        return len(self.leaders)

    @property
    def topics(self) -> Ids:
        """Topic of each partition, as an index into `head.topics`, (P,)."""
        return topics_of(self.counts)

    @property
    def numbers(self) -> Ids:
        """Number of each partition in its topic, (P,)."""
        return numbers_of(self.counts)

    @property
    def is_moving(self) -> npt.NDArray[np.bool_]:
        """Mask of partitions that are being reassigned, (P,)."""
        return (self.adding.lengths > 0) | (self.removing.lengths > 0)

    @property
    def size_bytes(self) -> Amounts:
        """Size of the leader's copy, else of the largest; UNKNOWN if no broker reported one, (P,)."""
        return partition_sizes(self.replicas, self.sizes_bytes, self.leaders)


def partition_sizes(replicas: Lists, sizes_bytes: Amounts, leaders: Ids) -> Amounts:
    """Sizes of all partitions, each as in `SnapshotPartition.size_bytes`."""
    largest = np.full(len(leaders), UNKNOWN, np.int64)
    np.maximum.at(largest, replicas.owners, sizes_bytes)
    of_leaders = leader_sizes(replicas, sizes_bytes, leaders)
    return np.where(of_leaders == UNKNOWN, largest, of_leaders)


def leader_sizes(replicas: Lists, sizes_bytes: Amounts, leaders: Ids) -> Amounts:
    """Sizes of the leaders' replicas; `UNKNOWN` where their brokers did not tell."""
    found = np.full(len(leaders), UNKNOWN, np.int64)
    led = replicas.values == leaders[replicas.owners]
    found[replicas.owners[led]] = sizes_bytes[led]
    return found


def seen_replicas(columns: SnapshotColumns) -> ReplicaColumns:
    """One entry per replica, in the order of the columns. Leaders are in sync, and so is what the ISR names."""
    owners, lists = columns.replicas.owners, columns.replicas
    names = [topic.name for topic in columns.head.topics]
    order = sorted(np.flatnonzero(columns.counts).tolist(), key=names.__getitem__)
    rank = np.zeros(len(names), np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    sizes = columns.size_bytes
    return ReplicaColumns(
        topic_names=tuple(names[place] for place in order),
        topics=rank[columns.topics][owners],
        partitions=columns.numbers[owners],
        brokers=lists.values,
        positions=np.arange(len(owners), dtype=np.int32) - lists.offsets[owners],
        is_reassigning=columns.is_moving[owners],
        size_bytes=np.where(sizes == UNKNOWN, np.nan, sizes.astype(np.float64))[owners],
        write_bytes_per_s=columns.write_bytes_per_s[owners],
        paths=columns.paths,
        log_dirs=columns.log_dirs,
        in_sync=(lists.values == columns.leaders[owners]) | np.isin(lists.keys, columns.isr.keys),
        future_log_dirs=_future_log_dirs(columns) if len(columns.future_log_dirs) else None,
        is_leaderless=(columns.leaders == NO_LEADER)[owners],
    )


def _future_log_dirs(columns: SnapshotColumns) -> Ids:
    """Directory to which its broker is moving each replica, (S,); UNKNOWN for none."""
    keys, moving = columns.replicas.keys, columns.future_brokers.keys
    order = np.argsort(moving)
    places = np.searchsorted(moving[order], keys)
    found = np.append(columns.future_log_dirs[order], np.int32(UNKNOWN))[places]
    is_moving = np.append(moving[order], -1)[places] == keys
    return np.where(is_moving, found, UNKNOWN).astype(np.int32)


def topics_of(counts: Ids) -> Ids:
    """Topic of each partition, from the number of partitions of each topic."""
    return np.repeat(np.arange(len(counts), dtype=np.int32), counts)


def numbers_of(counts: Ids) -> Ids:
    """Number of each partition in its topic, from the number of partitions of each topic."""
    ends = ends_of(counts)
    return np.arange(ends[-1], dtype=np.int32) - np.repeat(ends[:-1], counts)


def ends_of(counts: npt.NDArray[np.integer]) -> Ids:
    """Start offsets of consecutive groups of these sizes, plus the end."""
    return np.concatenate(([0], np.cumsum(counts))).astype(np.int32)


# --- conversion to and from values -----------------------------------------------------------------------------------


def columns_of(snapshot: ClusterSnapshot) -> SnapshotColumns:
    """Convert a snapshot to columns."""
    found = [partition for topic in snapshot.topics for partition in topic.partitions]
    paths: dict[str | None, int] = {None: UNKNOWN}

    def place(path: str | None) -> int:
        return paths.setdefault(path or None, len(paths) - 1)

    return SnapshotColumns(
        head=without_partitions(snapshot),
        counts=np.array([len(topic.partitions) for topic in snapshot.topics], np.int32),
        leaders=_ids(one.leader for one in found),
        leader_epochs=_ids(one.leader_epoch for one in found),
        replicas=Lists.of([one.replicas for one in found]),
        isr=Lists.of([one.isr for one in found]),
        adding=Lists.of([one.adding for one in found]),
        removing=Lists.of([one.removing for one in found]),
        log_dirs=_ids(place(path) for one in found for path in one.log_dirs),
        sizes_bytes=_amounts(size for one in found for size in one.sizes_bytes),
        future_brokers=Lists.of([tuple(one.future_log_dirs) for one in found]),
        future_log_dirs=_ids(place(path) for one in found for path in one.future_log_dirs.values()),
        start_offsets=_amounts(one.start_offset for one in found),
        end_offsets=_amounts(one.end_offset for one in found),
        write_bytes_per_s=np.array([one.write_bytes_per_s for one in found], np.float64),
        paths=tuple(path for path in paths if path is not None),
    )


def snapshot_of(columns: SnapshotColumns) -> ClusterSnapshot:
    """Convert columns to a snapshot."""
    partitions = list(_partitions(columns))
    spans = pairwise(ends_of(columns.counts).tolist())
    topics = tuple(
        replace(topic, partitions=tuple(partitions[start:end]))
        for topic, (start, end) in zip(columns.head.topics, spans, strict=True)
    )
    return replace(columns.head, topics=topics)


def without_partitions(snapshot: ClusterSnapshot) -> ClusterSnapshot:
    """Head of a snapshot: everything but the partitions of its topics."""
    return replace(
        snapshot, topics=tuple(SnapshotTopic(one.name, (), one.configs, one.topic_id) for one in snapshot.topics)
    )


def _partitions(columns: SnapshotColumns) -> Iterator[SnapshotPartition]:
    paths = (*columns.paths, None)  # UNKNOWN, -1, indexes the last one
    dirs = [paths[place] for place in columns.log_dirs.tolist()]
    sizes = [None if size == UNKNOWN else size for size in columns.sizes_bytes.tolist()]
    future = [columns.paths[place] for place in columns.future_log_dirs.tolist()]
    rows = zip(
        columns.replicas, columns.isr, columns.leaders.tolist(), columns.leader_epochs.tolist(),
        pairwise(columns.replicas.offsets.tolist()), columns.adding, columns.removing,
        columns.future_brokers, pairwise(columns.future_brokers.offsets.tolist()),
        columns.start_offsets.tolist(), columns.end_offsets.tolist(), columns.write_bytes_per_s.tolist(), strict=True,
    )  # fmt: skip
    for replicas, isr, leader, epoch, (start, end), adding, removing, movers, (begin, last), first, after, rate in rows:
        yield SnapshotPartition(
            replicas, isr, leader, epoch, tuple(dirs[start:end]), tuple(sizes[start:end]), adding, removing,
            dict(zip(movers, future[begin:last], strict=True)),
            None if first == UNKNOWN else first,
            None if after == UNKNOWN else after,
            None if isnan(rate) else rate,
        )  # fmt: skip


def _ids(values: Iterable[int]) -> Ids:
    return np.fromiter(values, np.int32)


def _amounts(values: Iterable[int | None]) -> Amounts:
    return np.fromiter((UNKNOWN if value is None else value for value in values), np.int64)
