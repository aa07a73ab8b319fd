"""What brokers would answer about their copies now: sizes, offsets, log directories. Changes nothing."""

from __future__ import annotations

import numpy as np

from kreassign.model import LogDir, LogDirReplica, TopicPartition
from kreassign.twin.copies import CopyKey
from kreassign.twin.partition_logs import NOWHERE
from kreassign.twin.replicas import Replicas

OFFLINE = "the log directory is offline"


class ReplicaReadings:
    """Reads copies by partition and broker id. What a broker does not have, or cannot read, is None."""

    def __init__(self, replicas: Replicas) -> None:
        self._replicas = replicas

    def size_bytes(self, topic_partition: TopicPartition, broker: int) -> int | None:
        """Bytes of a copy."""
        span = self._span(self._key(topic_partition, broker))
        return None if span is None else round(span[1] - span[0])

    def log_end_offset(self, topic_partition: TopicPartition, broker: int) -> int | None:
        """The offset that the next record of this copy will have."""
        return self._offset(self._key(topic_partition, broker), 1)

    def log_start_offset(self, topic_partition: TopicPartition, broker: int) -> int | None:
        """The offset of the first record that this copy still has."""
        return self._offset(self._key(topic_partition, broker), 0)

    def high_watermark(self, topic_partition: TopicPartition) -> int | None:
        """The offset up to which all members of the ISR have everything; None for an unknown partition."""
        row = self._replicas.logs.row(topic_partition)
        if row is None:
            return None
        self._replicas.settle()
        return self._replicas.logs.offset(row, self._replicas.watermark(row))

    def log_dir(self, topic_partition: TopicPartition, broker: int) -> str | None:
        """The path of the log directory of a copy."""
        key = self._key(topic_partition, broker)
        return None if key is None else self._replicas.fleet.paths[self._replicas.dir_of(key.row, key.broker)]

    def future_log_dir(self, topic_partition: TopicPartition, broker: int) -> str | None:
        """Where a copy is being moved to on its broker; None if it is not."""
        key = self._key(topic_partition, broker)
        future = None if key is None else key._replace(is_future=True)
        if future is None or future not in self._replicas.copies:
            return None
        return self._replicas.fleet.paths[int(self._replicas.copies.entry(future)["log_dir"])]

    def log_dirs(self, broker: int) -> tuple[LogDir, ...]:
        """All log directories of a broker with what is in them, as DescribeLogDirs tells it."""
        replicas = self._replicas
        replicas.settle()
        index = replicas.fleet.broker(broker)
        used = replicas.used_bytes()
        contents = self._contents(index)
        return tuple(
            self._describe(log_dir, float(used[log_dir]), contents.get(log_dir, []))
            for log_dir in replicas.fleet.dirs_of(index)
        )

    def _describe(self, log_dir: int, used: float, keys: list[CopyKey]) -> LogDir:
        fleet = self._replicas.fleet
        path, total = fleet.paths[log_dir], int(fleet.capacity[log_dir])
        if fleet.failed[log_dir]:
            return LogDir(path, OFFLINE, None, None, is_cordoned=False, replicas=())
        return LogDir(
            path,
            error=None,
            total_bytes=total,
            usable_bytes=max(0, total - round(used)),
            is_cordoned=bool(fleet.cordoned[log_dir]),
            replicas=tuple(sorted((self._entry(key) for key in keys), key=_by_partition)),
        )

    def _entry(self, key: CopyKey) -> LogDirReplica:
        lag = 0
        if key.is_future:
            current = self._offset(key._replace(is_future=False), 1) or 0
            lag = max(0, current - (self._offset(key, 1) or 0))
        start, end = self._span(key) or (0.0, 0.0)
        return LogDirReplica(self._replicas.logs.topic_partition(key.row), round(end - start), lag, key.is_future)

    def _contents(self, broker: int) -> dict[int, list[CopyKey]]:
        replicas = self._replicas
        dirs, live = replicas.logs.dirs, replicas.copies.live
        contents: dict[int, list[CopyKey]] = {}
        for row, place in np.argwhere(replicas.fleet.owner[dirs] == broker).tolist():
            contents.setdefault(int(dirs[row, place]), []).append(CopyKey(row, broker))
        for index in np.flatnonzero(live["is_future"] & (live["broker"] == broker)).tolist():
            contents.setdefault(int(live["log_dir"][index]), []).append(replicas.copies.key(index))
        return contents

    def _key(self, topic_partition: TopicPartition, broker: int) -> CopyKey | None:
        row = self._replicas.logs.row(topic_partition)
        index = self._replicas.fleet.find_broker(broker)
        if row is None or index is None:
            return None
        log_dir = self._replicas.dir_of(row, index)
        is_readable = log_dir != NOWHERE and not self._replicas.fleet.failed[log_dir]
        return CopyKey(row, index) if is_readable else None

    def _offset(self, key: CopyKey | None, side: int) -> int | None:
        span = self._span(key)
        return None if key is None or span is None else self._replicas.logs.offset(key.row, span[side])

    def _span(self, key: CopyKey | None) -> tuple[float, float] | None:
        """From which byte to which byte of its log a copy has everything."""
        if key is None:
            return None
        replicas = self._replicas
        if key in replicas.copies:
            replicas.settle()
            entry = replicas.copies.entry(key)
            return float(entry["begin"]), float(entry["position"])
        return replicas.logs.start(key.row, replicas.now_ms), replicas.logs.end(key.row, replicas.now_ms)


def _by_partition(replica: LogDirReplica) -> tuple[TopicPartition, bool]:
    return replica.topic_partition, replica.is_future
