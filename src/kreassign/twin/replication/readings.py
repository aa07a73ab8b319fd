"""Answers of brokers about their copies now: sizes, offsets, log directories. Changes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kreassign.model import LogDir, LogDirReplica, TopicPartition
from kreassign.twin.replication.partition_logs import NOWHERE
from kreassign.twin.replication.replicas import Replicas
from kreassign.twin.replication.state import CopyKey

OFFLINE = "the log directory is offline"


@dataclass(frozen=True, slots=True)
class Usage:
    """Contents of a log directory, from the running sums and from adding up its copies; deleted copies not included.

    Bytes as of the last change of any rate. `to_be_deleted_bytes` wait for their deletion.
    """

    broker: int
    path: str
    counted_bytes: float
    added_up_bytes: float
    counted_logs: int
    present_logs: int
    to_be_deleted_bytes: float


@dataclass(frozen=True, slots=True)
class Flow:
    """Rate of a copy that is out of sync, or that moves between directories (`is_future`)."""

    topic_partition: TopicPartition
    broker: int
    is_future: bool
    bytes_per_s: float


class ReplicaReadings:
    """Reads copies by partition and broker id. The answer is None if the broker lacks the copy or cannot read it."""

    def __init__(self, replicas: Replicas) -> None:
        self._replicas = replicas

    def size_bytes(self, topic_partition: TopicPartition, broker: int) -> int | None:
        """Size of a copy in bytes."""
        span = self._span(self._key(topic_partition, broker))
        return None if span is None else round(span[1] - span[0])

    def log_end_offset(self, topic_partition: TopicPartition, broker: int) -> int | None:
        """The offset that the next record of this copy will have."""
        return self._offset(self._key(topic_partition, broker), 1)

    def log_start_offset(self, topic_partition: TopicPartition, broker: int) -> int | None:
        """The offset of the first readable record, in this copy or in remote storage."""
        key, local = self._key(topic_partition, broker), self.local_log_start_offset(topic_partition, broker)
        if key is None or local is None:
            return None
        logs = self._replicas.state.logs
        return min(local, logs.offset(key.row, logs.first(key.row, self._replicas.state.now_ms)))

    def local_log_start_offset(self, topic_partition: TopicPartition, broker: int) -> int | None:
        """The offset of the first record in this copy itself."""
        return self._offset(self._key(topic_partition, broker), 0)

    def pending_upload_offset(self, topic_partition: TopicPartition) -> int | None:
        """The offset of the first record missing in remote storage; None if the partition is not tiered."""
        logs, row = self._replicas.state.logs, self._replicas.state.logs.row(topic_partition)
        uploaded = None if row is None else logs.uploaded(row, self._replicas.state.now_ms)
        return None if row is None or uploaded is None else logs.offset(row, uploaded)

    def high_watermark(self, topic_partition: TopicPartition) -> int | None:
        """The offset up to which all members of the ISR have every record; None for an unknown partition."""
        row = self._replicas.state.logs.row(topic_partition)
        if row is None:
            return None
        self._replicas.positions.settle()
        return self._replicas.state.logs.offset(row, self._replicas.positions.watermark(row))

    def held_offset(self, topic_partition: TopicPartition) -> int | None:
        """The high watermark, read without settling anything, so that reading has no side effect."""
        replicas, row = self._replicas, self._replicas.state.logs.row(topic_partition)
        if row is None:
            return None
        members = [key for key in replicas.state.copies_of(row) if replicas.state.copies.entry(key)["in_isr"]]
        ends = [replicas.state.logs.end(row, replicas.state.now_ms), *map(replicas.positions.position, members)]
        return replicas.state.logs.offset(row, min(ends))

    def brokers_with(self, topic_partition: TopicPartition) -> set[int]:
        """The brokers that have a copy, readable or not."""
        replicas, row = self._replicas, self._replicas.state.logs.row(topic_partition)
        dirs = [] if row is None else replicas.state.logs.replica_dirs(row)
        return {replicas.state.fleet.broker_ids[replicas.state.fleet.owner_of(log_dir)] for log_dir in dirs}

    def flows(self) -> Iterator[Flow]:
        """Every copy with a rate; none while rates are about to be recomputed."""
        replicas, live = self._replicas, self._replicas.state.copies.live
        if replicas.state.must_share:
            return
        for index in np.flatnonzero(live["rate"] > 0).tolist():
            key = replicas.state.copies.key(index)
            topic_partition, broker = replicas.state.logs.topic_partition(key.row), replicas.state.broker_id(key.broker)
            yield Flow(topic_partition, broker, key.is_future, float(live["rate"][index]))

    def usages(self) -> Iterator[Usage]:
        """The usage of every log directory, computed in two ways."""
        replicas, fleet = self._replicas, self._replicas.state.fleet
        sizes, counts = self._added_up()
        live = replicas.state.copies.live
        copied = np.bincount(live["log_dir"], live["position"] - live["begin"], len(fleet.paths))
        for log_dir, path in enumerate(fleet.paths):
            yield Usage(
                fleet.broker_ids[fleet.owner_of(log_dir)],
                path,
                float(replicas.state.in_sync_traffic.size[log_dir] + copied[log_dir]),
                float(sizes[log_dir] + copied[log_dir]),
                replicas.log_dirs.log_counts[log_dir],
                int(counts[log_dir]),
                float(replicas.log_dirs.to_be_deleted[log_dir]),
            )

    def _added_up(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Bytes of the copies in sync, and the number of all logs, by log directory."""
        replicas, logs, dirs_total = self._replicas, self._replicas.state.logs, len(self._replicas.state.fleet.paths)
        live, rows = replicas.state.copies.live, np.arange(len(logs.table), dtype=np.int32)
        lengths = logs.ends(rows, replicas.positions.settled_ms) - logs.starts(rows, replicas.positions.settled_ms)
        there = logs.dirs != NOWHERE
        places = logs.dirs[there]
        every_length = np.broadcast_to(lengths[:, np.newaxis], logs.dirs.shape)[there]
        sizes = np.bincount(places, every_length, dirs_total).astype(np.float64)
        apart = live[~live["is_future"]]
        sizes -= np.bincount(apart["log_dir"], lengths[apart["row"]], dirs_total)
        futures = np.bincount(live["log_dir"][live["is_future"]], minlength=dirs_total)
        return sizes, (np.bincount(places, minlength=dirs_total) + futures).astype(np.int64)

    def log_dir(self, topic_partition: TopicPartition, broker: int) -> str | None:
        """The path of the log directory of a copy."""
        key = self._key(topic_partition, broker)
        return (
            None if key is None else self._replicas.state.fleet.paths[self._replicas.state.dir_of(key.row, key.broker)]
        )

    def future_log_dir(self, topic_partition: TopicPartition, broker: int) -> str | None:
        """The target directory of a copy that moves on its broker; None if it does not move."""
        key = self._key(topic_partition, broker)
        future = None if key is None else key._replace(is_future=True)
        if future is None or future not in self._replicas.state.copies:
            return None
        return self._replicas.state.fleet.paths[int(self._replicas.state.copies.entry(future)["log_dir"])]

    def log_dirs(self, broker: int) -> tuple[LogDir, ...]:
        """All log directories of a broker with their contents, as in DescribeLogDirs."""
        replicas = self._replicas
        replicas.positions.settle()
        index = replicas.state.fleet.broker(broker)
        used = replicas.log_dirs.used_bytes()
        contents = self._contents(index)
        return tuple(
            self._describe(log_dir, float(used[log_dir]), contents.get(log_dir, []), number)
            for number, log_dir in enumerate(replicas.state.fleet.dirs_of(index))
        )

    def _describe(self, log_dir: int, used: float, keys: list[CopyKey], number: int) -> LogDir:
        """A log directory, `number` in its broker: each a byte smaller, for no two disks in use are alike to the byte.

        Those that are look like one disk to clients.
        """
        fleet = self._replicas.state.fleet
        path, total = fleet.paths[log_dir], int(fleet.capacity[log_dir]) - number
        if fleet.failed[log_dir]:
            return LogDir(path, OFFLINE, None, None, is_cordoned=False, replicas=())
        return LogDir(
            path,
            error=None,
            total_bytes=total,
            usable_bytes=max(0, total - round(used)),
            is_cordoned=bool(fleet.cordoned[log_dir]),
            replicas=tuple(sorted(map(self._entry, keys), key=lambda one: (one.topic_partition, one.is_future))),
        )

    def _entry(self, key: CopyKey) -> LogDirReplica:
        lag = 0
        if key.is_future:
            current = self._offset(key._replace(is_future=False), 1) or 0
            lag = max(0, current - (self._offset(key, 1) or 0))
        start, end = self._span(key) or (0.0, 0.0)
        return LogDirReplica(self._replicas.state.logs.topic_partition(key.row), round(end - start), lag, key.is_future)

    def _contents(self, broker: int) -> dict[int, list[CopyKey]]:
        replicas = self._replicas
        dirs, live = replicas.state.logs.dirs, replicas.state.copies.live
        contents: dict[int, list[CopyKey]] = {}
        for row, place in np.argwhere(replicas.state.fleet.owner[dirs] == broker).tolist():
            contents.setdefault(int(dirs[row, place]), []).append(CopyKey(row, broker))
        for index in np.flatnonzero(live["is_future"] & (live["broker"] == broker)).tolist():
            contents.setdefault(int(live["log_dir"][index]), []).append(replicas.state.copies.key(index))
        return contents

    def _key(self, topic_partition: TopicPartition, broker: int) -> CopyKey | None:
        row = self._replicas.state.logs.row(topic_partition)
        index = self._replicas.state.fleet.find_broker(broker)
        if row is None or index is None:
            return None
        log_dir = self._replicas.state.dir_of(row, index)
        is_readable = log_dir != NOWHERE and not self._replicas.state.fleet.failed[log_dir]
        return CopyKey(row, index) if is_readable else None

    def _offset(self, key: CopyKey | None, side: int) -> int | None:
        span = self._span(key)
        return None if key is None or span is None else self._replicas.state.logs.offset(key.row, span[side])

    def _span(self, key: CopyKey | None) -> tuple[float, float] | None:
        return None if key is None else self._replicas.positions.span(key)
