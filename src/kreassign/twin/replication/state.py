"""The state of replication: machines, logs, copies out of sync, traffic in sync, due tasks, and events.

Copies out of sync are followers that are behind or cut off, and the future copies of directory moves. Their table
is kept dense, so that thousands of copies move in a few array operations. The classes that change the state are
`CopyPositions`, `LogDirUsage`, `IsrMembership` and, for whole partitions, `Replicas`.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from kreassign.model import TopicPartition
from kreassign.twin.replication.hardware import (
    UNTHROTTLED,
    BrokerHardware,
    Fleet,
    InSyncTraffic,
    ReplicationSettings,
    TopicThrottle,
)
from kreassign.twin.replication.partition_logs import NOWHERE, PartitionLogs

# The table of copies that are not in sync.

_COPY = np.dtype([
    ("row", np.int32), ("broker", np.int32), ("log_dir", np.int32), ("source_dir", np.int32), ("serial", np.int64),
    ("is_future", np.bool_), ("started", np.bool_), ("runs", np.bool_), ("in_isr", np.bool_), ("reviewed", np.bool_),
    ("leader_throttled", np.bool_), ("follower_throttled", np.bool_),
    ("begin", np.float64), ("position", np.float64), ("rate", np.float64), ("behind_since_ms", np.int64),
])  # fmt: skip


class CopyKey(NamedTuple):
    """Key of a copy: the row of its partition, the index of its broker, and whether it is a future copy."""

    row: int
    broker: int
    is_future: bool = False


class Copies:
    """All copies that are out of sync; `live` has one entry each, in no particular order.

    `begin` and `position` delimit the bytes of the log that the copy has, as of the last settling;
    `rate` is the bytes per second that it gains. `log_dir` is where it is written, `source_dir` where a future copy
    is read from. A copy that has not `started` waits for its first fetch or its turn; a copy that `runs` has
    started and lacks nothing. `reviewed` is set while a check of its lag is scheduled, which reads `behind_since_ms`.
    """

    def __init__(self) -> None:
        self._table: NDArray[np.void] = np.zeros(64, _COPY)
        self._index: dict[CopyKey, int] = {}
        self._serial = 0

    def __len__(self) -> int:
        return len(self._index)

    def __contains__(self, key: CopyKey) -> bool:
        return key in self._index

    @property
    def live(self) -> NDArray[np.void]:
        """The entries, as a view: assignments change the table."""
        return self._table[: len(self._index)]

    def index(self, key: CopyKey) -> int | None:
        """Index of a copy in `live`, valid until the next removal; None if there is no such copy."""
        return self._index.get(key)

    def entry(self, key: CopyKey) -> np.void:
        """The entry of a copy, as a view; KeyError if there is no such copy."""
        entry: np.void = self._table[self._index[key]]
        return entry

    def key(self, index: int) -> CopyKey:
        """The key of the entry at this index."""
        entry = self._table[index]
        return CopyKey(int(entry["row"]), int(entry["broker"]), bool(entry["is_future"]))

    def add(self, key: CopyKey, log_dir: int, begin: float, position: float, now_ms: int) -> np.void:
        """Add a waiting copy that has these bytes; return its entry. `serial` tells it from later ones there."""
        index = len(self._index)
        if index == len(self._table):
            self._table = np.concatenate([self._table, np.zeros(index, _COPY)])
        self._serial += 1
        self._table[index] = (
            key.row, key.broker, log_dir, -1, self._serial, key.is_future, False, False, False, False, False, False,
            begin, position, 0.0, now_ms,
        )  # fmt: skip
        self._index[key] = index
        entry: np.void = self._table[index]
        return entry

    def remove(self, key: CopyKey) -> None:
        """Remove a copy. The last entry moves into its place."""
        index = self._index.pop(key)
        last = len(self._index)
        if index != last:
            self._table[index] = self._table[last]
            self._index[self.key(index)] = index


# Scheduled tasks of replication, and the queue that keeps them in order of time.


@dataclass(frozen=True, slots=True)
class StartCopy:
    """A follower's first fetch is due."""

    key: CopyKey
    serial: int


@dataclass(frozen=True, slots=True)
class Join:
    """A leader may ask the controller to add a follower to the ISR."""

    row: int
    broker: int


@dataclass(frozen=True, slots=True)
class ReviewLag:
    """A leader checks whether a member of the ISR is still behind."""

    key: CopyKey
    serial: int


