"""Logs of all partitions with their length and growth, as arrays, so that a million replicas fit.

A log is a range of bytes since its partition was created: from `start` to `end`, both linear in time. A replica in sync
has exactly this range, so it needs no entry of its own but a log directory. Offsets are bytes divided by the mean size
of a record. The remote part of a tiered topic (KIP-405) lies before `start`, from `first` on at the most, and takes no
room here.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kreassign.errors import InputError
from kreassign.model import TopicPartition

# Retention: how much of its log a topic keeps on its brokers, and in all if it is tiered (KIP-405).

RETENTION_BYTES = "retention.bytes"
LOCAL_RETENTION_BYTES = "local.retention.bytes"
REMOTE_STORAGE = "remote.storage.enable"
SEGMENT_BYTES = "segment.bytes"
LOG_SETTINGS = frozenset({RETENTION_BYTES, LOCAL_RETENTION_BYTES, REMOTE_STORAGE, SEGMENT_BYTES})
"""The topic settings that determine retention and tiering."""

_AS_IN_ALL = -2


@dataclass(frozen=True, slots=True)
class Tiering:
    """The remote part of a log: up to `total_bytes` in all (None: no limit), in segments of `segment_bytes`.

    A segment is uploaded once it is full.
    """

    total_bytes: int | None = None
    segment_bytes: int = 1 << 30


def tiering_of(settings: Mapping[str, str]) -> Tiering | None:
    """The tiering of a topic with these settings; None if it is not tiered."""
    if settings.get(REMOTE_STORAGE, "").strip().lower() != "true":
        return None
    return Tiering(_bytes(settings.get(RETENTION_BYTES)), int(settings.get(SEGMENT_BYTES, Tiering().segment_bytes)))


def kept_bytes(settings: Mapping[str, str]) -> int | None:
    """Bytes of the log that each broker keeps locally; None for all of them.

    For a tiered topic at least one segment: only uploaded segments are deleted locally.
    """
    tiering, local = tiering_of(settings), settings.get(LOCAL_RETENTION_BYTES)
    if tiering is None or local is None or int(local) == _AS_IN_ALL:
        return _bytes(settings.get(RETENTION_BYTES))
    kept = _bytes(local)
    if kept is None:
        return None
    least = max(kept, tiering.segment_bytes)
    return least if tiering.total_bytes is None else min(least, tiering.total_bytes)


def _bytes(text: str | None) -> int | None:
    return None if text is None or int(text) < 0 else max(1, int(text))


# Logs.

NOWHERE = -1
_FIRST_WIDTH = 4
# A record counts as written a thousandth before its last byte is: bytes are real numbers, and must not round down.
_EARLY = 1e-3

_LOG = np.dtype([
    ("topic", np.int32), ("partition", np.int32),
    ("leader", np.int32), ("leader_dir", np.int32),
    ("start", np.float64), ("end", np.float64), ("since_ms", np.int64),
    ("write_rate", np.float64), ("record_bytes", np.float64), ("retention", np.float64),
    ("flows", np.bool_), ("full_length", np.bool_),
    ("tiered", np.bool_), ("first", np.float64), ("total", np.float64), ("segment", np.float64),
])  # fmt: skip


@dataclass(frozen=True, slots=True)
class Traffic:
    """Bytes that a partition holds and that producers add, per copy.

    Compacted topics and consumers are not modelled. Once `retention_bytes` are reached the log loses at its start what
    it gains at its end; without it the log only grows. With `tiering` it is the local retention of each broker; older
    segments are in remote storage, from the first offset of the partition on.
    """

    size_bytes: int = 0
    write_bytes_per_s: float = 0.0
    record_bytes: float = 1000.0
    start_offset: int = 0
    retention_bytes: int | None = None
    tiering: Tiering | None = None

    def __post_init__(self) -> None:
        if min(self.size_bytes, self.write_bytes_per_s, self.start_offset) < 0 or self.record_bytes <= 0:
            raise InputError(f"a partition cannot hold or gain less than nothing: {self}")
        if self.retention_bytes is not None and self.retention_bytes <= 0:
            raise InputError(f"a partition that keeps no bytes is not modelled: {self}")


EMPTY = Traffic()


class PartitionLogs:
    """All logs, one row each. `table` has their numbers, `dirs` the log directories of the replicas (rows, places).

    In `dirs` a place without a replica is `NOWHERE`. Brokers and log directories are indices into the fleet.
    """

    def __init__(self) -> None:
        self.table: NDArray[np.void] = np.zeros(0, _LOG)
        self.dirs: NDArray[np.int32] = np.full((0, _FIRST_WIDTH), NOWHERE, np.int32)
        self._free: list[int] = []
        self._used = 0
        self._names: list[str] = []
        self._free_names: list[int] = []
        self._name_index: dict[str, int] = {}
        self._rows: dict[str, array[int]] = {}

    def __len__(self) -> int:
        return self._used - len(self._free)

    # Lookup of rows

    def row(self, topic_partition: TopicPartition) -> int | None:
        """The row of a partition; None if the partition does not exist."""
        rows = self._rows.get(topic_partition.topic)
        if rows is None or not 0 <= topic_partition.partition < len(rows):
            return None
        row = rows[topic_partition.partition]
        return None if row == NOWHERE else row

    def rows(self, topic: str) -> list[int]:
        """The rows of all partitions of a topic."""
        return [row for row in self._rows.get(topic, ()) if row != NOWHERE]

    def topic(self, row: int) -> str:
        """The topic of a row."""
        return self._names[int(self.table["topic"][row])]

    def topic_partition(self, row: int) -> TopicPartition:
        """The partition of a row."""
        return TopicPartition(self.topic(row), int(self.table["partition"][row]))

    # Add and remove rows

    def reserve(self, count: int) -> None:
        """Make room for `count` more rows at once."""
        wanted = self._used + count
        if wanted > len(self.table):
            more = max(wanted, 2 * len(self.table)) - len(self.table)
            self.table = np.concatenate([self.table, np.zeros(more, _LOG)])
            self.dirs = np.concatenate([self.dirs, np.full((more, self.dirs.shape[1]), NOWHERE, np.int32)])

    def add(self, topic_partition: TopicPartition, traffic: Traffic, now_ms: int) -> int:
        """Add a log without replicas and leader; return its row."""
        row = self._free.pop() if self._free else self._next()
        start = traffic.start_offset * traffic.record_bytes
        keeps, is_tiered = _or_all(traffic.retention_bytes), traffic.tiering is not None
        end = start + traffic.size_bytes
        self.table[row] = (
            self._name(topic_partition.topic), topic_partition.partition, NOWHERE, NOWHERE,
            max(start, end - keeps) if is_tiered else start, end, now_ms,
            traffic.write_bytes_per_s, traffic.record_bytes, keeps, False, traffic.size_bytes >= keeps,
            is_tiered, 0.0, *_of_tiering(traffic.tiering),
        )  # fmt: skip
        rows = self._rows.setdefault(topic_partition.topic, array("q"))
        rows.extend([NOWHERE] * (topic_partition.partition + 1 - len(rows)))
        rows[topic_partition.partition] = row
        return row

    def remove(self, row: int) -> None:
        """Remove a log."""
        topic, partition = self.topic_partition(row)
        self._rows[topic][partition] = NOWHERE
        if all(other == NOWHERE for other in self._rows[topic]):
            del self._rows[topic]
            self._free_names.append(self._name_index.pop(topic))
        self.dirs[row] = NOWHERE
        self._free.append(row)

    def _next(self) -> int:
        if self._used == len(self.table):
            self.reserve(1 + self._used // 2)
        self._used += 1
        return self._used - 1

    def _name(self, topic: str) -> int:
        index = self._name_index.get(topic)
        if index is None and self._free_names:
            index = self._free_names.pop()
            self._names[index] = topic
        elif index is None:
            index = len(self._names)
            self._names.append(topic)
        self._name_index[topic] = index
        return index

    # Log directories of replicas

    def replica_dirs(self, row: int) -> list[int]:
        """The log directories of all replicas of a row."""
        return [log_dir for log_dir in self.dirs[row].tolist() if log_dir != NOWHERE]

    def place_all(self, row: int, log_dirs: list[int]) -> None:
        """Put the replicas of a new row into these log directories."""
        if len(log_dirs) > self.dirs.shape[1]:
            self._widen(len(log_dirs) - self.dirs.shape[1])
        self.dirs[row, : len(log_dirs)] = log_dirs

    def place(self, row: int, log_dir: int) -> None:
        """Put a replica into a log directory."""
        free = np.flatnonzero(self.dirs[row] == NOWHERE)
        place = int(free[0]) if free.size else self.dirs.shape[1]
        if not free.size:
            self._widen(2)
        self.dirs[row, place] = log_dir

    def displace(self, row: int, log_dir: int, into: int = NOWHERE) -> None:
        """Take a replica out of a log directory, or put it into another."""
        self.dirs[row, self.dirs[row] == log_dir] = into

    def _widen(self, places: int) -> None:
        more = np.full((self.dirs.shape[0], places), NOWHERE, np.int32)
        self.dirs = np.concatenate([self.dirs, more], axis=1)

    # Length of the logs

    def grows(self, row: int) -> float:
        """Bytes per second that the log really gains at its end."""
        return float(self.table["write_rate"][row]) if self.table["flows"][row] else 0.0

    def end(self, row: int, now_ms: int) -> float:
        """Bytes written since the partition was created."""
        return float(self.table["end"][row]) + self._gained(row, now_ms)

    def record_ms(self, row: int) -> int:
        """Milliseconds, at least 1, until the next record is written; the log must grow."""
        return max(1, math.ceil(float(self.table["record_bytes"][row]) / self.grows(row) * 1000))

    def start(self, row: int, now_ms: int) -> float:
        """Bytes deleted since the partition was created."""
        lost = self._gained(row, now_ms) if self.table["full_length"][row] else 0.0
        return float(self.table["start"][row]) + lost

    def first(self, row: int, now_ms: int) -> float:
        """The first byte of the log, remote storage included."""
        start, entry = self.start(row, now_ms), self.table[row]
        if not entry["tiered"]:
            return start
        return min(start, max(float(entry["first"]), self.end(row, now_ms) - float(entry["total"])))

    def uploaded(self, row: int, now_ms: int) -> float | None:
        """End of the uploaded log: locally deleted bytes and all full segments; None if not tiered."""
        entry = self.table[row]
        if not entry["tiered"]:
            return None
        full = self.end(row, now_ms) // float(entry["segment"]) * float(entry["segment"])
        return max(self.start(row, now_ms), full)

    def settle(self, row: int, now_ms: int) -> None:
        """Restart both lines at this moment, before a rate changes."""
        entry = self.table[row]
        entry["start"], entry["end"] = self.start(row, now_ms), self.end(row, now_ms)
        entry["since_ms"] = now_ms
        entry["full_length"] = entry["end"] - entry["start"] >= entry["retention"]

    def keep(self, row: int, retention_bytes: int | None, tiering: Tiering | None = None) -> None:
        """Set the retention of a settled log in bytes (None: all); surplus bytes are deleted at once.

        With `tiering` the deleted bytes are in remote storage.
        """
        entry = self.table[row]
        if tiering is not None and not entry["tiered"]:
            entry["first"] = entry["start"]
        entry["tiered"] = tiering is not None
        entry["total"], entry["segment"] = _of_tiering(tiering)
        entry["retention"] = _or_all(retention_bytes)
        entry["start"] = max(float(entry["start"]), float(entry["end"] - entry["retention"]))

    def set_leader(self, row: int, broker: int, log_dir: int) -> None:
        """Set the leader of a new row, which is written to from then on."""
        entry = self.table[row]
        entry["leader"], entry["leader_dir"], entry["flows"] = broker, log_dir, True

    def replace(self, row: int, start: float, end: float) -> None:
        """Set the log to what a new leader has of it. The log must have been settled."""
        entry = self.table[row]
        entry["start"], entry["end"] = start, end

    def full_length_ms(self, row: int, now_ms: int) -> int | None:
        """Milliseconds until the log reaches its retention; None if it never does at the present rate."""
        grows, entry = self.grows(row), self.table[row]
        missing = float(entry["retention"]) - (self.end(row, now_ms) - self.start(row, now_ms))
        if entry["full_length"] or grows <= 0 or missing == float("inf"):
            return None
        return max(1, math.ceil(missing / grows * 1000))

    def is_at_retention(self, row: int, now_ms: int) -> bool:
        """True if the log has reached its retention."""
        return self.end(row, now_ms) - self.start(row, now_ms) >= float(self.table["retention"][row])

    def _gained(self, row: int, now_ms: int) -> float:
        return self.grows(row) * (now_ms - int(self.table["since_ms"][row])) / 1000

    def ends(self, rows: NDArray[np.int32], now_ms: int) -> NDArray[np.float64]:
        """`end` for many rows."""
        entries = self.table[rows]
        return np.asarray(entries["end"] + self._gains(entries, now_ms))

    def starts(self, rows: NDArray[np.int32], now_ms: int) -> NDArray[np.float64]:
        """`start` for many rows."""
        entries = self.table[rows]
        return np.asarray(entries["start"] + np.where(entries["full_length"], self._gains(entries, now_ms), 0.0))

    def growths(self, rows: NDArray[np.int32]) -> NDArray[np.float64]:
        """`grows` for many rows."""
        return np.where(self.table["flows"][rows], self.table["write_rate"][rows], 0.0)

    @staticmethod
    def _gains(entries: NDArray[np.void], now_ms: int) -> NDArray[np.float64]:
        seconds = (now_ms - entries["since_ms"]) / 1000
        return np.asarray(np.where(entries["flows"], entries["write_rate"], 0.0) * seconds)

    def offset(self, row: int, position: float) -> int:
        """The offset of the first record that does not lie wholly before this byte."""
        return int(position / float(self.table["record_bytes"][row]) + _EARLY)


def _or_all(most_bytes: int | None) -> float:
    return math.inf if most_bytes is None else float(most_bytes)


def _of_tiering(tiering: Tiering | None) -> tuple[float, float]:
    """Bytes kept in all, and bytes of a segment."""
    return (math.inf, math.inf) if tiering is None else (_or_all(tiering.total_bytes), float(tiering.segment_bytes))
