"""Which offset of a partition is asked for."""

from __future__ import annotations

from enum import IntEnum


class OffsetSpec(IntEnum):
    """Kafka's names for them, with its numbers (`timestamp` of ListOffsets).

    Where tiered storage (KIP-405) has moved older segments away, a log begins twice: `EARLIEST` is the first offset
    that can be read, from wherever it is kept, `EARLIEST_LOCAL` the first that the broker has on its own disks. All
    other logs begin once, so that both are the same. Sizes are of what is on disks, and so is what a move copies:
    whatever goes with a size is measured from `EARLIEST_LOCAL`.
    """

    LATEST = -1
    EARLIEST = -2
    EARLIEST_LOCAL = -4
    EARLIEST_PENDING_UPLOAD = -6
    """The first offset of a tiered topic that remote storage does not have yet (KIP-1023, Kafka 4.2)."""
