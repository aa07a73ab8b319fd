"""How far copies out of sync have come and have to go. Between two changes of rates all are straight lines."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from kreassign.twin.replication.copies import CopyKey
from kreassign.twin.replication.state import ReplicationState


class CopyPositions:
    """Positions of copies as of `settled_ms`, in bytes of their logs. Most methods need them to be settled."""

    def __init__(self, state: ReplicationState) -> None:
        self._state = state
        self._settled_ms = state.now_ms

    @property
    def settled_ms(self) -> int:
        """As of when sums and positions hold."""
        return self._settled_ms

    def settle(self) -> None:
        """Bring all sums and positions to the present, before a rate changes."""
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
        """Let copies that fetch lose what their leader has deleted; those further behind skip it."""
        live = self._state.copies.live
        starts = np.where(chosen, self._starts(), 0.0)
        live["position"] = np.maximum(live["position"], starts)
        live["begin"] = np.maximum(live["begin"], starts)

    def start(self, key: CopyKey) -> float:
        """Where the log of a copy that is not a future one begins, and where a future copy of it is to begin."""
        if key in self._state.copies:
            return float(self._state.copies.entry(key)["begin"])
        return self._state.logs.start(key.row, self._state.now_ms)

    def _starts(self) -> NDArray[np.float64]:
        live = self._state.copies.live
        starts = self._state.logs.starts(live["row"], self._state.now_ms)
        for future, local in self._futures_of_copies():
            starts[future] = live["begin"][local]
        return starts

    def lags(self) -> NDArray[np.float64]:
        """How many bytes each copy has still to go."""
        return np.asarray(self.targets() - self._state.copies.live["position"], np.float64)

    def targets(self) -> NDArray[np.float64]:
        """Where each copy has to arrive: the end of its log; for a future copy, that of the copy that it replaces."""
        live = self._state.copies.live
        ends = self._state.logs.ends(live["row"], self._state.now_ms)
        for future, local in self._futures_of_copies():
            ends[future] = min(float(ends[future]), float(live["position"][local]))
        return ends

    def target_growths(self) -> NDArray[np.float64]:
        """How fast the targets move away, bytes per second."""
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
        """Where a copy is at present, without settling anything."""
        state, entry = self._state, self._state.copies.entry(key)
        gained = float(entry["rate"]) * (state.now_ms - self._settled_ms) / 1000
        end = max(state.logs.end(key.row, state.now_ms), float(entry["position"]))
        return min(float(entry["position"]) + gained, end)

    def size(self, key: CopyKey) -> float:
        """Bytes of a copy."""
        state = self._state
        if key in state.copies:
            entry = state.copies.entry(key)
            return float(entry["position"] - entry["begin"])
        return state.logs.end(key.row, state.now_ms) - state.logs.start(key.row, state.now_ms)

    def watermark(self, row: int) -> float:
        """How far all members of the ISR have come: the high watermark."""
        state = self._state
        members = (state.copies.entry(key) for key in state.copies_of(row))
        positions = [float(member["position"]) for member in members if member["in_isr"]]
        return min([state.logs.end(row, state.now_ms), *positions])
