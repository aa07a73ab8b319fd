"""How fast the copies of a run go, measured from its looks, for runs that have no throttle to go by."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from kreassign.executor.state.move import MoveRecord

MEASURED_OVER_MS = 5_000
"""It is measured over so long, again and again."""


@dataclass(slots=True)
class CopySpeed:
    """What the fastest broker received lately, in bytes per second; None before anything was measured."""

    fastest_bytes_per_s: float | None = None
    _at_ms: int | None = None
    _received: dict[int, int] = field(default_factory=dict)

    def see(self, records: Iterable[MoveRecord], at_ms: int) -> None:
        """Take in how far all moves are."""
        if self._at_ms is not None and at_ms - self._at_ms < MEASURED_OVER_MS:
            return
        received: dict[int, int] = {}
        for record in records:
            for broker, size_bytes in record.bytes_received.items():
                received[broker] = received.get(broker, 0) + size_bytes
        if self._at_ms is not None:
            gain = max(
                (size_bytes - self._received.get(broker, 0) for broker, size_bytes in received.items()), default=0
            )
            if gain > 0:
                self.fastest_bytes_per_s = gain * 1000 / (at_ms - self._at_ms)
        self._at_ms, self._received = at_ms, received