@dataclass(frozen=True, slots=True)
class DeleteCopy:
    """The files of a removed copy are due to be deleted."""

    topic_partition: TopicPartition
    broker: int
    log_dir: int
    size: float


@dataclass(frozen=True, slots=True)
class ReachRetention:
    """A log is about to reach its retention."""

    row: int


Task = StartCopy | Join | ReviewLag | DeleteCopy | ReachRetention
"""Tasks are not cancelled: a task checks when it is due whether it still applies."""

Item = TypeVar("Item")


class EventQueue(Generic[Item]):
    """Items in order of time; items of the same millisecond in the order of adding."""

    def __init__(self) -> None:
        self._queue: list[tuple[int, int, Item]] = []
        self._order = 0

    @property
    def next_ms(self) -> int | None:
        """Time of the first item; None if the queue is empty."""
        return self._queue[0][0] if self._queue else None

    def add(self, due_ms: int, item: Item) -> None:
        """Add an item due at `due_ms`."""
        heapq.heappush(self._queue, (due_ms, self._order, item))
        self._order += 1

    def take(self, now_ms: int) -> Item | None:
        """Remove and return the first due item; None if no item is due."""
        if not self._queue or self._queue[0][0] > now_ms:
            return None
        return heapq.heappop(self._queue)[2]


# Events of copies on brokers, each with its replica. Replication only reports; brokers and the controller decide on the
# consequences (a change of the ISR, a new directory in the metadata), which come back as records.


@dataclass(frozen=True, slots=True, order=True)
class ReplicaCaughtUp:
    """A copy outside the ISR reached the high watermark: its leader wants to add it.

    Reported again while the copy stays caught up and outside.
    """

    topic_partition: TopicPartition
    broker: int


@dataclass(frozen=True, slots=True, order=True)
class ReplicaFellBehind:
    """An ISR member has been behind for longer than the allowed lag: its leader wants to remove it.

    Reported again while it stays behind and a member.
    """

    topic_partition: TopicPartition
    broker: int


@dataclass(frozen=True, slots=True, order=True)
class CopyDeleted:
    """The bytes of a removed copy were deleted from disk."""

    topic_partition: TopicPartition
    broker: int
    path: str


@dataclass(frozen=True, slots=True, order=True)
class FutureCopyCaughtUp:
    """A move between log directories ended: the copy is now in this directory."""

    topic_partition: TopicPartition
    broker: int
    path: str


@dataclass(frozen=True, slots=True, order=True)
class LogDirFull:
    """A log directory has no room left. Writes to it stop until something is deleted.

    A real broker then takes the whole directory offline; a twin that wants the same reacts with `fail_dir`.
    """

    broker: int
    path: str


ReplicaEvent = ReplicaCaughtUp | ReplicaFellBehind | CopyDeleted | FutureCopyCaughtUp | LogDirFull


# The whole state.


class ReplicationState:
    """State of replication. Brokers and log directories are indices into the fleet, partitions are rows of `logs`.

    `throttles` are the lists of throttled replicas, by topic; topics without any are left out. `events` collects events
    that were not reported yet. `must_share` is set when rates have to be recomputed.
    """

    def __init__(self, hardware: Mapping[int, BrokerHardware], settings: ReplicationSettings, now_ms: int) -> None:
        self.settings = settings
        self.now_ms = now_ms
        self.fleet = Fleet(hardware)
        self.logs = PartitionLogs()
        self.copies = Copies()
        self.in_sync_traffic = InSyncTraffic(len(self.fleet.broker_ids), len(self.fleet.paths))
        self.throttles: dict[str, TopicThrottle] = {}
        self.timers: EventQueue[Task] = EventQueue()
        self.events: list[ReplicaEvent] = []
        self.must_share = False

    def broker_id(self, broker: int) -> int:
        """The id of a broker by index; `NOWHERE` for `NOWHERE`."""
        return NOWHERE if broker == NOWHERE else self.fleet.broker_ids[broker]

    def dir_of(self, row: int, broker: int) -> int:
        """The log directory of the replica on a broker; `NOWHERE` if there is no such replica."""
        dirs = self.logs.replica_dirs(row)
        return next((log_dir for log_dir in dirs if self.fleet.owner_of(log_dir) == broker), NOWHERE)

    def copies_of(self, row: int) -> list[CopyKey]:
        """The copies of a partition that are behind or cut off, without future copies."""
        keys = (CopyKey(row, self.fleet.owner_of(log_dir)) for log_dir in self.logs.replica_dirs(row))
        return [key for key in keys if key in self.copies]

    def throttle_of(self, row: int) -> TopicThrottle:
        """The throttle lists of a partition's topic."""
        return self.throttles.get(self.logs.topic(row), UNTHROTTLED) if self.throttles else UNTHROTTLED


