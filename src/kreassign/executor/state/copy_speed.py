"""How fast the copies of a run go, measured from its polls, and from that how much in flight keeps a broker busy.

A broker must not run dry before the next poll, or it stands idle while moves wait; more than that only makes all its
copies slower. How fast brokers are shows by itself, whatever limits them: a throttle, a network, a disk.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from kreassign.executor.scheduling import Candidate, Saturation, SaturationThreshold
from kreassign.executor.state.move import MoveRecord

MEASURED_OVER_MS = 5_000
"""The rate of the fastest broker is measured over this long, again and again."""

COPIES = 2
"""Of two copies that end one after the other, one goes on at the full rate until the next poll."""

POLLS = 4
"""What is in flight lasts for so many polls: sizes differ, and a copy may wait for its other end."""

LEAST_BYTES = 128_000_000
"""Where nothing has been measured yet."""

FADING = 0.9
"""Of the most that was ever done between two polls, so much counts at the next one: rates may fall."""


@dataclass(slots=True)
class CopySpeed:
    """What brokers got done lately.

    `fastest_bytes_per_s` is what the fastest one received, None before anything was measured; `most_done_bytes` the
    most that one sent or received between two polls.
    """

    fastest_bytes_per_s: float | None = None
    most_done_bytes: float = 0.0
    _at_ms: int | None = None
    _received: dict[int, int] = field(default_factory=dict)
    _done: Counter[tuple[str, int]] = field(default_factory=Counter)
    _polls: int = 0

    def measure(self, records: Iterable[MoveRecord], at_ms: int) -> None:
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

    def note_poll(self, before: Iterable[tuple[MoveRecord, dict[int, int]]], *, has_progress: bool = True) -> None:
        """Take in what was copied since the poll before, given what each broker had received of each move then.

        After polls without progress, one that has it shows what was done in all of them; each did its part.
        """
        self._polls += 1
        for record, had in before:
            source, has = record.source, record.bytes_received
            for broker in record.move.adding:
                gained = max(0, has[broker] - had.get(broker, 0))
                self._done["source", source] += gained
                self._done["destination", broker] += gained
        if has_progress:
            most = max(self._done.values(), default=0) / self._polls
            self.most_done_bytes = max(FADING**self._polls * self.most_done_bytes, most)
            self._done, self._polls = Counter(), 0

    def saturation(self, in_flight: Iterable[Candidate]) -> Saturation:
        """Which brokers have enough to do, given what is in flight."""
        enough = SaturationThreshold(COPIES, max(LEAST_BYTES, int(POLLS * self.most_done_bytes)))
        return Saturation.of(enough, in_flight)
