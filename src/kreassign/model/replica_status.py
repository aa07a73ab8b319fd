"""How far each copy of a partition is (KIP-179, `replicaStatus`)."""

from __future__ import annotations

from dataclasses import dataclass

from kreassign.model.partition import TopicPartition


@dataclass(frozen=True, slots=True)
class ReplicaStatus:
    """One replica, measured at its own broker at `status_time_ms` (milliseconds since the epoch).

    `log_start_offset` and `log_end_offset` are the replica's own. `lag_records` is the leader's end minus this
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
