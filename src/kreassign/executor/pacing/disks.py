"""Whether a log directory has room for one more copy. Pure but for its own counts.

Usable bytes are what the directory reports as free: what old copies occupy is not free until they are deleted, so it
is never counted on. What copies in flight still have to bring is taken off beforehand.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import isfinite

from kreassign.executor.pacing.values import Candidate, Place


@dataclass(slots=True)
class Room:
    """Bytes that may still be promised in each log directory; shrinks with each move that starts."""

    _free: dict[Place, float]
    _rate_bytes_per_s: float | None

    @classmethod
    def after(
        cls,
        usable_bytes: Mapping[Place, int],
        in_flight: Iterable[Candidate],
        *,
        reserve_bytes: int = 0,
        rate_bytes_per_s: float | None = None,
    ) -> Room:
        """What is left of `usable_bytes` without the reserve and once `in_flight` has arrived.

        The size of a move in flight is what it still has to bring. `rate_bytes_per_s` is how fast copies come in, if
        known: meanwhile a partition goes on being written.
        """
        room = cls({place: usable - reserve_bytes for place, usable in usable_bytes.items()}, rate_bytes_per_s)
        for move in in_flight:
            room.promise(move)
        return room

    def promise(self, move: Candidate) -> None:
        """Take off what the copies of a move will need."""
        for place in move.log_dirs:
            if place in self._free:
                self._free[place] -= needed_bytes(move, self._rate_bytes_per_s)

    def refuses(self, move: Candidate) -> str | None:
        """Which directory has no room for the move, as a sentence, or None. Directories unknown here refuse nothing."""
        needed = needed_bytes(move, self._rate_bytes_per_s)
        for broker, path in move.log_dirs:
            free = self._free.get((broker, path))
            if free is not None and needed > free:
                much = f"needs {int(needed)}" if isfinite(needed) else "never catches up with what is written"
                return (
                    f"log directory {path} of broker {broker} has {max(0, int(free))} bytes to promise, "
                    f"and a copy {much}"
                )
        return None


def needed_bytes(move: Candidate, rate_bytes_per_s: float | None) -> float:
    """What one copy has become when it has caught up: s + w·s/(r-w); infinite where it never does."""
    if rate_bytes_per_s is None or move.size_bytes == 0:
        return float(move.size_bytes)
    gain = rate_bytes_per_s - move.write_bytes_per_s
    return move.size_bytes * rate_bytes_per_s / gain if gain > 0 else float("inf")
