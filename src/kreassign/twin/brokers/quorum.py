"""The controllers of a cluster: which of them is active. What they know is the metadata log, the same for all."""

from __future__ import annotations

FIRST_ID = 100


class Quorum:
    """Controllers in a ring; after the last comes the first. `epoch` counts who was active."""

    def __init__(self, count: int, highest_broker: int) -> None:
        first = max(FIRST_ID, highest_broker + 1)
        self.ids = tuple(range(first, first + count))
        self.active = first
        self.epoch = 1

    def fail_over(self) -> None:
        """Make the next controller the active one; a single one resigns and is elected again."""
        self.active = self.ids[(self.ids.index(self.active) + 1) % len(self.ids)]
        self.epoch += 1