# Positions: the progress and lag of copies. Between two changes of rates all are linear in time.


class CopyPositions:
    """Positions of copies as of `settled_ms`, in bytes of their logs. Most methods need them to be settled."""

    def __init__(self, state: ReplicationState) -> None:
        self._state = state
        self._settled_ms = state.now_ms

    @property
    def settled_ms(self) -> int:
        """The time in milliseconds of which sums and positions are valid."""
        return self._settled_ms

    def settle(self) -> None:
        """Update all sums and positions to the present, before a rate changes."""
        state = self._state
        passed = state.now_ms - self._settled_ms
        if passed == 0:
            return
        self._settled_ms = state.now_ms
        state.in_sync_traffic.pass_time(passed)
        live = state.copies.live
        live["position"] += live["rate"] * (passed / 1000)
        self.apply_log_start(live["rate"] > 0)
        live["position"] = np.minimum(live["position"], self.targets())
        live["begin"] = np.minimum(live["begin"], live["position"])

    def apply_log_start(self, chosen: NDArray[np.bool_]) -> None:
        """Let these fetching copies delete what their leader deleted; copies further behind skip it."""
        live = self._state.copies.live
        starts = np.where(chosen, self._starts(), 0.0)
        live["position"] = np.maximum(live["position"], starts)
        live["begin"] = np.maximum(live["begin"], starts)

    def span(self, key: CopyKey) -> tuple[float, float]:
        """First byte and end of the part of its log that a copy has now."""
        state = self._state
        if key not in state.copies:
            return state.logs.start(key.row, state.now_ms), state.logs.end(key.row, state.now_ms)
        self.settle()
        entry = state.copies.entry(key)
        return float(entry["begin"]), float(entry["position"])

    def _starts(self) -> NDArray[np.float64]:
        live = self._state.copies.live
        starts = self._state.logs.starts(live["row"], self._state.now_ms)
        for future, local in self._futures_of_copies():
            starts[future] = live["begin"][local]
        return starts

    def lags(self) -> NDArray[np.float64]:
        """Bytes that each copy still has to fetch."""
        return np.asarray(self.targets() - self._state.copies.live["position"], np.float64)

    def targets(self) -> NDArray[np.float64]:
        """Target position of each copy: the end of its log, or for a future copy that of the copy that it replaces."""
        live = self._state.copies.live
        ends = self._state.logs.ends(live["row"], self._state.now_ms)
        for future, local in self._futures_of_copies():
            ends[future] = min(float(ends[future]), float(live["position"][local]))
        return ends

    def target_growths(self) -> NDArray[np.float64]:
        """Growth of the targets in bytes per second."""
        live = self._state.copies.live
        growths = self._state.logs.growths(live["row"])
        for future, local in self._futures_of_copies():
            growths[future] = live["rate"][local]
        return growths

    def _futures_of_copies(self) -> Iterator[tuple[int, int]]:
        copies = self._state.copies
        for future in np.flatnonzero(copies.live["is_future"]).tolist():
            local = copies.index(copies.key(future)._replace(is_future=False))
            if local is not None:
                yield future, local

    def position(self, key: CopyKey) -> float:
        """The present position of a copy, without settling anything."""
        state, entry = self._state, self._state.copies.entry(key)
        gained = float(entry["rate"]) * (state.now_ms - self._settled_ms) / 1000
        end = max(state.logs.end(key.row, state.now_ms), float(entry["position"]))
        return min(float(entry["position"]) + gained, end)

    def size(self, key: CopyKey) -> float:
        """The size of a copy in bytes."""
        begin, end = self.span(key)
        return end - begin

    def watermark(self, row: int) -> float:
        """The high watermark in bytes: the lowest position in the ISR."""
        state = self._state
        members = (state.copies.entry(key) for key in state.copies_of(row))
        positions = [float(member["position"]) for member in members if member["in_isr"]]
        return min([state.logs.end(row, state.now_ms), *positions])
