"""How far each copy of a partition is (KIP-179, `replicaStatus`).

A moving replica fetches from the leader like any follower, so its own log end offset is exact progress:

    lag_records = leader's log end - replica's log end
    lag_bytes   = lag_records x leader's size / (leader's log end - leader's log start)

A log starts here where the broker's own copy does. Tiered storage (KIP-405) keeps older segments elsewhere: they count
in no size, no follower copies them, and a new replica begins at the leader's local start, or with KIP-1023 after it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from kreassign.model.partition import TopicPartition


@dataclass(frozen=True, slots=True)
class ReplicaStatus:
    """One replica, measured at its own broker at `status_time_ms` (milliseconds since the epoch).

    `log_start_offset` and `log_end_offset` are of what the replica has itself: the former is its local log start offset
    where tiered storage has older segments. `lag_records` is the leader's end minus this
    replica's end, never negative. `lag_bytes` estimates the same in bytes, as `lag_records` times the mean size
    of the leader's records; it is None when the leader's size is not known. `size_bytes` is what the replica
    takes on disk, None when its broker did not say. A replica that its broker does not host yet has lag in full,
    offsets of -1 and a size of 0.
    """

    topic_partition: TopicPartition
    broker: int
    is_leader: bool
    status_time_ms: int
    log_start_offset: int
    log_end_offset: int
    lag_records: int
    lag_bytes: int | None
    size_bytes: int | None

    def done_bytes(self, leader: ReplicaStatus | None) -> int:
        """What has been copied: the leader's size without the lag, which grows evenly where files do not.

        What remote storage has already, a new copy may have skipped (KIP-1023): then it starts after the leader's.
        """
        whole = leader.size_bytes if leader else None
        if leader is None or self.lag_bytes is None or whole is None:
            return self.size_bytes or 0
        skipped, held = self.log_start_offset - leader.log_start_offset, leader.log_end_offset - leader.log_start_offset
        skipped_bytes = round(whole * skipped / held) if 0 < skipped <= held else 0
        return max(0, whole - skipped_bytes - self.lag_bytes)


class OffsetRange(NamedTuple):
    """The first offset that a copy has itself, and that after its last; -1 and -1 where there is no copy."""

    start: int
    end: int


NO_COPY = OffsetRange(-1, -1)


@dataclass(frozen=True, slots=True)
class Copy:
    """What a broker says of its copy; `size_bytes` is None where it does not say."""

    offsets: OffsetRange
    size_bytes: int | None

    def lag_behind(self, leader: Copy) -> tuple[int, int | None]:
        """By how many records and (None: unknown) bytes this copy is behind that of the leader."""
        # A copy that does not exist yet will start where the leader's log starts.
        records = max(0, leader.offsets.end - max(self.offsets.end, leader.offsets.start))
        if records == 0:
            return 0, 0
        if leader.size_bytes is None:
            return records, None
        return records, round(records * leader.size_bytes / (leader.offsets.end - leader.offsets.start))
