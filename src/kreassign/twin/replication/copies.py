"""Copies that are not in sync: followers that are behind or cut off, and the future copies of directory moves.

A table kept dense, so that thousands of copies move in a few array operations.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

_COPY = np.dtype([
    ("row", np.int32), ("broker", np.int32), ("log_dir", np.int32), ("source_dir", np.int32), ("serial", np.int64),
    ("is_future", np.bool_), ("started", np.bool_), ("runs", np.bool_), ("in_isr", np.bool_), ("reviewed", np.bool_),
    ("leader_throttled", np.bool_), ("follower_throttled", np.bool_),
    ("begin", np.float64), ("position", np.float64), ("rate", np.float64), ("behind_since_ms", np.int64),
])  # fmt: skip


class CopyKey(NamedTuple):
    """Which copy: the row of its partition, the index of its broker, and whether it is a future copy."""

    row: int
    broker: int
    is_future: bool = False


class Copies:
    """All copies that are not in sync; `live` has one entry each, in no order that means anything.

    `begin` and `position` are the bytes of the log between which the copy has everything, as of the last settling;
    `rate` is the bytes per second that it gains. `log_dir` is where it is written, `source_dir` where a future copy
    is read from. A copy that has not `started` waits: for its first fetch, or for its turn; one that `runs` also has
    all that it needs. `reviewed` is set while its lag will be looked at, `behind_since_ms` is what is looked at then.
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
        """The entries, as a view: what is assigned to them stays."""
        return self._table[: len(self._index)]

    def index(self, key: CopyKey) -> int | None:
        """Where in `live` a copy is, until the next removal."""
        return self._index.get(key)

    def entry(self, key: CopyKey) -> np.void:
        """One entry, as a view; KeyError if there is no such copy."""
        entry: np.void = self._table[self._index[key]]
        return entry

    def key(self, index: int) -> CopyKey:
        """Whose entry this is."""
        entry = self._table[index]
        return CopyKey(int(entry["row"]), int(entry["broker"]), bool(entry["is_future"]))

    def add(self, key: CopyKey, log_dir: int, begin: float, position: float, now_ms: int) -> np.void:
        """A copy that has these bytes and waits; its entry. Its `serial` tells it from others at the same place."""
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
        """Forget a copy. The last entry takes its place."""
        index = self._index.pop(key)
        last = len(self._index)
        if index != last:
            self._table[index] = self._table[last]
            self._index[self.key(index)] = index
