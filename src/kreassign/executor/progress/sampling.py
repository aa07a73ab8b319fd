"""How much of the progress of copies is written down: all of it at first, then as much as a journal may grow.

What a copy has done changes with every poll, and a run of a week polls half a million times. So progress may take
`BURST_BYTES` at once and `BYTES_PER_S` from then on (a token bucket): a run of minutes is written down poll by poll,
one with a hundred copies in flight some three times a minute. Any other change is written with the poll that shows it.
Pure but for its own count.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from kreassign.executor.events import PartitionObservation
from kreassign.model import TopicPartition

BURST_BYTES = 4_000_000
BYTES_PER_S = 100.0
"""8.6 MB a day."""

POLL_BYTES = 200
"""What a poll takes in a journal, and beside that each partition in it (compressed; see bench `journal-week`)."""
PARTITION_BYTES = 22

Known = Mapping[TopicPartition, PartitionObservation | None]


@dataclass(slots=True)
class ProgressSampling:
    """Decides, poll by poll, whether progress is written down."""

    left_bytes: float = BURST_BYTES
    bytes_per_s: float = BYTES_PER_S
    _at_s: float | None = None

    def chosen(
        self, known: Known, news: tuple[PartitionObservation, ...], now_s: float
    ) -> tuple[tuple[PartitionObservation, ...], bool]:
        """Of the news of a poll at this (monotonic) time those that are written, and whether progress is among them."""
        self._refill(now_s)
        changes = tuple(one for one in news if not _is_progress(known.get(one.topic_partition), one))
        if len(changes) == len(news):
            return news, self.left_bytes >= 0
        if self.left_bytes < 0:
            return changes, False
        self.left_bytes -= POLL_BYTES + PARTITION_BYTES * (len(news) - len(changes))
        return news, True

    def _refill(self, now_s: float) -> None:
        passed_s = 0.0 if self._at_s is None else max(0.0, now_s - self._at_s)
        self._at_s = now_s
        self.left_bytes = min(BURST_BYTES, self.left_bytes + self.bytes_per_s * passed_s)


def _is_progress(known: PartitionObservation | None, seen: PartitionObservation) -> bool:
    """Whether nothing but the bytes of copies differs."""
    return known is not None and replace(seen, copies=known.copies) == known
