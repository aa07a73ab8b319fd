"""Whether a copy would end before a window closes. Pure but for its own counts.

What a broker sends shares one rate, and so does what it receives: all copies at one end are over when the sum of them
is. A partition that is written meanwhile grows, as for the room on its disk.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from kreassign.executor.scheduling.disk_admission import needed_bytes
from kreassign.executor.scheduling.values import Candidate, EndpointKind

Side = tuple[EndpointKind, int]


@dataclass(slots=True)
class TimeLeft:
    """The seconds for which moves may be in flight, and the bytes that each end is busy with; grows with each start.

    `rate_bytes_per_s` is what a broker sends, or receives; None as long as nobody knows. Then one move at a time is
    started, to see.
    """

    seconds: float
    rate_bytes_per_s: float | None
    _busy: dict[Side, float] = field(default_factory=dict)
    _is_anything: bool = False

    @classmethod
    def after(cls, seconds: float, rate_bytes_per_s: float | None, in_flight: Iterable[Candidate]) -> TimeLeft:
        """What is left of the time once `in_flight` has arrived; its sizes are what is left of it."""
        left = cls(seconds, rate_bytes_per_s)
        for move in in_flight:
            left.promise(move)
        return left

    @property
    def depends_on_size(self) -> bool:
        """There may be time for a smaller copy."""
        return True

    def promise(self, move: Candidate) -> None:
        """Count a move that starts."""
        self._is_anything = self._is_anything or bool(move.ends)
        for side, size_bytes in sides(move, self.rate_bytes_per_s):
            self._busy[side] = self._busy.get(side, 0.0) + size_bytes

    def refuses(self, move: Candidate) -> str | None:
        """Why the move may not start now, as a sentence, or None."""
        if self.seconds <= 0:
            return "moves may not be in flight now"
        if self.rate_bytes_per_s is None:
            waits = self._is_anything and bool(move.ends)
            return "nobody knows yet how fast copies go, so one goes ahead" if waits else None
        for side, size_bytes in sides(move, self.rate_bytes_per_s):
            if self._busy.get(side, 0.0) + size_bytes > self.seconds * self.rate_bytes_per_s:
                return f"it would not end in the {int(self.seconds)} s that are left for what broker {side[1]} copies"
        return None


def sides(move: Candidate, rate_bytes_per_s: float | None) -> tuple[tuple[Side, float], ...]:
    """The brokers that copy, and what each of them has to send, to receive or to rearrange until it is over."""
    needed = needed_bytes(move, rate_bytes_per_s)
    into = (((EndpointKind.DESTINATION, broker), needed) for broker in move.destinations)
    local = (((EndpointKind.LOG_DIR, broker), needed) for broker in move.rearranging)
    out = (((EndpointKind.SOURCE, move.source), needed * len(move.destinations)),) if move.destinations else ()
    return (*out, *into, *local)
